"""Topics to start from: the company of words that keep different company.

For each of the words that are in the most documents, count the words that it occurs with. Words of
one topic keep the same company, and those of several topics a mixture of theirs; so what the words
of one topic keep are the corners of all that there is. K corners are found by going from those one
has to the word that is farthest off, again and again (the anchor words of Arora et al., ICML 2013).
The company of each is a first guess at a topic.

No random number takes part. Fits with different seeds start alike, and end in topics that are much
more alike than those of random starts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.models.base import Array

#: Words that may become anchors: the company of a rare word is mostly chance. Twice the number of
#: topics, if that is more.
CANDIDATES = 1000

#: Anchors at most: to find them takes time as the cube of their number.
MOST_ANCHORS = 2000

#: The part of a starting topic that is spread as all words are, so that it can gather any of them.
SPREAD = 0.1


def anchored_topics(X: Any, n_topics: int) -> Array:
    """Topics to start from, [V, K]; fewer where documents do not tell so many words apart.

    Parameters
    ----------
    X : CSR matrix [D, V]
        Counts of words in documents.
    n_topics : int
        K.

    Examples
    --------
    Three words that occur together, and three others:

    >>> from scipy import sparse
    >>> X = sparse.csr_matrix([[1, 2, 1, 0, 0, 0], [3, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    >>> anchored_topics(X, 2).round(2)
    array([[0.39, 0.03],
           [0.36, 0.02],
           [0.22, 0.02],
           [0.01, 0.31],
           [0.01, 0.31],
           [0.01, 0.31]])
    """
    n_topics = min(n_topics, MOST_ANCHORS)
    lengths = np.asarray(X.sum(axis=1), np.float64).ravel()
    counts = sparse.csr_matrix(X[lengths >= 2.0], dtype=np.float64)
    lengths = lengths[lengths >= 2.0]
    n_documents = np.bincount(counts.indices[counts.data > 0], minlength=counts.shape[1])
    n_candidates = min(max(CANDIDATES, 2 * n_topics), np.count_nonzero(n_documents))
    if n_candidates == 0:
        return np.zeros((X.shape[1], 0))
    candidates = np.sort(np.argsort(-n_documents, kind="stable")[:n_candidates])

    # Pairs of words of a document, no word with itself; each document counts once in all.
    common = counts[:, candidates]
    weighted = sparse.diags(1.0 / (lengths * (lengths - 1.0))) @ common
    company = (common.T @ weighted).toarray()
    with_itself = np.asarray(weighted.sum(axis=0)).ravel()
    np.fill_diagonal(company, np.maximum(company.diagonal() - with_itself, 0.0))
    totals = company.sum(axis=1)
    known = np.flatnonzero(totals > 0)
    chosen = known[farthest_rows(company[known] / totals[known, None], n_topics)]

    topics = (counts.T @ weighted[:, chosen]).toarray()
    words = np.asarray(counts.sum(axis=0)).ravel()
    totals = topics.sum(axis=0)
    topics *= 1.0 - SPREAD  # in place, as they can be large
    topics /= totals
    topics += SPREAD * (words / words.sum())[:, None]
    return topics


def farthest_rows(points: Array, n: int) -> NDArray[np.int64]:
    """Numbers of up to n rows, each as far as can be from the plane through those before it.

    >>> farthest_rows(np.array([[0.0, 0.0], [0.1, 0.2], [3.0, 0.0], [0.0, 1.0]]), 3)
    array([2, 3, 0])
    """
    if not len(points):
        return np.zeros(0, np.int64)
    chosen = [int(np.argmax(_products(points, points)))]
    offsets = points - points[chosen[0]]
    left = _products(offsets, offsets)  # squared distances from the plane
    smallest = 1e-9 * left.max()
    directions = np.empty((min(n, len(points)) - 1, points.shape[1]))
    for m, direction in enumerate(directions):
        row = int(np.argmax(left))
        if left[row] <= smallest:
            break
        direction[:] = offsets[row]
        for _ in range(2):  # the second time for what rounding left
            direction -= np.einsum("ij,i->j", directions[:m], _products(directions[:m], direction))
        direction /= np.sqrt(_products(direction, direction))
        left -= _products(offsets, direction) ** 2
        chosen.append(row)
    return np.array(chosen)


def _products(x: Array, y: Array) -> Array:
    """Inner products of rows.

    Not by a library for matrices: with several threads it may round differently, and where two
    words are as far as each other, that would decide.
    """
    return np.einsum("...j,...j->...", x, y)
