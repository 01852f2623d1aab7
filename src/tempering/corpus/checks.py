"""What a file claims, and what a library made of it, before it is believed.

The readers are those of scipy, scikit-learn and pyarrow. They tell of damaged files in many ways
(:func:`reading` makes one of them), take memory for whatever a file claims (:func:`check_size`),
and do not look at the numbers they return (:func:`checked_rows`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tempering.corpus.corpus import (
    CorpusError,
    canonical,
    check_counts,
    check_n_words,
    fail,
    refuse_entry,
)

#: The most bytes that a corpus may take in memory, or a part of it that is read in one go.
MAX_BYTES = 4 << 30
VARIABLE = "TEMPERING_MAX_BYTES"
LONGEST_QUOTE = 80


def cut(text: Any, length: int = LONGEST_QUOTE) -> str:
    """The beginning of a text, for messages: a document may have thousands of characters."""
    text = str(text)
    return text if len(text) <= length else f"{text[:length]}…"


@contextmanager
def reading(path: Any, place: str = "") -> Iterator[None]:
    """Whatever a library says of a file that it cannot read becomes a :class:`CorpusError`."""
    try:
        yield
    except (CorpusError, ImportError):
        raise
    # Damaged files raise nearly everything: struct.error, zlib.error, BadZipFile, KeyError, …
    except Exception as error:
        # What the system says, such as that a file may not be read, is no damage; unless it is that
        # a place which the file tells of cannot be.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        told = " ".join(f"{type(error).__name__}: {error}".split())
        what = cut(told, 3 * LONGEST_QUOTE).rstrip(".")
        where = f"{path}, {place}" if place else path
        raise CorpusError(f"{where}: it is damaged, or of another format ({what}).") from error


def size_limit() -> int:
    """The most bytes to take for a corpus: the environment's word, or 4 GiB."""
    told = os.environ.get(VARIABLE, str(MAX_BYTES))
    if not (told.isascii() and told.isdigit() and 0 < int(told[:20]) < 2**63):
        raise CorpusError(f"{VARIABLE} must be a number of bytes; got {cut(told)!r}.")
    return int(told)


def check_size(path: Any, n_bytes: int, what: str = "it") -> None:
    """Refuse what would take too much memory, before it is taken."""
    limit = size_limit()
    if n_bytes > limit:
        problem = f"{what} takes {n_bytes} bytes, more than the {limit} that are allowed."
        remedy = f"If you trust the file, allow more in the environment: {VARIABLE}={2 * n_bytes}."
        fail(path, "", f"{problem} {remedy}")


def check_regular(path: Path) -> None:
    """Refuse a pipe or a device, which would be waited for, and cannot be read twice."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if not (path.is_file() or path.is_dir()):
        fail(path, "", "it is a pipe, socket or device; write what it gives to a file first.")


def checked_rows(
    where: Any, arrays: tuple[Any, Any, Any], n_words: int, first_row: int = 0, first_word: int = 0
) -> sparse.csr_array:
    """Rows of counts, if they are sound: sorted words, none twice, no zeros.

    Parameters
    ----------
    where
        The file, and perhaps the place in it, for messages.
    arrays : tuple of arrays
        Counts, words (from 0) and the ends of rows, as a CSR matrix has them.
    n_words : int
        How many words there are.
    first_row, first_word : int
        The number of the first document, and what the file calls the first word, for messages.
    """
    counts, words, ends = (np.asarray(array) for array in arrays)
    if counts.dtype.kind not in "biuf" or {words.dtype.kind, ends.dtype.kind} - set("iu"):
        types = f"counts of {counts.dtype}, words of {words.dtype} and ends of {ends.dtype}"
        fail(where, "", f"it should hold counts that are numbers, and whole numbers; got {types}.")
    check_n_words(where, "", n_words)
    rises = ends.ndim == 1 and ends.size > 0 and ends[0] == 0 and not np.any(ends[1:] < ends[:-1])
    if not rises or not counts.shape == words.shape == (int(ends[-1]),):
        problem = f"rows end at other places than {words.size} words and {counts.size} counts do."
        fail(where, "", problem)
    known = f"is out of range: there are {n_words}, numbered from {first_word}."
    wrong = (words < 0) | (words >= n_words)
    refuse_entry(where, wrong, ends, first_row, lambda i: f"word {words[i] + first_word} {known}")
    check_counts(where, counts, ends, first_row)
    # scipy knows neither half nor extended precision, nor the order of bytes of other machines.
    # Numbers of two bytes, whole ones too, are all held by the float of four.
    native = np.dtype("u1") if counts.dtype.kind == "b" else counts.dtype.newbyteorder("=")
    kind = {2: np.dtype("f4"), 16: np.dtype("f8")}.get(counts.itemsize, native)
    sound = (
        counts.astype(kind, copy=False),
        words.astype(np.int32, copy=False),
        ends.astype(np.int64, copy=False),
    )
    return canonical(sparse.csr_array(sound, (ends.size - 1, n_words)), where)
