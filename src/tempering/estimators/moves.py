"""A fit with moves: new starts from where a fit has come to, kept only if they lead higher.

Coordinate ascent ends in the optimum next to its start. A move goes somewhere else, lets it settle
there, and stays only if the ELBO, computed again, has risen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol, Unpack, cast

import numpy as np

from tempering.gpu.device_table import TableSource
from tempering.gpu.jax_chains import JaxHiddenMarkov
from tempering.gpu.jax_device import Backend, choose_backend
from tempering.gpu.jax_factorial import JaxFactorialModel
from tempering.gpu.jax_mixture import JaxMixture
from tempering.inference import History, Result, fit
from tempering.inference.checkpoint import keeping
from tempering.inference.compilation import working_seconds
from tempering.inference.executors import Executor, open_executor
from tempering.inference.fitting import FitOptions
from tempering.models import HiddenMarkov, Mixture, Model, Natural
from tempering.models.base import Array
from tempering.models.factorial_mixture import FactorialModel
from tempering.temperature import USUAL_PASSES, TemperaturePolicy, Untempered

MOST_ROUNDS = 10
#: Passes before the first round, and after each: enough to see where a move leads.
SETTLING_PASSES = 15
#: Rise of the ELBO, in nats a datum, for which a round is kept.
WORTHWHILE = 1e-6


@dataclass(frozen=True)
class MovedResult(Result):
    """A result, and how many rounds of each move were kept; its history leaves out the others."""

    accepted: Mapping[str, int] = field(default_factory=dict)


class Move(Protocol):
    """A new start from where a fit has come to; None where there is none to try."""

    def __call__(
        self, model: Any, data: Array, posterior: Natural, executor: Executor
    ) -> Natural | None: ...


def fit_with_moves(
    model: Model, data: Array, *, moves: Mapping[str, Move], **options: Unpack[FitOptions]
) -> MovedResult:
    """:func:`tempering.fit` in batch mode, with moves once T = 1.

    A tempered fit runs to its end before the first move; an untempered one only settles. Each move
    is repeated as long as the ELBO rises, then the next has its turn. The last phase is coordinate
    ascent to convergence. ``max_passes`` counts the passes of all phases.
    """
    started = working_seconds()
    phases = count()

    temperature = options.pop("temperature", None)
    max_passes = int(options.get("max_passes") or USUAL_PASSES)
    n_threads = options.get("n_threads")
    checkpoint, resume = options.pop("checkpoint", None), options.pop("resume", True)

    def run(model: Model, initial: Any, passes: int, policy: TemperaturePolicy | None) -> Result:
        # Each phase in a checkpoint of its own. Moves draw no random number, so a fit that goes on
        # from a checkpoint comes to the same phases.
        own: FitOptions = {
            **options,
            "initial": initial,
            "max_passes": passes,
            "temperature": policy,
        }
        own |= cast(FitOptions, keeping(checkpoint, resume, f"phase-{next(phases)}"))
        return fit(model, data, **own)

    settles = temperature is None or isinstance(temperature, Untempered)
    passes = min(max_passes, SETTLING_PASSES) if settles else max_passes
    first = run(model, options.get("initial"), passes, temperature)
    best = MovedResult(**vars(first), accepted=dict.fromkeys(moves, 0))
    for name, move in moves.items():
        while best.accepted[name] < MOST_ROUNDS and (left := _passes_left(best, max_passes)):
            with open_executor(None, n_threads) as executor:
                moved = move(best.model, data, best.posterior, executor)
            if moved is None:
                break
            began = working_seconds() - started
            tried = run(best.model, moved, min(SETTLING_PASSES, left), None)
            if not tried.elbo > best.elbo + WORTHWHILE * data.shape[0]:
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
    return replace(
        earlier,
        posterior=later.posterior,
        elbo=later.elbo,
        converged=later.converged,
        model=later.model,
        history=History([*earlier.history, *shifted]),
        restart_elbos=[later.elbo],
    )


#: Products of a pass over the data from which "auto" takes a GPU: with the tens of passes of a fit
#: some seconds of work for the CPU, as many as it takes to load JAX and to compile.
PRODUCTS_WORTH_A_GPU = 1e9


def model_on(backend: Backend, model: Model, n_data: int) -> Any:
    """The model as it runs on a backend, for so many data; an error if that is not there."""
    worthwhile = backend != "auto" or n_data * products_a_datum(model) >= PRODUCTS_WORTH_A_GPU
    if choose_backend(backend, worthwhile=worthwhile) == "numba":
        return model
    if isinstance(model, FactorialModel):
        return JaxFactorialModel.of(model)
    if isinstance(model, HiddenMarkov):
        return JaxHiddenMarkov.of(model)
    assert isinstance(model, Mixture)
    return JaxMixture.of(model)


def on_cpu(model: Any) -> Any:
    """The model as it serves after a fit: anywhere."""
    return model.on_cpu() if hasattr(model, "on_cpu") else model


def products_a_datum(model: Model) -> int:
    """Entries of the matrices that a datum, or a row of a sequence, is multiplied with."""
    if isinstance(model, FactorialModel):
        return model.n_features * model.dimension
    if isinstance(model, HiddenMarkov):
        return model.n_components * (model.likelihood.conjugate.size + 2 * model.n_components)
    assert isinstance(model, Mixture)
    return model.n_components * model.likelihood.conjugate.size


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
        moves = {name: on_host(move) for name, move in moves.items()}
    if moves:
        result = fit_with_moves(model, source, moves=moves, **options)
    else:
        result = fit(model, source, **options)
    return replace(result, model=on_cpu(result.model))


def on_host(move: Move) -> Move:
    """A move that looks at the table, and runs the model, on the host."""

    def moved(model: Any, data: Any, posterior: Natural, executor: Any) -> Natural | None:
        return move(on_cpu(model), data.data, posterior, executor)

    return moved
