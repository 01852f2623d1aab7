"""The way to a Dask cluster: its client, objects and tasks for its workers, what goes wrong."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

from tempering import __version__
from tempering.inference.executors import ClusterLost

# Dask's own types have each result of a client also as a coroutine, for asynchronous clients.
Client = Any
Future = Any

#: Seconds between two looks at whether the workers of a step are still there.
WATCH_SECONDS = 2.0

#: Seconds that a scheduler has to answer: it is there, or the address is wrong.
ANSWERING_SECONDS = 10.0

#: Seconds that sending to one worker may wait for it.
SENDING_SECONDS = 10.0


class WorkerLost(Exception):
    """What a step has sent out is lost with a worker: it must be made again."""


class Connection:
    """A client, connected when it is first used; the arguments are those of ``DaskExecutor``."""

    def __init__(self, client: Client | str, direct: bool, timeout: float):
        distributed = require_distributed()
        if not isinstance(client, str | distributed.Client):
            raise TypeError(
                "client must be a dask.distributed.Client or the address of a scheduler such as "
                f"'tcp://host:8786'; got {type(client).__name__}."
            )
        if not isinstance(client, str) and client.asynchronous:
            raise ValueError("client must not be asynchronous: a fit blocks until it is done.")
        self._given: Any = client
        self._client: Any = None if isinstance(client, str) else client
        self.direct, self.timeout = direct, timeout
        self._able: set[str] = set()

    @property
    def address(self) -> str:
        """Of the scheduler."""
        if isinstance(self._given, str):
            return self._given
        scheduler = self._given.scheduler
        return scheduler.address if scheduler is not None else "a client that was closed"

    @property
    def client(self) -> Client:
        """The client, connected."""
        if self._client is None:
            seconds = min(self.timeout, ANSWERING_SECONDS)
            try:
                self._client = require_distributed().Client(
                    self._given, timeout=seconds, set_as_default=False
                )
            # Whatever else listens there, such as a dashboard, gives errors of any kind.
            except Exception as error:
                raise ClusterLost(
                    f"no Dask scheduler answers at {self._given}: start one (dask scheduler), or "
                    f"check the address. ({error})"
                ) from error
        return self._client

    def close(self) -> None:
        """Close the client, if it is our own."""
        if isinstance(self._given, str) and self._client is not None:
            self._client.close()
            self._client = None

    def threads(self) -> dict[str, int]:
        """The workers and how many threads each has; waits for a first one."""
        client = self.client
        try:
            if client.status != "running":
                raise OSError(f"the client is {client.status}")
            threads = dict(client.nthreads())
            if not threads:
                client.wait_for_workers(1, timeout=self.timeout)
                threads = dict(client.nthreads())
            self._require_package(threads.keys() - self._able)
        except TimeoutError as error:
            raise ClusterLost(
                f"no worker has joined the scheduler at {self.address} in {self.timeout:g} seconds:"
                " start some (dask worker ADDRESS)."
            ) from error
        except (OSError, RuntimeError, CancelledError) as error:
            raise ClusterLost(
                f"the connection to the Dask scheduler at {self.address} is lost."
            ) from error
        return threads

    def _require_package(self, workers: set[str]) -> None:
        """Raise ``ImportError`` if one of these workers has not this package, of this version."""
        if not workers:
            return
        # Sent without a thing of the package, which a worker that lacks it could not unpack.
        version = "__import__('tempering.cluster.dask_source').__version__"
        answers = self.client.run(eval, version, workers=sorted(workers), on_error="return")
        for worker, answer in sorted(answers.items()):
            if answer == __version__:
                self._able.add(worker)
            elif isinstance(answer, ImportError | str):
                what = f"has tempering {answer}" if isinstance(answer, str) else f"says: {answer}"
                raise ImportError(
                    f"the worker {worker} of {self.address} {what}. Each worker needs tempering "
                    f"{__version__}, as here: install it there (pip install 'tempering["
                    f"distributed]=={__version__}') and start the worker again."
                )

    def send(self, contents: Sequence[tuple[Any, str]]) -> list[Future]:
        """Each object to its worker, all at once."""
        options: Any = {
            "direct": self.direct,
            "hash": False,
            "timeout": SENDING_SECONDS,
            "asynchronous": True,
        }

        async def send_all() -> list[list[Future]]:
            sending = (
                self.client.scatter([content], workers=[worker], **options)
                for content, worker in contents
            )
            return await asyncio.gather(*sending)

        try:
            return [future for (future,) in self.client.sync(send_all)]
        except (OSError, TimeoutError, KeyError, ValueError, CancelledError) as error:
            raise WorkerLost(f"a worker could not be sent to: {error!r}") from error

    def submit(self, function: Any, *arguments: Any, worker: str | None = None) -> Future:
        """A task, for a worker if it is there, or for one that Dask chooses."""
        where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        return self.client.submit(function, *arguments, pure=False, **where)

    def gather(self, futures: list[Future], used: set[str]) -> list[Any]:
        """The results; :class:`WorkerLost` if what they need was lost with one of these workers."""
        distributed = require_distributed()
        try:
            while any(future.status == "pending" for future in futures):
                try:
                    with self.client.as_current():
                        distributed.wait(futures, timeout=WATCH_SECONDS)
                except TimeoutError:
                    gone = used - self.threads().keys()
                    if gone:
                        raise WorkerLost(f"the worker {min(gone)} is gone.") from None
            for future in futures:
                if future.status == "error":
                    future.result()  # raises: of several errors the first, as one process would
            return list(self.client.gather(futures, direct=self.direct))
        except CancelledError as error:
            raise WorkerLost(str(error)) from error
        except distributed.KilledWorker as error:
            raise ClusterLost(
                f"several workers of {self.address} died of the same shard; they may have too "
                f"little memory. ({error})"
            ) from error


def require_distributed() -> Any:
    """The package, or an error that says how to get it."""
    try:
        import distributed
    except ImportError:
        raise ImportError(
            "a fit on a cluster needs Dask: pip install 'tempering[distributed]'."
        ) from None
    return distributed
