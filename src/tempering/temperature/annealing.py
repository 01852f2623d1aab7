"""Annealed variational inference (AVI): the temperature follows a schedule.

The annealed ELBO is  −KL(q(β) ‖ p(β)) + Σ_i ( s E_q[log p(x_i, z_i | β)] + H(q(z_i)) )  with
s = 1/T(progress): Eq. 4 of Mandt et al. (2016).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tempering.models.base import Model
from tempering.temperature.policy import Heat, Progress, Untempered, check_fraction
from tempering.temperature.schedules import Schedule, linear_inverse


@dataclass(frozen=True)
class Annealing(Untempered):
    """Cool along a schedule, then stay at T = 1.

    Parameters
    ----------
    schedule : callable
        Temperature as a function of progress 0 … 1 through the annealed part of the run.
    passes : float, optional
        Length of the annealed part in passes over the data (iterations, in batch inference).
    fraction : float
        Its length as a part of the planned run, where ``passes`` is not given.
    temper : {"likelihood", "joint"}
        Whether the likelihood alone is tempered, as in the paper, or the prior p(β) too, as in
        earlier work (Katahira et al., 2008).
    """

    schedule: Schedule = field(default_factory=lambda: linear_inverse(5.0))
    passes: float | None = None
    fraction: float = 2 / 3
    temper: Literal["likelihood", "joint"] = "likelihood"

    def __post_init__(self) -> None:
        check_fraction(self.fraction)
        if self.passes is not None and not self.passes > 0:
            raise ValueError(f"passes must be positive; got {self.passes}.")
        if self.temper not in ("likelihood", "joint"):
            raise ValueError(f"temper must be 'likelihood' or 'joint'; got {self.temper!r}.")
        self._inverse_temperature(0.0)

    def length(self, planned: float) -> float:
        return self.fraction * planned if self.passes is None else self.passes

    def start(self, model: Model, n_data: int, rng: np.random.Generator) -> Heat:
        return Heat(self._inverse_temperature(0.0))

    def cool(self, heat: Heat, progress: Progress) -> Heat:
        position = progress.passes / self.length(progress.planned)
        if position >= 1.0:
            return Heat(1.0, finished=True)
        return Heat(self._inverse_temperature(position))

    def prior_weight(self, heat: Heat) -> float:
        return float(heat.inverse_temperature) if self.temper == "joint" else 1.0

    def _inverse_temperature(self, position: float) -> float:
        temperature = float(self.schedule(position))
        if not 1.0 <= temperature < np.inf:
            raise ValueError(
                f"schedule({position:g}) gave the temperature {temperature}; it must be >= 1."
            )
        return 1.0 / temperature
