"""What a table tells before a fit, and what is done to it: guesses of variances, a rotation.

The model knows its data and its features by their inner products alone, so both may be rotated:
data with more columns than rows so that as many columns as rows hold all of them. After the first
step each feature lies in the space that the data span.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from tempering.models.base import Array
from tempering.models.factorial_mixture import FactorialModel
from tempering.models.natural import Natural
from tempering.models.threads import one_blas_thread

#: Passes in which what is saved has to make up for the rotation.
REPAID_PASSES = 100

#: Rows that the guess of the noise looks at.
SAMPLE_ROWS = 2000


class Narrow(NamedTuple):
    """A table that was turned: [N, N + K] in place of [N, D]."""

    original: Array  # [N, D]
    data: Array  # [N, R + K], the last K columns zero
    weights: Array  # [N, R]: the data times these are the axes of the first R columns

    @classmethod
    def of(cls, data: Array, n_features: int) -> Narrow:
        """The axes are the principal ones: eigenvectors of the products of the data."""
        # On any number of threads the same bits.
        with one_blas_thread():
            values, vectors = np.linalg.eigh(data @ data.T)
        kept = values > len(data) * np.finfo(float).eps * max(values[-1], 0.0)
        lengths, vectors = np.sqrt(values[kept]), vectors[:, kept]
        turned = np.zeros((len(data), len(lengths) + n_features))
        turned[:, : len(lengths)] = vectors * lengths
        return cls(data, turned, vectors / lengths)

    def model(self, model: FactorialModel) -> FactorialModel:
        """The same model of the turned data."""
        changed = copy(model)
        changed.columns = self.data.shape[1]
        return changed

    def turned(self, posterior: Natural) -> Natural:
        """A posterior about the turned data; what only features have is in the last K columns."""
        means = posterior.precision_mean
        inside = means @ self.original.T @ self.weights
        values, vectors = np.linalg.eigh(means @ means.T - inside @ inside.T)
        outside = vectors * np.sqrt(np.maximum(values, 0.0))
        return _with_means(posterior, np.hstack([inside, outside]))

    def back(self, posterior: Natural) -> Natural:
        """The reverse, for features that are combinations of the data."""
        inside = posterior.precision_mean[:, : self.weights.shape[1]]
        return _with_means(posterior, inside @ self.weights.T @ self.original)

    def shown_to(self, callback: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A callback for a fit of the turned data, of one for the data as they are."""
        return lambda report: callback(report._replace(posterior=self.back(report.posterior)))


def worthwhile(n_data: int, dimension: int, n_features: int) -> bool:
    """Whether the rotation takes less time than it saves."""
    rotation = n_data**2 * (dimension / 2 + 4 * n_data)
    saved = 2 * n_data * n_features * (dimension - n_data - n_features)
    return rotation < REPAID_PASSES * saved


def _with_means(posterior: Natural, precision_mean: Array) -> Natural:
    return Natural(**{**posterior, "precision_mean": precision_mean})


def guess_variances(
    X: Array,
    n_features: int,
    n_active: float,
    noise_variance: float | None = None,
    feature_variance: float | None = None,
) -> tuple[float, float]:
    """σ² and σ_μ², where they are not given; ``n_active`` is Σ_k π_k.

    Without noise the data have rank K, so what is left of them beyond rank K is noise; and
    E x² = σ² + σ_μ² Σ_k π_k.
    """
    square = float(np.einsum("nd,nd->", X, X)) / X.size
    if noise_variance is None:
        # Data that K features explain fully still need some noise.
        floor = max(1e-3 * square, np.finfo(float).tiny ** 0.5)
        noise_variance = max(_variance_beyond(X, n_features), floor)
    if feature_variance is None:
        feature_variance = max(square - noise_variance, noise_variance) / n_active
    return noise_variance, feature_variance


def _variance_beyond(X: Array, rank: int) -> float:
    """Variance a dimension that the best approximation of some rank leaves over."""
    rows = X[:: -(-len(X) // SAMPLE_ROWS)]
    n, d = rows.shape
    left = min(n, d) - rank
    if left <= 0:
        return 0.1 * float(np.mean(np.square(rows)))
    gram = rows @ rows.T if n < d else rows.T @ rows
    return max(float(np.linalg.eigvalsh(gram)[:left].sum()), 0.0) / n / max(d - rank, 1)
