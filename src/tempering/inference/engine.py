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
from tempering.temperature.perturbation import perturbed

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
    #: What perturbations are drawn from.
    seed: int = 0

    def start(self, posterior: Any, rng: np.random.Generator) -> State:
        """Line 1: λ and T at step 0."""
        return State(posterior, self.temperature.begin(self.model, self.n_data, rng))

    def advance(self, state: State, batch: Batch, evaluate: bool = True) -> Step:
        """Make one turn of the loop; with ``evaluate``, compute the bounds at its λ, q(z) and q(T).

        Once the policy has come to T = 1, it is not asked again.
        """
        model, posterior, heat = self.model, state.posterior, state.heat
        scale, progress = self.n_data / batch.size, self.progress(state, batch)

        # Line 7, annealing: reduce T according to schedule.
        heat = heat if heat.finished else self.temperature.cool(heat, progress)
        temperature = UNTEMPERED if heat.finished else self.temperature

        # Line 4: local variational parameters φ = E_λ[η_l] / T.
        expected = model.expectations(posterior)
        terms = evaluate or temperature.reads_energies(heat)
        local, solved = self._solve(temperature, heat, expected, terms, batch, state.solved)

        rate = self.learning_rate(state.step + 1)
        check_number(rate, f"learning_rate({state.step + 1})", "from 0 to 1", least=0, most=1)

        # Line 8, variational tempering: update T.
        revises, perturbation = heat.revises, temperature.perturb(heat)
        surroundings = Surroundings(model, batch.data, posterior, expected, scale, progress)
        local, heat = temperature.update(heat, local, surroundings)

        prior_weight = temperature.prior_weight(heat)
        nothing = math.nan, math.nan
        bounds = self._bounds(posterior, local, heat, prior_weight) if evaluate else nothing

        step = local
        if perturbation.share:
            rng = np.random.default_rng([self.seed, state.step])
            step = perturbed(local, model, batch.data, perturbation, rng)

        # Line 5: intermediate global parameters λ̂ = α + (N/B) Σ_i E[t(x_i, z_i)] / T_i.
        target = prior_weight * model.prior() + scale * step.statistics

        # Line 6: λ ← (1 − ρ) λ + ρ λ̂.
        posterior = model.global_step(posterior, target, rate)
        if heat.finished:
            model.learn_hyperparameters(local, posterior, rate)
        if revises or heat.finished:
            posterior = model.revise(posterior, *progress.parts)

        seen = state.data_seen + batch.size
        return Step(State(posterior, heat, state.step + 1, seen, solved), local, *bounds)

    def _solve(
        self,
        temperature: TemperaturePolicy,
        heat: Heat,
        expected: Any,
        terms: bool,
        batch: Batch,
        before: Sequence[LocalStep],
    ) -> tuple[LocalStep, tuple[LocalStep, ...]]:
        """Return the local step of a batch, and those of its shards if the next step needs them."""
        parts = list(zip_longest(batch.shards(self.model.shard_size), before))
        detach, keeps = len(parts) > 1, self.continues
        solve = SolveShard(temperature, heat, self.model, expected, terms, detach, keeps)
        if not self.continues:
            return self.executor.add_up(solve, parts), ()
        solved = self.executor.map(solve, parts)
        return add_in_pairs(solved), tuple(solved)

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
        if state.heat.finished or not self.finish:
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
    final_elbo: bool,
    keep_local: bool,
    callbacks: Sequence[Callback],
    restarts: Restarts,
) -> Result:
    """Run from start to end, or from where a checkpoint left it."""
    run = restarts.latest or _begin(algorithm, source, initial)
    algorithm = replace(algorithm, model=run.model)
    if keep_local:
        local_of(run.model, run.state.posterior, source.sample(1, np.random.default_rng(0)))
    started = working_seconds() - run.seconds
    batches = source.batches(algorithm.seed, run.state.step)

    def stops(record: Record, state: State) -> bool:
        reached = state.posterior, state.heat, algorithm.planned_passes
        report = Report(record, *reached, restart=len(restarts.elbos))
        answers = [callback(report) for callback in callbacks]
        return any(answers)

    asked_to_stop = False
    while not (asked_to_stop or run.over):
        batch = next(batches)
        if run.resting:
            run, asked_to_stop = _off_saddle(algorithm, run, batch, stops)
            restarts.latest = run
            continue
        with restarts.whole_step():
            if algorithm.stays_hot(run.state, batch):
                run = run._replace(state=run.state._replace(heat=COLD))
            evaluate = run.state.step % algorithm.elbo_every == 0
            step = algorithm.advance(run.state, batch, evaluate)
            judged = evaluate and source.whole
            run = _recorded(algorithm, run, step, evaluate, judged, working_seconds() - started)
            restarts.latest = run
        asked_to_stop = stops(run.history[-1], run.state)
    return _result(algorithm, source, run, final_elbo, keep_local)


