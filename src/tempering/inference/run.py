"""What a run is made of: its step sizes, state from step to step, history, and its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tempering.inference.sources import ArraySource
from tempering.models.arguments import check_number, check_whole
from tempering.models.base import Array, LocalStep, Model
from tempering.models.natural import entry
from tempering.models.threads import one_blas_thread
from tempering.storage.state import stored
from tempering.temperature import Heat, Progress, TemperaturePolicy, Untempered

#: ρ_t of the global update, t = 1, 2, …
LearningRate = Callable[[int], float]


@dataclass(frozen=True)
class Constant:
    """ρ_t = ρ. With ρ = 1 and the whole data as the batch: coordinate ascent.

    >>> Constant(1.0)(7)
    1.0
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        check_number(self.rate, "rate", "above 0 and at most 1", above=0, most=1)

    def __call__(self, t: int) -> float:
        return self.rate


@dataclass(frozen=True)
class RobbinsMonro:
    """ρ_t = (τ + t)^−κ (Hoffman et al., 2013).

    Parameters
    ----------
    delay : float
        τ >= 0: makes the first steps smaller.
    decay : float
        κ in [0.5, 1]; above 0.5, for convergence.
    hold : float
        So many steps have the size of the first, and t counts from there: while the temperature
        falls, the optimum moves, and smaller steps would be left behind.
    pace : float
        How fast t counts from there.

    Examples
    --------
    >>> RobbinsMonro(delay=15.0, decay=0.5 + 0.25)(1)
    0.125
    """

    delay: float = 1024.0
    decay: float = 0.7
    hold: float = 0.0
    pace: float = 1.0

    def __post_init__(self) -> None:
        check_number(self.delay, "delay", "0 or more", least=0)
        check_number(self.decay, "decay", "from 0.5 to 1", least=0.5, most=1)
        check_number(self.hold, "hold", "0 or more", least=0)
        check_number(self.pace, "pace", "positive", above=0)

    def __call__(self, t: int) -> float:
        return (float(self.delay) + max(self.pace * (t - self.hold), 1.0)) ** -self.decay


#: τ of a run is this part of its steps, and this at most; and steps shrink after this part of it.
DELAY, LONGEST_DELAY, HELD = 0.01, 1024.0, 0.5


def usual_rate(
    temperature: TemperaturePolicy, max_passes: float, steps_a_pass: float, decay: float = 0.7
) -> RobbinsMonro:
    """The step sizes of a run in minibatches.

    Large enough to move a short run too, and as long as the temperature falls, or for half of the
    run, they do not shrink. The last one is as small in any case.
    """
    hot = temperature.length(Progress(0.0, 1.0 / steps_a_pass, max_passes))
    held = max(HELD * max_passes, hot if hot <= max_passes else 0.0)
    delay = min(LONGEST_DELAY, DELAY * max_passes * steps_a_pass)
    pace = (1.0 - HELD) * max_passes / max(max_passes - held, 1.0 / steps_a_pass)
    return RobbinsMonro(delay, decay, hold=held * steps_a_pass, pace=pace)


@dataclass(frozen=True)
class Settling:
    """ρ_t of another rule up to a step; from there on λ is the mean of what the steps find.

    With the step size ρ, λ remembers the last 1/ρ steps. From the step ``start`` on it remembers
    them all: 1/ρ grows by 1 a step. What is random in single steps cancels out.

    Parameters
    ----------
    rule : callable
        ρ_t up to ``start``.
    start : int
        The last step of the rule, at least 1.

    Examples
    --------
    >>> rates = Settling(Constant(0.1), start=100)
    >>> rates(100), rates(101), rates(110)
    (0.1, 0.09090909090909091, 0.05)
    """

    rule: LearningRate
    start: int

    def __post_init__(self) -> None:
        check_number(self.start, "start", "at least 1", least=1)

    def __call__(self, t: int) -> float:
        if t <= self.start:
            return self.rule(t)
        return 1.0 / (1.0 / self.rule(self.start) + t - self.start)


