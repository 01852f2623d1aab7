"""Data as the device reads them: kept in its memory, or sent when they are needed.

**A corpus.** Documents are sorted by length and padded in groups, so that few shapes are ever
compiled. A group is a rectangle: a fixed number of documents, and as many places for words as the
ladder of lengths has on the step that holds its longest document.

**A table** of numbers is in double precision, unlike topics: mixtures compare bounds, and second
moments lose digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempering.gpu.jax_device import LazyModule, compiled, jax, jnp, on_all_devices
from tempering.inference import ArraySource, Batch, BlockSource
from tempering.models.compilation import ENTRY, njit
from tempering.models.lda.sampling import MOST_REPEATED

#: Shortest rectangle.
SHORTEST = 32

#: Places in a rectangle at most, so that a few very long documents take a group of their own.
LARGEST_GROUP = 1 << 22

#: The part of the device's memory that a corpus may fill.
MEMORY_SHARE = 0.4


class Group(NamedTuple):
    """Some documents, by their rows in a CSR matrix, and the shape of their rectangle."""

    rows: NDArray[np.int64]
    size: int  # documents in the rectangle; those beyond `rows` are empty
    width: int  # places for words


class Rectangle(NamedTuple):
    """A group as arrays on the device.

    A place without a word has the column `n_words` and the count 0.
    """

    columns: Any  # [size, width], int32
    counts: Any  # [size, width], float32
    lengths: Any  # [size], int32: distinct words


def ladder_step(length: int) -> int:
    """The width for documents of so many distinct words: 32, 64, 128, …"""
    return max(SHORTEST, 1 << (length - 1).bit_length()) if length > 0 else SHORTEST


def cut_into_groups(lengths: NDArray, rows: NDArray, size: int) -> Iterator[Group]:
    """Cut ``rows``, of a corpus with these ``lengths``, into groups of at most ``size``.

    The longest come first, so that a group has documents of about one length.
    """
    keys = -lengths[rows]
    keys -= keys.min(initial=0)
    if keys.max(initial=0) < 1 << 16:
        keys = keys.astype(np.uint16)  # sorted by their digits, in a fifth of the time
    order = rows[np.argsort(keys, kind="stable")]
    start = 0
    while start < order.size:
        width = ladder_step(int(lengths[order[start]]))
        n = max(1, min(size, LARGEST_GROUP // width))
        yield Group(order[start : start + n], n, width)
        start += n


class DeviceCorpus:
    """A corpus, ``resident`` in the memory of the device or sent to it in groups."""

    def __init__(self, data: Any, resident: bool | None = None):
        if data.nnz and data.data.min() <= 0:  # a zero that is stored is no word of a document
            data = data.copy()
            data.eliminate_zeros()
        self.n_words = data.shape[1]
        self.lengths = np.diff(data.indptr)  # distinct words of each document
        self._matrix = data
        if resident is None:  # if it fits: an entry has a word and a count, of four bytes each
            resident = 8 * data.nnz <= MEMORY_SHARE * device_memory()
        # There is nothing to gather from where no document has a word.
        self.resident = resident and 0 < data.nnz < np.iinfo(np.int32).max
        self._counting = None
        if self.resident:
            parts = data.indices, data.data, data.indptr
            kinds = np.int32, _sent_type(data.data), np.int32
            sent = [
                on_all_devices(np.ascontiguousarray(part, kind)) for part, kind in zip(parts, kinds)
            ]
            # Of few lengths, as what gathers documents is part of programs that compile for long.
            self._indices, self._counts, self._indptr = (
                filled_up(part, length=rounded_up(part.size)) for part in sent
            )
            # While the corpus is sent, and the first steps run.
            background = ThreadPoolExecutor(1)
            self._counting = background.submit(row_totals, data)
            background.shutdown(wait=False)

    def packed(self, group: Group) -> tuple[Any, Any, Any, Any]:
        """The group, to be gathered on the device: words and counts of entries, maybe among those
        of other documents, where those of each document begin (and where the last ones end), and
        the documents of the group, [size]; one beyond the last is empty."""
        if self.resident:
            rows = np.full(group.size, len(self.lengths), np.int32)
            rows[: group.rows.size] = group.rows
            return self._indices, self._counts, self._indptr, rows
        # Filled up to one of few lengths: less to send than a rectangle.
        documents = self._matrix[group.rows]
        n, length = documents.nnz, ladder_step(documents.nnz)
        indices, counts = np.zeros(length, np.int32), np.zeros(length, _sent_type(documents.data))
        indices[:n], counts[:n] = documents.indices, documents.data
        indptr = np.full(group.size + 1, n, np.int32)
        indptr[: documents.indptr.size] = documents.indptr
        return indices, counts, indptr, np.arange(group.size, dtype=np.int32)

    def rectangle(self, group: Group) -> Any:
        """The group's words and counts, as arrays on the device."""
        return gather(self.packed(group), width=group.width, n_words=self.n_words)

    @cached_property
    def totals(self) -> NDArray[np.float64]:
        """Words of each document, with their weights."""
        return row_totals(self._matrix) if self._counting is None else self._counting.result()

    @cached_property
    def tokens(self) -> NDArray[np.float64]:
        """Tokens of each document; not a number where a count is not whole."""
        tokens, counts = self.totals.copy(), self._matrix.data
        if not np.issubdtype(counts.dtype, np.integer):
            broken = np.flatnonzero(counts != np.floor(counts))
            tokens[np.searchsorted(self._matrix.indptr, broken, side="right") - 1] = np.nan
        return tokens


