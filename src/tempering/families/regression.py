"""The multivariate normal-gamma distribution, and the linear regression conjugate to it."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from tempering.families.base import Array, join_blocks, sample_log_gamma
from tempering.families.checks import check_table
from tempering.families.normal_gamma import GammaPrecision, GaussianLikelihood, GaussianParameters
from tempering.families.normal_wishart import is_positive_definite, log_determinant_of


class MultivariateNormalGamma(GammaPrecision):
    """Coefficients w of length D, and the precision τ of the noise:

        τ ~ Gamma(shape a, rate b),   w | τ ~ N(m, (τK)^{−1}).

    t = (τw [D], −½τww' [D²], −τ/2, ½ log τ), η = (Km, K, 2b + m'Km, 2a); h = τ^{D/2 − 1}.

    Examples
    --------
    >>> from tempering.families import MultivariateNormalGamma
    >>> family = MultivariateNormalGamma(1)
    >>> family.natural(mean=[2.0], mean_precision=[[1.0]], shape=3.0, rate=3.0)
    array([ 2.,  1., 10.,  6.])
    >>> family.point([2.0, 1.0, 10.0, 6.0]).mean
    array([2.])
    """

    @property
    def size(self) -> int:
        return self.dimension + self.dimension**2 + 2

    def natural(
        self, mean: ArrayLike, mean_precision: ArrayLike, shape: ArrayLike, rate: ArrayLike
    ) -> Array:
        """η from m [..., D], K [..., D, D], and a and b, each [...]."""
        m, matrix = np.asarray(mean, float), np.asarray(mean_precision, float)
        linear = (matrix @ m[..., None])[..., 0]
        quadratic = 2 * np.asarray(rate, float) + (linear * m).sum(-1)
        degrees = 2 * np.asarray(shape, float)
        return join_blocks(linear, matrix, quadratic[..., None], degrees[..., None])

    def standard(self, natural: ArrayLike) -> tuple[Array, ...]:
        """m [..., D], K [..., D, D], and a and b, each [...], from η."""
        eta, d = np.asarray(natural, float), self.dimension
        matrix = eta[..., d:-2].reshape(*eta.shape[:-1], d, d)
        matrix = (matrix + np.swapaxes(matrix, -1, -2)) / 2
        mean = np.asarray(np.linalg.solve(matrix, eta[..., :d, None])[..., 0], float)
        rate = (eta[..., -2] - (eta[..., :d] * mean).sum(-1)) / 2
        return mean, matrix, eta[..., -1] / 2, rate

    def log_normalizer(self, natural: ArrayLike) -> Array:
        _, matrix, shape, rate = self.standard(natural)
        normal = self.dimension * np.log(2 * np.pi) - log_determinant_of(np.linalg.cholesky(matrix))
        return gammaln(shape) - shape * np.log(rate) + normal / 2

    def expected_statistics(self, natural: ArrayLike) -> Array:
        mean, matrix, shape, rate = self.standard(natural)
        precision = (shape / rate)[..., None]
        squares = np.asarray(np.linalg.inv(matrix), float)
        squares += precision[..., None] * mean[..., :, None] * mean[..., None, :]
        log_precision = (digamma(shape) - np.log(rate))[..., None]
        return join_blocks(precision * mean, -0.5 * squares, -0.5 * precision, 0.5 * log_precision)

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> GaussianParameters:
        mean, matrix, shape, rate = self.standard(natural)
        precision = np.exp(sample_log_gamma(shape, rng, n) - np.log(rate))
        root = np.swapaxes(np.linalg.cholesky(matrix), -1, -2)
        noise = np.linalg.solve(root, rng.standard_normal((*precision.shape, self.dimension, 1)))
        return GaussianParameters(mean + noise[..., 0] / np.sqrt(precision)[..., None], precision)

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        eta, d = np.asarray(natural, float), self.dimension
        finite = np.asarray(np.isfinite(eta).all(-1))
        # An improper row is replaced by a proper one, so that the rest can be judged.
        harmless = self.natural(np.zeros(d), np.eye(d), 1.0, 1.0)
        eta = np.where(finite[..., None], eta, harmless)
        matrix = eta[..., d:-2].reshape(*eta.shape[:-1], d, d)
        matrix = (matrix + np.swapaxes(matrix, -1, -2)) / 2
        proper = finite & is_positive_definite(matrix)
        eta = np.where(proper[..., None], eta, harmless)
        mean, matrix, shape, rate = self.standard(eta)
        # By as much the rate may be wrong, of rounding in the mean; if it is more than a
        # thousandth, it is no rate.
        residual = eta[..., :d] - (matrix @ mean[..., None])[..., 0]
        wrong = np.abs(mean * residual).sum(-1)
        return proper & (shape > 0) & (rate > 0) & (wrong < 1e-3 * rate)


class LinearGaussian(GaussianLikelihood):
    """N(y | w'x, 1/τ) of rows (x [D], y), where x is given: t = (xy, vec(xx'), y², 1).

    log h = −½ log 2π, and ∫ p(y | x, w, τ)^s dy = (2π/τ)^{(1−s)/2} s^{−½}. An intercept is the
    coefficient of a column of ones.

    Examples
    --------
    >>> from tempering.families import GaussianParameters, LinearGaussian
    >>> line = GaussianParameters([1.0, 2.0], 1.0)
    >>> LinearGaussian(2).log_likelihood([[1.0, 3.0, 7.0], [1.0, 3.0, 8.0]], line).round(3)
    array([-0.919, -1.419])
    """

    family = MultivariateNormalGamma
    conjugate: MultivariateNormalGamma
    n_numbers = 1  # pyright: ignore[reportAssignmentType]

    def statistics(self, x: ArrayLike) -> Array:
        table = np.asarray(x, float)
        inputs, target = table[:, :-1], table[:, -1:]
        outer = inputs[:, :, None] * inputs[:, None, :]
        return join_blocks(inputs * target, outer, target**2, np.ones_like(target))

    def log_likelihood(self, x: ArrayLike, parameters: GaussianParameters) -> Array:
        table = np.asarray(x, float)
        mean, precision = (np.asarray(part, float) for part in parameters)
        squares = np.square(table[:, -1] - mean @ table[:, :-1].T)
        precision = precision[..., None]
        return 0.5 * (np.log(precision / (2 * np.pi)) - precision * squares)

    def sample(self, parameters: GaussianParameters, rng: np.random.Generator, n: int) -> Array:
        """n rows; x, of which the model says nothing, is standard normal."""
        inputs = rng.standard_normal((n, self.dimension))
        return self.sample_like(parameters, rng, np.column_stack([inputs, np.zeros(n)]))

    def sample_like(
        self, parameters: GaussianParameters, rng: np.random.Generator, like: Array
    ) -> Array:
        """Rows with the x of those given."""
        inputs, noise = like[:, :-1], rng.standard_normal(len(like))
        target = inputs @ np.asarray(parameters.mean) + noise / np.sqrt(parameters.precision)
        return np.column_stack([inputs, target])

    def check(self, x: ArrayLike) -> None:
        check_table(x, self.dimension + 1, "LinearGaussian")
