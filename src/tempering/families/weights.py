"""What a distribution over mixing weights provides, whichever it is."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from tempering.families.base import Array, ExponentialFamily


class MixingWeights(ExponentialFamily):
    """A distribution over the weights π_1 … π_K of a mixture, conjugate to the component labels.

    The labels enter only through the (expected) number N_k of data in each component:
    Σ_k N_k log π_k = statistics_from_counts(N) · t(β).

    Examples
    --------
    >>> from tempering.families import Dirichlet, StickBreaking
    >>> Dirichlet(2).mean_weights([1.0, 3.0])
    array([0.25, 0.75])
    >>> sticks = StickBreaking(2)
    >>> sticks.mean_weights(sticks.natural(1.0, 1.0))
    array([0.5 , 0.25])
    """

    dimension: int
    """Number of components K."""

    @abstractmethod
    def expected_log_weights(self, natural: ArrayLike) -> Array:
        """E[log π_k], shape [..., K]."""

    @abstractmethod
    def log_moment(self, natural: ArrayLike, power: ArrayLike) -> Array:
        """log E[π_k^s], shape [..., *s.shape, K]."""

    @abstractmethod
    def mean_weights(self, natural: ArrayLike) -> Array:
        """E[π_k], shape [..., K]."""

    @abstractmethod
    def statistics_from_counts(self, counts: ArrayLike) -> Array:
        """What N_k data [..., K] in each component add to the natural parameters, [..., size]."""

    @abstractmethod
    def sample_log_weights(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        """n draws of log π, shape [n, ..., K]."""

    def sample_weights(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        """n draws of π, shape [n, ..., K]."""
        return np.exp(self.sample_log_weights(natural, rng, n))
