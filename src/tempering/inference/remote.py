"""Data that are named rather than held, and are read where they are solved.

A batch of such data can go to a worker of a cluster as a few numbers. Asked for a slice, they give
one of their own kind.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

#: Bytes of blocks that one process keeps of a matrix on disk: those of a window, usually.
CACHED_BYTES = 2**28


class Recipe(ABC):
    """How a worker makes data, from what it was lent."""

    @abstractmethod
    def make(self, *lent: Any) -> Any:
        """The data."""


class Loan(NamedTuple):
    """A recipe, what it takes (objects that a worker keeps from step to step), and where it is."""

    recipe: Recipe
    lent: tuple[Any, ...] = ()
    place: str | None = None


class Remote(ABC):
    """Data that are read where they are solved."""

    shape: tuple[int, ...]

    @abstractmethod
    def __getitem__(self, rows: Any) -> Any:
        """Some of the rows."""

    @abstractmethod
    def read(self) -> Any:
        """The data themselves."""

    @abstractmethod
    def lend(self) -> Loan:
        """What another process needs to read them."""

    def shown(self) -> Any:
        """The data for somebody who may want to look into them."""
        return self


def read(data: Any) -> Any:
    """Data as they are, or read if they were only named."""
    return data.read() if isinstance(data, Remote) else data


class BlockRows(NamedTuple):
    """Some rows of the block of consecutive rows from ``start`` to ``stop``."""

    start: int
    stop: int
    rows: NDArray[np.int32]  # within the block, rising

    def take(self, block: Any) -> Any:
        """These rows of the block."""
        return block if self.rows.size == self.stop - self.start else block[self.rows]


class RowReference(Remote):
    """Rows of a matrix on disk, by their places in its blocks.

    Whoever looks into it, at ``indptr`` say, has it read.

    Parameters
    ----------
    files : StoredRows
        The matrix. One that is in a cluster has ``fetch`` and ``lend`` of its own.
    parts : list of BlockRows
        Where the rows are.
    """

    def __init__(self, files: Any, parts: list[BlockRows]):
        self.files = files
        self.parts = parts
        self.shape = (sum(part.rows.size for part in parts), files.shape[1])

    @classmethod
    def to_blocks(cls, files: Any, blocks: list[tuple[int, int]]) -> RowReference:
        """All rows of some blocks."""
        parts = [
            BlockRows(start, stop, np.arange(stop - start, dtype=np.int32))
            for start, stop in blocks
        ]
        return cls(files, parts)

    def __getitem__(self, rows: Any) -> RowReference:
        """Some of the rows, by a slice or by rising numbers."""
        rows = np.arange(self.shape[0])[rows]
        ends = np.cumsum([0, *(part.rows.size for part in self.parts)])
        places = np.searchsorted(rows, ends)
        parts = [
            part._replace(rows=part.rows[rows[first:last] - end])
            for part, end, first, last in zip(self.parts, ends, places, places[1:])
            if last > first
        ]
        return RowReference(self.files, parts)

    def read(self) -> Any:
        if hasattr(self.files, "fetch"):
            return self.files.fetch(self.parts)
        return stack([part.take(self.files.rows(part.start, part.stop)) for part in self.parts])

    def lend(self) -> Loan:
        if hasattr(self.files, "lend"):
            return self.files.lend(self.parts)
        return Loan(ReadRows(self.parts), (self.files,))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "files" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.read(), name)


class ReadRows(Recipe):
    """Rows of a matrix on disk, read by the worker."""

    def __init__(self, parts: list[BlockRows]):
        self.parts = parts

    def make(self, *lent: Any) -> Any:
        (files,) = lent
        return RowReference(files, self.parts).read()


class BlockCache:
    """A matrix on disk whose last blocks stay in memory, for several batches from a few blocks.

    Another process gets it empty, and fills its own.
    """

    def __init__(self, files: Any, limit: int = CACHED_BYTES):
        self.files, self.path = files, files.path
        self.shape, self.n_tokens = files.shape, files.n_tokens
        self._limit, self._held = limit, 0
        self._blocks: OrderedDict[tuple[int, int], Any] = OrderedDict()
        self._lock = threading.Lock()

    def rows(self, start: int, stop: int) -> Any:
        """The documents from ``start`` to ``stop``, to be left as they are."""
        with self._lock:
            block = self._blocks.pop((start, stop), None)
            if block is None:
                block = self.files.rows(start, stop)
                self._held += _bytes(block)
            self._blocks[start, stop] = block
            while self._held > self._limit and len(self._blocks) > 1:
                _, oldest = self._blocks.popitem(last=False)
                self._held -= _bytes(oldest)
            return block

    def __reduce__(self) -> Any:
        return BlockCache, (self.files, self._limit)


class KeptRows(Remote):
    """Rows in the memory of this process that each worker is sent once, for a fit that takes all
    of them at each step."""

    def __init__(self, data: Any):
        self.data = data
        self.shape = data.shape
        self._shards: dict[tuple[int, int], KeptShard] = {}

    def __getitem__(self, rows: slice) -> KeptShard:
        start, stop, _ = rows.indices(self.shape[0])
        return self._shards.setdefault((start, stop), KeptShard(self.data, start, stop))

    def read(self) -> Any:
        return self.data

    def lend(self) -> Loan:
        return self[:].lend()

    def shown(self) -> Any:
        return self.data


class KeptShard(Remote):
    """Some of the rows; the same object at each step, by which it is known again."""

    def __init__(self, data: Any, start: int, stop: int):
        self._data, self._start, self._stop = data, start, stop
        self.shape = (stop - start, *data.shape[1:])

    def __getitem__(self, rows: Any) -> Any:
        return self.read()[rows]

    def read(self) -> Any:
        return self._data[self._start : self._stop]

    def lend(self) -> Loan:
        return Loan(Itself(), (self,))


class Itself(Recipe):
    """What was lent, as it is."""

    def make(self, *lent: Any) -> Any:
        return lent[0]


class Enclosed(Recipe):
    """Data that come with the recipe."""

    def __init__(self, data: Any):
        self._data = data

    def make(self, *lent: Any) -> Any:
        return self._data


def lend(data: Any) -> Loan:
    """How data go to another process."""
    return data.lend() if isinstance(data, Remote) else Loan(Enclosed(data))


def stack(parts: list[Any]) -> Any:
    """Rows of several matrices, or of several references to one, as one."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], RowReference):
        return RowReference(parts[0].files, [part for parent in parts for part in parent.parts])
    return sparse.vstack(parts, format="csr")


def _bytes(block: Any) -> int:
    return block.data.nbytes + block.indices.nbytes + block.indptr.nbytes
