"""Topics that have those of an older fit as their prior: kept beside new ones, or drifting.

To drift, a fit to all documents says what the topics are. Then each slice of time is fitted by
itself, and tempered as any other fit; the prior of its topics are the topics of the slice before,
worth as many words as these had of its documents, times ``strength``. So topic 3 stays topic 3, and
its words move as far as the documents of the slice ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.words import words_of
from tempering.evaluation.checks import as_counts, normalised
from tempering.models.arguments import check_number, check_whole, shown
from tempering.workbench.editing import (
    check_fitted_topics,
    fitted_anew,
    plain_topics,
    topic_labels,
    topic_number,
    words_told,
)
from tempering.workbench.time_bins import time_bins


@dataclass(frozen=True, repr=False)
class TopicDrift:
    """The answer of :func:`topics_through_time`: topics from slice to slice; print it to read it.

    Attributes
    ----------
    names : list of (start, end)
        The slices.
    models : list of LatentDirichletAllocation
        A fitted model for each slice.
    words : list
        The words, or numbers of columns.
    """

    names: list[Any]
    models: list[LatentDirichletAllocation]
    words: list[Any]

    def topics(self) -> NDArray[np.float64]:
        """Posterior means of the topics in each slice, [T, K, V]."""
        return np.array([normalised(model.components_.astype(float)) for model in self.models])

    def drift(self) -> NDArray[np.float64]:
        """The part of each topic's words that is other than in the slice before, [T − 1, K]."""
        topics = self.topics()
        return np.abs(np.diff(topics, axis=0)).sum(axis=2) / 2.0

    def top_words(self, topic: int, n_words: int = 10) -> list[list[Any]]:
        """The most probable words of a topic in each slice."""
        topic = topic_number(self.models[0].n_components, topic, "topic")
        check_whole(n_words=n_words)
        rows = np.argsort(-self.topics()[:, topic], axis=1, kind="stable")[:, :n_words]
        return [[self.words[v] for v in row] for row in rows]

    def __str__(self) -> str:
        topics, lines = self.topics(), ["topic  drift  words that came / that went"]
        change = topics[-1] - topics[0]
        for k, own in enumerate(change):
            order = np.argsort(own, kind="stable")
            came, went = (
                ", ".join(str(self.words[v]) for v in p) for p in (order[:-4:-1], order[:3])
            )
            lines.append(f"{k:5}{np.abs(own).sum() / 2:7.2f}  {came} / {went}")
        return "\n".join(lines)

    __repr__ = __str__


def topics_through_time(
    X: Any,
    times: ArrayLike,
    n_components: int = 10,
    bins: Any = 5,
    *,
    strength: float = 1.0,
    estimator: LatentDirichletAllocation | None = None,
    random_state: int = 0,
) -> TopicDrift:
    """Topics whose words drift, slice by slice.

    Parameters
    ----------
    X : sparse matrix or array [D, V], or Corpus
        Counts of all documents.
    times, bins
        As in :func:`topics_over_time`.
    n_components : int
        Number of topics.
    strength : float
        How much a word of the slice before counts beside one of this slice: 0.1 lets topics move,
        10 holds them.
    estimator : LatentDirichletAllocation, optional
        What to fit, apart from ``n_components`` and ``random_state``.
    random_state : int
        Of the fits.

    Examples
    --------
    >>> from tempering.workbench import topics_through_time
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50 + [[3, 4, 0, 0]] * 50 + [[0, 0, 4, 5]] * 50
    >>> drift = topics_through_time(X, [1990] * 100 + [2000] * 100, 2, bins=2)
    >>> sorted(drift.top_words(0, 1) + drift.top_words(1, 1))
    [[0], [1], [2], [3]]
    """
    plain = plain_topics(estimator, X)
    check_number(strength, "strength", "positive", above=0, most=1e6)
    check_whole(0, random_state=random_state)
    counts: Any = as_counts(X, "X")
    names, places = time_bins(times, bins, counts.shape[0])
    empty = np.flatnonzero(np.bincount(places, counts.sum(axis=1)) == 0)
    if empty.size:
        start, end = names[empty[0]]
        raise ValueError(f"bins must hold words each: from {start} to {end} X has none.")
    own: Any = {"n_components": n_components, "random_state": random_state}
    model: Any = clone(plain).set_params(**own).fit(counts)
    share, models = 1.0 / len(names), []
    for place in range(len(names)):
        prior = _prior_after(model, strength * share)
        own |= {"topic_word_prior": prior.astype(np.float32), "seed_topics": None}
        # A topic may be absent for a while.
        model = fitted_anew(plain, counts[np.flatnonzero(places == place)], **own)
        models.append(model)
        share = 1.0
    return TopicDrift(names, models, words_told(X) or [*range(counts.shape[1])])


