"""What every exponential family of the package provides, and every likelihood conjugate to one:

    p(β | η) = h(β) exp{ η · t(β) − a(η) },        log p(x | β) = log h(x) + t(x) · t(β).

Both sides share one vector space, so a posterior is the prior plus summed statistics. Natural
parameters are plain arrays ``[..., size]``; leading axes (components, samples) broadcast.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from tempering.families.checks import check_table

Array = NDArray[np.float64]


class ExponentialFamily(ABC):
    """A distribution over a global variable β, in natural parameters η [..., size].

    The constructor takes ``dimension``: D, K or V, the length of β.

    Examples
    --------
    The posterior after data is the prior plus their statistics:

    >>> import numpy as np
    >>> from tempering.families import Beta, Bernoulli
    >>> coin, toss = Beta(1), Bernoulli(1)
    >>> posterior = coin.natural(1.0, 1.0) + toss.statistics(np.array([[1], [1], [0]])).sum(axis=0)
    >>> coin.standard(posterior)
    (array([3.]), array([2.]))
    """

    #: Axes of the natural parameters that belong to one distribution.
    axes: int | tuple[int, int] = -1

    def __init__(self, dimension: int):
        self.dimension = dimension

    #: Vectors of length D that the natural parameters are made of.
    blocks: int = 1

    @property
    def size(self) -> int:
        """Length of the natural parameter vector."""
        return self.blocks * self.dimension

    def standard(self, natural: ArrayLike) -> tuple[Array, ...]:
        """The usual parameters, from η: its blocks [..., D], where nothing else is said."""
        return tuple(np.split(np.asarray(natural, float), self.blocks, axis=-1))

    @abstractmethod
    def log_normalizer(self, natural: ArrayLike) -> Array:
        """a(η) = log ∫ h(β) exp{η · t(β)} dβ, shape [...]."""

    @abstractmethod
    def expected_statistics(self, natural: ArrayLike) -> Array:
        """E_η[t(β)] = ∇a(η), shape [..., size]."""

    @abstractmethod
    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Any:
        """Draw n values of β for each leading index; parameters with shape [n, ...]."""

    @abstractmethod
    def point(self, natural: ArrayLike) -> Any:
        """The mode of β in the likelihood's natural coordinates (it exists for any proper η)."""

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        """Whether η is a proper distribution, shape [...]; if it is positive, where nothing else
        is said."""
        return all_positive(np.asarray(natural, float))

    def divergence(
        self, posterior: ArrayLike, prior: ArrayLike, prior_weight: float = 1.0
    ) -> Array:
        """KL(q ‖ p); with ``prior_weight`` w the prior enters as p(β)^w (annealing the joint).

        (λ − w α) · E_λ[t(β)] − a(λ) + w a(α), which is the KL divergence for w = 1.
        """
        q, p = np.asarray(posterior, float), np.asarray(prior, float)
        linear = np.sum((q - prior_weight * p) * self.expected_statistics(q), axis=self.axes)
        return linear - self.log_normalizer(q) + prior_weight * self.log_normalizer(p)


class Likelihood(ABC):
    """A local conditional p(x | β), conjugate to :attr:`conjugate`.

    Data arrive as an array with one datum a row, ``[n, ...]``.

    Examples
    --------
    ∫ p(x | β)^s dx, here a sum over the two sides of a coin, is 1 at s = 1 and grows with T:

    >>> from tempering.families import Bernoulli
    >>> Bernoulli(1).log_power_integral([0.5], [1.0, 0.5]).round(3)
    array([0.   , 0.347])
    """

    #: The family that it is conjugate to, of which the constructor makes one of that dimension.
    family: type[Any]

    conjugate: Any

    def __init__(self, dimension: int):
        self.conjugate = self.family(dimension)

    #: Whether ∫ p(x | β)^s dx is the same for all β, which makes log C(s) of a model a closed form.
    power_integral_is_constant: bool = False

    @property
    def dimension(self) -> int:
        """Length of a datum, or number of its categories."""
        return self.conjugate.dimension

    @abstractmethod
    def statistics(self, x: Any) -> Array:
        """t(x), shape [n, size]: what a datum adds to the natural parameters."""

    def weighted_statistics(self, x: Any, weights: Array) -> Array:
        """Σ_i w_ik t(x_i), shape [K, size], of weights [n, K]."""
        return weights.T @ self.statistics(x)

    def log_base_measure(self, x: Any) -> Array:
        """log h(x), shape [n]. Tempering raises it to the power s too, so it is kept."""
        return np.zeros(np.shape(x)[0])

    @abstractmethod
    def log_likelihood(self, x: Any, parameters: Any) -> Array:
        """Return log p(x_i | β), shape [..., n], where [...] are the parameters' leading axes.

        Parameters of the K components of a mixture give [K, n], a row for each component.
        """

    @abstractmethod
    def log_power_integral(self, parameters: Any, power: ArrayLike) -> Array:
        """log ∫ p(x | β)^s dx; shape: the parameters' leading axes, then those of the power s."""

    @abstractmethod
    def log_expected_power_integral(self, natural: ArrayLike, power: ArrayLike) -> Array:
        """log E_η[ ∫ p(x | β)^s dx ]; shape: leading axes of η, then those of s."""

    def components_alone(self, natural: ArrayLike) -> tuple[Any, Array]:
        """The family of one component by itself, and its natural parameters for each, [..., size].

        They are those of :attr:`conjugate`, unless components share something.
        """
        return self.conjugate, np.asarray(natural, float)

    @abstractmethod
    def sample(self, parameters: Any, rng: np.random.Generator, n: int) -> Any:
        """n data from p(x | β) for one value of β."""

    def sample_like(self, parameters: Any, rng: np.random.Generator, like: Any) -> Any:
        """As many data as ``like`` has, with the inputs that p(x | β) is given of them."""
        return self.sample(parameters, rng, like.shape[0])

    def check(self, x: Any) -> None:
        """Raise ``ValueError`` naming what is wrong if x cannot be data of this likelihood."""
        check_table(x, self.dimension, type(self).__name__)

    def expected_log_likelihood(self, x: Any, expected: Array) -> Array:
        """E_q[log p(x_i | β_k)] for expected statistics [K, size], shape [n, K]."""
        return self.statistics(x) @ expected.T + self.log_base_measure(x)[:, None]


