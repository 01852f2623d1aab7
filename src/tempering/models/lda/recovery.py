"""The company that words keep, and what part of each word belongs to which anchor or corner.

A pair is two words of one document, no word with itself; each document counts once in all. Sums are
in the order of pieces of the corpus, whatever the number of threads.

**Shares.** The company of a word is a mixture of what the anchors keep (Arora et al., ICML 2013),
with the weights θ = p(topic | word): min ‖q − θA‖² on the simplex, by exponentiated gradients of
its products with the anchors, Aq, and of G = AA'. The chance in an anchor's own company is taken
off its product with itself, up to a half.

**Corners.** Where documents mix many topics no word is an anchor. The first eigenvectors of the
table of pairs, less what frequencies alone would give and over their roots, span as many dimensions
as there are topics. There, as white noise, the shares of words are a rotation away: that with the
largest third moments, as few words have much of a topic (a tensor's power iteration, Anandkumar et
al., JMLR 2014; varimax, which Rohe and Zeng, JRSS B 2023, show to find topics, takes the fourth).
The corners are those whose mixtures by these shares are nearest to the words. With n words in each
of D documents and V words in all, eigenvectors are seen where the squared length of a topic, times
how much documents differ in it, exceeds the chance in the table, 1 / (n √(D V)).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.models.base import Array
from tempering.models.compilation import ENTRY, njit
from tempering.models.lda.layout import Float32
from tempering.models.threads import in_blocks, one_blas_thread

Found = TypeVar("Found")

#: Words of a piece: a thread needs some 50 bytes for each.
PIECE = 2_000_000


class Piece(NamedTuple):
    """Some documents, each of two words at least."""

    counts: Any  # CSR matrix [D, V]
    weights: Array  # of a pair of words, [D]

    def pairs(self, words: NDArray[np.int64]) -> Any:
        """Counts of these words, times the weight of a pair of the document, [D, C]."""
        return sparse.diags(self.weights) @ self.counts[:, words]


class CorpusPieces:
    """A corpus [D, V] to add up; documents of fewer than two words have no pairs."""

    def __init__(self, X: Any, n_threads: int = 1):
        self.X, self.n_threads, self.n_words = X, n_threads, X.shape[1]
        self.lengths = np.asarray(X.sum(axis=1), np.float64).ravel()
        # Documents may have any weight, but none is cut.
        n_pieces = max(1, min(X.shape[0], int(np.ceil(self.lengths.sum() / PIECE))))
        self.bounds = np.linspace(0, X.shape[0], n_pieces + 1).astype(np.int64)

    def each(self, work: Callable[[Piece], Found]) -> Iterator[Found]:
        """What the work gives for each piece, in order."""
        n_pieces = self.bounds.size - 1
        for first in range(0, n_pieces, self.n_threads):
            found: list[Any] = [None] * min(self.n_threads, n_pieces - first)

            def fill(start: int, stop: int, first: int = first, found: list[Any] = found) -> None:
                for m in range(start, stop):
                    found[m] = work(self._piece(first + m))

            in_blocks(fill, len(found), len(found), fewest=1)
            yield from found

    def total(self, work: Callable[[Piece], tuple[Array, ...]]) -> tuple[Array, ...]:
        """The sums of the arrays that the work gives."""
        totals: tuple[Array, ...] = ()
        for found in self.each(work):
            totals = tuple(a + b for a, b in zip(totals, found)) if totals else found
        return totals

    def _piece(self, number: int) -> Piece:
        rows = slice(*self.bounds[number : number + 2])
        lengths = self.lengths[rows]
        counts = sparse.csr_matrix(self.X[rows][lengths >= 2.0], dtype=np.float64)
        lengths = lengths[lengths >= 2.0]
        return Piece(counts, 1.0 / (lengths * (lengths - 1.0)))


def occurrences(piece: Piece) -> tuple[Any, Any]:
    """Of each word: the documents that it is in, and how often it occurs."""
    counts = piece.counts
    n_documents = np.bincount(counts.indices[counts.data > 0], minlength=counts.shape[1])
    return n_documents, np.asarray(counts.sum(axis=0)).ravel()


def company_of(piece: Piece, words: NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Pairs of these words, [C, C]; those of a word with itself, and what of squares is chance: a
    document paired with itself.
    """
    common = piece.counts[:, words]
    weighted = sparse.diags(piece.weights) @ common
    company = (common.T @ weighted).toarray()
    squares = common.power(2)
    chance = squares.T @ (piece.weights**2 * np.asarray(squares.sum(axis=1)).ravel())
    return company, np.asarray(weighted.sum(axis=0)).ravel(), chance


#: Steps of the exponentiated gradient; more change nothing.
GRADIENT_STEPS = 15

#: Words whose weights are computed at a time, and anchors whose products are.
WORDS_AT_A_TIME, ANCHORS_AT_A_TIME = 4096, 32


