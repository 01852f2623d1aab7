"""log ∫ p(x)^s dx of a mixture by three estimates, beside the integral: which can be trusted?

    python benchmarks/blackbox_normalizers.py

A learned temperature (VT) needs this number for each likelihood. The mixture has eight Gaussians on
a line; each estimate has 256 draws. Told are its mean error over 200 repetitions, and how far it
scatters.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

N, REPETITIONS, STD = 256, 200, 0.7
CENTRES = 4 * np.random.default_rng(0).standard_normal(8)
LINE = np.linspace(-200, 200, 400_001)


def log_p(x: np.ndarray, s: float = 1.0) -> np.ndarray:
    """The mixture, each component as wide as it is at 1/T = s."""
    return logsumexp(norm.logpdf(x[..., None], CENTRES, STD / np.sqrt(s)), axis=-1) - np.log(8)


def draws(rng: np.random.Generator, s: float) -> np.ndarray:
    return rng.choice(CENTRES, N) + STD / np.sqrt(s) * rng.standard_normal(N)


def from_the_model(rng: np.random.Generator, s: float) -> float:
    x = draws(rng, 1.0)
    return logsumexp((s - 1) * log_p(x)) - np.log(N)


def from_tempered_components(rng: np.random.Generator, s: float) -> float:
    x = draws(rng, s)
    return logsumexp(s * log_p(x) - log_p(x, s)) - np.log(N)


def along_the_path(rng: np.random.Generator, s: float) -> float:
    """d log C / ds is E[log p] at s: draws of the model, weighed, at 20 values of s."""
    x = draws(rng, 1.0)
    grid, logs = np.geomspace(s, 1.0, 20), log_p(x)
    weights = np.exp((grid[:, None] - 1) * logs)
    return -np.trapezoid(weights @ logs / weights.sum(1), grid)


def main() -> None:
    logs = log_p(LINE)
    for s in (0.5, 0.1, 0.01):
        exact = logsumexp(s * logs) + np.log(LINE[1] - LINE[0])
        for estimate in (from_the_model, along_the_path, from_tempered_components):
            rng = np.random.default_rng(1)
            missed = [estimate(rng, s) - exact for _ in range(REPETITIONS)]
            name = estimate.__name__.replace("_", " ")
            print(f"s = {s}, {name}: {np.mean(missed):+.3f} ± {np.std(missed):.3f}", flush=True)


if __name__ == "__main__":
    main()
