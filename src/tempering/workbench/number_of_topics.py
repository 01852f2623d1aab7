"""How many topics: by held-out words, in a search that takes at most about three plain fits' time.

A first round fits numbers that are about twice as large as each other, from the middle towards what
predicts better, with few documents and passes. A second begins at the best, and goes up in small
steps as long as that predicts better. Last, topics of the best fit are merged as long as nothing is
lost. Each round chooses one prior weight Σ_k α_k, with which all numbers predict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from tempering.estimators import LatentDirichletAllocation
from tempering.evaluation import Split, npmi, topic_diversity
from tempering.models.arguments import check_number
from tempering.plots.canvas import new_figure
from tempering.workbench.comparing import (
    Judged,
    Trial,
    best_weight,
    compared,
    document_scores,
    held_out,
)
from tempering.workbench.editing import fitted_anew, plain_topics

#: Rounds of fits; what is merged is told as one more.
N_ROUNDS = 2


@dataclass(frozen=True)
class TopicNumber:
    """The answer of :func:`choose_n_topics`; print it to read it.

    Attributes
    ----------
    n_topics : int
        The smallest number that is within one standard error of the best, of those merged.
    trials : list of Trial
        All fits, by round and number; then the best one with its topics merged.
    prior_weight : float
        Σ_k α_k that predicted held-out words in the last round.
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
        numbers = sorted({trial.n_topics for trial in fits})
        last = [trial for trial in fits if trial.round == fits[-1].round]
        return len(numbers) > 1 and _best(last) == numbers[-1]

    def plot(self, axis: Any = None) -> Any:
        """Draw the scores by the number of topics, a line a round; return the figure."""
        axis = new_figure(figsize=(6, 3.5)).add_subplot() if axis is None else axis
        for number in sorted({trial.round for trial in self.trials}):
            trials = sorted(trial for trial in self.trials if trial.round == number)
            told = f"round {number + 1}: {trials[0].cost:.0%} of a fit each"
            label = "merged" if number == N_ROUNDS else told
            points = zip(*((trial.n_topics, trial.score, trial.error) for trial in trials))
            axis.errorbar(*points, marker="o", capsize=2, label=label)
        axis.axvline(self.n_topics, color="grey", linestyle=":")
        axis.set(xscale="log", xlabel="topics", ylabel="nats a held-out word")
        # The numbers that the search began with, which lie apart; not 3 × 10⁰.
        first = sorted({trial.n_topics for trial in self.trials if trial.round == 0})
        axis.set_xticks(first, first)
        axis.set_xticks([], minor=True)
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
    """The number of topics that predicts held-out words best, in the time of about three fits.

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
    plain = plain_topics(estimator, X)
    if prior_weight is not None:
        check_number(prior_weight, "prior_weight", "positive", above=0, most=1e6)
    check_number(random_state, "random_state", "a whole number, 0 or more", least=0, whole=True)
    numbers = _numbers(candidates)
    documents, split = held_out(X, random_state)
    step = -(-split.observed.shape[0] // 500)  # the first round predicts no more
    some = Split(*(half[::step] for half in split))

    fitted = partial(_fitted, plain, documents, random_state)
    # With so many passes, in those of a plain fit.
    coarse = _Round(0, partial(fitted, 0.125), some, prior_weight)
    fine = _Round(1, partial(fitted, 0.3), split, prior_weight)
    found = _looked_around(coarse.fit, _spread(numbers))
    found += _gone_up(fine.fit, numbers, _best(found))
    n_top = min(10, documents.shape[1])
    trials = sorted(
        trial._replace(
            npmi=float(npmi(fit.topics, documents, n_top).mean()),
            diversity=topic_diversity(fit.topics, n_top),
        )
        for trial, fit in zip(found, coarse.fits + fine.fits)
    )
    weight = fine.weight
    # The best, since the fewest topics within an error are chosen after that.
    merged = _merged(max(fine.fits, key=lambda fit: fit.score(weight)), numbers, weight)
    good = [trial.n_topics for trial in merged if trial.behind <= trial.error]
    return TopicNumber(min(good), trials + merged, weight)


@dataclass
class _Round:
    """Fits that are compared with one prior weight: the given one, or the one that suits them."""

    number: int
    fitted: Callable[[int], tuple[NDArray[Any], float]]
    split: Split
    given: float | None
    fits: list[Judged] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    def fit(self, n_topics: int) -> list[Trial]:
        """Fit so many topics, too: all fits, the newest last."""
        topics, cost = self.fitted(n_topics)
        # Fewer sweeps than elsewhere lower all scores, and hardly change their differences.
        self.fits.append(Judged(topics, self.split, (10, 15)))
        self.costs.append(cost)
        weight, numbers = self.weight, [len(fit.topics) for fit in self.fits]
        scores = [fit.scores(weight) for fit in self.fits]
        return compared(self.number, numbers, self.costs, scores)

    @property
    def weight(self) -> float:
        return best_weight(self.fits) if self.given is None else float(self.given)


def _looked_around(fit: Callable[[int], list[Trial]], numbers: list[int]) -> list[Trial]:
    """Fits from the middle up, each way until one is clearly worse; down if up is no better."""
    middle = (len(numbers) - 1) // 2
    found = fit(numbers[middle])
    for way in (numbers[middle + 1 :], numbers[:middle][::-1]):
        for n_topics in way:
            found = fit(n_topics)
            if found[-1].behind > 2.0 * found[-1].error:  # clearly
                break
        if _best(found) > numbers[middle]:
            break
    return found


def _gone_up(fit: Callable[[int], list[Trial]], numbers: list[int], n_topics: int) -> list[Trial]:
    """Fits with ever more topics, until one is not the best so far."""
    while True:
        found = fit(n_topics)
        if found[-1].behind > 0 or n_topics == numbers[-1]:
            return found
        n_topics = next((n for n in numbers if n >= 1.2 * n_topics), numbers[-1])


def _spread(numbers: list[int]) -> list[int]:
    """Some of the numbers, by about the same factor apart, with both ends."""
    n = round(np.log(numbers[-1] / numbers[0]) / np.log(1.9)) + 1
    places = np.searchsorted(numbers, np.geomspace(numbers[0], numbers[-1], max(n, 2)) * (1 - 1e-9))
    return [numbers[place] for place in np.unique(places)]


def _best(trials: list[Trial]) -> int:
    """The number of topics that predicts best."""
    return min(trials, key=lambda trial: trial.behind).n_topics


def _merged(fit: Judged, numbers: list[int], weight: float) -> list[Trial]:
    """The topics of the last fit, and with ever fewer of them (it has twins), while that costs
    nothing.
    """
    tried, all_scores = [len(fit.topics)], [fit.scores(weight)]
    for fewer in merged_topics(fit.topics):
        if len(fewer) < numbers[0]:
            break
        if len(fewer) not in numbers:
            continue
        tried.append(len(fewer))
        all_scores.append(document_scores(fewer, fit.split, weight, fit.sweeps))
        behind = compared(0, tried, [0.0] * len(tried), all_scores)[-1]
        if behind.behind > 3 * behind.error:
            break
    return compared(N_ROUNDS, tried, [0.0] * len(tried), all_scores)


def _numbers(candidates: Any) -> list[int]:
    """The numbers to choose from, rising."""
    try:
        listed = list(candidates)
        given = [int(number) for number in listed]
        right = given == listed
    except (TypeError, ValueError):
        given, right = [], False
    if not given or not right or min(given) < 1 or (len(given) == 2 and given[0] >= given[1]):
        raise ValueError(
            "candidates must be the ends of a range, as (5, 100), or whole numbers of 1 or more; "
            f"got {candidates!r:.100}."
        )
    if len(given) != 2:
        return sorted(set(given))
    least, most = given  # and between them numbers that are apart by a tenth
    n = int(np.ceil(np.log(most / least) / np.log(1.1))) + 1
    return np.unique(np.geomspace(least, most, n).round().astype(int)).tolist()


def _fitted(
    plain: LatentDirichletAllocation, documents: Any, seed: int, cost: float, n_topics: int
) -> tuple[NDArray[Any], float]:
    """λ of a fit of about this cost, and its cost: rather fewer passes than documents."""
    # With fewer than three, topics have not cooled.
    passes = max(min(3, plain.max_iter), round(cost * plain.max_iter))
    part = min(1.0, cost * plain.max_iter / passes)
    some = documents[: max(1, round(part * documents.shape[0]))]
    own = {"n_components": n_topics, "max_iter": passes, "random_state": seed}
    topics = fitted_anew(plain, some, **own).components_.astype(np.float64)
    return topics, passes * some.shape[0] / (plain.max_iter * documents.shape[0])


def merged_topics(counts: ArrayLike) -> Iterator[NDArray[np.float64]]:
    """Topics [K, V] with one less at a time, down to one; two become one where that costs least.

    The cost is what the log probability of their words falls by, if they must share one topic:
    Σ_v c_v log(c_v / c) of each, less that of their sum. So twins are merged first, and topics of
    few words.

    >>> next(merged_topics([[4.0, 4.0, 0.0], [0.0, 0.0, 9.0], [5.0, 5.0, 0.0]]))
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
