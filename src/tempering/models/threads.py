"""How many threads, and work on many items, in blocks spread over them."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from threading import Lock
from typing import Any

from joblib import cpu_count

from tempering.models.arguments import MOST_THREADS, check_number

#: Words of a block at least, where there are enough for all threads: each takes far less time than
#: a document.
WORDS_PER_BLOCK = 2048


def number_of_threads(n_jobs: int | None) -> int:
    """Threads: as many as given, or with None or -1 one a core, with -2 one less, as in joblib."""
    if n_jobs is None:
        return cpu_count()
    expected = f"a whole number from 1 to {MOST_THREADS}, or None for all cores"
    check_number(n_jobs, "n_threads", expected, most=MOST_THREADS, whole=True)
    if n_jobs == 0:
        raise ValueError("n_threads must be at least 1, or None for all cores; got 0.")
    # Not a type of NumPy's, for which kernels would be compiled anew.
    n_threads = int(n_jobs)
    return n_threads if n_threads > 0 else max(1, cpu_count() + 1 + n_threads)


def one_blas_thread() -> AbstractContextManager[Any]:
    """In the whole process: the sums of BLAS depend on how many threads it has."""
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> Any:
    """Libraries with threads; to look for them takes milliseconds, as long as many a step."""
    import scipy.linalg  # noqa: F401, its BLAS is another than NumPy's, and has to be there
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_blocks(
    work: Callable[..., None],
    n_items: int,
    n_threads: int,
    fewest: int = 64,
    arguments: tuple[Any, ...] = (),
) -> None:
    """Call work(start, stop, *arguments) on all items, in blocks spread over threads, which never
    change a bit: kernels treat each item by itself.
    """
    if n_threads < 1:
        raise ValueError(f"n_threads must be at least 1, got {n_threads}.")
    if n_items == 0:
        return
    if n_threads == 1:
        work(0, n_items, *arguments)
        return
    # More blocks share the work out evenly, but each takes a while to start.
    n_blocks = min(max(n_items // fewest, n_threads), 4 * n_threads)
    block_size = -(-n_items // n_blocks)
    starts = iter(range(0, n_items, block_size))
    next_start = Lock()

    def work_on_blocks() -> None:
        while True:
            with next_start:
                start = next(starts, n_items)
            if start == n_items:
                return
            work(start, min(start + block_size, n_items), *arguments)

    pool = _pool(os.getpid())
    others = [pool.submit(work_on_blocks) for _ in range(n_threads - 1)]
    try:
        work_on_blocks()  # this thread is one of them
    finally:
        # One that no thread has begun has nothing left to do.
        errors = [None if other.cancel() else other.exception() for other in others]
    for error in errors:
        if error is not None:
            raise error


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of this process, as many as it takes: they do not survive a fork."""
    return ThreadPoolExecutor(MOST_THREADS, "tempering")
