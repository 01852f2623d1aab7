"""Which worker solves which shards.

Workers get runs of neighbouring shards. A run has 2^m shards and begins at a multiple of 2^m, so
that its sum is one that :func:`tempering.inference.executors.add_in_pairs` makes anyway: where
shards are solved decides how much is sent, and never what comes out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

#: How much longer than with the finest cut a step may take, for the sake of fewer and longer runs.
SLACK = 1.1


def slots(threads: Mapping[str, int]) -> list[str]:
    """The workers in a fixed order, each as often as it has threads."""
    return [worker for worker in sorted(threads) for _ in range(threads[worker])]


def cut_into_runs(n_shards: int, n_slots: int) -> list[range]:
    """The shards in the longest runs that keep the slots about equally busy.

    >>> cut_into_runs(8, 2), cut_into_runs(3, 2)
    ([range(0, 4), range(4, 8)], [range(0, 2), range(2, 3)])
    """
    limit = SLACK * _busiest(_runs(n_shards, 1), n_slots)
    size = 1
    while size < n_shards and _busiest(_runs(n_shards, 2 * size), n_slots) <= limit:
        size *= 2
    return _runs(n_shards, size)


def spread(n_runs: int, places: list[str]) -> list[str]:
    """A slot for each run: neighbours to the same worker, which then reads few blocks."""
    return [places[run * len(places) // n_runs] for run in range(n_runs)]


def _runs(n_shards: int, size: int) -> list[range]:
    return [range(start, min(start + size, n_shards)) for start in range(0, n_shards, size)]


def _busiest(runs: list[range], n_slots: int) -> int:
    """The most shards that one slot has to solve."""
    shards: Counter[int] = Counter()
    for number, run in enumerate(runs):
        shards[number * n_slots // len(runs)] += len(run)
    return max(shards.values())
