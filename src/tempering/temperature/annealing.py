"""Annealed variational inference (AVI): the temperature follows a schedule.

The annealed ELBO is  −KL(q(β) ‖ p(β)) + Σ_i ( s E_q[log p(x_i, z_i | β)] + H(q(z_i)) )  with
s = 1/T(progress): Eq. 4 of Mandt et al. (2016).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat, cast

import numpy as np

from tempering.models.arguments import check_choice, check_number, takes
from tempering.models.base import LocalStep, Model
from tempering.storage.state import stored
from tempering.temperature.grid import exponential_temperatures
from tempering.temperature.policy import (
    Heat,
    Progress,
    Surroundings,
    TemperaturePolicy,
    check_fraction,
)
from tempering.temperature.schedules import Schedule, linear_inverse
from tempering.temperature.tempering import TemperingHeat, VariationalTempering

#: What finds the start, where the data are to find it: one update of variational tempering.
FINDER = VariationalTempering(exponential_temperatures(1000.0, 400), fraction=None)

MAKES_ONE = (
    "with start='auto', schedule must make a schedule from its first temperature, as "
    "schedules.linear does"
)


@dataclass(frozen=True)
class AnnealingHeat(Heat):
    """Where annealing is; with an automatic start, what finds it, and the temperature it found."""

    finder: TemperingHeat | None = None
    first: float | None = None


@stored("annealing")
@dataclass(frozen=True)
class Annealing(TemperaturePolicy[AnnealingHeat]):
    """Cool along a schedule, then stay at T = 1.

    Parameters
    ----------
    schedule : callable
        Temperature as a function of progress 0 … 1 through the annealed part of the run; with
        ``start="auto"``, a function that makes such a schedule from its first temperature. The
        default is ``linear_inverse``, from T = 5 unless the start is found automatically.
    passes : float, optional
        Length of the annealed part in passes over the data (iterations, in batch inference).
    fraction : float
        Its length as a part of the planned run, if ``passes`` is not given.
    temper : {"likelihood", "joint"}
        Whether to temper only the likelihood, as in the paper, or the prior p(β) too, as in
        earlier work (Katahira et al., 2008).
    start : {"auto"}, optional
        Begin at the temperature that variational tempering would choose after the first local step,
        which depends on how badly the initial parameters fit. The model must have what VT needs.

    Examples
    --------
    >>> from tempering import schedules
    >>> fixed = Annealing(schedules.linear(10.0), passes=50)
    >>> found = Annealing(schedules.linear, passes=50, start="auto")
    """

    schedule: Schedule | Callable[[float], Schedule] | None = None
    passes: float | None = None
    fraction: float = 2 / 3
    temper: Literal["likelihood", "joint"] = "likelihood"
    start: Literal["auto"] | None = None

    def __post_init__(self) -> None:
        check_fraction(self.fraction)
        if self.fraction is None and self.passes is None:
            raise ValueError("an annealed part needs a length: give fraction or passes; got None.")
        if self.passes is not None:
            check_number(self.passes, "passes", "positive", above=0)
        check_choice(self.temper, "temper", "likelihood", "joint")
        check_choice(self.start, "start", "auto", None)
        if self.schedule is None:
            shape = linear_inverse if self.start == "auto" else linear_inverse(5.0)
            object.__setattr__(self, "schedule", shape)
        if not takes(self.schedule, 0.0):
            is_one = "schedule must be a function of progress, such as schedules.linear(5.0)"
            what = MAKES_ONE if self.start == "auto" else is_one
            raise ValueError(f"{what}; got {self.schedule!r}.")
        self._inverse_temperature(0.0, first=2.0)

    @property
    def first_temperature(self) -> float | None:
        """The temperature at the start; None where the data are to find it."""
        return 1.0 / self._inverse_temperature(0.0) if self.start is None else None

    def length(self, progress: Progress) -> float:
        return self.fraction * progress.planned if self.passes is None else self.passes

    def begin(self, model: Model, n_data: int, rng: np.random.Generator) -> AnnealingHeat:
        if self.start == "auto":
            found = FINDER.begin(model, n_data, rng)
            return AnnealingHeat(found.inverse_temperature, finder=found)
        return AnnealingHeat(self._inverse_temperature(0.0))

    def cool(self, heat: AnnealingHeat, progress: Progress) -> AnnealingHeat:
        position = progress.passes / self.length(progress)
        if position >= 1.0:
            return AnnealingHeat(finished=True)
        if heat.finder is not None:
            return heat
        return AnnealingHeat(self._inverse_temperature(position, heat.first), first=heat.first)

    def update(
        self, heat: AnnealingHeat, local: LocalStep, surroundings: Surroundings
    ) -> tuple[LocalStep, AnnealingHeat]:
        """Where the start is to be found, the first local step finds it."""
        if heat.finder is None:
            return local, heat
        local, found = FINDER.update(heat.finder, local, surroundings)
        s = float(found.inverse_temperature)
        return local, AnnealingHeat(s, first=1.0 / s)

    def reads_energies(self, heat: AnnealingHeat) -> bool:
        """Only to find where to start."""
        return heat.finder is not None and FINDER.reads_energies(heat.finder)

    def prior_weight(self, heat: AnnealingHeat) -> float:
        return float(heat.inverse_temperature) if self.temper == "joint" else 1.0

    def _inverse_temperature(self, position: float, first: float | None = None) -> float:
        schedule: Any = self.schedule
        if self.start == "auto":
            schedule = schedule(first)
            if not takes(schedule, position):
                raise ValueError(f"{MAKES_ONE}; schedule({first}) gave {schedule!r}.")
        temperature = cast(Schedule, schedule)(position)
        if np.ndim(temperature) or not isinstance(temperature, SupportsFloat):
            raise ValueError(f"schedule({position:g}) gave {temperature!r}; it must give a number.")
        if not 1.0 <= float(temperature) < np.inf:
            raise ValueError(
                f"schedule({position:g}) gave the temperature {temperature}; it must be >= 1."
            )
        return 1.0 / float(temperature)
