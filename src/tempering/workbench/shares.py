"""How common topics are in groups of documents and over time, with posterior intervals.

Proportions and topics are drawn, by Gibbs sampling from where the fit ended: with topics held
fixed, or drawn from q(β), intervals were too narrow. The share of a topic in a group is the mean of
its documents' θ in a draw. The prior of θ follows the group (of one document, it is the model's):
one for all would draw groups together. The weights of the priors follow the documents too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempering.estimators.words import counts_over_words
from tempering.evaluation.checks import as_labels, check_whole_counts
from tempering.evaluation.completion import MOST_TOKENS
from tempering.models.arguments import check_number, check_whole
from tempering.plots.canvas import as_drawn, new_figure
from tempering.workbench.editing import check_fitted_topics, topic_numbers
from tempering.workbench.share_chain import ShareChain, next_weight
from tempering.workbench.time_bins import time_bins

#: Draws in which topics and priors settle, and visits of all words in each draw after them. To
#: settle, topics are drawn after each visit: it is topics that take long.
SETTLING_DRAWS, SWEEPS = 100, 3


@dataclass(frozen=True)
class TopicShares:
    """The answer of :func:`topics_by_group`: draws of the shares of topics; print it to read it.

    Attributes
    ----------
    names : list
        The groups; for times, the (start, end) of each bin.
    n_documents : array [G]
        Documents of each.
    draws : array [S, G, K]
        Mean topic proportions of the documents in each group.
    """

    names: list[Any]
    n_documents: NDArray[np.intp]
    draws: NDArray[np.float64]

    def mean(self) -> NDArray[np.float64]:
        """Posterior means, [G, K]."""
        return self.draws.mean(axis=0)

    def interval(self, level: float = 0.95) -> NDArray[np.float64]:
        """The ends of the intervals that hold the shares with this probability, [G, K, 2]."""
        return _interval(self.draws, level)

    def ratio(self, group: Any, other: Any) -> NDArray[np.float64]:
        """How many times as common each topic is in one group as in another: intervals [K, 2].

        For groups that were chosen beforehand: of many, the two that differ most do so by chance
        too.
        """
        # A share that is nearly 0 would make a ratio that no float holds.
        places = self._place(group), self._place(other)
        one, two = (np.maximum(self.draws[:, place], 1e-300) for place in places)
        return _interval(one / two)

    def difference(self, group: Any, other: Any) -> NDArray[np.float64]:
        """Intervals of the differences between the shares in two groups, [K, 2]."""
        one, two = (self.draws[:, self._place(name)] for name in (group, other))
        return _interval(one - two)

    def to_frame(self, library: str = "pandas", level: float = 0.95) -> Any:
        """A row for each group and topic: mean share, the ends of its interval, documents.

        A DataFrame of this library, "pandas" or "polars". Of times, ``group`` is when a bin begins.
        """
        if library not in ("pandas", "polars"):
            raise ValueError(f"library must be 'pandas' or 'polars'; got {library!r:.80}.")
        ends, (_, n_groups, n_topics) = self.interval(level), self.draws.shape
        starts = np.array([name[0] if isinstance(name, tuple) else name for name in self.names])
        if starts.dtype.kind == "M":
            starts = starts.astype("datetime64[ms]")  # a polars frame has no years or months
        columns = {
            "group": np.repeat(starts, n_topics),
            "topic": np.tile(np.arange(n_topics), n_groups),
            "share": self.mean().ravel(),
            "low": ends[..., 0].ravel(),
            "high": ends[..., 1].ravel(),
            "n_documents": np.repeat(self.n_documents, n_topics),
        }
        return import_module(library).DataFrame(columns)

    def _place(self, name: Any) -> int:
        try:
            return self.names.index(name)
        except ValueError:  # of arrays, too, which are neither equal nor not
            raise ValueError(
                f"there is no group {name!r:.100}; choose one of {self.names!r:.200}."
            ) from None

    def __str__(self) -> str:
        ends = self.interval()
        heads = [called(name) for name in self.names]
        widths = [max(16, len(head) + 2) for head in heads]
        lines = ["topic" + "".join(f"{head:>{width}}" for head, width in zip(heads, widths))]
        for topic in range(self.draws.shape[2]):
            cells = (f"{low:.3f} to {high:.3f}" for low, high in ends[:, topic])
            row = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths))
            lines.append(f"{topic:>5}{row}")
        return "\n".join(lines)

    def plot(self, topics: Sequence[int] | None = None, axis: Any = None) -> Any:
        """Draw the shares of some topics (all by default) with their intervals; the figure."""
        n = self.draws.shape[2]
        shown = topic_numbers(range(n) if topics is None else topics, n)
        axis = new_figure(figsize=(7, 4)).add_subplot() if axis is None else axis
        means, ends, places = self.mean(), self.interval(), np.arange(len(self.names))
        for topic in shown:
            errors = np.abs(ends[:, topic].T - means[:, topic])
            axis.errorbar(
                places, means[:, topic], errors, marker="o", capsize=2, label=f"topic {topic}"
            )
        names = [as_drawn(called(name)) for name in self.names]
        axis.set_xticks(places, names, rotation=45, ha="right")
        axis.set(ylabel="share of the documents", ylim=(0, None))
        axis.legend(fontsize="small")
        return axis.figure


def called(name: Any) -> str:
    """What a group is called, or a bin of time: when it begins."""
    if not isinstance(name, tuple):
        return str(name)
    start, end = name
    if not isinstance(start, float):
        return str(start)
    # To a hundredth or so of its length: further digits say nothing, fewer are those of others too.
    length = end - start
    digits = 2 - int(np.floor(np.log10(length))) if 0 < length < np.inf else 15
    return f"{round(start, digits):.15g}"


def _interval(draws: NDArray[np.float64], level: float = 0.95) -> NDArray[np.float64]:
    check_number(level, "level", "between 0 and 1", above=0, most=np.nextafter(1.0, 0.0))
    tail = (1 - level) / 2
    # Of n draws, the next one falls between these ends with this probability: not so by default.
    ends = np.quantile(draws, [tail, 1 - tail], axis=0, method="weibull")
    return np.moveaxis(ends, 0, -1)


def topics_by_group(
    model: Any,
    X: Any,
    groups: ArrayLike,
    *,
    new_documents: bool = False,
    n_draws: int = 100,
    seed: int = 0,
) -> TopicShares:
    """How common each topic is in each group of documents, with intervals.

    The intervals are about these documents, not about others that the same authors might write.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted topics.
    X : sparse matrix or array [D, V], or Corpus
        Whole counts over the vocabulary of the fit: all documents of the fit.
    groups : array [D]
        The group of each document.
    new_documents : bool
        Whether X holds other documents than the fit; topics then learn from both.
    n_draws : int
        Draws from the posterior, at least 2; 39 for intervals of 95%, which lie within the draws.
    seed : int
        Of the draws.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import topics_by_group
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> lda = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> shares = topics_by_group(lda, X, ["sea"] * 50 + ["snow"] * 50, n_draws=20)
    >>> shares.names, shares.mean().argmax(axis=1).tolist() == lda.transform(X[49:51]).argmax(
    ...     axis=1).tolist()
    (['sea', 'snow'], True)
    """
    counts = _counts(model, X)
    names, places = as_labels(groups, "groups", "X", counts.shape[0])
    # Of dates to the nanosecond, tolist makes whole numbers.
    listed = list(names) if names.dtype.kind == "M" else names.tolist()
    return _shares(model, counts, listed, places, new_documents, n_draws, seed)


def topics_over_time(
    model: Any,
    X: Any,
    times: ArrayLike,
    bins: Any = 10,
    *,
    new_documents: bool = False,
    n_draws: int = 100,
    seed: int = 0,
) -> TopicShares:
    """How common each topic is over time, with intervals.

    Parameters
    ----------
    model, X, new_documents, n_draws, seed
        As in :func:`topics_by_group`.
    times : array [D]
        Of each document: numbers, or dates, also as text such as "2024-01-31" or "20240131". Those
        with a time zone are told in UTC.
    bins : int, {"auto", "year", "month", "day"} or array
        Bins of one length between the first time and the last; those of the calendar, for dates
        ("auto" takes the longest that gives six at least); or their edges, rising: an edge belongs
        to the bin that it begins, the last one to the bin that it ends. Bins without a document
        are left out.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import topics_over_time
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> lda = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> years = [1990] * 50 + [2000] * 50
    >>> topics_over_time(lda, X, years, bins=2, n_draws=20).names
    [(1990, 1995), (1995, 2000)]
    """
    counts = _counts(model, X)
    names, places = time_bins(times, bins, counts.shape[0])
    return _shares(model, counts, names, places, new_documents, n_draws, seed)


def _counts(model: Any, X: Any) -> Any:
    check_fitted_topics(model)
    counts: Any = counts_over_words(model, X)
    check_whole_counts(counts, "X", "; weights such as tf-idf have no shares of words.")
    n_words = counts.sum(dtype=np.float64)
    if n_words > MOST_TOKENS:
        raise ValueError(
            f"X holds {n_words:.3g} words, which are visited one by one: give documents of "
            f"{MOST_TOKENS:g} words in all at most, with new_documents=True."
        )
    return counts


def _known(model: Any, counts: Any, new_documents: bool) -> NDArray[np.float64]:
    """What is known of topics without these documents: Dirichlet parameters [K, V]."""
    known = model.components_.astype(np.float64)
    if new_documents:
        return known
    n_words, n_fitted = sizes_of(model, counts)
    if not 0.5 < n_words / n_fitted < 2:
        raise ValueError(
            f"X has {n_words:.0f} words, but the model was fitted to about {n_fitted:.0f}: give "
            "all documents of the fit, or say new_documents=True."
        )
    return np.full_like(known, model.topic_word_prior_)


def sizes_of(model: Any, counts: Any) -> tuple[float, float]:
    """The words of these documents, and about as many as the model was fitted to."""
    fitted = model.components_.astype(np.float64) - model.topic_word_prior_
    return float(counts.sum()), float(fitted.sum())


def _shares(
    model: Any,
    counts: Any,
    names: list[Any],
    places: NDArray[Any],
    new_documents: bool,
    n_draws: int,
    seed: int,
) -> TopicShares:
    """Draw the shares of the groups in turn, then the topics, and so on."""
    check_whole(2, n_draws=n_draws)
    check_whole(0, seed=seed)
    known = _known(model, counts, new_documents)
    rng, alpha = np.random.default_rng(seed), model.doc_topic_prior_
    chain = ShareChain(counts, places, known, model.components_.astype(np.float64), rng)
    priors = np.tile(alpha, (len(names), 1))
    draws = np.empty((n_draws, *priors.shape))
    weight = expected = float(alpha.sum())
    n_documents = np.bincount(places, minlength=len(names))
    # The part of a group's prior that is not of the group: its 1/n, as a document's own θ is no
    # evidence for the prior of it; and so much at least that no topic is shut out.
    others = np.maximum(0.05, 1.0 / n_documents)[:, None]
    eta = None if new_documents or np.ndim(model.topic_word_prior_) else model.topic_word_prior_
    for number in range(-SETTLING_DRAWS, n_draws):
        share = chain.draw(priors, 1 if number < 0 else SWEEPS)
        weight = next_weight(*chain.mixing, weight, expected)
        priors = weight * ((1.0 - others) * share + others * alpha / expected)
        if eta is not None:
            evidence = chain.sparsity(eta, counts.shape[1])
            eta = next_weight(*evidence, eta, model.topic_word_prior_)
            chain.know(eta)
        if number >= 0:
            draws[number] = share
    return TopicShares(names, n_documents, draws)
