"""SVMlight (libsvm) files: a line a document, "label word:count …".

Labels, ``qid:`` and comments are passed over. Words are numbered from 1, as the format has it; a
file in which word 0 occurs, such as scikit-learn writes, is taken to number them from 0.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO

import numpy as np

from tempering.corpus.corpus import Stored, fail
from tempering.corpus.pairs import PairsFile, Rows, read_rows, write_pairs

COMMENT = re.compile(rb"#[^\n]*")
QUERY = re.compile(rb"(?<=[ \t])qid:\S+")


def open_svmlight(path: Path) -> PairsFile:
    """Open a corpus."""
    return PairsFile(path, whole=False, first=None, rows=_rows)


def _rows(path: Path, first_line: int, text: bytes) -> Rows:
    if b"#" in text:
        text = COMMENT.sub(b"", text)
    if b"qid:" in text:
        text = QUERY.sub(b"", text)
    rows = read_rows(path, first_line, text)
    wrong = np.isnan(rows.tokens.reals(rows.heads))
    if wrong.any():
        row = int(np.argmax(wrong))
        label = rows.tokens.text(int(rows.heads[row]))
        fail(path, f"line {rows.lines[row]}", f"a label must be a number; got {label}.")
    return rows


def write_svmlight(file: IO[bytes], stored: Stored) -> None:
    """Write a corpus, with the label 0 for each document."""
    write_pairs(file, stored, first=1, head=lambda n_words: 0)
