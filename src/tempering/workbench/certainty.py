"""How sure topics are: which come again in other fits, and how probable their words are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import beta

from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.words import counts_over_words
from tempering.evaluation import top_words
from tempering.evaluation.checks import normalised
from tempering.inference import BlockSource
from tempering.models.arguments import check_number, check_whole
from tempering.workbench.editing import check_fitted_topics, fitted_anew, topic_number


def topics_across_seeds(
    model: LatentDirichletAllocation,
    X: Any,
    n_seeds: int = 3,
    *,
    resample: bool = False,
    random_state: int = 0,
) -> NDArray[np.float64]:
    """How much of each topic comes back in other fits, [K], from 0 to 1.

    The model is fitted again with other seeds, and topics are paired so that they share most. The
    figure for a topic is the mean part of its words, Σ_v min(p_v, q_v), that its partners share.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted topics; the new fits have its parameters.
    X : sparse matrix or array [D, V], Corpus or BlockSource
        The documents of the fit.
    n_seeds : int
        How many fits.
    resample : bool
        Draw the documents of each fit from X, in memory, with replacement, as many as there are.
        This shows whether topics belong to the subject or to these documents. Without it the topics
        of a tempered fit mostly come back, because the default start is the same for every seed.
    random_state : int
        Decides the seeds, and which documents are drawn.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import topics_across_seeds
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> lda = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> topics_across_seeds(lda, X).round(1)
    array([1., 1.])
    """
    check_fitted_topics(model)
    check_whole(n_seeds=n_seeds)
    check_whole(0, random_state=random_state)
    if resample and isinstance(X, BlockSource):
        raise ValueError(
            "resample=True draws from documents in memory, but X streams from disk: give some of "
            "them, as X.sample(100_000, np.random.default_rng(0)) has."
        )
    counts: Any = X if isinstance(X, BlockSource) else counts_over_words(model, X)
    if counts.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {counts.shape[1]} columns, but topics has {model.n_features_in_}: both must be "
            "over the same vocabulary."
        )
    topics = normalised(model.components_.astype(np.float64))
    # Seeds as a prior matrix, which asks for no words: the counts have none.
    own: dict[str, Any] = {}
    if model.seed_topics is not None:
        own = {"seed_topics": None, "topic_word_prior": model.topic_word_prior_}
    rng = np.random.default_rng(random_state)
    shared = np.zeros(len(topics))
    for seed in rng.integers(2**31, size=int(n_seeds)):
        n, documents = counts.shape[0], counts
        if resample:
            documents = counts[np.sort(rng.integers(n, size=n))]
        again = fitted_anew(model, documents, random_state=int(seed), **own)
        others = normalised(again.components_.astype(np.float64))
        alike = np.array([np.minimum(topic, others).sum(axis=1) for topic in topics])
        shared += alike[linear_sum_assignment(alike, maximize=True)] / n_seeds
    return np.minimum(shared, 1.0)


class WordInterval(NamedTuple):
    """A word of a topic, and between what its probability lies."""

    word: Any
    low: float
    high: float


def word_intervals(
    model: Any, topic: int, n_words: int = 10, level: float = 0.95
) -> list[WordInterval]:
    """The most probable words of a topic, with intervals of their probabilities.

    The topic's posterior is q(β) = Dir(λ), so that the probability of word v is a beta variable of
    λ_v and Σ_u λ_u − λ_v. It does not know of words that other fits would give to other topics:
    for that see :func:`topics_across_seeds`. So intervals are too narrow where documents mix their
    topics: of drawn documents those of 95% held the true probabilities in 91% of cases, and in 66%
    where each document had all topics. For intervals of the proportions of single documents,
    let each be a group of its own: ``topics_by_group(model, X, range(X.shape[0]))``.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted topics.
    topic : int
        The number of the topic.
    n_words : int
        How many words.
    level : float
        The probability of an interval.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import word_intervals
    >>> X = [[5, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> model = LatentDirichletAllocation(1, random_state=0).fit(X)
    >>> [(word, round(low, 2), round(high, 2)) for word, low, high in word_intervals(model, 0, 2)]
    [(2, 0.27, 0.33), (0, 0.26, 0.32)]
    """
    check_fitted_topics(model)
    topic = topic_number(model.n_components, topic, "topic")
    check_number(level, "level", "between 0 and 1", above=0, most=np.nextafter(1.0, 0.0))
    weights = model.components_[topic].astype(np.float64)
    columns = top_words(weights[None], n_words)[0]
    words = model.topics(n_words)[topic]
    tail = (1 - level) / 2
    # Of a vocabulary of one word nothing is left, which no beta variable has for a parameter.
    rest = np.maximum(weights.sum() - weights[columns], np.finfo(float).tiny)
    ends = beta.ppf([[tail], [1 - tail]], weights[columns], rest)
    return [WordInterval(word, float(low), float(high)) for word, low, high in zip(words, *ends)]