def _prior_after(model: Any, strength: float) -> NDArray[np.float64]:
    """η and the topics of a model, worth the words that they had of its documents, [K, V]."""
    eta = model._model.topic_word_prior
    components = model.components_.astype(np.float64)
    sizes = np.maximum(components - model.topic_word_prior_, 0.0).sum(axis=1, keepdims=True)
    # A topic that had no word in a slice keeps a trace of what it was.
    sizes = np.maximum(sizes, 0.01 * sizes.mean())
    return eta + strength * sizes * normalised(components)


def extend_topics(
    model: LatentDirichletAllocation,
    X: Any,
    n_new: int,
    *,
    strength: float = 1.0,
    random_state: int = 0,
) -> LatentDirichletAllocation:
    """A model of new documents that keeps the topics of an older one.

    The words that the old topics hold are their prior (``topic_word_prior``), so they move as if
    the new documents were added to the old ones. New topics come after them. Words that only the
    old model knows are left out; words that only the new documents have start without a prior.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted topics. It is not changed; the new fit has its parameters.
    X : sparse matrix, array or DataFrame [D, V], or Corpus
        Documents over the vocabulary of the model, or with their own words.
    n_new : int
        How many topics to learn beside the old ones; with 0 only those move.
    strength : float
        How much an old word counts beside a new one: 0.1 lets topics move, 10 holds them.
    random_state : int
        Of the fit.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import extend_topics
    >>> old = [[4, 3, 0, 0, 0, 0]] * 50 + [[0, 0, 5, 4, 0, 0]] * 50
    >>> new = [[4, 3, 0, 0, 0, 0]] * 50 + [[0, 0, 0, 0, 5, 6]] * 50
    >>> model = extend_topics(LatentDirichletAllocation(2, random_state=0).fit(old), new, 1)
    >>> sorted(model.topics(2)[2])
    [4, 5]
    """
    check_fitted_topics(model)
    check_whole(0, n_new=n_new)
    check_number(strength, "strength", "positive", above=0, most=1e6)
    n_new = int(n_new)
    counts = np.maximum(model.components_ - model.topic_word_prior_, 0.0)
    prior = strength * _over_words_of(model, X, counts)
    prior = np.vstack([prior, np.zeros((n_new, prior.shape[1]))]) + model._model.topic_word_prior
    if not prior.shape[0]:
        raise ValueError(f"n_new must leave a topic; got {n_new!r}.")
    own: Any = {"n_components": len(prior), "topic_word_prior": prior.astype(np.float32)}
    new: Any = clone(model).set_params(**own, seed_topics=None, random_state=random_state)
    if np.ndim(new.doc_topic_prior) == 1:
        alpha = model.doc_topic_prior_
        new.doc_topic_prior = np.append(alpha, np.full(n_new, alpha.mean()))
    new.fit(X)
    if words_of(new) is None and (words := words_of(model)) is not None:
        # X, which tells none, is over the words of the model.
        new.vocabulary_ = np.array(words, dtype=object)
    if hasattr(model, "topic_labels_"):
        names = [*topic_labels(model), *[""] * n_new]
        new.topic_labels_ = np.array(names, dtype=object)
    return new


def _over_words_of(model: Any, X: Any, counts: NDArray[Any]) -> NDArray[np.float64]:
    """Counts [K, V] of a model's words as those of the columns of X."""
    ours = words_of(model)
    theirs = words_told(X)
    if ours is None or theirs is None or list(ours) == theirs:
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise ValueError(f"X must be a matrix of counts, one document a row; got {shown(X)}.")
        n_words = shape[1]
        if n_words != counts.shape[1]:
            raise ValueError(
                f"X has {n_words} columns, but the model {counts.shape[1]} words, and X does not "
                "say what its words are: give a corpus, as tempering.corpus.from_texts makes it."
            )
        return counts.astype(np.float64)
    place = {str(word): v for v, word in enumerate(ours)}
    columns = np.array([place.get(str(word), -1) for word in theirs])
    if not np.any(columns >= 0):
        raise ValueError("X shares no word with the model: its topics cannot be kept.")
    return np.where(columns >= 0, counts[:, columns], 0.0)
