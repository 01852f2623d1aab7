"""Gaussians with one precision matrix for all components, and the family conjugate to them.

Such components are not independent, so their family is one over all of them. Its natural parameters
have a row for each component, and what is shared is the sum over the rows: so a datum adds the same
statistics to the row of its component as for a :class:`FullGaussian`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempering.families.base import Array, ExponentialFamily
from tempering.families.normal_gamma import GaussianParameters
from tempering.families.normal_wishart import (
    FullGaussian,
    NormalWishart,
    NormalWishartParameters,
    sample_wishart,
    wishart_log_normalizer,
)


class TiedNormalWishart(ExponentialFamily):
    """Means μ_1 … μ_K and the precision matrix Λ that they share:

        Λ ~ Wishart(ν, Ψ^{−1}) with E[Λ] = ν Ψ^{−1},   μ_k | Λ ~ N(m_k, (κ_k Λ)^{−1}),   ν > D − 1.

    Natural parameters are [..., K, size], rows η_k = (κ_k m_k [D], M_k [D²], κ_k, ν_k) with
    Σ_k M_k = Ψ + Σ_k κ_k m_k m_k' and Σ_k ν_k = ν; how those sums are spread over the rows changes
    nothing. t has the rows (Λμ_k, −½Λ, −½ μ_k'Λμ_k, ½ log|Λ|), and h = |Λ|^{(K − D − 1)/2}. With
    K = 1 it is :class:`NormalWishart`.

    Parameters
    ----------
    dimension : int
        Length D of the means.
    n_components : int
        Number of means K.

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

    def standard(self, natural: ArrayLike) -> NormalWishartParameters:
        """m [..., K, D], κ [..., K], ν [...] and Ψ [..., D, D] from η."""
        mean, kappa, degrees, scales = self.alone.standard(natural)
        return NormalWishartParameters(mean, kappa, degrees.sum(-1), scales.sum(-3))

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
        positive = np.linalg.eigvalsh(scale)[..., 0] > 0
        return finite & positive & (degrees > d - 1)


class TiedGaussian(FullGaussian):
    """N(x | μ_k, Λ^{−1}) with one Λ for all k; statistics and density are :class:`FullGaussian`'s.

    Parameters
    ----------
    dimension : int
        Number of columns D.
    n_components : int
        Number of components K that share Λ.

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
