"""Two models side by side: the topics that they share, what is new in each, how well they predict.

Topics are alike by the words that they share, Σ_v min(p_v, q_v): 1 if they are the same. Pairs are
made so that all share as much as can be. Held-out words are predicted with the same prior weight
Σ_k α_k by both, as in :mod:`tempering.workbench.number_of_topics`, so that numbers of topics may
differ; the error is that of the difference over documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from tempering.estimators.words import counts_over_words, words_of
from tempering.evaluation import split_documents
from tempering.evaluation.checks import check_whole_counts, normalised
from tempering.models.arguments import check_number, check_whole
from tempering.workbench.editing import check_fitted_topics, topic_labels
from tempering.workbench.judging import document_scores


class TopicPair(NamedTuple):
    """Two similar topics, one from each of two models."""

    a: int
    b: int
    shared: float  # the part of their words that they have alike
    more_in_a: list[Any]
    more_in_b: list[Any]


@dataclass(frozen=True, repr=False)
class ModelComparison:
    """The answer of :func:`compare_models`; print it to read it.

    Attributes
    ----------
    pairs : list of TopicPair
        Topics that both have, the most similar first.
    only_in_a, only_in_b : list of int
        Topics that the other lacks.
    scores : (float, float)
        Mean log probability of a held-out word, in nats.
    difference, error : float
        By how much b predicts better, and its standard error over documents.
    labels_a, labels_b : list of str
        The names of the topics.
    """

    pairs: list[TopicPair]
    only_in_a: list[int]
    only_in_b: list[int]
    scores: tuple[float, float]
    difference: float
    error: float
    labels_a: list[str]
    labels_b: list[str]

    def __str__(self) -> str:
        a, b = self.scores
        lines = [
            f"held-out nats a word: a {a:.4f}, b {b:.4f}; b - a = {self.difference:.4f} +- "
            f"{self.error:.4f}",
            " a   b  shared  topic (more in a | more in b)",
        ]
        for pair in self.pairs:
            more = " | ".join(", ".join(map(str, own)) for own in pair[3:])
            name = self.labels_a[pair.a] + f" ({more})" * any(pair[3:])
            lines.append(f"{pair.a:2}  {pair.b:2}  {pair.shared:6.2f}  {name}")
        lines += [f"{k:2}   -          {self.labels_a[k]}: only in a" for k in self.only_in_a]
        lines += [f" -  {k:2}          {self.labels_b[k]}: only in b" for k in self.only_in_b]
        return "\n".join(lines)

    __repr__ = __str__


def compare_models(
    a: Any,
    b: Any,
    X: Any,
    *,
    least_shared: float = 0.5,
    n_words: int = 3,
    prior_weight: float = 2.0,
    random_state: int = 0,
) -> ModelComparison:
    """Which topics two models share, what is new in each, and which predicts better.

    Parameters
    ----------
    a, b : LatentDirichletAllocation
        Fitted topics over the same words; their numbers may differ.
    X : sparse matrix or array [D, V], or Corpus
        Whole counts of documents that neither model was fitted to; a model predicts its own better.
    least_shared : float
        The least part of their words that the topics of a pair share.
    n_words : int
        How many words to show for a pair: those that gain most probability from a to b.
    prior_weight : float
        Σ_k α_k with which held-out words are predicted.
    random_state : int
        Decides which words are held out.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import compare_models
    >>> X = np.repeat([[4, 3, 0, 0], [0, 0, 5, 4]], 50, axis=0)
    >>> one, two = (LatentDirichletAllocation(k, random_state=0).fit(X) for k in (1, 2))
    >>> compare_models(one, two, X).difference > 0
    True
    """
    _check_same_words(a, b)
    check_number(least_shared, "least_shared", "from 0 to 1", least=0, most=1)
    check_whole(0, n_words=n_words)
    check_number(prior_weight, "prior_weight", "positive", above=0, most=1e6)
    check_whole(0, random_state=random_state)
    counts: Any = counts_over_words(a, X)
    check_whole_counts(counts, "X", "; weights such as tf-idf cannot be held out.")
    split = split_documents(counts, random_state)
    if split.held_out.nnz == 0:
        raise ValueError("X must have documents of two words or more, to hold some of these out.")
    scores = [document_scores(model.components_, split, prior_weight) for model in (a, b)]
    (logs_a, words), (logs_b, _) = scores
    means = float(logs_a.sum() / words.sum()), float(logs_b.sum() / words.sum())
    difference = means[1] - means[0]
    # Of a ratio of sums over documents: the residuals of the words' number.
    error = float(np.sqrt(np.sum((logs_b - logs_a - difference * words) ** 2)) / words.sum())

    one, two = (normalised(model.components_.astype(np.float64)) for model in (a, b))
    pairs = _pairs(one, two, least_shared, n_words, words_of(a))
    only_in_a = sorted(set(range(len(one))) - {pair.a for pair in pairs})
    only_in_b = sorted(set(range(len(two))) - {pair.b for pair in pairs})
    labels = topic_labels(a), topic_labels(b)
    return ModelComparison(pairs, only_in_a, only_in_b, means, difference, error, *labels)


def _check_same_words(a: Any, b: Any) -> None:
    for model in (a, b):
        check_fitted_topics(model)
    if a.n_features_in_ != b.n_features_in_:
        raise ValueError(
            f"a has {a.n_features_in_} words and b {b.n_features_in_}: fit both to counts over the "
            "same vocabulary."
        )
    one, two = words_of(a), words_of(b)
    if one is not None and two is not None and list(one) != list(two):
        raise ValueError("a and b were fitted to different words: count both over the same ones.")


def _pairs(
    one: NDArray[Any], two: NDArray[Any], least_shared: float, n_words: int, words: Any
) -> list[TopicPair]:
    """Pairs of topics that share as much as can be, those most alike first."""
    shared = np.array([np.minimum(topic, two).sum(axis=1) for topic in one])
    pairs = []
    for i, j in zip(*linear_sum_assignment(shared, maximize=True)):
        if shared[i, j] >= least_shared:
            change = two[j] - one[i]
            order = np.argsort(change, kind="stable")
            told = [
                [v for v in own[:n_words] if sign * change[v] > 0]
                for own, sign in ((order, -1), (order[::-1], 1))
            ]
            names = [[int(v) if words is None else str(words[v]) for v in own] for own in told]
            pairs.append(TopicPair(int(i), int(j), float(shared[i, j]), *names))
    return sorted(pairs, key=lambda pair: -pair.shared)
