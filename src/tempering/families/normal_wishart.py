"""Normal-Wishart distributions, and the Gaussians with a full precision matrix: each with its own,
or one for all components."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from tempering.families.base import Array, ExponentialFamily, align, join_blocks, log_rising
from tempering.families.normal_gamma import GaussianLikelihood, GaussianParameters


class NormalWishart(ExponentialFamily):
    """Mean μ and precision matrix Λ of a Gaussian:

        Λ ~ Wishart(ν, Ψ^{−1}) with E[Λ] = ν Ψ^{−1},   μ | Λ ~ N(m, (κΛ)^{−1}),   ν > D − 1.

    It is the same distribution as the normal-inverse-Wishart, NIW(m, κ, ν, Ψ), of μ and the
    covariance Λ^{−1}. In natural parameters

        t = (Λμ, −½Λ, −½ μ'Λμ, ½ log|Λ|),   η = (κm [D], Ψ + κmm' [D²], κ, ν),   h = |Λ|^{−D/2}.

    Examples
    --------
    >>> from tempering.families import NormalWishart
    >>> family = NormalWishart(1)
    >>> family.natural(mean=[1.0], mean_precision=2.0, degrees_of_freedom=3.0, scale=[[4.0]])
    array([2., 6., 2., 3.])
    """

    @property
    def size(self) -> int:
        return self.dimension + self.dimension**2 + 2

    def natural(
        self,
        mean: ArrayLike,
        mean_precision: ArrayLike,
        degrees_of_freedom: ArrayLike,
        scale: ArrayLike,
    ) -> Array:
        """η from m [..., D], κ [...], ν [...] and Ψ [..., D, D]."""
        m, psi = np.asarray(mean, float), np.asarray(scale, float)
        kappa = np.asarray(mean_precision, float)[..., None]
        degrees = np.asarray(degrees_of_freedom, float)[..., None]
        outer = kappa[..., None] * m[..., :, None] * m[..., None, :]
        return join_blocks(kappa * m, psi + outer, kappa, degrees)

    def standard(self, natural: ArrayLike) -> tuple[Array, ...]:
        """m [..., D], κ [...], ν [...] and Ψ [..., D, D] from η."""
        eta, d = np.asarray(natural, float), self.dimension
        kappa = eta[..., -2]
        mean = eta[..., :d] / kappa[..., None]
        moment = eta[..., d:-2].reshape(*eta.shape[:-1], d, d)
        moment = (moment + np.swapaxes(moment, -1, -2)) / 2
        scale = moment - eta[..., :d, None] * mean[..., None, :]
        return mean, kappa, eta[..., -1], scale

    def log_normalizer(self, natural: ArrayLike) -> Array:
        _, kappa, degrees, scale = self.standard(natural)
        means = self.dimension / 2 * np.log(2 * np.pi / kappa)
        return wishart_log_normalizer(degrees, scale) + means

    def expected_statistics(self, natural: ArrayLike) -> Array:
        mean, kappa, degrees, scale = self.standard(natural)
        factor = np.linalg.cholesky(scale)
        precision = degrees[..., None, None] * np.linalg.inv(scale)
        linear = (precision @ mean[..., None])[..., 0]
        quadratic = self.dimension / kappa + (linear * mean).sum(-1)
        half_degrees = (degrees[..., None] - np.arange(self.dimension)) / 2
        log_determinant = (digamma(half_degrees) + np.log(2)).sum(-1) - log_determinant_of(factor)
        return join_blocks(
            linear, -0.5 * precision, -0.5 * quadratic[..., None], 0.5 * log_determinant[..., None]
        )

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> GaussianParameters:
        mean, kappa, degrees, scale = self.standard(natural)
        precision, noise = sample_wishart(degrees, scale, rng, (n, *mean.shape[:-1]), 1)
        return GaussianParameters(mean + noise[..., 0] / np.sqrt(kappa)[..., None], precision)

    def point(self, natural: ArrayLike) -> GaussianParameters:
        mean, _, degrees, scale = self.standard(natural)
        return GaussianParameters(mean, degrees[..., None, None] * np.linalg.inv(scale))

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        eta = np.asarray(natural, float)
        finite = np.isfinite(eta).all(-1) & (eta[..., -2] > 0)
        # An improper row is replaced by a proper one, so that the rest can be judged.
        harmless = self.natural(
            np.zeros(self.dimension), 1.0, self.dimension, np.eye(self.dimension)
        )
        *_, scale = self.standard(np.where(finite[..., None], eta, harmless))
        positive = is_positive_definite(scale)
        return finite & positive & (eta[..., -1] > self.dimension - 1)


class FullGaussian(GaussianLikelihood):
    """N(x | μ, Λ^{−1}): t(x) = (x, vec(xx'), 1, 1), log h(x) = −(D/2) log 2π.

    ∫ p(x | μ, Λ)^s dx = (2π)^{D(1−s)/2} |Λ|^{−(1−s)/2} s^{−D/2}.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering.families import FullGaussian, GaussianParameters
    >>> standard = GaussianParameters(np.zeros(2), np.eye(2))
    >>> FullGaussian(2).log_likelihood([[0.0, 0.0]], standard).round(3)
    array([-1.838])
    """

    family = NormalWishart
    conjugate: NormalWishart

    def statistics(self, x: ArrayLike) -> Array:
        table = np.asarray(x, float)
        outer = table[:, :, None] * table[:, None, :]
        counts = np.ones((len(table), 2))
        return np.concatenate([table, outer.reshape(len(table), -1), counts], axis=-1)

    # Half of t(x) is the other half of symmetric matrices. A mixture multiplies with one of them.

    def pack(self, x: Array) -> Array:
        """Return the distinct entries of t(x), [m, n], with m = D + D(D + 1)/2 + 1."""
        d = self.dimension
        packed = np.empty((d + d * (d + 1) // 2 + 1, len(x)))
        packed[:d] = x.T
        packed[-1] = 1.0
        first = d
        for i in range(d):
            np.multiply(packed[i], packed[i:d], out=packed[first : first + d - i])
            first += d - i
        return packed

    def pack_expected(self, expected: Array) -> Array:
        """Return W [K, m] with E_q[log p(x_i | β_k)] = (W @ pack(x))_ki."""
        d = self.dimension
        i, j = np.triu_indices(d)
        squares = expected[:, d:-2].reshape(-1, d, d)[:, i, j] * np.where(i == j, 1.0, 2.0)
        constant = expected[:, -2:].sum(axis=1, keepdims=True) - d / 2 * np.log(2 * np.pi)
        return np.concatenate([expected[:, :d], squares, constant], axis=1)

    def unpack(self, sums: Array) -> Array:
        """Return Σ_i w_ik t(x_i), [K, size], from w' @ pack(x)', [K, m]."""
        d = self.dimension
        i, j = np.triu_indices(d)
        squares = np.empty((len(sums), d, d))
        squares[:, i, j] = squares[:, j, i] = sums[:, d:-1]
        counts = sums[:, [-1, -1]]
        return np.concatenate([sums[:, :d], squares.reshape(len(sums), -1), counts], axis=1)

    def log_likelihood(self, x: ArrayLike, parameters: GaussianParameters) -> Array:
        mean, precision = (np.asarray(part, float) for part in parameters)
        factor = np.linalg.cholesky(precision)
        whitened = (np.asarray(x, float) - mean[..., None, :]) @ factor
        squares = np.einsum("...nd,...nd->...n", whitened, whitened)
        constant = log_determinant_of(factor) - self.dimension * np.log(2 * np.pi)
        return 0.5 * (constant[..., None] - squares)

    def log_power_integral(self, parameters: GaussianParameters, power: ArrayLike) -> Array:
        s = np.asarray(power, float)
        log_determinant = align(np.linalg.slogdet(parameters.precision)[1], s, 0)
        return self._log_integral((s - 1) / 2 * log_determinant, s)

    def log_expected_power_integral(self, natural: ArrayLike, power: ArrayLike) -> Array:
        """From E|Λ|^{−p} = |Ψ/2|^p Γ_D(ν/2 − p)/Γ_D(ν/2), p = (1−s)/2.

        It is +∞ where ν/2 − p <= (D − 1)/2: that moment does not exist.
        """
        s = np.asarray(power, float)
        family, natural = self.components_alone(natural)
        _, _, degrees, scale = family.standard(natural)
        order = (1 - s) / 2
        log_determinant = log_determinant_of(np.linalg.cholesky(scale)) - self.dimension * np.log(2)
        half_degrees = align((degrees[..., None] - np.arange(self.dimension)) / 2, s)
        moment = log_rising(half_degrees, -order[..., None]).sum(-1)
        return self._log_integral(moment + order * align(log_determinant, s, 0), s)

    def sample(self, parameters: GaussianParameters, rng: np.random.Generator, n: int) -> Array:
        # By the covariance UU', U upper triangular: a factor of the precision has lost the widest
        # directions to rounding where others are ten thousand times narrower.
        covariance = np.linalg.inv(np.asarray(parameters.precision, float))
        root = np.linalg.cholesky(covariance[::-1, ::-1])[::-1, ::-1]
        noise = rng.standard_normal((self.dimension, n))
        return np.asarray(parameters.mean) + (root @ noise).T

    def _log_integral(self, log_determinant_power: Array, s: Array) -> Array:
        d = self.dimension
        return log_determinant_power + d * (1 - s) / 2 * np.log(2 * np.pi) - d / 2 * np.log(s)


def wishart_log_normalizer(degrees: Array, scale: Array) -> Array:
    """log ∫ |Λ|^{(ν − D − 1)/2} exp{−½ tr ΨΛ} dΛ, from ν [...] and Ψ [..., D, D]."""
    d = scale.shape[-1]
    log_determinant = log_determinant_of(np.linalg.cholesky(scale))
    half_degrees = (degrees[..., None] - np.arange(d)) / 2
    log_gamma = gammaln(half_degrees).sum(-1) + d * (d - 1) / 4 * np.log(np.pi)
    return log_gamma + degrees / 2 * (d * np.log(2) - log_determinant)


def sample_wishart(
    degrees: Array, scale: Array, rng: np.random.Generator, leading: tuple[int, ...], columns: int
) -> tuple[Array, Array]:
    """Λ [*leading, D, D], and as many draws from N(0, Λ^{−1}) [*leading, D, columns].

    By Bartlett's decomposition: with Ψ = LL' and A lower triangular, A_ii² ~ χ²(ν − i) for
    i = 0, 1, … and A_ij ~ N(0, 1) below, Λ = FF' with F = L'^{−1} A, and F'^{−1} = L A'^{−1}.
    """
    factor, d = np.linalg.cholesky(scale), scale.shape[-1]
    bartlett = np.tril(rng.standard_normal((*leading, d, d)), -1)
    diagonal = np.arange(d)
    half_degrees = np.broadcast_to((degrees[..., None] - diagonal) / 2, (*leading, d))
    bartlett[..., diagonal, diagonal] = np.sqrt(2 * rng.standard_gamma(half_degrees))
    root = np.linalg.solve(np.swapaxes(factor, -1, -2), bartlett)
    noise = rng.standard_normal((*leading, d, columns))
    noise = factor @ np.linalg.solve(np.swapaxes(bartlett, -1, -2), noise)
    return root @ np.swapaxes(root, -1, -2), noise


def is_positive_definite(matrix: Array) -> NDArray[np.bool_]:
    """Whether symmetric matrices are, [...], in units of their diagonals: columns of very different
    sizes would look singular."""
    roots = np.sqrt(np.maximum(np.diagonal(matrix, axis1=-2, axis2=-1), 1e-300))
    return np.linalg.eigvalsh(matrix / roots[..., None] / roots[..., None, :])[..., 0] > 0


def log_determinant_of(factor: NDArray[np.floating]) -> Array:
    """log|LL'| of Cholesky factors [..., D, D]."""
    return 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)


class TiedNormalWishart(ExponentialFamily):
    """Means μ_1 … μ_K and the precision matrix Λ that they share:

        Λ ~ Wishart(ν, Ψ^{−1}) with E[Λ] = ν Ψ^{−1},   μ_k | Λ ~ N(m_k, (κ_k Λ)^{−1}),   ν > D − 1.

    Natural parameters are [..., K, size], rows η_k = (κ_k m_k [D], M_k [D²], κ_k, ν_k) with
    Σ_k M_k = Ψ + Σ_k κ_k m_k m_k' and Σ_k ν_k = ν; how those sums are spread over the rows changes
    nothing. t has the rows (Λμ_k, −½Λ, −½ μ_k'Λμ_k, ½ log|Λ|), and h = |Λ|^{(K − D − 1)/2}. With
    K = 1 it is :class:`NormalWishart`.

    Examples
    --------
    >>> from tempering.families import TiedNormalWishart
    >>> family = TiedNormalWishart(1, 2)
    >>> family.natural([[1.0], [0.0]], [2.0, 1.0], 3.0, [[4.0]])
    array([[2. , 4. , 2. , 1.5],
           [0. , 2. , 1. , 1.5]])
    """

    axes = (-2, -1)

    def __init__(self, dimension: int, n_components: int):
        super().__init__(dimension)
        self.n_components = n_components
        self.alone = NormalWishart(dimension)

    @property
    def size(self) -> int:
        """Length of the row of one component."""
        return self.alone.size

    def natural(
        self,
        mean: ArrayLike,
        mean_precision: ArrayLike,
        degrees_of_freedom: ArrayLike,
        scale: ArrayLike,
    ) -> Array:
        """η from m [..., K, D], κ [..., K], ν [...] and Ψ [..., D, D], shared out evenly."""
        k = self.n_components
        degrees, psi = np.asarray(degrees_of_freedom, float), np.asarray(scale, float)
        rows = self.alone.natural(
            mean, mean_precision, degrees[..., None] / k, psi[..., None, :, :] / k
        )
        return np.broadcast_to(rows, (*rows.shape[:-2], k, self.size)).copy()

    def standard(self, natural: ArrayLike) -> tuple[Array, ...]:
        """m [..., K, D], κ [..., K], ν [...] and Ψ [..., D, D] from η."""
        mean, kappa, degrees, scales = self.alone.standard(natural)
        return mean, kappa, degrees.sum(-1), scales.sum(-3)

    def marginals(self, natural: ArrayLike) -> Array:
        """Natural parameters [..., K, size] of (μ_k, Λ), a normal-Wishart for each k."""
        mean, kappa, degrees, scale = self.standard(natural)
        return self.alone.natural(mean, kappa, degrees[..., None], scale[..., None, :, :])

    def log_normalizer(self, natural: ArrayLike) -> Array:
        _, kappa, degrees, scale = self.standard(natural)
        means = self.dimension / 2 * np.log(2 * np.pi / kappa).sum(-1)
        return wishart_log_normalizer(degrees, scale) + means

    def expected_statistics(self, natural: ArrayLike) -> Array:
        return self.alone.expected_statistics(self.marginals(natural))

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> GaussianParameters:
        """Means [n, ..., K, D], and the precision [n, ..., K, D, D], alike for all k."""
        mean, kappa, degrees, scale = self.standard(natural)
        leading, d, k = (n, *degrees.shape), self.dimension, self.n_components
        precision, noise = sample_wishart(degrees, scale, rng, leading, k)
        return GaussianParameters(
            mean + np.swapaxes(noise, -1, -2) / np.sqrt(kappa)[..., None],
            np.broadcast_to(precision[..., None, :, :], (*leading, k, d, d)),
        )

    def point(self, natural: ArrayLike) -> GaussianParameters:
        return self.alone.point(self.marginals(natural))

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        eta = np.asarray(natural, float)
        finite = np.asarray(np.isfinite(eta).all((-2, -1)) & (eta[..., -2] > 0).all(-1))
        # An improper one is replaced by a proper one, so that the rest can be judged.
        d = self.dimension
        harmless = self.natural(np.zeros((self.n_components, d)), 1.0, d, np.eye(d))
        _, _, degrees, scale = self.standard(np.where(finite[..., None, None], eta, harmless))
        positive = is_positive_definite(scale)
        return finite & positive & (degrees > d - 1)


class TiedGaussian(FullGaussian):
    """N(x | μ_k, Λ^{−1}) with one Λ for all k; statistics and density are :class:`FullGaussian`'s.

    Examples
    --------
    >>> from tempering.families import TiedGaussian
    >>> TiedGaussian(2, n_components=3).statistics([[1.0, 2.0]])
    array([[1., 2., 1., 2., 2., 4., 1., 1.]])
    """

    conjugate: TiedNormalWishart  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, dimension: int, n_components: int):
        self.conjugate = TiedNormalWishart(dimension, n_components)

    def components_alone(self, natural: ArrayLike) -> tuple[NormalWishart, Array]:
        return self.conjugate.alone, self.conjugate.marginals(natural)
