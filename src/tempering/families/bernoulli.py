"""The beta distribution, and the Bernoulli likelihood that it is conjugate to."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, digamma

from tempering.families.base import (
    Array,
    ExponentialFamily,
    Likelihood,
    align,
    log_rising,
    safe_log,
    sample_log_gamma,
    weighted_logs,
)
from tempering.families.checks import check_table, refuse


class Beta(ExponentialFamily):
    """Beta(a_d, b_d) over D independent probabilities β_d.

    t(β) = (log β, log(1 − β)), η = (a [D], b [D]), h(β) = Π_d 1/(β_d (1 − β_d)).

    Examples
    --------
    >>> from tempering.families import Beta
    >>> family = Beta(2)
    >>> family.natural([1.0, 2.0], 3.0)
    array([1., 2., 3., 3.])
    >>> family.point([1.0, 2.0, 3.0, 3.0])
    array([0.25, 0.4 ])
    """

    blocks = 2

    def natural(self, successes: ArrayLike, failures: ArrayLike) -> Array:
        """η from a and b, each [..., D] or broadcast to it."""
        a, b, _ = np.broadcast_arrays(successes, failures, np.empty(self.dimension))
        return np.concatenate([a, b], axis=-1).astype(float)

    def log_normalizer(self, natural: ArrayLike) -> Array:
        return betaln(*self.standard(natural)).sum(-1)

    def expected_statistics(self, natural: ArrayLike) -> Array:
        a, b = self.standard(natural)
        total = digamma(a + b)
        return np.concatenate([digamma(a) - total, digamma(b) - total], axis=-1)

    def log_moment(self, natural: ArrayLike, power: ArrayLike) -> tuple[Array, Array]:
        """log E[β_d^s] and log E[(1 − β_d)^s], each [..., *s.shape, D].

        E[β^s] = Γ(a + s) Γ(a + b) / (Γ(a) Γ(a + b + s)), and a ↔ b for 1 − β.
        """
        s = np.asarray(power, float)
        a, b = (align(block, s) for block in self.standard(natural))
        total = log_rising(a + b, s[..., None])
        return log_rising(a, s[..., None]) - total, log_rising(b, s[..., None]) - total

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        return np.exp(self.sample_log(natural, rng, n)[0])

    def sample_log(
        self, natural: ArrayLike, rng: np.random.Generator, n: int
    ) -> tuple[Array, Array]:
        """Draws of log β and log(1 − β), both accurate however close β is to 0 or 1."""
        first, second = np.split(sample_log_gamma(natural, rng, n), 2, axis=-1)
        total = np.logaddexp(first, second)
        return first - total, second - total

    def point(self, natural: ArrayLike) -> Array:
        a, b = self.standard(natural)
        return a / (a + b)


class Bernoulli(Likelihood):
    """p(x | β) = Π_d β_d^{x_d} (1 − β_d)^{1 − x_d} for x in {0, 1}^D: t(x) = (x, 1 − x), h(x) = 1.

    ∫ p(x | β)^s dx = Π_d [ β_d^s + (1 − β_d)^s ].

    Examples
    --------
    >>> from tempering.families import Bernoulli
    >>> Bernoulli(2).statistics([[1, 0]])
    array([[1., 0., 0., 1.]])
    >>> Bernoulli(2).log_likelihood([[1, 0]], [0.5, 0.75]).round(3)
    array([-2.079])
    """

    family = Beta
    conjugate: Beta

    def statistics(self, x: ArrayLike) -> Array:
        table = np.asarray(x, float)
        return np.concatenate([table, 1.0 - table], axis=-1)

    def log_likelihood(self, x: ArrayLike, parameters: ArrayLike) -> Array:
        probability = np.asarray(parameters, float)
        with np.errstate(divide="ignore"):
            logs = np.concatenate([np.log(probability), np.log1p(-probability)], axis=-1)
        return weighted_logs(self.statistics(x), logs)

    def log_power_integral(self, parameters: ArrayLike, power: ArrayLike) -> Array:
        s = np.asarray(power, float)
        probability = align(parameters, s)
        success, failure = safe_log(probability), safe_log(1.0 - probability)
        return np.logaddexp(s[..., None] * success, s[..., None] * failure).sum(-1)

    def log_expected_power_integral(self, natural: ArrayLike, power: ArrayLike) -> Array:
        return np.logaddexp(*self.conjugate.log_moment(natural, power)).sum(-1)

    def sample(self, parameters: ArrayLike, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        return (rng.random((n, self.dimension)) < np.asarray(parameters, float)).astype(np.int64)

    def check(self, x: ArrayLike) -> None:
        table = check_table(x, self.dimension, "Bernoulli")
        refuse((table != 0) & (table != 1), table, "Bernoulli data must be 0 or 1")
