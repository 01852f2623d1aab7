"""A sparse matrix on disk, written and read some rows at a time.

A corpus is a directory of the three arrays of a CSR matrix and a description:

    indptr.npy    int64 [D + 1]
    indices.npy   int32 [entries]
    data.npy      any real type [entries]
    meta.json     {"format": 1, "n_documents": D, "n_words": V, "n_tokens": the sum of the counts}
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tokenize import TokenError
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from tempering.families.csr import check_compressed
from tempering.storage.atomic import atomic_directory

FORMAT = 1
ARRAYS = ("indptr", "indices", "data")
# Rows of a matrix in memory are written so many at a time, to copy few of them at once.
ROWS_PER_WRITE = 65536
HEADER_BYTES = 128
LONGEST_HEADER = 1 << 14


def write_csr(path: str | os.PathLike[str], blocks: Any) -> None:
    """Write a corpus for ``MappedCSR``.

    It is written aside and renamed at the end: the directory appears whole, or not at all. (A
    process that is killed may leave one named ``.partial-…`` beside it, safe to delete.)

    Parameters
    ----------
    path : path
        The directory to make; it must not exist yet.
    blocks : sparse matrix or iterable of them
        Counts, one document a row: all at once, or some documents at a time, of which only one
        block is held in memory. The first block decides the type of the counts.

    Examples
    --------
    >>> import tempfile
    >>> from scipy import sparse
    >>> from tempering.inference import MappedCSR, write_csr
    >>> blocks = (sparse.csr_array([[1, n]]) for n in (2, 3))  # any number, one in memory at a time
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csr(f"{folder}/corpus", blocks)
    ...     MappedCSR(f"{folder}/corpus").shape
    (2, 2)
    """
    if sparse.issparse(blocks):
        blocks = _row_blocks(blocks)
    with atomic_directory(path) as aside:
        _write_files(aside, blocks)


def _row_blocks(matrix: Any) -> Iterator[sparse.csr_array]:
    """A matrix in blocks of rows."""
    check_compressed(matrix, "blocks")
    matrix = sparse.csr_array(matrix)
    for start in range(0, matrix.shape[0], ROWS_PER_WRITE):
        yield matrix[start : start + ROWS_PER_WRITE]


def _write_files(directory: Path, blocks: Iterable[Any]) -> None:
    """Append the blocks to the arrays, then write the description."""
    n_documents, n_entries, n_tokens, n_words = 0, 0, 0, 0
    types: dict[str, np.dtype] = {}
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(open(directory / f"{name}.npy", "wb")) for name in ARRAYS
        }
        for number, given in enumerate(blocks):
            block: Any = _as_block(given, number, n_documents)
            if not types:
                n_words = block.shape[1]
                types = dict(zip(ARRAYS, (np.dtype("i8"), np.dtype("i4"), block.dtype)))
                for name in ARRAYS:
                    files[name].write(_header(types[name], 0))
                files["indptr"].write(np.zeros(1, types["indptr"]).data)
            _check_like_first(block, number, n_words, types["data"])
            arrays = (block.indptr[1:].astype(np.int64) + n_entries, block.indices, block.data)
            for name, array in zip(ARRAYS, arrays):
                files[name].write(np.ascontiguousarray(array, dtype=types[name]).data)
            n_documents += block.shape[0]
            n_entries += block.nnz
            n_tokens += block.data.sum(dtype="f8" if block.dtype.kind == "f" else "i8").item()
        if n_tokens == 0:
            raise ValueError(
                f"blocks must hold at least one document with a word; got {n_documents} documents "
                "without any."
            )
        for name, length in zip(ARRAYS, (n_documents + 1, n_entries, n_entries)):
            files[name].seek(0)
            files[name].write(_header(types[name], length))
    meta = {
        "format": FORMAT,
        "n_documents": n_documents,
        "n_words": n_words,
        "n_tokens": int(n_tokens) if n_tokens == int(n_tokens) else n_tokens,
    }
    (directory / "meta.json").write_bytes(json.dumps(meta, indent=2).encode())


def _as_block(given: Any, number: int, first_row: int) -> sparse.csr_array:
    """A block as CSR with checked counts."""
    if not sparse.issparse(given) or given.ndim != 2 or given.dtype.kind not in "biuf":
        kind = f"{type(given).__name__} of type {getattr(given, 'dtype', None)}"
        raise ValueError(f"blocks must be sparse matrices of real numbers; block {number}: {kind}.")
    check_compressed(given, f"block {number}")
    if given.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"blocks may have 2**31 - 1 columns at most; got {given.shape[1]}.")
    block: Any = sparse.csr_array(given)
    if block.dtype.kind == "b":
        block = block.astype(np.uint8)
    if not block.has_canonical_format:
        block = block.copy()
        block.sum_duplicates()
    _check_counts(block.data, block.indptr, first_row, f"blocks (block {number})")
    return block


def _check_like_first(block: Any, number: int, n_words: int, dtype: np.dtype) -> None:
    if block.shape[1] != n_words:
        raise ValueError(
            f"blocks must have the same number of columns: the first has {n_words}, "
            f"block {number} has {block.shape[1]}."
        )
    if not np.can_cast(block.dtype, dtype, "safe"):
        raise ValueError(
            f"blocks must have counts of one type: the first has {dtype}, block {number} has "
            f"{block.dtype}, which does not fit; convert the blocks."
        )


def _header(dtype: np.dtype, length: int) -> bytes:
    """The header of an array: always of one length, lest the last one overwrites elements."""
    fields = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": (length,)}
    header = io.BytesIO()
    npy.write_array_header_1_0(header, fields)
    if header.tell() != HEADER_BYTES:
        raise RuntimeError(f"a .npy header has {header.tell()} bytes, not {HEADER_BYTES}.")
    return header.getvalue()


class StoredArray(NamedTuple):
    """Where the elements of an array lie."""

    path: Path
    dtype: np.dtype
    length: int
    offset: int

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """The elements from ``start`` to ``stop``."""
        place = self.offset + start * self.dtype.itemsize
        part = np.fromfile(self.path, self.dtype, stop - start, offset=place)
        if part.size != stop - start:
            raise ValueError(f"{self.path} has become shorter since it was opened.")
        return part


class CSRFiles:
    """A corpus made by :func:`write_csr`, opened: its files have matching types and lengths.

    Rows are read from the files when they are wanted, and nothing stays mapped: pages of a memory
    map that have been touched would count as memory of the process.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        meta = _read_meta(self.path / "meta.json")
        self.shape: tuple[int, int] = (meta["n_documents"], meta["n_words"])
        self.n_tokens: int | float = meta["n_tokens"]
        self.indptr, self.indices, self.data = (
            _open_array(self.path / f"{name}.npy") for name in ARRAYS
        )
        self._check_lengths()

    def rows(self, start: int, stop: int) -> sparse.csr_array:
        """The documents from ``start`` to ``stop``, read and checked."""
        indptr = self.indptr.read(start, stop + 1)
        entries = self.indices.length
        wrong = (np.diff(indptr) < 0) | (indptr[:-1] < 0) | (indptr[1:] > entries)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"{self.indptr.path} is damaged: row {start + row} goes from entry {indptr[row]} "
                f"to {indptr[row + 1]} of {entries}. Write the corpus anew."
            )
        first, last = int(indptr[0]), int(indptr[-1])
        indptr -= first
        indices, data = self.indices.read(first, last), self.data.read(first, last)
        wrong = (indices < 0) | (indices >= self.shape[1])
        if wrong.any():
            raise ValueError(
                f"{self.indices.path} is damaged: row {start + _row_of_first(wrong, indptr)} has "
                f"word {indices[np.argmax(wrong)]}, but meta.json gives {self.shape[1]} words. "
                "Write the corpus anew."
            )
        _check_counts(data, indptr, start, str(self.data.path))
        return sparse.csr_array((data, indices, indptr), shape=(stop - start, self.shape[1]))

    def _check_lengths(self) -> None:
        """The files against each other and against meta.json."""
        indptr, indices, data = self.indptr, self.indices, self.data
        for stored, expected in ((indptr, np.dtype("i8")), (indices, np.dtype("i4"))):
            if stored.dtype != expected:
                raise ValueError(f"{stored.path} must be of type {expected}; got {stored.dtype}.")
        if data.dtype.kind not in "iuf":
            raise ValueError(f"{data.path} must hold real numbers; got type {data.dtype}.")
        n_documents = self.shape[0]
        if indptr.length != n_documents + 1:
            raise ValueError(
                f"{indptr.path} has length {indptr.length}, but meta.json gives {n_documents} "
                f"documents, which takes {n_documents + 1}."
            )
        if indices.length != data.length:
            raise ValueError(
                f"{indices.path} has length {indices.length}, but {data.path.name} {data.length}."
            )
        first, last = indptr.read(0, 1)[0], indptr.read(n_documents, n_documents + 1)[0]
        if first != 0 or last != indices.length:
            raise ValueError(
                f"{indptr.path} must rise from 0 to {indices.length}, the length of indices.npy; "
                f"it goes from {first} to {last}."
            )


