"""Rows that are named rather than held, so that they are read where they are solved.

A batch of them goes to a worker of a cluster as a few numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


class Block:
    """Consecutive rows of a matrix on disk."""

    def __init__(self, files: Any, start: int, stop: int):
        self.files, self.start, self.stop = files, start, stop
        self.shape = (stop - start, *files.shape[1:])

    def read(self) -> Any:
        """All its rows."""
        return self.files.rows(self.start, self.stop)

    def take(self, rows: NDArray[np.int32]) -> Any:
        """Some of its rows, by rising numbers."""
        return take_rows(self.read(), rows)


class BlockRows(NamedTuple):
    """Some rows of a block."""

    block: Any
    rows: NDArray[np.int32]  # within the block, rising


class RowReference:
    """Rows by their places in blocks. Some of them are another such reference.

    Whoever looks into it, at ``indptr`` say, has it read.
    """

    def __init__(self, parts: list[BlockRows]):
        self.parts = parts
        self.shape = (sum(part.rows.size for part in parts), *parts[0].block.shape[1:])

    @classmethod
    def to_blocks(cls, blocks: list[Any]) -> RowReference:
        """All rows of some blocks."""
        return cls(
            [BlockRows(block, np.arange(block.shape[0], dtype=np.int32)) for block in blocks]
        )

    def __getitem__(self, rows: Any) -> RowReference:
        """Some of the rows, by a slice or by rising numbers."""
        rows = np.arange(self.shape[0])[rows]
        ends = np.cumsum([0, *(part.rows.size for part in self.parts)])
        places = np.searchsorted(rows, ends)
        return RowReference(
            [
                part._replace(rows=part.rows[rows[first:last] - end])
                for part, end, first, last in zip(self.parts, ends, places, places[1:])
                if last > first
            ]
        )

    def read(self) -> Any:
        """The rows themselves."""
        return stack([part.block.take(part.rows) for part in self.parts])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "parts" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.read(), name)


def read(data: Any) -> Any:
    """Data as they are, or read if they were only named."""
    return data.read() if isinstance(data, RowReference) else data


def take_rows(block: Any, rows: NDArray[np.int32]) -> Any:
    """Some rows of a matrix, by rising numbers."""
    return block if rows.size == block.shape[0] else block[rows]


def stack(parts: list[Any]) -> Any:
    """Rows of several matrices, or of several references, as one."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], RowReference):
        return RowReference([part for reference in parts for part in reference.parts])
    return (
        np.concatenate(parts) if isinstance(parts[0], np.ndarray) else sparse.vstack(parts, "csr")
    )
