"""Where a mixture starts: soft or hard assignments of the data to components.

The start by annealing (Rose, Gurewitz and Fox, 1990) is a mixture of K equal spheres whose variance
is *known* and plays the part of the temperature, v = T σ²:

    r_ik ∝ exp{ −|x_i − μ_k|² / (2v) },        μ_k = Σ_i r_ik x_i / Σ_i r_ik.

When v is large there is one centre. As v falls, a centre splits when v passes the largest
eigenvalue of the covariance of its points: the coarsest clusters first, without random numbers. A
variance that is learned would grow with the temperature instead, and hold the clusters together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from typing import Literal, NamedTuple, get_args

import numpy as np

from tempering.families.checks import LARGEST_VALUE
from tempering.inference.executors import Executor, open_executor
from tempering.models import Mixture, Natural
from tempering.models.arguments import shown
from tempering.models.base import Array

Start = Literal["annealed", "kmeans", "k-means++", "random", "random_from_data"]

#: Rows that are solved at a time. A constant, so that sums never depend on the workers.
SHARD_ROWS = 8192

#: Data that a centre must hold.
SMALLEST_COUNT = 1e-6


class Moments(NamedTuple):
    """Sums over the data, weighted by r_ik. They add up, so merging two centres is exact."""

    counts: Array  # Σ_i r_ik, [k]
    sums: Array  # Σ_i r_ik x_i, [k, D]
    squares: Array | None = None  # Σ_i r_ik x_i x_i', [k, D, D]; where a centre may split

    @property
    def centres(self) -> Array:
        return self.sums / self.counts[:, None]

    def keep(self, which: np.ndarray) -> Moments:
        """Those of some centres."""
        squares = None if self.squares is None else self.squares[which]
        return Moments(self.counts[which], self.sums[which], squares)

    def merge(self, first: int, second: int) -> Moments:
        """The second centre's data given to the first, in place."""
        for part in self:
            if part is not None:
                part[first] += part[second]
        return self.keep(np.arange(len(self.counts)) != second)


def annealed_spheres(
    X: Array, n_components: int, metric: Array, executor: Executor
) -> Callable[[Array], Array]:
    """Cool a mixture of spheres from one centre to K of them; see the head of this file.

    What comes back gives rows their r [n, K]: that of components beyond the centres found is 0.
    """
    offset = X.mean(axis=0)
    centres, variance = _cool((X - offset) @ metric, n_components, executor)

    def assign(rows: Array) -> Array:
        assignment = np.zeros((rows.shape[0], n_components))
        points = (rows - offset) @ metric
        assignment[:, : len(centres)] = responsibilities(points, centres, variance)
        return assignment

    return assign


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
    """Name columns that are linearly dependent, and the remedy; "" if there are none."""
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


def cluster_metric(
    model: Mixture, data: Array, posterior: Natural, columns: Array, executor: Executor
) -> Array:
    """The metric in which the clusters of a posterior are round on the average: M with M'PM = I.

    P = Σ_k Σ_i r_ik (x_i − m_k)(x_i − m_k)' / N is their pooled covariance. D data of unit variance
    in the metric ``columns`` are added, so that it is proper for any data.
    """
    expected, (n, dimension) = model.expectations(posterior), data.shape

    def sums_of(rows: slice) -> Natural:
        shard = data[rows]
        r = model.assign(shard, expected).probabilities
        return Natural(counts=r.sum(axis=0), sums=r.T @ shard, total=shard.T @ shard)

    counts, sums, total = sum_over_shards(sums_of, n, executor).values()
    held = counts > SMALLEST_COUNT
    scatter = total - (sums[held] / counts[held, None]).T @ sums[held]
    pooled = columns.T @ scatter @ columns + dimension * np.eye(dimension)
    factor = np.linalg.cholesky(pooled / (n + dimension))
    return columns @ np.linalg.inv(factor).T


