"""What a temperature policy is, and the simplest one.

A policy is immutable; what changes during a run is its :class:`Heat`. The engine calls, each step,
``cool`` (move along with the run), ``solve`` (the local variables of a shard, at the temperatures
that the policy chooses) and ``update`` (learn from what the shards found).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tempering.models.base import Array, LocalStep, Model


class Heat(NamedTuple):
    """The state of a temperature policy.

    Attributes
    ----------
    inverse_temperature : float or array [N]
        s = 1/T, E_q[1/T_y], or one for each datum.
    weights : array [M] or None
        q(y), the distribution over the grid of temperatures (the paper's r).
    bound : float
        What q(y) adds to the tempered ELBO.
    finished : bool
        Whether the policy has come to T = 1 by itself.
    log_partition : array [M] or None
        log C on the grid, where it is computed once.
    level : float
        Common factor of all local inverse temperatures, while they are damped.
    first : float or None
        The temperature that annealing with an automatic start began at.

    Examples
    --------
    >>> from tempering import Annealing, schedules
    >>> from tempering.temperature import Heat, Progress
    >>> policy = Annealing(schedules.linear(4.0), passes=10)
    >>> policy.cool(Heat(), Progress(passes=0.0, step=1.0, planned=30.0)).inverse_temperature
    0.25
    """

    inverse_temperature: float | Array = 1.0
    weights: Array | None = None
    bound: float = 0.0
    finished: bool = False
    log_partition: Array | None = None
    level: float = 1.0
    first: float | None = None


class Progress(NamedTuple):
    """Where a run is: passes over the data made, passes made by one step, and passes planned.

    Examples
    --------
    >>> from tempering import Annealing, schedules
    >>> from tempering.temperature import Heat, Progress
    >>> policy = Annealing(schedules.linear(4.0), passes=10)
    >>> policy.cool(Heat(), Progress(passes=10.0, step=1.0, planned=30.0)).finished
    True
    """

    passes: float
    step: float
    planned: float

    @property
    def parts(self) -> tuple[float, float]:
        """The part of the run that is over before the step, and after it."""
        return self.passes / self.planned, (self.passes + self.step) / self.planned


@dataclass(frozen=True)
class Surroundings:
    """What a policy may look at when it updates: the step that was just made.

    Examples
    --------
    A policy of one's own reads it in ``update``:

    >>> from tempering import Annealing, Mixture, fit, schedules
    >>> from tempering.families import Dirichlet, Poisson
    >>> class Watched(Annealing):
    ...     def update(self, heat, local, surroundings):
    ...         print(f"pass {surroundings.progress.passes:g}: energy {local.energy:.1f}")
    ...         return super().update(heat, local, surroundings)
    >>> model = Mixture(Poisson(1), Dirichlet(1), [1.0], [1.0, 1.0])
    >>> policy = Watched(schedules.linear(2.0), passes=2)
    >>> result = fit(model, [[1], [2]], temperature=policy, max_passes=3)
    pass 0: energy -2.9
    pass 1: energy -3.2
    """

    model: Model
    data: Any
    expectations: Any
    scale: float
    progress: Progress


@dataclass(frozen=True)
class Untempered:
    """T = 1 throughout: plain variational inference. The base of the other policies.

    Examples
    --------
    >>> from tempering import Annealing, Untempered
    >>> Untempered().length(100), Annealing(passes=50).length(100)
    (0.0, 50)
    """

    #: Whether the tempered ELBO comes to rest before T = 1, as that of a learned temperature does.
    settles: ClassVar[bool] = False

    def length(self, planned: float) -> float:
        """Passes after which the temperature is surely 1, in a run of so many planned passes."""
        return 0.0

    def begin(self, model: Model, n_data: int, rng: np.random.Generator) -> Heat:
        """The state before the first step; an error here means before any work."""
        return Heat(finished=True)

    def cool(self, heat: Heat, progress: Progress) -> Heat:
        """Move along with the run, before the local step."""
        return heat

    def solve(
        self,
        heat: Heat,
        model: Model,
        data: Any,
        expectations: Any,
        rows: slice,
        before: LocalStep | None = None,
    ) -> LocalStep:
        """Solve one shard: ``rows`` is its place in the batch, ``before`` how a step left it."""
        return first_local_step(model, data, expectations, heat.inverse_temperature, before)

    def update(
        self, heat: Heat, local: LocalStep, surroundings: Surroundings
    ) -> tuple[LocalStep, Heat]:
        """Learn from the whole batch, after its shards were added up."""
        return local, heat

    def reads_energies(self, heat: Heat) -> bool:
        """Whether :meth:`update` will look at the energies of a batch, which cost a pass over it.

        A policy of one's own may look at anything, unless it says here that it does not.
        """
        return type(self) is not Untempered

    def prior_weight(self, heat: Heat) -> float:
        """The power of the prior p(β): 1, unless the joint is annealed."""
        return 1.0


def first_local_step(
    model: Model,
    data: Any,
    expectations: Any,
    inverse_temperature: float | Array,
    before: LocalStep | None,
) -> LocalStep:
    """The local step anew, or from what it was for the same data in the step before."""
    if before is None:
        return model.local_step(data, expectations, inverse_temperature)
    return model.continue_local_step(before, data, expectations, inverse_temperature)


def check_fraction(fraction: float | None) -> None:
    """Raise unless 0 < fraction <= 1, or None."""
    if fraction is not None and not 0.0 < fraction <= 1.0:
        raise ValueError(f"fraction must be above 0 and at most 1, or None; got {fraction}.")