def _read_meta(path: Path) -> dict[str, Any]:
    """The description, checked."""
    try:
        meta = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is missing: is {path.parent} a corpus made by write_csr?"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        found = meta.get("format") if isinstance(meta, dict) else meta
        raise ValueError(f"{path} must say format {FORMAT}; got {found!r}.")
    for name, kinds in (("n_documents", int), ("n_words", int), ("n_tokens", (int, float))):
        value = meta.get(name)
        if not isinstance(value, kinds) or not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{path} must give a positive {name}; got {value!r}.")
    return meta


def _open_array(path: Path) -> StoredArray:
    """The place of a one-dimensional array in its file, with the file's length checked."""
    try:
        with open(path, "rb") as file:
            # Not from the file: it takes memory for as many bytes as a header claims to have.
            start = io.BytesIO(file.read(LONGEST_HEADER))
            end = file.seek(0, os.SEEK_END)
        version = npy.read_magic(start)
        read_header = npy.read_array_header_2_0 if version[0] > 1 else npy.read_array_header_1_0
        shape, _, dtype = read_header(start)
        offset = start.tell()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing.") from None
    # numpy reads the header as Python, and tells of errors in many ways.
    except (ValueError, TypeError, SyntaxError, TokenError) as error:
        raise ValueError(f"{path} is not a .npy file: {error}") from None
    if len(shape) != 1 or dtype.hasobject:
        raise ValueError(f"{path} must be a row of numbers; got shape {shape} of type {dtype}.")
    expected = offset + shape[0] * dtype.itemsize
    if end != expected:
        raise ValueError(
            f"{path} is damaged: {end} bytes instead of the {expected} that its header tells."
        )
    return StoredArray(path, dtype, shape[0], offset)


def _check_counts(data: NDArray[Any], indptr: NDArray[Any], first_row: int, where: str) -> None:
    """Refuse negative and non-finite counts."""
    wrong = ~np.isfinite(data) | (data < 0)
    if wrong.any():
        raise ValueError(
            f"{where} must hold finite counts that are not negative; row "
            f"{first_row + _row_of_first(wrong, indptr)} holds {data[np.argmax(wrong)]}."
        )


def _row_of_first(wrong: NDArray[np.bool_], indptr: NDArray[Any]) -> int:
    """The row of the first entry that is marked."""
    return int(np.searchsorted(indptr, np.argmax(wrong), side="right")) - 1
