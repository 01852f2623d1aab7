"""The gamma distribution, and the Poisson likelihood that it is conjugate to.

Two sums over all counts x = 0, 1, 2, … are needed, both without closed form: Σ_x Pois(x | λ)^s, the
normaliser of a Conway-Maxwell-Poisson distribution, and Σ_x E_{Gamma(λ | a, b)}[ Pois(x | λ)^s ].
Few of their terms are evaluated, as deviations from their centre (Loader's saddle-point form):

* Where they are narrow (σ > 6, and below a sixth of the mean) the sum equals the integral up to
  exp(−2π²σ²), and so does the trapezium rule with steps of σ/8.
* Otherwise the first 64 are added as they are, and then octaves [A, 2A), each as four panels of a
  Gauss rule *for sums over consecutive integers* (discrete Chebyshev polynomials), until an octave
  adds nothing.
"""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh_tridiagonal
from scipy.special import digamma, gammaln

from tempering.families.base import (
    Array,
    ExponentialFamily,
    Likelihood,
    align,
    log_sum,
    safe_log,
    sample_log_gamma,
    stirling_error,
    weighted_logs,
)
from tempering.families.checks import check_counts, check_table

#: Rates of counts that can be drawn as 64-bit integers.
LARGEST_RATE = 9e18


class Gamma(ExponentialFamily):
    """Gamma(a_d, b_d) over D independent positive numbers λ_d, with mean a_d/b_d.

    t(λ) = (log λ, −λ), η = (shape a [D], rate b [D]), h(λ) = Π_d 1/λ_d.

    Examples
    --------
    >>> from tempering.families import Gamma
    >>> family = Gamma(1)
    >>> family.point(family.natural(shape=2.0, rate=4.0))
    array([0.5])
    """

    blocks = 2

    def natural(self, shape: ArrayLike, rate: ArrayLike) -> Array:
        """η from a and b, each [..., D] or broadcast to it."""
        a, b, _ = np.broadcast_arrays(shape, rate, np.empty(self.dimension))
        return np.concatenate([a, b], axis=-1).astype(float)

    def log_normalizer(self, natural: ArrayLike) -> Array:
        shape, rate = self.standard(natural)
        return (gammaln(shape) - shape * np.log(rate)).sum(-1)

    def expected_statistics(self, natural: ArrayLike) -> Array:
        shape, rate = self.standard(natural)
        return np.concatenate([digamma(shape) - np.log(rate), -shape / rate], axis=-1)

    def sample(self, natural: ArrayLike, rng: np.random.Generator, n: int) -> Array:
        shape, rate = self.standard(natural)
        return np.exp(sample_log_gamma(shape, rng, n) - np.log(rate))

    def point(self, natural: ArrayLike) -> Array:
        shape, rate = self.standard(natural)
        return shape / rate


