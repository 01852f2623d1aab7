"""What the LDA kernels are given and pass to each other: small tuples of arrays.

Topics are padded to a multiple of 16 (`padded_topics`), one cache line of float32: rows then start
on equal footing and the vector loops over topics need no remainder. A padding topic has rows of
zeros and the first topic's alpha, so it takes no mass and is never the largest.

Kernels trust their indices: documents are checked before a fit, by ``LatentDirichlet.check``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]
UInt32 = NDArray[np.uint32]  # to index with: Numba need not ask whether a place is negative
Int64 = NDArray[np.int64]


class WordCounts(NamedTuple):
    """Documents as rows of a compressed sparse matrix over the batch's words."""

    indptr: Int64
    columns: Int32
    counts: Float32


class Documents(NamedTuple):
    """Documents over the distinct words of their batch, with the word of each column."""

    indptr: Int64
    columns: Int32
    counts: Float32
    words: Int64  # the word that each column stands for

    @property
    def word_counts(self) -> WordCounts:
        """The documents as the kernels take them."""
        return WordCounts(self.indptr, self.columns, self.counts)

    @property
    def lengths(self) -> Float64:
        """Number of words N_d of each document."""
        running = np.append(0.0, np.cumsum(self.counts, dtype=np.float64))
        return np.diff(running[self.indptr])

    def first(self, n: int) -> Documents:
        """The first documents, over the words of all their entries, in memory of their own."""
        end = self.indptr[n]
        words = self.words[self.columns[:end]]
        columns = np.arange(end, dtype=np.int32)
        return Documents(self.indptr[: n + 1].copy(), columns, self.counts[:end].copy(), words)


class WordRows(NamedTuple):
    """The topics' weights for the batch's words, in logs and tempered."""

    logs: Float32  # [n_words, n_topics]
    maxima: Float32  # [n_words], the largest entry of each log row
    tempered: Float32  # [n_words, padded_topics], exp(s (logs - maxima))
    sums: Float32  # [n_words], of the tempered rows
    shared: bool


class SweepSettings(NamedTuple):
    """How to iterate."""

    alpha: Float32  # [padded_topics]
    inverse_temperatures: Float32  # [n_documents]
    equal_start: bool  # all topics alike at first; otherwise start from the given gamma
    tolerance: np.float32
    min_sweeps: int
    max_sweeps: int


class SolvedDocuments(NamedTuple):
    """What the sweeps leave behind for each document; enough to rebuild phi."""

    gamma: Float32  # [n_documents, n_topics]
    topics: UInt32  # [n_documents, n_topics], the active topics first
    weights: Float32  # [n_documents, padded_topics], of these topics
    n_active: Int64  # [n_documents]; n_topics means all of them, in order
    word_weights: Float32  # [nnz], s n_u / z_u, or IN_LOGS
    sweeps: Int64  # [n_documents]


class LocalResult(NamedTuple):
    """What an E-step, or the chains of a batch, find out."""

    gamma: Float32  # of the documents' proportions, [D, K]
    statistics: Float32 | None  # Σ_d s_d n_dv φ_dvk, [U, K]
    iterations: Int64 | None = None  # sweeps that each document took, [D]


class DocumentTopics(NamedTuple):
    """Numbers that a document holds for each topic: for all of them, or for the active ones."""

    index: UInt32  # which topics these are
    alpha: Float32
    mass: Float32
    new_mass: Float32
    log_theta: Float32
    weights: Float32
    share: Float32  # room for one word's phi


class OpenDocument(NamedTuple):
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

    every: DocumentTopics
    active: DocumentTopics
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


def new_document_topics(size: int) -> DocumentTopics:
    """Room for `size` topics."""
    return DocumentTopics(np.arange(size, dtype=np.uint32), *np.zeros((6, size), np.float32))


def new_room(longest: int, alpha: Float32, shared: bool) -> Room:
    """Room for documents of up to `longest` words, with rows unless these are shared."""
    n_topics = alpha.size
    n_words = padded_to(16, longest)
    every = new_document_topics(n_topics)
    every.alpha[:] = alpha
    return Room(
        every,
        new_document_topics(n_topics),
        np.empty((n_topics, n_words), np.float32),
        np.empty(n_words, np.float32),
        np.empty(n_words, np.float32),
        np.empty(n_words, np.float32),
        np.empty((0 if shared else longest, n_topics), np.float32),
        np.empty(longest, np.float32),
        np.arange(longest, dtype=np.int32),
    )


def new_solved_documents(n_documents: int, n_topics: int, n_entries: int) -> SolvedDocuments:
    """Room for the results of all documents."""
    return SolvedDocuments(
        np.empty((n_documents, n_topics), np.float32),
        np.empty((n_documents, n_topics), np.uint32),
        np.empty((n_documents, padded_to(16, n_topics)), np.float32),
        np.empty(n_documents, np.int64),
        np.empty(n_entries, np.float32),
        np.empty(n_documents, np.int64),
    )


def as_batch(
    indptr: ArrayLike, columns: ArrayLike, counts: ArrayLike, rows: ArrayLike
) -> tuple[WordCounts, Float32]:
    """The batch and its rows in the kernels' types."""
    batch = WordCounts(
        np.ascontiguousarray(indptr, dtype=np.int64),
        np.ascontiguousarray(columns, dtype=np.int32),
        np.ascontiguousarray(counts, dtype=np.float32),
    )
    return batch, np.ascontiguousarray(rows, dtype=np.float32)


def sweep_settings(
    n_documents: int,
    n_topics: int,
    alpha: ArrayLike,
    inverse_temperature: float | ArrayLike,
    tolerance: float,
    min_iterations: int,
    max_iterations: int,
) -> tuple[SweepSettings, bool]:
    """The settings, and whether all documents share one inverse temperature."""
    padded_alpha = np.empty(padded_to(16, n_topics), np.float32)
    padded_alpha[:n_topics] = alpha
    padded_alpha[n_topics:] = padded_alpha[0]
    inverse_temperatures, shared = spread_inverse_temperature(inverse_temperature, n_documents)
    settings = SweepSettings(
        padded_alpha,
        inverse_temperatures,
        bool(np.all(padded_alpha == padded_alpha[0])),
        np.float32(tolerance),
        int(min_iterations),
        int(max_iterations),
    )
    return settings, shared


def spread_inverse_temperature(
    inverse_temperature: float | ArrayLike, n_documents: int
) -> tuple[Float32, bool]:
    """One inverse temperature for each document, and whether they were given as one number."""
    given = np.asarray(inverse_temperature, dtype=np.float32)
    return np.broadcast_to(given, n_documents).copy(), given.ndim == 0


def check_finite(maxima: Float32) -> None:
    """Refuse rows with a NaN, which is then their maximum, or with an infinite maximum."""
    wrong = np.flatnonzero(~np.isfinite(maxima))
    if wrong.size:
        raise ValueError(
            f"log_rows must hold numbers, with a finite one in each row, but row {wrong[0]} of "
            f"{maxima.size} does not: check the topics."
        )
