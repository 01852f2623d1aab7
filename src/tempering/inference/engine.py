"""Algorithm 1 of Mandt et al. (2016), "Annealed or tempered SVI", once, for every model.

Batch coordinate ascent is the case of one batch that is the whole data and step size 1; stochastic
variational inference has minibatches and a Robbins-Monro step; the temperature policy decides
whether it is plain VI, AVI, VT or LVT.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from tempering.inference.callbacks import Callback, Report, progress_bar
from tempering.inference.checkpoint import CheckpointLike, Keeper, open_keeper
from tempering.inference.executors import (
    Executor,
    Serial,
    add_in_pairs,
    open_executor,
    resumable,
)
from tempering.inference.history import History, Record
from tempering.inference.learning_rate import Constant, LearningRate, RobbinsMonro
from tempering.inference.remote import Remote
from tempering.inference.run import Result, Run, State
from tempering.inference.shard_tasks import BoundOfShard, SolveShard, reads_energies
from tempering.inference.sources import ArraySource, Batch, Source
from tempering.models.base import LocalStep, Model, blend
from tempering.temperature import Heat, Progress, Surroundings, Untempered

UNTEMPERED = Untempered()


class Step(NamedTuple):
    """What one turn of the loop made.

    Examples
    --------
    >>> from tempering.inference import Step
    >>> Step._fields
    ('state', 'local', 'tempered_elbo', 'elbo')
    """

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
    temperature: Untempered
    learning_rate: LearningRate
    executor: Executor
    n_data: int
    planned_passes: float
    #: Whether a step starts from the q(z) of the one before: each batch must be the whole data.
    continues: bool = False

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
        terms = evaluate or reads_energies(temperature, heat)
        solve = SolveShard(temperature, heat, model, expected, terms, detach=len(parts) > 1)
        solved: Sequence[LocalStep] = ()
        if self.continues:
            solved = self.executor.map(solve, parts)
            local = add_in_pairs(solved)
        else:
            local = self.executor.add_up(solve, parts)

        # Line 8, variational tempering: update T.
        data = batch.data.shown() if isinstance(batch.data, Remote) else batch.data
        surroundings = Surroundings(model, data, expected, scale, progress)
        local, heat = temperature.update(heat, local, surroundings)

        prior_weight = temperature.prior_weight(heat)
        bounds = (math.nan, math.nan)
        if evaluate:
            bounds = self._bounds(posterior, local, heat, prior_weight)

        # Line 5: intermediate global parameters λ̂ = α + (N/B) Σ_i E[t(x_i, z_i)] / T_i.
        target = prior_weight * model.prior() + scale * local.statistics

        # Line 6: λ ← (1 − ρ) λ + ρ λ̂.
        rate = self.learning_rate(state.step + 1)
        posterior = blend(posterior, target, rate)
        if heat.finished:
            model.learn_hyperparameters(local, posterior, rate)

        state = State(posterior, heat, state.step + 1, state.data_seen + batch.size, tuple(solved))
        return Step(state, local, *bounds)

    def progress(self, state: State, batch: Batch) -> Progress:
        """Where the run is before this batch."""
        return Progress(
            state.data_seen / self.n_data, batch.size / self.n_data, self.planned_passes
        )

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


def fit(
    model: Model,
    data: Any,
    *,
    temperature: Untempered | None = None,
    learning_rate: LearningRate | None = None,
    batch_size: int | None = None,
    max_passes: float = 100,
    tolerance: float = 1e-3,
    finish: bool = True,
    initial: Any = None,
    n_init: int = 1,
    seed: int = 0,
    n_threads: int | None = None,
    executor: Executor | None = None,
    elbo_every: int = 1,
    final_elbo: bool = True,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
    checkpoint: CheckpointLike = None,
    resume: bool = True,
) -> Result:
    """Fit a conditionally conjugate model by (annealed, tempered) variational inference.

    Parameters
    ----------
    model : Model
        What to fit. It stays as it is; hyperparameters that are learned are in ``Result.model``.
    data : array, CSR matrix or Source
        One datum a row, or a source of batches.
    temperature : policy, optional
        ``Annealing``, ``VariationalTempering``, ``LocalTempering``; by default none, T = 1.
    learning_rate : callable, optional
        Step t = 1, 2, … to ρ_t. By default 1 in batch inference, (1024 + t)^−0.7 otherwise.
    batch_size : int, optional
        Size of a minibatch; None takes the whole data at each step (coordinate ascent).
    max_passes : float
        Passes over the data at most; iterations, in batch inference.
    tolerance : float
        Rise of the ELBO, in nats, under which batch inference has converged.
    finish : bool
        End with a phase at T = 1, so that the posterior is one of the original model. It begins
        when the policy has come to T = 1, when a tempered batch fit has converged, or after two
        thirds of the run.
    initial : Natural, optional
        λ at step 0, instead of ``model.initialize``.
    n_init : int
        Restarts; the one with the best ELBO at T = 1 is kept.
    seed : int
        The same seed gives the same bits, on any number of threads.
    n_threads : int, optional
        Threads; one a core by default.
    executor : Executor, optional
        Who solves the shards of a batch: threads of this process by default, or
        ``tempering.scale.DaskExecutor(client)`` for a cluster. Never changes the result.
    elbo_every : int
        Steps between two evaluations of the ELBO for the history (and for convergence).
    final_elbo : bool
        Compute the ELBO of the result over all data, which takes one more pass; without it
        ``Result.elbo`` is NaN. Restarts always compute it, to be compared.
    callbacks : sequence of callables
        Each is called with a ``Report`` after each step; a true return value ends the run.
    progress : bool
        Show a progress bar when standard error is a terminal.
    checkpoint : path or Checkpoint, optional
        A directory in which the run is kept, every ten minutes or as often as ``Checkpoint`` says,
        and at Ctrl-C.
    resume : bool
        Go on from the checkpoint, if there is one; the result has the same bits as if the run had
        never ended. A checkpoint of other data or of other parameters is refused. False starts
        anew, and replaces it.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import Annealing, Mixture, fit, schedules
    >>> from tempering.families import Dirichlet, IsotropicGaussian
    >>> rng = np.random.default_rng(0)
    >>> data = rng.normal(rng.choice([-4.0, 4.0], size=300))[:, None]
    >>> model = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(2), [1.0, 1.0], [0.0, 0.1])
    >>> result = fit(model, data, temperature=Annealing(schedules.linear(10.0), passes=30))
    >>> np.sort(model.likelihood.conjugate.point(result.posterior.components).ravel()).round()
    array([-4.,  4.])
    >>> result.converged, result.history[0].temperature, result.history[-1].temperature
    (True, 10.0, 1.0)

    Minibatches (stochastic variational inference) are one argument away:

    >>> result = fit(model, data, batch_size=50, max_passes=20)
    """
    source = data if isinstance(data, Source) else ArraySource(data, batch_size)
    temperature = UNTEMPERED if temperature is None else temperature
    _check_arguments(max_passes, tolerance, n_init, elbo_every, initial)
    if finish and not temperature.length(max_passes) < max_passes:
        raise ValueError(
            f"{temperature} leaves no phase at T = 1 in a run of max_passes={max_passes}: raise "
            "max_passes, shorten the tempered part, or pass finish=False to end tempered."
        )
    if isinstance(source, ArraySource):
        model.check(source.data)
    if learning_rate is None:
        learning_rate = Constant() if source.whole else RobbinsMonro()

    keeper = open_keeper(
        checkpoint,
        resume,
        source,
        model,
        temperature=temperature,
        learning_rate=learning_rate,
        max_passes=max_passes,
        tolerance=tolerance,
        finish=finish,
        initial=initial,
        n_init=n_init,
        seed=seed,
        elbo_every=elbo_every,
        final_elbo=final_elbo,
    )
    with (
        resumable(checkpoint),
        open_executor(executor, n_threads) as running,
        running.reading(source) as source,
        progress_bar(progress) as bar,
        keeper,
    ):
        algorithm = Algorithm(
            model,
            temperature,
            learning_rate,
            running,
            source.size,
            max_passes,
            continues=source.whole and model.continues_steps,
        )
        observers = [*callbacks, *([bar] if bar else [])]
        seeds = np.random.SeedSequence(seed).generate_state(n_init)
        for restart in range(len(keeper.elbos), n_init):
            result = _run(
                # What one restart learns is not the start of the next.
                replace(algorithm, model=deepcopy(model)),
                source,
                initial=initial,
                seed=int(seeds[restart]),
                restart=restart,
                tolerance=tolerance,
                finish=finish,
                elbo_every=elbo_every,
                final_elbo=final_elbo or n_init > 1,
                callbacks=observers,
                keeper=keeper,
            )
            keeper.add(result)
    assert keeper.best is not None
    return replace(keeper.best, restart_elbos=keeper.elbos)


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
    executor, model = executor or Serial(), model.with_bound()
    bound_of = BoundOfShard(UNTEMPERED, Heat(), model, model.expectations(posterior))
    total = -model.divergence(posterior)
    for batch in source.sweep():
        parts = list(zip_longest(batch.shards(model.shard_size), solved))
        for bound in executor.map(bound_of, parts):
            total += bound
    return total


def _run(
    algorithm: Algorithm,
    source: Source,
    *,
    initial: Any,
    seed: int,
    restart: int,
    tolerance: float,
    finish: bool,
    elbo_every: int,
    final_elbo: bool,
    callbacks: Sequence[Callback],
    keeper: Keeper,
) -> Result:
    """One restart from start to end, or from where a checkpoint left it."""
    model = algorithm.model
    run = keeper.unfinished(model)
    if run is None:
        rng = np.random.default_rng(seed)
        posterior = model.initialize(source, rng) if initial is None else deepcopy(initial)
        state = algorithm.start(posterior, rng)
        run = Run(state, state.heat, History())
    started = time.perf_counter() - run.seconds
    step = run.state.step
    batches = source.batches(seed, step) if step else source.batches(seed)

    while not run.over:
        batch = next(batches)
        with keeper.whole_step(model):
            run = _turn(algorithm, run, batch, source.whole, tolerance, finish, elbo_every, started)
            keeper.latest = run
        report = Report(
            run.history[-1], run.state.posterior, run.state.heat, algorithm.planned_passes, restart
        )
        asked_to_stop = [callback(report) for callback in callbacks]
        if any(asked_to_stop):
            break

    elbo, state = math.nan, run.state
    if final_elbo:
        elbo = evaluate_elbo(model, state.posterior, source, algorithm.executor, state.solved)
    return Result(state.posterior, elbo, run.history, run.converged, run.tempered_heat, model)


def _turn(
    algorithm: Algorithm,
    run: Run,
    batch: Batch,
    whole: bool,
    tolerance: float,
    finish: bool,
    elbo_every: int,
    started: float,
) -> Run:
    """One step of a run; the phases and the test of convergence stand here."""
    policy = algorithm.temperature
    if run.cooled:
        algorithm = replace(algorithm, temperature=UNTEMPERED)
    asked = run.state.step % elbo_every == 0
    state, local, bound, elbo = algorithm.advance(run.state, batch, evaluate=asked)
    heat, seconds = state.heat, time.perf_counter() - started
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
    settled = whole and asked and abs(bound - run.previous) < tolerance
    converged = settled and (heat.finished or (policy.settles and not finish))
    cooled = run.cooled or (settled and not converged and policy.settles)
    if cooled:
        state = state._replace(heat=Heat(finished=True))
    return Run(
        state,
        tempered_heat=run.tempered_heat if heat.finished else heat,
        history=run.history,
        previous=bound if asked else run.previous,
        cooled=cooled,
        converged=converged,
        over=converged or state.data_seen >= algorithm.planned_passes * algorithm.n_data,
        seconds=seconds,
    )


def _check_arguments(
    max_passes: float, tolerance: float, n_init: int, elbo_every: int, initial: Any
) -> None:
    if not max_passes > 0:
        raise ValueError(f"max_passes must be positive; got {max_passes}.")
    if not tolerance >= 0:
        raise ValueError(f"tolerance must be 0 or positive; got {tolerance}.")
    if n_init < 1:
        raise ValueError(f"n_init must be at least 1; got {n_init}.")
    if elbo_every < 1:
        raise ValueError(f"elbo_every must be at least 1; got {elbo_every}.")
    if initial is not None and n_init > 1:
        raise ValueError(
            f"n_init={n_init} restarts from one given `initial` would all be the same: "
            "leave one of the two out."
        )