def anchor_shares(
    documents: CorpusPieces,
    words: NDArray[np.int64],
    candidates: NDArray[np.int64],
    anchors: Array,
    chance: Array | float = 0.0,
) -> Array:
    """p(anchor | word), [V, K], of ``words``; 0 for others. Rows of ``anchors`` [K, C] sum to 1."""
    # All company is taken from the mean of the anchors: weights that sum to 1 do not mind.
    mean = anchors.mean(axis=0)
    anchors = anchors - mean
    gram = np.einsum("ic,jc->ij", anchors, anchors)
    gram[np.diag_indices_from(gram)] -= np.minimum(chance, 0.5 * gram.diagonal())
    scale = 1.0 / max(np.abs(gram).max(), np.finfo(np.float32).tiny)
    products = company_products(documents, candidates, scale * anchors, mean)
    gram, shares = (scale * gram).astype(np.float32), np.zeros_like(products)
    # Always of one size: products of matrices round differently in blocks of another.
    blocks = [words[n : n + WORDS_AT_A_TIME] for n in range(0, words.size, WORDS_AT_A_TIME)]

    def share_out(start: int, stop: int) -> None:
        for block in blocks[start:stop]:
            shares[block] = mixture_weights(products[block].astype(np.float32), gram)

    with one_blas_thread():  # with several threads it may round differently
        in_blocks(share_out, len(blocks), documents.n_threads, fewest=1)
    return shares


def company_products(
    documents: CorpusPieces, candidates: NDArray[np.int64], anchors: Array, mean: Array
) -> Array:
    """Products of these rows with the company of all words less the mean, [V, K]."""

    def of_piece(piece: Piece) -> tuple[Any, ...]:
        pairs = piece.pairs(candidates)
        seen = np.flatnonzero(occurrences(piece)[0])
        place = np.zeros(documents.n_words, np.int32)
        place[seen] = np.arange(seen.size)
        counts, n_documents = piece.counts, len(piece.weights)
        counts = sparse.csr_matrix(
            (counts.data, place[counts.indices], counts.indptr), (n_documents, seen.size)
        )
        totals = counts.T @ np.asarray(pairs.sum(axis=1)).ravel()
        products = np.empty((seen.size, len(anchors)))
        for start in range(0, len(anchors), ANCHORS_AT_A_TIME):
            block = slice(start, start + ANCHORS_AT_A_TIME)
            products[:, block] = counts.T @ (pairs @ anchors[block].T)
        return seen, totals, products, np.asarray(pairs.sum(axis=0)).ravel()

    products = np.zeros((documents.n_words, len(anchors)))
    totals, itself = np.zeros(documents.n_words), np.zeros(candidates.size)
    for seen, own_totals, own_products, own_itself in documents.each(of_piece):
        totals[seen] += own_totals
        products[seen] += own_products
        itself += own_itself
    # A word is no company of its own.
    totals[candidates] -= itself
    products[candidates] -= itself[:, None] * anchors.T
    products[totals > 0] /= totals[totals > 0, None]
    products -= np.einsum("kc,c->k", anchors, mean)
    products[totals <= 0] = 0.0
    return products


def mixture_weights(products: Float32, gram: Float32) -> Float32:
    """θ on the simplex with the least θGθ' − 2θb, a row for each row b of the products.

    The step sizes grow as long as a step goes down, each row by itself. Entries of G are 1 at most.
    """
    weights = np.full(products.shape, 1.0 / len(gram), np.float32)
    applied = weights @ gram
    values = np.einsum("ik,ik->i", weights, applied - 2.0 * products)
    rates = np.full(len(weights), 2.0, np.float32)
    for _ in range(GRADIENT_STEPS):
        slope = applied - products
        slope -= slope.min(axis=1, keepdims=True)
        slope *= -rates[:, None]
        moved = np.exp(slope, out=slope)
        moved *= weights
        moved /= moved.sum(axis=1, keepdims=True)
        moved_applied = moved @ gram
        moved_values = np.einsum("ik,ik->i", moved, moved_applied - 2.0 * products)
        lower = moved_values <= values
        weights[lower], applied[lower] = moved[lower], moved_applied[lower]
        values[lower] = moved_values[lower]
        rates *= np.where(lower, np.float32(1.5), np.float32(0.3))
    return weights


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
        basis, applied = orthogonal(applied), np.empty_like(basis)

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
    vectors = basis.astype(np.float64) @ turns[:, largest]
    # A vector and its negative are as good: libraries differ in which of them they find.
    vectors *= np.where(np.einsum("vk,vk,vk->k", vectors, vectors, vectors) < 0.0, -1.0, 1.0)
    return values[largest], vectors


def orthogonal(columns: Float32) -> Float32:
    """An orthogonal basis of these columns, by their inner products; QR takes five times longer."""
    wide = columns.astype(np.float64)
    squares, turns = np.linalg.eigh(wide.T @ wide)
    rounding = squares.max(initial=0.0) * len(squares) * np.finfo(float).eps
    squares = np.maximum(squares, max(rounding, np.finfo(np.float32).tiny))
    return columns @ (turns / np.sqrt(squares)).astype(np.float32)


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