@dataclass(frozen=True)
class DeviceDocuments:
    """Some documents of a corpus, by their rows: the batch of a fit on the device."""

    corpus: DeviceCorpus
    rows: NDArray[np.int64]  # rising
    batch_size: int  # the largest batch of the run

    @property
    def shape(self) -> tuple[int, int]:
        """Documents and words."""
        return self.rows.size, self.corpus.n_words

    def __getitem__(self, rows: slice) -> DeviceDocuments:
        return replace(self, rows=self.rows[rows])

    @property
    def can_be_sampled(self) -> bool:
        """Whether these are counts of tokens, and not too many; as on the CPU."""
        tokens = self.corpus.tokens[self.rows].sum()
        return bool(tokens <= MOST_REPEATED * self.corpus.lengths[self.rows].sum())

    def groups(self, most: int, *, for_tokens: bool = False) -> Iterator[Group]:
        """The documents in groups of one size, with a place for each word or each token."""
        lengths = self.corpus.tokens if for_tokens else self.corpus.lengths
        return cut_into_groups(lengths, self.rows, min(most, self.batch_size))


class CorpusSource(ArraySource):
    """A CSR matrix as :class:`tempering.inference.ArraySource`, its batches on the device."""

    def __init__(self, data: Any, batch_size: int | None = None, resident: bool | None = None):
        super().__init__(data, batch_size)
        self._corpus = DeviceCorpus(data, resident)

    def rows(self, rows: Any) -> Batch:
        numbers = row_numbers(rows, self.size)
        return Batch(DeviceDocuments(self._corpus, numbers, self.batch_size))


def row_numbers(rows: Any, size: int) -> NDArray[np.int64]:
    """The numbers of the rows of a batch, which is a slice in a sweep."""
    return np.arange(*rows.indices(size)) if isinstance(rows, slice) else rows


class CorpusStream(BlockSource):
    """The same source of a corpus on disk, its batches read while the device computes."""

    def __init__(self, source: BlockSource):
        vars(self).update(vars(source))
        self._source = source

    def batches(self, seed: int, first_step: int = 0) -> Iterator[Batch]:
        return map(self._batch, self._source.batches(seed, first_step))

    def sweep(self) -> Iterator[Batch]:
        return map(self._batch, self._source.sweep())

    def _batch(self, batch: Batch) -> Batch:
        corpus, rows = DeviceCorpus(batch.data, False), np.arange(batch.size)
        return Batch(DeviceDocuments(corpus, rows, self.batch_size))


def row_totals(data: Any) -> NDArray[np.float64]:
    """The sums of the rows of a CSR matrix."""
    totals = np.empty(data.shape[0])
    sum_rows(data.indptr, data.data, totals)
    return totals


@njit(**ENTRY)
def sum_rows(starts, numbers, totals):
    """Set the sums of the rows of a CSR matrix, without a copy of its numbers in a wider type."""
    for row in range(totals.size):
        total = 0.0
        for i in range(starts[row], starts[row + 1]):
            total += numbers[i]
        totals[row] = total


