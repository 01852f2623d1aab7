"""Fit a model to data: arguments, restarts, checkpoints and progress around Algorithm 1."""

import math
import sys
import warnings
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np

from tempering.inference.callbacks import Callback, progress_bar
from tempering.inference.checkpoint import CheckpointLike, Restarts
from tempering.inference.engine import UNTEMPERED, Algorithm, run_restart
from tempering.inference.executors import Executor, open_executor
from tempering.inference.run import Constant, LearningRate, Result, usual_rate
from tempering.inference.saddle import AT_SADDLE, SaddleWarning
from tempering.inference.sources import ArraySource, Source
from tempering.models.arguments import check_number, check_whole, shown, takes
from tempering.models.base import Model
from tempering.temperature import USUAL_PASSES, Progress, TemperaturePolicy
from tempering.temperature.policy import NOT_A_NUMBER

#: Restarts, at most: each has a seed in memory.
MOST_RESTARTS = 10**6


class FitOptions(TypedDict, total=False):
    """Arguments of :func:`fit`, for functions that pass them on."""

    temperature: TemperaturePolicy | None
    learning_rate: LearningRate | None
    batch_size: int | None
    max_passes: float | None
    tolerance: float
    finish: bool
    initial: Any
    n_init: int
    seed: int
    n_threads: int | None
    executor: Executor | None
    elbo_every: int
    final_elbo: bool
    keep_local: bool
    callbacks: Sequence[Callback]
    progress: bool
    checkpoint: CheckpointLike
    resume: bool


