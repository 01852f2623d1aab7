"""What is done with the shards of a batch, and by whom: this process, its threads, or a cluster.

Shards have a fixed size and their results are added in a fixed order: neither the number of threads
nor that of workers changes a bit.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from tempering.inference.sources import Source, read
from tempering.models.arguments import shown
from tempering.models.base import LocalStep, Model
from tempering.models.threads import number_of_threads, one_blas_thread
from tempering.temperature import Heat, LocalTempering, TemperaturePolicy


class ClusterLost(ConnectionError):
    """The cluster that a fit runs on is gone, or cannot finish a step."""


class Executor(ABC):
    """What the engine asks of an executor; :meth:`map` is all that one must have."""

    @abstractmethod
    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """[function(item) for item in items], in whatever way."""

    def add_up(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        """The sum of function(item) over items, as :func:`add_in_pairs` has it."""
        return add_in_pairs(self.map(function, items))

    @contextmanager
    def reading(self, source: Source) -> Iterator[Source]:
        """The source as this executor wants it during a fit."""
        yield source

    def open(self, data: Any, batch_size: Callable[[int], int]) -> Any:
        """Data as a source, if this executor brings data of its own; else as they are."""
        return data


class Serial(Executor):
    """One shard after the other."""

    # Not a list: what is added up is not held.
    _each: Callable[..., Iterable[Any]] = map

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return list(self._each(function, items))

    def add_up(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        return add_in_pairs(self._each(function, items))


class Threads(Serial):
    """Shards on a pool of threads; NumPy and the compiled kernels release the interpreter lock."""

    def __init__(self, pool: ThreadPoolExecutor):
        self._pool = pool

    def _each(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterable[Any]:
        # To wake another thread for a single shard would cost more than many a step.
        items = list(items)
        return map(function, items) if len(items) == 1 else self._pool.map(function, items)


def add_in_pairs(parts: Iterable[Any]) -> Any:
    """The sum of parts in an order that depends on their number alone.

    Neighbours are added in pairs, their sums in pairs, and so on. So 2^m parts from a multiple of
    2^m on can be added up elsewhere without changing a bit. Only one sum of each size is held.
    """
    sums: list[tuple[int, Any]] = []
    for part in parts:
        size = 1
        while sums and sums[-1][0] == size:
            size, part = 2 * size, sums.pop()[1] + part
        sums.append((size, part))
    total = sums.pop()[1]
    while sums:
        total = sums.pop()[1] + total
    return total


@contextmanager
def open_executor(executor: Executor | None, n_threads: int | None) -> Iterator[Executor]:
    """An executor as given, or threads of this process: ``n_threads``, or one a core."""
    n_threads = number_of_threads(n_threads)
    with one_blas_thread():
        if executor is not None or n_threads == 1:
            yield executor or Serial()
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                yield Threads(pool)


#: A shard with its place in the batch, and how the step before left it.
Part = tuple[tuple[slice, Any], LocalStep | None]


@dataclass(frozen=True)
class SolveShard:
    """Line 4 of Algorithm 1 for a shard: its local variables."""

    temperature: TemperaturePolicy
    heat: Heat
    model: Model
    expected: Any  # E_q[t(β)]
    terms: bool = True  # whether somebody will ask for energies
    #: Whether a step gives up what only its own process needs, so that it can be added to others.
    detach: bool = False
    #: Whether q(z) stays in the step, for another one that continues.
    keeps: bool = False
    #: What is asked for: the step, q(z) alone, or what it adds to the ELBO of the original model.
    wanted: Literal["step", "local", "bound"] = "step"

    def __call__(self, part: Part) -> Any:
        (rows, data), before = part
        if self.wanted == "local" and before is None:
            return self.model.local_variables(read(data), self.expected)
        local: Any = self.temperature.solve(
            self.heat, self.model, read(data), self.expected, rows, before
        )
        if not isinstance(local, LocalStep):
            kind = type(self.model).__name__
            raise TypeError(f"local_step of {kind} must return a LocalStep; got {shown(local)}.")
        if self.wanted == "local":
            return local.local
        if self.wanted == "bound":
            return local.energy + local.entropy
        if not self.keeps:
            vars(local).pop("local", None)
        detached = getattr(local, "detached", None) if self.detach else None
        return local if detached is None else detached(self.expected, self.terms)

    def for_workers(self) -> Self:
        """The task as it is sent: what each process would compute alike is computed before."""
        if hasattr(self.expected, "prepare") and isinstance(self.temperature, LocalTempering):
            self.expected.prepare(np.asarray(self.temperature.inverse_temperatures))
        return replace(self, model=self.model.for_workers(), detach=True)

    def on_threads(self, n_threads: int) -> Self:
        """The task for a process that has so many threads to itself."""
        model, expected = self.model, self.expected
        if hasattr(model, "n_threads"):
            model = copy(model)
            model.n_threads = n_threads  # pyright: ignore[reportAttributeAccessIssue]
        if hasattr(expected, "n_threads"):
            expected = expected._replace(n_threads=n_threads)
        return replace(self, model=model, expected=expected)
