"""A fit with moves: new starts from where a fit has come to, kept only if they lead higher."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, Unpack

import numpy as np

from tempering.estimators.devices import model_on, on_cpu
from tempering.gpu.device_data import TableSource
from tempering.gpu.jax_device import Backend
from tempering.inference import History, Result, fit
from tempering.inference.checkpoint import part_of
from tempering.inference.executors import Executor, open_executor
from tempering.inference.fitting import FitOptions
from tempering.models import Model, Natural
from tempering.models.base import Array
from tempering.models.compilation import working_seconds
from tempering.temperature import USUAL_PASSES, TemperaturePolicy, Untempered

#: Passes before the first round, and after each: enough to see where a move leads.
SETTLING_PASSES = 15


@dataclass(frozen=True, repr=False)
class MovedResult(Result):
    """A result, and how many rounds of each move were kept; its history leaves out the others."""

    accepted: Mapping[str, int] = field(default_factory=dict)


#: A new start from where a fit has come to, of model, data, λ and an executor; None where there is
#: none to try.
Move = Callable[[Any, Array, Natural, Executor], Natural | None]


def fit_with_moves(
    model: Model, data: Array, *, moves: Mapping[str, Move], **options: Unpack[FitOptions]
) -> MovedResult:
    """:func:`tempering.fit` in batch mode, with moves once T = 1, each as long as the ELBO rises.

    A tempered fit runs to its end before them; an untempered one only settles. The last phase is
    coordinate ascent to convergence. ``max_passes`` counts the passes of all phases.
    """
    started = working_seconds()
    phases = count()

    temperature = options.pop("temperature", None)
    max_passes = int(options.get("max_passes") or USUAL_PASSES)
    n_threads = options.get("n_threads")

    def run(model: Model, initial: Any, passes: int, policy: TemperaturePolicy | None) -> Result:
        # Each phase in a checkpoint of its own. Moves draw no random number, so a fit that goes on
        # from a checkpoint comes to the same phases.
        own: Any = {"checkpoint": part_of(options.get("checkpoint"), f"phase-{next(phases)}")}
        own |= {"initial": initial, "max_passes": passes, "temperature": policy}
        return fit(model, data, **{**options, **own})

    settles = temperature is None or isinstance(temperature, Untempered)
    passes = min(max_passes, SETTLING_PASSES) if settles else max_passes
    first = run(model, options.get("initial"), passes, temperature)
    best = MovedResult(**vars(first), accepted=dict.fromkeys(moves, 0))
    for name, move in moves.items():
        while best.accepted[name] < 10 and (left := _passes_left(best, max_passes)):
            with open_executor(None, n_threads) as executor:
                moved = move(best.model, data, best.posterior, executor)
            if moved is None:
                break
            began = working_seconds() - started
            tried = run(best.model, moved, min(SETTLING_PASSES, left), None)
            if not tried.elbo > best.elbo + 1e-6 * data.shape[0]:  # in nats a datum
                break
            accepted = {**best.accepted, name: best.accepted[name] + 1}
            best = replace(_continued(best, tried, began), accepted=accepted)
    if not best.converged and (left := _passes_left(best, max_passes)):
        began = working_seconds() - started
        best = _continued(best, run(best.model, best.posterior, left, None), began)
    return best


def _passes_left(result: Result, max_passes: int) -> int:
    # A short tempered fit may take a pass more, to end at T = 1.
    return max(0, max_passes - int(np.ceil(result.history[-1].passes)))


def _continued(earlier: MovedResult, later: Result, began: float) -> MovedResult:
    """The later result, its history set behind the earlier one's."""
    last = earlier.history[-1]
    shifted = [
        record._replace(
            step=record.step + last.step + 1,
            passes=record.passes + last.passes,
            data_seen=record.data_seen + last.data_seen,
            seconds=record.seconds + began,
        )
        for record in later.history
    ]
    taken = {name: getattr(later, name) for name in ("posterior", "elbo", "converged", "model")}
    history = History([*earlier.history, *shifted])
    warnings = tuple(dict.fromkeys(earlier.warnings + later.warnings))
    return replace(earlier, **taken, history=history, restart_elbos=[later.elbo], warnings=warnings)


def fit_table(
    model: Model,
    data: Array,
    *,
    backend: Backend,
    moves: Mapping[str, Move] | None = None,
    **options: Unpack[FitOptions],
) -> Result:
    """:func:`tempering.fit`, or a fit with moves, on a backend."""
    moves = dict(moves or {})
    model = model_on(backend, model, data.shape[0])
    source: Any = data
    if on_cpu(model) is not model:
        source = TableSource(data, options.get("batch_size"))
        moves = {name: partial(_on_host, move) for name, move in moves.items()}
    if moves:
        result = fit_with_moves(model, source, moves=moves, **options)
    else:
        result = fit(model, source, **options)
    return replace(result, model=on_cpu(result.model))


def _on_host(move: Move, model: Any, data: Any, posterior: Natural, executor: Any) -> Any:
    """A move that looks at the table, and runs the model, on the host."""
    return move(on_cpu(model), data.data, posterior, executor)
