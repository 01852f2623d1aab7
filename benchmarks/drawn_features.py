"""Are all features found, from every start? The default of `FactorialMixture` beside a schedule.

    python benchmarks/drawn_features.py --data 8

Eight data sets of each kind, four starts each. ``found``: fits within a nat of the best that any
of them reached on these data; ``gap``: nats below it, a mean. The default is a search; the schedule
cools from a temperature computed from the data, linearly in 1/T, in 50 passes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from tempering import Annealing, FactorialMixture

POLICIES: dict[str, dict[str, Any]] = {
    "default": {},
    "schedule": {"tempering": Annealing(passes=50, start="auto"), "max_iter": 300, "n_init": 1},
    "VI": {"n_init": 1},
}
STARTS = range(4)


def binary(n: int, k: int, d: int, rate: float, size: float, noise: float, seed: int) -> Any:
    """Features of zeros and ones, which overlap."""
    rng = np.random.default_rng(seed)
    features = size * (rng.random((k, d)) < 0.4)
    return k, (rng.random((n, k)) < rate) @ features + noise * rng.normal(size=(n, d))


def real(n: int, k: int, d: int, rate: float, size: float, noise: float, seed: int) -> Any:
    """Features of either sign."""
    rng = np.random.default_rng(seed)
    features = size * rng.normal(size=(k, d))
    return k, (rng.random((n, k)) < rate) @ features + noise * rng.normal(size=(n, d))


def parts(n: int, k: int, d: int, rate: float, seed: int) -> Any:
    """Sparse features of positive numbers."""
    rng = np.random.default_rng(seed)
    features = (rng.random((k, d)) < 0.3) * rng.gamma(2.0, 1.0, size=(k, d))
    return k, (rng.random((n, k)) < rate) @ features + 0.3 * rng.normal(size=(n, d))


KINDS: dict[str, tuple[Any, str]] = {
    "4 binary, overlapping": (partial(binary, 270, 4, 10, 0.3, 3.0, 0.2), "auto"),
    "6 binary": (partial(binary, 400, 6, 20, 0.3, 2.0, 0.3), "auto"),
    "3 real": (partial(real, 150, 3, 6, 0.5, 2.0, 0.3), "auto"),
    "5 real": (partial(real, 500, 5, 12, 0.4, 2.0, 0.5), "auto"),
    "5 real, mean-field": (partial(real, 500, 5, 12, 0.4, 2.0, 0.5), "mean-field"),
    "8 real": (partial(real, 600, 8, 16, 0.25, 1.0, 0.2), "auto"),
    "14 sparse, mean-field": (partial(parts, 600, 14, 40, 0.2), "auto"),
}


def run(kind: str, seed: int, start: int, policy: str) -> tuple[float, float, float]:
    """The ELBO of a fit, its passes and CPU seconds."""
    warnings.simplefilter("ignore")
    draw, local = KINDS[kind]
    k, X = draw(seed)
    began = time.process_time()
    mixture = FactorialMixture(k, local=local, random_state=start, n_jobs=1, **POLICIES[policy])
    mixture.fit(X)
    return mixture.elbo_, mixture.n_iter_, time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=int, default=8, help="data sets of each kind")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.data)
    print("| kind | " + " | ".join(f"{name}: found; gap; passes; s" for name in POLICIES) + " |")
    print("|---" * (1 + len(POLICIES)) + "|")
    with ProcessPoolExecutor(options.jobs) as pool:
        for kind in KINDS:
            cases = [(kind, d, s, policy) for policy in POLICIES for d in seeds for s in STARTS]
            fits = np.array(list(pool.map(run, *zip(*cases, strict=True))))
            fits = fits.reshape(len(POLICIES), len(seeds), len(STARTS), 3)
            gaps = fits[..., 0].max(axis=(0, 2))[:, None] - fits[..., 0]
            cells = [
                f"{np.mean(gap < 1):.0%}; {gap.mean():.0f}; {passes:.0f}; {seconds:.2f}"
                for gap, (_, passes, seconds) in zip(gaps, fits.mean(axis=(1, 2)), strict=True)
            ]
            print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
