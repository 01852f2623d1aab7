"""Parquet files with columns ``ids`` (words, from 0) and ``counts``, lists, and perhaps ``doc_id``.

A row is a document. Rows are read a row group at a time: memory holds no more.
"""

import threading
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np
from scipy import sparse

from tempering.corpus.corpus import (
    BLOCK_SIZE,
    Stored,
    check_n_words,
    checked_rows,
    read_vocabulary,
)
from tempering.corpus.files import check_regular, check_size, fail, one_line, reading
from tempering.inference.sources import stack

IDS, COUNTS, NAME = "ids", "counts", "doc_id"
#: What our files tell beyond what Parquet itself does.
N_WORDS, N_TOKENS, NAMED = b"tempering.n_words", b"tempering.n_tokens", b"tempering.named"


def load_pyarrow() -> tuple[ModuleType, ModuleType]:
    """pyarrow and its Parquet part."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'tempering[data]'.") from None
    return pyarrow, parquet


def open_file(path: Path) -> Any:
    """A ``pyarrow.parquet.ParquetFile`` whose row groups fit into memory, by their own account."""
    _, parquet = load_pyarrow()
    check_regular(path)
    with reading(path):
        file = parquet.ParquetFile(path, page_checksum_verification=True)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        n_rows = sum(group.num_rows for group in groups)
        if n_rows != file.metadata.num_rows or any(group.num_rows < 0 for group in groups):
            problem = f"its row groups have {n_rows} rows, not {file.metadata.num_rows}."
            fail(path, "", problem)
        for number, group in enumerate(groups):
            # Its columns would tell more, but pyarrow ends the process where they are damaged.
            # However well it is packed in the file, a row takes eight bytes in memory.
            n_bytes = max(group.total_byte_size, 8 * group.num_rows)
            check_size(path, n_bytes, f"row group {number}")
    return file


def column_names(path: Path) -> list[str]:
    """The names of the columns."""
    with reading(path):
        return open_file(path).schema_arrow.names


def column_values(path: Path, columns: list[str]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The values of some columns, row by row, each with its place in the file."""
    file = open_file(path)
    for group in range(file.metadata.num_row_groups):
        place, row = f"row group {group}", 0
        with reading(path, place):
            # Fewer at a time than of counts: a row may be a whole book.
            for batch in file.iter_batches(256, [group], columns=columns, use_threads=False):
                for values in zip(*(batch.column(name) for name in columns)):
                    yield f"{place}, row {row} (from 0)", values
                    row += 1


