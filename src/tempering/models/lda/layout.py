"""What the LDA kernels pass to each other: small tuples of arrays.

Topics are padded to a multiple of 16 (`padded_topics`), one cache line of float32: rows then start
on equal footing and the vector loops over topics need no remainder. A padding topic has rows of
zeros and the first topic's alpha, so it takes no mass and is never the largest.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]
UInt32 = NDArray[np.uint32]  # to index with: Numba need not ask whether a place is negative
Int64 = NDArray[np.int64]


class Batch(NamedTuple):
    """Documents as rows of a compressed sparse matrix over the batch's words."""

    indptr: Int64
    columns: Int32
    counts: Float32


class WordRows(NamedTuple):
    """The topics' weights for the batch's words, in logs and tempered.

    With one inverse temperature for all documents (`shared`) the tempered rows are here;
    otherwise each document makes its own.
    """

    logs: Float32  # [n_words, n_topics]
    maxima: Float32  # [n_words], the largest entry of each log row
    tempered: Float32  # [n_words, padded_topics], exp(s (logs - maxima))
    sums: Float32  # [n_words], of the tempered rows
    shared: bool


class Settings(NamedTuple):
    """How to iterate."""

    alpha: Float32  # [padded_topics]
    inverse_temperatures: Float32  # [n_documents]
    collapsed: bool
    equal_start: bool  # all topics alike at first; otherwise start from the given gamma
    tolerance: np.float32
    min_sweeps: int
    max_sweeps: int


class Fit(NamedTuple):
    """What the sweeps leave behind for each document; enough to rebuild phi."""

    gamma: Float32  # [n_documents, n_topics]
    topics: UInt32  # [n_documents, n_topics], the active topics first
    weights: Float32  # [n_documents, padded_topics], of these topics
    n_active: Int64  # [n_documents]; n_topics means all of them, in order
    word_weights: Float32  # [nnz], s n_u / z_u, or IN_LOGS
    sweeps: Int64  # [n_documents]
    log_normalizers: Float64  # [n_documents]


class Topics(NamedTuple):
    """Numbers that a document holds for each topic: for all of them, or for the active ones."""

    index: UInt32  # which topics these are
    alpha: Float32
    mass: Float32
    new_mass: Float32
    log_theta: Float32
    weights: Float32
    share: Float32  # room for one word's phi


class Document(NamedTuple):
    """One document in work: its words, their rows, and room for a sweep's results."""

    columns: Int32  # of its words in the log rows
    index: Int32  # of its words in the tempered rows
    rows: Float32  # tempered rows
    row_sums: Float32
    counts: Float32  # padded with zeros to a multiple of 16
    total: np.float32  # of the counts
    inverse_temperature: np.float32
    normalizers: Float32
    shares: Float32
    block: Float32  # [padded_topics, padded words], rows of the active topics
    n_words: int  # padded


class Room(NamedTuple):
    """Memory for one document after the other, sized for the longest."""

    every: Topics
    active: Topics
    block: Float32
    counts: Float32
    normalizers: Float32
    shares: Float32
    rows: Float32
    row_sums: Float32
    row_index: Int32


def padded_to(multiple: int, n: int) -> int:
    """The smallest multiple that is not below n."""
    return -(-n // multiple) * multiple


def new_topics(size: int) -> Topics:
    """Room for `size` topics."""
    return Topics(np.arange(size, dtype=np.uint32), *np.zeros((6, size), np.float32))


def new_room(longest: int, alpha: Float32, shared: bool) -> Room:
    """Room for documents of up to `longest` words, with rows unless these are shared."""
    n_topics = alpha.size
    n_words = padded_to(16, longest)
    every = new_topics(n_topics)
    every.alpha[:] = alpha
    return Room(
        every,
        new_topics(n_topics),
        np.empty((n_topics, n_words), np.float32),
        np.empty(n_words, np.float32),
        np.empty(n_words, np.float32),
        np.empty(n_words, np.float32),
        np.empty((0 if shared else longest, n_topics), np.float32),
        np.empty(longest, np.float32),
        np.arange(longest, dtype=np.int32),
    )


def new_fit(n_documents: int, n_topics: int, n_entries: int) -> Fit:
    """Room for the results of all documents."""
    return Fit(
        np.empty((n_documents, n_topics), np.float32),
        np.empty((n_documents, n_topics), np.uint32),
        np.empty((n_documents, padded_to(16, n_topics)), np.float32),
        np.empty(n_documents, np.int64),
        np.empty(n_entries, np.float32),
        np.empty(n_documents, np.int64),
        np.empty(n_documents, np.float64),
    )
