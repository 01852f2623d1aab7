"""Mixtures of regressions: how far from the best optimum fits end, by temperature policy.

    python benchmarks/regression_mixture.py [--sets 5] [--starts 4] [--first 0] [--only many]

Three kinds of data, each drawn ``--sets`` times and fitted from ``--starts`` starts. The gap is to
the best ELBO that any fit of the same data reached, in nats. Fits of other draws than those that
the default was chosen on: ``--first 5``.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tempering import Annealing, RegressionMixture, schedules

#: The optimum counts as the best one within so many nats.
SAME = 1.0

KINDS = {
    "lines that cross": {"n": 300, "columns": 1, "noise": 0.4, "k": 6},
    "many components": {"n": 500, "columns": 4, "noise": 0.5, "k": 8},
    "unequal": {"n": 300, "columns": 2, "noise": [0.1, 0.3, 0.5, 0.8, 0.2], "k": 5},
}
UNEQUAL = [0.4, 0.25, 0.2, 0.1, 0.05]


def drawn(seed, n, columns, noise, k):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, columns))
    slopes, intercepts = rng.normal(0, 2, size=(k, columns)), rng.normal(size=k)
    z = rng.choice(k, size=n, p=UNEQUAL if np.ndim(noise) else None)
    noise = np.broadcast_to(noise, k)[z] * rng.normal(size=n)
    return X, np.sum(X * slopes[z], axis=1) + intercepts[z] + noise


def policies():
    cooled = {
        f"from T = {first:g}": {"tempering": Annealing(schedules.linear_inverse(first), passes=100)}
        for first in (1.2, 1.5, 2.0, 5.0)
    }
    return {
        "VI": {"n_init": 1},
        **cooled,
        "VT": {"tempering": "variational"},
        "LVT": {"tempering": "local"},
        "T = 1.5, best of 4": {**cooled["from T = 1.5"], "n_init": 4},
        **{f"search, {n}": {"n_init": n} for n in (2, 3, 5, 10)},
    }


def fits_of(X, y, k, starts, options):
    """ELBO, CPU seconds and passes of each start."""
    rows = []
    for seed in range(starts):
        lines = RegressionMixture(k, random_state=seed, max_iter=500, n_jobs=1, **options)
        began = time.process_time()
        lines.fit(X, y)
        rows.append((lines.elbo_, time.process_time() - began, lines.n_iter_))
    return np.array(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--only", default="", help="kinds of data with this text in their name")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for kind, shape in KINDS.items():
        if options.only not in kind:
            continue
        found = {name: [] for name in policies()}
        for seed in range(options.first, options.first + options.sets):
            X, y = drawn(seed, **shape)
            rows = {
                name: fits_of(X, y, shape["k"], options.starts, given)
                for name, given in policies().items()
            }
            best = max(each[:, 0].max() for each in rows.values())
            for name, each in rows.items():
                each[:, 0] = best - each[:, 0]
                found[name].append(each)
        total = options.sets * options.starts
        print(f"\n{kind}: {shape['n']} rows, K = {shape['k']}")
        print("                   at the best   gap: median,  mean, worst    CPU s   passes")
        for name, parts in found.items():
            gaps, seconds, passes = np.concatenate(parts).T
            print(
                f"{name:18} {np.sum(gaps < SAME):4} of {total:2}   {np.median(gaps):9.1f} "
                f"{gaps.mean():8.1f} {gaps.max():7.1f}   {seconds.mean():7.2f}   "
                f"{passes.mean():5.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
