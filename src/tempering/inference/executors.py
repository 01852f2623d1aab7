"""How the shards of a batch are solved: one after the other, or on threads.

Shards have a fixed size and their results are added in order, so the number of threads never
changes a bit of the result. For the same reason BLAS runs on one thread inside a fit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol


class Executor(Protocol):
    """Maps a function over shards and keeps their order."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """[function(item) for item in items], in whatever way."""
        ...


class Serial:
    """One shard after the other."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [function(item) for item in items]


class Threads:
    """Shards on a pool of threads; NumPy and the compiled kernels release the interpreter lock."""

    def __init__(self, pool: ThreadPoolExecutor):
        self._pool = pool

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return list(self._pool.map(function, items))


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def local_executor(n_threads: int | None) -> Iterator[Executor]:
    """Threads of this process: ``n_threads``, or one a core."""
    from threadpoolctl import threadpool_limits

    n_threads = available_cores() if n_threads is None else n_threads
    if n_threads < 1:
        raise ValueError(f"n_threads must be at least 1, or None for all cores; got {n_threads}.")
    with threadpool_limits(limits=1, user_api="blas"):
        if n_threads == 1:
            yield Serial()
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                yield Threads(pool)
