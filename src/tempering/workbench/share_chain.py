"""A Gibbs chain over topics and the words of documents, that goes on from draw to draw.

The state is the topic of each word. A draw makes topics from the words that they hold, then visits
the words some times, each given the topic and the other words of its document (θ summed out), then
draws θ given the words. A chain that began anew in each draw would pay its settling each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from tempering.models.compilation import ENTRY, njit
from tempering.models.lda.sampling import (
    GOLDEN,
    NOWHERE,
    Words,
    add_token,
    as_tokens,
    draw_topic,
    mix,
    new_chain,
    remove_token,
    uniform,
)
from tempering.models.threads import in_blocks, number_of_threads

#: Numbers that are held at a time of the documents' proportions.
ROOM = 2**23
#: Words of groups, at most, whose prior masses are held; with more, each document makes its own.
MOST_MASSES = 2**23


class ShareChain:
    """The topics of all words, and of documents that lie in groups with priors of their own.

    ``known`` [K, V] is what is known of topics without these documents, ``first`` [K, V] what
    topics are drawn from at first: both parameters of Dirichlets.
    """

    #: Gains and losses of the weight of the documents' priors in a draw, for :func:`next_weight`.
    mixing: tuple[float, float]

    def __init__(
        self,
        documents: Any,
        places: NDArray[np.intp],
        known: NDArray[np.float64],
        first: NDArray[np.float64],
        rng: np.random.Generator,
    ):
        used, columns = np.unique(documents.indices, return_inverse=True)
        counts = documents.data.astype(np.int64)
        self._documents = as_tokens(documents.indptr, columns, counts)
        self._places, self._rng, self._n_words = places, rng, documents.shape[1]
        self._words = np.repeat(self._documents.columns, counts)
        self._topics = np.full(self._words.size, NOWHERE)
        # Of words that no document has only the sum over them matters.
        self._known = np.ascontiguousarray(known[:, used].T)
        self._others = np.maximum(known.sum(axis=1) - self._known.sum(axis=0), 0.0)
        self._parameters = np.ascontiguousarray(first[:, used].T)
        self._first_others = np.maximum(first.sum(axis=1) - self._parameters.sum(axis=0), 0.0)

    def draw(self, priors: NDArray[np.float64], n_sweeps: int) -> NDArray[np.float64]:
        """Mean topic proportions of the documents of each group, with its prior: both [G, K]."""
        rows = self._draw_topics()
        masses = np.empty((0, 0))
        if len(priors) * len(rows) <= MOST_MASSES:
            masses = np.ascontiguousarray((rows @ priors.T).T)
        sums, gains, losses = np.zeros_like(priors), 0.0, 0.0
        weights = priors.sum(axis=1)
        for start, counts in self._visit(rows, masses, priors, n_sweeps):
            groups = self._places[start : start + len(counts)]
            held = counts.nonzero()
            own, prior = counts[held], priors[groups[held[0]], held[1]]
            gains += float(np.sum(prior * (digamma(own + prior) - digamma(prior))))
            lengths, weight = counts.sum(axis=1), weights[groups]
            losses += float(np.sum(weight * (digamma(lengths + weight) - digamma(weight))))
            theta = self._rng.standard_gamma(counts + priors[groups])
            theta += np.finfo(float).tiny  # so that a sum is never 0
            theta /= theta.sum(axis=1, keepdims=True)
            np.add.at(sums, groups, theta)
        self.mixing = gains, losses
        self._parameters, self._first_others = self._known.copy(), self._others
        add_words(self._words, self._topics, self._parameters)
        return sums / np.bincount(self._places, minlength=len(priors))[:, None]

    def sparsity(self, eta: float, n_words: int) -> tuple[float, float]:
        """Gains and losses of a prior η of all words in all topics in the last draw."""
        counts = self._parameters - self._known
        totals, own = counts.sum(axis=0), counts[counts > 0]
        gains = eta * np.sum(digamma(own + eta) - digamma(eta))
        weight = eta * n_words
        losses = weight * np.sum(digamma(totals + weight) - digamma(weight))
        return float(gains), float(losses)

    def know(self, eta: float) -> None:
        """From now on, topics have the prior η for every word."""
        n_others = self._n_words - len(self._known)
        self._parameters += eta - self._known
        self._known[:], self._others = eta, np.full_like(self._others, eta * n_others)
        self._first_others = self._others

    def _draw_topics(self) -> NDArray[np.float32]:
        """β of the words that documents have, a word a row."""
        weights = self._rng.standard_gamma(self._parameters)
        weights /= weights.sum(axis=0) + self._rng.standard_gamma(self._first_others)
        # A word that no topic can make goes anywhere.
        return np.maximum(weights, np.finfo(np.float32).tiny, dtype=np.float32, casting="same_kind")

    def _visit(
        self,
        rows: NDArray[np.float32],
        masses: NDArray[np.float64],
        priors: NDArray[np.float64],
        n_sweeps: int,
    ) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Visit the words of some documents at a time: the first of them, and counts [D, K]."""
        n_documents, n_topics = self._places.size, priors.shape[1]
        longest = int(np.diff(self._documents.first_tokens).max(initial=0))
        stream = np.uint64(self._rng.integers(2**62))
        step = max(1, ROOM // n_topics)
        for first in range(0, n_documents, step):
            counts = np.zeros((min(step, n_documents - first), n_topics))

            def visit(start: int, stop: int, first: int = first, counts: Any = counts) -> None:
                chain = new_chain(longest, n_topics)
                documents = (self._documents, self._places, self._topics)
                words = (rows, masses, priors, np.empty(0 if masses.size else len(rows)))
                continue_chains(
                    start, stop, first, stream, documents, words, n_sweeps, chain, counts
                )

            in_blocks(visit, len(counts), number_of_threads(None))
            yield first, counts


def next_weight(gains: float, losses: float, before: float, expected: float) -> float:
    """The weight of a prior after ``before``, by Minka's fixed point ("Estimating a Dirichlet
    distribution", 2000); what is ``expected`` counts as one datum."""
    return (1.0 + gains) / (1.0 / expected + losses / before)


@njit(**ENTRY)
def continue_chains(start, stop, first, seed, documents, words, n_sweeps, chain, counts):
    """Visit all words of the documents from `first + start` to `first + stop`, some times."""
    tokens, places, topics = documents
    rows, masses, priors, of_words = words
    for row in range(start, stop):
        d = first + row
        prior = priors[places[d]]
        if masses.size:
            of_words = masses[places[d]]
        else:
            for entry in range(tokens.indptr[d], tokens.indptr[d + 1]):
                v = tokens.columns[entry]
                total = 0.0
                for k in range(prior.size):
                    total += prior[k] * rows[v, k]
                of_words[v] = total
        own = Words(rows, of_words, prior)
        state = mix(mix(seed) + np.uint64(d))
        begin, n_tokens, n_active = tokens.first_tokens[d], 0, 0
        for entry in range(tokens.indptr[d], tokens.indptr[d + 1]):
            for _ in range(tokens.counts[entry]):
                chain.words[n_tokens] = tokens.columns[entry]
                topic = topics[begin + n_tokens]
                if topic == NOWHERE:  # the first draw: given those before it
                    state = state + GOLDEN  # whole numbers: exact in any order
                    share = uniform(state)
                    topic = draw_topic(chain.words[n_tokens], share, n_active, own, chain)
                n_active = add_token(n_tokens, topic, n_active, chain)
                n_tokens += 1
        for _ in range(n_sweeps):
            for i in range(n_tokens):
                n_active = remove_token(i, n_active, chain)
                state += GOLDEN
                topic = draw_topic(chain.words[i], uniform(state), n_active, own, chain)
                n_active = add_token(i, topic, n_active, chain)
        for i in range(n_tokens):
            topics[begin + i] = chain.topics[i]
        for a in range(n_active):
            counts[row, chain.active[a]] = chain.counts[a]
            chain.places[chain.active[a]] = NOWHERE


@njit(**ENTRY)
def add_words(words, topics, parameters):
    """Add the words of each topic to its parameters, [U, K]."""
    for i in range(words.size):
        parameters[words[i], topics[i]] += 1.0
