"""Topics beside one another: by how well they predict held-out words, as pairs of two models, and
as a tree.

Topics of two models are alike by the words that they share, Σ_v min(p_v, q_v): 1 if they are the
same. Pairs are made so that all share as much as can be. Held-out words are predicted with the same
prior weight Σ_k α_k by all that are compared, as with α of its own each model would be judged by
another measure; so numbers of topics may differ. Errors are those of differences over documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import dendrogram, fcluster, linkage
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist

from tempering.estimators.words import counts_over_words, words_of
from tempering.evaluation import Split, gibbs_proportions, split_documents
from tempering.evaluation.checks import as_counts, check_whole_counts, normalised
from tempering.evaluation.completion import entry_probabilities
from tempering.models.arguments import check_number, check_whole
from tempering.plots.canvas import as_drawn, new_figure
from tempering.workbench.editing import check_fitted_topics, topic_labels


class Trial(NamedTuple):
    """One fit of the search."""

    round: int
    n_topics: int
    cost: float  # its passes, in those of a plain fit
    score: float  # mean log probability of a held-out word
    behind: float  # by how much the best of the round is better
    error: float  # the standard error of that difference, over documents
    npmi: float | None = None  # coherence of the topics' ten first words; of fits alone
    diversity: float | None = None  # what part of these words are different ones


def held_out(X: Any, seed: int) -> tuple[Any, Split]:
    """Documents to fit, and the halves of others to be predicted."""
    counts: Any = as_counts(X, "X")
    check_whole_counts(counts, "X", "; weights such as tf-idf cannot be held out.")
    rng = np.random.default_rng(seed)
    order = rng.permutation(counts.shape[0])
    n_held_out = min(int(0.2 * order.size), 2000)
    split = split_documents(counts[np.sort(order[:n_held_out])], rng)
    if tell_no_error(split):
        raise ValueError(
            f"X has too few documents of two words or more to hold some out: {counts.shape[0]}. "
            "Take more, or choose the number of topics yourself."
        )
    return counts[order[n_held_out:]], split


def tell_no_error(split: Split) -> bool:
    """Whether fewer than two documents have words to be predicted: one differs from no other."""
    return bool(np.count_nonzero(np.diff(split.held_out.indptr)) < 2)


class Judged:
    """Topics, and how they predict held-out documents."""

    def __init__(self, topics: NDArray[Any], split: Split, sweeps: tuple[int, int] = (30, 50)):
        self.topics, self.split, self.sweeps = topics, split, sweeps
        #: What :func:`document_scores` says with a prior weight, computed once for each.
        self.scores = cache(partial(document_scores, topics, split, sweeps=sweeps))

    def score(self, weight: float) -> float:
        """Mean log probability of a word."""
        logs, words = self.scores(weight)
        return float(logs.sum() / words.sum())

    def best_weight(self, weight: float) -> float:
        """The prior weight that predicts best, to a factor of 2, from this one on."""
        for factor in (2.0, 0.5):
            while 0.125 <= weight * factor <= 128.0:
                if self.score(weight * factor) <= self.score(weight):
                    break
                weight *= factor
        return weight


def best_weight(fits: list[Judged]) -> float:
    """The prior weight with which the best of some topics predicts best, to a factor of 2."""
    weight, found = 4.0, []
    for fit in fits:
        weight = fit.best_weight(weight)
        found.append((fit.score(weight), weight))
    return max(found)[1]


def document_scores(
    topics: NDArray[Any], split: Split, prior_weight: float, sweeps: tuple[int, int] = (30, 50)
) -> NDArray[Any]:
    """Log probability of each document's held-out words, and their number, [2, D]."""
    topics = normalised(topics)
    alpha, (burn_in, n_sweeps) = prior_weight / topics.shape[0], sweeps
    theta = gibbs_proportions(split.observed, topics, alpha, burn_in=burn_in, n_sweeps=n_sweeps)
    held_out: Any = split.held_out
    n = held_out.shape[0]
    documents = np.repeat(np.arange(n), np.diff(held_out.indptr))
    logs = held_out.data * np.log(entry_probabilities(held_out, topics, theta))
    return np.array([np.bincount(documents, w, n) for w in (logs, held_out.data)])


