"""Corpora as sparse matrices in files: of scipy (``save_npz``), and as lines of numbers.

Lines of "document word count", numbered from 1: MatrixMarket, in any order; and the UCI bags of
words, in the order of the documents, so that they alone are read in pieces. A document a line of
"head word:count …": LDA-C, headed by the number of pairs, with words from 0; and SVMlight, headed
by a label, with words from 1, or from 0 where word 0 occurs.
"""

import io
import re
import warnings
import zipfile
from array import array
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import io as scipy_io
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from tempering.corpus.corpus import (
    LARGEST_COUNT,
    Corpus,
    Stored,
    check_shape,
    checked_rows,
    gather,
    read_names,
    read_vocabulary,
    refuse_entry,
)
from tempering.corpus.files import check_size, cut, fail, line_chunks, reading, text_lines


def open_npz(path: Path) -> Corpus:
    """Read a matrix, in CSR, CSC or COO form."""
    with reading(path):
        with zipfile.ZipFile(path) as archive:
            check_size(path, sum(member.file_size for member in archive.infolist()))
        # It takes no pickled objects, so that nothing in the file is run.
        matrix: Any = sparse.load_npz(path)
    if matrix.format not in ("csr", "csc", "coo") or matrix.ndim != 2:
        fail(path, "", f"the matrix must be of kind csr, csc, coo; got {matrix.format!r}.")
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


HEADER = ("documents", "words", "entries")


def content_of(path: Path) -> bytes:
    """All of a file of lines, unpacked if it is gzipped, unless it takes too much memory."""
    parts, n_bytes = [], 0
    for _, text in line_chunks(path):
        n_bytes += len(text)
        check_size(path, n_bytes)
        parts.append(text)
    return b"".join(parts)


def open_matrix_market(path: Path) -> Corpus:
    """Read a matrix as a whole: its entries may come in any order."""
    content = content_of(path) or b"\n"
    # scipy's reader is written in C++. It ends the process where a Python file raises, and where it
    # finds no end of a line, which a byte 0 hides. So it is given a file in memory.
    if b"\0" in content:
        fail(path, "", "it holds a byte 0.")
    n_documents, n_words, n_entries, *kind = _scan(path, content, scipy_io.mminfo)
    layout, field, symmetry = kind
    known = ("integer", "unsigned-integer", "real", "double", "pattern")
    if layout != "coordinate" or field not in known or symmetry != "general":
        wanted = "%%MatrixMarket matrix coordinate integer|real|pattern general"
        fail(path, "line 1", f"it should be {wanted!r}; got {' '.join(kind)!r}.")
    check_shape(path, "the line of sizes", n_documents, n_words, path.stat().st_size)
    check_size(path, 24 * n_entries + 8 * n_documents)  # bytes that they take while they are read
    entries = _scan(path, content, scipy_io.mmread)
    del content  # it takes as much memory as they do
    order = np.lexsort((entries.col, entries.row))
    arrays = entries.data[order], entries.col[order], row_ends(entries.row, n_documents)
    counts: Any = checked_rows(path, arrays, n_words)
    return with_words(path, counts if field in ("real", "double") else counts.astype(np.int32))


def _scan(path: Path, content: bytes, scan: Callable[[Any], Any]) -> Any:
    """What scipy makes of a file."""
    try:
        return scan(io.BytesIO(content))
    except (ValueError, OverflowError, MemoryError, TypeError) as error:
        told = re.match(r"Line (\d+): ", str(error))
        problem = cut(str(error)[told.end() if told else 0 :]).rstrip(".")
        fail(path, f"line {told[1]}" if told else "", f"{problem}.")


def write_matrix_market(file: IO[bytes], stored: Stored) -> None:
    """Write a matrix of counts."""
    scipy_io.mmwrite(file, gather(stored).counts, symmetry="general")


