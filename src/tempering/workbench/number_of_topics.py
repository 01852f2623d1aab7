"""How many topics: by held-out words, in a search with the passes of about three plain fits.

The candidates are scored in rounds. Each round fits a few of them, spread evenly over what is left
of the list, on more documents and passes than the round before, and keeps what lies between the
neighbours of its best. Last, the topics of the best fit are merged as long as nothing is lost.
Held-out words are predicted with the same prior weight Σ_k α_k for every
number of topics, as with α of its own each model would be judged by another measure. Each round
chooses the weight: with one that is too small for documents of many topics each, few broad topics
seem to predict as well as the right ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from sklearn.base import clone

from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.topic_health import TopicWarning
from tempering.evaluation import Split, gibbs_proportions, npmi, split_documents, topic_diversity
from tempering.evaluation.checks import as_counts, check_whole_counts, normalised, word_rows
from tempering.evaluation.completion import fill_probabilities
from tempering.models.arguments import check_number
from tempering.plots.canvas import new_figure
from tempering.workbench.editing import plain_topics

#: Of each round: how many candidates it fits, and what such a fit costs beside a plain one.
ROUNDS = ((6, 0.125), (4, 0.25), (4, 0.3))

#: Passes of a fit, at least; with fewer, topics have not cooled.
LEAST_PASSES = 3

#: Neighbours among the candidates of a range are apart by this factor.
SPACING = 1.1

#: Prior weights that a round tries, each with all of its fits; and the ends of its search.
WEIGHTS, LEAST_WEIGHT, MOST_WEIGHT = (2.0, 8.0), 0.125, 128.0

#: The part of the documents that is held out, and their number at most.
HELD_OUT_PART, MOST_HELD_OUT = 0.2, 2000


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


@dataclass(frozen=True)
class TopicNumber:
    """The answer of :func:`choose_n_topics`; print it to read it.

    Attributes
    ----------
    n_topics : int
        The smallest number that is within one standard error of the best of the last round.
    trials : list of Trial
        All fits, in their order.
    prior_weight : float
        Σ_k α_k that predicted held-out words in the last round.

    Examples
    --------
    >>> from tempering.workbench import TopicNumber, Trial
    >>> answer = TopicNumber(10, [Trial(0, 10, 0.3, -6.5, 0.0, 0.0, 0.25, 0.9)])
    >>> print(answer)
    10 topics (1 fit, as many passes as 0.3 plain ones)
    round  topics    score   behind   error  NPMI  diversity
        1      10  -6.5000   0.0000  0.0000  0.25       0.90
    """

    n_topics: int
    trials: list[Trial]
    prior_weight: float = 2.0

    @property
    def cost(self) -> float:
        """The passes of the search, in those of a plain fit to all documents."""
        return sum(trial.cost for trial in self.trials)

    def __str__(self) -> str:
        n = sum(trial.cost > 0 for trial in self.trials)
        lines = [
            f"{self.n_topics} topics ({n} fit{'s' * (n > 1)}, as many passes as {self.cost:.1f} "
            "plain ones)",
            "round  topics    score   behind   error  NPMI  diversity",
        ]
        for trial in self.trials:
            beside = "" if trial.npmi is None else f"{trial.npmi:6.2f}{trial.diversity:11.2f}"
            lines.append(
                f"{trial.round + 1:5}{trial.n_topics:8}{trial.score:9.4f}{trial.behind:9.4f}"
                f"{trial.error:8.4f}{beside}"
            )
        if self.at_the_end:
            most = max(trial.n_topics for trial in self.trials)
            lines.append(
                f"{most}, the most that was tried, predicts best: more may predict better."
            )
        return "\n".join(lines)

    @property
    def at_the_end(self) -> bool:
        """Whether the most topics that were tried predict best: the range may end too early."""
        fits = [trial for trial in self.trials if trial.cost > 0]
        last = [trial for trial in fits if trial.round == fits[-1].round]
        most = max((trial.n_topics for trial in fits), default=0)
        return len(last) > 1 and min(last, key=lambda trial: trial.behind).n_topics == most

    def plot(self, axis: Any = None) -> Any:
        """Draw the scores by the number of topics, a line a round; return the figure."""
        axis = new_figure(figsize=(6, 3.5)).add_subplot() if axis is None else axis
        for number in sorted({trial.round for trial in self.trials}):
            trials = sorted(trial for trial in self.trials if trial.round == number)
            axis.errorbar(
                [trial.n_topics for trial in trials],
                [trial.score for trial in trials],
                [trial.error for trial in trials],
                marker="o",
                capsize=2,
                label="merged"
                if number == len(ROUNDS)
                else f"round {number + 1}: {trials[0].cost:.0%} of a fit each",
            )
        axis.axvline(self.n_topics, color="grey", linestyle=":")
        axis.set(xscale="log", xlabel="topics", ylabel="nats a held-out word")
        axis.legend()
        return axis.figure


def choose_n_topics(
    X: Any,
    candidates: tuple[int, int] | Iterable[int] = (5, 100),
    *,
    estimator: LatentDirichletAllocation | None = None,
    prior_weight: float | None = None,
    random_state: int = 0,
) -> TopicNumber:
    """The number of topics that predicts held-out words best, with the passes of about three fits.

    Parameters
    ----------
    X : sparse matrix or array [D, V], or Corpus
        Whole counts. A fifth of the documents is held out, 2,000 at most.
    candidates : (least, most) or iterable of int
        The ends of a range, searched in steps of a tenth; or, if there are not two, the numbers to
        choose from.
    estimator : LatentDirichletAllocation, optional
        What to fit, apart from ``n_components`` and ``max_iter``. Costs are counted in fits with
        its own ``max_iter``.
    prior_weight : float, optional
        Σ_k α_k for predicting held-out words, the same for all numbers. By default each round
        chooses the one that predicts best.
    random_state : int
        Decides which documents are held out, and seeds the fits.

    Examples
    --------
    >>> from tempering.datasets import make_lda
    >>> from tempering.workbench import choose_n_topics
    >>> X = make_lda(300, n_topics=4, n_words=100, document_length=50, seed=1).counts
    >>> choose_n_topics(X, [2, 4, 8]).n_topics
    4
    """
    plain = plain_topics(estimator)
    if prior_weight is not None:
        check_number(prior_weight, "prior_weight", "positive", above=0, most=1e6)
    check_number(random_state, "random_state", "a whole number, 0 or more", least=0, whole=True)
    numbers = _numbers(candidates)
    documents, split = held_out(X, random_state)
    n_top = min(10, documents.shape[1])
    trials: list[Trial] = []
    weight = 0.0 if prior_weight is None else float(prior_weight)
    low, middle, high = 0, 0, len(numbers) - 1
    topics, scores = np.empty((0, 0)), np.empty((2, 0))
    for round_, (n_points, cost) in enumerate(ROUNDS):
        # The ends were fitted by the round before, and are no better than what lies between them.
        inner = 1 if round_ > 0 and high - low >= n_points else 0
        points = np.linspace(low + inner, high - inner, n_points).round()
        if round_ > 0:  # The best so far is fitted again, as else only its neighbours can win.
            points[np.argmin(np.abs(points - middle))] = middle
        points = np.unique(points.astype(int))
        fits = [_fitted(plain, documents, numbers[p], cost, random_state) for p in points]
        if prior_weight is None:
            weight = best_weight([topics for topics, _ in fits], split)
        all_scores = [document_scores(fit[0], split, weight) for fit in fits]
        found = compared(round_, [numbers[p] for p in points], [c for _, c in fits], all_scores)
        trials += [
            trial._replace(
                npmi=float(npmi(table, documents, n_top).mean()),
                diversity=topic_diversity(table, n_top),
            )
            for trial, (table, _) in zip(found, fits)
        ]
        place = _smallest(found)
        # To be merged: the best, since the fewest topics within an error are chosen after that.
        best = min(range(len(found)), key=lambda i: found[i].behind)
        topics, scores = fits[best][0], all_scores[best]
        middle = points[place]
        low = points[place - 1] if place > 0 else low
        high = points[place + 1] if place + 1 < points.size else high
    trials += _merged(topics, scores, numbers, split, weight)
    last = trials[-1].round
    chosen = sorted(trial for trial in trials if trial.round == last)
    return TopicNumber(chosen[_smallest(chosen)].n_topics, trials, weight)


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


def best_weight(fits: list[NDArray[Any]], split: Split) -> float:
    """The prior weight with which the best of some topics predicts best, to a factor of 2."""

    def score(topics: NDArray[Any], weight: float) -> float:
        logs, words = document_scores(topics, split, weight)
        return float(logs.sum() / words.sum())

    tried = [(score(topics, w), w, i) for i, topics in enumerate(fits) for w in WEIGHTS]
    best, weight, place = max(tried)
    for factor in (2.0, 0.5):
        while LEAST_WEIGHT <= weight * factor <= MOST_WEIGHT:
            new = score(fits[place], weight * factor)
            if new <= best:
                break
            best, weight = new, weight * factor
    return weight


def _smallest(trials: list[Trial]) -> int:
    """The place of the fewest topics within one standard error of the best."""
    return next(i for i, trial in enumerate(trials) if trial.behind <= trial.error)


def _merged(
    topics: NDArray[Any],
    scores: NDArray[Any],
    numbers: list[int],
    split: Split,
    prior_weight: float,
) -> list[Trial]:
    """The topics of the last fit, and with ever fewer of them, while that costs nothing.

    A fit with some topics to spare finds more of the real ones, so that the best fit has twins and
    topics of a few stray words.
    """
    tried, all_scores = [topics.shape[0]], [scores]
    for fewer in merged_topics(topics):
        if len(fewer) < numbers[0]:
            break
        if len(fewer) not in numbers:
            continue
        tried.append(len(fewer))
        all_scores.append(document_scores(fewer, split, prior_weight))
        behind = compared(0, tried, [0.0] * len(tried), all_scores)[-1]
        if behind.behind > 3 * behind.error:
            break
    return compared(len(ROUNDS), tried, [0.0] * len(tried), all_scores)


def _numbers(candidates: Any) -> list[int]:
    """The numbers to choose from, rising."""
    try:
        given = [int(number) for number in candidates]
        right = given == list(candidates)
    except (TypeError, ValueError):
        given, right = [], False
    if not given or not right or min(given) < 1 or (len(given) == 2 and given[0] >= given[1]):
        raise ValueError(
            "candidates must be the ends of a range, as (5, 100), or whole numbers of 1 or more; "
            f"got {candidates!r:.100}."
        )
    if len(given) != 2:
        return sorted(set(given))
    least, most = given
    n = int(np.ceil(np.log(most / least) / np.log(SPACING))) + 1
    return np.unique(np.geomspace(least, most, n).round().astype(int)).tolist()


def _fitted(
    plain: LatentDirichletAllocation, documents: Any, n_topics: int, cost: float, seed: int
) -> tuple[NDArray[Any], float]:
    """λ of a fit of about this cost, and its cost: rather fewer passes than documents."""
    passes = max(min(LEAST_PASSES, plain.max_iter), round(cost * plain.max_iter))
    part = min(1.0, cost * plain.max_iter / passes)
    some = documents[: max(1, round(part * documents.shape[0]))]
    model: Any = clone(plain)
    model.set_params(n_components=n_topics, max_iter=passes, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopicWarning)  # numbers that do not fit are to be tried
        topics = model.fit(some).components_.astype(np.float64)
    return topics, passes * some.shape[0] / (plain.max_iter * documents.shape[0])


def document_scores(topics: NDArray[Any], split: Split, prior_weight: float) -> NDArray[Any]:
    """Log probability of each document's held-out words, and their number, [2, D]."""
    topics = normalised(topics)
    theta = gibbs_proportions(split.observed, topics, prior_weight / topics.shape[0])
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


