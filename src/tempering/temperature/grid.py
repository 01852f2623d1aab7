"""Grids of temperatures: a categorical prior, the update of q over them, and log C(s) on them.

    C(s) = ∫ p(β) Π_i [ ∫∫ p(x_i, z_i | β)^s dx_i dz_i ] dβ = E_{p(β)} exp{ N log c(s; β) }

is the tempered partition function, with c(s; β) = ∫∫ p(x, z | β)^s dx dz, base measure included
(the paper drops it). C(1) = 1.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, xlogy

from tempering.models.arguments import as_numbers, check_choice, check_number, check_whole
from tempering.models.base import Array, Model, UnsupportedTemperature
from tempering.temperature.policy import Progress, State, TemperaturePolicy, check_fraction


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


class GridPolicy(TemperaturePolicy[State]):
    """What policies share that learn 1/T on a grid, with a prior over it."""

    inverse_temperatures: ArrayLike
    prior: ArrayLike | None
    damping: float
    fraction: float | None

    def settles(self, heat: State) -> bool:
        return True

    def __post_init__(self) -> None:
        grid, prior = check_grid(self.inverse_temperatures, self.prior)
        object.__setattr__(self, "inverse_temperatures", grid)
        object.__setattr__(self, "prior", prior)
        check_fraction(self.fraction)
        check_number(self.damping, "damping", "0 or a positive number of passes", least=0)

    def length(self, progress: Progress) -> float:
        return math.inf if self.fraction is None else self.fraction * progress.planned

    def _grid(self) -> tuple[Array, Array]:
        return np.asarray(self.inverse_temperatures), np.asarray(self.prior)


def weigh(
    energy: ArrayLike, log_normalizer: Array, grid: Array, prior: Array, power: ArrayLike = 1.0
) -> tuple[Array, Array, Array]:
    """q(T = T_m) ∝ exp{ p_m ( s_m E − log c(s_m) + log π_m ) } with p = 1, or as in the paper.

    Its probabilities [..., M], E_q[1/T] [...], and what it adds to the tempered ELBO [...].
    """
    if np.isnan(energy).any():
        raise ValueError(
            "temperatures are learned from energies, E_q[log p(x, z | β)], which here are no "
            "numbers. With topics, take update='variational', or formula='calibrated'; otherwise "
            "tempering.testing.check_model(model, data) tells where they come from."
        )
    scores = np.asarray(energy)[..., None] * grid - log_normalizer + np.log(prior)
    exponents = np.asarray(power) * scores
    exponents = exponents - exponents.max(axis=-1, keepdims=True)
    probabilities = np.exp(exponents)
    probabilities /= probabilities.sum(axis=-1, keepdims=True)
    penalty = np.where(probabilities > 0, log_normalizer, 0.0)
    bound = np.sum(
        probabilities * (np.log(prior) - penalty) - xlogy(probabilities, probabilities), axis=-1
    )
    return probabilities, probabilities @ grid, bound


Method = Literal["auto", "closed-form", "monte-carlo", "map"]


@dataclass(frozen=True)
class LogPartition:
    """log C(s) on a grid, with what is known of its error.

    Attributes
    ----------
    values : array [M]
        log C(s_m).
    method : str
        How they were computed.
    effective_sample_size : array [M] or None
        (Σw)²/Σw² of the Monte Carlo weights: near 1, a single draw decides the estimate.
    spread : array [M] or None
        Standard error of log C by the delta method; meaningless where the effective sample size is
        small, since heavy weights have not been seen.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering.temperature import LogPartition
    >>> LogPartition(np.zeros(1), "monte-carlo", effective_sample_size=np.array([1.2])).reliable
    False
    """

    values: Array
    method: str
    effective_sample_size: Array | None = None
    spread: Array | None = None

    @property
    def reliable(self) -> bool:
        """Whether the estimate is exact, or rests on at least ten effective draws everywhere."""
        return self.effective_sample_size is None or bool(self.effective_sample_size.min() >= 10)


def log_partition(
    model: Model,
    inverse_temperatures: ArrayLike,
    n_data: int,
    *,
    method: Method = "auto",
    n_samples: int = 1000,
    rng: np.random.Generator | int | None = 0,
) -> LogPartition:
    """log C(s) of a model for a data set of ``n_data`` points.

    Parameters
    ----------
    model : Model
        Needs ``log_partition`` for the closed form; ``draw_prior`` and ``log_local_integral`` for
        Monte Carlo; ``prior_point`` and ``log_local_integral`` for the MAP approximation.
    inverse_temperatures : array [M]
        The grid of s = 1/T, each in (0, 1].
    n_data : int
        Number of data N.
    method : {"auto", "closed-form", "monte-carlo", "map"}
        "auto" takes the closed form where the model has one, else Monte Carlo. The log-mean-exp of
        Monte Carlo is dominated by its best draw once N is large: look at ``reliable``. "map" is
        N log c(s; β*) with β* the prior's mode in natural coordinates.
    n_samples : int
        Monte Carlo draws of β from the prior.
    rng : Generator or int, optional
        Source of the draws.

    Examples
    --------
    >>> from tempering import Mixture, log_partition
    >>> from tempering.families import FixedWeights, IsotropicGaussian
    >>> model = Mixture(IsotropicGaussian(1, 1.0), FixedWeights([0.5, 0.5]), [], [0.0, 1.0])
    >>> known = log_partition(model, [1.0, 0.5], n_data=10)
    >>> known.values.round(3), known.method
    (array([ 0.   , 11.526]), 'closed-form')
    """
    if not isinstance(model, Model):
        raise ValueError(f"model must be a tempering.Model; got {model!r:.100}.")
    check_choice(method, "method", *get_args(Method))
    s, _ = check_grid(inverse_temperatures, None)
    check_number(n_data, "n_data", "a number of data, at least 1", least=1)
    check_whole(n_samples=n_samples)
    if method in ("auto", "closed-form"):
        try:
            return LogPartition(model.log_partition(s, n_data), "closed-form")
        except UnsupportedTemperature:
            if method == "closed-form":
                raise
    if method in ("auto", "monte-carlo"):
        try:
            generator = np.random.default_rng(rng)
        except (TypeError, ValueError) as error:
            raise ValueError(f"rng must be a Generator or a whole number: {error}") from error
        return _monte_carlo(model, s, n_data, n_samples, generator)
    return LogPartition(n_data * model.log_local_integral(model.prior_point(), s)[0], "map")


def _monte_carlo(
    model: Model, s: Array, n_data: int, n_samples: int, rng: np.random.Generator
) -> LogPartition:
    log_weights = n_data * model.log_local_integral(model.draw_prior(n_samples, rng), s)
    log_mean = logsumexp(log_weights, axis=0) - np.log(n_samples)
    log_square = logsumexp(2 * log_weights, axis=0) - np.log(n_samples)
    effective = n_samples * np.exp(2 * log_mean - log_square)
    # Var(mean)/mean² = (n/ESS − 1)/n
    spread = np.sqrt(np.maximum(1.0 / effective - 1.0 / n_samples, 0.0))
    return LogPartition(log_mean, "monte-carlo", effective, spread)
