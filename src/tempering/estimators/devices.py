"""Placement of an estimator's model: on the CPU, or on a device by JAX."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tempering.gpu.device_data import TableSource
from tempering.gpu.jax_device import Backend, choose_backend
from tempering.gpu.jax_factorial import JaxFactorialModel
from tempering.gpu.jax_models import JaxHiddenMarkov, JaxMixture
from tempering.inference import Result, fit
from tempering.models import HiddenMarkov, Mixture, Model
from tempering.models.base import Array
from tempering.models.factorial_mixture import FactorialModel

#: The models that run on a device, as they do there, and the number of entries of the matrices that
#: a datum, or a row of a sequence, is multiplied with.
ON_DEVICE: dict[type, tuple[Any, Callable[[Any], int]]] = {
    FactorialModel: (JaxFactorialModel, lambda model: model.n_features * model.dimension),
    HiddenMarkov: (
        JaxHiddenMarkov,
        lambda model: (
            model.n_components * (model.likelihood.conjugate.size + 2 * model.n_components)
        ),
    ),
    Mixture: (JaxMixture, lambda model: model.n_components * model.likelihood.conjugate.size),
}


def model_on(backend: Backend, model: Model, n_data: int) -> Any:
    """Return the model as it runs on a backend for this number of data.

    Raises an error if the backend is not available.
    """
    there, products_a_datum = ON_DEVICE[type(model)]
    # With the tens of passes of a fit this is some seconds of work for the CPU, as long as it takes
    # to load JAX and to compile.
    worthwhile = backend != "auto" or n_data * products_a_datum(model) >= 1e9
    on_device = choose_backend(backend, worthwhile=worthwhile) != "numba"
    return there.of(model) if on_device else model


def on_cpu(model: Any) -> Any:
    """Return the model as it is used after a fit, on any machine."""
    return model.on_cpu() if hasattr(model, "on_cpu") else model


def fit_table(
    model: Model,
    data: Array,
    *,
    backend: Backend,
    find: Callable[..., Result] = fit,
    **options: Any,
) -> Result:
    """Fit a model of the rows of a table on a backend.

    Parameters
    ----------
    model : Model
        What to fit.
    data : array [N, D]
        The table.
    backend : str
        Where the fit runs.
    find : callable
        What fits the model: :func:`tempering.fit`, or a search.
    **options
        Other arguments of ``find``.

    Returns
    -------
    Result
        What ``find`` returns, with a model for the CPU.
    """
    solver = model_on(backend, model, data.shape[0])
    source = data if solver is model else TableSource(data, options.get("batch_size"))
    result = find(solver, source, **options)
    return replace(result, model=on_cpu(result.model))
