"""Where adaptive tempering is, and what it sees of each step."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tempering.models.base import Array, LocalStep
from tempering.temperature.policy import NOT_A_NUMBER, Heat, Surroundings

#: What the progress bar tells of each phase.
PHASES = {
    "plain": "plain inference first",
    "plain to the end": "plain inference to its end",
    "cooling": "cooling",
    "settling": "settling at T = 1",
    "cooling again": "cooling again",
    "settling again": "settling at T = 1",
    "ramp": "cooling",
}

NO_BOUND = f"AdaptiveTempering goes by the ELBO, which here {NOT_A_NUMBER}"
TOO_HOT = (
    "AdaptiveTempering abandoned heating: at T = {:.3g} the ELBO is NaN. The fit continues at "
    "T = 1 from its best state. Perhaps p(x, z | β) to the power 1/T is not a distribution, as "
    "where z is an augmentation: then do not temper the terms of z (see docs/own-model.md)."
)
#: Where the first cooling ended far below plain inference, its energies tell nothing of the best,
#: whose components could all become alike at once: that is heated to this s.
WARM = 0.9


class Look(NamedTuple):
    """What one step shows. The unit is the spread of the data's energies, times their number."""

    bound: float
    energy: float
    unit: float
    excess: float  # what the bound gained beyond E ds, in units
    left: float  # what is still to be gained, if the excess goes on as it did, in units


@dataclass(frozen=True)
class AdaptiveHeat(Heat):
    """Where adaptive tempering is."""

    #: "plain" (variational inference at T = 1 from the start), "cooling", "settling" (at T = 1),
    #: "plain to the end" (when something else is above it), "cooling again", "settling again"; with
    #: minibatches "ramp".
    phase: str = "plain"
    waited: int = 0  # steps for which the temperature has been held
    bound_before: float = -math.inf  # L, E, the excess and s of the step before
    energy_before: float = 0.0
    excess_before: float = math.inf
    inverse_temperature_before: float = 1.0
    best: float = -math.inf  # bound at T = 1 so far, that of the state which the engine keeps
    best_settled: bool = False  # whether a fit would end there by itself
    first_bound: float = 0.0  # that of the first step
    apart: bool = False  # whether the first cooling ended far below plain inference
    plain_ended: bool = False  # whether plain inference was run to its end
    first_passes: float = 0.0  # until the first cooling had settled
    attempts: int = 0  # to find something better
    failures: int = 0  # how many ways have found nothing better
    samples_next: bool = False  # whether the next step fits a sample
    #: [n, 2]: s and E at each rest of the cooling; with minibatches s, and the passes until it.
    path: Array | None = None
    plain: Any = None  # with minibatches: λ of plain inference on the same batches
    lead: float = 0.0  # by how much the bounds of the ramp were above its own, at T = 1
    seed: int = 0  # what the pushes are drawn from
    step: int = 0

    @property
    def revises(self) -> bool:
        """At T = 1 all along: else plain inference, and what is compared with it, would be less."""
        return self.finished or self.inverse_temperature == 1.0

    @property
    def telling(self) -> str:
        if self.finished:
            return ""
        # The first step has none to be compared with, and always waits.
        if self.waited > 1 and self.phase in ("cooling", "cooling again"):
            hot = 1.0 / float(self.inverse_temperature)
            return f"holding at T = {hot:.3g}: components are separating"
        return PHASES[self.phase]

    def jump(self, phase: str, inverse_temperature: float, **changes: Any) -> AdaptiveHeat:
        """To another phase, the first step of which has none to be compared with."""
        return replace(
            self,
            phase=phase,
            inverse_temperature=inverse_temperature,
            waited=0,
            bound_before=-math.inf,
            excess_before=math.inf,
            settled=False,
            **changes,
        )

    def after(self, look: Look) -> AdaptiveHeat:
        """With a step to compare the next one with."""
        return replace(
            self,
            first_bound=look.bound if self.step == 0 else self.first_bound,
            bound_before=look.bound,
            energy_before=look.energy,
            excess_before=look.excess,
            inverse_temperature_before=float(self.inverse_temperature),
        )

    def where_lacking(self, part: float) -> float:
        """The s at which the first cooling still lacked this part of its energy."""
        assert self.path is not None
        if self.apart:
            return WARM
        s, energy = self.path.T
        return float(s[np.argmax(energy >= energy.max() - part * np.ptp(energy))])

    def look(self, local: LocalStep, surroundings: Surroundings) -> Look:
        """What a step at the temperature of this state shows, beside the step before."""
        energies = np.asarray(local.energies)
        scale = surroundings.scale
        energy, mean = scale * float(energies.sum()), float(energies.mean())
        # Data that are all alike have no spread.
        unit = scale * local.n * max(float(energies.std()), 1e-6 * (1.0 + abs(mean)))
        s = float(self.inverse_temperature)
        divergence = surroundings.model.divergence(surroundings.posterior)
        bound = s * energy + scale * local.entropy - divergence
        rise = (s - self.inverse_temperature_before) * self.energy_before
        excess = (bound - self.bound_before - rise) / unit
        if excess <= 0.0:
            left = 0.0
        elif excess >= self.excess_before or self.excess_before == math.inf:
            left = math.inf  # it grows: nobody knows how far
        else:
            left = excess**2 / (self.excess_before - excess)
        return Look(bound, energy, unit, excess, left)