def fit(
    model: Model,
    data: Any,
    *,
    temperature: TemperaturePolicy | None = None,
    learning_rate: LearningRate | None = None,
    batch_size: int | None = None,
    max_passes: float | None = None,
    tolerance: float = 1e-3,
    finish: bool = True,
    initial: Any = None,
    n_init: int = 1,
    seed: int = 0,
    n_threads: int | None = None,
    executor: Executor | None = None,
    elbo_every: int = 1,
    final_elbo: bool = True,
    keep_local: bool = False,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
    checkpoint: CheckpointLike = None,
    resume: bool = True,
) -> Result:
    """Fit a conditionally conjugate model by (annealed, tempered) variational inference.

    Parameters
    ----------
    model : Model
        What to fit. The object is not changed; ``Result.model`` has learned hyperparameters.
    data : array, CSR matrix or Source
        One datum a row, or a source of batches.
    temperature : policy, optional
        ``AdaptiveTempering``, ``Annealing``, ``VariationalTempering`` or ``LocalTempering``. The
        default is T = 1 throughout.
    learning_rate : callable, optional
        A function from the step t = 1, 2, … to its size ρ_t. The default is 1 in batch inference
        and (τ + t)^−0.7 otherwise, where τ is a hundredth of the planned steps, at most 1024. t
        stays 1 until half of the run is over and T = 1, and ends at half of the steps.
    batch_size : int, optional
        Size of a minibatch; None takes all data at each step (coordinate ascent), or the batches of
        a source.
    max_passes : float, optional
        The most passes over the data (in batch inference: iterations). The default is 100, or what
        the policy asks for: 1,000 for ``AdaptiveTempering`` in batch inference.
    tolerance : float
        Batch inference has converged when the ELBO rises by less than this, in nats.
    finish : bool
        End with a phase at T = 1, so that the posterior is one of the model itself. The phase
        begins when the policy reaches T = 1, when a tempered batch fit has converged, or after
        two thirds of the run.
    initial : Natural, optional
        λ at step 0, instead of ``model.initialize``.
    n_init : int
        Restarts; the one with the best ELBO at T = 1 is kept.
    seed : int
        The same seed gives the same bits, on any number of threads.
    n_threads : int, optional
        Threads; by default one for each core.
    executor : Executor, optional
        What solves the shards of a batch: by default threads of this process, or
        ``tempering.cluster.DaskExecutor(client)`` for a cluster. It never changes the result.
    elbo_every : int
        Steps between two evaluations of the ELBO for the history (and for convergence).
    final_elbo : bool
        Compute the ELBO of the result over all data, which takes one more pass; otherwise
        ``Result.elbo`` is NaN. Restarts always compute it, because they are compared by it.
    keep_local : bool
        Solve q(z) of all data once more at the end, from where the last pass left it, and keep it
        as ``Result.local``, with N rows in memory. Local variables with several optima may end at
        another one when they are solved again.
    callbacks : sequence of callables
        Each is called with a ``Report`` after each step; a true return value ends the run, also for
        its checkpoint, which gives the result from then on. To end it for now, and resume it, let
        one raise ``KeyboardInterrupt``.
    progress : bool
        Show a progress bar when standard error is a terminal.
    checkpoint : path or Checkpoint, optional
        A directory to save the run in, every ten minutes or as often as ``Checkpoint`` says, and
        at Ctrl-C or SIGTERM. Only one fit at a time may use it.
    resume : bool
        Continue from the checkpoint, if there is one; the result has the same bits as an
        uninterrupted run. A checkpoint of other data or parameters is refused. False starts again
        and replaces it.

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

    With minibatches (stochastic variational inference):

    >>> result = fit(model, data, batch_size=50, max_passes=20)
    """
    temperature = UNTEMPERED if temperature is None else temperature
    _check_kinds(model, temperature, learning_rate, executor, callbacks)
    if max_passes is not None:
        check_number(max_passes, "max_passes", "positive", above=0)
    check_number(tolerance, "tolerance", "0 or positive", least=0)
    check_whole(elbo_every=elbo_every)
    expected = f"at least 1 and at most {MOST_RESTARTS}, and whole"
    check_number(n_init, "n_init", expected, least=1, most=MOST_RESTARTS, whole=True)
    check_whole(0, seed=seed)
    if initial is not None and n_init > 1:
        raise ValueError(
            f"n_init={n_init} restarts from one given `initial` would all be the same: "
            "leave one of the two out."
        )
    source = data if isinstance(data, Source) else ArraySource(data, batch_size)
    if isinstance(data, Source) and batch_size not in (None, getattr(data, "batch_size", None)):
        raise ValueError(
            f"batch_size={shown(batch_size)} is not that of the source, which cuts the batches: "
            "make the source with it, or leave it out."
        )
    if max_passes is None:
        max_passes = temperature.usual_passes if source.whole else USUAL_PASSES
    if not (source.whole or temperature.takes_minibatches):
        raise ValueError(
            f"{type(temperature).__name__} compares the ELBO from step to step, which minibatches "
            "are too noisy for: take all data at each step, a schedule, such as "
            "Annealing, or tempering.search on a sample and then fit(..., initial=its posterior)."
        )
    steps_a_pass = source.size / getattr(source, "batch_size", source.size)
    at_start = Progress(0.0, 1.0 / steps_a_pass, max_passes)
    if finish and not temperature.length(at_start) < max_passes:
        raise ValueError(
            f"{temperature} leaves no phase at T = 1 in a run of max_passes={max_passes}: raise "
            "max_passes, shorten the tempered part, or pass finish=False to end tempered."
        )
    if isinstance(source, ArraySource):
        model.check(source.data)
    if initial is not None:
        try:
            # With a global step of its own, λ need not be like the prior.
            if model.provides("check_posterior") or not model.provides("global_step"):
                model.check_posterior(initial)
        except ValueError as error:
            raise ValueError(f"initial must be a posterior of the model: {error}") from error
    if learning_rate is None and source.whole:
        learning_rate = Constant()
    elif learning_rate is None:
        most = sys.float_info.max
        check_number(max_passes, "max_passes", "finite in minibatches", above=0, most=most)
        learning_rate = usual_rate(temperature, max_passes, steps_a_pass)

    settings = {
        "temperature": temperature,
        "learning_rate": learning_rate,
        "max_passes": max_passes,
        "tolerance": tolerance,
        "finish": finish,
        "initial": initial,
        "n_init": n_init,
        "seed": seed,
        "elbo_every": elbo_every,
        "final_elbo": final_elbo,
        "keep_local": keep_local,
    }
    with (
        Restarts(checkpoint, source, model, settings).at_work(resume) as restarts,
        open_executor(executor, n_threads) as running,
        running.reading(source) as source,
        progress_bar(progress) as bar,
    ):
        algorithm = Algorithm(
            model,
            temperature,
            learning_rate,
            running,
            source.size,
            max_passes,
            continues=source.whole and model.continues_steps,
            tolerance=tolerance,
            finish=finish,
            elbo_every=elbo_every,
        )
        observers = [*callbacks, *([bar] if bar else [])]
        seeds = seeds_of_restarts(seed, n_init)
        for restart in range(len(restarts.elbos), n_init):
            result = run_restart(
                # What one restart learns is not the start of the next.
                replace(algorithm, model=deepcopy(model), seed=seeds[restart]),
                source,
                initial=initial,
                final_elbo=final_elbo or n_init > 1,
                keep_local=keep_local,
                callbacks=observers,
                restarts=restarts,
            )
            restarts.add(result)
    best = restarts.best
    assert best is not None
    warned: dict[str, type[Warning]] = {}
    if best.at_saddle:
        warned[AT_SADDLE] = SaddleWarning
    if math.isnan(best.elbo) and final_elbo:
        warned[f"The ELBO of the fit {NOT_A_NUMBER}"] = RuntimeWarning
    for message, category in warned.items():
        warnings.warn(message, category, stacklevel=2)
    return replace(
        best, restart_elbos=restarts.elbos, temperature=temperature, warnings=tuple(warned)
    )


def seeds_of_restarts(seed: int, n: int) -> list[int]:
    """What the start and the minibatches of each restart are drawn by."""
    return np.random.SeedSequence(seed).generate_state(int(n)).tolist()


def _check_kinds(
    model: Any, temperature: Any, learning_rate: Any, executor: Any, callbacks: Any
) -> None:
    for name, value, kind, such in (
        ("model", model, Model, "a tempering.Model, such as tempering.Mixture"),
        ("temperature", temperature, TemperaturePolicy, "a policy, such as tempering.Annealing"),
        ("executor", executor, Executor | None, "an executor, such as DaskExecutor, or None"),
        ("callbacks", callbacks, Sequence, "a list of functions"),
    ):
        if not isinstance(value, kind):
            raise ValueError(f"{name} must be {such}; got {value!r:.100}.")
    if not all(takes(each, None) for each in callbacks):
        raise ValueError(
            f"callbacks must be a list of functions of a Report; got {shown(callbacks)}."
        )
    if learning_rate is not None and not takes(learning_rate, 1):
        raise ValueError(
            f"learning_rate must be a function of the step, or None; got {shown(learning_rate)}."
        )