class UCIFile:
    """A bag of words of the UCI repository, read in blocks."""

    dtype = np.dtype(np.int32)

    def __init__(self, path: Path):
        self.path = path
        lines = [*(line for _, line in islice(text_lines(path), len(HEADER))), "", "", ""]
        header = [line.strip().encode("utf-8", "surrogateescape") for line in lines]
        for number, (what, text) in enumerate(zip(HEADER, header), 1):
            if not (text.isdigit() and len(text) <= 18):
                problem = f"it should be the number of {what}; got {text[:40]!r}."
                fail(path, f"line {number}", problem)
        n_documents, n_words, self.n_entries = map(int, header[: len(HEADER)])
        check_shape(path, "lines 1 and 2", n_documents, n_words, path.stat().st_size)
        self.shape = (n_documents, n_words)
        self.vocabulary = read_vocabulary(path, n_words)
        self.names = read_names(path, n_documents)

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order."""
        begun, rest, seen = 0, np.empty((3, 0), np.int64), 0
        for first_line, text in line_chunks(self.path, skip=len(HEADER)):
            part = self._entries(first_line, text)
            seen += part.shape[1]
            part = np.hstack([rest, part])
            documents = part[0]
            falls = np.flatnonzero(np.diff(documents) < 0)
            if falls.size:
                before, after = documents[falls[0] : falls[0] + 2] + 1
                problem = f"document {after} comes after document {before}: sort the lines."
                fail(self.path, f"lines from {first_line} on", problem)
            # The last document may go on in the next piece.
            last = int(documents[-1]) if documents.size else begun
            complete = int(np.searchsorted(documents, last))
            if last > begun:
                yield self._block(part[:, :complete], begun, last)
                begun = last
            rest = part[:, complete:]
        if seen != self.n_entries:
            problem = f"it holds {seen} entries, but its header promises {self.n_entries}."
            fail(self.path, "", problem)
        if self.shape[0] > begun:
            yield self._block(rest, begun, self.shape[0])

    def _block(self, part: NDArray[np.int64], begin: int, end: int) -> sparse.csr_array:
        documents, words, counts = part
        arrays = counts, words, row_ends(documents - begin, end - begin)
        rows: Any = checked_rows(self.path, arrays, self.shape[1], begin, first_word=1)
        return rows.astype(self.dtype)

    def _entries(self, first_line: int, text: bytes) -> NDArray[np.int64]:
        """Document and word, from 0, and count, in three rows, of some lines."""
        if text.isspace():
            return np.empty((3, 0), np.int64)
        where = f"lines from {first_line} on"
        try:
            with warnings.catch_warnings():
                # NumPy before 2.3 takes 1.5 for 1, with this warning.
                warnings.simplefilter("error", DeprecationWarning)
                lines = np.loadtxt(io.BytesIO(text), np.int64, comments=None, ndmin=2)
            documents, words, counts = lines.T
        except (ValueError, DeprecationWarning) as error:
            fail(self.path, where, f"each should be three whole numbers: {cut(error)}.")
        wrong = (documents < 1) | (documents > self.shape[0])
        if wrong.any():
            got = documents[np.argmax(wrong)]
            problem = f"a document must be a number from 1 to {self.shape[0]}; got {got}."
            fail(self.path, where, problem)
        return np.stack([documents - 1, words - 1, counts])


def write_uci(file: IO[bytes], stored: Stored) -> None:
    """Write the ``docword`` file."""
    sizes = *stored.shape, sum(block.nnz for block in stored.blocks())
    file.write("".join(f"{size}\n" for size in sizes).encode())
    first = 1
    for block in whole_blocks(stored):
        rows = np.repeat(np.arange(first, first + block.shape[0]), np.diff(block.indptr))
        np.savetxt(file, np.stack([rows, block.indices + 1, block.data], axis=1), "%d")
        first += block.shape[0]


def row_ends(rows: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
    """Where each row ends among the numbers of rows, sorted; after a 0."""
    return np.append(0, np.cumsum(np.bincount(rows, minlength=n_rows)))


def whole_blocks(stored: Stored) -> Iterator[Any]:
    """The blocks of a corpus for a format of whole counts, refused where they are not."""
    first_row = 0
    remedy = "Write .npz, .parquet, .mtx or .svmlight instead."
    for block in stored.blocks():
        counts: Any = block.data
        refuse_entry(
            "corpus",
            (counts != np.floor(counts)) | (counts > LARGEST_COUNT),
            block.indptr,
            first_row,
            lambda i, counts=counts: f"this format holds whole counts; got {counts[i]}. {remedy}",
        )
        yield block.astype(np.int32, copy=False)
        first_row += block.shape[0]


def written(counts: NDArray[Any]) -> list[Any]:
    """Counts as they are written: whole ones without a point, others to the last bit."""
    if counts.dtype.kind == "f" and np.all((counts == np.floor(counts)) & (counts < 2**53)):
        return counts.astype(np.int64).tolist()
    return counts.tolist()


def open_lda_c(path: Path) -> Corpus:
    """Read the documents of LDA-C, blank lines left out."""
    words, counts, ends = array("q"), array("q"), [0]
    for number, line in enumerate(io.BytesIO(content_of(path)), 1):
        if line.isspace():
            continue
        n_pairs = len(line.split()) - 1
        try:
            told, *pairs = map(int, line.replace(b":", b" ").split())
            words.extend(pairs[::2])
            counts.extend(pairs[1::2])
        except (ValueError, OverflowError):
            told = -1
        if not told == n_pairs == line.count(b":") or len(words) != len(counts):
            wanted = "the number of its pairs and then pairs word:count, of whole numbers"
            fail(path, f"line {number}", f"it should be {wanted}; it begins with {line[:40]!r}.")
        ends.append(len(words))
    return _of_pairs(path, (np.asarray(counts), np.asarray(words), np.array(ends)), first=0)


def open_svmlight(path: Path) -> Corpus:
    """Read the documents of SVMlight."""
    with reading(path), io.BytesIO(content_of(path)) as file:
        found: Any = load_svmlight_file(file, dtype=np.float64, zero_based=True)[0]
    arrays = found.data, found.indices, found.indptr
    return _of_pairs(path, arrays, int(found.indices.min(initial=1)))


def _of_pairs(path: Path, arrays: tuple[Any, Any, Any], first: int) -> Corpus:
    """The corpus of counts, words as the file numbers them from ``first`` on, and ends of rows."""
    counts, words, ends = arrays
    vocabulary = read_vocabulary(path, None)
    used = int(words.max(initial=first - 1)) + 1 - first
    n_words = used if vocabulary is None else len(vocabulary)
    check_shape(path, "", ends.size - 1, n_words, path.stat().st_size)
    words -= first  # not a copy: they are all of the file
    rows: Any = checked_rows(path, (counts, words, ends), n_words, first_word=first)
    if np.all((rows.data == np.floor(rows.data)) & (rows.data <= LARGEST_COUNT)):
        rows = rows.astype(np.int32)
    return with_words(path, rows)


def write_lda_c(file: IO[bytes], stored: Stored) -> None:
    """Write a corpus in LDA-C's format."""
    _write_pairs(file, whole_blocks(stored), first=0, head=lambda n_words: n_words)


def write_svmlight(file: IO[bytes], stored: Stored) -> None:
    """Write a corpus in SVMlight's format, with the label 0 for each document."""
    _write_pairs(file, stored.blocks(), first=1, head=lambda n_words: 0)


def _write_pairs(
    file: IO[bytes], blocks: Iterator[Any], first: int, head: Callable[[int], int]
) -> None:
    """A line a document: a head made from the number of pairs, and words from ``first`` on."""
    for block in blocks:
        words = (block.indices + first).tolist()
        pairs = list(map(" %d:%s".__mod__, zip(words, written(block.data))))
        lines = (
            f"{head(stop - start)}{''.join(pairs[start:stop])}\n"
            for start, stop in pairwise(block.indptr.tolist())
        )
        file.write("".join(lines).encode())
