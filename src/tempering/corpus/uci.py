"""Bags of words of the UCI repository.

``docword.NAME.txt``, or ``.txt.gz``: three lines with the numbers of documents, words and entries,
then lines of "document word count", numbered from 1, in the order of the documents. The words stand
in ``vocab.NAME.txt``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
from scipy import sparse

from tempering.corpus.beside import read_names, read_vocabulary
from tempering.corpus.coordinates import (
    count_entries,
    read_entries,
    rows_of_sorted,
    write_entries,
)
from tempering.corpus.corpus import Stored, check_shape, fail
from tempering.corpus.lines import line_chunks

HEADER = ("documents", "words", "entries")


class UCIFile:
    """A bag of words of the UCI repository, read in blocks."""

    dtype = np.dtype(np.int32)

    def __init__(self, path: Path):
        self.path = path
        _, header = self._body()
        n_documents, n_words, self.n_entries = header
        check_shape(path, "lines 1 and 2", n_documents, n_words, path.stat().st_size)
        self.shape = (n_documents, n_words)
        self.vocabulary = read_vocabulary(path, n_words)
        self.names = read_names(path, n_documents)

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order."""
        body, _ = self._body()
        entries = read_entries(self.path, body, self.shape, self.n_entries, "integer")
        return rows_of_sorted(self.path, entries, self.shape, self.dtype)

    def _body(self) -> tuple[Iterator[tuple[int, bytes]], list[int]]:
        """The lines after the header, and the header."""
        chunks = line_chunks(self.path)
        first = b""
        for _, text in chunks:
            first += text
            if first.count(b"\n") >= len(HEADER):
                break
        parts = first.split(b"\n", len(HEADER))
        numbers = []
        for line, (what, part) in enumerate(zip(HEADER, parts), 1):
            text = part.strip()
            if not (text.isdigit() and len(text) <= 18):
                problem = f"it should be the number of {what}; got {text[:40]!r}."
                fail(self.path, f"line {line}", problem)
            numbers.append(int(text))
        if len(parts) <= len(HEADER):
            fail(self.path, f"line {len(parts)}", f"the number of {HEADER[-1]} is missing.")
        return chain([(len(HEADER) + 1, parts[-1])], chunks), numbers


def write_uci(file: IO[bytes], stored: Stored) -> None:
    """Write the ``docword`` file."""
    n_documents, n_words = stored.shape
    file.write(f"{n_documents}\n{n_words}\n{count_entries(stored)}\n".encode())
    write_entries(file, stored)
