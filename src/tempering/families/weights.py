"""Distributions over mixing weights: what each provides, known weights, and broken sticks.

The third, :class:`tempering.families.Dirichlet`, stands by itself.
"""

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from tempering.families.arrays import align, safe_log
from tempering.families.base import Array, ExponentialFamily
from tempering.families.bernoulli import Beta


class MixingWeights(ExponentialFamily):
    """A distribution over the weights π_1 … π_K of a mixture, conjugate to the component labels.

    The labels enter only through the (expected) number N_k of data in each component:
    Σ_k N_k log π_k = statistics_from_counts(N) · t(β).

    Examples
    --------
    >>> from tempering.families import Dirichlet
    >>> Dirichlet(2).mean_weights([1.0, 3.0])
    array([0.25, 0.75])
    """

    @abstractmethod
    def expected_log_weights(self, natural: ArrayLike) -> Array:
        """E[log π_k], shape [..., K]."""

    @abstractmethod
    def log_moment(self, natural: ArrayLike, power: ArrayLike) -> Array:
        """log E[π_k^s], shape [..., *s.shape, K]."""

    @abstractmethod
    def mean_weights(self, natural: ArrayLike) -> Array:
        """E[π_k], shape [..., K]."""

    @abstractmethod
    def statistics_from_counts(self, counts: ArrayLike) -> Array:
        """What N_k data [..., K] in each component add to the natural parameters, [..., size]."""

    @abstractmethod
    def sample_log_weights(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        """n draws of log π, shape [n, ..., K]."""


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
        super().__init__(len(values))

    blocks = 0

    def log_normalizer(self, natural: ArrayLike) -> Array:
        return np.zeros(np.shape(natural)[:-1])

    def expected_statistics(self, natural: ArrayLike) -> Array:
        return np.zeros(np.shape(natural))

    point = expected_statistics

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        return np.zeros((n, *np.shape(natural)))

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


class StickBreaking(Beta, MixingWeights):
    """π_k = v_k Π_{j<k} (1 − v_j) with independent sticks v_k ~ Beta(a_k, b_k), k = 1 … K.

    The global variable is the vector of sticks v, which :meth:`sample` draws.
    The prior of a Dirichlet process with concentration γ is a = 1, b = γ.

    All K sticks have a beta distribution, as in scikit-learn. So Σ_k π_k < 1: what is missing,
    Π_k (1 − v_k), is the weight of the components beyond the truncation.

    References
    ----------
    Blei and Jordan (2006), "Variational inference for Dirichlet process mixtures".

    Examples
    --------
    >>> from tempering.families import StickBreaking
    >>> family = StickBreaking(3)
    >>> family.mean_weights(family.natural(1.0, 1.0))
    array([0.5  , 0.25 , 0.125])
    >>> family.statistics_from_counts([5.0, 3.0, 2.0])
    array([5., 3., 2., 5., 2., 0.])
    """

    def expected_log_weights(self, natural: ArrayLike) -> Array:
        return _break(*np.split(self.expected_statistics(natural), 2, axis=-1))

    def log_moment(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, natural: ArrayLike, power: ArrayLike
    ) -> Array:
        """log E[π_k^s] = log E[v_k^s] + Σ_{j<k} log E[(1 − v_j)^s], shape [..., *s.shape, K]."""
        return _break(*super().log_moment(natural, power))

    def mean_weights(self, natural: ArrayLike) -> Array:
        """E[π_k], shape [..., K]; they sum to less than 1."""
        return np.exp(self.log_moment(natural, 1.0))

    def statistics_from_counts(self, counts: ArrayLike) -> Array:
        """(N_k, Σ_{j>k} N_j): a datum in component j passed over every stick before it."""
        here = np.asarray(counts, float)
        onwards = np.cumsum(here[..., ::-1], axis=-1)[..., ::-1]
        return np.concatenate([here, onwards[..., 1:], np.zeros_like(here[..., :1])], axis=-1)

    def sample_log_weights(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        return _break(*self.sample_log(natural, rng, n))


def _break(taken: Array, left: Array) -> Array:
    """log π_k (or its expectation, or log moment) from those of v_k and 1 − v_k."""
    before = np.cumsum(left[..., :-1], axis=-1)
    return taken + np.concatenate([np.zeros_like(left[..., :1]), before], axis=-1)
