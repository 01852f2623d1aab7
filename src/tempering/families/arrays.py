"""Shapes and logarithms that several families share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp

from tempering.families.base import Array


def align(array: ArrayLike, other: Array, trailing: int = 1) -> Array:
    """Put ``other.ndim`` axes of length 1 before the last ``trailing`` axes of ``array``.

    Parameters [..., D] and inverse temperatures [*s] then combine to [..., *s, D] by broadcasting.
    """
    values = np.asarray(array, float)
    split = values.ndim - trailing
    return values.reshape(values.shape[:split] + (1,) * other.ndim + values.shape[split:])


def join(blocks: Sequence[Array], lengths: Sequence[int]) -> Array:
    """Blocks [..., length] one after the other; what is shorter, or has fewer axes, is spread."""
    leading = np.broadcast_shapes(*(block.shape[:-1] for block in blocks))
    parts = [np.broadcast_to(part, (*leading, n)) for part, n in zip(blocks, lengths, strict=True)]
    return np.concatenate(parts, axis=-1)


def safe_log(array: ArrayLike) -> Array:
    """log x with log 0 = −∞, silently."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(array, float))


def log_sum(logs: ArrayLike) -> Array:
    """log Σ exp over the last axis."""
    return np.asarray(logsumexp(logs, axis=-1))


def weighted_logs(x: Any, logs: Array) -> Array:
    """Σ_v x_iv logs_v, [..., n], with 0 · (−∞) = 0: only data which use −∞ become impossible."""
    flat = logs.reshape(-1, logs.shape[-1])
    absent = np.isneginf(flat)
    totals = np.asarray(x @ np.where(absent, 0.0, flat).T).T
    if absent.any():
        totals[np.asarray(x @ absent.T.astype(float)).T > 0] = -np.inf
    return totals.reshape(*logs.shape[:-1], x.shape[0])


def squared_distances(x: ArrayLike, means: ArrayLike, weights: Array | None = None) -> Array:
    """Σ_d (x_nd − m_d)², or w_d times that, shape [..., n] for means and weights [..., D].

    A column at a time: differences lose no digits, and no array [..., n, D] is needed.
    """
    table, means = np.asarray(x, float), np.asarray(means, float)
    total = np.zeros((*means.shape[:-1], len(table)))
    for column in range(means.shape[-1]):
        squares = np.square(table[:, column] - means[..., column, None])
        total += squares if weights is None else weights[..., column, None] * squares
    return total


def stirling_error(x: ArrayLike) -> Array:
    """δ(x) = log Γ(x) − [ (x − ½) log x − x + ½ log 2π ], to double precision for x > 0."""
    values = np.asarray(x, float)
    large = np.maximum(values, 16.0)
    inverse = 1.0 / large**2
    series = 1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680)))
    small = np.minimum(values, 16.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = gammaln(small) - ((small - 0.5) * np.log(small) - small + 0.5 * np.log(2 * np.pi))
    return np.where(values >= 16.0, series / large, exact)


def log_rising(x: ArrayLike, power: ArrayLike) -> Array:
    """log Γ(x + s) − log Γ(x), without the cancellation of two large log-gammas when x ≫ s.

    Stirling's form leaves (x + s − ½) log(1 + s/x) + s log x − s + δ(x + s) − δ(x). It is +∞ where
    x + s <= 0: as a moment, that one does not exist.
    """
    base, s = np.broadcast_arrays(np.asarray(x, float), np.asarray(power, float))
    exists = base + s > 0
    s = np.where(exists, s, 0.0)
    total = base + s
    stirling = (total - 0.5) * np.log1p(s / base) + s * np.log(base) - s
    stirling += stirling_error(total) - stirling_error(base)
    value = np.where(base > 16.0, stirling, gammaln(total) - gammaln(base))
    return np.where(exists, value, np.inf)


def sample_log_gamma(shape: ArrayLike, rng: np.random.Generator, n: int) -> Array:
    """n draws of log g, g ~ Gamma(a, 1): near a = 0 most of g underflows, its logarithm does not.

    Gamma(a) = Gamma(a + 1) · U^{1/a}, in logarithms.
    """
    a = np.broadcast_to(np.asarray(shape, float), (n, *np.shape(shape)))
    return np.log(rng.standard_gamma(a + 1.0)) + np.log1p(-rng.random(a.shape)) / a
