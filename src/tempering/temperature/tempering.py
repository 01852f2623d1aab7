"""Variational tempering (VT): the temperature is a latent variable, and is learned.

    q(y = m) ∝ π_m exp{ s_m L − log C(s_m) },   L = Σ_i E_q[log p(x_i, z_i | β)],

Eq. 10 of Mandt et al. (2016); the fit is tempered by E_q[1/T_y] = Σ_m q(m) s_m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from tempering.models.base import Array, LocalStep, Model, UnsupportedTemperature
from tempering.temperature.grid import check_grid, exponential_temperatures, weigh
from tempering.temperature.partition import log_partition
from tempering.temperature.policy import (
    Heat,
    Progress,
    Surroundings,
    Untempered,
    check_fraction,
)

Formula = Literal["auto", "closed-form", "monte-carlo", "map", "calibrated"]


@dataclass(frozen=True, eq=False)
class VariationalTempering(Untempered):
    """Learn one temperature for all data.

    Parameters
    ----------
    inverse_temperatures : array [M]
        The grid of 1/T. By default 100 temperatures from 1 to 10 on an exponential scale.
    prior : array [M], optional
        π, the prior over the grid; uniform by default.
    formula : {"auto", "closed-form", "monte-carlo", "map", "calibrated"}
        Where log C comes from. The first three are the paper's C under the prior, computed once
        (see :func:`tempering.temperature.log_partition`). "calibrated" normalises each datum's
        tempered density under the current posterior, so that nothing is precomputed and C ≡ 1; it
        is the one that stays finite when a scale is learned. "auto": the closed form where the
        model has one, else calibrated, else Monte Carlo.
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
    """

    settles: ClassVar[bool] = True

    inverse_temperatures: ArrayLike = field(default_factory=exponential_temperatures)
    prior: ArrayLike | None = None
    formula: Formula = "auto"
    damping: float = 0.0
    every: int = 1
    fraction: float | None = 2 / 3
    n_samples: int = 1000

    def __post_init__(self) -> None:
        grid, prior = check_grid(self.inverse_temperatures, self.prior)
        object.__setattr__(self, "inverse_temperatures", grid)
        object.__setattr__(self, "prior", prior)
        check_fraction(self.fraction)
        if not self.damping >= 0:
            raise ValueError(f"damping must be 0 or a positive number of passes; got {self.damping}.")
        if self.every < 1:
            raise ValueError(f"every must be at least 1 step; got {self.every}.")

    def length(self, planned: float) -> float:
        return math.inf if self.fraction is None else self.fraction * planned

    def start(self, model: Model, n_data: int, rng: np.random.Generator) -> Heat:
        """q(y) = π, as in the paper, and log C on the whole grid."""
        grid, prior = self._grid()
        return Heat(
            inverse_temperature=float(prior @ grid),
            weights=prior,
            log_partition=self._log_partition(model, n_data, rng),
        )

    def cool(self, heat: Heat, progress: Progress) -> Heat:
        floor = progress.passes / self.length(progress.planned)
        if floor >= 1.0:
            return heat._replace(inverse_temperature=1.0, finished=True)
        return heat._replace(inverse_temperature=max(float(heat.inverse_temperature), floor))

    def update(
        self, heat: Heat, local: LocalStep, surroundings: Surroundings
    ) -> tuple[LocalStep, Heat]:
        """q(y) is a coordinate like the others: it moves between q(z) and q(β)."""
        progress = surroundings.progress
        if round(progress.passes / progress.step) % self.every:
            return local, heat
        grid, prior = self._grid()
        penalty = heat.log_partition
        if penalty is None:
            log_normalizer = surroundings.model.local_log_normalizer(
                surroundings.expectations, grid, surroundings.data
            )
            penalty = surroundings.scale * local.n * log_normalizer.mean(axis=0)
        learned = weigh(surroundings.scale * local.energy, penalty, grid, prior)
        here = float(heat.inverse_temperature)
        follow = -np.expm1(-progress.step * self.every / self.damping) if self.damping else 1.0
        there = here + follow * (float(learned.inverse_temperature) - here)
        heat = heat._replace(
            inverse_temperature=there, weights=learned.probabilities, bound=float(learned.bound)
        )
        heat = self.cool(heat, progress)
        return local.reweighted(float(heat.inverse_temperature)), heat

    def _grid(self) -> tuple[Array, Array]:
        return np.asarray(self.inverse_temperatures), np.asarray(self.prior)

    def _log_partition(
        self, model: Model, n_data: int, rng: np.random.Generator
    ) -> Array | None:
        """log C on the grid, or None where each datum is normalised instead."""
        formula = self.formula
        grid, _ = self._grid()
        if formula == "auto":
            try:
                return log_partition(model, grid, n_data, method="closed-form").values
            except UnsupportedTemperature:
                can_calibrate = model.provides("local_log_normalizer")
                formula = "calibrated" if can_calibrate else "monte-carlo"
        if formula == "calibrated":
            model.require("local_log_normalizer")
            return None
        return log_partition(
            model, grid, n_data, method=formula, n_samples=self.n_samples, rng=rng
        ).values
