"""The Dirichlet distribution over probability vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from tempering.families.arrays import align, log_rising, safe_log, sample_log_gamma
from tempering.families.base import Array
from tempering.families.weights import MixingWeights


class Dirichlet(MixingWeights):
    """Dir(α) over probabilities β on the simplex: t(β) = log β, η = α, h(β) = Π_v 1/β_v.

    Parameters
    ----------
    dimension : int
        Number of categories V.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering.families import Dirichlet
    >>> family = Dirichlet(3)
    >>> family.point([2.0, 1.0, 1.0])
    array([0.5 , 0.25, 0.25])
    >>> np.exp(family.log_moment([2.0, 1.0, 1.0], 1.0))
    array([0.5 , 0.25, 0.25])
    """

    def __init__(self, dimension: int):
        self.dimension = dimension

    @property
    def size(self) -> int:
        return self.dimension

    def log_normalizer(self, natural: ArrayLike) -> Array:
        concentration = np.asarray(natural, float)
        return gammaln(concentration).sum(-1) - gammaln(concentration.sum(-1))

    def expected_statistics(self, natural: ArrayLike) -> Array:
        concentration = np.asarray(natural, float)
        return digamma(concentration) - digamma(concentration.sum(-1, keepdims=True))

    def parameter_statistics(self, parameters: ArrayLike) -> Array:
        return safe_log(parameters)

    def log_moment(self, natural: ArrayLike, power: ArrayLike) -> Array:
        """log E[β_v^s], shape [..., *s.shape, V].

        E[β_v^s] = Γ(α_v + s) Γ(A) / (Γ(α_v) Γ(A + s)) with A = Σ_v α_v.
        """
        s = np.asarray(power, float)
        concentration = align(natural, s)
        total = concentration.sum(-1, keepdims=True)
        return log_rising(concentration, s[..., None]) - log_rising(total, s[..., None])

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        return np.exp(self.sample_log(natural, rng, n))

    def sample_log(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        """Draws of log β: with concentrations near 0 most of β underflows, not its logarithm."""
        log_gamma = sample_log_gamma(natural, rng, n)
        return log_gamma - np.logaddexp.reduce(log_gamma, axis=-1, keepdims=True)

    def point(self, natural: ArrayLike) -> Array:
        concentration = np.asarray(natural, float)
        return concentration / concentration.sum(-1, keepdims=True)

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        concentration = np.asarray(natural, float)
        return np.all(np.isfinite(concentration) & (concentration > 0), axis=-1)

    def expected_log_weights(self, natural: ArrayLike) -> Array:
        return self.expected_statistics(natural)

    def mean_weights(self, natural: ArrayLike) -> Array:
        return self.point(natural)

    def statistics_from_counts(self, counts: ArrayLike) -> Array:
        return np.array(counts, float)

    def sample_log_weights(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        return self.sample_log(natural, rng, n)
