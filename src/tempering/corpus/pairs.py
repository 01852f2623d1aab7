"""Lines of "head word:count word:count …", which LDA-C and SVMlight share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.corpus.beside import read_names, read_vocabulary
from tempering.corpus.coordinates import read_counts, written
from tempering.corpus.corpus import (
    LARGEST_COUNT,
    MOST_WORDS,
    Stored,
    canonical,
    check_shape,
    fail,
)
from tempering.corpus.lines import line_chunks
from tempering.corpus.numbers import BLANKS_AND_COLONS, COLON, Tokens


class Rows(NamedTuple):
    """Documents of some lines."""

    tokens: Tokens
    #: The token that each line begins with, and the number of the line.
    heads: NDArray[np.int64]
    lines: NDArray[np.int64]
    #: Where the pairs of each line end, and the tokens of words; counts come right after them.
    indptr: NDArray[np.int64]
    places: NDArray[np.int64]

    def lines_of_pairs(self) -> NDArray[np.int64]:
        """The number of the line that each pair stands on."""
        return np.repeat(self.lines, np.diff(self.indptr))


def read_rows(path: Path, first_line: int, text: bytes) -> Rows:
    """The documents of some lines, blank ones left out; numbers are not looked at yet."""
    tokens = Tokens(text, BLANKS_AND_COLONS)
    lines, heads, numbers = tokens.by_line()
    # Parts are heads, words and counts in turn, from the beginning of each line.
    is_odd = np.arange(len(tokens), dtype=np.int32) % 2 == 1
    is_word = is_odd != np.repeat(heads % 2 == 1, numbers)
    has_colon = tokens.raw[tokens.ends] == COLON
    next_start = np.append(tokens.starts[1:], np.int32(-1))
    wrong = has_colon != is_word
    wrong |= is_word & (next_start != tokens.ends + 1)
    wrong[heads + numbers - 1] |= numbers % 2 == 0
    # A colon that follows no number.
    is_astray = tokens.raw == COLON
    is_astray[tokens.ends[has_colon]] = False
    astray = np.flatnonzero(is_astray)
    if wrong.any() or astray.size:
        place = tokens.starts[np.argmax(wrong)] if wrong.any() else astray[0]
        line = first_line + text.count(b"\n", 0, int(place))
        fail(path, f"line {line}", "it should be a number and then pairs word:count.")
    indptr = np.append(0, np.cumsum(numbers // 2))
    return Rows(tokens, heads, lines + first_line, indptr, np.flatnonzero(is_word))


class PairsFile:
    """A corpus of such lines, read in blocks.

    Such a file does not tell how large it is, so it is read through once to learn that.

    Parameters
    ----------
    path : Path
        The file.
    whole : bool
        Whether counts must be whole.
    first : int or None
        The number of the first word; None for 0 if it occurs, else 1.
    rows : function
        From path, number of the first line and text to rows, with what the format asks of heads.
    """

    def __init__(
        self,
        path: Path,
        whole: bool,
        first: int | None,
        rows: Callable[[Path, int, bytes], Rows],
    ):
        self.path = path
        self.rows = rows
        n_documents, least, most, is_whole = self._survey(whole)
        self.first = first if first is not None else int(least > 0)
        self.dtype = np.dtype(np.int32 if is_whole else np.float64)
        self.vocabulary = read_vocabulary(path, None)
        used = max(most + 1 - self.first, 0)
        n_words = used if self.vocabulary is None else len(self.vocabulary)
        check_shape(path, "", n_documents, n_words, path.stat().st_size)
        self.shape = (n_documents, n_words)
        self.names = read_names(path, n_documents)

    def _survey(self, whole: bool) -> tuple[int, int, int, bool]:
        """Number of documents, least and largest word, and whether all counts are whole."""
        n_documents, least, most, is_whole = 0, MOST_WORDS, -1, True
        for first_line, text in line_chunks(self.path):
            rows = self.rows(self.path, first_line, text)
            n_documents += rows.lines.size
            words = self._words(rows)
            least = int(words.min(initial=least))
            most = int(words.max(initial=most))
            counts = rows.tokens.integers[rows.places + 1]
            is_whole &= whole or bool(np.all((counts >= 0) & (counts <= LARGEST_COUNT)))
        return n_documents, least, most, is_whole

    def _words(self, rows: Rows) -> NDArray[np.int64]:
        words = rows.tokens.integers[rows.places]
        wrong = (words < 0) | (words >= MOST_WORDS)
        if wrong.any():
            pair = int(np.argmax(wrong))
            got = rows.tokens.text(int(rows.places[pair]))
            problem = f"a word must be a number from 0 to {MOST_WORDS - 1}; got {got}."
            fail(self.path, f"line {rows.lines_of_pairs()[pair]}", problem)
        return words

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order."""
        for first_line, text in line_chunks(self.path):
            yield canonical(self._block(first_line, text), self.path)

    def _block(self, first_line: int, text: bytes) -> sparse.csr_array:
        """The documents of some lines."""
        rows = self.rows(self.path, first_line, text)
        words = self._words(rows) - self.first
        lines = rows.lines_of_pairs()
        wrong = (words < 0) | (words >= self.shape[1])
        if wrong.any():
            pair = int(np.argmax(wrong))
            problem = (
                f"word {words[pair] + self.first} is out of range: there are {self.shape[1]}, "
                f"numbered from {self.first}."
            )
            fail(self.path, f"line {lines[pair]}", problem)
        whole = self.dtype.kind == "i"
        counts = read_counts(self.path, rows.tokens, rows.places + 1, lines, whole)
        arrays = counts, words.astype(np.int32), rows.indptr
        return sparse.csr_array(arrays, (rows.lines.size, self.shape[1]))


def write_pairs(file: IO[bytes], stored: Stored, first: int, head: Callable[[int], Any]) -> None:
    """A line a document: a head made from the number of pairs, and words from ``first`` on."""
    for block in stored.blocks():
        pairs = list(
            map(" %d:%s".__mod__, zip((block.indices + first).tolist(), written(block.data)))
        )
        ends = block.indptr.tolist()
        lines = (
            f"{head(stop - start)}{''.join(pairs[start:stop])}\n" for start, stop in pairwise(ends)
        )
        file.write("".join(lines).encode())