def alike(metric: Array, other: Array) -> bool:
    """Whether what is round in the one metric is nearly round in the other."""
    stretch = np.linalg.svd(np.linalg.solve(metric, other), compute_uv=False)
    return bool(stretch[0] ** 2 < 1.25 * stretch[-1] ** 2)


def reannealing(X: Array) -> Callable[[Mixture, Array, Natural, Executor], Natural | None]:
    """A move for a fit with moves: anneal again, in the metric of the clusters found so far.

    Spheres suit round clusters. Each fit brings the metric that makes them round nearer, as columns
    of mere noise shrink in it; the move ends where it changes no more.
    """
    columns = last = column_metric(X)

    def move(model: Mixture, data: Array, posterior: Natural, executor: Executor) -> Natural | None:
        nonlocal last
        metric = cluster_metric(model, data, posterior, columns, executor)
        if alike(metric, last):
            return None
        last = metric
        assign = annealed_spheres(data, model.n_components, metric, executor)

        def statistics_of(rows: slice) -> Natural:
            return model.statistics(data[rows], assign(data[rows]))

        return model.prior() + sum_over_shards(statistics_of, data.shape[0], executor)

    return move


def _cool(points: Array, n_components: int, executor: Executor) -> tuple[Array, float]:
    """The centres and the variance at the end of the cooling."""
    n, dimension = points.shape
    varying = max(1, np.count_nonzero(points.any(axis=0)))
    centres = np.zeros((1, dimension))
    variance = hottest = float(np.linalg.eigvalsh(points.T @ points / n)[-1])
    total = float(np.einsum("nd,nd->", points, points))
    for _ in range(400):
        if not variance > 1e-10 * hottest:  # nothing is left to tell apart but rounding errors
            break
        moments = sphere_moments(
            points, centres, variance, executor, squares=len(centres) < n_components
        )
        moments = moments.keep(moments.counts > SMALLEST_COUNT)
        largest_first = np.argsort(-moments.counts, kind="stable")
        moments = moments.keep(largest_first)
        centres = moments.centres
        within = (total - np.sum(moments.sums * centres)) / (n * varying)
        # Cooled enough: much smaller than what they hold.
        if len(centres) == n_components and variance < 0.5 * within:
            break
        moments = merge_coincident(moments, variance)
        centres = split_critical(moments, variance, n_components)
        variance *= 0.9
    return centres, variance


def responsibilities(points: Array, centres: Array, variance: float) -> Array:
    """r_ik ∝ exp{−|x_i − μ_k|² / (2v)}, shape [n, k]."""
    if len(centres) == 1:
        return np.ones((len(points), 1))
    # |x|² is the same for all k.
    r = points @ (centres.T / variance)
    r -= np.sum(centres**2, axis=1) / (2 * variance)
    r -= r.max(axis=1, keepdims=True)
    np.exp(r, out=r)
    r /= r.sum(axis=1, keepdims=True)
    return r


def sphere_moments(
    points: Array, centres: Array, variance: float, executor: Executor, *, squares: bool
) -> Moments:
    """One E-step over all data, shard by shard."""

    def moments_of(rows: slice) -> Natural:
        shard = points[rows]
        r = responsibilities(shard, centres, variance)
        parts = {"counts": r.sum(axis=0), "sums": r.T @ shard}
        if squares:
            parts["squares"] = np.stack([(shard * column[:, None]).T @ shard for column in r.T])
        return Natural(**parts)

    return Moments(**sum_over_shards(moments_of, len(points), executor))


def merge_coincident(moments: Moments, variance: float) -> Moments:
    """Join centres that have not separated: |μ_a − μ_b|² < 0.1 v."""
    while len(moments.counts) > 1:
        centres = moments.centres
        lengths = np.sum(centres**2, axis=1)
        distances = lengths[:, None] + lengths - 2 * centres @ centres.T
        np.fill_diagonal(distances, np.inf)
        first, second = np.unravel_index(np.argmin(distances), distances.shape)
        if distances[first, second] >= 0.1 * variance:
            break
        moments = moments.merge(int(min(first, second)), int(max(first, second)))
    return moments


