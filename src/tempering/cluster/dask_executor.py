"""The same fit on a Dask cluster: local steps where the workers are, the global update here."""

import asyncio
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from typing import Any, Self
from weakref import WeakKeyDictionary

import distributed
from dask.base import is_dask_collection

from tempering import __version__
from tempering.cluster.dask_source import (
    ArrayBlock,
    Client,
    DaskBlock,
    DaskSource,
    Future,
    by_reference,
    name_blocks,
    read_block,
    solve_run,
)
from tempering.inference.executors import ClusterLost, Executor, SolveShard, add_in_pairs
from tempering.inference.sources import ArraySource, Block, BlockSource, Source
from tempering.models.arguments import check_whole

#: How often a step is made before its workers are given up.
ATTEMPTS = 10

#: Sums of runs that the client adds itself; of more, the workers add pairs first.
FAN_IN = 4

#: Seconds that a scheduler has to answer, and a worker to take what is sent.
ANSWERING_SECONDS = 10.0


class WorkerLost(Exception):
    """What a step has sent out is lost with a worker: it must be made again."""


class Connection(distributed.Client):
    """A client that is closed where no scheduler answers: collected later, it can block another."""

    def start(self, **kwargs: Any) -> None:
        try:
            super().start(**kwargs)
        except BaseException:
            self.close()
            raise


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
        if not isinstance(client, str | distributed.Client):
            raise TypeError(
                "client must be a dask.distributed.Client or the address of a scheduler such as "
                f"'tcp://host:8786'; got {type(client).__name__}."
            )
        if not isinstance(client, str) and client.asynchronous:
            raise ValueError("client must not be asynchronous: a fit blocks until it is done.")
        self._owned = isinstance(client, str)
        self._client: Any = None if isinstance(client, str) else client
        self._address = client
        if not isinstance(client, str):
            self._address = getattr(client.scheduler, "address", "a client that was closed")
        self._direct, self._timeout = direct, timeout
        self._able: set[str] = set()  # workers that have this package
        # What workers hold of arrays and files: each block from its first use to its last.
        self._held: WeakKeyDictionary[Block, Future] = WeakKeyDictionary()
        self._warned = False

    @property
    def client(self) -> Client:
        """The client, connected when it is first used."""
        if self._client is None:
            seconds = min(self._timeout, ANSWERING_SECONDS)
            try:
                self._client = Connection(self._address, timeout=seconds, set_as_default=False)
            # Whatever else listens there, such as a dashboard, gives errors of any kind.
            except Exception as error:
                raise ClusterLost(
                    f"no Dask scheduler answers at {self._address}: start one (dask scheduler), or "
                    f"check the address. ({error})"
                ) from error
        return self._client

    def close(self) -> None:
        """Close the connection, if it was made from an address."""
        self._forget()
        if self._owned and self._client is not None:
            self._client.close()
            self._client = None

    def batch_size(self, local: int = 1024) -> int:
        """The minibatch of as many documents a worker, with the workers that are there now."""
        check_whole(local=local)
        return local * len(self._threads())

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [result for run in self._solve(function, list(items), add=False) for result in run]

    def add_up(self, function: Any, items: Iterable[Any]) -> Any:
        items = list(items)
        if len(items) == 1 and not self._warned and hasattr(function, "model"):
            self._warned = True
            n_workers, size = len(self._threads()), function.model.shard_size
            if n_workers > 1:
                warnings.warn(
                    f"a batch is one shard of at most {size} data, so that one of the {n_workers} "
                    f"workers does all the work: a batch_size of {size * n_workers} would occupy "
                    "them all.",
                    stacklevel=2,
                )
        return add_in_pairs(self._solve(function, items, add=True))

    @contextmanager
    def reading(self, source: Source) -> Iterator[Source]:
        """Corpora on disk are read by the workers; what is the batch of every step, they keep."""
        if isinstance(source, BlockSource):
            source = source.by_reference()
        elif type(source) is ArraySource and source.whole:
            source = by_reference(source)
        try:
            yield source
        finally:
            self._forget()

    def open(self, data: Any, batch_size: Callable[[int], int]) -> Any:
        """A Dask bag or dataframe as a source."""
        if not is_dask_collection(data):
            return data
        self._threads()  # looks whether the workers can read it
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
                self._forget()
                last = lost
        raise ClusterLost(
            f"the workers of {self._address} were lost in {ATTEMPTS} attempts at one step: {last} "
            "Give them more memory, or make batches smaller."
        )

    def _attempt(self, function: Any, items: list[Any], add: bool) -> list[Any]:
        runs = cut_into_runs(len(items), self._threads())
        named = [name_blocks(function, items[shards]) for shards, _ in runs]
        workers = sorted({worker for _, worker in runs})
        contents = [(shards, worker) for (shards, _), (_, worker) in zip(named, runs)]
        # The others fetch the posterior from the first ones.
        contents += [(function, worker) for worker in workers[:8]]
        held = self._send(contents)
        try:
            results, tasks = [], dict(zip(workers, cycle(held[len(runs) :])))
            for shards, (_, worker), (_, used) in zip(held, runs, named):
                arguments = (tasks[worker], shards, [self._block(each, worker) for each in used])
                # Dask knows where the blocks of its collections are, and moves as few as it can.
                where = None if used and isinstance(used[0], DaskBlock) else worker
                results.append(self._submit(solve_run, *arguments, add, worker=where))
            held += results
            while add and len(results) > FAN_IN:
                pairs = [results[n : n + 2] for n in range(0, len(results), 2)]
                results = [self._submit(add_in_pairs, pair) for pair in pairs]
                held += results
            return self._gather(results, set(workers))
        finally:
            for future in held:
                future.release()

    def _threads(self) -> dict[str, int]:
        """The workers and how many threads each has; waits for a first one."""
        client = self.client
        try:
            if client.status != "running":
                raise OSError(f"the client is {client.status}")
            threads = dict(client.nthreads())
            if not threads:
                client.wait_for_workers(1, timeout=self._timeout)
                threads = dict(client.nthreads())
            if unknown := threads.keys() - self._able:
                self._require_package(unknown)
        except TimeoutError as error:
            raise ClusterLost(
                f"no worker has joined the scheduler at {self._address} in {self._timeout:g} "
                "seconds: start some (dask worker ADDRESS)."
            ) from error
        except (OSError, RuntimeError, CancelledError) as error:
            raise ClusterLost(
                f"the connection to the Dask scheduler at {self._address} is lost."
            ) from error
        return threads

    def _require_package(self, workers: set[str]) -> None:
        """Raise ``ImportError`` if one of these workers has not this package, of this version."""
        # Sent without a thing of the package, which a worker that lacks it could not unpack.
        version = "__import__('tempering.cluster.dask_source').__version__"
        answers = self.client.run(eval, version, workers=sorted(workers), on_error="return")
        for worker, answer in sorted(answers.items()):
            if answer == __version__:
                self._able.add(worker)
            elif isinstance(answer, ImportError | str):
                what = f"has tempering {answer}" if isinstance(answer, str) else f"says: {answer}"
                raise ImportError(
                    f"the worker {worker} of {self._address} {what}. Each worker needs tempering "
                    f"{__version__}, as here: install it there (pip install 'tempering["
                    f"distributed]=={__version__}') and start the worker again."
                )

    def _send(self, contents: Sequence[tuple[Any, str]]) -> list[Future]:
        """Each object to its worker, all at once."""
        options: Any = {"hash": False, "timeout": ANSWERING_SECONDS, "asynchronous": True}
        scatter = partial(self.client.scatter, direct=self._direct, **options)

        async def send_all() -> list[list[Future]]:
            sending = (scatter([content], workers=[worker]) for content, worker in contents)
            return await asyncio.gather(*sending)

        try:
            return [future for (future,) in self.client.sync(send_all)]
        except (OSError, TimeoutError, KeyError, ValueError, CancelledError) as error:
            raise WorkerLost(f"a worker could not be sent to: {error!r}") from error

    def _submit(self, function: Any, *arguments: Any, worker: str | None = None) -> Future:
        """A task, for a worker if it is there, or for one that Dask chooses."""
        where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        return self.client.submit(function, *arguments, pure=False, **where)

    def _gather(self, futures: list[Future], used: set[str]) -> list[Any]:
        """The results; :class:`WorkerLost` if what they need was lost with one of these workers."""
        try:
            while any(future.status == "pending" for future in futures):
                try:
                    with self.client.as_current():
                        distributed.wait(futures, timeout=2.0)
                except TimeoutError:
                    if gone := used - self._threads().keys():
                        raise WorkerLost(f"the worker {min(gone)} is gone.") from None
            for future in futures:
                if future.status == "error":
                    future.result()  # raises: of several errors the first, as one process would
            return list(self.client.gather(futures, direct=self._direct))
        except CancelledError as error:
            raise WorkerLost(str(error)) from error
        except distributed.KilledWorker as error:
            raise ClusterLost(
                f"several workers of {self._address} died of the same shard; they may have too "
                f"little memory. ({error})"
            ) from error

    def _block(self, block: Block, worker: str) -> Future:
        """A block in the memory of a worker."""
        if isinstance(block, DaskBlock):
            return block.future
        future = self._held.get(block)
        if future is None:
            if isinstance(block, ArrayBlock):
                (future,) = self._send([(block.read(), worker)])
            else:
                future = self._submit(read_block, block, worker=worker)
            self._held[block] = future
        return future

    def _forget(self) -> None:
        """Let the workers drop their blocks."""
        # Not left to the garbage collector: an error that somebody keeps would hold them.
        while self._held:
            self._held.popitem()[1].release()

    # Estimators are cloned and sent about with their parameters: a connection is shared.

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> Any:
        options = {"direct": self._direct, "timeout": self._timeout}
        return partial(DaskExecutor, self._address, **options), ()

    def __repr__(self) -> str:
        return f"DaskExecutor({self._address!r})"


def cut_into_runs(n_shards: int, threads: Mapping[str, int]) -> list[tuple[slice, str]]:
    """The longest runs of shards, with their workers, that take at most a tenth longer.

    A run has 2^m shards and begins at a multiple of 2^m, so that its sum is one that
    :func:`add_in_pairs` makes anyway: where shards are solved never changes what comes out.
    Neighbours go to the same worker, which then reads few blocks, and at each step to the same.
    """
    places = [worker for worker in sorted(threads) for _ in range(threads[worker])]

    def busiest(size: int) -> int:
        """The most shards that one thread has to solve, in runs of this size."""
        n_runs = -(-n_shards // size)
        return min(n_shards, size * -(-n_runs // len(places)))

    sizes = [2**power for power in range(n_shards.bit_length() + 1)]
    size = max(size for size in sizes if busiest(size) <= 1.1 * busiest(1))
    starts = range(0, n_shards, size)
    return [
        (slice(start, start + size), places[number * len(places) // len(starts)])
        for number, start in enumerate(starts)
    ]
