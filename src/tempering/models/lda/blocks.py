"""Work on many items of a batch, in blocks spread over threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

#: Blocks of a thread at most: more share the work out evenly, but each takes a while to hand over.
BLOCKS_PER_THREAD = 4

#: Items of a block at least, where there are enough for all threads: of documents, and of words,
#: which take far less each.
DOCUMENTS, WORDS = 64, 2048


def in_blocks(
    work: Callable[[int, int], None], n_items: int, n_threads: int, smallest: int = DOCUMENTS
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
    n_blocks = min(max(n_items // smallest, n_threads), BLOCKS_PER_THREAD * n_threads)
    block_size = -(-n_items // n_blocks)
    pool = _thread_pool(n_threads, os.getpid())
    tasks = [
        pool.submit(work, start, min(start + block_size, n_items))
        for start in range(block_size, n_items, block_size)
    ]
    work(0, min(block_size, n_items))  # the first one here: one thread less to wake up
    for task in tasks:
        task.result()


@lru_cache(maxsize=4)
def _thread_pool(n_threads: int, process: int) -> ThreadPoolExecutor:
    """A pool that stays, as starting threads takes as long as a small batch.

    Keyed by the process: a pool does not survive a fork.
    """
    return ThreadPoolExecutor(n_threads, thread_name_prefix="tempering-lda")
