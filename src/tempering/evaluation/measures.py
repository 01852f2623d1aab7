"""Measures to compare topic models by, and one call for the table of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from tempering.evaluation.checks import as_labels, as_nonnegative, is_corpus
from tempering.evaluation.coherence import c_npmi, c_v, npmi, top_words, umass
from tempering.models.arguments import check_number


def topic_diversity(topics: ArrayLike, n_words: int = 25) -> float:
    """The part of all top words that are different ones (Dieng, Ruiz and Blei, 2020), up to 1.

    Parameters
    ----------
    topics, n_words
        As in :func:`top_words`.

    Examples
    --------
    >>> from tempering.evaluation import topic_diversity
    >>> topic_diversity([[0.6, 0.4, 0.0], [0.6, 0.0, 0.4]], n_words=2)
    0.75
    """
    words = top_words(topics, n_words)
    return np.unique(words).size / words.size


def inverted_rbo(topics: ArrayLike, n_words: int = 10, weight: float = 0.9) -> float:
    """1 − the mean rank-biased overlap of pairs of topics, from 0 (all alike) to 1.

    The overlap of two rankings (Webber, Moffat and Zobel, 2010), extrapolated from its first
    places. Unlike :func:`topic_diversity`, words that are shared count the more the higher they
    stand. A single topic has 1.

    Parameters
    ----------
    topics, n_words
        As in :func:`top_words`.
    weight : float
        What each place weighs beside the one before it, between 0 and 1.

    Examples
    --------
    >>> from tempering.evaluation import inverted_rbo
    >>> topics = [[0.6, 0.4, 0.0, 0.0], [0.0, 0.0, 0.4, 0.6]]
    >>> inverted_rbo(topics, n_words=2), inverted_rbo([topics[0], topics[0]], n_words=2)
    (1.0, 0.0)
    """
    check_number(weight, "weight", "between 0 and 1", above=0, most=np.nextafter(1.0, 0.0))
    words = top_words(topics, n_words).tolist()
    overlaps = [_overlap(a, b, weight) for a, b in combinations(words, 2)]
    return 1.0 - float(np.mean(overlaps)) if overlaps else 1.0


def _overlap(a: list[int], b: list[int], weight: float) -> float:
    """Rank-biased overlap of two rankings of one length."""
    shared = [len(set(a[:depth]) & set(b[:depth])) / depth for depth in range(1, len(a) + 1)]
    weights = weight ** np.arange(1, len(a) + 1)
    return float(shared[-1] * weights[-1] + (1 - weight) / weight * (weights @ shared))


def purity(theta: ArrayLike, labels: ArrayLike) -> float:
    """The part of documents whose label is the commonest one of their main topic, up to 1.

    It rises with the number of topics: compare models that have the same, or take
    :func:`label_nmi`.

    Parameters
    ----------
    theta : array [D, K]
        Proportions, or weights, of the topics in each document.
    labels : array [D]
        The class of each document.

    Examples
    --------
    >>> from tempering.evaluation import purity
    >>> purity([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.2, 0.8]], ["a", "a", "b", "b"])
    0.75
    """
    main, labels = _clusters(theta, labels)
    table: Any = contingency_matrix(labels, main)
    return float(table.max(axis=0).sum() / labels.size)


def label_nmi(theta: ArrayLike, labels: ArrayLike) -> float:
    """Normalised mutual information of main topics and labels, from 0 to 1.

    Parameters
    ----------
    theta, labels
        As in :func:`purity`.

    Examples
    --------
    >>> from tempering.evaluation import label_nmi
    >>> label_nmi([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], ["a", "a", "b"])
    1.0
    """
    main, labels = _clusters(theta, labels)
    return float(normalized_mutual_info_score(labels, main))


def _clusters(theta: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The main topic of each document, and the number of its label."""
    theta = as_nonnegative(theta, "theta")
    return theta.argmax(axis=1), as_labels(labels, "labels", "theta", theta.shape[0])[1]


@dataclass(frozen=True)
class TopicMeasures:
    """The answer of :func:`topic_measures`; print it to see the table.

    Attributes
    ----------
    of_topics : dict of arrays [K]
        Measures of each topic.
    of_model : dict of float
        The means of these, and measures of all topics together.
    """

    of_topics: dict[str, Any]
    of_model: dict[str, float]

    def __str__(self) -> str:
        columns = self.of_topics
        lines = ["topic" + "".join(f"{name:>14}" for name in columns)]
        rows = zip(*columns.values())
        lines += [
            f"{topic:>5}" + "".join(f"{value:14.4f}" for value in row)
            for topic, row in enumerate(rows)
        ]
        lines.append("all  " + "".join(f"{self.of_model[name]:14.4f}" for name in columns))
        others = {name: value for name, value in self.of_model.items() if name not in columns}
        return "\n".join(lines + [f"{name:<12}{value:7.4f}" for name, value in others.items()])


