"""What every exponential family of the package provides, and every likelihood conjugate to one:

    p(β | η) = h(β) exp{ η · t(β) − a(η) },        log p(x | β) = log h(x) + t(x) · t(β).

Both sides share one vector space, so a posterior is the prior plus summed statistics. Natural
parameters are plain arrays ``[..., size]``; leading axes (components, samples) broadcast.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    >>> coin.standard(posterior).successes, coin.standard(posterior).failures
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

    conjugate: ExponentialFamily

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
        """log p(x_i | β), shape [..., n] for parameters with leading axes [...]."""

    @abstractmethod
    def log_power_integral(self, parameters: Any, inverse_temperature: ArrayLike) -> Array:
        """log ∫ p(x | β)^s dx; shape: the parameters' leading axes, then those of s."""

    @abstractmethod
    def log_expected_power_integral(
        self, natural: ArrayLike, inverse_temperature: ArrayLike
    ) -> Array:
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
