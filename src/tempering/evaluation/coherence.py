"""Topic coherence: whether a topic's top words occur in the same documents, or near each other.

C_V, C_NPMI and UMass are gensim's: Röder, Both and Hinneburg, "Exploring the space of topic
coherence measures", WSDM 2015. Its counting is followed in every detail, as published figures
mostly come from it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tempering.evaluation.checks import as_counts, as_nonnegative, check_word_list
from tempering.models.arguments import check_number, check_whole, shown
from tempering.models.compilation import ENTRY, KERNEL, njit


def top_words(topics: ArrayLike, n_words: int = 10) -> NDArray[np.intp]:
    """The words of largest weight in each topic, largest first; ties in the vocabulary's order.

    Parameters
    ----------
    topics : array [K, V]
        Weights or probabilities of the words, such as ``components_``.
    n_words : int
        Top words of a topic, as columns of ``topics``.

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


def words_to_pair(topics: ArrayLike, n_words: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The columns of all top words, two of each topic at least; places in these, [K, n_words]."""
    check_whole(2, n_words=n_words)
    words = top_words(topics, n_words)
    union, places = np.unique(words, return_inverse=True)
    return union, places.reshape(words.shape)


def documents_with_pairs(
    topics: ArrayLike, X: Any, n_words: int
) -> tuple[int, list[NDArray[np.int64]]]:
    """How many documents there are, and of each topic how many have both of two top words."""
    union, places = words_to_pair(topics, n_words)
    documents = as_counts(X, "X", np.shape(topics)[1])
    if documents.shape[0] == 0:
        raise ValueError("X must have at least one document.")
    occurs = sparse.csc_array(documents[:, union])
    occurs.data = np.ones(occurs.nnz, dtype=np.int64)
    of_topics = (occurs[:, columns] for columns in places)
    return documents.shape[0], [(own.T @ own).toarray() for own in of_topics]


def npmi(topics: ArrayLike, X: Any, n_words: int = 10) -> NDArray[np.float64]:
    """Normalised pointwise mutual information of each topic's top words (Bouma, 2009), in [−1, 1].

    The mean over pairs of top words of log(p_ij / (p_i p_j)) / −log p_ij, where p_i is the part of
    the reference documents with word i, and p_ij the part with both words: 1 for words that occur
    only together, 0 for independent ones.

    A pair that never occurs together counts −1, the limit, and so does one with a word that never
    occurs: no topic gains by unknown words. Two words that are in every document count 0.

    Parameters
    ----------
    topics, n_words
        As in :func:`top_words`, with two words at least.
    X : sparse matrix or array [D, V], or Corpus
        The reference documents, over the same vocabulary; only whether a count is 0 matters.

    Examples
    --------
    >>> from tempering.evaluation import npmi
    >>> documents = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 3, 0], [0, 0, 0, 2]]
    >>> npmi([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]], documents, n_words=2)
    array([ 1., -1.])
    """
    n_documents, joints = documents_with_pairs(topics, X, n_words)
    pairs = np.triu_indices(n_words, 1)
    return np.array([_pair_npmi(joint, n_documents)[pairs].mean() for joint in joints])


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


#: What gensim adds to the probability of a pair, so that its logarithm exists.
EPSILON = 1e-12


def windows_with_pairs(
    topics: ArrayLike,
    texts: Iterable[Sequence[Any]],
    vocabulary: Sequence[str] | None,
    n_words: int,
    window: int,
) -> tuple[int, list[NDArray[np.int64]]]:
    """How many windows texts have, and of each topic how many hold both of two top words.

    As in gensim, a word that leaves a window at its left end counts as gone until it comes in again
    at the right end, also where it stands in the window a second time.
    """
    check_whole(window=window)
    union, places = words_to_pair(topics, n_words)
    n_columns = np.shape(topics)[1]
    if vocabulary is None:
        place_of: dict[Any, int] = {int(column): place for place, column in enumerate(union)}
    else:
        check_word_list(vocabulary)
        if len(vocabulary) != n_columns:
            raise ValueError(
                f"vocabulary has {len(vocabulary)} words, but topics has {n_columns} "
                "columns: give one word for each column."
            )
        place_of = {str(vocabulary[column]): place for place, column in enumerate(union)}
        if len(place_of) < union.size:
            raise ValueError("vocabulary has a top word twice: add up the columns of equal words.")
    together = np.zeros((union.size, union.size), np.int64)
    since = np.empty(union.size, np.int64)
    n_windows = 0
    asked = "texts must hold a list of words for each document"
    if not isinstance(texts, Iterable):
        raise ValueError(f"{asked}; got {shown(texts)}.")
    for number, text in enumerate(texts):
        if isinstance(text, str):
            raise ValueError(
                f"{asked}; document {number} is one string, {text!r:.60}: cut it into words first, "
                "as by text.lower().split()."
            )
        try:
            found = np.fromiter((place_of.get(word, -1) for word in text), np.int64)
        except TypeError as error:
            raise ValueError(f"{asked}; document {number} is {shown(text)}.") from error
        n_windows += slide(found, int(window), since, together)
    if n_windows == 0:
        raise ValueError("texts must hold at least one document.")
    if not together.any():
        named = "words of vocabulary"
        if vocabulary is None:
            named = "columns of topics: for words give vocabulary="
        raise ValueError(f"texts hold none of the topics' top words, looked for as {named}.")
    return n_windows, [together[np.ix_(own, own)] for own in places]


@njit(**ENTRY)
def slide(text, window, since, together):
    """Add the windows of a text to the counts; return how many there are."""
    n_windows = max(text.size - window + 1, 1)
    since[:] = -1
    for end in range(text.size):
        first = max(end - window + 1, 0)  # the number of the window that ends here
        if end >= window and text[end - window] >= 0:
            leave(text[end - window], first, since, together)
        if text[end] >= 0 and since[text[end]] < 0:
            since[text[end]] = first
    for word in range(since.size):
        leave(word, n_windows, since, together)
    return n_windows


@njit(**KERNEL)
def leave(gone, now, since, together):
    """Count a word that goes, and its pairs, for all windows since the later word came in."""
    if since[gone] < 0:
        return
    together[gone, gone] += now - since[gone]
    for other in range(since.size):
        if other != gone and since[other] >= 0:
            length = now - max(since[gone], since[other])
            together[gone, other] += length
            together[other, gone] += length
    since[gone] = -1


def _npmi(together: NDArray[np.int64], n_windows: int) -> NDArray[np.float64]:
    """NPMI of each pair of some words; −1 with a word that never occurs."""
    alone = np.diag(together) / n_windows
    pairs = together / n_windows + EPSILON
    known = np.outer(alone, alone)
    values = np.full(together.shape, -1.0)
    occurs = known > 0
    values[occurs] = np.log(pairs[occurs] / known[occurs]) / -np.log(pairs[occurs])
    return values


def c_npmi(
    topics: ArrayLike,
    texts: Iterable[Sequence[Any]],
    vocabulary: Sequence[str] | None = None,
    *,
    n_words: int = 10,
    window: int = 10,
) -> NDArray[np.float64]:
    """NPMI of each topic's top words in sliding windows of the texts: gensim's ``c_npmi``.

    Unlike :func:`npmi`, which takes whole documents, it asks whether words stand near each other.
    A pair with a word that never occurs counts −1; gensim gives an infinite value.

    Parameters
    ----------
    topics, n_words
        As in :func:`npmi`.
    texts : iterable of sequences
        The words of each document in their order: strings with a ``vocabulary``, else columns of
        ``topics``. Words that are not in the vocabulary take up room in the windows, no more.
    vocabulary : sequence of str, optional
        The words of the columns.
    window : int
        Words of a window.

    Examples
    --------
    >>> from tempering.evaluation import c_npmi
    >>> texts = ["sun sea sun sea".split(), "ice snow ice snow".split()]
    >>> words = ["sun", "sea", "ice", "snow"]
    >>> c_npmi([[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0]], texts, words, n_words=2).round(3)
    array([ 1.  , -0.95])
    """
    n_windows, joints = windows_with_pairs(topics, texts, vocabulary, n_words, window)
    off_diagonal = ~np.eye(n_words, dtype=bool)
    return np.array([_npmi(own, n_windows)[off_diagonal].mean() for own in joints])


def c_v(
    topics: ArrayLike,
    texts: Iterable[Sequence[Any]],
    vocabulary: Sequence[str] | None = None,
    *,
    n_words: int = 10,
    window: int = 110,
) -> NDArray[np.float64]:
    """C_V of each topic's top words: gensim's ``c_v``, up to 1.

    The mean cosine between each word's NPMI with all top words and the sum of these over the
    topic: whether its words keep the same company.

    Parameters
    ----------
    topics, texts, vocabulary, n_words, window
        As in :func:`c_npmi`.

    Examples
    --------
    >>> from tempering.evaluation import c_v
    >>> texts = ["sun sea sun sea".split(), "ice snow ice snow".split()]
    >>> words = ["sun", "sea", "ice", "snow"]
    >>> c_v([[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0]], texts, words, n_words=2).round(3)
    array([1.   , 0.026])
    """
    n_windows, joints = windows_with_pairs(topics, texts, vocabulary, n_words, window)
    # Words that never occur keep the same company, that of nothing: they count 0.
    cosines = (_cosines(_npmi(own, n_windows)) * (np.diag(own) > 0) for own in joints)
    return np.array([own.mean() for own in cosines])


def _cosines(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cosines of rows with their sum; 0 where the sum vanishes."""
    total = vectors.sum(axis=0)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(total)
    return vectors @ total / np.where(lengths > 0, lengths, np.inf)


def umass(topics: ArrayLike, X: Any, n_words: int = 10) -> NDArray[np.float64]:
    """Mean log probability that a document with one top word has a lower one: gensim's ``u_mass``.

    Mimno et al., "Optimizing semantic coherence in topic models", 2011, with gensim's smoothing: at
    most 0, and the less the worse. A word that never occurs counts as if it stood in one document,
    without the others.

    Parameters
    ----------
    topics, X, n_words
        As in :func:`npmi`.

    Examples
    --------
    >>> from tempering.evaluation import umass
    >>> documents = [[2, 1, 0, 0], [1, 1, 0, 0], [1, 0, 3, 0], [0, 0, 0, 2]]
    >>> umass([[0.6, 0.4, 0.0, 0.0], [0.6, 0.0, 0.0, 0.4]], documents, n_words=2).round(3)
    array([ -0.405, -27.343])
    """
    n_documents, joints = documents_with_pairs(topics, X, n_words)
    lower, higher = np.tril_indices(n_words, -1)
    values = []
    for joint in joints:
        together = joint / n_documents
        alone = np.maximum(np.diag(together), 1 / n_documents)
        values.append(np.log((together[lower, higher] + EPSILON) / alone[higher]).mean())
    return np.array(values)
