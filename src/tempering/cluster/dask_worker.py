"""What runs on a worker of a cluster."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

from tempering.inference.executors import add_in_pairs
from tempering.inference.sources import Block, stack, take_rows

# Of glibc's malloc.h. Blocks above the second go straight to the system, as do freed ones above the
# first; the values are the largest that glibc takes, and what a step of large topics needs.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES, LARGEST_KEPT = 2**28, 2**25


def solve_run(function: Any, items: list[Any], blocks: list[Any], add: bool) -> Any:
    """Apply a function to each item of a run; with ``add``, only their sum leaves the worker.

    Where there are blocks, items are shards that name their rows in them.
    """
    set_up_process()
    if hasattr(function, "on_threads"):
        function = function.on_threads(this_worker().state.nthreads)
    solved = (function(with_rows(item, blocks) if blocks else item) for item in items)
    return add_in_pairs(solved) if add else list(solved)


def with_rows(shard: Any, blocks: list[Any]) -> Any:
    """A shard with its rows, which it named."""
    (place, parts), before = shard
    return (place, stack([take_rows(blocks[part.block], part.rows) for part in parts])), before


def read_block(block: Block) -> Any:
    """A block of a corpus on disk."""
    try:
        return block.read()
    except OSError as error:
        raise OSError(
            f"{error} This was on the worker {this_worker().address}: each worker must see the "
            "corpus at the same path."
        ) from error


def this_worker() -> Any:
    """The worker that this runs on."""
    from distributed import get_worker

    return get_worker()


@cache
def set_up_process() -> None:
    """Have BLAS on one thread, as in each fit, and keep memory that was freed.

    Dask starts its workers with MALLOC_TRIM_THRESHOLD_=65536, by which all that is freed goes back
    to the system; the pages of the next shard's arrays then have to be made anew, which took a
    fifth of a step.
    """
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1, user_api="blas")
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        set_option(M_MMAP_THRESHOLD, LARGEST_KEPT)
        set_option(M_TRIM_THRESHOLD, KEPT_BYTES)
