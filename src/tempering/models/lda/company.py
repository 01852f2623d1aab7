"""The company that words keep: pairs of words of a document, added up over documents.

A pair is two words of one document, no word with itself; each document counts once in all. A large
corpus is cut into pieces, and threads count each piece by itself. What the pieces give is added in
their order, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.models.base import Array
from tempering.models.threads import in_blocks

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


class Pieces:
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
    """Pairs of these words, [C, C]; those of a word with itself, and what of squares is chance.

    A squared sum over documents is a sum over pairs of documents; a document paired with itself has
    no part in what is not chance.
    """
    common = piece.counts[:, words]
    weighted = sparse.diags(piece.weights) @ common
    company = (common.T @ weighted).toarray()
    squares = common.power(2)
    chance = squares.T @ (piece.weights**2 * np.asarray(squares.sum(axis=1)).ravel())
    return company, np.asarray(weighted.sum(axis=0)).ravel(), chance
