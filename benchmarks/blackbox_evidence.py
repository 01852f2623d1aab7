"""Estimates of log p(x) beside the exact one, for models that are conjugate.

    python benchmarks/blackbox_evidence.py --seeds 20

Each seed draws data, fits them by an adaptive run and calls ``log_evidence``. Told are the mean
over seeds of what the ELBO and the estimate miss, how far that scatters, the error that the
estimate itself gives, the share of seeds within two of these, and the effective draws.

Then the same for what a cooled path gives, in linear regression with independent Gaussians, where
the best guide at each temperature has a closed form: the integral of E[log p(x | z)] over 1/T, and
stepping stones.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import multivariate_normal

from tempering.blackbox import TemperedSVI

NOISE = 0.5


def regression(X, y):
    weights = numpyro.sample("weights", dist.Normal(jnp.zeros(3), 1.0).to_event(1))
    numpyro.sample("y", dist.Normal(X @ weights, NOISE), obs=y)


def regression_data(rng: np.random.Generator) -> tuple[Any, ...]:
    X = rng.standard_normal((30, 3)) @ np.array([[1, 0.7, 0.3], [0, 1, 0.5], [0, 0, 1]])
    return X, X @ rng.standard_normal(3) + NOISE * rng.standard_normal(30)


def regression_evidence(X, y) -> float:
    return multivariate_normal(cov=NOISE**2 * np.eye(len(y)) + X @ X.T).logpdf(y)


def rate(counts):
    numpyro.sample("x", dist.Poisson(numpyro.sample("rate", dist.Gamma(2.0, 0.5))), obs=counts)


def rate_evidence(counts) -> float:
    n, total = len(counts), counts.sum()
    whole = gammaln(2 + total) - (2 + total) * np.log(0.5 + n) - gammaln(counts + 1).sum()
    return 2 * np.log(0.5) - gammaln(2) + whole


def share(x):
    numpyro.sample("x", dist.Bernoulli(numpyro.sample("share", dist.Beta(1.0, 1.0))), obs=x)


def share_evidence(x) -> float:
    return betaln(1 + x.sum(), 1 + len(x) - x.sum())


def scale(x):
    """Mean and precision unknown: the mean's posterior is Student's t."""
    precision = numpyro.sample("precision", dist.Gamma(2.0, 2.0))
    mean = numpyro.sample("mean", dist.Normal(0.0, 3.0 / jnp.sqrt(precision)))
    numpyro.sample("x", dist.Normal(mean, 1.0 / jnp.sqrt(precision)), obs=x)


def scale_evidence(x) -> float:
    n, k = len(x), 1 / 9
    squares = np.sum((x - x.mean()) ** 2) + k * n / (k + n) * x.mean() ** 2
    powers = 2 * np.log(2) - (2 + n / 2) * np.log(2 + squares / 2)
    return (
        gammaln(2 + n / 2)
        - gammaln(2)
        + powers
        + 0.5 * np.log(k / (k + n))
        - n / 2 * np.log(2 * np.pi)
    )


#: Model, guide, data of a seed, and log p(x).
CASES: dict[str, tuple[Callable[..., Any], Any, Callable[..., Any], Callable[..., float]]] = {
    "regression, a full covariance": (
        regression,
        AutoMultivariateNormal,
        regression_data,
        regression_evidence,
    ),
    "regression, independent": (regression, AutoNormal, regression_data, regression_evidence),
    "rate of 10 counts": (rate, AutoNormal, lambda rng: (rng.poisson(3.0, 10),), rate_evidence),
    "share of 6": (
        share,
        AutoNormal,
        lambda rng: ((rng.random(6) < 0.7).astype(int),),
        share_evidence,
    ),
    "mean and scale of 8": (
        scale,
        AutoNormal,
        lambda rng: (rng.normal(1.0, 1.0, 8),),
        scale_evidence,
    ),
}


def along_path(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """What the best independent Gaussians at each temperature give."""
    squares, cross = X.T @ X / NOISE**2, X.T @ y / NOISE**2

    def best(s: float) -> tuple[np.ndarray, np.ndarray]:
        precision = np.eye(3) + s * squares
        return np.linalg.solve(precision, s * cross), 1 / np.diag(precision)

    def log_likelihood(weights: np.ndarray) -> np.ndarray:
        misfit = np.sum((y - weights @ X.T) ** 2, -1) / NOISE**2
        return -0.5 * misfit - len(y) / 2 * np.log(2 * np.pi * NOISE**2)

    def energy(s: float) -> float:
        mean, variances = best(s)
        return log_likelihood(mean) - 0.5 * np.diag(squares) @ variances

    mean, variances = best(1.0)
    divergence = 0.5 * np.sum(variances + mean**2 - 1 - np.log(variances))
    grid = np.linspace(0, 1, 2001) ** 4
    stones = np.linspace(0, 1, 201) ** 4
    steps = 0.0
    for low, high in pairwise(stones):
        mean, variances = best(low)
        draws = mean + np.sqrt(variances) * rng.standard_normal((2000, 3))
        steps += logsumexp((high - low) * log_likelihood(draws)) - np.log(2000)
    return {
        "ELBO": energy(1.0) - divergence,
        "integral along the path": np.trapezoid([energy(s) for s in grid], grid),
        "200 stepping stones": steps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--steps", type=int, default=1500)
    options = parser.parse_args()
    for name, (model, guide, draw, exact) in CASES.items():
        svi = TemperedSVI(model, guide(model), numpyro.optim.Adam(0.02))
        fit = jax.jit(lambda key, *data: svi.run(key, options.steps, *data, progress_bar=False)[0])  # noqa: B023
        rows = []
        for seed in range(options.seeds):
            data = draw(np.random.default_rng(seed))
            arrays, key = [jnp.asarray(each) for each in data], jax.random.key(seed)
            params = fit(key, *arrays)
            found = svi.log_evidence(key, params, options.draws, *arrays)
            elbo = -float(svi._losses(svi.loss, key, params, options.draws, arrays, {}).mean())
            truth = exact(*data)
            rows.append((elbo - truth, found.log_evidence - truth, *found[1:]))
        elbo, missed, error, effective = np.array(rows).T
        print(
            f"{name}: ELBO {elbo.mean():+.3f}, estimate {missed.mean():+.4f} "
            f"± {missed.std(ddof=1):.4f}, its error {error.mean():.4f}, within two "
            f"{np.mean(abs(missed) < 2 * error):.2f}, effective draws {effective.mean():.0f}",
            flush=True,
        )
    rows = []
    for seed in range(options.seeds):
        rng = np.random.default_rng(seed)
        data = regression_data(rng)
        rows.append([v - regression_evidence(*data) for v in along_path(*data, rng).values()])
    for name, missed in zip(along_path(*data, rng), np.transpose(rows), strict=True):
        print(f"{name}: {missed.mean():+.3f} ± {missed.std(ddof=1):.3f}")


if __name__ == "__main__":
    main()
