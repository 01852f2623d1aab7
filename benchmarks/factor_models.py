"""Poisson factorisation: what tempering does to its optima, and how it does against others.

    python benchmarks/factor_models.py [--counts 20news.npz] [--seeds 10]

The others are scikit-learn's NMF and, where they are installed, ``hpfrec`` and ``poismf``, each
with its defaults but for the number of factors and one thread. The data are drawn, scikit-learn's
digits (500 images of 64 counts), and the matrix of ``--counts``.

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
from sklearn.datasets import load_digits
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
    for label, expect in {"NMF (KL, mu)": nmf, "hpfrec": hpfrec, "poismf": poismf}.items():
        scores, seconds = [], []
        for seed in range(seeds):
            began = time.process_time()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    expected = expect(kept, k, seed)
            except ImportError as error:
                print(f"{label}: {error}")
                break
            seconds.append(time.process_time() - began)
            scores.append(log_likelihood(expected, held_out))
        else:
            print(f"{label:49} {np.mean(scores):9.5f}  {np.mean(seconds):7.2f}")


def nmf(kept, k, seed):
    model = NMF(k, init="random", solver="mu", beta_loss="kullback-leibler", max_iter=500, tol=1e-4)
    return model.set_params(random_state=seed).fit_transform(kept) @ model.components_


def hpfrec(kept, k, seed):
    """Hierarchical Poisson factorisation, coordinate ascent."""
    from hpfrec import HPF  # pyright: ignore[reportMissingImports]
    from pandas import DataFrame

    entries = kept.tocoo()
    rows, columns = entries.coords
    table = DataFrame({"UserId": rows, "ItemId": columns, "Count": entries.data})
    options = {"reindex": False, "keep_all_objs": False, "verbose": False, "ncores": 1}
    model = HPF(k, random_seed=seed + 1, **options).fit(table)
    expected = np.zeros(kept.shape)  # rows and columns at the end that are empty are not known
    found = model.Theta @ model.Beta.T
    expected[: found.shape[0], : found.shape[1]] = found
    return expected


def poismf(kept, k, seed):
    """Poisson factorisation with penalties, maximised."""
    from poismf import PoisMF  # pyright: ignore[reportMissingImports]

    model = PoisMF(k, reindex=False, nthreads=1, random_state=seed).fit(sparse.coo_matrix(kept))
    return np.asarray(model.A, float) @ np.asarray(model.B, float).T


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--counts", help="a CSR matrix as scipy.sparse.save_npz writes it")
    parser.add_argument("--components", type=int, default=20, help="K for the matrix of --counts")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    poisson("drawn", drawn(), 6, options.seeds)
    poisson("digits", sparse.csr_array(load_digits().data[:500]), 10, options.seeds)
    if options.counts:
        counts = from_file(options.counts)
        poisson(options.counts.rsplit("/", 1)[-1], counts, options.components, options.seeds)


if __name__ == "__main__":
    main()