def _begin(algorithm: Algorithm, source: Source, initial: Any) -> Run:
    """Return the run before its first step."""
    model, rng = algorithm.model, np.random.default_rng(algorithm.seed)
    start = start_of(model, source, rng) if initial is None else Start(deepcopy(initial), None)
    state = algorithm.start(start.posterior, rng)
    if algorithm.continues and start.local is not None:
        state = state._replace(solved=_unsolved(start.local, source.size, model.shard_size))
    return Run(model, state, state.heat, History())


def _unsolved(local: Any, n_data: int, shard_size: int) -> tuple[LocalStep, ...]:
    """q(z) of all data as steps that were not made but can be continued, one for each shard."""
    if len(local) != n_data:
        raise ValueError(f"initialize must give q(z) of all {n_data} data; got {len(local)}.")
    return tuple(
        LocalStep(None, np.full(len(part), math.nan), math.nan, 1.0, local=part)
        for _, part in Batch(local).shards(shard_size)
    )


def _recorded(
    algorithm: Algorithm, run: Run, step: Step, evaluated: bool, judged: bool, seconds: float
) -> Run:
    """Return the run after a step: its history, its phase, and whether it rests."""
    state, local, bound, elbo = step
    heat = state.heat
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
    settled = judged and abs(bound - run.previous) < algorithm.tolerance
    settles = settled and not heat.finished and algorithm.temperature.settles(heat)
    converged = settled and (heat.finished or (settles and not algorithm.finish))
    if settles and not converged:  # what is left of the run is at T = 1
        state = state._replace(heat=COLD)
    spent = algorithm.spent(state)
    return run._replace(
        state=state,
        tempered_heat=run.tempered_heat if heat.finished else heat,
        previous=bound if evaluated else run.previous,
        converged=converged,
        resting=converged and not spent,
        over=spent,
        seconds=seconds,
    )


def _off_saddle(algorithm: Algorithm, run: Run, batch: Batch, stops: Stops) -> tuple[Run, bool]:
    """Perturb a run that rests; it continues where that leads to a better bound.

    Returns the run, in which the steps of the trial are counted, and whether a callback stopped it.
    """

    def advance(temperature: TemperaturePolicy, trial: State) -> Step:
        return replace(algorithm, temperature=temperature).advance(trial, batch)

    trial = leave_saddle(advance, run.state, algorithm.tolerance)
    away, asked_to_stop, record = None, False, run.history[-1]
    while not asked_to_stop and record.passes < algorithm.planned_passes:
        try:
            next(trial)
        except StopIteration as end:
            away = end.value
            break
        seen = record.data_seen + batch.size
        record = record._replace(data_seen=seen, passes=seen / algorithm.n_data)
        asked_to_stop = stops(record, run.state)
    run.history.replace_last(record)
    state = run.state._replace(data_seen=record.data_seen)
    over = run._replace(state=state, resting=False, over=True)
    if away is None or algorithm.spent(state):
        return over._replace(at_saddle=False), asked_to_stop
    if run.escapes == MOST_ESCAPES:
        return over._replace(at_saddle=True), asked_to_stop
    state = state._replace(posterior=away.posterior, solved=away.solved)
    away = over._replace(state=state, converged=False, over=False, escapes=run.escapes + 1)
    return away, asked_to_stop


def _result(
    algorithm: Algorithm, source: Source, run: Run, final_elbo: bool, keep_local: bool
) -> Result:
    """Return what a run has come to."""
    model, state, executor = run.model, run.state, algorithm.executor
    elbo, local = math.nan, None
    if final_elbo:
        elbo = evaluate_elbo(model, state.posterior, source, executor, state.solved)
    if keep_local:
        expected = model.expectations(state.posterior)
        solve = SolveShard(UNTEMPERED, COLD, model, expected, wanted="local")
        local = np.concatenate(list(_over_all_data(solve, source, executor, state.solved)))
    found = state.posterior, elbo, run.history, run.converged, run.tempered_heat, model
    return Result(*found, local=local, at_saddle=run.at_saddle)
