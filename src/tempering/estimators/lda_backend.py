"""Where a topic model is fitted: by the engine, or as a whole on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from tempering.evaluation.checks import is_corpus
from tempering.inference import Result, fit
from tempering.inference.executors import Executor
from tempering.models.lda.model import LatentDirichlet
from tempering.scale.device_fit import fit_on_device, fits_on_device
from tempering.scale.jax_device import Backend, choose_backend, has_gpu
from tempering.scale.jax_lda import JaxLatentDirichlet
from tempering.temperature import TemperaturePolicy

#: Visits to words from which "auto" takes a GPU: some seconds of work for the CPU, as many as it
#: takes to load JAX and to compile.
WORTH_A_GPU = 2e7

Where = Literal["numba", "jax"]


def topics_backend(backend: Backend, word_visits: float, executor: Executor | None = None) -> Where:
    """What runs a fit of so many visits to words; an error if that is not there.

    A cluster is for the CPUs of its workers, unless somebody asks for their GPUs.
    """
    if executor is not None and backend == "auto":
        return "numba"
    return choose_backend(backend, worthwhile=word_visits >= WORTH_A_GPU)


def on_gpu(where: Where) -> bool:
    """Whether a fit there runs on a GPU."""
    return where == "jax" and has_gpu()


def model_class(where: Where) -> type[LatentDirichlet]:
    """The model for a backend."""
    return JaxLatentDirichlet if where == "jax" else LatentDirichlet


def on_cpu(model: LatentDirichlet) -> LatentDirichlet:
    """The model as it serves fitted topics: anywhere."""
    return model.on_cpu() if isinstance(model, JaxLatentDirichlet) else model


def as_documents(X: Any, executor: Executor | None, batch_size: Callable[[int], int]) -> Any:
    """Documents as ``fit`` takes them: as a source, what a cluster holds.

    ``batch_size`` tells the size of minibatches from the number of documents.
    """
    if is_corpus(X):
        return X
    if executor is not None:
        return executor.open(X, batch_size)
    if type(X).__module__.startswith("dask"):
        raise ValueError(
            f"X is in Dask ({type(X).__name__}): pass executor=tempering.scale.DaskExecutor(client)"
            " to the estimator, or compute() it."
        )
    return X


def fit_topics(
    model: LatentDirichlet,
    source: Any,
    *,
    temperature: TemperaturePolicy,
    executor: Executor | None = None,
    **options: Any,
) -> Result:
    """Fit by the engine; with topics that stay on the device, where nothing else is learned.

    Learned temperatures and learned priors need the documents of each step on the host: then only
    the local steps run on the device.
    """
    on_device = isinstance(model, JaxLatentDirichlet) and fits_on_device(model, temperature)
    if on_device and executor is None:
        return fit_on_device(model, source, temperature=temperature, **options)
    return fit(model, source, temperature=temperature, executor=executor, **options)
