"""LDA-C files: a line a document, "number of words, then word:count", words numbered from 0."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import numpy as np

from tempering.corpus.corpus import Stored, fail
from tempering.corpus.pairs import PairsFile, Rows, read_rows, write_pairs


def open_lda_c(path: Path) -> PairsFile:
    """Open a corpus."""
    return PairsFile(path, whole=True, first=0, rows=_rows)


def _rows(path: Path, first_line: int, text: bytes) -> Rows:
    rows = read_rows(path, first_line, text)
    promised, found = rows.tokens.integers[rows.heads], np.diff(rows.indptr)
    wrong = promised != found
    if wrong.any():
        row = int(np.argmax(wrong))
        head = rows.tokens.text(int(rows.heads[row]))
        problem = f"it should begin with the number of its pairs, {found[row]}; got {head}."
        fail(path, f"line {rows.lines[row]}", problem)
    return rows


def write_lda_c(file: IO[bytes], stored: Stored) -> None:
    """Write a corpus."""
    write_pairs(file, stored, first=0, head=lambda n_words: n_words)
