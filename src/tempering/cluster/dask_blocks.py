"""Rows that a cluster keeps in the memory of its workers, in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, repeat
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tempering.cluster.dask_connection import Client, Connection, Future
from tempering.cluster.dask_worker import read_block
from tempering.inference.remote import Block, RowReference, take_rows
from tempering.inference.sources import ArraySource, Batch

#: Rows of an array that workers are sent as one.
ROWS_OF_A_BLOCK = 4096


class ArrayBlock(Block):
    """Rows of an array in the memory of this process."""

    def read(self) -> Any:
        return self.files[self.start : self.stop]


class DaskBlock(Block):
    """Rows that are in the memory of the workers, and are made again there if they are lost."""

    def __init__(self, client: Client, future: Future, shape: tuple[int, int]):
        self.client, self.future, self.shape = client, future, shape

    def take(self, rows: NDArray[np.int32]) -> Any:
        return self.take_there(rows).result()

    def take_there(self, rows: NDArray[np.int32]) -> Future:
        """Some of the rows: only these will leave the worker."""
        return self.client.submit(take_rows, self.future, rows, pure=False)


class RepeatedArray(ArraySource):
    """An array that is the batch of every step, in blocks that workers can keep."""

    def __init__(self, data: Any):
        super().__init__(data)
        ends = [*range(0, self.size, ROWS_OF_A_BLOCK), self.size]
        blocks = [ArrayBlock(data, start, stop) for start, stop in pairwise(ends)]
        self._batch = Batch(data, RowReference.to_blocks(blocks))

    def batches(self, seed: int, first_step: int = 0) -> Iterator[Batch]:
        return repeat(self._batch)

    def sweep(self) -> Iterator[Batch]:
        yield self._batch


class BlocksInCluster:
    """What workers hold of arrays and files: each block from its first use to its last.

    A block is read by the worker that first needs it, or is sent there from this process; others
    fetch it from there.
    """

    def __init__(self, connection: Connection):
        self._connection = connection
        self._futures: WeakKeyDictionary[Block, Future] = WeakKeyDictionary()

    def future(self, block: Block, worker: str) -> Future:
        """A block in the memory of a worker."""
        if isinstance(block, DaskBlock):
            return block.future
        future = self._futures.get(block)
        if future is None:
            if isinstance(block, ArrayBlock):
                (future,) = self._connection.send([(block.read(), worker)])
            else:
                future = self._connection.submit(read_block, block, worker=worker)
            self._futures[block] = future
        return future

    def forget(self) -> None:
        """Let the workers drop them."""
        # Not left to the garbage collector: an error that somebody keeps would hold them.
        while self._futures:
            self._futures.popitem()[1].release()
