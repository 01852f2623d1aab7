"""Which worker solves which shards.

Workers get runs of neighbouring shards. A run has 2^m shards and begins at a multiple of 2^m, so
that its sum is one that :func:`tempering.inference.executors.add_in_pairs` makes anyway: where
shards are solved decides how much is sent, and never what comes out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

#: How much longer than with the finest cut a step may take, for the sake of fewer and longer runs.
SLACK = 1.1


class Run(NamedTuple):
    """Neighbouring shards for one worker."""

    shards: slice
    worker: str


def cut_into_runs(n_shards: int, threads: Mapping[str, int]) -> list[Run]:
    """The longest runs that keep the threads of all workers about equally busy.

    Neighbours go to the same worker, which then reads few blocks, and at each step to the same.

    >>> [(run.shards.start, run.worker) for run in cut_into_runs(8, {"a": 1, "b": 1})]
    [(0, 'a'), (4, 'b')]
    """
    places = [worker for worker in sorted(threads) for _ in range(threads[worker])]
    sizes = [2**power for power in range(n_shards.bit_length() + 1)]
    busiest = [_busiest(n_shards, size, len(places)) for size in sizes]
    size = max(size for size, most in zip(sizes, busiest) if most <= SLACK * busiest[0])
    starts = range(0, n_shards, size)
    return [
        Run(slice(start, start + size), places[number * len(places) // len(starts)])
        for number, start in enumerate(starts)
    ]


def _busiest(n_shards: int, size: int, n_places: int) -> int:
    """The most shards that one thread has to solve, in runs of this size."""
    shards: Counter[int] = Counter()
    n_runs = -(-n_shards // size)
    for run in range(n_runs):
        shards[run * n_places // n_runs] += min(size, n_shards - run * size)
    return max(shards.values())