class Record(NamedTuple):
    """One step; columns of a history have the names of these fields."""

    step: int  # steps made before this one
    passes: float  # over the data, this step included
    data_seen: int  # data visited, this step included
    temperature: float  # 1 / E[1/T]; with local temperatures, 1 / the mean of E[1/T_i]
    inverse_temperature: float  # E[1/T]
    learning_rate: float  # ρ
    # The bound that this step ascends, annealed or tempered, with q(T) included; from a minibatch
    # an unbiased estimate. NaN at steps where it was not asked for.
    tempered_elbo: float
    elbo: float  # of the original model (T = 1) at the current q(β) and q(z); NaN likewise
    seconds: float  # since the start of the run, without those spent compiling
    phase: str  # "tempered", or "final" for the finishing phase at T = 1
    weights: np.ndarray | None  # q(y) over the grid of temperatures, [M]


#: The columns of a history that are numbers, and their types.
COLUMNS = {
    name: "i8" if name in ("step", "data_seen") else "f8"
    for name in Record._fields
    if name not in ("phase", "weights")
}


def _take_columns(history: History) -> dict[str, Any]:
    """Column by column; the weights one after the other, with their lengths."""
    weights = [np.empty(0) if r.weights is None else np.asarray(r.weights, float) for r in history]
    return {
        **{name: history[name].astype(kind) for name, kind in COLUMNS.items()},
        # A list stands in the JSON part: the arrays of two runs of one fit have the same bytes.
        "seconds": history["seconds"].tolist(),
        "final": np.array([record.phase == "final" for record in history], bool),
        "weights": np.concatenate([np.empty(0), *weights]),
        "n_weights": np.array([part.size for part in weights], np.int64),
    }


def _make_history(parts: dict[str, Any]) -> History:
    weights = np.split(parts["weights"].ravel(), np.cumsum(parts["n_weights"]))[:-1]
    columns = {name: np.asarray(parts[name], kind).tolist() for name, kind in COLUMNS.items()}
    columns["phase"] = ["final" if final else "tempered" for final in parts["final"]]
    columns["weights"] = [part if part.size else None for part in weights]
    rows = zip(*columns.values(), strict=True)
    return History([Record(**dict(zip(columns, row))) for row in rows])


@stored("history", take=_take_columns, make=_make_history)
class History(Sequence[Record]):
    """The records of a run; a column of them by name.

    >>> history = History()
    >>> len(history)
    0
    """

    def __init__(self, records: Sequence[Record] = ()):
        self._records = list(records)

    def append(self, record: Record) -> None:
        """Add the newest record."""
        self._records.append(record)

    def replace_last(self, record: Record) -> None:
        """Put a record in the place of the newest one."""
        self._records[-1] = record

    def __getitem__(self, index: Any) -> Any:
        """A record by its index, or a column (array) by its name."""
        if isinstance(index, str):
            return np.array([getattr(record, index) for record in self._records])
        if isinstance(index, slice):
            return History(self._records[index])
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    @property
    def final_phase_start(self) -> int | None:
        """The step at which the finishing phase at T = 1 began; None if it never did."""
        return next((record.step for record in self if record.phase == "final"), None)

    def __repr__(self) -> str:
        return f"History({len(self)} steps, final phase from step {self.final_phase_start})"


@stored("state")
class State(NamedTuple):
    """All that changes from one step to the next."""

    posterior: Any
    heat: Heat
    step: int = 0
    data_seen: int = 0
    solved: tuple[LocalStep, ...] = ()  # of the shards, where the next step starts from them


class Run(NamedTuple):
    """One restart between two steps: all that it takes to go on from there."""

    model: Model  # with what it has learned
    state: State
    tempered_heat: Heat
    history: History
    previous: float = -math.inf  # the bound, when it was evaluated last
    converged: bool = False
    over: bool = False
    seconds: float = 0.0
    escapes: int = 0  # how often it was perturbed off a saddle
    at_saddle: bool = False
    resting: bool = False  # whether it is to be perturbed, to distinguish an optimum from a saddle


