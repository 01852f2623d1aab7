"""Is black-box VI stuck? Plain SVI, restarts, schedules made by hand and the adaptive temperature.

    python benchmarks/blackbox.py --seeds 10 --steps 3000

All fits have the guide ``AutoNormal`` and the optimizer Adam(0.02); all seeds of a method run as
one program. For each target and method:

* ``ELBO``: mean over seeds of the final ELBO at T = 1 (mean of 100 draws), and its standard error;
* ``best``: share of seeds within 3 nats of the best ELBO that any method found for the target;
* ``held out``: mean log predictive density of a new datum, in nats, where the target has such data;
* ``seconds``: of all seeds together, with compilation.

An adaptive run is two: a tempered and a plain one, of which the better is kept. Restarts:
``8 x steps/8`` has the steps of one fit in all, ``8 x steps`` eight times as many.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import RenyiELBO, Trace_ELBO, log_likelihood
from numpyro.infer.autoguide import AutoDAIS, AutoNormal
from numpyro.infer.svi import SVIState
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer

from tempering import Annealing, schedules
from tempering.blackbox import TemperedSVI, temper
from tempering.blackbox.tempered_svi import TemperedState

NEAR = 3.0
RESTARTS = 8


class Target(NamedTuple):
    """A model with the data to fit and, where there are, data to predict."""

    model: Callable[..., Any]
    data: tuple[Any, ...]
    held_out: tuple[Any, ...] | None = None


def mixture(dimensions: int, n_clusters: int, std: float) -> Target:
    """Gaussian clusters of known width, their labels summed out."""
    rng = np.random.default_rng(0)
    centres = 4 * rng.standard_normal((n_clusters, dimensions))
    X = centres[rng.integers(n_clusters, size=600)] + std * rng.standard_normal((600, dimensions))

    def model(X):
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.full(n_clusters, 2.0)))
        with numpyro.plate("clusters", n_clusters):
            means = numpyro.sample("means", dist.Normal(0, 5).expand([dimensions]).to_event(1))
        component = dist.Normal(means, std).to_event(1)
        with numpyro.plate("data", len(X)):
            numpyro.sample("X", dist.MixtureSameFamily(dist.Categorical(weights), component), obs=X)

    return Target(model, (jnp.asarray(X[:300]),), (jnp.asarray(X[300:]),))


def sinusoid() -> Target:
    """The frequency of a noisy sinusoid: one mode for each lobe of the periodogram."""
    rng = np.random.default_rng(1)
    t = rng.uniform(0, 2, size=160)
    y = 1.2 * np.sin(2 * np.pi * 1.3 * t + 0.7) + 0.4 * rng.standard_normal(160)

    def model(t, y):
        frequency = numpyro.sample("frequency", dist.Uniform(0.1, 4.0))
        a, b = numpyro.sample("a", dist.Normal(0, 1)), numpyro.sample("b", dist.Normal(0, 1))
        angle = 2 * jnp.pi * frequency * t
        mean = a * jnp.sin(angle) + b * jnp.cos(angle)
        numpyro.sample("y", dist.Normal(mean, 0.4), obs=y)

    t, y = jnp.asarray(t), jnp.asarray(y)
    return Target(model, (t[:80], y[:80]), (t[80:], y[80:]))


def horseshoe() -> Target:
    """Sparse logistic regression: 4 of 40 coefficients are not zero."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 40))
    coefficients = np.zeros(40)
    coefficients[:4] = [3.0, -3.0, 2.0, -2.0]
    y = rng.random(300) < 1 / (1 + np.exp(-X @ coefficients))

    def model(X, y):
        overall = numpyro.sample("overall", dist.HalfCauchy(0.3))
        local = numpyro.sample("local", dist.HalfCauchy(jnp.ones(40)).to_event(1))
        unit = numpyro.sample("unit", dist.Normal(jnp.zeros(40), 1).to_event(1))
        logits = X @ (unit * local * overall)
        numpyro.sample("y", dist.Bernoulli(logits=logits), obs=y)

    X, y = jnp.asarray(X), jnp.asarray(y, int)
    return Target(model, (X[:100], y[:100]), (X[100:], y[100:]))


