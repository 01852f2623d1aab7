"""Distributions over mixing weights: known ones, broken sticks, and the Dirichlet distribution; and
the likelihood of one draw from a finite set, which the last is conjugate to.
"""

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from tempering.families.base import (
    Array,
    ExponentialFamily,
    Likelihood,
    align,
    log_rising,
    log_sum,
    safe_log,
    sample_log_gamma,
)
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
        return self._spread(safe_log(self.weights), natural, n)

    def _spread(self, values: Array, natural: ArrayLike, *first: int) -> Array:
        return np.broadcast_to(values, (*first, *np.shape(natural)[:-1], self.dimension)).copy()


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


class Dirichlet(MixingWeights):
    """Dir(α) over probabilities β on the simplex: t(β) = log β, η = α, h(β) = Π_v 1/β_v.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering.families import Dirichlet
    >>> family = Dirichlet(3)
    >>> family.point([2.0, 1.0, 1.0])
    array([0.5 , 0.25, 0.25])
    >>> np.exp(family.log_moment([2.0, 1.0, 1.0], 1.0))
    array([0.5 , 0.25, 0.25])
    """

    def log_normalizer(self, natural: ArrayLike) -> Array:
        concentration = np.asarray(natural, float)
        return gammaln(concentration).sum(-1) - gammaln(concentration.sum(-1))

    def expected_statistics(self, natural: ArrayLike) -> Array:
        concentration = np.asarray(natural, float)
        return digamma(concentration) - digamma(concentration.sum(-1, keepdims=True))

    def log_moment(self, natural: ArrayLike, power: ArrayLike) -> Array:
        """log E[β_v^s], shape [..., *s.shape, V].

        E[β_v^s] = Γ(α_v + s) Γ(A) / (Γ(α_v) Γ(A + s)) with A = Σ_v α_v.
        """
        s = np.asarray(power, float)
        concentration = align(natural, s)
        total = concentration.sum(-1, keepdims=True)
        return log_rising(concentration, s[..., None]) - log_rising(total, s[..., None])

    def log_power_sum(self, natural: ArrayLike, power: ArrayLike) -> Array:
        """log E[Σ_v β_v^s], shape [..., *s.shape]: the normaliser of a tempered draw.

        >>> Dirichlet(2).log_power_sum([1.0, 1.0], 1.0)
        array(0.)
        """
        return log_sum(self.log_moment(natural, power))

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        return np.exp(self.sample_log(natural, rng, n))

    def sample_log(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        """Draws of log β: with concentrations near 0 most of β underflows, not its logarithm."""
        log_gamma = sample_log_gamma(natural, rng, n)
        return log_gamma - np.logaddexp.reduce(log_gamma, axis=-1, keepdims=True)

    def point(self, natural: ArrayLike) -> Array:
        concentration = np.asarray(natural, float)
        return concentration / concentration.sum(-1, keepdims=True)

    def statistics_from_counts(self, counts: ArrayLike) -> Array:
        return np.array(counts, float)

    expected_log_weights, mean_weights, sample_log_weights = expected_statistics, point, sample_log


class SparseDirichlet(Dirichlet):
    """A Dirichlet distribution in which a concentration of 0 stands for a weight that is 0.

    The other weights have the Dirichlet distribution of the other concentrations.

    Examples
    --------
    >>> from tempering.families import SparseDirichlet
    >>> family = SparseDirichlet(3)
    >>> family.point([3.0, 0.0, 1.0]), family.expected_statistics([3.0, 0.0, 1.0]).round(2)
    (array([0.75, 0.  , 0.25]), array([-0.33,  -inf, -1.83]))
    """

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        numbers = np.asarray(natural, float)
        return np.all(np.isfinite(numbers) & (numbers >= 0), axis=-1) & np.any(numbers > 0, axis=-1)

    def log_normalizer(self, natural: ArrayLike) -> Array:
        concentration = np.asarray(natural, float)
        logs = np.where(concentration > 0, gammaln(concentration), 0.0)
        return logs.sum(-1) - gammaln(concentration.sum(-1))

    def divergence(
        self, posterior: ArrayLike, prior: ArrayLike, prior_weight: float = 1.0
    ) -> Array:
        q, p = np.asarray(posterior, float), np.asarray(prior, float)
        expected = np.where(q > 0, self.expected_statistics(q), 0.0)
        linear = np.sum((q - prior_weight * p) * expected, axis=-1)
        return linear - self.log_normalizer(q) + prior_weight * self.log_normalizer(p)

    def log_moment(self, natural: ArrayLike, power: ArrayLike) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            moments = super().log_moment(natural, power)
        return np.where(align(natural, np.asarray(power, float)) > 0, moments, -np.inf)

    def sample_log(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        concentration = np.asarray(natural, float)
        log_gamma = sample_log_gamma(np.where(concentration > 0, concentration, 1.0), rng, n)
        log_gamma = np.where(concentration > 0, log_gamma, -np.inf)
        return log_gamma - np.logaddexp.reduce(log_gamma, axis=-1, keepdims=True)

    sample_log_weights = sample_log


class Categorical(Likelihood):
    """p(x = v | β) = β_v for integer codes x in 0 … V − 1.

    ∫ p(x | β)^s dx = Σ_v β_v^s.

    Examples
    --------
    >>> from tempering.families import Categorical
    >>> Categorical(3).statistics([2, 0])
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """

    family = Dirichlet
    conjugate: Dirichlet

    def statistics(self, x: ArrayLike) -> Array:
        codes = np.asarray(x)
        indicators = np.zeros((len(codes), self.dimension))
        indicators[np.arange(len(codes)), codes] = 1.0
        return indicators

    def log_likelihood(self, x: ArrayLike, parameters: ArrayLike) -> Array:
        return safe_log(parameters)[..., np.asarray(x)]

    def expected_log_likelihood(self, x: ArrayLike, expected: Array) -> Array:
        # The product of the indicators with E[t(β)], without the indicators.
        return expected.T[np.asarray(x)]

    def log_power_integral(self, parameters: ArrayLike, power: ArrayLike) -> Array:
        s = np.asarray(power, float)
        return log_sum(s[..., None] * align(safe_log(parameters), s))

    def log_expected_power_integral(self, natural: ArrayLike, power: ArrayLike) -> Array:
        return self.conjugate.log_power_sum(natural, power)

    def sample(self, parameters: ArrayLike, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        return rng.choice(self.dimension, size=n, p=np.asarray(parameters, float))

    def check(self, x: ArrayLike) -> None:
        codes = np.asarray(x)
        if codes.ndim != 1 or not np.issubdtype(codes.dtype, np.integer):
            raise ValueError(
                "Categorical data must be one integer code a datum, shape [n]; "
                f"got an array of shape {codes.shape} and type {codes.dtype}."
            )
        wrong = (codes < 0) | (codes >= self.dimension)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"Categorical codes must lie in 0 ... {self.dimension - 1}; row {row} holds "
                f"{codes[row]} ({int(wrong.sum())} such value(s))."
            )
