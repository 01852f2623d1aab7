"""Topics edited by hand: merged, split, dropped, named. Each edit gives a new fitted model.

The model that is edited stays as it was, so that to undo is to keep it. An edited model transforms,
scores, and is saved as any other; documents that come later go on from it with ``partial_fit``.
Where documents are given, topics settle over them: words move to where they now belong.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.lda import TopicWarning
from tempering.estimators.words import columns_of_seeds, counts_over_words
from tempering.evaluation import top_words
from tempering.evaluation.checks import is_corpus
from tempering.inference.fitting import fit
from tempering.models.arguments import check_number, check_whole, shown
from tempering.models.lda.topics import Topics, split_prior


def merge_topics(
    model: LatentDirichletAllocation, topics: Sequence[int], X: Any = None, *, passes: int = 3
) -> LatentDirichletAllocation:
    """A model in which several topics are merged, in the place of the first one named.

    The counts and the prior α of the merged topic are sums. It keeps the label of the first.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted topics.
    topics : sequence of int
        Their numbers, at least two.
    X : sparse matrix or array [D, V], or Corpus, optional
        The documents of the fit, over which the topics settle.
    passes : int
        Passes over X at T = 1; with 0 the topics stay as the edit left them.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import merge_topics
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> merge_topics(LatentDirichletAllocation(3, random_state=0).fit(X), [0, 2]).n_components
    2
    """
    counts, alpha = _parts(model)
    places = topic_numbers(topics, model.n_components)
    if len(set(places)) < 2 or len(set(places)) < len(places):
        raise ValueError(f"topics must name two different topics or more; got {topics!r:.100}.")
    first, others = places[0], places[1:]
    counts[first], alpha[first] = counts[places].sum(axis=0), alpha[places].sum()
    prior = _led(model)
    if prior is not None:
        eta = model._model.topic_word_prior
        own = prior[places]
        whole = eta + np.maximum(own - eta, 0.0).sum(axis=0)
        prior[first] = np.where(own.any(axis=0), whole, 0.0)  # kept out of all, or of none
    return settled(_remade(model, counts, alpha, prior, others), X, passes)


def drop_topic(
    model: LatentDirichletAllocation, topic: int, X: Any = None, *, passes: int = 3
) -> LatentDirichletAllocation:
    """A model without one of its topics.

    With X, its words go to the other topics; without X, they do so when documents are transformed.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted topics, at least two.
    topic : int
        The number of one.
    X, passes
        As in :func:`merge_topics`.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import drop_topic
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> drop_topic(LatentDirichletAllocation(3, random_state=0).fit(X), 1).n_components
    2
    """
    counts, alpha = _parts(model)
    place = topic_number(model.n_components, topic, "topic")
    if alpha.size < 2:
        raise ValueError("topic cannot be dropped: it is the only one of the model.")
    return settled(_remade(model, counts, alpha, _led(model), [place]), X, passes)


def split_topic(
    model: LatentDirichletAllocation,
    topic: int,
    X: Any,
    *,
    passes: int = 3,
    random_state: int = 0,
) -> LatentDirichletAllocation:
    """A model in which one topic is split in two: one in its place, and a new one at the end.

    The words that documents have from this topic are fitted with two topics, as if they were
    documents themselves. The counts of the topic and its α are divided between the two.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted topics.
    topic : int
        The number of one.
    X : sparse matrix or array [D, V], or Corpus
        The documents of the fit, or enough similar ones: the topics settle over them.
    passes : int
        As in :func:`merge_topics`.
    random_state : int
        Of the fit with two topics.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import split_topic
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> model = split_topic(LatentDirichletAllocation(1, random_state=0).fit(X), 0, X)
    >>> sorted(model.transform([X[0], X[99]]).argmax(axis=1).tolist())
    [0, 1]
    """
    counts, alpha = _parts(model)
    place = topic_number(model.n_components, topic, "topic")
    X = counts_over_words(model, X)
    part = copy(X)
    part.data = X.data * _responsibilities(model, X, place)
    if not part.sum() >= 2:
        raise ValueError(f"topic {topic} has no two words in X to split: give other documents.")
    if not counts[place].any():
        raise ValueError(f"topic {topic} is its prior alone: it holds no words to split.")
    halves = LatentDirichletAllocation(2, random_state=random_state).fit(part).components_
    ways = halves / halves.sum(axis=0)
    both = counts[place] * ways
    shares = both.sum(axis=1) / both.sum()
    counts[place], alpha_whole = both[0], alpha[place]
    alpha[place] = max(shares[0], 0.05) * alpha_whole
    counts = np.vstack([counts, both[1]])
    prior = _led(model)
    if prior is not None:
        eta = model._model.topic_word_prior
        parts = np.where(prior[place] > 0, eta + np.maximum(prior[place] - eta, 0.0) * ways, 0.0)
        prior[place] = parts[0]
        prior = np.vstack([prior, parts[1]])
    new = _remade(model, counts, np.append(alpha, max(shares[1], 0.05) * alpha_whole), prior)
    return settled(new, X, passes)


def _responsibilities(model: Any, X: Any, topic: int) -> NDArray[np.float64]:
    """The part of each entry of X that is due to a topic."""
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    theta = model.transform(X)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))

    def part(k: int) -> NDArray[np.float64]:
        return theta[rows, k] * topics[k, X.indices]

    return part(topic) / np.maximum(sum(map(part, range(len(topics)))), np.finfo(float).tiny)


def rename_topics(
    model: LatentDirichletAllocation,
    labels: Mapping[int, str] | Sequence[str] | Callable[[list[str]], str],
) -> LatentDirichletAllocation:
    """A model whose topics have names: ``topic_labels_``, which are saved with it.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted topics.
    labels : mapping of int to str, sequence of str, or callable
        The names of some topics by number, or of all; or what makes a name of a topic's ten most
        distinctive words, a language model say. Topics without a name are called by three of them.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import rename_topics
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> lda = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> rename_topics(lda, ["summer", "winter"]).topic_labels_.tolist()
    ['summer', 'winter']
    >>> rename_topics(lda, "-".join).topic_labels_[0].split("-")[:2] in (["0", "1"], ["2", "3"])
    True
    """
    names = topic_labels(model)
    if callable(labels):
        labels = [labels(words) for words in _distinctive_words(model, 10)]
    if not isinstance(labels, Mapping):
        several = isinstance(labels, Collection) and not isinstance(labels, str)
        if not several or len(labels) != len(names):
            raise ValueError(
                f"labels must hold one name for each of the {len(names)} topics, or a mapping from "
                f"numbers of topics to names; got {labels!r:.100}."
            )
        labels = dict(enumerate(labels))
    for topic, name in labels.items():
        names[topic_number(model.n_components, topic, "labels")] = str(name)
    new: Any = deepcopy(model)
    new.topic_labels_ = np.array(names, dtype=object)
    return new


def topic_labels(model: LatentDirichletAllocation) -> list[str]:
    """The names of a model's topics; those without one are called by three distinctive words.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import topic_labels
    >>> X = [[5, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> topic_labels(LatentDirichletAllocation(1, random_state=0).fit(X))
    ['2, 0, 3']
    """
    check_fitted_topics(model)
    own = [", ".join(words) for words in _distinctive_words(model, 3)]
    given = getattr(model, "topic_labels_", own)
    return [str(name or first) for name, first in zip(given, own)]


def _distinctive_words(model: LatentDirichletAllocation, n_words: int) -> list[list[str]]:
    """Words of each topic by p(v | k) / p(v)^0.4: their relevance (Sievert and Shirley, 2014)."""
    weights = model.components_ / model.components_.sum(axis=0) ** 0.4
    words = top_words(weights, min(n_words, model.n_features_in_))
    names = getattr(model, "vocabulary_", getattr(model, "feature_names_in_", None))
    return [[str(v if names is None else names[v]) for v in row] for row in words]


def topic_numbers(topics: Any, n_topics: int) -> list[int]:
    """Numbers of topics, checked."""
    if not isinstance(topics, Iterable):
        raise ValueError(f"topics must be numbers of topics; got {shown(topics)}.")
    return [topic_number(n_topics, topic, "topics") for topic in topics]


def topic_number(n_topics: int, topic: Any, name: str) -> int:
    """The number of a topic, checked; ``name`` is that of the argument."""
    most = n_topics - 1
    expected = f"the number of a topic, from 0 to {most}"
    check_number(topic, name, expected, least=0, most=most, whole=True)
    return int(topic)


def plain_topics(estimator: Any, X: Any) -> LatentDirichletAllocation:
    """The estimator that is fitted to counts of X: the one that is given, or one with all defaults.

    Counts have no words, so that seeds are turned into columns where X tells its words.
    """
    plain: Any = LatentDirichletAllocation() if estimator is None else estimator
    if not isinstance(plain, LatentDirichletAllocation):
        raise ValueError(f"estimator must be a LatentDirichletAllocation; got {shown(plain)}.")
    words = words_told(X)
    if plain.seed_topics is None or words is None:
        return plain
    plain = clone(plain)
    plain.vocabulary_, plain.n_features_in_ = words, len(words)
    led = zip(plain.seed_topics, columns_of_seeds(plain))
    seeds = {name: {"words": own, "without": out} for name, (own, out) in led}
    return clone(plain).set_params(seed_topics=seeds)


def words_told(X: Any) -> list[Any] | None:
    """The words of a corpus, or the columns of a frame; None where X does not tell them."""
    words = X.vocabulary if is_corpus(X) else getattr(X, "columns", None)
    return None if words is None else list(words)


def fitted_anew(plain: Any, X: Any, **parameters: Any) -> Any:
    """A fit with other parameters, in which topics that die or are copies are no trouble."""
    model = clone(plain).set_params(**parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopicWarning)
        return model.fit(X)


def check_fitted_topics(model: Any) -> None:
    """Refuse what is no topic model, and one that is not fitted."""
    if not isinstance(model, LatentDirichletAllocation):
        raise ValueError(f"model must be a LatentDirichletAllocation; got {shown(model)}.")
    check_is_fitted(model)


def _parts(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Copies of the topics' counts without the prior, [K, V], and of α."""
    check_fitted_topics(model)
    counts = np.maximum(model.components_.astype(np.float64) - model.topic_word_prior_, 0.0)
    return counts, np.array(model.doc_topic_prior_)


def _led(model: Any) -> NDArray[np.float64] | None:
    """The prior of words as a matrix [K, V], where topics are led."""
    return None if model._model.guide is None else np.array(model.topic_word_prior_)


def _remade(
    model: Any,
    counts: NDArray[np.float64],
    alpha: NDArray[np.float64],
    prior: NDArray[np.float64] | None,
    gone: Sequence[int] = (),
) -> LatentDirichletAllocation:
    """A copy of a model with other topics, and a prior of their own where some are led."""
    counts, alpha = np.delete(counts, gone, 0), np.delete(alpha, gone)
    new = deepcopy(model)
    new.n_components = len(counts)
    new._model.n_topics = len(counts)
    new._model.doc_topic_prior = alpha
    new._model._mean_prior_statistics = None  # learned of other topics
    if np.ndim(model.doc_topic_prior) == 1:
        new.doc_topic_prior = alpha  # one a topic was given
    eta = model._model.topic_word_prior
    parameters = np.ascontiguousarray(counts.T) + eta
    if prior is not None:
        prior = np.delete(prior, gone, 0)
        eta, guide = split_prior(prior)
        new._model.topic_word_prior, new._model.guide = eta, guide
        new.topic_word_prior, new.seed_topics = prior, None
        parameters = np.ascontiguousarray((counts + prior).T)
        if guide is not None:
            guide.hold(parameters, eta)
    elif np.ndim(model.topic_word_prior):
        new.topic_word_prior = eta  # a matrix of one number, with a row for each topic that was
    new._state = model._state._replace(posterior=Topics(parameters, eta), solved=())
    if hasattr(model, "topic_labels_"):
        labels = np.delete(model.topic_labels_, gone)
        n_new = len(counts) - labels.size
        # Without a name of its own, a new topic is called by its words.
        new.topic_labels_ = np.append(labels, np.array([""] * n_new, dtype=object))
    return new


def settled(model: Any, X: Any, passes: int, **options: Any) -> Any:
    """The model itself, changed by so many passes at T = 1 over all of the documents.

    Options are those of :func:`tempering.inference.fit`: a ``batch_size``, a ``learning_rate``.
    """
    check_whole(0, passes=passes)
    if X is None or passes == 0:
        return model
    documents = model._counts(X, reset=False)
    if not documents.sum() > 0:
        raise ValueError("X must hold at least one word for topics to settle.")
    # The kernels have threads of their own.
    options |= {"n_threads": 1, "elbo_every": 10**9, "final_elbo": False, "progress": False}
    options |= {"initial": model._state.posterior, "tolerance": 0.0, "seed": 0}
    result = fit(model._model, documents, max_passes=passes, **options)
    model._model = result.model
    model._state = model._state._replace(posterior=result.posterior)
    return model
