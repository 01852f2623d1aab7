"""The multinomial likelihood of topic models: a sequence of draws, with a Dirichlet prior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tempering.families.arrays import align, log_sum, safe_log, weighted_logs
from tempering.families.base import Array, Likelihood
from tempering.families.checks import check_counts, check_sparse_counts, check_table
from tempering.families.dirichlet import Dirichlet


class Multinomial(Likelihood):
    """log p(x | β) = Σ_v x_v log β_v for counts x [n, V] of draws from V categories.

    A datum is the *sequence* of its draws: every order is an outcome of its own, so h(x) = 1 and no
    multinomial coefficient appears. With N draws, ∫ p(x | β)^s dx = (Σ_v β_v^s)^N.

    Parameters
    ----------
    dimension : int
        Number of categories V.
    trials : int, default=1
        Number of draws N of a datum that :meth:`log_power_integral`,
        :meth:`log_expected_power_integral` and :meth:`sample` assume. The other methods take the
        draws from the data.

    Examples
    --------
    >>> from tempering.families import Multinomial
    >>> Multinomial(2).log_likelihood([[2, 1]], [0.5, 0.5]).round(3)
    array([-2.079])
    """

    conjugate: Dirichlet

    def __init__(self, dimension: int, trials: int = 1):
        self.conjugate = Dirichlet(dimension)
        self.trials = trials

    @property
    def dimension(self) -> int:
        return self.conjugate.dimension

    def statistics(self, x: Any) -> Any:
        """The counts themselves; a sparse matrix stays sparse."""
        return x.tocsr().astype(float) if sparse.issparse(x) else np.array(x, float)

    def log_base_measure(self, x: Any) -> Array:
        return np.zeros(x.shape[0] if sparse.issparse(x) else len(x))

    def log_likelihood(self, x: Any, parameters: ArrayLike) -> Array:
        return weighted_logs(self.statistics(x), safe_log(parameters))

    def log_power_integral(self, parameters: ArrayLike, inverse_temperature: ArrayLike) -> Array:
        return self.trials * self._log_power_sum(parameters, inverse_temperature)

    def log_power_integral_of(
        self, x: Any, parameters: ArrayLike, inverse_temperature: ArrayLike
    ) -> Array:
        """log ∫ p(x' | β)^s dx' over all x' of as many draws as datum i has; [..., *s.shape, n]."""
        draws = np.asarray(self.statistics(x).sum(axis=1), float).reshape(-1)
        return self._log_power_sum(parameters, inverse_temperature)[..., None] * draws

    def log_expected_power_integral(
        self, natural: ArrayLike, inverse_temperature: ArrayLike
    ) -> Array:
        """N log Σ_v E[β_v^s]: exact for one draw.

        For N > 1 there is no simple closed form, and by Jensen's inequality (y^N is convex) this is
        a lower bound of log E[(Σ_v β_v^s)^N].
        """
        return self.trials * log_sum(self.conjugate.log_moment(natural, inverse_temperature))

    def draws(self, x: Any) -> Array:
        """Draws of each datum, in units of ``trials``."""
        return np.asarray(x.sum(axis=1), float).reshape(-1) / self.trials

    def sample(self, parameters: ArrayLike, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        return rng.multinomial(self.trials, np.asarray(parameters, float), size=n)

    def check(self, x: Any) -> None:
        if sparse.issparse(x):
            check_sparse_counts(x, self.dimension, "Multinomial")
        else:
            check_counts(check_table(x, self.dimension, "Multinomial"), "Multinomial")

    @staticmethod
    def _log_power_sum(parameters: ArrayLike, inverse_temperature: ArrayLike) -> Array:
        s = np.asarray(inverse_temperature, float)
        return log_sum(s[..., None] * align(safe_log(parameters), s))
