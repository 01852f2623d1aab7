"""How well topics predict held-out words, and by how much better than others: for two ways of
finding how many there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempering.evaluation import Split, gibbs_proportions, split_documents
from tempering.evaluation.checks import as_counts, check_whole_counts, normalised, word_rows
from tempering.evaluation.completion import fill_probabilities

#: The prior weight from which the best one is looked for, and the ends of that search.
FIRST_WEIGHT, LEAST_WEIGHT, MOST_WEIGHT = 4.0, 0.125, 128.0

#: The part of the documents that is held out, and their number at most.
HELD_OUT_PART, MOST_HELD_OUT = 0.2, 2000

#: Gibbs sweeps before θ is averaged, and over which it is.
SWEEPS = (30, 50)


class Trial(NamedTuple):
    """One fit of the search.

    Examples
    --------
    >>> from tempering.workbench import Trial
    >>> Trial(round=0, n_topics=10, cost=0.125, score=-6.5, behind=0.25, error=0.5).n_topics
    10
    """

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
    n_held_out = min(int(HELD_OUT_PART * order.size), MOST_HELD_OUT)
    split = split_documents(counts[np.sort(order[:n_held_out])], rng)
    if split.held_out.nnz == 0:
        raise ValueError(
            f"X has too few documents of two words or more to hold some out: {counts.shape[0]}."
        )
    return counts[order[n_held_out:]], split


class Judged:
    """Topics, and how they predict held-out documents."""

    def __init__(self, topics: NDArray[Any], split: Split, sweeps: tuple[int, int] = SWEEPS):
        self.topics, self.split, self.sweeps = topics, split, sweeps
        self._known: dict[float, NDArray[Any]] = {}

    def scores(self, weight: float) -> NDArray[Any]:
        """What :func:`document_scores` says; it is asked once."""
        if weight not in self._known:
            found = document_scores(self.topics, self.split, weight, self.sweeps)
            self._known[weight] = found
        return self._known[weight]

    def score(self, weight: float) -> float:
        """Mean log probability of a word."""
        logs, words = self.scores(weight)
        return float(logs.sum() / words.sum())

    def best_weight(self, weight: float) -> float:
        """The prior weight that predicts best, to a factor of 2, from this one on."""
        for factor in (2.0, 0.5):
            while LEAST_WEIGHT <= weight * factor <= MOST_WEIGHT:
                if self.score(weight * factor) <= self.score(weight):
                    break
                weight *= factor
        return weight


def best_weight(fits: list[Judged]) -> float:
    """The prior weight with which the best of some topics predicts best, to a factor of 2.

    Each is judged with the weight that suits it: with too small a one, few broad topics would seem
    to be the best.
    """
    weight, found = FIRST_WEIGHT, []
    for fit in fits:
        weight = fit.best_weight(weight)
        found.append((fit.score(weight), weight))
    return max(found)[1]


def document_scores(
    topics: NDArray[Any], split: Split, prior_weight: float, sweeps: tuple[int, int] = SWEEPS
) -> NDArray[Any]:
    """Log probability of each document's held-out words, and their number, [2, D]."""
    topics = normalised(topics)
    theta = gibbs_proportions(
        split.observed,
        topics,
        prior_weight / topics.shape[0],
        burn_in=sweeps[0],
        n_sweeps=sweeps[1],
    )
    held_out: Any = split.held_out
    columns, rows = word_rows(topics, held_out, np.float64)
    probabilities = np.empty(columns.size)
    fill_probabilities(held_out.indptr.astype(np.int64), columns, rows, theta, probabilities)
    documents = np.repeat(np.arange(held_out.shape[0]), np.diff(held_out.indptr))
    logs = held_out.data * np.log(probabilities)
    n = held_out.shape[0]
    return np.array([np.bincount(documents, w, n) for w in (logs, held_out.data)])


def compared(
    round_: int, numbers: list[int], costs: list[float], scores: list[NDArray[Any]]
) -> list[Trial]:
    """The fits of a round beside the best of them, with errors of paired differences."""
    means = [logs.sum() / words.sum() for logs, words in scores]
    best = int(np.argmax(means))
    trials = []
    for number, cost, (logs, words), mean in zip(numbers, costs, scores, means):
        behind = means[best] - mean
        # Of a ratio of sums over documents: the residuals of the words' number.
        residuals = scores[best][0] - logs - behind * words
        error = float(np.sqrt(np.sum(residuals**2)) / words.sum())
        trials.append(Trial(round_, number, cost, float(mean), float(behind), error))
    return trials
