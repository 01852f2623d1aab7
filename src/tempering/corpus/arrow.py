"""Parquet files, opened and read in batches by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tempering.corpus.checks import check_regular, check_size, reading
from tempering.corpus.corpus import fail

# Fewer than of counts: a row may be a whole book.
TEXTS_AT_A_TIME = 256
#: Bytes that a row takes in memory, however well it is packed in the file.
ROW_BYTES = 8


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
            n_bytes = max(group.total_byte_size, ROW_BYTES * group.num_rows)
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
            for batch in file.iter_batches(
                TEXTS_AT_A_TIME, [group], columns=columns, use_threads=False
            ):
                for values in zip(*(batch.column(name) for name in columns)):
                    yield f"{place}, row {row} (from 0)", values
                    row += 1
