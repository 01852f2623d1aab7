"""Topics of an older model, kept, while new ones are learned beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.words import words_of
from tempering.evaluation.checks import is_corpus
from tempering.models.arguments import check_number, check_whole, shown
from tempering.workbench.editing import check_fitted_topics, topic_labels


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
    >>> import numpy as np
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import extend_topics
    >>> old = np.repeat([[4, 3, 0, 0, 0, 0], [0, 0, 5, 4, 0, 0]], 50, axis=0)
    >>> new = np.repeat([[4, 3, 0, 0, 0, 0], [0, 0, 0, 0, 5, 6]], 50, axis=0)
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
    new: Any = clone(model)
    new.set_params(
        n_components=len(prior),
        topic_word_prior=prior.astype(np.float32),
        seed_topics=None,
        random_state=random_state,
    )
    if np.ndim(new.doc_topic_prior) == 1:
        alpha = model.doc_topic_prior_
        new.doc_topic_prior = np.append(alpha, np.full(n_new, alpha.mean()))
    new.fit(X)
    if hasattr(model, "topic_labels_"):
        names = [*topic_labels(model), *[""] * n_new]
        new.topic_labels_ = np.array(names, dtype=object)
    return new


def _over_words_of(model: Any, X: Any, counts: NDArray[Any]) -> NDArray[np.float64]:
    """Counts [K, V] of a model's words as those of the columns of X."""
    ours = words_of(model)
    theirs = X.vocabulary if is_corpus(X) else getattr(X, "columns", None)
    if ours is None or theirs is None or list(ours) == list(theirs):
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
