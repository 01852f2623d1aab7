"""Parquet files opened with care."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tempering.corpus.corpus import fail
from tempering.corpus.expansion import SPARE_BYTES, expansion_limit, refuse_expansion
from tempering.corpus.parquet_pages import check_pages

# Fewer than of counts: a row may be a whole book.
TEXTS_AT_A_TIME = 256
# Entries of a footer take far more room in memory than in the file, but not fewer bytes than this.
LONGEST_LIST = 4096
BYTES_OF_ENTRY = 32


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
    return _open(path)[0]


def _open(path: Path) -> tuple[Any, int]:
    """The file, and what its largest page unpacks to."""
    _, parquet = load_pyarrow()
    with reading(path):
        largest_page = check_pages(path)
        file = parquet.ParquetFile(
            path,
            page_checksum_verification=True,
            thrift_container_size_limit=LONGEST_LIST + path.stat().st_size // BYTES_OF_ENTRY,
        )
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        if any(group.num_rows < 0 for group in groups):
            fail(path, "", "a row group has a negative number of rows.")
        n_rows = sum(group.num_rows for group in groups)
        if n_rows != file.metadata.num_rows:
            problem = f"its row groups have {n_rows} rows, not {file.metadata.num_rows}."
            fail(path, "", problem)
    return file, largest_page


def column_names(path: Path) -> list[str]:
    """The names of the columns."""
    with reading(path):
        return open_file(path).schema_arrow.names


def column_values(path: Path, columns: list[str]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The values of some columns, row by row, each with its place in the file."""
    file, largest_page = _open(path)
    # Each text of a batch may be a copy of the longest one, which the file holds once.
    n_rows = min(max(SPARE_BYTES // max(largest_page, 1), 1), TEXTS_AT_A_TIME)
    left = expansion_limit(path)
    for group in range(file.metadata.num_row_groups):
        place, row = f"row group {group}", 0
        with reading(path, place):
            for batch in file.iter_batches(n_rows, [group], columns=columns, use_threads=False):
                values = [batch.column(name).to_pylist() for name in columns]
                for one in zip(*values):
                    left -= sum(len(value) for value in one if isinstance(value, str))
                    if left < 0:
                        refuse_expansion(path)
                    yield f"{place}, row {row} (from 0)", one
                    row += 1
