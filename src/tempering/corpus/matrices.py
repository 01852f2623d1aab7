"""Sparse matrices in files of scipy (``save_npz``)."""

import zipfile
from pathlib import Path
from typing import IO, Any

from scipy import sparse

from tempering.corpus.checks import check_size, fail, reading
from tempering.corpus.corpus import Corpus, Stored, check_shape, checked_rows, gather
from tempering.corpus.sidecars import read_names, read_vocabulary

KINDS = ("csr", "csc", "coo")


def open_npz(path: Path) -> Corpus:
    """Read a matrix, in CSR, CSC or COO form."""
    with reading(path):
        with zipfile.ZipFile(path) as archive:
            check_size(path, sum(member.file_size for member in archive.infolist()))
        # It takes no pickled objects, so that nothing in the file is run.
        matrix: Any = sparse.load_npz(path)
    if matrix.format not in KINDS or matrix.ndim != 2:
        problem = f"the matrix must be of kind {', '.join(KINDS)}; got {matrix.format!r}."
        fail(path, "", problem)
    n_documents, n_words = matrix.shape
    check_shape(path, "shape.npy", n_documents, n_words, path.stat().st_size)
    if matrix.format != "csr":
        # Places out of range would be written to beyond the memory of the matrix.
        with reading(path):
            if matrix.format == "csc":
                matrix.check_format(full_check=True)
            matrix = sparse.csr_array(matrix)
    arrays = matrix.data, matrix.indices, matrix.indptr
    return with_words(path, checked_rows(path, arrays, n_words))


def with_words(path: Path, counts: sparse.csr_array) -> Corpus:
    """The corpus of a file that is read as a whole, with what stands beside the file."""
    n_documents, n_words = counts.shape
    names = read_names(path, n_documents)
    vocabulary = read_vocabulary(path, n_words)
    return Corpus(counts, vocabulary, None if names is None else list(names))


def write_npz(file: IO[bytes], stored: Stored) -> None:
    """Write a matrix that ``scipy.sparse.load_npz`` reads."""
    sparse.save_npz(file, gather(stored).counts, compressed=True)
