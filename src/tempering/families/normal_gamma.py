"""Normal-gamma distributions, and the Gaussians whose precision is diagonal or a number."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from tempering.families.base import (
    Array,
    ExponentialFamily,
    Likelihood,
    align,
    all_positive,
    join,
    log_rising,
    sample_log_gamma,
    squared_distances,
)


class GaussianParameters(NamedTuple):
    """A Gaussian: mean [..., D] and precision.

    The precision is [...] if spherical, [..., D] if diagonal and [..., D, D] if full.
    """

    mean: Array
    precision: Array


class GammaPrecision(ExponentialFamily):
    """What families of a mean and of precisions that are gamma distributed share."""

    def point(self, natural: ArrayLike) -> GaussianParameters:
        mean, _, shape, rate = self.standard(natural)
        return GaussianParameters(mean, shape / rate)

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, *positive = self.standard(natural)
        each = [part if part.ndim == mean.ndim else part[..., None] for part in positive]
        return np.isfinite(mean).all(-1) & all_positive(np.concatenate(each, axis=-1))


class NormalGamma(GammaPrecision):
    """Mean μ_d and precision τ_d of D independent dimensions, in each

        τ ~ Gamma(shape a, rate b),   μ | τ ~ N(m, 1/(κτ)).

    t = (τμ, −τ/2, −τμ²/2, ½ log τ), η = (κm, 2b + κm², κ, 2a), four blocks [D]; h = Π_d τ_d^{−½}.
    The rate is the difference of two blocks: centre data whose mean is many standard deviations.

    Examples
    --------
    >>> from tempering.families import NormalGamma
    >>> family = NormalGamma(1)
    >>> family.natural(mean=2.0, mean_precision=1.0, shape=3.0, rate=3.0)
    array([ 2., 10.,  1.,  6.])
    >>> family.point([2.0, 10.0, 1.0, 6.0])
    GaussianParameters(mean=array([2.]), precision=array([1.]))
    """

    blocks = 4

    def natural(
        self, mean: ArrayLike, mean_precision: ArrayLike, shape: ArrayLike, rate: ArrayLike
    ) -> Array:
        """η from m, κ, a and b, each [..., D] or broadcast to it."""
        values = (np.asarray(value, float) for value in (mean, mean_precision, shape, rate))
        m, kappa, a, b, _ = np.broadcast_arrays(*values, np.empty(self.dimension))
        return np.concatenate([kappa * m, 2 * b + kappa * m**2, kappa, 2 * a], axis=-1)

    def standard(self, natural: ArrayLike) -> tuple[Array, ...]:
        """m, κ, a and b from η, each [..., D]."""
        linear, quadratic, kappa, degrees = np.split(np.asarray(natural, float), 4, axis=-1)
        mean = linear / kappa
        return mean, kappa, degrees / 2, (quadratic - linear * mean) / 2

    def log_normalizer(self, natural: ArrayLike) -> Array:
        _, kappa, shape, rate = self.standard(natural)
        logs = gammaln(shape) - shape * np.log(rate) + 0.5 * np.log(2 * np.pi / kappa)
        return logs.sum(-1)

    def expected_statistics(self, natural: ArrayLike) -> Array:
        mean, kappa, shape, rate = self.standard(natural)
        precision = shape / rate
        blocks = [
            precision * mean,
            -0.5 * precision,
            -0.5 * (1 / kappa + precision * mean**2),
            0.5 * (digamma(shape) - np.log(rate)),
        ]
        return np.concatenate(blocks, axis=-1)

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> GaussianParameters:
        mean, kappa, shape, rate = self.standard(natural)
        precision = np.exp(sample_log_gamma(shape, rng, n) - np.log(rate))
        noise = rng.standard_normal(precision.shape)
        return GaussianParameters(mean + noise / np.sqrt(kappa * precision), precision)


class GaussianLikelihood(Likelihood):
    """What Gaussians of unknown precision share; t(x) holds squares, so log h(x) is a constant.

    Integrals are those of one precision, gamma distributed, for all numbers of a datum.
    """

    @property
    def n_numbers(self) -> int:
        """Of a datum that are Gaussian."""
        return self.dimension

    def log_base_measure(self, x: ArrayLike) -> Array:
        return np.full(len(np.asarray(x)), -self.n_numbers / 2 * np.log(2 * np.pi))

    def log_power_integral(self, parameters: GaussianParameters, power: ArrayLike) -> Array:
        s = np.asarray(power, float)
        log_variance = align(np.log(2 * np.pi / np.asarray(parameters.precision, float)), s, 0)
        return self.n_numbers / 2 * ((1 - s) * log_variance - np.log(s))

    def log_expected_power_integral(self, natural: ArrayLike, power: ArrayLike) -> Array:
        """From E[τ^{−p}] = b^p Γ(a − p)/Γ(a), p = n(1−s)/2 of n numbers; +∞ where a <= p."""
        s = np.asarray(power, float)
        _, _, shape, rate = self.conjugate.standard(natural)
        order = self.n_numbers * (1 - s) / 2
        moment = log_rising(align(shape, s, 0), -order) + order * align(
            np.log(2 * np.pi * rate), s, 0
        )
        return moment - self.n_numbers / 2 * np.log(s)

    def sample(self, parameters: GaussianParameters, rng: np.random.Generator, n: int) -> Array:
        noise = rng.standard_normal((n, self.dimension))
        return np.asarray(parameters.mean) + noise / np.sqrt(parameters.precision)


class DiagonalGaussian(GaussianLikelihood):
    """N(x | μ, diag(τ)^{−1}): t(x) = (x, x², 1, 1) in blocks [D], log h(x) = −(D/2) log 2π.

    ∫ p(x | μ, τ)^s dx = Π_d (2π/τ_d)^{(1−s)/2} s^{−½}.

    Examples
    --------
    >>> from tempering.families import DiagonalGaussian, GaussianParameters
    >>> standard = GaussianParameters([0.0], [1.0])
    >>> DiagonalGaussian(1).log_likelihood([[0.0], [1.0]], standard).round(3)
    array([-0.919, -1.419])

    Parameters of K components give log densities of shape [K, n]:

    >>> two = GaussianParameters([[0.0], [5.0]], [[1.0], [1.0]])
    >>> DiagonalGaussian(1).log_likelihood([[0.0], [1.0], [2.0]], two).shape
    (2, 3)
    """

    family = NormalGamma
    conjugate: NormalGamma

    def statistics(self, x: ArrayLike) -> Array:
        table = np.asarray(x, float)
        ones = np.ones_like(table)
        return np.concatenate([table, table**2, ones, ones], axis=-1)

    # Half of t(x) is ones. These two do without it: to build it takes longer than the products.
    # Nor do they go along short rows, as ``sum(axis=0)`` or adding a row to each would.

    def weighted_statistics(self, x: ArrayLike, weights: Array) -> Array:
        table = np.asarray(x, float)
        counts = np.repeat((np.ones(len(table)) @ weights)[:, None], 2 * self.dimension, axis=1)
        return np.concatenate([weights.T @ table, weights.T @ table**2, counts], axis=-1)

    def expected_log_likelihood(self, x: ArrayLike, expected: Array) -> Array:
        table, d = np.asarray(x, float), self.dimension
        linear, quadratic = (
            np.ascontiguousarray(expected[:, block].T) for block in (slice(d), slice(d, 2 * d))
        )
        constant = expected[:, 2 * d :].sum(axis=1) - d / 2 * np.log(2 * np.pi)
        total = np.tile(constant, (len(table), 1))
        total += table @ linear
        total += table**2 @ quadratic
        return total

    def log_likelihood(self, x: ArrayLike, parameters: GaussianParameters) -> Array:
        mean, precision = np.broadcast_arrays(*(np.asarray(part, float) for part in parameters))
        squares = squared_distances(x, mean, precision)
        log_determinant = np.log(precision).sum(-1, keepdims=True)
        return 0.5 * (log_determinant - squares - self.dimension * np.log(2 * np.pi))

    def log_power_integral(self, parameters: GaussianParameters, power: ArrayLike) -> Array:
        s = np.asarray(power, float)
        log_determinant = np.log(np.asarray(parameters.precision, float)).sum(-1)
        heat = (1 - s) / 2 * (self.dimension * np.log(2 * np.pi) - align(log_determinant, s, 0))
        return heat - self.dimension / 2 * np.log(s)

    def log_expected_power_integral(self, natural: ArrayLike, power: ArrayLike) -> Array:
        """From E[τ^{−p}] = b^p Γ(a − p)/Γ(a), p = (1−s)/2; +∞ where a <= p in any dimension."""
        s = np.asarray(power, float)
        _, _, shape, rate = (align(block, s) for block in self.conjugate.standard(natural))
        order = (1 - s[..., None]) / 2
        moment = order * np.log(2 * np.pi * rate) + log_rising(shape, -order)
        return (moment - 0.5 * np.log(s[..., None])).sum(-1)


class SphericalNormalGamma(GammaPrecision):
    """Mean μ of length D, and one precision τ for all of it:

        τ ~ Gamma(shape a, rate b),   μ | τ ~ N(m, 1/(κτ)·1).

    t = (τμ [D], −τ/2, −τ|μ|²/2, (D/2) log τ), η = (κm [D], 2b + κ|m|², κ, 2a/D); h = τ^{D/2 − 1}.
    With D = 1 it is :class:`NormalGamma`.

    Examples
    --------
    >>> from tempering.families import SphericalNormalGamma
    >>> family = SphericalNormalGamma(2)
    >>> family.natural(mean=[2.0, 0.0], mean_precision=1.0, shape=3.0, rate=3.0)
    array([ 2.,  0., 10.,  1.,  3.])
    >>> float(family.point([2.0, 0.0, 10.0, 1.0, 3.0]).precision)
    1.0
    """

    @property
    def size(self) -> int:
        return self.dimension + 3

    def natural(
        self, mean: ArrayLike, mean_precision: ArrayLike, shape: ArrayLike, rate: ArrayLike
    ) -> Array:
        """η from m [..., D], and κ, a and b, each [...]."""
        m, kappa = np.asarray(mean, float), np.asarray(mean_precision, float)
        square = np.square(m).sum(-1)
        last = [2 * np.asarray(rate, float) + kappa * square, kappa]
        last.append(2 * np.asarray(shape, float) / self.dimension)
        numbers = np.stack(np.broadcast_arrays(*last), axis=-1)
        return join([kappa[..., None] * m, numbers], [self.dimension, 3])

    def standard(self, natural: ArrayLike) -> tuple[Array, ...]:
        """m [..., D], and κ, a and b, each [...], from η."""
        eta, d = np.asarray(natural, float), self.dimension
        quadratic, kappa, degrees = np.moveaxis(eta[..., d:], -1, 0)
        mean = eta[..., :d] / kappa[..., None]
        rate = (quadratic - (eta[..., :d] * mean).sum(-1)) / 2
        return mean, kappa, d * degrees / 2, rate

    def log_normalizer(self, natural: ArrayLike) -> Array:
        _, kappa, shape, rate = self.standard(natural)
        gamma = gammaln(shape) - shape * np.log(rate)
        return gamma + self.dimension / 2 * np.log(2 * np.pi / kappa)

    def expected_statistics(self, natural: ArrayLike) -> Array:
        mean, kappa, shape, rate = self.standard(natural)
        precision = shape / rate
        square = self.dimension / kappa + precision * np.square(mean).sum(-1)
        log_precision = digamma(shape) - np.log(rate)
        numbers = [-0.5 * precision, -0.5 * square, self.dimension / 2 * log_precision]
        return np.concatenate([precision[..., None] * mean, np.stack(numbers, axis=-1)], axis=-1)

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> GaussianParameters:
        mean, kappa, shape, rate = self.standard(natural)
        precision = np.exp(sample_log_gamma(shape, rng, n) - np.log(rate))
        noise = rng.standard_normal((*precision.shape, self.dimension))
        means = mean + noise / np.sqrt(kappa * precision)[..., None]
        return GaussianParameters(means, precision)


class SphericalGaussian(GaussianLikelihood):
    """N(x | μ, 1/τ·1): t(x) = (x [D], |x|², 1, 1), log h(x) = −(D/2) log 2π.

    ∫ p(x | μ, τ)^s dx = (2π/τ)^{D(1−s)/2} s^{−D/2}.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering.families import GaussianParameters, SphericalGaussian
    >>> standard = GaussianParameters(np.zeros(2), np.array(1.0))
    >>> SphericalGaussian(2).log_likelihood([[0.0, 0.0]], standard).round(3)
    array([-1.838])
    """

    family = SphericalNormalGamma
    conjugate: SphericalNormalGamma

    def statistics(self, x: ArrayLike) -> Array:
        table = np.asarray(x, float)
        squares = np.einsum("nd,nd->n", table, table)[:, None]
        return np.concatenate([table, squares, np.ones((len(table), 2))], axis=-1)

    def log_likelihood(self, x: ArrayLike, parameters: GaussianParameters) -> Array:
        mean, precision = (np.asarray(part, float) for part in parameters)
        squares = squared_distances(x, mean)
        constant = self.dimension * np.log(precision / (2 * np.pi))
        return 0.5 * (constant[..., None] - precision[..., None] * squares)
