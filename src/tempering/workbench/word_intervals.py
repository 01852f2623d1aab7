"""How sure the probabilities of a topic's words are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta

from tempering.evaluation import top_words
from tempering.models.arguments import check_number
from tempering.workbench.editing import check_fitted_topics, topic_numbers


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
    for that see :func:`topics_across_seeds`. For intervals of the proportions of single documents,
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
    >>> import numpy as np
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import word_intervals
    >>> X = np.repeat([[5, 3, 0, 0], [0, 0, 5, 4]], 50, axis=0)
    >>> model = LatentDirichletAllocation(1, random_state=0).fit(X)
    >>> [(word, round(low, 2), round(high, 2)) for word, low, high in word_intervals(model, 0, 2)]
    [(0, 0.27, 0.33), (2, 0.26, 0.32)]
    """
    check_fitted_topics(model)
    (topic,) = topic_numbers([topic], model.n_components)
    check_number(level, "level", "between 0 and 1", above=0, most=np.nextafter(1.0, 0.0))
    weights = model.components_[topic].astype(np.float64)
    columns = top_words(weights[None], n_words)[0]
    words = model.topics(n_words)[topic]
    tail = (1 - level) / 2
    ends = beta.ppf([[tail], [1 - tail]], weights[columns], weights.sum() - weights[columns])
    return [WordInterval(word, float(low), float(high)) for word, low, high in zip(words, *ends)]
