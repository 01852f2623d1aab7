"""Families for custom models: a vector with a covariance matrix, a precision matrix, and a
choice among K."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma

from tempering.families.base import Array, ExponentialFamily, join, log_sum
from tempering.families.normal_wishart import (
    is_positive_definite,
    log_determinant_of,
    sample_wishart,
    wishart_log_normalizer,
)


def _symmetric(flat: Array, dimension: int) -> Array:
    """Return matrices [..., D, D] from their entries [..., D²]."""
    matrix = flat.reshape(*flat.shape[:-1], dimension, dimension)
    return (matrix + np.swapaxes(matrix, -1, -2)) / 2


def _flat(matrix: Array) -> Array:
    """Return the entries [..., D²] of matrices [..., D, D]."""
    return matrix.reshape(*matrix.shape[:-2], -1)


class MultivariateNormal(ExponentialFamily):
    """N(m, P^{−1}) over a vector μ of length D, with a precision matrix P.

    t(μ) = (μ, −½ μμ'), η = (Pm [D], P [D²]), h(μ) = 1. A datum x = Aμ + noise of the precision Λ
    adds (A'Λx, A'ΛA) to η.

    Examples
    --------
    >>> from tempering.families import MultivariateNormal
    >>> family = MultivariateNormal(2)
    >>> family.natural([1.0, 2.0], [[2.0, 0.0], [0.0, 0.5]])
    array([0.5, 4. , 0.5, 0. , 0. , 2. ])
    """

    @property
    def size(self) -> int:
        return self.dimension + self.dimension**2

    def natural(self, mean: ArrayLike, covariance: ArrayLike) -> Array:
        """η from m [..., D] and the covariance matrix [..., D, D]."""
        precision = np.linalg.inv(np.asarray(covariance, float))
        linear = (precision @ np.asarray(mean, float)[..., None])[..., 0]
        return join([linear, _flat(precision)], [self.dimension, self.dimension**2])

    def standard(self, natural: ArrayLike) -> tuple[Array, Array]:
        """m [..., D] and the covariance matrix [..., D, D] from η."""
        linear, precision = self._parts(natural)
        covariance = np.asarray(np.linalg.inv(precision), float)
        return (covariance @ linear[..., None])[..., 0], covariance

    def log_normalizer(self, natural: ArrayLike) -> Array:
        linear, precision = self._parts(natural)
        factor = np.linalg.cholesky(precision)
        whitened = np.linalg.solve(factor, linear[..., None])[..., 0]
        constant = self.dimension * np.log(2 * np.pi) - log_determinant_of(factor)
        return 0.5 * (np.square(whitened).sum(-1) + constant)

    def expected_statistics(self, natural: ArrayLike) -> Array:
        mean, covariance = self.standard(natural)
        second = covariance + mean[..., :, None] * mean[..., None, :]
        return np.concatenate([mean, -0.5 * _flat(second)], axis=-1)

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        mean, covariance = self.standard(natural)
        noise = rng.standard_normal((n, *mean.shape, 1))
        return mean + (np.linalg.cholesky(covariance) @ noise)[..., 0]

    def point(self, natural: ArrayLike) -> Array:
        return self.standard(natural)[0]

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        eta = np.asarray(natural, float)
        finite = np.all(np.isfinite(eta), axis=-1)
        _, precision = self._parts(np.where(finite[..., None], eta, 0.0))
        return finite & is_positive_definite(precision)

    def _parts(self, natural: ArrayLike) -> tuple[Array, Array]:
        eta = np.asarray(natural, float)
        return eta[..., : self.dimension], _symmetric(eta[..., self.dimension :], self.dimension)


class Wishart(ExponentialFamily):
    """Wishart(ν, Ψ^{−1}) over a precision matrix Λ [D, D], with E[Λ] = ν Ψ^{−1} and ν > D − 1.

    t(Λ) = (−½Λ, ½ log|Λ|), η = (Ψ [D²], ν), h(Λ) = |Λ|^{−(D+1)/2}. A datum x ~ N(m, Λ^{−1}) of a
    known mean adds ((x − m)(x − m)', 1) to η.

    Examples
    --------
    >>> from tempering.families import Wishart
    >>> family = Wishart(2)
    >>> prior = family.natural(3.0, [[2.0, 0.0], [0.0, 2.0]])
    >>> family.point(prior)
    array([[1.5, 0. ],
           [0. , 1.5]])
    """

    @property
    def size(self) -> int:
        return self.dimension**2 + 1

    def natural(self, degrees_of_freedom: ArrayLike, scale: ArrayLike) -> Array:
        """η from ν [...] and Ψ [..., D, D]."""
        degrees = np.asarray(degrees_of_freedom, float)[..., None]
        return join([_flat(np.asarray(scale, float)), degrees], [self.dimension**2, 1])

    def standard(self, natural: ArrayLike) -> tuple[Array, Array]:
        """ν [...] and Ψ [..., D, D] from η."""
        eta = np.asarray(natural, float)
        return eta[..., -1], _symmetric(eta[..., :-1], self.dimension)

    def log_normalizer(self, natural: ArrayLike) -> Array:
        return wishart_log_normalizer(*self.standard(natural))

    def expected_statistics(self, natural: ArrayLike) -> Array:
        degrees, scale = self.standard(natural)
        half_degrees = (degrees[..., None] - np.arange(self.dimension)) / 2
        log_determinant = (digamma(half_degrees) + np.log(2)).sum(-1)
        log_determinant = log_determinant - log_determinant_of(np.linalg.cholesky(scale))
        precision = _flat(self.point(natural))
        return np.concatenate([-0.5 * precision, 0.5 * log_determinant[..., None]], axis=-1)

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        degrees, scale = self.standard(natural)
        return sample_wishart(degrees, scale, rng, (n, *degrees.shape), 1)[0]

    def point(self, natural: ArrayLike) -> Array:
        degrees, scale = self.standard(natural)
        return degrees[..., None, None] * np.linalg.inv(scale)

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        eta = np.asarray(natural, float)
        finite = np.all(np.isfinite(eta), axis=-1)
        degrees, scale = self.standard(np.where(finite[..., None], eta, 0.0))
        return finite & is_positive_definite(scale) & (degrees > self.dimension - 1)


class Choice(ExponentialFamily):
    """A global variable with one of K values, such as the cluster of a column.

    t is the indicator of the value, η [K] its log probabilities up to a constant, h = 1.

    Examples
    --------
    >>> from tempering.families import Choice
    >>> family = Choice(2)
    >>> family.expected_statistics(family.natural([0.2, 0.8]))
    array([0.2, 0.8])
    """

    def natural(self, probabilities: ArrayLike) -> Array:
        """η from probabilities [..., K]."""
        return np.log(np.asarray(probabilities, float))

    def standard(self, natural: ArrayLike) -> tuple[Array]:
        """The probabilities [..., K] from η."""
        return (self.expected_statistics(natural),)

    def log_normalizer(self, natural: ArrayLike) -> Array:
        return log_sum(natural)

    def expected_statistics(self, natural: ArrayLike) -> Array:
        eta = np.asarray(natural, float)
        return np.exp(eta - log_sum(eta)[..., None])

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        """Draws as indicators, [n, ..., K]."""
        eta = np.asarray(natural, float)
        drawn = (eta + rng.gumbel(size=(n, *eta.shape))).argmax(axis=-1)
        return np.eye(self.dimension)[drawn]

    def point(self, natural: ArrayLike) -> Array:
        return np.eye(self.dimension)[np.asarray(natural, float).argmax(axis=-1)]

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        return np.all(np.isfinite(np.asarray(natural, float)), axis=-1)
