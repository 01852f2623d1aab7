"""The same fit on a Dask cluster: local steps where the workers are, the global update here."""

from __future__ import annotations

import operator
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from tempering.cluster.dask_connection import Client, Connection, Future, WorkerLost
from tempering.cluster.dask_placement import cut_into_runs, slots, spread
from tempering.cluster.dask_source import DaskRows, DaskSource, is_dask_collection
from tempering.cluster.dask_worker import ShardRows, solve_run
from tempering.inference.executors import ClusterLost, Executor, add_in_pairs
from tempering.inference.remote import RowReference
from tempering.inference.shard_tasks import Part
from tempering.inference.sources import Source
from tempering.inference.streaming import BlockSource

#: How often a step is made before its workers are given up.
ATTEMPTS = 10

#: Workers that the client sends the posterior to itself; the others fetch it from these.
HOLDERS = 8

#: Sums of runs that the client adds itself; of more, the workers add pairs first.
FAN_IN = 4


#: The id of an object, and a worker that holds it.
Key = tuple[int, str]


class Sent(NamedTuple):
    """An object in the memory of a worker."""

    thing: Any  # held, so that no other gets its id
    future: Future


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
        self._sent: dict[Key, Sent] = {}  # by the last step
        self._fitting = False
        self._lock = threading.Lock()  # of what was sent: fits in several threads may share it
        self._warned = False

    @property
    def client(self) -> Client:
        """The client."""
        return self._connection.client

    def close(self) -> None:
        """Close the connection, if it was made from an address."""
        self._forget(self._sent)
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
        """Corpora on disk are read by the workers; a batch that comes again is sent once."""
        self._fitting = True
        try:
            yield source.by_reference() if isinstance(source, BlockSource) else source
        finally:
            with self._lock:
                self._fitting = False
                self._forget(self._sent)

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
        if hasattr(function, "for_workers"):
            function = function.for_workers()
        for _ in range(ATTEMPTS):
            with self._lock:
                try:
                    return self._attempt(function, items, add)
                except WorkerLost as lost:
                    self._forget(self._sent)
                    last = lost
                finally:
                    keys = [k for k in self._sent if k[0] == id(function) or not self._fitting]
                    self._forget(keys)
        raise ClusterLost(
            f"the workers of {self._connection.address} were lost in {ATTEMPTS} attempts at one "
            f"step: {last} Give them more memory, or make batches smaller."
        )

    def _attempt(self, function: Any, items: list[Any], add: bool) -> list[Any]:
        places = slots(self._connection.threads())
        cut = cut_into_runs(len(items), len(places))
        workers = spread(len(cut), places)
        are_shards = hasattr(function, "for_workers")
        taken = [take_apart(item) if are_shards else (None, [item]) for item in items]
        runs = [taken[numbers.start : numbers.stop] for numbers in cut]

        used = sorted(set(workers))
        holders = used[:HOLDERS]
        wanted = {(id(function), holder): function for holder in holders}
        for run, worker in zip(runs, workers):
            for _, objects in run:
                wanted |= {(id(thing), worker): thing for thing in objects if is_to_send(thing)}
        self._send(wanted)

        made: list[Future] = []
        try:
            for run, worker in zip(runs, workers):
                holder = holders[used.index(worker) % len(holders)]
                where = {"workers": [worker], "allow_other_workers": True}
                if any(isinstance(objects[0], list) for _, objects in run):
                    where = {}  # Dask knows who holds the blocks
                made.append(
                    self.client.submit(
                        solve_run,
                        self._sent[id(function), holder].future,
                        [shard for shard, _ in run],
                        [[self._located(thing, worker) for thing in objects] for _, objects in run],
                        add,
                        pure=False,
                        **where,
                    )
                )
            sums = made
            while add and len(sums) > FAN_IN:
                pairs = [sums[n : n + 2] for n in range(0, len(sums), 2)]
                sums = [pair[0] if len(pair) == 1 else self._add(*pair) for pair in pairs]
                made = made + sums
            return self._connection.gather(sums, {worker for _, worker in self._sent})
        finally:
            # Not left to the garbage collector: an error that somebody keeps would hold them.
            for future in made:
                future.release()

    def _add(self, first: Future, second: Future) -> Future:
        return self.client.submit(operator.add, first, second, pure=False)

    def _located(self, thing: Any, worker: str) -> Any:
        """An object as a task takes it: what was sent, by its future."""
        return self._sent[id(thing), worker].future if is_to_send(thing) else thing

    def _send(self, wanted: dict[Key, Any]) -> None:
        """Have the workers hold these objects, and no others; what they have is not sent again."""
        self._forget(self._sent.keys() - wanted.keys())
        missing = defaultdict(list)
        for key in wanted.keys() - self._sent.keys():
            missing[key[1]].append(key)
        sent = self._connection.send(
            {worker: [wanted[key] for key in keys] for worker, keys in missing.items()}
        )
        for worker, keys in missing.items():
            for key, future in zip(keys, sent[worker]):
                self._sent[key] = Sent(wanted[key], future)

    def _forget(self, keys: Iterable[Key]) -> None:
        for key in list(keys):
            self._sent.pop(key).future.release()

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
        return _connect, (connection.address, connection.direct, connection.timeout)

    def __repr__(self) -> str:
        return f"DaskExecutor({self._connection.address!r})"


def _connect(address: str, direct: bool, timeout: float) -> DaskExecutor:
    return DaskExecutor(address, direct=direct, timeout=timeout)


def take_apart(part: Part) -> tuple[ShardRows, list[Any]]:
    """A shard as it is sent: its place, and the objects that a worker makes it of."""
    (rows, data), before = part
    if not isinstance(data, RowReference):
        return ShardRows(rows, None), [data, before]
    files = data.files
    source = files.blocks_of(data.parts) if isinstance(files, DaskRows) else files
    return ShardRows(rows, data.parts), [source, before]


def is_to_send(thing: Any) -> bool:
    """Whether something is neither nothing nor a list, which is of blocks that the cluster has."""
    return thing is not None and not isinstance(thing, list)