def network() -> Target:
    """A neural net with ten hidden units and 40 data."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-3, 3, size=240)
    y = np.sin(2 * x) + 0.3 * x + 0.1 * rng.standard_normal(240)

    def model(x, y):
        first = numpyro.sample("first", dist.Normal(jnp.zeros((2, 10)), 2).to_event(2))
        second = numpyro.sample("second", dist.Normal(jnp.zeros(11), 1).to_event(1))
        hidden = jnp.tanh(x[:, None] * first[0] + first[1])
        numpyro.sample("y", dist.Normal(hidden @ second[:10] + second[10], 0.1), obs=y)

    x, y = jnp.asarray(x), jnp.asarray(y)
    return Target(model, (x[:40], y[:40]), (x[40:], y[40:]))


def funnel() -> Target:
    """Eight schools, centred: one mode with a neck, where annealing has nothing to find."""
    effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def model(errors, effects):
        mean = numpyro.sample("mean", dist.Normal(0, 5))
        spread = numpyro.sample("spread", dist.HalfCauchy(5))
        with numpyro.plate("schools", 8):
            school = numpyro.sample("school", dist.Normal(mean, spread))
            numpyro.sample("effects", dist.Normal(school, errors), obs=effects)

    return Target(model, (errors, effects))


def logistic() -> Target:
    """Logistic regression of 569 tumours, 30 measurements each: one mode."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    rows = np.random.default_rng(4).permutation(len(X))
    X, y = jnp.asarray(X[rows]), jnp.asarray(y[rows])

    def model(X, y):
        intercept = numpyro.sample("intercept", dist.Normal(0, 5))
        weights = numpyro.sample("weights", dist.Normal(jnp.zeros(30), 1).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=X @ weights + intercept), obs=y)

    return Target(model, (X[:400], y[:400]), (X[400:], y[400:]))


def brownian() -> Target:
    """Brownian motion that is seen in its first and last ten of thirty steps, with noise."""
    rng = np.random.default_rng(5)
    path = np.cumsum(0.1 * rng.standard_normal(30))
    seen = np.r_[:10, 20:30]
    y = path[seen] + 0.15 * rng.standard_normal(20)

    def model(y):
        innovation = numpyro.sample("innovation", dist.LogNormal(0, 2))
        noise = numpyro.sample("noise", dist.LogNormal(0, 2))
        steps = numpyro.sample("steps", dist.Normal(jnp.zeros(30), 1).to_event(1))
        numpyro.sample("y", dist.Normal(innovation * jnp.cumsum(steps)[seen], noise), obs=y)

    return Target(model, (jnp.asarray(y),))


TARGETS = {
    "mixture, 2-D": lambda: mixture(2, 8, 0.7),
    "mixture, 10-D": lambda: mixture(10, 8, 1.0),
    "sinusoid": sinusoid,
    "horseshoe": horseshoe,
    "network": network,
    "funnel": funnel,
    "logistic": logistic,
    "Brownian motion": brownian,
}


class KLAnnealed(TemperedSVI):
    """What is called KL annealing: the KL is weighted by 0.01 to 1, not the likelihood."""

    def _step(self, method, state, args, kwargs):
        weight = state.heat.inverse_temperature
        weighted = copy.copy(self)
        weighted.model = temper(self.model, weight, self.latent)
        weighted.guide = temper(self.guide, weight, "joint")
        plain, loss = method(weighted, SVIState(*state[:3]), *args, **kwargs)
        return TemperedState(*plain, self.policy.next(state.heat, loss)), loss


