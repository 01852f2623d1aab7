"""Sparse matrices as ``scipy.sparse.save_npz`` writes them, read without trust.

``scipy.sparse.load_npz`` takes memory for whatever the file claims; here the claims are compared
with the file first.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from tempering.corpus.beside import read_names, read_vocabulary
from tempering.corpus.coordinates import row_ends
from tempering.corpus.corpus import Corpus, Stored, check_counts, check_shape, fail, gather
from tempering.corpus.expansion import expansion_limit, refuse_expansion
from tempering.corpus.zipped import open_zip

LONGEST_HEADER = 4096
#: Which arrays a matrix is made of; the first two tell where the entries are.
ARRAYS = {
    "csr": ("indptr", "indices", "data"),
    "csc": ("indptr", "indices", "data"),
    "coo": ("row", "col", "data"),
}


def open_npz(path: Path) -> Corpus:
    """Read a matrix, in CSR, CSC or COO form."""
    with open_zip(path, expansion_limit(path)) as archive:
        kind, shape, arrays = _read_arrays(path, archive)
    matrix = _assemble(path, kind, shape, arrays)
    vocabulary = read_vocabulary(path, shape[1])
    names = read_names(path, shape[0])
    return Corpus(matrix, vocabulary, None if names is None else list(names))


def _read_arrays(
    path: Path, archive: zipfile.ZipFile
) -> tuple[str, tuple[int, int], list[NDArray[Any]]]:
    """The kind of matrix, its shape and its arrays."""
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

    def read(name: str) -> NDArray[Any]:
        if name not in members:
            fail(path, "", f"the array {name!r} is missing: was it written by save_npz?")
        return _read_array(path, archive, members[name])

    kind = read("format")
    text = kind.item() if kind.size == 1 else ""
    text = text.decode("latin-1") if isinstance(text, bytes) else str(text)
    if text not in ARRAYS:
        fail(path, "format.npy", f"the matrix must be of kind {', '.join(ARRAYS)}; got {text!r}.")
    shape = read("shape")
    if shape.size != 2 or shape.dtype.kind not in "iu":
        fail(path, "shape.npy", f"it should be two whole numbers; got {shape}.")
    n_documents, n_words = (int(n) for n in shape.ravel())
    check_shape(path, "shape.npy", n_documents, n_words, path.stat().st_size)
    return text, (n_documents, n_words), [read(name) for name in ARRAYS[text]]


def _read_array(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """One array, if it is as long as its header tells, and holds numbers or text."""
    with archive.open(info) as file:
        try:
            version = npy.read_magic(file)
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = header(file, max_header_size=LONGEST_HEADER)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError):
            raise
        # numpy evaluates the header as a Python literal, which fails in many ways.
        except Exception as error:
            fail(path, info.filename, f"it is no array: {error}.")
        length = int(np.prod(shape, dtype=object))
        promised = length * dtype.itemsize
        there = info.file_size - file.tell()
        if dtype.kind not in "biufSU" or len(shape) > 1:
            problem = f"it should be a row of numbers; got shape {shape} of type {dtype}."
            fail(path, info.filename, problem)
        if promised != there:
            problem = f"its header tells of {promised} bytes, but it holds {there}."
            fail(path, info.filename, problem)
        # What is stored in a byte or two takes four in memory.
        if length * max(dtype.itemsize, 4) > expansion_limit(path):
            refuse_expansion(path)
        content = file.read()
    if len(content) != promised:
        fail(path, info.filename, f"it is cut short: {len(content)} of {promised} bytes.")
    array = np.frombuffer(content, dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _assemble(path: Path, kind: str, shape: tuple[int, int], arrays: list[NDArray[Any]]) -> Any:
    """The matrix, if its arrays belong together."""
    names = ARRAYS[kind]
    data = arrays[2]
    if data.dtype.kind not in "biuf":
        fail(path, "data.npy", f"it should hold numbers; got type {data.dtype}.")
    # scipy knows neither half nor extended precision.
    data = data.astype({2: np.float32, 16: np.float64}.get(data.itemsize, data.dtype), copy=False)
    for name, array in zip(names[:2], arrays[:2]):
        if array.dtype.kind not in "iu":
            fail(path, f"{name}.npy", f"it should hold whole numbers; got type {array.dtype}.")
    if kind == "coo":
        for name, array, n in zip(names, arrays, shape):
            _check_range(path, name, array, n)
            _check_length(path, name, array, data.size)
        rows, columns = arrays[0].astype(np.int64), arrays[1].astype(np.int32)
        order = np.lexsort((columns, rows))
        ends = row_ends(rows, shape[0])
        check_counts(path, data[order], ends, 0)
        return sparse.csr_array((data[order], columns[order], ends), shape)
    n_major, n_minor = shape if kind == "csr" else shape[::-1]
    ends, places = arrays[:2]
    _check_length(path, "indptr", ends, n_major + 1)
    _check_length(path, "indices", places, data.size)
    _check_range(path, "indices", places, n_minor)
    _check_range(path, "indptr", ends, data.size + 1)
    ends = ends.astype(np.int64, copy=False)
    if ends[0] != 0 or ends[-1] != data.size or np.any(np.diff(ends) < 0):
        fail(path, "indptr.npy", f"it should rise from 0 to {data.size}, the number of entries.")
    make: Any = sparse.csr_array if kind == "csr" else sparse.csc_array
    return make((data, places.astype(np.int32, copy=False), ends), shape)


def _check_range(path: Path, name: str, array: NDArray[Any], n: int) -> None:
    wrong = (array < 0) | (array >= n)
    if wrong.any():
        entry = int(np.argmax(wrong))
        problem = f"entry {entry} is {array[entry]}, out of range: it should be in 0 to {n - 1}."
        fail(path, f"{name}.npy", problem)


def _check_length(path: Path, name: str, array: NDArray[Any], n: int) -> None:
    if array.shape != (n,):
        fail(path, f"{name}.npy", f"it should have {n} entries; its shape is {array.shape}.")


def write_npz(file: IO[bytes], stored: Stored) -> None:
    """Write a matrix that ``scipy.sparse.load_npz`` reads."""
    sparse.save_npz(file, gather(stored).counts, compressed=True)
