"""A search over optima: which run is next, from where, and which solution is retained.

best, others = plain inference
while the budget lasts:
    operator = draw(in proportion to its successes for its passes)
    tried = run from what the operator proposes, abandoned where it cannot become the best
    best, others = the better of best and tried, all others
result = run from the best, to its end
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from tempering.inference.callbacks import Callback, Report, progress_bar
from tempering.inference.checkpoint import CheckpointLike, part_of
from tempering.inference.engine import UNTEMPERED, Algorithm
from tempering.inference.executors import Executor, open_executor
from tempering.inference.fitting import fit
from tempering.inference.run import Constant, History, Record, Result
from tempering.inference.saddle import AT_SADDLE, SaddleWarning
from tempering.inference.sources import ArraySource, Source
from tempering.models.arguments import check_number, check_whole, shown
from tempering.models.base import Model
from tempering.search.components import Components
from tempering.search.journal import Journal
from tempering.search.moves import TRIED
from tempering.search.operators import OPERATORS, Operator, Reheat, Restart
from tempering.search.result import SearchResult, Trial
from tempering.search.runs import STEPS, Runs, Solution, as_arrays
from tempering.search.situation import Situation
from tempering.storage.state import stored
from tempering.temperature import COLD

#: Approximate price of a round, in plain fits. Fresh and heated starts may linger on a plateau for
#: half of it before they are abandoned.
ROUND = 0.3


@stored("search_state")
class State(NamedTuple):
    """All that changes from one round to the next."""

    best: Solution
    others: tuple[Solution, ...]
    trail: list[Trial]
    agreement: int = 0


def search(
    model: Model,
    data: Any,
    *,
    budget: float = 10.0,
    operators: Sequence[Operator] = OPERATORS,
    seed: int = 0,
    tolerance: float = 1e-3,
    max_passes: float = 1000.0,
    initial: Any = None,
    starts: Callable[[np.random.Generator], Any] | None = None,
    keep_local: bool = False,
    n_threads: int | None = None,
    executor: Executor | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
    checkpoint: CheckpointLike = None,
    resume: bool = True,
) -> SearchResult:
    """Search for the best optimum of a model, and fit it.

    The first run is plain variational inference. Then search operators propose other starts, in
    proportion to what they have found so far: fresh starts, the best solution heated and cooled
    again, and moves of the components that the model declares in ``components``, or that are found
    (some emptied and others split; some taken over from another solution). The best solution by
    ELBO is retained, so that the result is never below plain inference.

    Parameters
    ----------
    model : Model
        What to fit. The object is not changed; ``SearchResult.model`` has learned hyperparameters.
    data : array, CSR matrix or Source
        One datum a row, all of them at each step.
    budget : float
        Work of the search, in plain fits: 10 is the number of passes over the data that ten plain
        fits take, the first of them included.
    operators : sequence of Operator
        The search operators, by default all of :data:`tempering.search.OPERATORS`.
    seed : int
        The same seed gives a bit-identical result, on any number of threads and workers.
    tolerance : float
        A run has converged when the ELBO rises by less than this, in nats.
    max_passes : float
        Number of passes of a single run, at most.
    initial : Natural, optional
        λ that plain inference starts from, instead of a fresh start.
    starts : callable, optional
        Draws λ of a fresh start by a ``numpy.random.Generator``, instead of ``model.initialize``.
    keep_local : bool
        Keep q(z) of all data as ``SearchResult.local``.
    n_threads : int, optional
        Number of threads; by default one for each core.
    executor : Executor, optional
        What solves the shards of the data, such as ``tempering.cluster.DaskExecutor(client)``.
    callbacks : sequence of callables
        Each is called with a ``Report`` after each step of the first and last run, and after each
        round between them. A true value ends the search with the best solution so far.
    progress : bool
        Show a progress bar when standard error is a terminal.
    checkpoint : path or Checkpoint, optional
        A directory to save the search in. If the process is killed, rerun the same call; the result
        is bit-identical.
    resume : bool
        Resume from the checkpoint, if there is one; False starts over.

    Returns
    -------
    SearchResult
        The best solution, with the ``trail`` of the search.

    Examples
    --------
    Sixteen clusters, not all of which plain inference finds:

    >>> import numpy as np
    >>> from tempering import Mixture, fit, search
    >>> from tempering.families import Dirichlet, IsotropicGaussian
    >>> centres = np.array([(x, y) for x in range(4) for y in range(4)])
    >>> noise = np.random.default_rng(0).normal(scale=0.1, size=(640, 2))
    >>> data = np.repeat(centres, 40, axis=0) + noise
    >>> likelihood = IsotropicGaussian(2, 0.01)
    >>> prior = likelihood.conjugate.natural(np.zeros(2), 0.1)
    >>> model = Mixture(likelihood, Dirichlet(16), np.ones(16), prior)
    >>> found = search(model, data, seed=1)
    >>> round(fit(model, data, seed=1).elbo), round(found.elbo)
    (-3964, -1290)
    """
    check_number(budget, "budget", "at least 1", least=1)
    check_whole(0, seed=seed)
    if not isinstance(callbacks, Sequence):
        raise ValueError(f"callbacks must be a list of functions; got {shown(callbacks)}.")
    operators = _checked(operators)
    source = data if isinstance(data, Source) else ArraySource(data)
    if not source.whole:
        raise ValueError(
            "search takes all data at each step, but the source has minibatches. Search on a "
            "sample that fits in memory, then call fit(..., initial=result.posterior)."
        )
    if initial is None and starts is not None:
        initial = starts(np.random.default_rng(seed))
    settings = {
        "budget": budget,
        "operators": [repr(operator) for operator in operators],
        "seed": seed,
        "tolerance": tolerance,
        "max_passes": max_passes,
        "initial": initial,
    }
    stopped, found_by = False, ""

    def watched(report: Report) -> bool:
        nonlocal stopped
        for callback in observers:
            stopped = bool(callback(report)) or stopped
        return stopped

    with progress_bar(progress, "search", lambda: found_by) as bar:
        observers = [*callbacks, *([bar] if bar else [])]
        options: Any = {
            "max_passes": max_passes,
            "tolerance": tolerance,
            "n_threads": n_threads,
            "executor": executor,
            "progress": False,
            "resume": resume,
            "callbacks": [watched],
        }
        began = time.process_time()
        plain = _fitted(
            model,
            source,
            initial=initial,
            seed=seed,
            keep_local=keep_local,
            checkpoint=part_of(checkpoint, "plain"),
            **options,
        )
        first = Trial(
            "plain", plain.elbo, plain.history[-1].passes, time.process_time() - began, True
        )
        if stopped:
            return _result(plain, plain, [first], 0)
        with (
            Journal(part_of(checkpoint, "rounds"), source, model, settings) as journal,
            open_executor(executor, n_threads) as running,
            running.reading(source) as opened,
        ):
            algorithm = Algorithm(
                plain.model,
                UNTEMPERED,
                Constant(),
                running,
                source.size,
                math.inf,
                tolerance=tolerance,
            )
            runs = Runs(algorithm, opened, next(opened.batches(seed)), starts)
            state = journal.load() if resume else None
            if state is None:
                step = algorithm.advance(
                    algorithm.start(deepcopy(plain.posterior), np.random.default_rng(seed)),
                    runs.batch,
                )
                statistics = plain.model.unpack_components(as_arrays(step.local.statistics))
                best = Solution(plain.elbo, plain.posterior, statistics)
                state = State(best, (), [first._replace(passes=first.passes + 1.0)])
            for reached in _rounds(runs, state, operators, budget, seed):
                state = reached
                journal.save(state)
                found_by = f"  best by {_found_by(state)}, round {len(state.trail) - 1}"
                if watched(_report(state, source.size, budget)):
                    break
        if not any(trial.accepted for trial in state.trail[1:]):
            return _result(plain, plain, state.trail, state.agreement)
        last = _fitted(
            plain.model,
            source,
            initial=state.best.posterior,
            seed=seed,
            keep_local=keep_local,
            checkpoint=part_of(checkpoint, "last"),
            **options,
        )
    best = last if last.elbo >= plain.elbo else plain
    trail = [*state.trail, Trial("last", last.elbo, last.history[-1].passes, 0.0, best is last)]
    return _result(best, plain, trail, state.agreement)


def _rounds(
    runs: Runs,
    state: State,
    operators: Sequence[Operator],
    budget: float,
    seed: int,
) -> Iterator[State]:
    """Make rounds until the budget is spent, and yield the state after each."""
    components = Components.of(runs.model) or runs.components_found(seed)
    unit = state.trail[0].passes
    table, table_of, tabled = None, None, components is not None
    while (spent := sum(trial.passes for trial in state.trail)) < budget * unit:
        began, runs.spent = time.process_time(), 0.0
        # A stream for each round, so that a search that is resumed draws the same numbers.
        rng = np.random.default_rng([seed, len(state.trail)])
        if components is not None and tabled and table_of is not state.best:
            table = runs.responsibilities(state.best.posterior, components)
            table_of, tabled = state.best, table is not None
            if table is None or not state.trail[-1].accepted:
                runs.spent = 0.0  # a search that is resumed counts it once
        situation = Situation(runs, state.best, state.others, components, table, ROUND * unit)
        applicable = [operator for operator in operators if operator.applies(situation)]
        if not applicable:
            break
        operator = draw(applicable, state.trail, unit, rng)
        with np.errstate(all="ignore"):
            found = attempt(operator, situation, budget * unit - spent, rng)
        accepted = found is not None and found.bound > state.best.bound + 0.5 * runs.margin
        elbo = math.nan if found is None else found.bound
        trial = Trial(operator.name, elbo, runs.spent, time.process_time() - began, accepted)
        state = _after(state, found, trial, runs.margin, operator)
        yield state


def draw(
    operators: Sequence[Operator], trail: Sequence[Trial], unit: float, rng: np.random.Generator
) -> Operator:
    """Draw an operator, so that its share of the passes is in proportion to its success rate.

    The success rate is the number of accepted rounds for the passes that they all took, in plain
    fits. An operator with dear rounds is drawn less often.
    """
    chances = []
    for operator in operators:
        own = [trial for trial in trail if trial.operator == operator.name]
        spent = sum(trial.passes for trial in own) / unit
        rate = (1 + sum(trial.accepted for trial in own)) / (1.0 + spent)
        chances.append(rate * (1 + len(own)) / (ROUND + spent))
    shares = np.array(chances)
    return operators[int(rng.choice(len(operators), p=shares / shares.sum()))]


def attempt(
    operator: Operator, situation: Situation, most: float, rng: np.random.Generator
) -> Solution | None:
    """Run what an operator proposes; None where it proposes nothing."""
    runs, best = situation.runs, situation.best
    lingers = isinstance(operator, Restart | Reheat)
    patience = max(STEPS, int(0.5 * situation.most)) if lingers else STEPS
    try:
        candidate = operator.propose(situation, rng)
        if candidate is None:
            return None
        posterior = candidate.posterior
        if candidate.inverse_temperature < 1.0:
            posterior = runs.cool(posterior, candidate.inverse_temperature, rng)
        left = max(STEPS, most - runs.spent)
        found = runs.climb(posterior, left, floor=best.bound, patience=patience)
    except (ValueError, FloatingPointError, np.linalg.LinAlgError):
        return None  # a start that is no proper λ: a component without data, say
    return found if math.isfinite(found.bound) else None


def _after(
    state: State, found: Solution | None, trial: Trial, margin: float, operator: Operator
) -> State:
    """Return the state after a round."""
    best, others, agreement = state.best, state.others, state.agreement
    if found is not None and trial.accepted:
        best, others, agreement = found, (*others, best), 0
    elif found is not None and isinstance(operator, Restart | Reheat):
        same = abs(found.bound - best.bound) <= margin
        agreement += same and isinstance(operator, Restart)
        if not same:
            others = (*others, found)
    return State(best, others[-2 * TRIED :], [*state.trail, trial], agreement)


def _fitted(*arguments: Any, **options: Any) -> Result:
    """Return a fit; a saddle that it ends at is left by the search, or reported at its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SaddleWarning)
        return fit(*arguments, **options)


