"""Rows that are named rather than held, and are read where they are solved.

A batch of them can go to a worker of a cluster as a few numbers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

#: Bytes of blocks that one process keeps of a matrix on disk: those of a window, usually.
CACHED_BYTES = 2**28


class BlockRows(NamedTuple):
    """Some rows of the block of consecutive rows from ``start`` to ``stop``."""

    start: int
    stop: int
    rows: NDArray[np.int32]  # within the block, rising


class RowReference:
    """Rows of a matrix elsewhere, by their places in its blocks. A slice of it is another.

    Whoever looks into it, at ``indptr`` say, has it read.

    Parameters
    ----------
    files : BlockCache
        The matrix, or anything else with a ``shape`` that can ``read`` such places.
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
        """The rows themselves."""
        return self.files.read(self.parts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "files" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.read(), name)


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

    def read(self, parts: list[BlockRows]) -> Any:
        """Some rows of some blocks."""
        return take_rows([self.rows(part.start, part.stop) for part in parts], parts)

    def __reduce__(self) -> Any:
        return BlockCache, (self.files, self._limit)


def read(data: Any) -> Any:
    """Data as they are, or read if they were only named."""
    return data.read() if isinstance(data, RowReference) else data


def take_rows(blocks: list[Any], parts: list[BlockRows]) -> Any:
    """Of each block its rows, as one matrix."""
    return stack(
        [
            block if part.rows.size == part.stop - part.start else block[part.rows]
            for block, part in zip(blocks, parts)
        ]
    )


def stack(parts: list[Any]) -> Any:
    """Rows of several matrices, or of several references to one, as one."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], RowReference):
        return RowReference(parts[0].files, [part for parent in parts for part in parent.parts])
    return sparse.vstack(parts, format="csr")


def _bytes(block: Any) -> int:
    return block.data.nbytes + block.indices.nbytes + block.indptr.nbytes
