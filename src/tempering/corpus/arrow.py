"""Parquet files opened with care."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tempering.corpus.corpus import fail
from tempering.corpus.lines import LARGEST_EXPANSION, expansion_limit

# Fewer than of counts: a row may be a whole book.
TEXTS_AT_A_TIME = 256


def load_pyarrow() -> tuple[ModuleType, ModuleType]:
    """pyarrow and its Parquet part."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'tempering[data]'.") from None
    return pyarrow, parquet


@contextmanager
def reading(path: Path, place: str = "") -> Iterator[None]:
    """What pyarrow cannot read becomes a :class:`CorpusError`."""
    pyarrow, _ = load_pyarrow()
    try:
        yield
    except (pyarrow.ArrowException, OSError, MemoryError, UnicodeDecodeError) as error:
        fail(path, place, f"it is no Parquet file, or damaged: {error}.")


def open_file(path: Path) -> Any:
    """A ``pyarrow.parquet.ParquetFile`` whose sizes are not beyond reason."""
    _, parquet = load_pyarrow()
    with reading(path):
        file = parquet.ParquetFile(path, page_checksum_verification=True)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > expansion_limit(path):
            problem = f"it unpacks to more than {LARGEST_EXPANSION} times its size."
            fail(path, "", problem)
        if any(group.num_rows < 0 for group in groups):
            fail(path, "", "a row group has a negative number of rows.")
        n_rows = sum(group.num_rows for group in groups)
        if n_rows != file.metadata.num_rows:
            problem = f"its row groups have {n_rows} rows, not {file.metadata.num_rows}."
            fail(path, "", problem)
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
            for batch in file.iter_batches(
                TEXTS_AT_A_TIME, [group], columns=columns, use_threads=False
            ):
                values = [batch.column(name).to_pylist() for name in columns]
                for one in zip(*values):
                    yield f"{place}, row {row} (from 0)", one
                    row += 1