def _found_by(state: State) -> str:
    """Return the name of the operator that found the best solution."""
    return [trial.operator for trial in state.trail if trial.accepted][-1]


def _report(state: State, n_data: int, budget: float) -> Report:
    """Return what callbacks see after a round."""
    spent = sum(trial.passes for trial in state.trail)
    seconds = sum(trial.cpu_seconds for trial in state.trail)
    bound, seen = state.best.bound, int(spent * n_data)
    record = Record(
        len(state.trail) - 1, spent, seen, 1.0, 1.0, 1.0, bound, bound, seconds, "search", None
    )
    planned = budget * state.trail[0].passes
    return Report(record, state.best.posterior, COLD, planned, 0)


def _result(best: Result, plain: Result, trail: Sequence[Trial], agreement: int) -> SearchResult:
    """Return the best run as the result of the search."""
    if best.at_saddle:
        warnings.warn(AT_SADDLE, SaddleWarning, stacklevel=3)
    history = plain.history
    if best is not plain:
        before = sum(trial.passes for trial in trail[:-1])
        first = plain.history[-1]
        later = [
            record._replace(
                step=record.step + first.step + 1,
                passes=record.passes + before,
                data_seen=record.data_seen + first.data_seen,
                seconds=record.seconds + first.seconds,
            )
            for record in best.history
        ]
        history = History([*plain.history, *later])
    return SearchResult(
        **{**vars(best), "history": history}, trail=list(trail), agreement=agreement
    )


def _checked(operators: Sequence[Operator]) -> Sequence[Operator]:
    """Return the operators, or raise for what is not a list of them."""
    if not isinstance(operators, Sequence) or not operators:
        raise ValueError(f"operators must be a list of search operators; got {shown(operators)}.")
    for operator in operators:
        if not isinstance(operator, Operator):
            raise ValueError(
                f"operators must be instances of tempering.search.Operator; got {shown(operator)}."
            )
    return list(operators)