@dataclass(frozen=True, repr=False)
class Result:
    """A fitted posterior. It prints as a small table; the attributes have the whole.

    Attributes
    ----------
    posterior : Natural
        λ, the natural parameters of q(β).
    elbo : float
        ELBO of the original model (T = 1) at the posterior, over all data.
    history : History
        Step by step.
    converged : bool
        Whether the ELBO rose by less than the tolerance at the end (batch inference only).
    heat : Heat
        The temperatures at the end of the tempered phase.
    model : Model
        The model with the hyperparameters that the best restart has learned.
    restart_elbos : list of float
        The ELBO that each restart reached; the posterior is that of the best.
    local : array [N, ...] or None
        q(z) of the data of the fit, with ``fit(..., keep_local=True)``: probabilities of the
        components of a mixture, of the states of each row of all sequences, expected factors.
    at_saddle : bool
        Whether it ended where a push would lead higher; then there was a ``SaddleWarning``.
    temperature : TemperaturePolicy or None
        The policy of the fit.
    warnings : tuple of str
        The warnings of the fit: of a saddle, and of an ELBO that is not a number.

    Examples
    --------
    >>> from tempering import Mixture, fit
    >>> from tempering.families import Dirichlet, Poisson
    >>> model = Mixture(Poisson(1), Dirichlet(1), [1.0], [1.0, 1.0])
    >>> result = fit(model, [[1], [2]])
    >>> result.posterior.components, round(result.elbo, 3), result.converged
    (array([[4., 3.]]), -3.296, True)
    >>> result
    model        Mixture
    ELBO         -3.296
    passes       7
    temperature  T = 1 throughout
    converged    yes
    warnings     none

    What was fitted tells how probable other data are, and makes more of them:

    >>> result.predictive([[0], [9]]).round(2), result.simulate([[0]] * 4)[0].shape
    (array([-1.15, -8.23]), (4, 1))
    """

    posterior: Any
    elbo: float
    history: History
    converged: bool
    heat: Heat
    model: Model
    restart_elbos: list[float] = field(default_factory=list)
    local: Any = None
    at_saddle: bool = False
    temperature: TemperaturePolicy | None = None
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        converged = "yes" if self.converged else "no"
        hottest, coldest, passes = 1.0, 1.0, 0.0
        if len(self.history):
            if self.history[0].passes < 1:  # in batch, the first step is a whole pass
                converged = "not tested (minibatches)"
            temperatures, passes = self.history["temperature"], self.history[-1].passes
            hottest, coldest = temperatures.max(), temperatures[-1]
        heat = f"T from {hottest:.4g} to {coldest:.4g}" if hottest > 1.0 else "T = 1 throughout"
        policy = self.temperature
        if policy is not None and not isinstance(policy, Untempered):
            heat = f"{type(policy).__name__}, {heat}"
        rows = {
            "model": type(self.model).__name__,
            "ELBO": "not computed" if math.isnan(self.elbo) else f"{self.elbo:,.3f}",
            "passes": f"{passes:g}",
            "temperature": heat,
            "converged": converged,
            "warnings": f"\n{'':13}".join(self.warnings) or "none",
        }
        return "\n".join(f"{name:13}{text}" for name, text in rows.items())

    def solve_local(self, data: Any) -> Any:
        """q(z) [n, ...] of these data, as the model's local step gives it."""
        with one_blas_thread():
            return local_of(self.model, self.posterior, self._checked(data))

    def predictive(self, data: Any, n_draws: int = 100, seed: int = 0) -> Array:
        """log ∫ p(x_i | β) q(β) dβ of each datum [n]: the score of data that were held out.

        Exact where the model knows how, otherwise the mean over draws of β from q(β).
        """
        check_whole(n_draws=n_draws)
        check_whole(0, seed=seed)
        data, rng = self._checked(data), np.random.default_rng(seed)
        with one_blas_thread():
            return self.model.predictive(data, self.posterior, n_draws, rng)

    def draw(self, n: int = 1, seed: int = 0) -> dict[str, Any]:
        """n draws of β from q(β), by part of the posterior, with shape [n, ...]."""
        check_whole(n=n)
        check_whole(0, seed=seed)
        with one_blas_thread():
            return self.model.draw(self.posterior, n, np.random.default_rng(seed))

    def simulate(self, like: Any, n_draws: int = 1, seed: int = 0) -> list[Any]:
        """Data like these from the posterior predictive distribution, once for each draw of β."""
        like, draws = self._checked(like), self.draw(n_draws, seed)
        rng = np.random.default_rng([seed, 1])
        with one_blas_thread():
            return [self.model.simulate(entry(draws, i), like, rng) for i in range(n_draws)]

    def _checked(self, data: Any) -> Any:
        """Data as a fit would take them."""
        rows = ArraySource(data).data
        self.model.check(rows)
        return rows


def local_of(model: Model, posterior: Any, data: Any) -> Any:
    """q(z) of these data; an error tells how a model gives it."""
    local = model.local_variables(data, model.expectations(posterior))
    if local is None:
        raise ValueError(
            f"the local_step of {type(model).__name__} gives no q(z): have it return "
            "LocalStep(..., local=q)."
        )
    return local