def split_critical(moments: Moments, variance: float, n_components: int) -> Array:
    """Centres, those past their critical temperature (λ > v) replaced by μ ± ½ √λ u."""
    centres = moments.centres
    if moments.squares is None or len(centres) >= n_components:
        return centres
    covariances = moments.squares / moments.counts[:, None, None]
    covariances -= centres[:, :, None] * centres[:, None, :]
    eigenvalues, eigenvectors = np.linalg.eigh(covariances)
    largest, axes = eigenvalues[:, -1], eigenvectors[:, :, -1]
    # The widest first, while there are components left.
    widest = np.argsort(-largest, kind="stable")[: n_components - len(centres)]
    critical = widest[largest[widest] > variance]
    kicks = 0.5 * np.sqrt(largest[critical])[:, None] * axes[critical]  # to either side
    twins = centres[critical] - kicks
    centres[critical] += kicks
    return np.concatenate([centres, twins])


def random_assignment(X: Array, n_components: int, rng: np.random.RandomState) -> Array:
    """Soft assignments at random, as scikit-learn draws them, shape [n, K]."""
    assignment = rng.uniform(size=(X.shape[0], n_components))
    return assignment / assignment.sum(axis=1, keepdims=True)


def kmeans_labels(X: Array, n_components: int, rng: np.random.RandomState) -> np.ndarray:
    """Labels by one run of k-means, as scikit-learn's mixtures start, shape [n]."""
    from sklearn.cluster import KMeans

    return KMeans(n_components, n_init=1, random_state=rng).fit(X).labels_


def start_assignment(
    name: str, X: Array, n_components: int, rng: np.random.RandomState, n_threads: int | None = 1
) -> Iterator[tuple[slice, Array]]:
    """The start of that name, shard by shard: rows, and their assignments [n, K]."""
    pieces = shards(X.shape[0])
    if name == "annealed":
        with open_executor(None, n_threads) as executor:
            assign = annealed_spheres(X, n_components, column_metric(X), executor)
        yield from ((rows, assign(X[rows])) for rows in pieces)
    elif name == "kmeans":
        labels = kmeans_labels(X, n_components, rng)
        yield from ((rows, np.eye(n_components)[labels[rows]]) for rows in pieces)
    elif name in ("k-means++", "random_from_data"):
        # A component starts from one datum; the others are nobody's until the first pass.
        labels = np.full(X.shape[0], n_components)
        if name == "k-means++":
            from sklearn.cluster import kmeans_plusplus

            chosen = kmeans_plusplus(X, n_components, random_state=rng)[1]
        else:
            chosen = rng.choice(X.shape[0], size=n_components, replace=False)
        labels[chosen] = np.arange(n_components)
        hard = np.eye(n_components + 1)[:, :n_components]
        yield from ((rows, hard[labels[rows]]) for rows in pieces)
    elif name == "random":
        yield from ((rows, random_assignment(X[rows], n_components, rng)) for rows in pieces)
    else:
        raise ValueError(f"the start must be one of {', '.join(get_args(Start))}; got {name!r}.")


def shards(n_rows: int) -> list[slice]:
    """The rows in pieces of a fixed size."""
    return [slice(start, start + SHARD_ROWS) for start in range(0, n_rows, SHARD_ROWS)]


def sum_over_shards(
    function: Callable[[slice], Natural], n_rows: int, executor: Executor
) -> Natural:
    """Σ over shards of the arrays that the function gives, in a fixed order."""
    pieces, total, at_once = shards(n_rows), [], 16  # which bounds the memory, not the result
    for first in range(0, len(pieces), at_once):
        solved = executor.map(function, pieces[first : first + at_once])
        total = [reduce(add, [*total, *solved])]
    return total[0]
