"""Starts of mixtures: soft or hard assignments of the data to components."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from tempering.families.checks import LARGEST_VALUE
from tempering.inference import ArraySource, evaluate_elbo
from tempering.models import Mixture, Natural
from tempering.models.arguments import shown
from tempering.models.base import Array

Start = Literal["auto", "kmeans", "k-means++", "random", "random_from_data"]

#: Rows that are solved at a time. A constant, so that sums never depend on the workers.
SHARD_ROWS = 8192

#: Rows, and rows for each component, of the sample that k-means sees at most.
KMEANS_ROWS, KMEANS_ROWS_EACH = 10_000, 100
#: Runs of k-means for the first start of a search.
KMEANS_RUNS = 10


def column_metric(X: Array) -> Array:
    """The metric [D, D] in which each column has unit variance (or is constant)."""
    deviation = X.std(axis=0)
    return np.diag(1.0 / np.where(deviation > rounding_of(X), deviation, 1.0))


def rounding_of(X: Array) -> Array:
    """The standard deviation of each column up to which it is constant but for rounding."""
    return 1e-12 * np.nanmax(np.abs(X), axis=0)


def check_spread(X: Array, name: str) -> None:
    """Raise if a column varies, but by so little that its variance underflows."""
    spread = np.nanmax(X, axis=0) - np.nanmin(X, axis=0)
    tiny = (spread > rounding_of(X)) & (spread < 1 / LARGEST_VALUE)
    if tiny.any():
        column = int(np.argmax(tiny))
        raise ValueError(
            f"{name} varies by {spread[column]:g} in column {column}, which has no variance in "
            f"float64. Rescale it to vary by more than {1 / LARGEST_VALUE:g}, or leave it out."
        )


def dependent_columns(X: Array, prior: str) -> str:
    """Name columns that are linearly dependent, and the remedy; "" without any."""
    n_rows, n_columns = X.shape
    if n_rows <= n_columns:
        return f"it has {n_rows} rows for {n_columns} columns. Leave columns out, or raise {prior}."
    # One row that is far off would make columns look dependent.
    X = np.delete(X, np.abs(X).max(axis=1).argmax(), axis=0)
    deviations = X.std(axis=0)
    varying = np.flatnonzero(deviations > rounding_of(X))
    points = (X - X.mean(axis=0))[:, varying] / deviations[varying]
    eigenvalues, eigenvectors = np.linalg.eigh(points.T @ points / n_rows)
    if not varying.size or eigenvalues[0] > 1e-9:
        return ""
    columns = shown(varying[np.abs(eigenvectors[:, 0]) > 1e-3].tolist())
    return f"columns {columns} are linearly dependent. Leave one of them out, or raise {prior}."


def centre_and_variance(X: Array) -> tuple[Array, Array]:
    """Mean and variance of each column, but for NaN; exactly its value and 0 of a constant one."""
    centre, variance = np.nanmean(X, axis=0), np.nanvar(X, axis=0)
    constant = np.sqrt(variance) <= rounding_of(X)
    return np.where(constant, np.nanmin(X, axis=0), centre), np.where(constant, 0.0, variance)


def random_assignment(X: Array, n_components: int, rng: np.random.RandomState) -> Array:
    """Soft assignments at random, as scikit-learn draws them, shape [n, K]."""
    assignment = rng.uniform(size=(X.shape[0], n_components))
    return assignment / assignment.sum(axis=1, keepdims=True)


def kmeans_labels(
    X: Array, n_components: int, rng: np.random.RandomState, n_init: int = 1
) -> np.ndarray:
    """Labels by the best of some runs of k-means, as scikit-learn's mixtures start, shape [n].

    Its centres are found on a sample where the rows are many.
    """
    from sklearn.cluster import KMeans

    most = max(KMEANS_ROWS, KMEANS_ROWS_EACH * n_components)
    n = X.shape[0]
    sample = X if n <= most else X[np.sort(rng.permutation(n)[:most])]
    k = min(n_components, n)  # a first minibatch may be small
    return KMeans(k, n_init=n_init, random_state=rng).fit(sample).predict(X)


def best_start(model: Mixture, X: Array, name: Start, rng: np.random.RandomState) -> Natural:
    """Return λ of the start of that name.

    "auto" is k-means on the columns as they are, or in units of their standard deviations: the one
    with the better ELBO.
    """
    if name != "auto":
        return start_of(model, X, name, rng)
    tables, source = (X, X @ column_metric(X)), ArraySource(X)
    starts = [start_of(model, X, "kmeans", rng, points, KMEANS_RUNS) for points in tables]
    return max(starts, key=lambda start: evaluate_elbo(model, start, source))


def another_start(model: Mixture, X: Array, name: Start, rng: np.random.RandomState) -> Natural:
    """Return λ of a fresh start in a search; with "auto", of one of several kinds."""
    if name != "auto":
        return start_of(model, X, name, rng)
    points = X if rng.randint(2) else X @ column_metric(X)
    return start_of(model, X, "kmeans" if rng.randint(2) else "k-means++", rng, points)


def start_of(
    model: Mixture,
    X: Array,
    name: Start,
    rng: np.random.RandomState,
    points: Array | None = None,
    n_init: int = 1,
) -> Natural:
    """Return λ of the start of that name, in which distances are those of the points."""
    points, k = X if points is None else points, model.n_components
    if name == "random":
        labels = None
    elif name == "kmeans":
        labels = kmeans_labels(points, k, rng, n_init)
    elif name in ("k-means++", "random_from_data"):
        # A component starts from one datum; the others are nobody's until the first pass.
        labels = np.full(len(X), k)
        if name == "k-means++":
            from sklearn.cluster import kmeans_plusplus

            chosen = kmeans_plusplus(points, k, random_state=rng)[1]
        else:
            chosen = rng.choice(len(X), size=k, replace=False)
        labels[chosen] = np.arange(k)
    else:
        raise ValueError(f"the start must be one of {', '.join(get_args(Start))}; got {name!r}.")
    posterior, hard = model.prior(), np.eye(k + 1)[:, :k]
    for first in range(0, len(X), SHARD_ROWS):
        rows = X[first : first + SHARD_ROWS]
        if labels is None:
            assigned = random_assignment(rows, k, rng)
        else:
            assigned = hard[labels[first : first + SHARD_ROWS]]
        posterior = posterior + model.statistics(rows, assigned)
    return posterior
