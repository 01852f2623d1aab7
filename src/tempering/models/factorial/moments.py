"""Guesses of the variances σ² and σ_μ² from moments of the data."""

from __future__ import annotations

import numpy as np

from tempering.models.base import Array

#: Rows that the guess of the noise looks at.
SAMPLE_ROWS = 2000


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
    """Variance a dimension that the best approximation of some rank leaves over.

    A tenth of all, where such an approximation is always perfect.
    """
    rows = X[:: -(-len(X) // SAMPLE_ROWS)]
    n, d = rows.shape
    left = min(n, d) - rank
    if left <= 0:
        return 0.1 * float(np.mean(np.square(rows)))
    gram = rows @ rows.T if n < d else rows.T @ rows
    return max(float(np.linalg.eigvalsh(gram)[:left].sum()), 0.0) / n / max(d - rank, 1)
