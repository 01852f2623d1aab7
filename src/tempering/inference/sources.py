"""Where batches come from; rows that are named rather than held, to be read where they are solved.

The order of pass p depends on the seed and on p alone, so a run can be taken up again at any step.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, repeat
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.models.arguments import check_number
from tempering.models.base import DataSource


class Batch(NamedTuple):
    """Some rows of the data."""

    data: Any
    #: The same rows by their names, where it is not this process that solves them.
    named: RowReference | None = None

    @property
    def size(self) -> int:
        """Number of data."""
        return self.data.shape[0]

    def shards(self, size: int) -> list[tuple[slice, Any]]:
        """The batch in pieces of ``size`` rows, with their place in the batch."""
        data = self.data if self.named is None else self.named
        if self.size <= size:  # a slice of a sparse matrix is a copy
            return [(slice(0, size), data)]
        slices = [slice(start, start + size) for start in range(0, self.size, size)]
        return [(rows, data[rows]) for rows in slices]


@runtime_checkable
class Source(DataSource, Protocol):
    """What the engine asks of a source of data."""

    @property
    def whole(self) -> bool:
        """Whether each batch is the whole data."""
        ...

    def batches(self, seed: int, first_step: int = 0) -> Iterator[Batch]:
        """Batches for ever, pass after pass; but for the first ones, to take a run up again."""
        ...

    def sweep(self) -> Iterator[Batch]:
        """All data once, in order."""
        ...


class ArraySource:
    """Rows of an array or of a sparse matrix in memory.

    Parameters
    ----------
    data : array or CSR matrix [N, ...]
        Anything with a shape whose rows can be taken by slices and by index arrays.
    batch_size : int, optional
        Rows in a minibatch; None, or more than there are, for the whole data at each step. A pass
        is cut into batches of as equal a size as can be, none larger than this.

    Examples
    --------
    >>> import numpy as np
    >>> from itertools import islice
    >>> from tempering.inference import ArraySource
    >>> source = ArraySource(np.arange(10)[:, None], batch_size=4)
    >>> [batch.size for batch in islice(source.batches(seed=0), 3)]
    [4, 3, 3]
    """

    def __init__(self, data: Any, batch_size: int | None = None):
        # The rows of a frame of pandas are not what data[rows] gives.
        if not isinstance(getattr(data, "shape", None), tuple) or hasattr(data, "columns"):
            try:
                data = np.asarray(data)
            except (TypeError, ValueError) as error:
                raise ValueError(f"data must be an array, one datum a row: {error}") from error
        if not data.shape or data.shape[0] == 0:
            raise ValueError(f"data must have at least one row; got shape {data.shape}.")
        if batch_size is not None:
            check_number(batch_size, "batch_size", "at least 1, or None", least=1, whole=True)
        self.data = data
        self.batch_size = min(batch_size or self.size, self.size)

    @property
    def size(self) -> int:
        return self.data.shape[0]

    @property
    def whole(self) -> bool:
        return self.batch_size == self.size

    def sample(self, n: int, rng: np.random.Generator) -> Any:
        if n >= self.size:
            return self.data
        return self.data[np.sort(rng.choice(self.size, size=n, replace=False))]

    def batches(self, seed: int, first_step: int = 0) -> Iterator[Batch]:
        if self.whole:
            yield from repeat(self.rows(slice(None)))
        n_batches = -(-self.size // self.batch_size)
        first_pass, skipped = divmod(first_step, n_batches)
        for epoch in count(first_pass):
            order = np.random.default_rng([seed, epoch]).permutation(self.size)
            for rows in np.array_split(order, n_batches)[skipped:]:
                yield self.rows(np.sort(rows))
            skipped = 0

    def sweep(self) -> Iterator[Batch]:
        for start in range(0, self.size, self.batch_size):
            yield self.rows(slice(start, start + self.batch_size))

    def rows(self, rows: Any) -> Batch:
        """Some rows, by a slice or by rising numbers, as a batch."""
        # A slice of a sparse matrix is a copy.
        return Batch(self.data if self.whole else self.data[rows])


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
    """Rows by their places in blocks, read when somebody looks into them."""

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
