"""What words of a single topic would keep as their company, where no word is of a single topic.

Where documents mix many topics, and words belong to many, no word is an anchor, and several of the
words that are farthest off belong to one topic. But the company of all words lies in a space of as
many dimensions as there are topics, and chance mostly outside of it. The table of pairs of words,
less what their frequencies alone would give and over the roots of these, has its first eigenvectors
there. In these coordinates, as white noise, the shares of a word in the topics are a rotation away;
and as most words have next to no part in a topic and few have much, the shares are what is as skew
as can be: the rotation is that for which the third moments are largest (a tensor's power iteration,
Anandkumar et al., JMLR 2014; varimax, which Rohe and Zeng, JRSS B 2023, show to find topics, takes
the fourth). The corners are then those whose mixtures by these shares are nearest to the words.

That needs many words a topic. With n words in each of D documents and V words in all, eigenvectors
are seen where the squared length of a topic, times how much documents differ in it, exceeds the
chance in the table, 1 / (n √(D V)).
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from tempering.models.base import Array
from tempering.models.fastmath import ENTRY
from tempering.models.lda.layout import Float32
from tempering.models.lda.recovery import CorpusPieces, Piece
from tempering.models.threads import in_blocks, one_blas_thread

#: Words whose pairs are counted, of very many topics and of others: a table of 400 MB at most.
MOST_PAIRED_WORDS, FEWER_PAIRED_WORDS = 10_000, 4_000

#: Products with the table until its eigenvectors are found, and columns for each of them.
PRODUCTS, COLUMNS = 10, 1.25

#: Smaller eigenvalues are what rounding leaves of one of 1, that of the frequencies, taken out.
SMALLEST = 1e-6

#: Steps of the rotation at most, and the change that ends it.
MOST_STEPS, SETTLED = 200, 1e-3

#: Rows of a product that are computed at a time.
ROWS_AT_A_TIME = 1024


def corners_of_company(documents: CorpusPieces, words: NDArray[np.int64], n: int) -> Array:
    """The company of n topics, each a row over the words."""
    table = table_of_pairs(documents, words)
    with one_blas_thread():  # with several threads it may round differently
        return corners(table, n, documents.n_threads)


def table_of_pairs(documents: CorpusPieces, words: NDArray[np.int64]) -> Float32:
    """How often words occur with each other, [C, C]; no word with itself."""

    def turned(piece: Piece) -> tuple[Any, Any, Any]:
        counts = sparse.csr_matrix(piece.counts[:, words], dtype=np.float32)
        counts.sort_indices()
        return counts, counts.tocsc(), piece.weights.astype(np.float32)

    table = np.zeros((words.size, words.size), np.float32)
    for counts, by_word, weights in documents.each(turned):
        of_words = by_word.indptr, by_word.indices, by_word.data
        arguments = *of_words, counts.indptr, counts.indices, counts.data, weights, table
        in_blocks(add_pairs, words.size, documents.n_threads, arguments=arguments)
    np.fill_diagonal(table, np.maximum(table.diagonal(), 0.0))
    return table


@njit(**ENTRY)
def add_pairs(start, stop, places, holders, own, indptr, columns, counts, weights, table):
    """Add the documents that hold a word to its row, for the words from start to stop."""
    for v in range(start, stop):
        row = table[v]
        for p in range(places[v], places[v + 1]):
            d = holders[p]
            count = own[p] * weights[d]
            for q in range(indptr[d], indptr[d + 1]):
                row[columns[q]] += count * counts[q]
            row[v] -= count


def corners(table: Float32, n: int, n_threads: int = 1) -> Array:
    """Up to n corners of the rows of a table of pairs, once these sum to 1; it is written over."""
    totals = table.sum(axis=1, dtype=np.float64)
    if not totals.any():
        return np.empty((0, totals.size))  # no word has company
    frequencies = totals / totals.sum()
    # Rare words are less known than their frequency says: with the mean of all added to it, they do
    # not make eigenvectors by themselves.
    scales = 1.0 / np.sqrt(frequencies + frequencies.mean())
    own = scales * frequencies
    for row, scale, mean in zip(table, scales / totals.sum(), own):
        row *= (scale * scales).astype(np.float32)
        row -= (mean * own).astype(np.float32)
    values, vectors = first_eigenvectors(table, n - 1, n_threads)

    weights, known = own**2 / (own @ own), own > 0.0
    points = np.divide(vectors, own[:, None], where=known[:, None], out=np.zeros_like(vectors))
    mean = weights @ points
    spread = np.linalg.cholesky((points * weights[:, None]).T @ points - np.outer(mean, mean))
    white = np.linalg.solve(spread, (points - mean).T).T
    shares = skewest_shares(np.column_stack([np.ones(len(white)), white]), weights)
    weighted = shares * weights[:, None]
    found = np.linalg.lstsq(weighted.T @ shares, weighted.T @ points)[0]
    return frequencies + (found * values) @ (vectors / scales[:, None]).T


def first_eigenvectors(table: Float32, n: int, n_threads: int = 1) -> tuple[Array, Array]:
    """The n largest eigenvalues of a symmetric table, if above 0, and their vectors, nearly."""
    size = len(table)
    n_columns = min(size, int(np.ceil(COLUMNS * n)))
    basis = np.random.default_rng(0).standard_normal((size, n_columns), np.float32)
    applied = basis
    n_blocks = -(-size // ROWS_AT_A_TIME)
    for _ in range(PRODUCTS):
        basis, applied = np.linalg.qr(applied)[0], np.empty_like(basis)

        def multiply(start: int, stop: int, basis: Any = basis, applied: Any = applied) -> None:
            # Always of one size: products of matrices round differently in blocks of another.
            for m in range(start, stop):
                block = slice(m * ROWS_AT_A_TIME, (m + 1) * ROWS_AT_A_TIME)
                np.matmul(table[block], basis, out=applied[block])

        in_blocks(multiply, n_blocks, n_threads, fewest=1)
    products = basis.T.astype(np.float64) @ applied
    values, turns = np.linalg.eigh((products + products.T) / 2.0)
    largest = np.argsort(-values, kind="stable")[:n]
    largest = largest[values[largest] > SMALLEST]
    return values[largest], basis.astype(np.float64) @ turns[:, largest]


def skewest_shares(points: Array, weights: Array) -> Array:
    """p(topic | word), [C, K], from white points: turned so that third moments are largest."""
    size = points.shape[1]
    weighted, single = (weights[:, None] * points).T.astype(np.float32), points.astype(np.float32)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((size, size)))[0]
    for _ in range(MOST_STEPS):
        moments = weighted @ (single @ turn.astype(np.float32)) ** 2
        left, _, right = np.linalg.svd(moments.astype(np.float64))
        before, turn = turn, left @ right
        if np.abs(turn - before).max() < SETTLED:
            break
    turned = points @ turn
    # At least half of the words have no part in a topic.
    shares = np.maximum(turned - np.median(turned, axis=0), 0.0)
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
