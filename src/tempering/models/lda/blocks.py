"""Work on many items of a batch, in blocks spread over threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import Lock

#: Blocks of a thread at most: more share the work out evenly, but each takes a while to begin.
BLOCKS_PER_THREAD = 4

#: Items of a block at least, where there are enough for all threads: of documents, and of words,
#: which take far less each.
FEWEST_DOCUMENTS, FEWEST_WORDS = 64, 2048


def in_blocks(
    work: Callable[[int, int], None], n_items: int, n_threads: int, fewest: int = FEWEST_DOCUMENTS
) -> None:
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
    n_blocks = min(max(n_items // fewest, n_threads), BLOCKS_PER_THREAD * n_threads)
    block_size = -(-n_items // n_blocks)
    starts = iter(range(0, n_items, block_size))
    next_start = Lock()

    def work_on_blocks() -> None:
        while True:
            with next_start:
                start = next(starts, n_items)
            if start == n_items:
                return
            work(start, min(start + block_size, n_items))

    pool = _thread_pool(n_threads - 1, os.getpid())
    others = [pool.submit(work_on_blocks) for _ in range(n_threads - 1)]
    work_on_blocks()  # this thread is one of them
    for other in others:
        other.result()


@lru_cache(maxsize=4)
def _thread_pool(n_threads: int, process: int) -> ThreadPoolExecutor:
    """A pool that stays, as starting threads takes as long as a small batch.

    Keyed by the process: a pool does not survive a fork.
    """
    return ThreadPoolExecutor(n_threads, thread_name_prefix="tempering-lda")
