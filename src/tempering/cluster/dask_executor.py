"""The same fit on a Dask cluster: local steps where the workers are, the global update here."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tempering.cluster.dask_connection import Address, Client, Connection, Future, WorkerLost
from tempering.cluster.dask_placement import cut_into_runs, slots, spread
from tempering.cluster.dask_source import DaskSource, is_dask_collection
from tempering.cluster.dask_traffic import Traffic, n_bytes
from tempering.cluster.dask_worker import Answer, Parcel, Shard, add_answers, columns_of, solve_run
from tempering.inference.executors import ClusterLost, Executor, add_in_pairs
from tempering.inference.remote import KeptShard, Remote, lend
from tempering.inference.sources import ArraySource, KeptSource, Source
from tempering.inference.streaming import BlockSource

#: How often a step is made before its workers are given up.
ATTEMPTS = 10

#: Workers that the client sends the posterior to itself; the others fetch it from these.
HOLDERS = 8

#: Sums of runs that the client adds itself; of more, the workers add pairs first.
FAN_IN = 4

#: Bytes of a run up to which it goes with its task, through the scheduler.
SMALL_RUN = 2**16

#: Bytes of the posterior above which workers are asked which of its columns their documents use.
WORTH_ASKING = 2**25


class Run(NamedTuple):
    """Neighbouring shards for one worker."""

    items: Parcel
    lent: list[list[Any]]
    worker: str
    size: int

    @property
    def inline(self) -> bool:
        """Whether it goes with its task."""
        return self.size <= SMALL_RUN


class DaskExecutor(Executor):
    """Solves the shards of a batch on the workers of a Dask cluster.

    In each step the workers get the posterior (the columns of the batch alone, where those are
    fewer), read or are sent their shards, and return sums of statistics. The result has the bits of
    a fit in one process, whatever the number of workers, if all machines have the same kind of
    processor.

    Parameters
    ----------
    client : dask.distributed.Client or str
        A client, or the address of a scheduler.
    direct : bool
        Send to the workers, and receive from them, without a detour over the scheduler. Pass False
        where this process can reach the scheduler alone.
    timeout : float
        Seconds to wait for a first worker, and for the scheduler, but ten at most for that.

    Attributes
    ----------
    traffic : Traffic
        What was sent, and how long the workers were busy.

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
        self._kept: dict[tuple[int, str], tuple[Any, Future]] = {}
        self._warned = False
        self.traffic = Traffic()

    @property
    def client(self) -> Client:
        """The client."""
        return self._connection.client

    def close(self) -> None:
        """Close the connection, if it was made from an address."""
        self._kept.clear()
        self._connection.close()

    def batch_size(self, local: int = 1024) -> int:
        """The minibatch of as many documents a worker, with the workers that are there now."""
        if local < 1:
            raise ValueError(f"local must be at least 1 document; got {local}.")
        return local * len(self._connection.threads())

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        answers = self._solve(function, list(items), add=False)
        return [result for answer in answers for result in answer.result]

    def add_up(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        items = list(items)
        self._warn_of_idle_workers(function, items)
        return add_in_pairs(self._solve(function, items, add=True)).result

    @contextmanager
    def reading(self, source: Source) -> Iterator[Source]:
        """Corpora on disk are read by the workers; what is the batch of every step, they keep."""
        if isinstance(source, BlockSource):
            source = source.by_reference()
        elif type(source) is ArraySource and source.whole:
            source = KeptSource(source.data)
        try:
            yield source
        finally:
            self._kept.clear()

    def open(self, data: Any, batch_size: Callable[[int], int]) -> Any:
        """A Dask bag or dataframe as a source."""
        if not is_dask_collection(data):
            return data
        self._connection.threads()  # looks whether the workers can read it
        return DaskSource(data, self.client, batch_size)

    def _solve(self, function: Any, items: list[Any], add: bool) -> list[Answer]:
        """The answers of the runs, in order; the step is made again if workers are lost."""
        if not items:
            return []
        for _ in range(ATTEMPTS):
            try:
                return self._attempt(function, items, add)
            except WorkerLost as lost:
                self._kept.clear()
                self.traffic.repeats += 1
                last = lost
        raise ClusterLost(
            f"the workers of {self._connection.address} were lost in {ATTEMPTS} attempts at one "
            f"step: {last} Give them more memory, or make batches smaller."
        )

    def _attempt(self, function: Any, items: list[Any], add: bool) -> list[Answer]:
        started = time.perf_counter()
        threads = self._connection.threads()
        runs = self._runs(function, items, threads)
        if hasattr(function, "packed"):
            function = function.packed(self._columns(function, items, runs))
        parcel, used = Parcel(function), sorted({run.worker for run in runs})
        holders = used[:HOLDERS]
        addressed = [Address(parcel, worker) for worker in holders]
        addressed += [Address(run.items, run.worker) for run in runs if not run.inline]
        held = self._connection.send(addressed)
        try:
            near = {worker: held[n % len(holders)] for n, worker in enumerate(used)}
            parcels = iter(held[len(holders) :])
            futures = [
                self._submit(
                    solve_run,
                    near[run.worker],
                    run.items if run.inline else next(parcels),
                    run.lent,
                    add,
                    worker=run.worker,
                )
                for run in runs
            ]
            held += futures
            while add and len(futures) > FAN_IN:
                pairs = [futures[n : n + 2] for n in range(0, len(futures), 2)]
                futures = [
                    self._submit(add_answers, *pair) if len(pair) == 2 else pair[0]
                    for pair in pairs
                ]
                held += futures
            answers = self._connection.gather(futures, set(used))
        finally:
            # Not left to the garbage collector: an error that somebody keeps would hold them.
            for future in held:
                future.release()
        self.traffic.bytes_sent += n_bytes(parcel) * len(holders) + sum(run.size for run in runs)
        self._count(answers, time.perf_counter() - started)
        return answers

    def _submit(self, function: Any, *arguments: Any, worker: str | None = None) -> Future:
        """A task, preferably for one of the workers."""
        return self.client.submit(
            function,
            *arguments,
            workers=None if worker is None else [worker],
            allow_other_workers=worker is not None,
            pure=False,
        )

    def _runs(self, function: Any, items: list[Any], threads: dict[str, int]) -> list[Run]:
        """The items in runs, each for a worker: the one that has its data, or the next."""
        places = slots(threads)
        cut = cut_into_runs(len(items), len(places))
        runs = []
        for numbers, worker in zip(cut, spread(len(cut), places)):
            run = items[numbers.start : numbers.stop]
            if not hasattr(function, "packed"):
                parcel = Parcel(run)
                runs.append(Run(parcel, [[] for _ in run], worker, n_bytes(parcel)))
                continue
            loans = [lend(data) for (_, data), _ in run]
            worker = next((loan.place for loan in loans if loan.place in threads), worker)
            assert worker is not None
            shards = [
                Shard(rows, loan.recipe, before) for ((rows, _), before), loan in zip(run, loans)
            ]
            lent = [[self._keep(thing, worker) for thing in loan.lent] for loan in loans]
            parcel = Parcel(shards)
            runs.append(Run(parcel, lent, worker, n_bytes(parcel)))
        return runs

    def _columns(self, task: Any, items: list[Any], runs: list[Run]) -> NDArray[np.int64] | None:
        """The columns that the batch uses; None where it is not worth while to know them."""
        if not task.column_bytes:
            return None
        data = [data for (_, data), _ in items]
        if not any(isinstance(part, Remote) for part in data):
            used = np.zeros(data[0].shape[1], bool)
            for part in data:
                used[part.indices] = True
            return np.flatnonzero(used)
        if task.column_bytes < WORTH_ASKING or any(isinstance(part, KeptShard) for part in data):
            return None
        futures = [self._submit(columns_of, run.items, run.lent, worker=run.worker) for run in runs]
        columns = self._connection.gather(futures, {run.worker for run in runs})
        return np.unique(np.concatenate(columns))

    def _keep(self, thing: Any, worker: str) -> Future:
        """An object that a worker keeps until the fit is over; what is in the cluster stays."""
        from distributed import Future as InCluster

        if isinstance(thing, InCluster):
            return thing
        key = (id(thing), worker)
        if key not in self._kept:
            content = Parcel(thing.read() if isinstance(thing, KeptShard) else thing)
            (future,) = self._connection.send([Address(content, worker)])
            self.traffic.bytes_sent += n_bytes(content)
            self._kept[key] = (thing, future)
        return self._kept[key][1]

    def _count(self, answers: list[Answer], seconds: float) -> None:
        busy: dict[str, float] = {}
        for answer in answers:
            for worker, more in answer.seconds.items():
                busy[worker] = busy.get(worker, 0.0) + more
        self.traffic.bytes_received += sum(n_bytes(answer) for answer in answers)
        self.traffic.steps += 1
        self.traffic.seconds += seconds
        self.traffic.busy_seconds += max(busy.values())

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