def merged_topics(counts: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
    """Topics [K, V] with one less at a time, down to one; two become one where that costs least.

    The cost is what the log probability of their words falls by, if they must share one topic:
    Σ_v c_v log(c_v / c) of each, less that of their sum. So twins are merged first, and topics of
    few words.

    >>> import numpy as np
    >>> counts = np.array([[4.0, 4.0, 0.0], [0.0, 0.0, 9.0], [5.0, 5.0, 0.0]])
    >>> next(merged_topics(counts))
    array([[9., 9., 0.],
           [0., 0., 9.]])
    """
    topics = np.array(counts, np.float64)
    own = _fit(topics)
    costs = np.full((len(topics), len(topics)), np.inf)
    for i in range(1, len(topics)):
        costs[i, :i] = own[i] + own[:i] - _fit(topics[i] + topics[:i])
    while len(topics) > 1:
        gone, kept = np.unravel_index(np.argmin(costs), costs.shape)
        topics[kept] += topics[gone]
        topics, own = np.delete(topics, gone, 0), np.delete(own, gone)
        costs = np.delete(np.delete(costs, gone, 0), gone, 1)
        own[kept] = _fit(topics[kept])
        new = own[kept] + own - _fit(topics[kept] + topics)
        costs[kept, :kept], costs[kept + 1 :, kept] = new[:kept], new[kept + 1 :]
        yield topics.copy()


def _fit(topics: NDArray[np.float64]) -> Any:
    """The log probability of a topic's words under the topic: Σ_v c_v log(c_v / c)."""
    totals = topics.sum(axis=-1)
    return xlogy(topics, topics).sum(axis=-1) - xlogy(totals, totals)
