"""What a temperature policy is, and the simplest one.

A policy is immutable; what changes during a run is its state, a :class:`Heat` or a child of it. The
engine calls, each step, ``cool`` (move along with the run), ``solve`` (the local variables of a
shard, at the temperatures that the policy chooses) and ``update`` (learn from what the shards
found). A policy of one's own overrides what it needs of :class:`TemperaturePolicy`, ``begin`` at
least.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from tempering.models.arguments import as_numbers, check_number, shown
from tempering.models.base import Array, LocalStep, Model
from tempering.storage.state import stored


class TemperingWarning(UserWarning):
    """A temperature policy could not temper a fit, or not as planned."""


@stored("heat")
@dataclass(frozen=True)
class Heat:
    """The state of a temperature policy; one with more to remember has a child of it.

    A child is a frozen dataclass too. It goes into checkpoints by itself.

    Attributes
    ----------
    inverse_temperature : float or array [N]
        s = 1/T, above 0 and at most 1; E_q[1/T_y]; or one for each datum.
    bound : float
        What a learned temperature adds to the tempered ELBO.
    finished : bool
        Whether the policy has come to T = 1 by itself.

    Examples
    --------
    >>> from tempering import Annealing, schedules
    >>> from tempering.temperature import Progress
    >>> policy = Annealing(schedules.linear(4.0), passes=10)
    >>> heat = policy.begin(None, n_data=100, rng=None)
    >>> policy.cool(heat, Progress(passes=5.0, step=1.0, planned=30.0)).inverse_temperature
    0.4
    """

    inverse_temperature: float | Array = 1.0
    bound: float = 0.0
    finished: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        stored(f"{cls.__module__}.{cls.__qualname__}")(cls)

    def __post_init__(self) -> None:
        what = "1/T, above 0 and at most 1, for all data or for each"
        s = as_numbers(self.inverse_temperature, "inverse_temperature", what)
        # A mean over a grid that ends in 1 may be a little above it, by rounding.
        if s.ndim > 1 or not np.all((s > 0) & (s < 1.000001)):
            raise ValueError(
                f"inverse_temperature must be {what}; got {shown(self.inverse_temperature)}."
            )

    @property
    def revises(self) -> bool:
        """Whether λ is what a model may revise after the step, as its own at T = 1."""
        return self.finished

    @property
    def phase(self) -> str:
        """Return what a progress bar calls it; nothing, where T says it all."""
        return ""

    @property
    def weights(self) -> Array | None:
        """q(y), the distribution over a grid of temperatures, where the policy learns one."""
        return None


#: Of an ELBO: what is wrong, and what to do.
NOT_A_NUMBER = (
    "is not a number. Either the data hold NaN, infinity or else what the model cannot be of (its "
    "`check(data)` may refuse that before any work), or the model gives an energy, an entropy or a "
    "divergence that is none: tempering.testing.check_model(model, data) tells which."
)
#: Passes of a fit for which none are asked for.
USUAL_PASSES = 100.0
#: The state of a policy at T = 1.
COLD = Heat(finished=True)

State = TypeVar("State", bound=Heat)


class Progress(NamedTuple):
    """Where a run is: passes over the data made, passes made by one step, and passes planned."""

    passes: float
    step: float
    planned: float

    @property
    def parts(self) -> tuple[float, float]:
        """The part of the run that is over before the step, and after it."""
        return self.passes / self.planned, (self.passes + self.step) / self.planned


class Surroundings(NamedTuple):
    """What a policy may look at when it updates: the step that was just made."""

    model: Model
    data: Any
    posterior: Any
    expectations: Any
    scale: float
    progress: Progress


class Perturbation(NamedTuple):
    """What a policy asks the engine to mix into a step: ``share`` of its statistics from
    ``n_rows`` data and a fresh start.

    >>> Perturbation(share=0.02, n_rows=20)
    Perturbation(share=0.02, n_rows=20)
    """

    share: float
    n_rows: int


#: A step as it is.
UNPERTURBED = Perturbation(0.0, 0)


@dataclass(frozen=True)
class TemperaturePolicy(ABC, Generic[State]):
    """What the engine asks of a policy. By itself it stays at the temperature that it begins at.

    Examples
    --------
    One that cools by a tenth in each pass:

    >>> from dataclasses import replace
    >>> from tempering import Mixture, fit
    >>> from tempering.families import Dirichlet, Poisson
    >>> from tempering.temperature import Heat, TemperaturePolicy
    >>> class Tenths(TemperaturePolicy[Heat]):
    ...     def begin(self, model, n_data, rng):
    ...         return Heat(inverse_temperature=0.8)
    ...     def cool(self, heat, progress):
    ...         s = min(1.0, 0.8 + 0.1 * progress.passes)
    ...         return Heat(inverse_temperature=s, finished=s == 1.0)
    >>> model = Mixture(Poisson(1), Dirichlet(1), [1.0], [1.0, 1.0])
    >>> result = fit(model, [[1], [2]], temperature=Tenths())
    >>> [record.inverse_temperature for record in result.history][:3]
    [0.8, 0.9, 1.0]
    """

    #: Passes that a batch fit has with it, where none are asked for.
    usual_passes: ClassVar[float] = USUAL_PASSES
    #: Whether it can work with minibatches, too.
    takes_minibatches: ClassVar[bool] = True

    def settles(self, heat: State) -> bool:
        """Whether a tempered ELBO that rests will stay there, as that of a learned temperature."""
        return False

    def length(self, progress: Progress) -> float:
        """Passes after which the temperature is surely 1, wherever in the run this is asked.

        0 promises nothing: whatever the policy does, the last pass is at T = 1 (the last step, at
        least), unless ``fit`` was told not to finish.
        """
        return 0.0

    @abstractmethod
    def begin(self, model: Model, n_data: int, rng: np.random.Generator) -> State:
        """The state before the first step; an error here means before any work."""

    def cool(self, heat: State, progress: Progress) -> State:
        """Move along with the run, before the local step."""
        return heat

    def solve(
        self,
        heat: State,
        model: Model,
        data: Any,
        expectations: Any,
        rows: slice,
        before: LocalStep | None = None,
    ) -> LocalStep:
        """Solve one shard: ``rows`` is its place in the batch, ``before`` how a step left it."""
        if before is None:
            return model.local_step(data, expectations, heat.inverse_temperature)
        return model.continue_local_step(before, data, expectations, heat.inverse_temperature)

    def update(
        self, heat: State, local: LocalStep, surroundings: Surroundings
    ) -> tuple[LocalStep, State]:
        """Learn from the whole batch, after its shards were added up."""
        return local, heat

    def reads_energies(self, heat: State) -> bool:
        """Whether :meth:`update` will look at the energies of a batch, which cost a pass over it.

        True, as a policy of one's own may look at anything; the policies here know better.
        """
        return True

    def perturb(self, heat: State) -> Perturbation:
        """Return how the step at this state is to be perturbed; by default not at all."""
        return UNPERTURBED

    def prior_weight(self, heat: State) -> float:
        """The power of the prior p(β): 1, unless the joint is annealed."""
        return 1.0


@stored("untempered")
@dataclass(frozen=True)
class Untempered(TemperaturePolicy[Heat]):
    """T = 1 throughout: plain variational inference.

    Examples
    --------
    >>> from tempering import Annealing, Untempered
    >>> from tempering.temperature import Progress
    >>> whole_run = Progress(passes=0.0, step=1.0, planned=100.0)
    >>> Untempered().length(whole_run), Annealing(fraction=0.5).length(whole_run)
    (0.0, 50.0)
    """

    def begin(self, model: Model, n_data: int, rng: np.random.Generator) -> Heat:
        return COLD

    def reads_energies(self, heat: Heat) -> bool:
        return False


def check_fraction(fraction: float | None) -> None:
    """Raise unless 0 < fraction <= 1, or None."""
    if fraction is not None:
        check_number(fraction, "fraction", "above 0 and at most 1, or None", above=0, most=1)
