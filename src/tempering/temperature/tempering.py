"""Variational tempering (VT): the temperature is a latent variable, and is learned.

    q(y = m) ∝ π_m exp{ s_m L − log C(s_m) },   L = Σ_i E_q[log p(x_i, z_i | β)],

Eq. 10 of Mandt et al. (2016); the fit is tempered by E_q[1/T_y] = Σ_m q(m) s_m.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from tempering.models.arguments import check_choice, check_whole
from tempering.models.base import Array, LocalStep, Model, UnsupportedTemperature
from tempering.storage.state import stored
from tempering.temperature.grid import GridPolicy, exponential_temperatures, log_partition, weigh
from tempering.temperature.policy import Heat, Progress, Surroundings

Formula = Literal[
    "auto", "closed-form", "monte-carlo", "map", "calibrated", "z-integrated", "paper"
]


@dataclass(frozen=True, eq=False)
class TemperingHeat(Heat):
    """q(y) over the grid (the paper's r), log C there where it is computed once, and steps made."""

    weights: Array | None = None  # pyright: ignore[reportIncompatibleMethodOverride]
    log_partition: Array | None = None
    step: int = 0


@stored("variational_tempering")
@dataclass(frozen=True, eq=False)
class VariationalTempering(GridPolicy[TemperingHeat]):
    """Learn one temperature for all data.

    Parameters
    ----------
    inverse_temperatures : array [M]
        The grid of 1/T. By default 100 temperatures from 1 to 10 on an exponential scale.
    prior : array [M], optional
        π, the prior over the grid; uniform by default.
    formula : {"auto", "closed-form", "monte-carlo", "map", "calibrated", "z-integrated", "paper"}
        Where log C comes from. "auto": the closed form where the model has one, else "calibrated",
        else Monte Carlo; what each of them is stands on the page about policies.
    damping : float
        Time constant, in passes over the data, with which s follows its optimum; 0 jumps there,
        which makes each update exact coordinate ascent.
    every : int
        Steps between two updates of the temperature.
    fraction : float or None
        Part of the planned run by which T is 1: a floor under s rises to 1 linearly until then.
        None leaves s alone.
    n_samples : int
        Draws for the Monte Carlo formula.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import Mixture, VariationalTempering, fit
    >>> from tempering.families import Dirichlet, IsotropicGaussian
    >>> rng = np.random.default_rng(0)
    >>> data = rng.normal(rng.choice([-4.0, 4.0], size=300))[:, None]
    >>> model = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(2), [1.0, 1.0], [0.0, 0.1])
    >>> history = fit(model, data, temperature=VariationalTempering(), seed=0).history
    >>> history[0].temperature > 1.5, history[-1].temperature
    (True, 1.0)
    """

    inverse_temperatures: ArrayLike = field(default_factory=exponential_temperatures)
    prior: ArrayLike | None = None
    formula: Formula = "auto"
    damping: float = 0.0
    every: int = 1
    fraction: float | None = 2 / 3
    n_samples: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(every=self.every, n_samples=self.n_samples)
        check_choice(self.formula, "formula", *get_args(Formula))

    def begin(self, model: Model, n_data: int, rng: np.random.Generator) -> TemperingHeat:
        """q(y) = π, as in the paper, and log C on the whole grid."""
        grid, prior = self._grid()
        return TemperingHeat(
            inverse_temperature=float(prior @ grid),
            weights=prior,
            log_partition=self._log_partition(model, n_data, rng),
        )

    def cool(self, heat: TemperingHeat, progress: Progress) -> TemperingHeat:
        floor = progress.passes / self.length(progress)
        if floor >= 1.0:
            return TemperingHeat(weights=heat.weights, finished=True)
        return replace(heat, inverse_temperature=max(float(heat.inverse_temperature), floor))

    def update(
        self, heat: TemperingHeat, local: LocalStep, surroundings: Surroundings
    ) -> tuple[LocalStep, TemperingHeat]:
        """q(y) is a coordinate like the others: it moves between q(z) and q(β)."""
        progress = surroundings.progress
        due = heat.step % self.every == 0
        heat = replace(heat, step=heat.step + 1)
        if not due:
            return local, heat
        grid, prior = self._grid()
        energy, penalty, exact = self._energy_and_penalty(heat, local, surroundings)
        weights, s, bound = weigh(energy, penalty, grid, prior)
        here = float(heat.inverse_temperature)
        follow = -np.expm1(-progress.step * self.every / self.damping) if self.damping else 1.0
        there = here + follow * (float(s) - here)
        added = float(bound) if exact else math.nan
        heat = replace(heat, inverse_temperature=there, weights=weights, bound=added)
        heat = self.cool(heat, progress)
        return local.reweighted(float(heat.inverse_temperature)), heat

    def settles(self, heat: TemperingHeat) -> bool:
        """Only where q(y) has just moved too."""
        return (heat.step - 1) % self.every == 0

    def reads_energies(self, heat: TemperingHeat) -> bool:
        """With log C in closed form; otherwise the model looks at a sample of its own."""
        return heat.log_partition is not None

    def _energy_and_penalty(
        self, heat: TemperingHeat, local: LocalStep, surroundings: Surroundings
    ) -> tuple[float, Array, bool]:
        """L and log C(s) of the whole data, and whether they belong to the bound of the fit."""
        here, scale, log_partition = surroundings, surroundings.scale, heat.log_partition
        formula = "calibrated" if log_partition is None else self.formula
        if log_partition is not None and formula != "z-integrated":
            return scale * local.energy, log_partition, True
        terms = here.model.temperature_terms(
            local, here.expectations, self._grid()[0], here.data, formula, shared=True
        )
        scale /= terms.share
        energy = scale * float(terms.energies.sum())
        if log_partition is not None:
            return energy, log_partition, terms.exact
        penalty = scale * len(terms.energies) * terms.log_normalizers.mean(axis=0)
        return energy, penalty, terms.exact

    def _log_partition(self, model: Model, n_data: int, rng: np.random.Generator) -> Array | None:
        """log C on the grid, or None where each datum is normalised instead."""
        formula = self.formula
        grid, _ = self._grid()
        if formula == "paper" and model.provides("printed_log_partition"):
            return model.printed_log_partition(grid, n_data)
        if formula in ("paper", "z-integrated"):
            formula = "monte-carlo"
        if formula == "auto":
            try:
                return log_partition(model, grid, n_data, method="closed-form").values
            except UnsupportedTemperature:
                draws = model.provides("draw_prior") and not model.learns_temperatures
                formula = "monte-carlo" if draws else "calibrated"
        if formula == "calibrated":
            model.require_learned_temperatures()
            return None
        return log_partition(
            model, grid, n_data, method=formula, n_samples=self.n_samples, rng=rng
        ).values
