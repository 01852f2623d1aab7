"""Are all clusters found? Mixtures with nothing set, against other libraries.

    python benchmarks/mixtures.py --data clustering --seeds 5 --processes 4

``--data`` (or the environment variable ``CLUSTERING_DATA``) names a folder of the suite of
Gagolewski (2022), "A framework for benchmarking clustering algorithms", SoftwareX 20: files
``NAME.data.gz`` with a row a line, and ``NAME.labels0.gz`` (and more) beside them, in which 0 marks
noise. Without it only the drawn tables are fitted. All programs get the number of clusters of the
first labels. The table has the mean over seeds of:

- the clusters that are missed: the centroid index of Fränti et al. (2014), Pattern Recognition 47,
  from the centres of the predicted clusters and of the reference;
- the adjusted Rand index, of the labels that agree best, without noise;
- the mean log density of a fifth of the rows, by a second fit to the others;
- the CPU seconds of the first fit, in one thread.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture as Peer
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from tempering import BayesianGaussianMixture


class Table(NamedTuple):
    """Rows, and one or more partitions of them; 0 marks noise."""

    X: np.ndarray
    labels: list[np.ndarray]

    @property
    def n_clusters(self) -> int:
        return len(np.unique(self.labels[0][self.labels[0] > 0]))


def stored_tables(folder: Path) -> dict[str, Callable[[int], Table]]:
    """Return the tables of a folder, by their names."""

    def read(data: Path, seed: int) -> Table:
        stem = data.name.removesuffix(".data.gz")
        labels = sorted(data.parent.glob(f"{stem}.labels*.gz"))
        return Table(np.loadtxt(data, ndmin=2), [np.loadtxt(path, dtype=int) for path in labels])

    files = sorted(folder.glob("*.data.gz"))
    return {path.name.removesuffix(".data.gz"): partial(read, path) for path in files}


def grid(seed: int) -> Table:
    """Draw 25 round clusters of a hundred rows each."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(25), 100)
    centres = np.array([(i, j) for i in range(5) for j in range(5)], float)
    return Table(centres[labels] + 0.15 * rng.normal(size=(2500, 2)), [labels + 1])


def gaussians(n: int, dimension: int, k: int, spread: float, seed: int) -> Table:
    """Draw clusters of equal size, each with a covariance matrix of its own."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    factors = rng.normal(size=(k, dimension, dimension)) / np.sqrt(dimension)
    noise = rng.normal(size=(n, dimension))
    X = spread * rng.normal(size=(k, dimension))[labels]
    for j in range(k):
        X[labels == j] += noise[labels == j] @ (0.3 * np.eye(dimension) + 0.7 * factors[j])
    return Table(X, [labels + 1])


DRAWN: dict[str, Callable[[int], Table]] = {
    "grid of 25": grid,
    "10,000 x 50, K = 30": partial(gaussians, 10_000, 50, 30, 1.0),
    "100,000 x 10, K = 20": partial(gaussians, 100_000, 10, 20, 1.0),
}


def genie(k: int, seed: int) -> Any:
    """Return Genie, which is deterministic."""
    from genieclust import Genie  # pyright: ignore[reportMissingImports]

    return Genie(n_clusters=k)


METHODS: dict[str, Callable[[int, int], Any]] = {
    "tempering": lambda k, seed: BayesianGaussianMixture(k, random_state=seed, n_jobs=1),
    "sklearn EM": lambda k, seed: GaussianMixture(k, random_state=seed),
    "sklearn EM x 10": lambda k, seed: GaussianMixture(k, n_init=10, random_state=seed),
    "sklearn VB": lambda k, seed: Peer(n_components=k, random_state=seed),
    "k-means x 10": lambda k, seed: KMeans(k, n_init=10, random_state=seed),
    "Genie": genie,
}


class Scores(NamedTuple):
    """Scores of a fit."""

    missed: float
    ari: float
    held_out: float
    seconds: float


def measure(table: Table, method: str, seed: int) -> Scores:
    """Fit twice, to all rows and to four fifths of them, and score both."""
    X, k = table.X, table.n_clusters
    began = time.process_time()
    model = METHODS[method](k, seed)
    found = model.fit_predict(X)
    seconds = time.process_time() - began
    ari = max(adjusted_rand_score(part[part > 0], found[part > 0]) for part in table.labels)
    held_out = np.nan
    if hasattr(model, "score_samples"):
        order = np.random.default_rng(seed).permutation(len(X))
        held_out = (
            METHODS[method](k, seed).fit(X[order[len(X) // 5 :]]).score(X[order[: len(X) // 5]])
        )
    known = table.labels[0] > 0
    missed = centroid_index(centres(X, found), centres(X[known], table.labels[0][known]))
    return Scores(missed, ari, held_out, seconds)


def centres(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the centre of each cluster."""
    return np.stack([X[labels == name].mean(axis=0) for name in np.unique(labels)])


def centroid_index(found: np.ndarray, true: np.ndarray) -> int:
    """Return the number of centres of one set that are nearest to none of the other; the larger."""
    squares = np.square(found[:, None] - true).sum(axis=2)
    orphans = (
        len(true) - len(np.unique(squares.argmin(axis=1))),
        len(found) - len(np.unique(squares.argmin(axis=0))),
    )
    return max(orphans)


def job(task: tuple[str, str, int, Path | None]) -> tuple[str, str, Scores]:
    """Measure one method on one table; a fit that fails has missed everything."""
    name, method, seed, folder = task
    table = tables(folder)[name](seed)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return name, method, measure(table, method, seed)
        except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
            print(f"{name}, {method}: {error}")
            return name, method, Scores(table.n_clusters, 0.0, np.nan, 0.0)


def tables(folder: Path | None) -> dict[str, Callable[[int], Table]]:
    """Return all tables, each as a function of a seed."""
    return {**(stored_tables(folder) if folder else {}), **DRAWN}


def main() -> None:
    parser = argparse.ArgumentParser(description="Are all clusters found?")
    parser.add_argument("--data", type=Path, default=os.environ.get("CLUSTERING_DATA"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="parts of names of tables")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    options = parser.parse_args()
    folder = Path(options.data) if options.data else None
    names = [n for n in tables(folder) if not options.only or any(o in n for o in options.only)]
    methods = list(options.methods)
    try:
        genie(2, 0)
    except ImportError:
        methods = [method for method in methods if method != "Genie"]
    tasks = [
        (name, method, seed, folder)
        for name in reversed(names)  # the drawn ones take longest
        for seed in range(options.seeds)
        for method in methods
    ]
    results: dict[tuple[str, str], list[Scores]] = {}
    with Pool(options.processes) as pool:
        for name, method, scores in pool.imap_unordered(job, tasks):
            results.setdefault((name, method), []).append(scores)
    print("clusters missed / ARI / held-out / CPU seconds\n")
    print(f"| | {' | '.join(methods)} |\n|---|{'---|' * len(methods)}")
    means = {key: np.mean(scores, axis=0) for key, scores in results.items()}
    means |= {
        ("mean", method): np.mean([means[name, method] for name in names], axis=0)
        for method in methods
    }
    for name in [*names, "mean"]:
        cells = ["{:.1f} / {:.3f} / {:.3f} / {:.2f}".format(*means[name, m]) for m in methods]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
