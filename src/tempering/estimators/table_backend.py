"""Where a mixture is fitted: on the CPU, or with its table on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

from tempering.estimators.moves import Move, fit_with_moves
from tempering.gpu.device_table import TableSource
from tempering.gpu.jax_device import Backend, choose_backend
from tempering.gpu.jax_factorial import JaxFactorialModel
from tempering.gpu.jax_mixture import JaxMixture
from tempering.inference import Result, fit
from tempering.inference.fitting import FitOptions
from tempering.models import Mixture, Model, Natural
from tempering.models.base import Array
from tempering.models.factorial_mixture import FactorialModel

#: Products of a pass over the data from which "auto" takes a GPU: with the tens of passes of a fit
#: some seconds of work for the CPU, as many as it takes to load JAX and to compile.
PRODUCTS_WORTH_A_GPU = 1e9


def model_on(backend: Backend, model: Model, n_data: int) -> Any:
    """The model as it runs on a backend, for so many data; an error if that is not there."""
    worthwhile = n_data * products_a_datum(model) >= PRODUCTS_WORTH_A_GPU
    if choose_backend(backend, worthwhile=worthwhile) == "numba":
        return model
    if isinstance(model, FactorialModel):
        return JaxFactorialModel.of(model)
    assert isinstance(model, Mixture)
    return JaxMixture.of(model)


def on_cpu(model: Any) -> Any:
    """The model as it serves after a fit: anywhere."""
    return model.on_cpu() if isinstance(model, JaxMixture | JaxFactorialModel) else model


def products_a_datum(model: Model) -> int:
    """Entries of the matrix that a datum is multiplied with."""
    if isinstance(model, FactorialModel):
        return model.n_features * model.dimension
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
    """:func:`tempering.fit`, or a fit with moves, on a backend.

    On a GPU the table stays there for the whole fit; moves are looked for on the CPU.
    """
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
