"""MatrixMarket files: a header, then "document word count" numbered from 1, in any order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
from scipy import sparse

from tempering.corpus.beside import read_names, read_vocabulary
from tempering.corpus.coordinates import count_entries, read_entries, row_ends, write_entries
from tempering.corpus.corpus import Corpus, Stored, check_shape, fail
from tempering.corpus.lines import line_chunks
from tempering.corpus.numbers import Tokens

KINDS = ("integer", "real", "pattern")
WANTED = "%%MatrixMarket matrix coordinate integer|real|pattern general"


def open_matrix_market(path: Path) -> Corpus:
    """Read a matrix as a whole: its entries may come in any order."""
    kind, shape, n_entries, body = _header(path)
    check_shape(path, "the line of sizes", *shape, path.stat().st_size)
    vocabulary = read_vocabulary(path, shape[1])
    documents, words, counts = (
        [np.empty(0, np.int32)],
        [np.empty(0, np.int32)],
        [np.empty(0, np.float64 if kind == "real" else np.int32)],
    )
    for part in read_entries(path, body, shape, n_entries, kind):
        documents.append(part.documents.astype(np.int32))
        words.append(part.words)
        counts.append(part.counts)
    places = np.concatenate(documents), np.concatenate(words)
    # Without duplicates: `Corpus` adds them up in 64 bits.
    order = np.lexsort(places[::-1])
    ends = row_ends(places[0], shape[0])
    matrix = sparse.csr_array((np.concatenate(counts)[order], places[1][order], ends), shape)
    names = read_names(path, shape[0])
    return Corpus(matrix, vocabulary, None if names is None else list(names))


def _header(path: Path) -> tuple[str, tuple[int, int], int, Iterator[tuple[int, bytes]]]:
    """Kind, shape and number of entries, and the lines after them."""
    chunks = line_chunks(path)
    number, text = next(chunks, (1, b""))
    first, _, text = text.partition(b"\n")
    words = first.lower().split()
    kind = words[3].decode("ascii", "replace") if len(words) == 5 else ""
    expected = [b"%%matrixmarket", b"matrix", b"coordinate", kind.encode(), b"general"]
    if words != expected or kind not in KINDS:
        fail(path, "line 1", f"it should be {WANTED!r}; got {first[:80]!r}.")
    while True:
        number += 1
        if not text:
            number, text = next(chunks, (number, b""))
        if not text:
            fail(path, f"line {number}", "the line of sizes is missing.")
        line, _, text = text.partition(b"\n")
        if line.strip() and not line.startswith(b"%"):
            break
    sizes = Tokens(line + b"\n").integers
    if sizes.size != 3 or sizes.min() < 0:
        problem = f"it should be three sizes, documents, words and entries; got {line[:80]!r}."
        fail(path, f"line {number}", problem)
    n_documents, n_words, n_entries = sizes.tolist()
    return kind, (n_documents, n_words), n_entries, chain([(number + 1, text)], chunks)


def write_matrix_market(file: IO[bytes], stored: Stored) -> None:
    """Write a matrix of counts."""
    kind = "real" if stored.dtype.kind == "f" else "integer"
    n_documents, n_words = stored.shape
    file.write(f"%%MatrixMarket matrix coordinate {kind} general\n".encode())
    file.write(f"{n_documents} {n_words} {count_entries(stored)}\n".encode())
    write_entries(file, stored)
