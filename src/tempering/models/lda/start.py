"""The topics that a fit starts from.

What words of one topic alone would keep are the corners of all company that there is.
They are found in two ways: whether or not a word lies there (:mod:`tempering.models.lda.recovery`);
and as anchors, K words that are each the farthest off from those before it (Arora et al., ICML
2013), less what chance alone puts between rare words. Words are shared out among the corners by
their company, and the start that predicts words better is taken. Very many topics start from
corners alone, or, if they have few words each, from the company of their anchors. Led topics start
from their words and the company of these. No random number takes part: all seeds start alike.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from tempering.models.base import Array, DataSource
from tempering.models.lda.priors import documents_to_predict, predicted_words
from tempering.models.lda.recovery import (
    FEWER_PAIRED_WORDS,
    MOST_PAIRED_WORDS,
    CorpusPieces,
    Piece,
    anchor_shares,
    company_of,
    corners_of_company,
    occurrences,
)
from tempering.models.lda.topics import Topics

#: Words of the documents that topics start from, where they start from words; and how many for each
#: topic, and at most, where very many topics are told apart.
START_WORDS = 1_000_000
START_WORDS_OF_A_TOPIC, MOST_START_WORDS = 500_000, 100_000_000

#: Words that may become anchors: the company of a rare word is mostly chance. Twice the number of
#: topics, if that is more.
CANDIDATES = 1000

#: Anchors at most: to find them takes time as the cube of their number.
MOST_ANCHORS = 2000

#: Words are shared out among so many topics, or among more of so many words each: the company of a
#: great many anchors differs by chance alone, and the words would be shared out by chance.
FEW_TOPICS, WORDS_OF_A_TOPIC = 100, 100_000

#: The part of a starting topic that is spread as all words are, so that it can gather any of them.
SPREAD = 0.1


def initial_topics(model: Any, source: DataSource, rng: np.random.Generator) -> Topics:
    """λ before the first step."""
    eta, guide = model.topic_word_prior, model.guide
    # Gamma(100, 1/100): near 1, and not alike.
    topics = rng.standard_gamma(100.0, size=(model.n_words, model.n_topics)) * 0.01
    order, led, n_found = np.arange(model.n_topics), None, 0
    if guide is not None:
        first, led = guide.leads(eta, model.n_words)
        order, n_found = np.append(first, np.delete(order, first)), first.size
    # All words, shared out; beside random draws, as many as these.
    size = model.n_words
    if model.start == "words":
        size, n_found = source.size * model.mean_length / model.n_topics, model.n_topics
    if n_found:
        # The same documents with every seed, so that all start alike.
        n_words = words_to_look_at(n_found, source.size * model.mean_length)
        n_documents = math.ceil(n_words / model.mean_length)
        documents = source.sample(n_documents, np.random.default_rng(0))
        found = anchored_topics(documents, n_found, led, model.n_threads)
        found *= size
        found += eta
        # Times the draws, as those of very few documents can be alike, and would stay so.
        topics[:, order[: found.shape[1]]] *= found
    if guide is not None:
        topics[guide.words] += guide.counts
        guide.hold(topics, eta)
    return Topics(topics, eta)


def words_to_look_at(n_topics: int, n_words: float) -> float:
    """How many of the words of a corpus its topics start from."""
    most = min(n_words, START_WORDS_OF_A_TOPIC * n_topics, MOST_START_WORDS)
    enough = not are_few(n_topics) and most >= WORDS_OF_A_TOPIC * n_topics
    return most if enough else START_WORDS


def are_few(n_topics: int) -> bool:
    """Whether topics are not very many."""
    return n_topics <= FEW_TOPICS


def tells_topics_apart(model: Any, n_words: float) -> bool:
    """Whether the topics that a fit to so many words starts from are told apart: unless they are
    led, or very many of few words each."""
    enough = are_few(model.n_topics) or words_to_look_at(model.n_topics, n_words) > START_WORDS
    return enough and model.start == "words" and model.guide is None


def anchored_topics(X: Any, n_topics: int, led: Array | None = None, n_threads: int = 1) -> Array:
    """Topics to start from, [V, K]; fewer where documents do not tell so many words apart."""
    n_topics = min(n_topics, MOST_ANCHORS)
    documents = CorpusPieces(X, n_threads)
    n_documents, words = documents.total(occurrences)
    order = np.argsort(-n_documents, kind="stable")[: np.count_nonzero(n_documents)]
    if order.size == 0:
        return np.zeros((X.shape[1], 0))
    led = np.zeros((X.shape[1], 0)) if led is None else led[:, :n_topics]
    led = _with_company(documents, led, words)
    shared = n_topics <= max(FEW_TOPICS, words.sum() / WORDS_OF_A_TOPIC)
    if not shared:
        return _from_anchors(documents, order, words, n_topics, led, shared)
    if led.shape[1]:
        own = _spread(led, words)
        if own.shape[1] == n_topics:
            return own
        others = anchored_topics(X, n_topics, None, n_threads)
        alike = np.array([np.minimum(others.T, topic).sum(axis=1) for topic in own.T])
        twins = linear_sum_assignment(alike, maximize=True)[1]
        return np.hstack([own, np.delete(others, twins, axis=1)])
    by_corners = _from_corners(documents, order, words, n_topics)
    if by_corners is not None and n_topics > FEW_TOPICS:
        return by_corners
    by_anchors = _from_anchors(documents, order, words, n_topics, led, shared)
    if by_corners is None:
        return by_anchors
    if by_anchors.shape[1] < n_topics:
        return by_corners
    # Documents to compare the two by, from all over the corpus.
    step = max(1, X.shape[0] // documents_to_predict(documents.lengths.mean()))
    some = sparse.csr_matrix(X[::step])
    prior = np.full(n_topics, 1.0 / n_topics)
    nats = [predicted_words(own, prior, some, n_threads) for own in (by_corners, by_anchors)]
    return by_corners if nats[0] >= nats[1] else by_anchors


def _from_corners(
    documents: CorpusPieces, order: NDArray[np.int64], words: Array, n_topics: int
) -> Array | None:
    """Words shared out among the corners of all company; None where these are fewer."""
    common = np.sort(order[: FEWER_PAIRED_WORDS if are_few(n_topics) else MOST_PAIRED_WORDS])
    corners = corners_of_company(documents, common, n_topics)
    if len(corners) < n_topics:
        return None
    topics = anchor_shares(documents, np.sort(order), common, corners)
    return _spread(topics * words[:, None], words)


def _from_anchors(
    documents: CorpusPieces,
    order: NDArray[np.int64],
    words: Array,
    n_topics: int,
    led: Array,
    shared: bool,
) -> Array:
    """Words shared out among anchors, or the company of these; topics that are led come first."""
    candidates = np.sort(order[: max(CANDIDATES, 2 * n_topics)])
    company, with_itself, chance = documents.total(lambda piece: company_of(piece, candidates))
    np.fill_diagonal(company, np.maximum(company.diagonal() - with_itself, 0.0))
    totals = company.sum(axis=1)
    known = np.flatnonzero(totals > 0)

    n_left, among = n_topics - led.shape[1], normalised_rows(led[candidates].T)
    company = company[known] / totals[known, None]
    chance = chance[known] / totals[known] ** 2
    chosen = farthest_rows(company, n_left, among, chance if shared else 0.0)

    if shared:
        anchors = company[chosen]
        topics = anchor_shares(documents, np.sort(order), candidates, anchors, chance[chosen])
        topics *= words[:, None]
    else:
        found = candidates[known[chosen]]
        (topics,) = documents.total(
            lambda piece: ((piece.counts.T @ piece.pairs(found)).toarray(),)
        )
        topics = np.hstack([led, topics]) if led.shape[1] else topics
    return _spread(topics, words)


def _spread(topics: Array, words: Array) -> Array:
    """Topics that sum to 1, spread a little as all words are; the table is written over."""
    totals = np.maximum(topics.sum(axis=0), np.finfo(float).tiny)
    topics *= 1.0 - SPREAD  # in place, as they can be large
    topics /= totals
    topics += SPREAD * (words / words.sum())[:, None]
    return topics


def _with_company(documents: CorpusPieces, led: Array, words: Array) -> Array:
    """Topics of words that lead them, one half, and the words that keep them company, the other."""
    if not led.shape[1]:
        return led
    own = led / led.sum(axis=0)

    def of_piece(piece: Piece) -> tuple[Array, ...]:
        pairs = sparse.diags(piece.weights) @ piece.counts
        return piece.counts.T @ (pairs @ own), np.asarray(pairs.sum(axis=0)).reshape(-1, 1)

    company, with_itself = documents.total(of_piece)
    company = normalised_rows(np.maximum(company - with_itself * own, 0.0).T)
    company -= normalised_rows(words.reshape(1, -1))
    return own + normalised_rows(np.maximum(company, 0.0)).T


def normalised_rows(rows: Array) -> Array:
    """Rows that sum to 1, or are 0."""
    rows = np.asarray(rows)
    return rows / np.maximum(rows.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def farthest_rows(
    points: Array, n: int, given: Array | None = None, chance: Array | float = 0.0
) -> NDArray[np.int64]:
    """Numbers of up to n rows, each as far as can be from the plane through those before it."""
    if not len(points) or n < 1:
        return np.zeros(0, np.int64)
    chosen, given = [], np.empty((0, points.shape[1])) if given is None else given
    if not len(given):
        chosen.append(int(np.argmax(_products(points, points) - chance)))
    origin = given[0] if len(given) else points[chosen[0]]
    offsets = points - origin
    left = _products(offsets, offsets)  # squared distances from the plane
    smallest = 1e-9 * left.max()
    n_given = max(len(given) - 1, 0)
    n_rows = min(n, len(points)) - len(chosen)
    directions = np.empty((n_given + n_rows, points.shape[1]))
    for m, direction in enumerate(directions):
        apart = left > smallest
        row = -1 if m < n_given else int(np.argmax(np.where(apart, left - chance, -np.inf)))
        if row >= 0 and not apart[row]:
            break
        direction[:] = given[m + 1] - origin if row < 0 else offsets[row]
        for _ in range(2):  # the second time for what rounding left
            direction -= np.einsum("ij,i->j", directions[:m], _products(directions[:m], direction))
        length = np.sqrt(_products(direction, direction))
        if row < 0 and length**2 <= smallest:
            direction[:] = 0.0  # it lies in the plane already
            continue
        direction /= length
        left -= _products(offsets, direction) ** 2
        if row >= 0:
            chosen.append(row)
    return np.array(chosen)


def _products(x: Array, y: Array) -> Array:
    """Inner products of rows, without BLAS: on several threads its rounding would decide ties."""
    return np.einsum("...j,...j->...", x, y)
