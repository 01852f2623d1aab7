"""Where a topic model is fitted: by the engine, or as a whole on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from tempering.evaluation.checks import is_corpus
from tempering.gpu.device_fit import advance_on_device
from tempering.gpu.jax_device import Backend, choose_backend, has_gpu
from tempering.inference import Algorithm, Batch, State
from tempering.inference.executors import Executor

#: Visits to words from which "auto" takes a GPU: some seconds of work for the CPU, as many as it
#: takes to load JAX and to compile.
WORD_VISITS_WORTH_A_GPU = 2e7

Where = Literal["numba", "jax"]


def check_executor(backend: Backend, executor: Executor | None) -> None:
    """Refuse two places for one fit."""
    if executor is not None and backend in ("jax", "gpu"):
        raise ValueError(
            f"backend={backend!r} fits topics on the device of this process, but executor="
            f"{executor!r} sends their documents elsewhere. Leave out the executor, or take "
            "backend='cpu', which the workers of a cluster run."
        )


def topics_backend(backend: Backend, word_visits: float, executor: Executor | None = None) -> Where:
    """What runs a fit of so many visits to words; an error if that is not there."""
    if executor is not None:
        return "numba"
    return choose_backend(backend, worthwhile=word_visits >= WORD_VISITS_WORTH_A_GPU)


def on_gpu(where: Where) -> bool:
    """Whether a fit there runs on a GPU."""
    return where == "jax" and has_gpu()


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
            f"X is in Dask ({type(X).__name__}): pass "
            "executor=tempering.cluster.DaskExecutor(client) to the estimator, or compute() it."
        )
    return X


def advance(algorithm: Algorithm, state: State, data: Any, batch_size: int, where: Where) -> State:
    """Go on with more documents of a stream."""
    if where == "jax":
        return advance_on_device(algorithm, state, data, batch_size)
    for start in range(0, data.shape[0], batch_size):
        batch = Batch(data[start : start + batch_size])
        state = algorithm.advance(state, batch, evaluate=False).state
    return state
