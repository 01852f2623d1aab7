"""Known mixing weights: nothing to learn, in the interface of a family."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempering.families.arrays import align, safe_log
from tempering.families.base import Array
from tempering.families.weights import MixingWeights


class FixedWeights(MixingWeights):
    """Weights π that are given: a point mass, with natural parameters of size 0, [..., 0].

    Parameters
    ----------
    weights : array-like of shape (K,)
        Non-negative, summing to 1.

    Examples
    --------
    >>> from tempering.families import FixedWeights
    >>> family = FixedWeights([0.25, 0.75])
    >>> family.size, family.mean_weights([])
    (0, array([0.25, 0.75]))
    """

    def __init__(self, weights: ArrayLike):
        values = np.array(weights, float)
        if values.ndim != 1 or not values.size:
            raise ValueError(
                f"weights must be a vector of length K >= 1; got shape {values.shape}."
            )
        if not np.all(np.isfinite(values)) or values.min() < 0:
            raise ValueError(f"weights must be finite and not negative; got {values}.")
        if abs(values.sum() - 1.0) > 1e-6:
            raise ValueError(f"weights must sum to 1; they sum to {values.sum()}.")
        self.weights = values / values.sum()
        self.dimension = len(values)

    @property
    def size(self) -> int:
        return 0

    def log_normalizer(self, natural: ArrayLike) -> Array:
        return np.zeros(np.shape(natural)[:-1])

    def expected_statistics(self, natural: ArrayLike) -> Array:
        return np.zeros(np.shape(natural))

    def parameter_statistics(self, parameters: ArrayLike) -> Array:
        return np.zeros(np.shape(parameters))

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        return np.zeros((n, *np.shape(natural)))

    def point(self, natural: ArrayLike) -> Array:
        return np.zeros(np.shape(natural))

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        return np.ones(np.shape(natural)[:-1], bool)

    def expected_log_weights(self, natural: ArrayLike) -> Array:
        return self._spread(safe_log(self.weights), natural)

    def log_moment(self, natural: ArrayLike, power: ArrayLike) -> Array:
        """s · log π_k, shape [..., *s.shape, K]."""
        s = np.asarray(power, float)
        return s[..., None] * align(self.expected_log_weights(natural), s)

    def mean_weights(self, natural: ArrayLike) -> Array:
        return self._spread(self.weights, natural)

    def statistics_from_counts(self, counts: ArrayLike) -> Array:
        return np.zeros((*np.shape(counts)[:-1], 0))

    def sample_log_weights(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        return np.broadcast_to(self.expected_log_weights(natural), self._shape(natural, n)).copy()

    def _spread(self, values: Array, natural: ArrayLike) -> Array:
        return np.broadcast_to(values, self._shape(natural)).copy()

    def _shape(self, natural: ArrayLike, *first: int) -> tuple[int, ...]:
        return (*first, *np.shape(natural)[:-1], self.dimension)
