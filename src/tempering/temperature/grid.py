"""Grids of temperatures with a categorical prior, and the update of q over them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from tempering.models.arguments import as_numbers
from tempering.models.base import Array


class Weights(NamedTuple):
    """q(T) over a grid: its probabilities, E_q[1/T], and what it adds to the tempered ELBO."""

    probabilities: Array  # [..., M]
    inverse_temperature: Array  # [...]
    bound: Array  # [...]


def exponential_temperatures(maximum: float = 10.0, n: int = 100) -> Array:
    """Inverse temperatures for T from 1 to ``maximum`` on an exponential scale, as in the paper.

    >>> exponential_temperatures(100.0, 3)
    array([1.  , 0.1 , 0.01])
    """
    return np.geomspace(1.0, 1.0 / maximum, n)


def even_inverse_temperatures(n: int = 100) -> Array:
    """Inverse temperatures evenly spaced in (0, 1]; s = 0 would ignore the datum for ever.

    >>> even_inverse_temperatures(4)
    array([1.  , 0.75, 0.5 , 0.25])
    """
    return np.arange(n, 0, -1) / n


def check_grid(inverse_temperatures: ArrayLike, prior: ArrayLike | None) -> tuple[Array, Array]:
    """The grid and the normalised prior over it, or an error that names what is wrong."""
    grid = as_numbers(inverse_temperatures, "inverse_temperatures", "an array of values in (0, 1]")
    if grid.ndim != 1 or not grid.size or not np.all((grid > 0) & (grid <= 1)):
        raise ValueError(
            "inverse_temperatures must be a one-dimensional array of values in (0, 1]; "
            f"got {np.array2string(grid, threshold=6)}."
        )
    if prior is None:
        return grid, np.full(grid.size, 1.0 / grid.size)
    weights = as_numbers(prior, "prior", f"{grid.size} positive weights")
    if weights.shape != grid.shape or not np.all(weights > 0) or not np.all(np.isfinite(weights)):
        raise ValueError(
            f"prior must hold {grid.size} positive weights, one for each inverse temperature; "
            f"got {np.array2string(weights, threshold=6)}."
        )
    return grid, weights / weights.sum()


def weigh(
    energy: ArrayLike, log_normalizer: Array, grid: Array, prior: Array, power: ArrayLike = 1.0
) -> Weights:
    """q(T = T_m) ∝ exp{ p_m ( s_m E − log c(s_m) + log π_m ) } with p = 1, or as in the paper."""
    scores = np.asarray(energy)[..., None] * grid - log_normalizer + np.log(prior)
    exponents = np.asarray(power) * scores
    exponents = exponents - exponents.max(axis=-1, keepdims=True)
    probabilities = np.exp(exponents)
    probabilities /= probabilities.sum(axis=-1, keepdims=True)
    penalty = np.where(probabilities > 0, log_normalizer, 0.0)
    bound = np.sum(
        probabilities * (np.log(prior) - penalty) - xlogy(probabilities, probabilities), axis=-1
    )
    return Weights(probabilities, probabilities @ grid, bound)