def lead(one: NDArray[Any], other: NDArray[Any]) -> tuple[float, float]:
    """By how much one predicts a word better, by scores of documents; and the standard error."""
    (logs, words), (others, _) = one, other
    difference = logs.sum() / words.sum() - others.sum() / words.sum()
    # Of a ratio of sums over documents: the residuals of the words' number.
    residuals = logs - others - difference * words
    return float(difference), float(np.sqrt(np.sum(residuals**2)) / words.sum())


def compared(
    round_: int, numbers: list[int], costs: list[float], scores: list[NDArray[Any]]
) -> list[Trial]:
    """The fits of a round beside the best of them, with errors of paired differences."""
    means = [float(logs.sum() / words.sum()) for logs, words in scores]
    best = scores[int(np.argmax(means))]
    told = zip(numbers, costs, means, scores)
    return [Trial(round_, n, cost, mean, *lead(best, own)) for n, cost, mean, own in told]


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
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import compare_models
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
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
    if tell_no_error(split):
        raise ValueError(
            "X must have two documents of two words or more, to hold some of these out."
        )
    scores = [document_scores(model.components_, split, prior_weight) for model in (a, b)]
    score_a, score_b = (float(logs.sum() / words.sum()) for logs, words in scores)
    difference, error = lead(scores[1], scores[0])
    one, two = (normalised(model.components_.astype(np.float64)) for model in (a, b))
    pairs = _pairs(one, two, least_shared, n_words, words_of(a))
    only_in_a = sorted(set(range(len(one))) - {pair.a for pair in pairs})
    only_in_b = sorted(set(range(len(two))) - {pair.b for pair in pairs})
    told = (score_a, score_b), difference, error, topic_labels(a), topic_labels(b)
    return ModelComparison(pairs, only_in_a, only_in_b, *told)


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


@dataclass(frozen=True)
class TopicTree:
    """The answer of :func:`hierarchy`: topics joined two by two, the nearest first.

    Attributes
    ----------
    linkage : array [K − 1, 4]
        As scipy's: the two that are joined, their distance, and how many topics are below.
    labels : list of str
        The names of the topics.
    """

    linkage: NDArray[np.float64]
    labels: list[str]

    def cut(self, n_groups: int) -> list[list[int]]:
        """So many groups of topics, by the number of their first: what lies below a level."""
        most = len(self.labels)
        expected = f"a whole number from 1 to {most}, the topics"
        check_number(n_groups, "n_groups", expected, least=1, most=most, whole=True)
        # Joined in this order, so that of equal distances, too, no more than asked for are joined.
        order = self.linkage.copy()
        order[:, 2] = np.arange(1, most)
        groups = fcluster(order, most - n_groups, criterion="distance")
        members = [np.flatnonzero(groups == group).tolist() for group in np.unique(groups)]
        return sorted(members)

    def plot(self, axis: Any = None) -> Any:
        """Draw the tree, the distance from left to right; return the figure."""
        size = (7, 1 + 0.25 * len(self.labels))
        axis = new_figure(figsize=size).add_subplot() if axis is None else axis
        labels = [*map(as_drawn, self.labels)]
        dendrogram(self.linkage, labels=labels, orientation="right", ax=axis, color_threshold=0)
        axis.set_xlabel("Hellinger distance")
        return axis.figure


def hierarchy(model: Any) -> TopicTree:
    """Join the topics of a model by their distance, up to one tree.

    The distance of two topics is Hellinger's, from 0 to 1 (no word in common); of two groups, the
    mean over their topics.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted topics, two at least.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import hierarchy
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> tree = hierarchy(LatentDirichletAllocation(2, random_state=0).fit(X))
    >>> tree.cut(1), tree.cut(2)
    ([[0, 1]], [[0], [1]])
    """
    check_fitted_topics(model)
    topics = normalised(model.components_.astype(np.float64))
    if len(topics) < 2:
        raise ValueError("model must have two topics at least: one alone makes no tree.")
    distances = pdist(np.sqrt(topics)) / np.sqrt(2)
    return TopicTree(linkage(distances, method="average"), topic_labels(model))
