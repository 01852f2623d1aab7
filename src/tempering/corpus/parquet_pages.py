"""What the pages of a Parquet file unpack to, by their headers, before any is unpacked.

A reader takes the memory that the header of a page asks for, and a run of equal values takes few
bytes for any number of them: 30 million zeros make a file of a kilobyte, whatever its footer tells.
So the footer and all headers are read here first. (pyarrow reads the footer too, but asking it for
what a damaged one tells of a column may end the process.)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from tempering.corpus.corpus import fail
from tempering.corpus.expansion import expansion_limit, refuse_expansion
from tempering.corpus.thrift import I32, I64, LIST, STRUCT, Compact, field

MAGIC = b"PAR1"
# Headers hold the least and the largest value of a page, which may be texts; then they are longer.
HEADER_BYTES = 1 << 12
LONGEST_HEADER = 1 << 24

# Of the footer: row groups, their columns, and what is told of each.
ROW_GROUPS, COLUMNS, DESCRIPTION = field(4, LIST), field(1, LIST), field(3, STRUCT)
PHYSICAL_TYPE, N_VALUES, PACKED_BYTES = field(1, I32), field(5, I64), field(7, I64)
DATA_PLACE, DICTIONARY_PLACE = field(9, I64), field(11, I64)
REQUIRED = (PHYSICAL_TYPE, N_VALUES, PACKED_BYTES, DATA_PLACE)
FOOTER = {ROW_GROUPS: {COLUMNS: {DESCRIPTION: dict.fromkeys((*REQUIRED, DICTIONARY_PLACE))}}}

# Of a page.
UNPACKED_SIZE, PACKED_SIZE = field(2, I32), field(3, I32)
DATA_PAGE, DATA_PAGE_V2 = field(5, STRUCT), field(8, STRUCT)
PAGE_VALUES = field(1, I32)
HEADER = {
    UNPACKED_SIZE: None,
    PACKED_SIZE: None,
    DATA_PAGE: {PAGE_VALUES: None},
    DATA_PAGE_V2: {PAGE_VALUES: None},
}

#: Bytes of a value in memory by its physical type (truth, int32, float), where it is not 8.
WIDTHS = {0: 1, 1: 4, 4: 4}


class Chunk(NamedTuple):
    """A column in a row group."""

    place: str
    start: int
    end: int
    n_values: int
    width: int


class Unpacked(NamedTuple):
    """What pages unpack to."""

    #: All of them, texts in a dictionary counted once.
    n_bytes: int
    #: The largest. No value is longer, but many may be as long: a dictionary has each once.
    largest_page: int


def check_pages(path: Path) -> int:
    """What the largest page unpacks to, if all together do not unpack to too much."""
    left, largest = expansion_limit(path), 0
    with open(path, "rb") as file:
        for chunk in read_chunks(path, file):
            size = unpacked_size(path, file, chunk)
            left, largest = left - size.n_bytes, max(largest, size.largest_page)
            if left < 0:
                refuse_expansion(path)
    return largest


def read_chunks(path: Path, file: IO[bytes]) -> list[Chunk]:
    """The columns of all row groups, as the footer tells of them."""
    n_bytes = file.seek(0, os.SEEK_END)
    file.seek(max(n_bytes - 8, 0))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != MAGIC or length > n_bytes - 8:
        fail(path, "", "it is no Parquet file, or cut short: its end is missing.")
    file.seek(n_bytes - 8 - length)
    try:
        footer = Compact(file.read(length)).struct(FOOTER)
        chunks = list(_chunks(footer))
    except (ValueError, IndexError, KeyError, AttributeError) as error:
        fail(path, "", f"it is no Parquet file, or damaged: its footer ({error}).")
    # Each has bytes of its own; going through the same ones again and again would take for ever.
    if sum(chunk.end - chunk.start for chunk in chunks) > n_bytes:
        fail(path, "", "its columns claim more bytes than the file has.")
    return chunks


def _chunks(footer: dict[int, Any]) -> Iterator[Chunk]:
    for number, group in enumerate(footer[ROW_GROUPS]):
        for column in group[COLUMNS]:
            told = column[DESCRIPTION]
            kind, n_values, packed, start = (told[name] for name in REQUIRED)
            # As pyarrow finds the first page.
            if 0 < told.get(DICTIONARY_PLACE, 0) < start:
                start = told[DICTIONARY_PLACE]
            if min(n_values, packed, start) < 0:
                raise ValueError("a size is negative")
            place = f"row group {number}"
            yield Chunk(place, start, start + packed, n_values, WIDTHS.get(kind, 8))


def unpacked_size(path: Path, file: IO[bytes], chunk: Chunk) -> Unpacked:
    """Go through the headers of the pages of a column."""
    start, n_values, n_bytes, largest = chunk.start, 0, 0, 0
    while start < chunk.end and n_values < chunk.n_values:
        header, length = _header(path, file, start, chunk.place)
        size, packed = header.get(UNPACKED_SIZE, -1), header.get(PACKED_SIZE, -1)
        kinds = [header[kind] for kind in (DATA_PAGE, DATA_PAGE_V2) if kind in header]
        values = [kind.get(PAGE_VALUES, -1) for kind in kinds]
        if min(size, packed, *values) < 0:
            fail(path, chunk.place, "the header of a page is damaged.")
        n_values += sum(values)
        n_bytes += size
        largest = max(largest, size)
        start += length + packed
    if n_values != chunk.n_values:
        problem = f"its pages hold {n_values} values instead of {chunk.n_values}."
        fail(path, chunk.place, problem)
    return Unpacked(max(n_bytes, n_values * chunk.width), largest)


def _header(path: Path, file: IO[bytes], start: int, place: str) -> tuple[dict[int, Any], int]:
    """The header of the page that begins there, and its length."""
    n = HEADER_BYTES
    while True:
        file.seek(start)
        text = file.read(n)
        compact = Compact(text)
        try:
            return compact.struct(HEADER), compact.place
        except IndexError:
            if len(text) < n or n >= LONGEST_HEADER:
                fail(path, place, "the header of a page is cut short.")
            n *= 16
        except ValueError as error:
            fail(path, place, f"the header of a page is damaged: {error}.")
