"""What part of each word belongs to which anchor: the second half of Arora et al. (ICML 2013).

The company that a word keeps is a mixture of what the anchors keep, and the weights of the mixture
are p(topic | word); times the frequency of the word, they are its part in the topics. The company
of an anchor is a worse guess at its topic: where documents mix many topics most of it is of others,
and no number of documents changes that.

Weights θ are those of least squares, min ‖q − θA‖² on the simplex, by exponentiated gradients. All
that it needs of a word are its products with the anchors, b = Aq: ‖q − θA‖² is θGθ' − 2θb and a
constant, with G = AA'. An anchor's product with itself is too large by the chance in its own
company, which no other word shares: that is taken off, up to a half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.models.base import Array
from tempering.models.lda.company import Piece, Pieces, occurrences
from tempering.models.lda.layout import Float32
from tempering.models.threads import in_blocks, one_blas_thread

#: Steps of the exponentiated gradient; more change nothing.
STEPS = 15

#: Words whose weights are computed at a time, and anchors whose products are.
WORDS_AT_A_TIME, ANCHORS_AT_A_TIME = 4096, 32


def anchor_shares(
    documents: Pieces,
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
    documents: Pieces, candidates: NDArray[np.int64], anchors: Array, mean: Array
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
    for _ in range(STEPS):
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
