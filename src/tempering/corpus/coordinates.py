"""Lines of "document word count", which MatrixMarket and the UCI files share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.corpus.corpus import LARGEST_COUNT, Stored, canonical, fail
from tempering.corpus.numbers import Tokens


class Entries(NamedTuple):
    """Some entries of a matrix."""

    documents: NDArray[np.int64]
    words: NDArray[np.int32]
    counts: NDArray[Any]
    lines: NDArray[np.int64]


def read_entries(
    path: Path,
    chunks: Iterable[tuple[int, bytes]],
    shape: tuple[int, int],
    n_entries: int,
    kind: str,
) -> Iterator[Entries]:
    """The entries of each chunk, checked, with documents and words numbered from 0.

    Parameters
    ----------
    path : Path
        For messages.
    chunks : iterable of (int, bytes)
        Lines after the header, with the number of the first.
    shape : tuple of int
        Documents and words.
    n_entries : int
        Entries that the header promises.
    kind : "integer", "real" or "pattern"
        What the counts are; a pattern has none, and they are taken as 1.
    """
    n_columns = 2 if kind == "pattern" else 3
    seen = 0
    for first_line, text in chunks:
        tokens = Tokens(text)
        _check_columns(path, tokens, n_columns, first_line)
        places = np.arange(0, len(tokens), n_columns)
        lines = tokens.lines[places].astype(np.int64) + first_line
        seen += places.size
        if seen > n_entries:
            line = lines[n_entries - seen]
            fail(
                path, f"line {line}", f"there are more than the {n_entries} entries of the header."
            )
        documents = _numbers_from_one(path, tokens, places, lines, shape[0], "document")
        words = _numbers_from_one(path, tokens, places + 1, lines, shape[1], "word")
        if kind == "pattern":
            counts = np.ones(places.size, np.int32)
        else:
            counts = read_counts(path, tokens, places + 2, lines, whole=kind == "integer")
        yield Entries(documents, words.astype(np.int32), counts, lines)
    if seen != n_entries:
        fail(path, "", f"it ends after {seen} of the {n_entries} entries that its header promises.")


def read_counts(
    path: Path,
    tokens: Tokens,
    places: NDArray[np.int64],
    lines: NDArray[np.int64],
    whole: bool,
) -> NDArray[Any]:
    """The counts among the tokens: int32 if they must be whole, else float64."""
    values = tokens.integers[places] if whole else tokens.reals(places)
    wrong = ~((values >= 0) & np.isfinite(values))
    if whole:
        wrong |= values > LARGEST_COUNT
    if wrong.any():
        entry = int(np.argmax(wrong))
        rule = f"a whole number from 0 to {LARGEST_COUNT}" if whole else "finite and not negative"
        got = tokens.text(int(places[entry]))
        fail(path, f"line {lines[entry]}", f"a count must be {rule}; got {got}.")
    return values.astype(np.int32) if whole else values


def _check_columns(path: Path, tokens: Tokens, n_columns: int, first_line: int) -> None:
    """Each line that is not blank has so many numbers."""
    lines, _, numbers = tokens.by_line()
    wrong = numbers != n_columns
    if wrong.any():
        place = int(np.argmax(wrong))
        fail(
            path,
            f"line {lines[place] + first_line}",
            f"it should hold {n_columns} numbers; it holds {numbers[place]}.",
        )


def _numbers_from_one(
    path: Path,
    tokens: Tokens,
    places: NDArray[np.int64],
    lines: NDArray[np.int64],
    n: int,
    what: str,
) -> NDArray[np.int64]:
    """A column of numbers from 1 to n, as numbers from 0."""
    values = tokens.integers[places]
    wrong = (values < 1) | (values > n)
    if wrong.any():
        entry = int(np.argmax(wrong))
        got = tokens.text(int(places[entry]))
        fail(path, f"line {lines[entry]}", f"a {what} must be a number from 1 to {n}; got {got}.")
    return values - 1


def rows_of_sorted(
    path: Path, entries: Iterable[Entries], shape: tuple[int, int], dtype: Any
) -> Iterator[sparse.csr_array]:
    """Blocks of rows of entries that come in the order of the documents."""
    next_row = 0
    rest: list[NDArray[Any]] = [np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, dtype)]
    for part in entries:
        documents, words, counts = (
            np.concatenate(pair) for pair in zip(rest, part[:3], strict=True)
        )
        falls = np.flatnonzero(np.diff(documents) < 0)
        if falls.size:
            # Positions count from what was left over, whose lines are gone by.
            entry = int(falls[0]) + 1 - rest[0].size
            fail(
                path,
                f"line {part.lines[entry]}",
                f"document {part.documents[entry] + 1} comes after document "
                f"{documents[falls[0]] + 1}: sort the lines by document.",
            )
        if documents.size == 0:
            continue
        # The last document may go on in the next chunk.
        last = int(documents[-1])
        complete = int(np.searchsorted(documents, last))
        if last > next_row:
            ends = row_ends(documents[:complete] - next_row, last - next_row)
            arrays = counts[:complete], words[:complete], ends
            yield canonical(sparse.csr_array(arrays, (last - next_row, shape[1])), path)
            next_row = last
        rest = [documents[complete:], words[complete:], counts[complete:]]
    if shape[0] > next_row:
        documents, words, counts = rest
        ends = row_ends(documents - next_row, shape[0] - next_row)
        block = sparse.csr_array((counts, words, ends), (shape[0] - next_row, shape[1]))
        yield canonical(block, path)


def row_ends(rows: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
    """Where each row ends among the numbers of rows, sorted; after a 0."""
    ends = np.zeros(n_rows + 1, np.int64)
    ends[1:] = np.bincount(rows, minlength=n_rows)
    return np.cumsum(ends, out=ends)


def write_entries(file: IO[bytes], stored: Stored) -> None:
    """Lines of "document word count", numbered from 1."""
    first = 1
    for block in stored.blocks():
        rows = np.repeat(np.arange(first, first + block.shape[0]), np.diff(block.indptr))
        triples = zip(rows.tolist(), (block.indices + 1).tolist(), written(block.data))
        file.write("".join(map("%d %d %s\n".__mod__, triples)).encode())
        first += block.shape[0]


def written(counts: NDArray[Any]) -> list[Any]:
    """Counts as they are written: whole ones without a point, others to the last bit."""
    if counts.dtype.kind == "f" and np.all((counts == np.floor(counts)) & (counts < 2**53)):
        return counts.astype(np.int64).tolist()
    return counts.tolist()


def count_entries(stored: Stored) -> int:
    """How many entries a header has to promise."""
    return sum(block.nnz for block in stored.blocks())
