"""Work on many items of a batch, in blocks spread over threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

# More blocks than threads share the work out evenly, few keep calls into the kernels cheap.
BLOCKS_PER_THREAD = 4


def in_blocks(work: Callable[[int, int], None], n_items: int, n_threads: int) -> None:
    """Call work(start, stop) on all items, in blocks spread over threads.

    Kernels release the interpreter's lock and treat each item by itself: neither the blocks nor
    the threads change a bit of a result.
    """
    if n_threads < 1:
        raise ValueError(f"n_threads must be at least 1, got {n_threads}.")
    if n_items == 0:
        return
    if n_threads == 1:
        work(0, n_items)
        return
    block_size = -(-n_items // (BLOCKS_PER_THREAD * n_threads))
    pool = _thread_pool(n_threads, os.getpid())
    tasks = [
        pool.submit(work, start, min(start + block_size, n_items))
        for start in range(0, n_items, block_size)
    ]
    for task in tasks:
        task.result()


@lru_cache(maxsize=4)
def _thread_pool(n_threads: int, process: int) -> ThreadPoolExecutor:
    """A pool that stays, as starting threads takes as long as a small batch.

    Keyed by the process: a pool does not survive a fork.
    """
    return ThreadPoolExecutor(n_threads, thread_name_prefix="tempering-lda")
