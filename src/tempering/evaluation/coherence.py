"""Topic coherence: whether a topic's top words occur in the same documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tempering.evaluation.checks import as_counts, as_nonnegative
from tempering.models.arguments import check_number, check_whole


def top_words(topics: ArrayLike, n_words: int = 10) -> NDArray[np.intp]:
    """The words of largest weight in each topic, largest first; ties in the vocabulary's order.

    Parameters
    ----------
    topics : array [K, V]
        Weights or probabilities of the words.
    n_words : int
        How many columns of ``topics`` to return of each.

    Examples
    --------
    >>> from tempering.evaluation import top_words
    >>> top_words([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]], n_words=2)
    array([[1, 2],
           [0, 2]])
    """
    topics = as_nonnegative(topics, "topics")
    most = topics.shape[1]
    expected = f"a whole number from 1 to {most}, the size of the vocabulary"
    check_number(n_words, "n_words", expected, least=1, most=most, whole=True)
    return np.array([_top_of(row, n_words) for row in topics])


def _top_of(row: NDArray[Any], n_words: int) -> NDArray[np.intp]:
    """Places of the largest entries; a sort of all of them would be slow."""
    least = np.partition(row, row.size - n_words)[row.size - n_words]
    above = np.flatnonzero(row > least)
    level = np.flatnonzero(row == least)[: n_words - above.size]
    return np.append(above[np.argsort(-row[above].astype(np.float64), kind="stable")], level)


def words_to_pair(topics: ArrayLike, n_words: int) -> NDArray[np.intp]:
    """:func:`top_words`, two of each topic at least."""
    check_whole(2, n_words=n_words)
    return top_words(topics, n_words)


def words_and_documents(
    topics: ArrayLike, X: Any, n_words: int
) -> tuple[NDArray[np.intp], sparse.csr_array]:
    """The top words of topics, and the reference documents; of either there are some."""
    words = words_to_pair(topics, n_words)
    documents = as_counts(X, "X", np.shape(topics)[1])
    if documents.shape[0] == 0:
        raise ValueError("X must have at least one document.")
    return words, documents


def npmi(topics: ArrayLike, X: Any, n_words: int = 10) -> NDArray[np.float64]:
    """Normalised pointwise mutual information of each topic's top words (Bouma, 2009), in [−1, 1].

    The mean over pairs of top words of log(p_ij / (p_i p_j)) / −log p_ij, where p_i is the part of
    the reference documents with word i, and p_ij the part with both words: 1 for words that occur
    only together, 0 for independent ones.

    A pair that never occurs together counts −1, the limit, and so does one with a word that never
    occurs: no topic gains by unknown words. Two words that are in every document count 0.

    Parameters
    ----------
    topics : array [K, V]
        Weights or probabilities of the words.
    X : sparse matrix or array [D, V]
        The reference documents, over the same vocabulary; only whether a count is 0 matters.
    n_words : int
        Top words of a topic, at least 2.

    Examples
    --------
    >>> from tempering.evaluation import npmi
    >>> documents = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 3, 0], [0, 0, 0, 2]]
    >>> npmi([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]], documents, n_words=2)
    array([ 1., -1.])
    """
    words, documents = words_and_documents(topics, X, n_words)
    union, places = np.unique(words, return_inverse=True)
    occurs = sparse.csc_array(documents[:, union])
    occurs.data = np.ones(occurs.nnz, dtype=np.int64)
    pairs = np.triu_indices(n_words, 1)
    return np.array(
        [
            _pair_npmi((own.T @ own).toarray(), documents.shape[0])[pairs].mean()
            for own in (occurs[:, columns] for columns in places.reshape(words.shape))
        ]
    )


def _pair_npmi(joint: NDArray[np.int64], n_documents: int) -> NDArray[np.float64]:
    """NPMI of each pair, from the documents with both words; on the diagonal, with each word."""
    together = joint / n_documents
    alone = np.diag(together)
    values = np.full(joint.shape, -1.0)
    values[joint == n_documents] = 0.0
    known = (joint > 0) & (joint < n_documents)
    log_together = np.log(together[known])
    independent = np.outer(alone, alone)[known]
    values[known] = (np.log(independent) - log_together) / log_together
    return values
