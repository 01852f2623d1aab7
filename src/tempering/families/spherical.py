"""The normal-gamma distribution of one precision for all dimensions, and its Gaussian."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from tempering.families.arrays import align, log_rising, sample_log_gamma
from tempering.families.base import Array, ExponentialFamily, Likelihood
from tempering.families.checks import check_table
from tempering.families.normal_gamma import GaussianParameters, NormalGammaParameters


class SphericalNormalGamma(ExponentialFamily):
    """Mean μ of length D, and one precision τ for all of it:

        τ ~ Gamma(shape a, rate b),   μ | τ ~ N(m, 1/(κτ)·1).

    t = (τμ [D], −τ/2, −τ|μ|²/2, (D/2) log τ), η = (κm [D], 2b + κ|m|², κ, 2a/D); h = τ^{D/2 − 1}.
    With D = 1 it is :class:`NormalGamma`.

    Parameters
    ----------
    dimension : int
        Length D of the mean.

    Examples
    --------
    >>> from tempering.families import SphericalNormalGamma
    >>> family = SphericalNormalGamma(2)
    >>> family.natural(mean=[2.0, 0.0], mean_precision=1.0, shape=3.0, rate=3.0)
    array([ 2.,  0., 10.,  1.,  3.])
    >>> float(family.point([2.0, 0.0, 10.0, 1.0, 3.0]).precision)
    1.0
    """

    def __init__(self, dimension: int):
        self.dimension = dimension

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
        linear = kappa[..., None] * m
        leading = np.broadcast_shapes(linear.shape[:-1], numbers.shape[:-1])
        return np.concatenate(
            [
                np.broadcast_to(linear, (*leading, self.dimension)),
                np.broadcast_to(numbers, (*leading, 3)),
            ],
            axis=-1,
        )

    def standard(self, natural: ArrayLike) -> NormalGammaParameters:
        """m [..., D], and κ, a and b, each [...], from η."""
        eta, d = np.asarray(natural, float), self.dimension
        quadratic, kappa, degrees = np.moveaxis(eta[..., d:], -1, 0)
        mean = eta[..., :d] / kappa[..., None]
        rate = (quadratic - (eta[..., :d] * mean).sum(-1)) / 2
        return NormalGammaParameters(mean, kappa, d * degrees / 2, rate)

    def log_normalizer(self, natural: ArrayLike) -> Array:
        _, kappa, shape, rate = self.standard(natural)
        gamma = gammaln(shape) - shape * np.log(rate)
        return gamma + self.dimension / 2 * np.log(2 * np.pi / kappa)

    def expected_statistics(self, natural: ArrayLike) -> Array:
        mean, kappa, shape, rate = self.standard(natural)
        precision = shape / rate
        square = self.dimension / kappa + precision * np.square(mean).sum(-1)
        log_precision = digamma(shape) - np.log(rate)
        return self._join(mean, precision, square, log_precision)

    def parameter_statistics(self, parameters: GaussianParameters) -> Array:
        mean, precision = (np.asarray(part, float) for part in parameters)
        square = precision * np.square(mean).sum(-1)
        return self._join(mean, precision, square, np.log(precision))

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> GaussianParameters:
        mean, kappa, shape, rate = self.standard(natural)
        precision = np.exp(sample_log_gamma(shape, rng, n) - np.log(rate))
        noise = rng.standard_normal((*precision.shape, self.dimension))
        means = mean + noise / np.sqrt(kappa * precision)[..., None]
        return GaussianParameters(means, precision)

    def point(self, natural: ArrayLike) -> GaussianParameters:
        mean, _, shape, rate = self.standard(natural)
        return GaussianParameters(mean, shape / rate)

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, *positive = self.standard(natural)
        proper = np.isfinite(mean).all(-1)
        for number in positive:
            proper &= np.isfinite(number) & (number > 0)
        return np.asarray(proper)

    def _join(self, mean: Array, precision: Array, square: Array, log_precision: Array) -> Array:
        """t from μ (or m), τ, τ|μ|² and log τ, or their expectations."""
        numbers = [-0.5 * precision, -0.5 * square, self.dimension / 2 * log_precision]
        return np.concatenate([precision[..., None] * mean, np.stack(numbers, axis=-1)], axis=-1)


class SphericalGaussian(Likelihood):
    """N(x | μ, 1/τ·1): t(x) = (x [D], |x|², 1, 1), log h(x) = −(D/2) log 2π.

    ∫ p(x | μ, τ)^s dx = (2π/τ)^{D(1−s)/2} s^{−D/2}.

    Parameters
    ----------
    dimension : int
        Number of columns D.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering.families import GaussianParameters, SphericalGaussian
    >>> standard = GaussianParameters(np.zeros(2), np.array(1.0))
    >>> SphericalGaussian(2).log_likelihood([[0.0, 0.0]], standard).round(3)
    array([-1.838])
    """

    conjugate: SphericalNormalGamma

    def __init__(self, dimension: int):
        self.conjugate = SphericalNormalGamma(dimension)

    @property
    def dimension(self) -> int:
        return self.conjugate.dimension

    def statistics(self, x: ArrayLike) -> Array:
        table = np.asarray(x, float)
        squares = np.einsum("nd,nd->n", table, table)[:, None]
        return np.concatenate([table, squares, np.ones((len(table), 2))], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Array:
        return np.full(len(np.asarray(x)), -self.dimension / 2 * np.log(2 * np.pi))

    def log_likelihood(self, x: ArrayLike, parameters: GaussianParameters) -> Array:
        table = np.asarray(x, float)
        mean, precision = (np.asarray(part, float) for part in parameters)
        squares = np.zeros((*mean.shape[:-1], len(table)))
        # A column at a time: differences lose no digits, and no array [..., n, D] is needed.
        for column in range(self.dimension):
            squares += np.square(table[:, column] - mean[..., column, None])
        constant = self.dimension * np.log(precision / (2 * np.pi))
        return 0.5 * (constant[..., None] - precision[..., None] * squares)

    def log_power_integral(
        self, parameters: GaussianParameters, inverse_temperature: ArrayLike
    ) -> Array:
        s = np.asarray(inverse_temperature, float)
        log_variance = align(np.log(2 * np.pi / np.asarray(parameters.precision, float)), s, 0)
        return self.dimension / 2 * ((1 - s) * log_variance - np.log(s))

    def log_expected_power_integral(
        self, natural: ArrayLike, inverse_temperature: ArrayLike
    ) -> Array:
        """From E[τ^{−p}] = b^p Γ(a − p)/Γ(a), p = D(1−s)/2; +∞ where a <= p."""
        s = np.asarray(inverse_temperature, float)
        _, _, shape, rate = self.conjugate.standard(natural)
        power = self.dimension * (1 - s) / 2
        moment = log_rising(align(shape, s, 0), -power) + power * align(
            np.log(2 * np.pi * rate), s, 0
        )
        return moment - self.dimension / 2 * np.log(s)

    def sample(self, parameters: GaussianParameters, rng: np.random.Generator, n: int) -> Array:
        noise = rng.standard_normal((n, self.dimension))
        return np.asarray(parameters.mean) + noise / np.sqrt(parameters.precision)

    def check(self, x: ArrayLike) -> None:
        check_table(x, self.dimension, "SphericalGaussian")