class ParquetRows:
    """A corpus in a Parquet file, read a row group at a time; ``edges`` are where these begin."""

    def __init__(self, path: Path):
        self.path = path
        self._opened = threading.local()
        self._last: tuple[int, Any] = (-1, None)
        metadata = self._file.metadata
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self.edges = np.append(0, np.cumsum(sizes, dtype=np.int64))
        n_documents = int(self.edges[-1])
        check_size(path, self.edges.itemsize * n_documents, f"the list of {n_documents} documents")
        with reading(path):
            schema = self._file.schema_arrow
            self.dtype = _check_columns(path, schema)
            has_names = NAME in schema.names
        told = metadata.metadata or {}
        n_words, n_tokens = _number(told.get(N_WORDS)), _number(told.get(N_TOKENS))
        self.has_names = has_names and told.get(NAMED) != b"no"
        self.vocabulary = read_vocabulary(path, None if n_words is None else int(n_words))
        if n_words is None and self.vocabulary is not None:
            n_words = len(self.vocabulary)
        if n_words is None or n_tokens is None:
            largest, n_tokens = self._survey()
            n_words = largest + 1 if n_words is None else n_words
        check_n_words(path, "", int(n_words))
        self.shape = (n_documents, int(n_words))
        self.n_tokens: int | float = n_tokens

    @property
    def _file(self) -> Any:
        """The file, which each thread opens for itself: a reader of pyarrow's serves one a time."""
        if not hasattr(self._opened, "file"):
            self._opened.file = open_file(self.path)
        return self._opened.file

    @property
    def names(self) -> Iterable[str] | None:
        """Names of the documents."""
        return NamesColumn(self.path) if self.has_names else None

    def rows(self, start: int, stop: int) -> Any:
        """The documents from ``start`` to ``stop``."""
        first = int(np.searchsorted(self.edges, start, side="right")) - 1
        parts = []
        for group in range(first, self.edges.size - 1):
            begin, end = int(self.edges[group]), int(self.edges[group + 1])
            if begin >= stop:
                break
            block = self._group(group)
            if start > begin or stop < end:
                block = block[max(start - begin, 0) : stop - begin]
            parts.append(block)
        return self._stacked(parts)

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order."""
        for group in range(self.edges.size - 1):
            yield from self._parts(group)

    def _group(self, group: int) -> Any:
        """A row group; the last one is kept, since batches may end within it."""
        last = self._last
        if last[0] != group:
            last = self._last = (-1, None)  # lest memory holds two
            last = self._last = (group, self._stacked(list(self._parts(group))))
        # Not self._last[1]: by now that may be the row group of another thread.
        return last[1]

    def _stacked(self, parts: list[Any]) -> Any:
        return stack(parts or [sparse.csr_array((0, self.shape[1]), dtype=self.dtype)])

    def _survey(self) -> tuple[int, int | float]:
        """The largest word, and the sum of the counts."""
        largest, n_tokens = -1, 0
        for group in range(self.edges.size - 1):
            for _, (counts, words, _) in self._arrays(group):
                # Apart, as -1 is no number of an unsigned type.
                largest = max(largest, int(words.max())) if words.size else largest
                n_tokens += counts.sum(dtype="f8" if counts.dtype.kind == "f" else "i8").item()
        return largest, n_tokens

    def _parts(self, group: int) -> Iterator[Any]:
        """A row group in parts, in memory of their own, which may be written to."""
        where = f"{self.path}, row group {group}"
        for first, arrays in self._arrays(group):
            first_row = int(self.edges[group]) + first
            rows: Any = checked_rows(where, arrays, self.shape[1], first_row)
            yield rows.astype(self.dtype)

    def _arrays(self, group: int) -> Iterator[tuple[int, tuple[Any, Any, Any]]]:
        """Counts, words and ends of some rows, with the number of the first in the row group."""
        place, first = f"row group {group}", 0
        expected = int(self.edges[group + 1] - self.edges[group])
        file = self._file
        with reading(self.path, place):
            for batch in file.iter_batches(BLOCK_SIZE, [group], [IDS, COUNTS], use_threads=False):
                ends, words = _list_column(self.path, place, batch, IDS)
                count_ends, counts = _list_column(self.path, place, batch, COUNTS)
                if not np.array_equal(ends, count_ends):
                    row = first + int(np.argmax(ends != count_ends)) - 1
                    problem = "it has lists of different lengths in ids and counts."
                    fail(self.path, f"{place}, row {row} (from 0)", problem)
                yield first, (counts, words, ends)
                first += batch.num_rows
        if first != expected:
            fail(self.path, place, f"it has {first} rows instead of {expected}.")

    def __getstate__(self) -> dict[str, Any]:
        # An open file does not go to another process.
        state = {**self.__dict__, "_last": (-1, None)}
        del state["_opened"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _opened=threading.local())


class NamesColumn:
    """The names of the documents, gone through again and again without keeping them."""

    def __init__(self, path: Path):
        self.path = path

    def __iter__(self) -> Iterator[str]:
        for row, (place, (name,)) in enumerate(column_values(self.path, [NAME])):
            with reading(self.path, place):
                value = name.as_py()
            # As of text: one that is missing is the number of the record.
            yield one_line(str(row if value is None else value))


def _check_columns(path: Path, schema: Any) -> np.dtype:
    """The columns are lists of numbers; the type that counts are read as."""
    pyarrow, _ = load_pyarrow()
    for name in (IDS, COUNTS):
        if name not in schema.names:
            problem = f"there is no column {name!r} among {', '.join(schema.names)}."
            fail(path, "", f"{problem} (For text, name the column that holds it.)")
    kinds = {name: schema.field(name).type for name in (IDS, COUNTS)}
    for name, kind in kinds.items():
        if not (pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind)):
            fail(path, f"column {name!r}", f"it should be a list of numbers; it is {kind}.")
    words, counts = (kind.value_type for kind in kinds.values())
    if not pyarrow.types.is_integer(words):
        fail(path, f"column {IDS!r}", f"words should be whole numbers; they are {words}.")
    if pyarrow.types.is_integer(counts):
        return np.dtype(np.int32)
    if not pyarrow.types.is_floating(counts):
        fail(path, f"column {COUNTS!r}", f"counts should be numbers; they are {counts}.")
    return np.dtype(np.float64 if counts == pyarrow.float64() else np.float32)


def _list_column(path: Path, place: str, batch: Any, name: str) -> tuple[Any, Any]:
    """Ends of the lists of a column, and their values one after another."""
    column = batch.column(name)
    values = column.flatten()
    if column.null_count or values.null_count:
        fail(path, f"{place}, column {name!r}", "a value is missing.")
    ends = column.offsets.to_numpy(zero_copy_only=False)[: len(column) + 1].astype(np.int64)
    return ends - ends[0], values.to_numpy(zero_copy_only=False)


def _number(text: bytes | None) -> int | float | None:
    """A number that the file tells, if it is one that can be."""
    try:
        value = float(text or b"")
    except ValueError:
        return None
    if not 0 <= value < 2.0**63:
        return None
    return int(value) if value == int(value) else value


def write_parquet(file: IO[bytes], stored: Stored) -> None:
    """Write a corpus in row groups of ``BLOCK_SIZE`` documents."""
    pyarrow, parquet = load_pyarrow()
    whole = stored.dtype.kind != "f"
    name_type = pyarrow.int64() if stored.names is None else pyarrow.string()
    count_type = pyarrow.int32() if whole else pyarrow.from_numpy_dtype(stored.dtype)
    ids_type = pyarrow.list_(pyarrow.int32())
    types = {NAME: name_type, IDS: ids_type, COUNTS: pyarrow.list_(count_type)}
    schema = pyarrow.schema(list(types.items()))
    names = count() if stored.names is None else map(str, stored.names)
    n_tokens = 0
    options: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
    with parquet.ParquetWriter(file, schema, **options) as writer:
        for block in _regroup(stored.blocks(), BLOCK_SIZE):
            ends = pyarrow.array(block.indptr.astype(np.int32))
            lists = [
                pyarrow.ListArray.from_arrays(ends, pyarrow.array(values, kind))
                for values, kind in ((block.indices, pyarrow.int32()), (block.data, count_type))
            ]
            labels = list(islice(names, block.shape[0]))
            columns = [pyarrow.array(labels, name_type), *lists]
            table = pyarrow.Table.from_arrays(columns, schema=schema)
            writer.write_table(table, row_group_size=BLOCK_SIZE)
            n_tokens += block.data.sum(dtype="i8" if whole else "f8").item()
        named = b"no" if stored.names is None else b"yes"
        told = {N_WORDS: str(stored.shape[1]), N_TOKENS: repr(n_tokens), NAMED: named}
        writer.add_key_value_metadata(told)


def _regroup(blocks: Iterable[Any], size: int) -> Iterator[Any]:
    """The same rows in blocks of ``size``, but for the last."""
    waiting: list[Any] = []
    n_waiting = 0
    for block in blocks:
        waiting.append(block)
        n_waiting += block.shape[0]
        if n_waiting >= size:
            rows = stack(waiting)
            whole = n_waiting - n_waiting % size
            for start in range(0, whole, size):
                yield rows[start : start + size]
            waiting, n_waiting = [rows[whole:]], n_waiting - whole
    if n_waiting:
        yield stack(waiting)
