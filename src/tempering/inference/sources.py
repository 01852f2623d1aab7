"""Where batches come from: arrays in memory, or a matrix on disk, in memory that does not grow with
the number of documents; and rows that are named rather than held, to be read where they are solved.

The order of pass p depends on the seed and on p alone, so a run can be taken up again at any step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from copy import copy
from itertools import count, pairwise, repeat
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable
from weakref import WeakValueDictionary

import numpy as np
from joblib import Parallel, cpu_count, delayed
from numpy.typing import NDArray
from scipy import sparse

from tempering.models.arguments import check_number, check_whole
from tempering.models.base import DataSource, some_rows


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


class RowSource(ABC):
    """What sources of rows share: each pass is cut into batches of as equal a size as can be."""

    shape: tuple[int, ...]
    batch_size: int

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def whole(self) -> bool:
        """Whether each batch is the whole data."""
        return self.batch_size == self.size

    def batches(self, seed: int, first_step: int = 0) -> Iterator[Batch]:
        """Batches for ever, pass after pass; of those before ``first_step`` nothing is read."""
        if self.whole:
            yield from repeat(self.rows(slice(0, self.size)))
        n_batches = -(-self.size // self.batch_size)
        first_pass, skipped = divmod(first_step, n_batches)
        for epoch in count(first_pass):
            yield from self._pass(seed, epoch, n_batches, skipped if epoch == first_pass else 0)

    def sweep(self) -> Iterator[Batch]:
        """All rows once, in order."""
        for start in range(0, self.size, self.batch_size):
            yield self.rows(slice(start, min(start + self.batch_size, self.size)))

    @abstractmethod
    def rows(self, rows: Any) -> Batch:
        """Some rows, by a slice, as a batch."""

    @abstractmethod
    def _pass(self, seed: int, epoch: int, n_batches: int, skipped: int) -> Iterator[Batch]:
        """The batches of one pass but for the first ones."""


class ArraySource(RowSource):
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

    #: Where each batch is the whole data, these by their names, for those who keep them.
    named: RowReference | None = None

    def __init__(self, data: Any, batch_size: int | None = None):
        if np.ma.is_masked(data):
            raise ValueError("data has masked entries, which would count as data: take them out.")
        # The rows of a frame or of a series of pandas are not what data[rows] gives.
        labelled = hasattr(data, "columns") or hasattr(data, "iloc")
        if not isinstance(getattr(data, "shape", None), tuple) or labelled:
            try:
                data = np.asarray(data)
            except (TypeError, ValueError) as error:
                raise ValueError(f"data must be an array, one datum a row: {error}") from error
        if not data.shape or data.shape[0] == 0:
            raise ValueError(f"data must have at least one row; got shape {data.shape}.")
        if batch_size is not None:
            check_number(batch_size, "batch_size", "at least 1, or None", least=1, whole=True)
        self.data, self.shape = data, data.shape
        self.batch_size = min(batch_size or self.size, self.size)

    def sample(self, n: int, rng: np.random.Generator) -> Any:
        return some_rows(self.data, n, rng)

    def _pass(self, seed: int, epoch: int, n_batches: int, skipped: int) -> Iterator[Batch]:
        order = np.random.default_rng([seed, epoch]).permutation(self.size)
        for rows in np.array_split(order, n_batches)[skipped:]:
            yield self.rows(np.sort(rows))

    def rows(self, rows: Any) -> Batch:
        """Some rows, by a slice or by rising numbers, as a batch."""
        # A slice of a sparse matrix is a copy.
        return Batch(self.data if self.whole else self.data[rows], self.named)


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


class RowReference:
    """Rows by blocks and their rising numbers there, read when somebody looks into them."""

    def __init__(self, parts: list[tuple[Any, NDArray[np.int32]]]):
        self.parts = parts
        self.shape = (sum(rows.size for _, rows in parts), *parts[0][0].shape[1:])

    @classmethod
    def to_blocks(cls, blocks: list[Any]) -> RowReference:
        """All rows of some blocks."""
        return cls([(block, np.arange(block.shape[0], dtype=np.int32)) for block in blocks])

    def __getitem__(self, rows: Any) -> RowReference:
        """Some of the rows, by a slice or by rising numbers."""
        rows = np.arange(self.shape[0])[rows]
        ends = np.cumsum([0, *(own.size for _, own in self.parts)])
        places = np.searchsorted(rows, ends)
        return RowReference(
            [
                (block, own[rows[first:last] - end])
                for (block, own), end, first, last in zip(self.parts, ends, places, places[1:])
                if last > first
            ]
        )

    def read(self) -> Any:
        """The rows themselves."""
        return stack([block.take(rows) for block, rows in self.parts])

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


class StoredRows(Protocol):
    """A matrix on disk, of which blocks of rows, between ``edges``, are best read together."""

    path: Any
    shape: tuple[int, int]
    n_tokens: int | float
    edges: NDArray[np.int64]

    def rows(self, start: int, stop: int) -> sparse.csr_array:
        """The documents from ``start`` to ``stop``."""
        ...


class BlockSource(RowSource):
    """A source of batches of a matrix on disk, whatever its format.

    Each pass visits every document once. It takes blocks of consecutive documents in random order
    and shuffles the documents of several blocks, a window, together; batches are cut from that,
    as many and as large as with :class:`ArraySource`. This is no uniform permutation: a corpus that
    is sorted, by topic or by date, wants smaller blocks or a larger window. Memory holds a window
    and a batch.

    Parameters
    ----------
    files : StoredRows
        The matrix.
    batch_size : int
        Documents in a minibatch, at most; with as many as there are, each batch is the whole data,
        read once and kept.
    window_blocks : int
        Blocks that are shuffled together.

    Examples
    --------
    What :func:`tempering.corpus.open_source` opens is one:

    >>> import tempfile
    >>> from tempering.corpus import open_source, write
    >>> from tempering.datasets import LDAStream
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/big.parquet", LDAStream(n_documents=30, n_words=50))
    ...     [batch.size for batch in open_source(f"{folder}/big.parquet", batch_size=20).sweep()]
    [20, 10]
    """

    #: The words, one a column, where they are known.
    vocabulary: Sequence[str] | None = None
    #: How text became these words, where it did: a ``tempering.corpus.WordCounting``.
    counting: Any = None

    #: Where batches name their rows: the blocks that are in use, by number.
    in_use: MutableMapping[int, Block] | None = None

    def __init__(self, files: StoredRows, batch_size: int, window_blocks: int = 4):
        check_whole(batch_size=batch_size, window_blocks=window_blocks)
        self.files = files
        self.shape = files.shape
        self.n_tokens = files.n_tokens
        self.batch_size = min(batch_size, self.size)
        self.edges = files.edges
        self.window_blocks = window_blocks

    def sample(self, n: int, rng: np.random.Generator) -> sparse.csr_array:
        """At most n documents, drawn without replacement: the same as from :class:`ArraySource`."""
        check_whole(n=n)
        if n >= self.size:
            return self.files.rows(0, self.size)
        # `choice` makes an array of all numbers only when n is more than a 50th of them, so its
        # memory is in proportion to n, not to the corpus.
        return self._read(np.sort(rng.choice(self.size, size=n, replace=False)))

    def by_reference(self) -> Self:
        """The same batches, of documents that are read where they are solved."""
        referring = copy(self)
        referring.in_use = WeakValueDictionary()
        return referring

    def rows(self, rows: slice) -> Batch:
        if self.in_use is None:
            return Batch(self.files.rows(rows.start, rows.stop))
        first = int(np.searchsorted(self.edges, rows.start, side="right")) - 1
        last = int(np.searchsorted(self.edges, rows.stop))
        begin = rows.start - int(self.edges[first])
        return Batch(self._blocks(range(first, last))[begin : begin + rows.stop - rows.start])

    def _blocks(self, numbers: Iterable[int]) -> Any:
        """All documents of some blocks."""
        if self.in_use is None:
            return stack([self._block(number).read() for number in numbers])
        return RowReference.to_blocks(
            [self.in_use.setdefault(number, self._block(number)) for number in numbers]
        )

    def _block(self, number: int) -> Block:
        return Block(self.files, int(self.edges[number]), int(self.edges[number + 1]))

    def _read(self, chosen: NDArray[np.int64]) -> Any:
        """Some documents, in ascending order; those of a block in one go, blocks side by side."""
        ends = np.searchsorted(chosen, self.edges)
        # Each of the threads holds a block in memory.
        parts = Parallel(min(cpu_count(), 8), require="sharedmem")(
            delayed(self._block(number).take)(chosen[first:last] - self.edges[number])
            for number, (first, last) in enumerate(pairwise(ends))
            if last > first
        )
        return stack(parts)

    def _pass(self, seed: int, epoch: int, n_batches: int, skipped: int) -> Iterator[Batch]:
        least, n_larger = divmod(self.size, n_batches)
        number = skipped
        to_skip = skipped * least + min(skipped, n_larger)
        parts: list[sparse.csr_array] = []
        missing = least + (number < n_larger)
        for blocks, order in self._windows(seed, epoch):
            used = min(to_skip, order.size)
            to_skip -= used
            if used == order.size:
                continue
            documents = self._blocks(blocks)
            while used < order.size:
                chosen = order[used : used + missing]
                parts.append(documents[np.sort(chosen)])
                used += chosen.size
                missing -= chosen.size
                if missing == 0:
                    yield Batch(stack(parts))
                    number += 1
                    parts, missing = [], least + (number < n_larger)
            # Before the next window is read, lest memory holds two.
            del documents

    def _windows(
        self, seed: int, epoch: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """The windows of one pass: the numbers of their blocks, and an order of their documents."""
        numbers = np.random.default_rng([seed, epoch]).permutation(self.edges.size - 1)
        for number, first in enumerate(range(0, numbers.size, self.window_blocks)):
            blocks = numbers[first : first + self.window_blocks]
            n_documents = int(np.sum(self.edges[blocks + 1] - self.edges[blocks]))
            # A stream for each window, so that one can be skipped. The last entry is never 0:
            # [seed, epoch, 0] would be the stream of the blocks' order again.
            rng = np.random.default_rng([seed, epoch, number + 1])
            yield blocks, rng.permutation(n_documents)

    def __repr__(self) -> str:
        name, path = type(self).__name__, str(self.files.path)
        return f"{name}({path!r}, shape={self.shape}, batch_size={self.batch_size})"