def topic_measures(
    topics: ArrayLike,
    X: Any,
    *,
    texts: Iterable[Sequence[Any]] | None = None,
    vocabulary: Sequence[str] | None = None,
    theta: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    n_words: int = 10,
) -> TopicMeasures:
    """All measures of topics that can be computed from what is given.

    Parameters
    ----------
    topics, X, n_words
        As in :func:`npmi`, also for UMass.
    texts, vocabulary
        As in :func:`c_npmi`; with texts, C_V and C_NPMI too. A corpus X has a vocabulary.
    theta, labels
        As in :func:`purity`; with both, purity and NMI too.

    Examples
    --------
    >>> from tempering.evaluation import topic_measures
    >>> X = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2]]
    >>> topics = [[0.6, 0.4, 0.0, 0.0], [0.0, 0.0, 0.4, 0.6]]
    >>> print(topic_measures(topics, X, theta=[[1, 0], [1, 0], [0, 1], [0, 1]],
    ...                      labels=["sea", "sea", "snow", "snow"], n_words=2))
    topic          npmi         umass
        0        1.0000        0.0000
        1        1.0000        0.0000
    all          1.0000        0.0000
    diversity    1.0000
    inverted_rbo 1.0000
    purity       1.0000
    label_nmi    1.0000
    """
    if (theta is None) != (labels is None):
        raise ValueError("theta and labels go together: give both, or neither.")
    columns = {"npmi": npmi(topics, X, n_words), "umass": umass(topics, X, n_words)}
    if texts is not None:
        if vocabulary is None and is_corpus(X):
            vocabulary = X.vocabulary
        if isinstance(texts, Iterator):
            texts = list(texts)  # it is gone through twice
        columns["c_v"] = c_v(topics, texts, vocabulary, n_words=n_words)
        columns["c_npmi"] = c_npmi(topics, texts, vocabulary, n_words=n_words)
    whole = {name: float(values.mean()) for name, values in columns.items()}
    whole["diversity"] = topic_diversity(topics, n_words)
    whole["inverted_rbo"] = inverted_rbo(topics, n_words)
    if theta is not None and labels is not None:
        whole["purity"] = purity(theta, labels)
        whole["label_nmi"] = label_nmi(theta, labels)
    return TopicMeasures(columns, whole)


class Matching(NamedTuple):
    """For each topic of a first fit, the number of its partner in a second, and their cosine."""

    indices: NDArray[np.intp]
    similarities: NDArray[np.float64]


def match_topics(a: ArrayLike, b: ArrayLike) -> Matching:
    """Pair the topics of two fits, one to one, so that the sum of their cosines is largest.

    Parameters
    ----------
    a, b : arrays [K, V]
        Weights or probabilities of the words, over the same vocabulary. ``b[indices]`` stands in
        the order of ``a``.

    Examples
    --------
    >>> match_topics([[1.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [3.0, 0.0]]).indices
    array([1, 0])
    """
    a, b = as_nonnegative(a, "a"), as_nonnegative(b, "b")
    if a.shape != b.shape:
        raise ValueError(
            f"a and b must have the same number of topics and the same vocabulary; got shapes "
            f"{a.shape} and {b.shape}."
        )
    cosines = _unit_rows(a) @ _unit_rows(b).T
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    return Matching(columns, np.minimum(cosines[rows, columns], 1.0))


def topic_stability(a: ArrayLike, b: ArrayLike) -> float:
    """Mean cosine of the matched topics of two fits, from 0 to 1: 1 if they are the same.

    Parameters
    ----------
    a, b
        As in :func:`match_topics`.

    Examples
    --------
    >>> from tempering.evaluation import topic_stability
    >>> topic_stability([[1.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [3.0, 0.0]])
    1.0
    """
    return float(match_topics(a, b).similarities.mean())


def _unit_rows(table: NDArray) -> NDArray[np.float64]:
    """Rows of length 1; by their maximum first, as squares of small weights would vanish."""
    rows = table.astype(np.float64)
    rows /= rows.max(axis=1, keepdims=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
