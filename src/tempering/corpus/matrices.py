"""Corpora as sparse matrices in files: of scipy (``save_npz``), and as lines of numbers.

Lines of "document word count", numbered from 1: MatrixMarket, which may have any order and is read
as a whole, by scipy; and the UCI bags of words, after three lines with the numbers of documents,
words and entries, in the order of the documents, so that they are read in pieces.

Of "head word:count word:count …", a document each: LDA-C, headed by the number of pairs, with words
from 0; and SVMlight, headed by a label, with words from 1, or from 0 where word 0 occurs.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import io as scipy_io
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from tempering.corpus.checks import check_size, cut, fail, reading
from tempering.corpus.corpus import (
    LARGEST_COUNT,
    Corpus,
    Stored,
    check_shape,
    checked_rows,
    gather,
    refuse_entry,
)
from tempering.corpus.lines import check_lines, line_chunks, read_names, read_vocabulary, text_lines

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


FIELDS = ("integer", "unsigned-integer", "real", "double", "pattern")
WANTED = "%%MatrixMarket matrix coordinate integer|real|pattern general"
HEADER = ("documents", "words", "entries")
#: Bytes that an entry takes while it is read, and a document.
ENTRY_BYTES, DOCUMENT_BYTES = 24, 8
LINE = re.compile(r"^Line (\d+): ")
UCI_LINES = re.compile(rb"\s*+(?:\d{1,18}+[ \t]++\d{1,18}+[ \t]++\d{1,18}+[ \t\r]*+\n\s*+)*+")


def open_matrix_market(path: Path) -> Corpus:
    """Read a matrix as a whole: its entries may come in any order."""
    n_documents, n_words, is_whole, entries = _read_matrix_market(path)
    order = np.lexsort((entries.col, entries.row))
    arrays = entries.data[order], entries.col[order], row_ends(entries.row, n_documents)
    counts = checked_rows(path, arrays, n_words)
    return with_words(path, counts.astype(np.int32) if is_whole else counts)


def _read_matrix_market(path: Path) -> tuple[int, int, bool, Any]:
    """Documents, words, whether counts are whole, and the entries.

    scipy's reader is written in C++. It ends the process where a Python file raises, and where it
    finds no end of a line, which a byte 0 hides. So it is given a file in memory.
    """
    parts, n_bytes = [], 0
    for _, text in line_chunks(path):
        n_bytes += len(text)
        check_size(path, n_bytes)
        parts.append(text)
    content = b"".join(parts) or b"\n"
    del parts
    if b"\0" in content:
        fail(path, "", "it holds a byte 0.")
    n_documents, n_words, n_entries, *kind = _scan(path, content, scipy_io.mminfo)
    layout, field, symmetry = kind
    if layout != "coordinate" or field not in FIELDS or symmetry != "general":
        fail(path, "line 1", f"it should be {WANTED!r}; got {' '.join(kind)!r}.")
    check_shape(path, "the line of sizes", n_documents, n_words, path.stat().st_size)
    check_size(path, ENTRY_BYTES * n_entries + DOCUMENT_BYTES * n_documents)
    entries = _scan(path, content, scipy_io.mmread)
    return n_documents, n_words, field not in ("real", "double"), entries


def _scan(path: Path, content: bytes, scan: Callable[[Any], Any]) -> Any:
    """What scipy makes of a file."""
    try:
        return scan(io.BytesIO(content))
    except (ValueError, OverflowError, MemoryError, TypeError) as error:
        told = LINE.match(str(error))
        problem = cut(LINE.sub("", str(error))).rstrip(".")
        fail(path, f"line {told[1]}" if told else "", f"{problem}.")


def write_matrix_market(file: IO[bytes], stored: Stored) -> None:
    """Write a matrix of counts."""
    kind = "real" if stored.dtype.kind == "f" else "integer"
    file.write(f"%%MatrixMarket matrix coordinate {kind} general\n".encode())
    _write_entries(file, stored, stored.blocks(), " ")


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
        check_lines(self.path, first_line, text, UCI_LINES, "three whole numbers")
        if text.isspace():
            return np.empty((3, 0), np.int64)
        documents, words, counts = np.fromstring(text, np.int64, sep=" ").reshape(-1, 3).T
        wrong = (documents < 1) | (documents > self.shape[0])
        if wrong.any():
            got = documents[np.argmax(wrong)]
            problem = f"a document must be a number from 1 to {self.shape[0]}; got {got}."
            fail(self.path, f"lines from {first_line} on", problem)
        return np.stack([documents - 1, words - 1, counts])


def write_uci(file: IO[bytes], stored: Stored) -> None:
    """Write the ``docword`` file."""
    _write_entries(file, stored, whole_blocks(stored), "\n")


def row_ends(rows: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
    """Where each row ends among the numbers of rows, sorted; after a 0."""
    return np.append(0, np.cumsum(np.bincount(rows, minlength=n_rows)))


def _write_entries(file: IO[bytes], stored: Stored, blocks: Iterator[Any], between: str) -> None:
    """Sizes, and lines of "document word count", numbered from 1."""
    sizes = *stored.shape, sum(block.nnz for block in stored.blocks())
    file.write(f"{between.join(map(str, sizes))}\n".encode())
    first = 1
    for block in blocks:
        rows = np.repeat(np.arange(first, first + block.shape[0]), np.diff(block.indptr))
        triples = zip(rows.tolist(), (block.indices + 1).tolist(), written(block.data))
        file.write("".join(map("%d %d %s\n".__mod__, triples)).encode())
        first += block.shape[0]


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


LDA_C_LINES = re.compile(rb"\s*+(?:\d{1,18}+(?:[ \t]++\d{1,18}+:\d{1,18}+)*+[ \t\r]*+\n\s*+)*+")

#: Counts, words as the file numbers them, and ends of the rows.
Arrays = tuple[Any, Any, Any]


def read_lda_c(path: Path, first_line: int, text: bytes) -> Arrays:
    """The documents of some lines of LDA-C, blank ones left out."""
    wanted = "the number of its pairs and then pairs word:count, of whole numbers"
    check_lines(path, first_line, text, LDA_C_LINES, wanted)
    lengths = [line.count(b":") for line in text.split(b"\n") if line.strip()]
    numbers = np.fromstring(text.replace(b":", b" "), np.int64, sep=" ")
    ends = np.append(0, np.cumsum(lengths, dtype=np.int64))
    heads = 2 * ends[:-1] + np.arange(len(lengths))
    wrong = numbers[heads] != lengths
    if wrong.any():
        row = int(np.argmax(wrong))
        problem = f"a line begins with {numbers[heads][row]}, but has {lengths[row]} pairs."
        fail(path, f"lines from {first_line} on", problem)
    # Without the heads, words and counts take turns.
    pairs = np.delete(numbers, heads)
    return pairs[1::2], pairs[::2], ends


def read_svmlight(path: Path, first_line: int, text: bytes) -> Arrays:
    """The documents of some lines of SVMlight."""
    last_line = first_line + text.count(b"\n") - 1
    with reading(path, f"lines {first_line} to {last_line}"):
        found: Any = load_svmlight_file(io.BytesIO(text), dtype=np.float64, zero_based=True)[0]
        # Its words are numbers of 32 bits where these suffice.
        return found.data, found.indices.astype(np.int64), found.indptr


class PairsFile:
    """A corpus of such lines, read in blocks; and once before, to learn how large it is."""

    def __init__(self, path: Path, read: Callable[[Path, int, bytes], Arrays], first: int | None):
        self.path = path
        self.read = read
        n_documents, least, most, is_whole = 0, 1, -1, True
        for counts, words, ends in self._parts():
            n_documents += ends.size - 1
            least = int(words.min(initial=least))
            most = int(words.max(initial=most))
            is_whole &= bool(np.all((counts == np.floor(counts)) & (counts <= LARGEST_COUNT)))
        self.first = least if first is None else first
        self.dtype = np.dtype(np.int32 if is_whole else np.float64)
        self.vocabulary = read_vocabulary(path, None)
        used = max(most + 1 - self.first, 0)
        n_words = used if self.vocabulary is None else len(self.vocabulary)
        check_shape(path, "", n_documents, n_words, path.stat().st_size)
        self.shape = (n_documents, n_words)
        self.names = read_names(path, n_documents)

    def _parts(self) -> Iterator[Arrays]:
        for first_line, text in line_chunks(self.path):
            if text.strip():
                yield self.read(self.path, first_line, text)

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order."""
        first_row = 0
        for counts, words, ends in self._parts():
            arrays = counts, words - self.first, ends
            rows: Any = checked_rows(self.path, arrays, self.shape[1], first_row, self.first)
            first_row += rows.shape[0]
            yield rows.astype(self.dtype)


open_lda_c = partial(PairsFile, read=read_lda_c, first=0)
open_svmlight = partial(PairsFile, read=read_svmlight, first=None)


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
