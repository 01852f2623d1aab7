"""Lines of "head word:count word:count …", a document each: LDA-C and SVMlight (libsvm).

LDA-C begins a line with the number of its pairs, and numbers words from 0. SVMlight begins it with
a label, which is passed over, as are ``qid:`` and comments; it numbers words from 1, but a file in
which word 0 occurs, such as scikit-learn writes, is taken to number them from 0.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from tempering.corpus.beside import read_names, read_vocabulary
from tempering.corpus.checks import fail, reading
from tempering.corpus.corpus import LARGEST_COUNT, Stored, check_shape, checked_rows
from tempering.corpus.lines import check_lines, line_chunks
from tempering.corpus.triples import whole_blocks, written

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
    """A corpus of such lines, read in blocks.

    Such a file does not tell how large it is, so it is read through once to learn that. ``read``
    makes the arrays of documents of some lines; ``first`` is the number of the first word, or None
    for 0 if it occurs, else 1.
    """

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
