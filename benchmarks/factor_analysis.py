"""Factor analysis: what heat does to it, and how it does against scikit-learn's estimators.

    python benchmarks/factor_analysis.py [--seeds 10]

Drawn rows of three factors in twelve columns, and the digits of scikit-learn. Held out is the log
density of other rows, in nats a row, at the posterior means.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.exceptions import ConvergenceWarning

from tempering import Annealing, BayesianFactorAnalysis, schedules

POLICIES = {
    "T = 1": None,
    "from T = 1.2": Annealing(schedules.linear_inverse(1.2), passes=50),
    "from T = 2": Annealing(schedules.linear_inverse(2.0), passes=50),
    "from T = 5": Annealing(schedules.linear_inverse(5.0), passes=50),
    "VT": "variational",
    "LVT": "local",
}


def drawn(seed, n, columns=12, k=3):
    rng = np.random.default_rng(seed)
    loadings, noise = rng.normal(size=(k, columns)), rng.uniform(0.3, 1.5, columns)
    rows = rng.normal(size=(n + 2000, k)) @ loadings + noise * rng.normal(size=(n + 2000, columns))
    return rows[:n], rows[n:]


def table(data, k, holes=0.0):
    """A line for each policy and each estimator: what it says of rows that were held out."""
    ours = {name: [] for name in POLICIES}
    peers = {name: [] for name in ("FactorAnalysis, K", "FactorAnalysis, true K", "PCA, true K")}
    for seed, (train, test) in enumerate(data):
        rng = np.random.default_rng(seed)
        holed = np.where(rng.random(train.shape) < holes, np.nan, train)
        for name, policy in POLICIES.items():
            factors = BayesianFactorAnalysis(k, tempering=policy, n_jobs=1, random_state=0)
            began = time.process_time()
            factors.fit(holed)
            seconds = time.process_time() - began
            row = (factors.elbo_, factors.n_relevant_, factors.score(test), seconds)
            ours[name].append((*row, factors.n_iter_))
        filled = np.where(np.isnan(holed), np.nanmean(holed, axis=0), holed)
        for name, peer in (
            ("FactorAnalysis, K", FactorAnalysis(k)),
            ("FactorAnalysis, true K", FactorAnalysis(3)),
            ("PCA, true K", PCA(3)),
        ):
            peers[name].append(peer.fit(filled).score(test))
    best = np.max([[row[0] for row in rows] for rows in ours.values()], axis=0)
    print("                   ELBO below the best   factors   held-out    CPU s   passes")
    for name, rows in ours.items():
        elbos, factors, scores, seconds, passes = np.array(rows).T
        print(
            f"{name:22} {np.mean(best - elbos):15.1f}   {factors.mean():7.1f}   "
            f"{scores.mean():8.3f}   {seconds.mean():6.2f}   {passes.mean():6.0f}",
            flush=True,
        )
    for name, scores in peers.items():
        print(f"{name:22} {'':15}   {'':7}   {np.mean(scores):8.3f}")


def digits():
    rows = load_digits().data
    rows = rows[:, rows.std(axis=0) > 0.3]
    train, test = rows[::2], rows[1::2]
    print(f"\ndigits: {train.shape[0]} x {train.shape[1]}, K = 30")
    for name in ("T = 1", "from T = 1.2"):
        factors = BayesianFactorAnalysis(30, tempering=POLICIES[name], n_jobs=1)
        began = time.process_time()
        factors.fit(train)
        print(
            f"{name:12} {factors.score(test):8.2f}   ELBO {factors.elbo_:.1f}   "
            f"{factors.n_relevant_} factors   {time.process_time() - began:.1f} s"
        )
    for k in (10, 20, 30):
        peers = FactorAnalysis(k), PCA(k)
        scores = [f"{type(peer).__name__} {peer.fit(train).score(test):8.2f}" for peer in peers]
        print(f"K = {k}   {'   '.join(scores)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for n, holes in ((200, 0.0), (50, 0.0), (200, 0.2)):
        print(f"\ndrawn: {n} rows, three factors, K = 8, {holes:.0%} missing")
        table([drawn(seed, n) for seed in range(options.seeds)], 8, holes)
    digits()


if __name__ == "__main__":
    main()