def all_positive(numbers: Array) -> NDArray[np.bool_]:
    """Whether all numbers of a row [..., size] are positive and finite."""
    return np.all(np.isfinite(numbers) & (numbers > 0), axis=-1)


# Shapes and logarithms that several families share.


def align(array: ArrayLike, other: Array, trailing: int = 1) -> Array:
    """Put ``other.ndim`` axes of length 1 before the last ``trailing`` axes of ``array``.

    Parameters [..., D] and inverse temperatures [*s] then combine to [..., *s, D] by broadcasting.
    """
    values = np.asarray(array, float)
    split = values.ndim - trailing
    return values.reshape(values.shape[:split] + (1,) * other.ndim + values.shape[split:])


def join(blocks: Sequence[Array], lengths: Sequence[int]) -> Array:
    """Blocks [..., length] one after the other; what is shorter, or has fewer axes, is spread."""
    leading = np.broadcast_shapes(*(block.shape[:-1] for block in blocks))
    parts = [np.broadcast_to(part, (*leading, n)) for part, n in zip(blocks, lengths, strict=True)]
    return np.concatenate(parts, axis=-1)


def join_blocks(linear: Array, matrix: Array, third: Array, fourth: Array) -> Array:
    """Four blocks [..., D], [..., D, D], [..., 1], [..., 1] one after the other."""
    d = matrix.shape[-1]
    flat = matrix.reshape(*matrix.shape[:-2], d * d)
    return join([linear, flat, third, fourth], [d, d * d, 1, 1])


def safe_log(array: ArrayLike) -> Array:
    """log x with log 0 = −∞, silently."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(array, float))


def log_sum(logs: ArrayLike) -> Array:
    """log Σ exp over the last axis."""
    return np.asarray(logsumexp(logs, axis=-1))


def weighted_logs(x: Any, logs: Array) -> Array:
    """Σ_v x_iv logs_v, [..., n], with 0 · (−∞) = 0: only data which use −∞ become impossible."""
    flat = logs.reshape(-1, logs.shape[-1])
    absent = np.isneginf(flat)
    totals = np.asarray(x @ np.where(absent, 0.0, flat).T).T
    if absent.any():
        totals[np.asarray(x @ absent.T.astype(float)).T > 0] = -np.inf
    return totals.reshape(*logs.shape[:-1], x.shape[0])


def squared_distances(x: ArrayLike, means: ArrayLike, weights: Array | None = None) -> Array:
    """Σ_d (x_nd − m_d)², or w_d times that, shape [..., n] for means and weights [..., D].

    A column at a time: differences lose no digits, and no array [..., n, D] is needed.
    """
    table, means = np.asarray(x, float), np.asarray(means, float)
    total = np.zeros((*means.shape[:-1], len(table)))
    for column in range(means.shape[-1]):
        squares = np.square(table[:, column] - means[..., column, None])
        total += squares if weights is None else weights[..., column, None] * squares
    return total


def stirling_error(x: ArrayLike) -> Array:
    """δ(x) = log Γ(x) − [ (x − ½) log x − x + ½ log 2π ], to double precision for x > 0."""
    values = np.asarray(x, float)
    large = np.maximum(values, 16.0)
    inverse = 1.0 / large**2
    series = 1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680)))
    small = np.minimum(values, 16.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = gammaln(small) - ((small - 0.5) * np.log(small) - small + 0.5 * np.log(2 * np.pi))
    return np.where(values >= 16.0, series / large, exact)


def log_rising(x: ArrayLike, power: ArrayLike) -> Array:
    """log Γ(x + s) − log Γ(x), without the cancellation of two large log-gammas when x ≫ s.

    Stirling's form leaves (x + s − ½) log(1 + s/x) + s log x − s + δ(x + s) − δ(x). It is +∞ where
    x + s <= 0: as a moment, that one does not exist.
    """
    base, s = np.broadcast_arrays(np.asarray(x, float), np.asarray(power, float))
    exists = base + s > 0
    s = np.where(exists, s, 0.0)
    total = base + s
    stirling = (total - 0.5) * np.log1p(s / base) + s * np.log(base) - s
    stirling += stirling_error(total) - stirling_error(base)
    value = np.where(base > 16.0, stirling, gammaln(total) - gammaln(base))
    return np.where(exists, value, np.inf)


def sample_log_gamma(shape: ArrayLike, rng: np.random.Generator, n: int) -> Array:
    """n draws of log g, g ~ Gamma(a, 1): near a = 0 most of g underflows, its logarithm does not.

    Gamma(a) = Gamma(a + 1) · U^{1/a}, in logarithms.
    """
    a = np.broadcast_to(np.asarray(shape, float), (n, *np.shape(shape)))
    return np.log(rng.standard_gamma(a + 1.0)) + np.log1p(-rng.random(a.shape)) / a
