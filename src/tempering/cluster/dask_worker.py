"""What runs on a worker of a cluster."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from tempering.inference.executors import add_in_pairs
from tempering.inference.remote import BlockRows, take_rows

# Of glibc's malloc.h. Blocks above the second go straight to the system, as do freed ones above the
# first; the values are the largest that glibc takes, and what a step of large topics needs.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES, LARGEST_KEPT = 2**28, 2**25


@dataclass(frozen=True)
class ShardRows:
    """The place of a shard in its batch and, where the worker reads it, in the corpus."""

    in_batch: slice
    in_blocks: list[BlockRows] | None


def solve_run(
    function: Any, shards: list[ShardRows | None], objects: list[list[Any]], add: bool
) -> Any:
    """Apply a function to each item of a run; with ``add``, only their sum leaves the worker.

    Of each shard there are its data and, where it was solved before, how it was left; of an item
    that is no shard, the item itself.
    """
    keep_freed_memory()
    # BLAS has one thread, as in each fit: its sums depend on how many it has.
    blas_libraries().limit(limits=1, user_api="blas")
    if hasattr(function, "on_threads"):
        function = function.on_threads(this_worker().state.nthreads)
    solved = (function(item_of(shard, some)) for shard, some in zip(shards, objects))
    return add_in_pairs(solved) if add else list(solved)


def item_of(shard: ShardRows | None, objects: list[Any]) -> Any:
    """An item as the function wants it."""
    if shard is None:
        return objects[0]
    data, before = objects
    if isinstance(data, list):  # the blocks, in memory
        data = take_rows(data, shard.in_blocks or [])
    elif shard.in_blocks is not None:
        try:
            data = data.read(shard.in_blocks)
        except OSError as error:
            raise OSError(
                f"{error} This was on the worker {this_worker().address}: each worker must see the "
                "corpus at the same path."
            ) from error
    return (shard.in_batch, data), before


def this_worker() -> Any:
    """The worker that this runs on."""
    from distributed import get_worker

    return get_worker()


@cache
def blas_libraries() -> Any:
    """Those of this process; to look for them takes long."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


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
