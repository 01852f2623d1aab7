"""Truncated stick-breaking weights: the mixing weights of a Dirichlet process."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempering.families.base import Array
from tempering.families.bernoulli import Beta, BetaParameters
from tempering.families.weights import MixingWeights


class StickBreaking(MixingWeights):
    """π_k = v_k Π_{j<k} (1 − v_j) with independent sticks v_k ~ Beta(a_k, b_k), k = 1 … K.

    The global variable is the vector of sticks v: t(v) = (log v, log(1 − v)), η = (a [K], b [K]).
    The prior of a Dirichlet process with concentration γ is a = 1, b = γ.

    All K sticks have a beta distribution, as in scikit-learn's ``BayesianGaussianMixture``
    (``weight_concentration_prior_type="dirichlet_process"``). So Σ_k π_k < 1: what is missing,
    Π_k (1 − v_k), is the weight of the components beyond the truncation. scikit-learn's
    ``weights_`` are :meth:`mean_weights` divided by their sum.

    Parameters
    ----------
    dimension : int
        Number of components K.

    References
    ----------
    Blei and Jordan (2006), "Variational inference for Dirichlet process mixtures".

    Examples
    --------
    >>> from tempering.families import StickBreaking
    >>> family = StickBreaking(3)
    >>> family.mean_weights(family.natural(1.0, 1.0))
    array([0.5  , 0.25 , 0.125])
    >>> family.statistics_from_counts([5.0, 3.0, 2.0])
    array([5., 3., 2., 5., 2., 0.])
    """

    def __init__(self, dimension: int):
        self.dimension = dimension
        self.sticks = Beta(dimension)

    @property
    def size(self) -> int:
        return self.sticks.size

    def natural(self, successes: ArrayLike, failures: ArrayLike) -> Array:
        """η from a and b of the sticks, each [..., K] or broadcast to it."""
        return self.sticks.natural(successes, failures)

    def standard(self, natural: ArrayLike) -> BetaParameters:
        """a and b of the sticks from η."""
        return self.sticks.standard(natural)

    def log_normalizer(self, natural: ArrayLike) -> Array:
        return self.sticks.log_normalizer(natural)

    def expected_statistics(self, natural: ArrayLike) -> Array:
        return self.sticks.expected_statistics(natural)

    def parameter_statistics(self, parameters: ArrayLike) -> Array:
        return self.sticks.parameter_statistics(parameters)

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        """Draws of the sticks v, shape [n, ..., K]; :meth:`sample_weights` gives π."""
        return self.sticks.sample(natural, rng, n)

    def point(self, natural: ArrayLike) -> Array:
        return self.sticks.point(natural)

    def is_valid(self, natural: ArrayLike) -> NDArray[np.bool_]:
        return self.sticks.is_valid(natural)

    def expected_log_weights(self, natural: ArrayLike) -> Array:
        return _break(*np.split(self.expected_statistics(natural), 2, axis=-1))

    def log_moment(self, natural: ArrayLike, power: ArrayLike) -> Array:
        """log E[π_k^s] = log E[v_k^s] + Σ_{j<k} log E[(1 − v_j)^s], shape [..., *s.shape, K]."""
        return _break(*self.sticks.log_moment(natural, power))

    def mean_weights(self, natural: ArrayLike) -> Array:
        """E[π_k], shape [..., K]; they sum to less than 1."""
        return np.exp(self.log_moment(natural, 1.0))

    def statistics_from_counts(self, counts: ArrayLike) -> Array:
        """(N_k, Σ_{j>k} N_j): a datum in component j passed over every stick before it."""
        here = np.asarray(counts, float)
        onwards = np.cumsum(here[..., ::-1], axis=-1)[..., ::-1]
        return np.concatenate([here, onwards[..., 1:], np.zeros_like(here[..., :1])], axis=-1)

    def sample_log_weights(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        return _break(*self.sticks.sample_log(natural, rng, n))


def _break(taken: Array, left: Array) -> Array:
    """log π_k (or its expectation, or log moment) from those of v_k and 1 − v_k."""
    before = np.cumsum(left[..., :-1], axis=-1)
    return taken + np.concatenate([np.zeros_like(left[..., :1]), before], axis=-1)
