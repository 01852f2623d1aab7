"""The gamma distribution, and the Poisson likelihood that it is conjugate to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from tempering.families.arrays import align, safe_log, sample_log_gamma, weighted_logs
from tempering.families.base import Array, ExponentialFamily, Likelihood
from tempering.families.checks import check_counts, check_table
from tempering.families.count_sums import log_expected_poisson_power_sum, log_poisson_power_sum


class GammaParameters(NamedTuple):
    """The usual parameters of :class:`Gamma`, each [..., D].

    Examples
    --------
    >>> from tempering.families import Gamma
    >>> Gamma(1).standard([2.0, 4.0])
    GammaParameters(shape=array([2.]), rate=array([4.]))
    """

    shape: Array
    rate: Array


class Gamma(ExponentialFamily):
    """Gamma(a_d, b_d) over D independent positive numbers λ_d, with mean a_d/b_d.

    t(λ) = (log λ, −λ), η = (shape a [D], rate b [D]), h(λ) = Π_d 1/λ_d.

    Parameters
    ----------
    dimension : int
        Number of positive numbers D.

    Examples
    --------
    >>> from tempering.families import Gamma
    >>> family = Gamma(1)
    >>> family.point(family.natural(shape=2.0, rate=4.0))
    array([0.5])
    """

    blocks = 2

    def natural(self, shape: ArrayLike, rate: ArrayLike) -> Array:
        """η from a and b, each [..., D] or broadcast to it."""
        a, b, _ = np.broadcast_arrays(shape, rate, np.empty(self.dimension))
        return np.concatenate([a, b], axis=-1).astype(float)

    def standard(self, natural: ArrayLike) -> GammaParameters:
        """a and b from η."""
        return GammaParameters(*np.split(np.asarray(natural, float), 2, axis=-1))

    def log_normalizer(self, natural: ArrayLike) -> Array:
        shape, rate = self.standard(natural)
        return (gammaln(shape) - shape * np.log(rate)).sum(-1)

    def expected_statistics(self, natural: ArrayLike) -> Array:
        shape, rate = self.standard(natural)
        return np.concatenate([digamma(shape) - np.log(rate), -shape / rate], axis=-1)

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        shape, rate = self.standard(natural)
        return np.exp(sample_log_gamma(shape, rng, n) - np.log(rate))

    def point(self, natural: ArrayLike) -> Array:
        shape, rate = self.standard(natural)
        return shape / rate


class Poisson(Likelihood):
    """p(x | λ) = Π_d λ_d^{x_d} e^{−λ_d} / x_d! for counts x [n, D].

    t(x) = (x, 1) with a 1 for each dimension, log h(x) = −Σ_d log x_d!, and
    ∫ p(x | λ)^s dx = Π_d Σ_x Pois(x | λ_d)^s, a series: see :mod:`tempering.families.count_sums`.

    Parameters
    ----------
    dimension : int
        Number of counts D of a datum.

    Examples
    --------
    >>> from tempering.families import Poisson
    >>> Poisson(1).log_likelihood([[0], [1]], [2.0]).round(3)
    array([-2.   , -1.307])
    """

    conjugate: Gamma

    def __init__(self, dimension: int):
        self.conjugate = Gamma(dimension)

    def statistics(self, x: ArrayLike) -> Array:
        counts = np.asarray(x, float)
        return np.concatenate([counts, np.ones_like(counts)], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Array:
        return -gammaln(np.asarray(x, float) + 1.0).sum(-1)

    def log_likelihood(self, x: ArrayLike, parameters: ArrayLike) -> Array:
        rates = np.asarray(parameters, float)
        natural = np.concatenate([safe_log(rates), -rates], axis=-1)
        return weighted_logs(self.statistics(x), natural) + self.log_base_measure(x)

    def log_power_integral(self, parameters: ArrayLike, inverse_temperature: ArrayLike) -> Array:
        s = np.asarray(inverse_temperature, float)
        return log_poisson_power_sum(align(parameters, s), s[..., None]).sum(-1)

    def log_expected_power_integral(
        self, natural: ArrayLike, inverse_temperature: ArrayLike
    ) -> Array:
        s = np.asarray(inverse_temperature, float)
        shape, rate = (align(block, s) for block in self.conjugate.standard(natural))
        return log_expected_poisson_power_sum(shape, rate, s[..., None]).sum(-1)

    def sample(self, parameters: ArrayLike, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        return rng.poisson(np.asarray(parameters, float), size=(n, self.dimension))

    def check(self, x: ArrayLike) -> None:
        check_counts(check_table(x, self.dimension, "Poisson"), "Poisson")
