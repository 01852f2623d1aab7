"""The same fit on a Dask cluster: local steps where the workers are, the global update here."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple, Self

from tempering.cluster.dask_connection import Client, Connection, WorkerLost
from tempering.cluster.dask_source import (
    BlocksInCluster,
    DaskBlock,
    DaskSource,
    RepeatedArray,
    is_dask_collection,
    solve_run,
)
from tempering.inference.executors import ClusterLost, Executor, SolveShard, add_in_pairs
from tempering.inference.sources import ArraySource, Block, RowReference, Source
from tempering.inference.streaming import BlockSource

#: How often a step is made before its workers are given up.
ATTEMPTS = 10

#: Workers that the client sends the posterior to itself; the others fetch it from these.
HOLDERS = 8

#: Sums of runs that the client adds itself; of more, the workers add pairs first.
FAN_IN = 4

#: How much longer than with the finest cut a step may take, for the sake of fewer and longer runs.
SLACK = 1.1


class DaskExecutor(Executor):
    """Solves the shards of a batch on the workers of a Dask cluster.

    In each step the workers get the posterior, read or are sent their shards, and return sums of
    statistics. The result has the bits of a fit in one process, whatever the number of workers, if
    all machines have the same kind of processor.

    Parameters
    ----------
    client : dask.distributed.Client or str
        A client, or the address of a scheduler.
    direct : bool
        Send to the workers, and receive from them, without a detour over the scheduler. Pass False
        where this process can reach the scheduler alone.
    timeout : float
        Seconds to wait for a first worker, and for the scheduler, but ten at most for that.

    Examples
    --------
    A cluster of threads in this process, to try it out:

    >>> import numpy as np
    >>> from distributed import Client
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.cluster import DaskExecutor
    >>> X = np.repeat([[4, 3, 0, 0], [0, 0, 5, 4]], 50, axis=0)
    >>> lda = LatentDirichletAllocation(n_components=2, random_state=0)
    >>> alone = lda.fit(X).components_
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     shared = lda.set_params(executor=DaskExecutor(client)).fit(X).components_
    >>> np.array_equal(alone, shared)
    True
    """

    def __init__(self, client: Client | str, *, direct: bool = True, timeout: float = 60.0):
        self._connection = Connection(client, direct, timeout)
        self._blocks = BlocksInCluster(self._connection)
        self._warned = False

    @property
    def client(self) -> Client:
        """The client."""
        return self._connection.client

    def close(self) -> None:
        """Close the connection, if it was made from an address."""
        self._blocks.forget()
        self._connection.close()

    def batch_size(self, local: int = 1024) -> int:
        """The minibatch of as many documents a worker, with the workers that are there now."""
        if local < 1:
            raise ValueError(f"local must be at least 1 document; got {local}.")
        return local * len(self._connection.threads())

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [result for run in self._solve(function, list(items), add=False) for result in run]

    def add_up(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        items = list(items)
        self._warn_of_idle_workers(function, items)
        return add_in_pairs(self._solve(function, items, add=True))

    @contextmanager
    def reading(self, source: Source) -> Iterator[Source]:
        """Corpora on disk are read by the workers; what is the batch of every step, they keep."""
        if isinstance(source, BlockSource):
            source = source.by_reference()
        elif type(source) is ArraySource and source.whole:
            source = RepeatedArray(source.data)
        try:
            yield source
        finally:
            self._blocks.forget()

    def open(self, data: Any, batch_size: Callable[[int], int]) -> Any:
        """A Dask bag or dataframe as a source."""
        if not is_dask_collection(data):
            return data
        self._connection.threads()  # looks whether the workers can read it
        return DaskSource(data, self.client, batch_size)

    def _solve(self, function: Any, items: list[Any], add: bool) -> list[Any]:
        """The results of the runs, in order; the step is made again if workers are lost."""
        if not items:
            return []
        if isinstance(function, SolveShard):
            function = function.for_workers()
        for _ in range(ATTEMPTS):
            try:
                return self._attempt(function, items, add)
            except WorkerLost as lost:
                self._blocks.forget()
                last = lost
        raise ClusterLost(
            f"the workers of {self._connection.address} were lost in {ATTEMPTS} attempts at one "
            f"step: {last} Give them more memory, or make batches smaller."
        )

    def _attempt(self, function: Any, items: list[Any], add: bool) -> list[Any]:
        connection = self._connection
        runs = cut_into_runs(len(items), connection.threads())
        named = [name_blocks(function, items[run.shards]) for run in runs]
        blocks = [
            [self._blocks.future(block, run.worker) for block in used]
            for run, (_, used) in zip(runs, named)
        ]
        workers = sorted({run.worker for run in runs})
        holders = workers[:HOLDERS]
        contents = [(function, worker) for worker in holders]
        contents += [(shards, run.worker) for run, (shards, _) in zip(runs, named)]
        held = connection.send(contents)
        try:
            tasks = dict(zip(workers, cycle(held[: len(holders)])))
            shards = held[len(holders) :]
            # Dask knows where the blocks of its collections are, and moves as few as it can.
            chosen_by_dask = any(
                isinstance(block, DaskBlock) for _, used in named for block in used
            )
            results = [
                connection.submit(
                    solve_run,
                    tasks[run.worker],
                    sent,
                    used,
                    add,
                    worker=None if chosen_by_dask else run.worker,
                )
                for run, sent, used in zip(runs, shards, blocks)
            ]
            held += results
            while add and len(results) > FAN_IN:
                pairs = [results[n : n + 2] for n in range(0, len(results), 2)]
                results = [connection.submit(add_in_pairs, pair) for pair in pairs]
                held += results
            return connection.gather(results, set(workers))
        finally:
            # Not left to the garbage collector: an error that somebody keeps would hold them.
            for future in held:
                future.release()

    def _warn_of_idle_workers(self, function: Any, items: list[Any]) -> None:
        if self._warned or len(items) > 1 or not hasattr(function, "model"):
            return
        self._warned = True
        n_workers, size = len(self._connection.threads()), function.model.shard_size
        if n_workers > 1:
            warnings.warn(
                f"a batch is one shard of at most {size} data, so that one of the {n_workers} "
                f"workers does all the work: a batch_size of {size * n_workers} would occupy them "
                "all.",
                stacklevel=2,
            )

    # Estimators are cloned and sent about with their parameters: a connection is shared.

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> Any:
        connection = self._connection
        options = {"direct": connection.direct, "timeout": connection.timeout}
        return partial(DaskExecutor, connection.address, **options), ()

    def __repr__(self) -> str:
        return f"DaskExecutor({self._connection.address!r})"


def name_blocks(function: Any, items: list[Any]) -> tuple[list[Any], list[Block]]:
    """Items as they are sent, and the blocks in which they name their rows, if they do."""
    if not isinstance(function, SolveShard) or not isinstance(items[0][0][1], RowReference):
        return items, []
    numbers: dict[Block, int] = {}
    shards = []
    for (place, data), before in items:
        parts = [
            part._replace(block=numbers.setdefault(part.block, len(numbers))) for part in data.parts
        ]
        shards.append(((place, parts), before))
    return shards, list(numbers)


class ShardRange(NamedTuple):
    """Neighbouring shards for one worker."""

    shards: slice
    worker: str


def cut_into_runs(n_shards: int, threads: Mapping[str, int]) -> list[ShardRange]:
    """The longest runs that keep the threads of all workers about equally busy.

    A run has 2^m shards and begins at a multiple of 2^m, so that its sum is one that
    :func:`add_in_pairs` makes anyway: where shards are solved never changes what comes out.
    Neighbours go to the same worker, which then reads few blocks, and at each step to the same.
    """
    places = [worker for worker in sorted(threads) for _ in range(threads[worker])]
    sizes = [2**power for power in range(n_shards.bit_length() + 1)]
    busiest = [_busiest(n_shards, size, len(places)) for size in sizes]
    size = max(size for size, most in zip(sizes, busiest) if most <= SLACK * busiest[0])
    starts = range(0, n_shards, size)
    return [
        ShardRange(slice(start, start + size), places[number * len(places) // len(starts)])
        for number, start in enumerate(starts)
    ]


def _busiest(n_shards: int, size: int, n_places: int) -> int:
    """The most shards that one thread has to solve, in runs of this size."""
    shards: Counter[int] = Counter()
    n_runs = -(-n_shards // size)
    for run in range(n_runs):
        shards[run * n_places // n_runs] += min(size, n_shards - run * size)
    return max(shards.values())
