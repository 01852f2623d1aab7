"""The tempered partition function log C(s), behind one function.

    C(s) = ∫ p(β) Π_i [ ∫∫ p(x_i, z_i | β)^s dx_i dz_i ] dβ = E_{p(β)} exp{ N log c(s; β) },

with c(s; β) = ∫∫ p(x, z | β)^s dx dz, base measure included (the paper drops it). C(1) = 1.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from tempering.models.arguments import as_numbers, check_number, check_whole
from tempering.models.base import Array, Model, UnsupportedTemperature

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
    s = as_numbers(inverse_temperatures, "inverse_temperatures", "a grid in (0, 1]")
    check_number(n_data, "n_data", "a number of data, at least 1", least=1)
    check_whole(n_samples=n_samples)
    if s.ndim != 1 or not s.size or not np.all((s > 0) & (s <= 1)):
        raise ValueError(
            "inverse_temperatures must be a one-dimensional grid in (0, 1]; "
            f"got shape {s.shape} with values {np.ravel(s)[:3]} ..."
        )
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
    if method == "map":
        return LogPartition(n_data * model.log_local_integral(model.prior_point(), s)[0], "map")
    raise ValueError(
        f"method must be 'auto', 'closed-form', 'monte-carlo' or 'map'; got {method!r}."
    )


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
