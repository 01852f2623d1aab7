"""Algorithm 1 of Mandt et al. (2016), "Annealed or tempered SVI", once, for every model.

Batch coordinate ascent is the case of one batch that is the whole data and step size 1; stochastic
variational inference has minibatches and a Robbins-Monro step; the temperature policy decides
whether it is plain VI, AVI, VT or LVT.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from tempering.inference.callbacks import Callback, Report
from tempering.inference.checkpoint import Restarts
from tempering.inference.executors import Executor, Serial, SolveShard, add_in_pairs
from tempering.inference.run import History, LearningRate, Record, Result, Run, State, local_of
from tempering.inference.saddle import MOST_ESCAPES, leave_saddle
from tempering.inference.sources import Batch, Source
from tempering.models.arguments import check_number
from tempering.models.base import LocalStep, Model, Start, start_of
from tempering.models.compilation import working_seconds
from tempering.temperature import COLD, Heat, Progress, Surroundings, TemperaturePolicy, Untempered

UNTEMPERED = Untempered()

#: Asks the callbacks whether to stop, after a step that made this record and state.
Stops = Callable[[Record, State], bool]


class Step(NamedTuple):
    """What one turn of the loop made."""

    state: State
    local: LocalStep
    tempered_elbo: float
    elbo: float


@dataclass(frozen=True)
class Algorithm:
    """Algorithm 1 with its choices made: a model, a temperature policy, step sizes, an executor.

    Examples
    --------
    The loop by hand, a step at a time:

    >>> import numpy as np
    >>> from tempering import Mixture, Untempered
    >>> from tempering.families import Dirichlet, Poisson
    >>> from tempering.inference import Algorithm, ArraySource, Batch, Constant
    >>> from tempering.inference.executors import Serial
    >>> model, data = Mixture(Poisson(1), Dirichlet(1), [1.0], [1.0, 1.0]), np.array([[1], [2]])
    >>> algorithm = Algorithm(model, Untempered(), Constant(), Serial(), 2, planned_passes=10)
    >>> rng = np.random.default_rng(0)
    >>> state = algorithm.start(model.initialize(ArraySource(data), rng), rng)
    >>> algorithm.advance(state, Batch(data)).state.posterior.components
    array([[4., 3.]])
    """

    model: Model
    temperature: TemperaturePolicy
    learning_rate: LearningRate
    executor: Executor
    n_data: int
    planned_passes: float
    #: Whether a step starts from the q(z) of the one before: each batch must be the whole data.
    continues: bool = False
    #: Rise of the ELBO, in nats, under which a batch fit has converged.
    tolerance: float = 0.0
    #: Whether to end with a phase at T = 1.
    finish: bool = True
    #: Steps between two evaluations of the bounds.
    elbo_every: int = 1

    def start(self, posterior: Any, rng: np.random.Generator) -> State:
        """Line 1: λ and T at step 0."""
        return State(posterior, self.temperature.begin(self.model, self.n_data, rng))

    def advance(self, state: State, batch: Batch, evaluate: bool = True) -> Step:
        """One turn of the loop; with ``evaluate``, the bounds at its λ, q(z) and q(T) too."""
        model, temperature, posterior = self.model, self.temperature, state.posterior
        scale = self.n_data / batch.size
        progress = self.progress(state, batch)

        # Line 7, annealing: reduce T according to schedule.
        heat = temperature.cool(state.heat, progress)
        if heat.finished:
            temperature = UNTEMPERED

        # Line 4: local variational parameters φ = E_λ[η_l] / T.
        expected = model.expectations(posterior)

        parts = list(zip_longest(batch.shards(model.shard_size), state.solved))
        terms = evaluate or temperature.reads_energies(heat)
        solve = SolveShard(
            temperature, heat, model, expected, terms, len(parts) > 1, keeps=self.continues
        )
        solved: Sequence[LocalStep] = ()
        if self.continues:
            solved = self.executor.map(solve, parts)
            local = add_in_pairs(solved)
        else:
            local = self.executor.add_up(solve, parts)

        rate = self.learning_rate(state.step + 1)
        check_number(rate, f"learning_rate({state.step + 1})", "from 0 to 1", least=0, most=1)

        revises = heat.revises

        # Line 8, variational tempering: update T.
        surroundings = Surroundings(
            model, batch.data, posterior, expected, scale, progress, rate, self.tolerance
        )
        local, heat = temperature.update(heat, local, surroundings)

        prior_weight = temperature.prior_weight(heat)
        nothing = math.nan, math.nan
        bounds = self._bounds(posterior, local, heat, prior_weight) if evaluate else nothing

        # Line 5: intermediate global parameters λ̂ = α + (N/B) Σ_i E[t(x_i, z_i)] / T_i.
        target = prior_weight * model.prior() + scale * local.statistics

        # Line 6: λ ← (1 − ρ) λ + ρ λ̂.
        if local.found_at is not None:
            posterior = local.found_at
        posterior = model.global_step(posterior, target, rate)
        # Where it only returns, this is the state that is given up.
        if heat.finished and not heat.returns:
            model.learn_hyperparameters(local, posterior, rate)
        if (revises or heat.finished) and (heat.keeps or not heat.returns):
            posterior = model.revise(posterior, *progress.parts)

        seen = state.data_seen + batch.size + heat.looked_at
        state = State(posterior, heat, state.step + 1, seen, tuple(solved))
        return Step(state, local, *bounds)

    def progress(self, state: State, batch: Batch) -> Progress:
        """Where the run is before this batch."""
        return Progress(
            state.data_seen / self.n_data, batch.size / self.n_data, self.planned_passes
        )

    def stays_hot(self, state: State, batch: Batch) -> bool:
        """Whether a run that is to finish is about to end, and the policy would not be at T = 1.

        About to end is the last pass, or what is left of it once the policy has promised T = 1; but
        the last step in any case.
        """
        if not self.finish:
            return False
        progress = self.progress(state, batch)
        promised = max(self.temperature.length(progress), self.planned_passes - 1.0)
        last = self.spent(state._replace(data_seen=state.data_seen + batch.size))
        if progress.passes < promised and not last:
            return False
        heat = self.temperature.cool(state.heat, progress)
        # At the last step a policy that is at T = 1, but has more in mind, is left too.
        return bool(np.any(heat.inverse_temperature < 1.0)) or (last and not heat.finished)

    def spent(self, state: State) -> bool:
        """Whether all planned passes are made."""
        return state.data_seen >= self.planned_passes * self.n_data

    def _bounds(
        self, posterior: Any, local: LocalStep, heat: Heat, prior_weight: float
    ) -> tuple[float, float]:
        """The tempered ELBO, and the ELBO at T = 1."""
        scale = self.n_data / local.n
        tempered = divergence = self.model.divergence(posterior)
        if prior_weight != 1.0:
            tempered = self.model.divergence(posterior, prior_weight)
        energy = local.tempered_energy + local.entropy + local.bound
        return (
            scale * energy + heat.bound - tempered,
            scale * (local.energy + local.entropy) - divergence,
        )


def evaluate_elbo(
    model: Model,
    posterior: Any,
    source: Source,
    executor: Executor | None = None,
    solved: Sequence[LocalStep] = (),
) -> float:
    """The ELBO of the original model (T = 1) over all data.

    Local variables are solved anew, or from where they were ``solved`` in the last step, where that
    was on the whole data.

    Examples
    --------
    >>> from tempering import Mixture, fit
    >>> from tempering.families import Dirichlet, Poisson
    >>> from tempering.inference import ArraySource, evaluate_elbo
    >>> model = Mixture(Poisson(1), Dirichlet(1), [1.0], [1.0, 1.0])
    >>> result = fit(model, [[1], [2]])
    >>> evaluate_elbo(model, result.posterior, ArraySource([[1], [2]])) == result.elbo
    True
    """
    model = model.with_bound()
    bound_of = SolveShard(UNTEMPERED, COLD, model, model.expectations(posterior), wanted="bound")
    total = -model.divergence(posterior)
    for bound in _over_all_data(bound_of, source, executor or Serial(), solved):
        total += bound
    return total


def _over_all_data(
    solve: SolveShard, source: Source, executor: Executor, solved: Sequence[LocalStep]
) -> Iterator[Any]:
    """What becomes of each shard of the data, from where it was ``solved`` in the last step."""
    for batch in source.sweep():
        parts = list(zip_longest(batch.shards(solve.model.shard_size), solved))
        yield from executor.map(solve, parts)


def run_restart(
    algorithm: Algorithm,
    source: Source,
    *,
    initial: Any,
    seed: int,
    final_elbo: bool,
    keep_local: bool,
    callbacks: Sequence[Callback],
    restarts: Restarts,
) -> Result:
    """One restart from start to end, or from where a checkpoint left it."""
    run = restarts.latest
    model = algorithm.model if run is None else run.model
    algorithm = replace(algorithm, model=model)
    if run is None:
        rng = np.random.default_rng(seed)
        start = start_of(model, source, rng) if initial is None else Start(deepcopy(initial), None)
        state = algorithm.start(start.posterior, rng)
        if algorithm.continues and start.local is not None:
            state = state._replace(solved=_unsolved(start.local, source.size, model.shard_size))
        run = Run(model, state, state.heat, History())
    if keep_local:
        local_of(model, run.state.posterior, source.sample(1, np.random.default_rng(0)))
    started = working_seconds() - run.seconds
    batches = source.batches(seed, run.state.step)

    def stops(record: Record, state: State) -> bool:
        reached = state.posterior, state.heat, algorithm.planned_passes
        report = Report(record, *reached, restart=len(restarts.elbos))
        answers = [callback(report) for callback in callbacks]
        return any(answers)

    asked_to_stop = False
    while not asked_to_stop and (run.resting or not run.over):
        batch = next(batches)
        if run.resting:
            run, asked_to_stop = _off_saddle(algorithm, run, batch, stops)
            restarts.latest = run
            continue
        if not run.cooled and algorithm.stays_hot(run.state, batch):
            run = run._replace(cooled=True, state=run.state._replace(heat=COLD))
        current = replace(algorithm, temperature=UNTEMPERED) if run.cooled else algorithm
        evaluate = run.state.step % algorithm.elbo_every == 0
        with restarts.whole_step():
            step = current.advance(run.state, batch, evaluate)
            rise = abs(step.tempered_elbo - run.previous)
            before = run.state.heat  # with which a policy may have returned to a state at rest
            rests = rise < algorithm.tolerance or (before.finished and before.settled)
            settled = source.whole and evaluate and rests
            run = _recorded(algorithm, run, step, evaluate, settled, started)
            heat = run.state.heat
            run = run._replace(resting=run.converged and not algorithm.spent(run.state))
            if heat.settled and not heat.finished and not algorithm.spent(run.state):
                run, _ = _off_saddle(algorithm, run, batch)
            restarts.latest = run
        asked_to_stop = stops(run.history[-1], run.state)
    if asked_to_stop and run.kept is not None:
        run = _better(algorithm, run, source)

    elbo, state = math.nan, run.state
    if final_elbo:
        elbo = evaluate_elbo(model, state.posterior, source, algorithm.executor, state.solved)
    local = None
    if keep_local:
        expected = model.expectations(state.posterior)
        solve = SolveShard(UNTEMPERED, COLD, model, expected, wanted="local")
        shards = _over_all_data(solve, source, algorithm.executor, state.solved)
        local = np.concatenate(list(shards))
    found = state.posterior, elbo, run.history, run.converged, run.tempered_heat, model
    return Result(*found, local=local, at_saddle=run.at_saddle, warnings=run.warnings)


def _unsolved(local: Any, n_data: int, shard_size: int) -> tuple[LocalStep, ...]:
    """q(z) of all data as steps that were not made but can be continued, one for each shard."""
    if len(local) != n_data:
        raise ValueError(f"initialize must give q(z) of all {n_data} data; got {len(local)}.")
    return tuple(
        LocalStep(None, np.full(len(part), math.nan), math.nan, 1.0, local=part)
        for _, part in Batch(local).shards(shard_size)
    )


def _recorded(
    algorithm: Algorithm, run: Run, step: Step, evaluated: bool, settled: bool, started: float
) -> Run:
    """The run after a step: its history, its phase, and whether it has converged."""
    policy = algorithm.temperature
    state, local, bound, elbo = step
    heat, seconds = state.heat, working_seconds() - started
    run.history.append(
        Record(
            step=state.step - 1,
            passes=state.data_seen / algorithm.n_data,
            data_seen=state.data_seen,
            temperature=1.0 / local.mean_inverse_temperature,
            inverse_temperature=local.mean_inverse_temperature,
            learning_rate=algorithm.learning_rate(state.step),
            tempered_elbo=bound,
            elbo=elbo,
            seconds=seconds,
            phase="final" if heat.finished else "tempered",
            weights=heat.weights,
        )
    )
    kept = deepcopy(state) if heat.keeps else run.kept
    back = run.kept if heat.returns else None  # with both, the two change places
    # Pushes off saddles are those on the way to one place, which goes on where it was kept.
    leaves = heat.keeps or back is not None
    escapes = run.kept_escapes if heat.keeps and back is not None else 0
    if back is not None:  # which has not been looked at, however little the step before it changed
        settled = False
    converged = settled and (heat.finished or (policy.settles(heat) and not algorithm.finish))
    cooled = run.cooled or (settled and not converged and policy.settles(heat))
    if cooled:
        state = state._replace(heat=COLD)
    if back is not None:
        back = deepcopy(back)
        state = state._replace(posterior=back.posterior, solved=back.solved)
    if heat.keeps or heat.returns:  # asked for once: a fit that returned goes on from there
        state = state._replace(heat=replace(state.heat, keeps=False, returns=False))
    return run._replace(
        state=state,
        tempered_heat=run.tempered_heat if heat.finished else heat,
        previous=-math.inf if back is not None else bound if evaluated else run.previous,
        cooled=cooled,
        converged=converged,
        over=converged or algorithm.spent(state),
        seconds=seconds,
        kept=kept,
        kept_escapes=run.escapes if heat.keeps else run.kept_escapes,
        escapes=escapes if leaves else run.escapes,
        at_saddle=run.at_saddle and not leaves,
        warnings=tuple(dict.fromkeys((*run.warnings, *heat.warnings))),
    )


def _off_saddle(
    algorithm: Algorithm, run: Run, batch: Batch, stops: Stops | None = None
) -> tuple[Run, bool]:
    """Perturb a run that has converged; it continues where that leads to a better bound.

    The steps of the trial count as passes, unless it is a policy that asks for it. Returns the run,
    and whether a callback stopped it.
    """

    def advance(temperature: TemperaturePolicy, trial: State) -> Step:
        return replace(algorithm, temperature=temperature).advance(trial, batch)

    trial = leave_saddle(advance, run.state, algorithm.tolerance, seed=run.escapes)
    away, asked_to_stop, record = None, False, run.history[-1]
    while not asked_to_stop:
        if stops is not None and record.passes >= algorithm.planned_passes:
            break
        try:
            next(trial)
        except StopIteration as end:
            away = end.value
            break
        if stops is None:
            continue
        seen = record.data_seen + batch.size
        record = record._replace(data_seen=seen, passes=seen / algorithm.n_data)
        asked_to_stop = stops(record, run.state)
    run.history.replace_last(record)
    state = run.state._replace(data_seen=record.data_seen)
    run = run._replace(state=state, resting=False)
    if away is None or algorithm.spent(state):
        return run._replace(at_saddle=False), asked_to_stop
    if run.escapes == MOST_ESCAPES:
        return run._replace(at_saddle=True), asked_to_stop
    heat = replace(state.heat, settled=False)
    state = state._replace(posterior=away.posterior, solved=away.solved, heat=heat)
    escapes = run.escapes + 1
    return run._replace(state=state, converged=False, over=False, escapes=escapes), asked_to_stop


def _better(algorithm: Algorithm, run: Run, source: Source) -> Run:
    """Return a run that was stopped at the better one of its state and the one that it kept."""
    assert run.kept is not None
    here, kept = (
        evaluate_elbo(run.model, state.posterior, source, algorithm.executor, state.solved)
        for state in (run.state, run.kept)
    )
    if not kept > here:
        return run
    state = run.state._replace(posterior=run.kept.posterior, solved=run.kept.solved)
    return run._replace(state=state)
