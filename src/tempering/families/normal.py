"""A Gaussian mean with isotropic variance, and the Gaussian likelihood of known variance."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempering.families.base import (
    Array,
    ExponentialFamily,
    Likelihood,
    align,
    join,
    squared_distances,
)


class Normal(ExponentialFamily):
    """N(m, v·1) over a vector μ of length D, with one variance v for all of it.

    t(μ) = (μ, −½|μ|²), η = (m/v [D], 1/v), h(μ) = 1.

    Examples
    --------
    >>> from tempering.families import Normal
    >>> family = Normal(2)
    >>> family.natural([1.0, 2.0], 0.5)
    array([2., 4., 2.])
    >>> family.expected_statistics([2.0, 4.0, 2.0])
    array([ 1.,  2., -3.])
    """

    @property
    def size(self) -> int:
        return self.dimension + 1

    def natural(self, mean: ArrayLike, variance: ArrayLike) -> Array:
        """η from m [..., D] (or a number) and v [...]."""
        precision = 1.0 / np.asarray(variance, float)[..., None]
        return join([np.asarray(mean, float) * precision, precision], [self.dimension, 1])

    def standard(self, natural: ArrayLike) -> tuple[Array, Array]:
        """m [..., D] and v [...] from η."""
        eta = np.asarray(natural, float)
        return eta[..., :-1] / eta[..., -1:], 1.0 / eta[..., -1]

    def log_normalizer(self, natural: ArrayLike) -> Array:
        mean, variance = self.standard(natural)
        quadratic = np.square(mean).sum(-1) / (2 * variance)
        return quadratic + self.dimension / 2 * np.log(2 * np.pi * variance)

    def expected_statistics(self, natural: ArrayLike) -> Array:
        mean, variance = self.standard(natural)
        square = np.square(mean).sum(-1) + self.dimension * variance
        return np.concatenate([mean, -0.5 * square[..., None]], axis=-1)

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        mean, variance = self.standard(natural)
        return mean + np.sqrt(variance)[..., None] * rng.standard_normal((n, *mean.shape))

    def point(self, natural: ArrayLike) -> Array:
        return self.standard(natural)[0]

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        eta = np.asarray(natural, float)
        return np.all(np.isfinite(eta), axis=-1) & (eta[..., -1] > 0)


class IsotropicGaussian(Likelihood):
    """N(x | μ, σ²·1) with known variance σ²: the mean is all there is to learn.

    t(x) = (x/σ² [D], 1/σ²), log h(x) = −(D/2) log 2πσ² − |x|²/(2σ²).
    ∫ p(x | μ)^s dx = (2πσ²)^{D(1−s)/2} s^{−D/2} does not depend on μ.

    Parameters
    ----------
    dimension : int
        Number of columns D.
    variance : float
        The known variance σ² (not the standard deviation).

    Examples
    --------
    >>> from tempering.families import IsotropicGaussian
    >>> likelihood = IsotropicGaussian(2, variance=0.5)
    >>> likelihood.log_likelihood([[1.0, 2.0]], [[1.0, 2.0]]).round(3)
    array([[-1.145]])
    """

    conjugate: Normal
    power_integral_is_constant = True

    def __init__(self, dimension: int, variance: float):
        if not (np.isfinite(variance) and variance > 0):
            raise ValueError(f"variance must be a positive number; got {variance}.")
        self.conjugate = Normal(dimension)
        self.variance = float(variance)

    def statistics(self, x: ArrayLike) -> Array:
        table = np.asarray(x, float) / self.variance
        return np.concatenate([table, np.full((len(table), 1), 1.0 / self.variance)], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Array:
        squares = np.square(np.asarray(x, float)).sum(-1)
        return self._log_peak - squares / (2 * self.variance)

    def log_likelihood(self, x: ArrayLike, parameters: ArrayLike) -> Array:
        return self._log_peak - squared_distances(x, parameters) / (2 * self.variance)

    def log_power_integral(self, parameters: ArrayLike, power: ArrayLike) -> Array:
        s = np.asarray(power, float)
        integral = -(1 - s) * self._log_peak - self.dimension / 2 * np.log(s)
        leading = align(np.zeros(np.shape(parameters)[:-1]), s, trailing=0)
        return leading + integral

    def log_expected_power_integral(self, natural: ArrayLike, power: ArrayLike) -> Array:
        return self.log_power_integral(natural, power)

    def sample(self, parameters: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        noise = rng.standard_normal((n, self.dimension))
        return np.asarray(parameters, float) + np.sqrt(self.variance) * noise

    @property
    def _log_peak(self) -> float:
        """log p(μ | μ) = −(D/2) log 2πσ²."""
        return -self.dimension / 2 * float(np.log(2 * np.pi * self.variance))
