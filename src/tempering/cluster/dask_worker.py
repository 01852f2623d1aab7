"""What runs on a worker of a cluster."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempering.inference.executors import add_in_pairs
from tempering.inference.remote import Recipe

# Of glibc's malloc.h. Blocks above the second go straight to the system, as do freed ones above the
# first; the values are the largest that glibc takes, and what a step of large topics needs.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES, LARGEST_KEPT = 2**28, 2**25


class Shard(NamedTuple):
    """A shard as it is sent: its place in the batch, how to make its data, and how it was left."""

    rows: slice
    recipe: Recipe
    before: Any


class Parcel:
    """One object for Dask, which would take lists and tuples apart."""

    def __init__(self, content: Any):
        self.content = content


class Answer:
    """What a run of shards came to, and how long each worker was busy with it."""

    def __init__(self, result: Any, seconds: dict[str, float]):
        self.result = result
        self.seconds = seconds

    def __add__(self, other: Answer) -> Answer:
        seconds = dict(self.seconds)
        for worker, more in other.seconds.items():
            seconds[worker] = seconds.get(worker, 0.0) + more
        return Answer(self.result + other.result, seconds)


def solve_run(function: Parcel, run: Parcel, lent: list[list[Any]], add: bool) -> Answer:
    """Apply a function to the items of a run; with ``add``, only their sum leaves the worker."""
    started = time.perf_counter()
    keep_freed_memory()
    apply: Any = function.content
    name, n_threads = this_worker()
    if hasattr(apply, "on_threads"):
        apply = apply.on_threads(n_threads)
    with one_blas_thread():
        solved = (apply(restored(item, things, name)) for item, things in zip(run.content, lent))
        result = add_in_pairs(solved) if add else list(solved)
    return Answer(result, {name: time.perf_counter() - started})


def add_answers(first: Answer, second: Answer) -> Answer:
    """The sum of two runs that are neighbours."""
    return first + second


def columns_of(run: Parcel, lent: list[list[Any]]) -> NDArray[np.int64]:
    """The columns that the shards of a run use, rising."""
    name, _ = this_worker()
    shards = [restored(item, things, name) for item, things in zip(run.content, lent)]
    used = [data.indices for (_, data), _ in shards]
    return np.unique(np.concatenate(used)).astype(np.int64)


def restored(item: Any, lent: list[Any], worker: str) -> Any:
    """An item as the function wants it: with its data."""
    if not isinstance(item, Shard):
        return item
    try:
        lent = [thing.content if isinstance(thing, Parcel) else thing for thing in lent]
        return (item.rows, item.recipe.make(*lent)), item.before
    except OSError as error:
        raise OSError(
            f"{error} This was on the worker {worker}: each worker must see the corpus at the same "
            "path."
        ) from error


def this_worker() -> tuple[str, int]:
    """Its address, and how many threads it has."""
    from distributed import get_worker

    worker: Any = get_worker()
    return worker.address, worker.state.nthreads


@cache
def keep_freed_memory() -> None:
    """Have the arrays of a shard lie where those of the one before lay, once for a process.

    Dask starts its workers with MALLOC_TRIM_THRESHOLD_=65536, by which all that is freed goes back
    to the system; the pages of the next shard's arrays then have to be made anew, which took a
    fifth of a step.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        set_option(M_MMAP_THRESHOLD, LARGEST_KEPT)
        set_option(M_TRIM_THRESHOLD, KEPT_BYTES)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread while any shard is being solved in this process.

    Limits of threads that come and go at different times would undo each other: they are counted.
    """
    limit = _blas_limit()
    with limit.lock:
        limit.n_users += 1
        if limit.n_users == 1:
            limit.set()
    try:
        yield
    finally:
        with limit.lock:
            limit.n_users -= 1
            if limit.n_users == 0:
                limit.unset()


@cache
def _blas_limit() -> _Limit:
    return _Limit()


class _Limit:
    """A limit for the whole process. The BLAS libraries are looked for once, as that takes long."""

    def __init__(self) -> None:
        from threadpoolctl import ThreadpoolController

        self.lock = threading.Lock()
        self.n_users = 0
        self._controller = ThreadpoolController().select(user_api="blas")
        self._active: Any = None

    def set(self) -> None:
        self._active = self._controller.limit(limits=1, user_api="blas")

    def unset(self) -> None:
        self._active.restore_original_limits()