class Poisson(Likelihood):
    """p(x | λ) = Π_d λ_d^{x_d} e^{−λ_d} / x_d! for counts x [n, D].

    t(x) = (x, 1) with a 1 for each dimension, log h(x) = −Σ_d log x_d!, and
    ∫ p(x | λ)^s dx = Π_d Σ_x Pois(x | λ_d)^s, a series: see :mod:`tempering.families.poisson`.

    Examples
    --------
    >>> from tempering.families import Poisson
    >>> Poisson(1).log_likelihood([[0], [1]], [2.0]).round(3)
    array([-2.   , -1.307])
    """

    family = Gamma
    conjugate: Gamma

    def statistics(self, x: ArrayLike) -> Array:
        counts = np.asarray(x, float)
        return np.concatenate([counts, np.ones_like(counts)], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Array:
        return -gammaln(np.asarray(x, float) + 1.0).sum(-1)

    def log_likelihood(self, x: ArrayLike, parameters: ArrayLike) -> Array:
        rates = np.asarray(parameters, float)
        natural = np.concatenate([safe_log(rates), -rates], axis=-1)
        return weighted_logs(self.statistics(x), natural) + self.log_base_measure(x)

    def log_power_integral(self, parameters: ArrayLike, power: ArrayLike) -> Array:
        s = np.asarray(power, float)
        return log_poisson_power_sum(align(parameters, s), s[..., None]).sum(-1)

    def log_expected_power_integral(self, natural: ArrayLike, power: ArrayLike) -> Array:
        s = np.asarray(power, float)
        shape, rate = (align(block, s) for block in self.conjugate.standard(natural))
        return log_expected_poisson_power_sum(shape, rate, s[..., None]).sum(-1)

    def sample(self, parameters: ArrayLike, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        rates = np.asarray(parameters, float)
        if not np.all(rates <= LARGEST_RATE):
            raise ValueError(
                f"data of rates above {LARGEST_RATE:g} cannot be drawn as integers; the largest "
                f"rate is {np.max(rates)}."
            )
        return rng.poisson(rates, size=(n, self.dimension))

    def check(self, x: ArrayLike) -> None:
        check_counts(check_table(x, self.dimension, "Poisson"), "Poisson counts")


_NARROW = 40.0  # mean² / variance from which the terms count as narrow
_STEPS = np.arange(-10 * 8, 16 * 8 + 1) / 8  # the right tail is the heavier one
_DIRECT = 64
_PANELS, _NODES = 4, 16
_NEGLIGIBLE = 40.0  # exp(−40) of the sum
_CHUNK = 8192  # rows evaluated at once: about 14 MB an array


def log_poisson_power_sum(rate: ArrayLike, inverse_temperature: ArrayLike) -> Array:
    """log Σ_x Pois(x | λ)^s, elementwise for λ >= 0 and s in (0, 1]."""
    rate, s = np.broadcast_arrays(np.asarray(rate, float), np.asarray(inverse_temperature, float))

    def log_terms(x: Array, rate: Array, s: Array) -> Array:
        deviance = x * _log_ratio(x, rate, x - rate) - (x - rate)
        return -s * (deviance + 0.5 * np.log(2 * np.pi * x) + stirling_error(x))

    return _log_sum(log_terms, -s * rate, rate, rate / s, s, (rate, s))


def log_expected_poisson_power_sum(
    shape: ArrayLike, rate: ArrayLike, inverse_temperature: ArrayLike
) -> Array:
    """log Σ_x E[Pois(x | λ)^s] for λ ~ Gamma(a, b), elementwise.

    E[λ^{sx} e^{−sλ}] / x!^s = b^a Γ(a + sx) / ( Γ(a) (b + s)^{a + sx} x!^s ).
    """
    a, b, s = np.broadcast_arrays(
        *(np.asarray(value, float) for value in (shape, rate, inverse_temperature))
    )

    def log_terms(x: Array, a: Array, b: Array, s: Array) -> Array:
        mean, total = a / b, a + s * x
        middle = total / (b + s)  # the mean of a/b and x, weighted by b and s
        pull = (x - mean) / (b + s)
        logs = a * _log_ratio(middle, mean, s * pull) + s * x * _log_ratio(middle, x, -b * pull)
        logs += 0.5 * np.log(a / total) - 0.5 * s * np.log(2 * np.pi * x)
        return logs + stirling_error(total) - stirling_error(a) - s * stirling_error(x)

    mean = a / b
    return _log_sum(log_terms, -a * np.log1p(s / b), mean, mean / b + mean / s, s, (a, b, s))


def _log_sum(
    log_terms: Callable[..., Array],
    log_first: Array,
    mean: Array,
    variance: Array,
    inverse_temperature: Array,
    arguments: tuple[Array, ...],
) -> Array:
    """log[ exp(log_first) + Σ_{x>=1} exp(log_terms(x, *arguments)) ], elementwise."""
    flat = tuple(np.ravel(argument)[:, None] for argument in arguments)
    first, centre, spread = np.ravel(log_first), np.ravel(mean), np.sqrt(np.ravel(variance))
    narrow = _NARROW * spread**2 < centre**2
    result = np.empty(centre.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for rows in _chunks(np.flatnonzero(narrow)):
            x = centre[rows, None] + spread[rows, None] * _STEPS
            logs = log_terms(np.maximum(x, 1.0), *(argument[rows] for argument in flat))
            logs = np.where(x >= 1.0, logs, -np.inf)
            result[rows] = log_sum(logs) + np.log(spread[rows] / 8)
        for rows in _chunks(np.flatnonzero(~narrow)):
            result[rows] = _graded(log_terms, first[rows], centre[rows], [a[rows] for a in flat])
    # One is the sum of probabilities: exactly, not up to rounding.
    return np.where(inverse_temperature == 1.0, 0.0, result.reshape(mean.shape))


def _graded(
    log_terms: Callable[..., Array], log_first: Array, centre: Array, arguments: list[Array]
) -> Array:
    x = np.arange(1.0, _DIRECT)
    total = np.logaddexp(log_first, log_sum(log_terms(x, *arguments)))
    active, start = np.arange(len(total)), _DIRECT
    while active.size:
        x, log_weights = _octave(start)
        logs = log_terms(x, *(argument[active] for argument in arguments))
        added = log_sum(logs + log_weights)
        total[active] = np.logaddexp(total[active], added)
        start *= 2
        # Written so that a NaN ends its row.
        going = (added > total[active] - _NEGLIGIBLE) | (start <= centre[active])
        active = active[going]
    return total


@cache
def _octave(start: int) -> tuple[Array, Array]:
    """Nodes and log weights for a sum over the integers start … 2·start − 1."""
    length = start // _PANELS
    # Jacobi matrix of the discrete Chebyshev polynomials on 0 … L − 1 (Golub and Welsch).
    k = np.arange(1.0, _NODES)
    off_diagonal = np.sqrt(k**2 * (float(length) ** 2 - k**2) / (4 * (4 * k**2 - 1)))
    nodes, vectors = eigh_tridiagonal(np.full(_NODES, (length - 1) / 2), off_diagonal)
    panels = start + length * np.arange(float(_PANELS))
    log_weights = np.log(float(length)) + 2 * np.log(np.abs(vectors[0]))
    return np.add.outer(panels, nodes).ravel(), np.tile(log_weights, _PANELS)


def _chunks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), _CHUNK):
        yield rows[start : start + _CHUNK]


def _log_ratio(top: Array, bottom: Array, difference: Array) -> Array:
    """log(top / bottom), accurate where they are close, given their difference."""
    relative = difference / bottom
    close = np.abs(relative) < 0.5
    return np.where(close, np.log1p(np.where(close, relative, 0.0)), np.log(top) - np.log(bottom))