def _sent_type(counts: NDArray) -> Any:
    """Counts in a small type are sent as they are, and widened on the device."""
    return counts.dtype if counts.dtype.itemsize < 4 else np.float32


def device_memory() -> float:
    """Bytes that the device may use; as many as one likes where it does not say."""
    statistics = jax.devices()[0].memory_stats()
    return float(statistics["bytes_limit"]) if statistics else float("inf")


@compiled
def filled_up(array, *, length):
    """The array, with its last entry as often as it takes to be so long."""
    return jnp.pad(array, (0, length - array.size), mode="edge")


def rounded_up(size: int) -> int:
    """One of few sizes, at most an eighth larger."""
    step = 1 << max(0, size.bit_length() - 4)
    return -(-size // step) * step


@compiled
def gather(group, *, width, n_words):
    """The rectangle of a packed group."""
    indices, counts, indptr, rows = group
    starts = indptr[rows]
    lengths = indptr[jnp.minimum(rows + 1, indptr.size - 1)] - starts
    places = jnp.arange(width)
    held = places < lengths[:, None]
    positions = jnp.where(held, starts[:, None] + places, 0)
    return Rectangle(
        jnp.where(held, indices[positions], n_words),
        jnp.where(held, counts[positions].astype(jnp.float32), 0.0),
        lengths,
    )


#: Numbers of a table, or of one that is made of it, that are worked on at a time.
NUMBERS_AT_ONCE = 1 << 25

#: Numbers of a table that make a shard.
SHARD_NUMBERS = 1 << 27


def double_precision() -> AbstractContextManager[Any]:
    """Within it, JAX computes in float64."""
    home: Any = jax if hasattr(jax, "enable_x64") else LazyModule("jax.experimental")
    return home.enable_x64(True)


@dataclass(frozen=True)
class TableRows:
    """Some rows of a table on the device; those beyond the first n only fill up."""

    values: Any  # [at least n, D]
    n: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n, self.values.shape[1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The rows on the host, for what is done with few of them, or once in a fit."""
        return np.array(self.values[: self.n], dtype)

    def __getitem__(self, rows: Any) -> Any:
        if not isinstance(rows, slice):
            return np.asarray(self)[rows]
        start, stop, _ = rows.indices(self.n)
        if (start, stop) == (0, self.n):
            return self
        with double_precision():
            return TableRows(self.values[start:stop], stop - start)


class TableSource(ArraySource):
    """A table as :class:`tempering.inference.ArraySource`, its batches on the device."""

    def __init__(self, data: Any, batch_size: int | None = None, resident: bool | None = None):
        super().__init__(np.ascontiguousarray(data, dtype=np.float64), batch_size)
        if resident is None:
            resident = self.data.nbytes <= MEMORY_SHARE * device_memory()
        self._table = None
        if resident:
            with double_precision():
                self._table = jax.device_put(self.data)

    def rows(self, rows: Any) -> Batch:
        if self._table is None:
            return super().rows(rows)
        if self.whole:
            return Batch(TableRows(self._table, self.size))
        numbers = row_numbers(rows, self.size)
        # All batches have one shape, that of the largest.
        places = np.zeros(self.batch_size, np.int64)
        places[: numbers.size] = numbers
        with double_precision():
            return Batch(TableRows(_take(self._table, places), numbers.size))


def as_rows(data: Any) -> TableRows:
    """A table of the host, sent to the device and filled up to one of few shapes."""
    if isinstance(data, TableRows):
        return data
    values = np.asarray(data, np.float64)
    n = len(values)
    padded = np.zeros((rounded_up(n), values.shape[1]))
    padded[:n] = values
    with double_precision():
        return TableRows(jax.device_put(padded), n)


def one_for_each(value: Any, rows: TableRows) -> np.ndarray:
    """A number, or one for each row, as one for each row that is on the device."""
    spread = np.ones(rows.values.shape[0])
    spread[: rows.n] = value
    return spread


def shard_rows(n_columns: int) -> int:
    """Rows of a shard of a table with so many columns."""
    return max(1, SHARD_NUMBERS // n_columns)


@compiled
def _take(table, places):
    return table[places]
