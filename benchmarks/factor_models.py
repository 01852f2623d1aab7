"""Poisson factorisation: what tempering does to its optima, and how it does against NMF.

    python benchmarks/factor_models.py [--counts 20news.npz] [--seeds 10]

Counts are thinned: each unit is held out with the probability 0.1, so that what is left and what
is held out are independent Poisson counts of the same factors. Their log likelihood is in nats an
entry of the matrix, at rates (expected counts of the fit) / 9, at least 1e-6.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy import sparse
from scipy.special import gammaln
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from tempering import Annealing, PoissonFactorization, schedules

#: The optimum counts as the best one within so many nats.
SAME = 1.0


def policies(passes=50):
    return {
        "VI": None,
        "from T = 1.4": Annealing(schedules.linear_inverse(1.4), passes=passes),
        "from T = 5": Annealing(schedules.linear_inverse(5.0), passes=passes),
    }


def drawn(n=200, columns=40, k=6, seed=0):
    rng = np.random.default_rng(seed)
    activations, components = rng.gamma(0.3, 1 / 0.3, (n, k)), rng.gamma(0.3, 1 / 0.3, (k, columns))
    return sparse.csr_array(rng.poisson(activations @ components).astype(float))


def from_file(path, rows=500, columns=500):
    """The most frequent columns of the first rows of a CSR matrix as scipy saves it."""
    counts = sparse.csr_array(sparse.load_npz(path))[:rows].astype(float)
    frequent = np.sort(np.argsort(-np.asarray(counts.sum(axis=0)).ravel())[:columns])
    return sparse.csr_array(counts[:, frequent])


def thinned(counts, seed=0):
    rng = np.random.default_rng(seed)
    kept = counts.copy()
    kept.data = rng.binomial(counts.data.astype(int), 0.9).astype(float)
    held_out = sparse.csr_array(counts - kept)
    kept.eliminate_zeros()
    held_out.eliminate_zeros()
    return kept, held_out


def log_likelihood(expected, held_out):
    rates, entries = np.maximum(expected / 9, 1e-6), held_out.tocoo()
    total = np.sum(entries.data * np.log(rates[entries.coords])) - rates.sum()
    return float(total - gammaln(entries.data + 1).sum()) / rates.size


def poisson(name, counts, k, seeds):
    kept, held_out = thinned(counts)
    print(f"\n{name}: {kept.shape[0]} x {kept.shape[1]}, {kept.nnz} entries, K = {k}")
    rows = {}
    for label, policy in policies().items():
        rows[label] = []
        for seed in range(seeds):
            model = PoissonFactorization(k, tempering=policy, max_iter=500, random_state=seed)
            model.set_params(n_jobs=1, tol=0.1)
            began = time.process_time()
            model.fit(kept)
            seconds = time.process_time() - began
            expected = model.inverse_transform(model.transform(kept))
            score = log_likelihood(expected, held_out)
            rows[label].append((model.elbo_, score, seconds, model.n_iter_))
    best = max(elbo for runs in rows.values() for elbo, *_ in runs)
    print("                 at the best   gap: median, worst   held-out    CPU s   passes")
    for label, runs in rows.items():
        elbos, scores, seconds, passes = np.array(runs).T
        gaps = best - elbos
        print(
            f"{label:14}   {np.sum(gaps < SAME):3.0f} of {seeds:2}     {np.median(gaps):8.1f} "
            f"{gaps.max():8.1f}   {scores.mean():9.5f}  {seconds.mean():7.2f}   "
            f"{passes.mean():5.0f}"
        )
    nmf(kept, held_out, k, seeds)


def nmf(kept, held_out, k, seeds):
    scores, seconds = [], []
    for seed in range(seeds):
        model = NMF(
            k, init="random", solver="mu", beta_loss="kullback-leibler", max_iter=500, tol=1e-4
        )
        model.set_params(random_state=seed)
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            activations = model.fit_transform(kept)
        seconds.append(time.process_time() - began)
        scores.append(log_likelihood(activations @ model.components_, held_out))
    print(f"{'NMF (KL, mu)':49} {np.mean(scores):9.5f}  {np.mean(seconds):7.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counts", help="a CSR matrix as scipy.sparse.save_npz writes it")
    parser.add_argument("--components", type=int, default=20, help="K for the matrix of --counts")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    poisson("drawn", drawn(), 6, options.seeds)
    if options.counts:
        counts = from_file(options.counts)
        poisson(options.counts.rsplit("/", 1)[-1], counts, options.components, options.seeds)


if __name__ == "__main__":
    main()