def fitter(name: str, target: Target) -> TemperedSVI:
    parts = (target.model, AutoNormal(target.model), numpyro.optim.Adam(0.02))
    if name == RENYI:
        return TemperedSVI(*parts, RenyiELBO(alpha=0.5, num_particles=8), temperature=None)
    if name == "AutoDAIS":
        return TemperedSVI(target.model, AutoDAIS(target.model), parts[2], temperature=None)
    if name == "KL weight 0 to 1":
        policy = Annealing(schedules.linear_inverse(100.0), fraction=0.5)
        annealed = KLAnnealed(*parts, temperature=policy)
        with numpyro.handlers.seed(rng_seed=0), numpyro.handlers.trace() as trace:
            target.model(*target.data)
        annealed.latent = [
            name
            for name, site in trace.items()
            if site["type"] == "sample" and not site["is_observed"]
        ]
        return annealed
    temperature = {
        "linear, s 0.1 to 1": Annealing(schedules.linear_inverse(10.0), fraction=0.5),
        "geometric, s 0.01 to 1": Annealing(schedules.geometric(100.0), fraction=0.5),
        "adaptive": "adaptive",
    }.get(name)
    return TemperedSVI(*parts, temperature=temperature)


RENYI = "Rényi, 8 particles"
METHODS = [
    "plain",
    f"{RESTARTS} x steps/{RESTARTS}",
    f"{RESTARTS} x steps",
    "KL weight 0 to 1",
    "linear, s 0.1 to 1",
    "geometric, s 0.01 to 1",
    "adaptive",
    RENYI,
    "AutoDAIS",
]


class Outcome(NamedTuple):
    elbos: np.ndarray
    held_out: float
    seconds: float


def run(name: str, target: Target, seeds: int, steps: int) -> Outcome:
    """All seeds of one method; restarts are groups of the runs."""
    groups = RESTARTS if " x steps" in name else 1
    if name.endswith(f"/{RESTARTS}"):
        steps //= RESTARTS
    svi = fitter(name, target)
    key = jax.random.key(17)
    begin = time.perf_counter()
    restarts = svi.run_restarts(key, steps, seeds * groups, *target.data, keep_all=True)
    seconds = time.perf_counter() - begin
    judge = copy.copy(svi)
    judge.loss = Trace_ELBO()  # one measure for all, whatever they maximise
    elbo = partial(judge._elbo, n=100, args=target.data, kwargs={})
    elbos = jax.jit(jax.vmap(elbo))(jax.random.split(key, seeds * groups), restarts.all.params)
    elbos = np.asarray(elbos).reshape(seeds, groups)
    best = np.nanargmax(elbos, axis=1) + groups * np.arange(seeds)
    params = jax.tree.map(lambda values: values[best], restarts.all.params)
    return Outcome(np.nanmax(elbos, axis=1), score(svi, target, params), seconds)


def score(svi: TemperedSVI, target: Target, params: Any) -> float:
    """Mean log predictive density of held-out data, 200 draws of each posterior."""
    if target.held_out is None:
        return np.nan

    def one(params):
        draws = svi.guide.sample_posterior(jax.random.key(5), params, sample_shape=(200,))
        values = log_likelihood(target.model, draws, *target.held_out)
        (densities,) = values.values()
        return jnp.mean(jax.scipy.special.logsumexp(densities, axis=0) - jnp.log(200.0))

    return float(jnp.mean(jax.vmap(one)(params)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--methods", nargs="*", default=METHODS)
    options = parser.parse_args()
    console = Console(width=110)
    for name in options.targets:
        target = TARGETS[name]()
        outcomes = {
            method: run(method, target, options.seeds, options.steps) for method in options.methods
        }
        best = max(outcome.elbos.max() for outcome in outcomes.values())
        table = Table(title=f"{name}: best ELBO {best:.1f}")
        for heading in ("method", "ELBO", "±", "best", "held out", "seconds"):
            table.add_column(heading, justify="left" if heading == "method" else "right")
        for method, (elbos, held_out, seconds) in outcomes.items():
            error = elbos.std(ddof=1) / np.sqrt(len(elbos))
            share = np.mean(elbos > best - NEAR)
            figures = f"{elbos.mean():.1f}", f"{error:.1f}", f"{share:.2f}", f"{held_out:.3f}"
            table.add_row(method, *figures, f"{seconds:.1f}")
        console.print(table)


if __name__ == "__main__":
    main()
