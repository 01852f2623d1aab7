"""The categorical likelihood: one draw from a finite set, with a Dirichlet prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempering.families.arrays import align, log_sum, safe_log
from tempering.families.base import Array, Likelihood
from tempering.families.dirichlet import Dirichlet


class Categorical(Likelihood):
    """p(x = v | β) = β_v for integer codes x in 0 … V − 1.

    ∫ p(x | β)^s dx = Σ_v β_v^s.

    Parameters
    ----------
    dimension : int
        Number of categories V.

    Examples
    --------
    >>> from tempering.families import Categorical
    >>> Categorical(3).statistics([2, 0])
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """

    conjugate: Dirichlet

    def __init__(self, dimension: int):
        self.conjugate = Dirichlet(dimension)

    @property
    def dimension(self) -> int:
        return self.conjugate.dimension

    def statistics(self, x: ArrayLike) -> Array:
        codes = np.asarray(x)
        indicators = np.zeros((len(codes), self.dimension))
        indicators[np.arange(len(codes)), codes] = 1.0
        return indicators

    def log_base_measure(self, x: ArrayLike) -> Array:
        return np.zeros(len(np.asarray(x)))

    def log_likelihood(self, x: ArrayLike, parameters: ArrayLike) -> Array:
        return safe_log(parameters)[..., np.asarray(x)]

    def expected_log_likelihood(self, x: ArrayLike, expected: Array) -> Array:
        # The product of the indicators with E[t(β)], without the indicators.
        return expected.T[np.asarray(x)]

    def log_power_integral(self, parameters: ArrayLike, inverse_temperature: ArrayLike) -> Array:
        s = np.asarray(inverse_temperature, float)
        return log_sum(s[..., None] * align(safe_log(parameters), s))

    def log_expected_power_integral(
        self, natural: ArrayLike, inverse_temperature: ArrayLike
    ) -> Array:
        return log_sum(self.conjugate.log_moment(natural, inverse_temperature))

    def sample(self, parameters: ArrayLike, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        return rng.choice(self.dimension, size=n, p=np.asarray(parameters, float))

    def check(self, x: ArrayLike) -> None:
        codes = np.asarray(x)
        if codes.ndim != 1 or not np.issubdtype(codes.dtype, np.integer):
            raise ValueError(
                "Categorical data must be one integer code a datum, shape [n]; "
                f"got an array of shape {codes.shape} and type {codes.dtype}."
            )
        wrong = (codes < 0) | (codes >= self.dimension)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"Categorical codes must lie in 0 ... {self.dimension - 1}; row {row} holds "
                f"{codes[row]} ({int(wrong.sum())} such value(s))."
            )
