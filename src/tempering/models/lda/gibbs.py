"""Collapsed Gibbs sampling of documents, token by token, with the topics held fixed.

For token i of a document, with word v and the counts n_k of the document's other tokens,

    p(z_i = k | the others) ∝ (n_k + α_k) β_kv.

The weight splits into n_k β_kv, over the few topics that the document holds, and α_k β_kv, whose
sum is the same in all documents (Yao, Mimno and McCallum, KDD 2009): a token seldom looks at all
topics. Each document draws from a stream of its own, so that no result depends on the threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tempering.models.fastmath import ENTRY, KERNEL

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
FIRST_SHIFT, SECOND_SHIFT, THIRD_SHIFT = np.uint64(30), np.uint64(27), np.uint64(31)
UNUSED_BITS = np.uint64(11)
NOWHERE = np.uint32(2**32 - 1)


class Documents(NamedTuple):
    """Documents as a compressed sparse matrix; a column is a row of ``Words``."""

    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    counts: NDArray[np.int64]
    first_tokens: NDArray[np.int64]  # [D + 1], where each document's tokens begin


def as_tokens(
    indptr: NDArray[np.int64], columns: NDArray[np.int32], counts: NDArray[np.int64]
) -> Documents:
    """Documents with whole counts, each token counted."""
    return Documents(indptr, columns, counts, np.append(0, np.cumsum(counts))[indptr])


class Words(NamedTuple):
    """β_kv with a word a row, and Σ_k α_k β_kv."""

    rows: NDArray[np.float32]
    prior_masses: NDArray[np.float64]
    alpha: NDArray[np.float64]


class Chain(NamedTuple):
    """Room for the chain of one document.

    The topics that it holds, ``active``, stand in no order. ``places`` says where each topic
    stands there, and is ``NOWHERE`` for all topics between two documents. Places are unsigned: so
    Numba need not ask whether one is negative.
    """

    words: NDArray[np.uint32]
    topics: NDArray[np.uint32]
    active: NDArray[np.uint32]
    counts: NDArray[np.float64]  # tokens of each active topic
    weights: NDArray[np.float64]  # of the active topics for one token, added up
    places: NDArray[np.uint32]


def new_chain(n_tokens: int, n_topics: int) -> Chain:
    """Room for documents of up to so many tokens."""
    return Chain(
        np.empty(n_tokens, np.uint32),
        np.empty(n_tokens, np.uint32),
        np.empty(n_topics, np.uint32),
        np.empty(n_topics, np.float64),
        np.empty(n_topics, np.float64),
        np.full(n_topics, NOWHERE),
    )


@njit(**ENTRY)
def sample_documents(start, stop, seed, documents, words, burn_in, n_sweeps, chain, means):
    """Set the mean topic counts of the documents from `start` to `stop`, each by itself."""
    for d in range(start, stop):
        n_tokens = lay_out(d, documents, words, chain)
        sample_document(d, n_tokens, seed, words, burn_in, n_sweeps, chain, means[d])
        for k in range(words.alpha.size):
            means[d, k] /= n_sweeps


@njit(**KERNEL)
def lay_out(d, documents, words, chain):
    """Write document d out token by token; the number of tokens."""
    n_tokens = 0
    for entry in range(documents.indptr[d], documents.indptr[d + 1]):
        if words.prior_masses[documents.columns[entry]] > 0.0:
            for _ in range(documents.counts[entry]):
                chain.words[n_tokens] = documents.columns[entry]
                n_tokens += 1
    return n_tokens


@njit(**KERNEL)
def sample_document(d, n_tokens, seed, words, burn_in, n_sweeps, chain, count_sums):
    """Run the chain of one document and add up the topic counts of the sweeps that are kept."""
    state = mix(mix(seed) + np.uint64(d))
    n_active = 0
    # The start draws each token given those before it: nearer to the posterior than uniform topics.
    for i in range(n_tokens):
        state += GOLDEN
        topic = draw_topic(chain.words[i], uniform(state), n_active, words, chain)
        n_active = add_token(i, topic, n_active, chain)
    for sweep in range(burn_in + n_sweeps):
        for i in range(n_tokens):
            n_active = remove_token(i, n_active, chain)
            state += GOLDEN
            topic = draw_topic(chain.words[i], uniform(state), n_active, words, chain)
            n_active = add_token(i, topic, n_active, chain)
        if sweep >= burn_in:
            for a in range(n_active):
                count_sums[chain.active[a]] += chain.counts[a]
    for a in range(n_active):
        chain.places[chain.active[a]] = NOWHERE


@njit(**KERNEL)
def draw_topic(v, share, n_active, words, chain):
    """The topic at the given share, in [0, 1), of the weights (n_k + α_k) β_kv.

    Rounding may carry the point past the last weight of all; the last topic that has any takes it.
    """
    held = 0.0
    for a in range(n_active):
        held += chain.counts[a] * np.float64(words.rows[v, chain.active[a]])
        chain.weights[a] = held
    point = share * (held + words.prior_masses[v])
    if point < held:
        a = 0
        while point >= chain.weights[a]:
            a += 1
        return chain.active[a]
    point -= held
    topic = np.uint32(0)
    for k in range(words.alpha.size):
        weight = words.alpha[k] * np.float64(words.rows[v, k])
        if weight > 0.0:
            topic = np.uint32(k)
            point -= weight
            if point < 0.0:
                break
    return topic


@njit(**KERNEL)
def add_token(i, topic, n_active, chain):
    """Put token i into a topic; the number of active topics."""
    chain.topics[i] = topic
    place = chain.places[topic]
    if place == NOWHERE:
        chain.places[topic] = n_active
        chain.active[n_active] = topic
        chain.counts[n_active] = 1.0
        return n_active + 1
    chain.counts[place] += 1.0
    return n_active


@njit(**KERNEL)
def remove_token(i, n_active, chain):
    """Take token i out of its topic; the number of active topics."""
    topic = chain.topics[i]
    place = chain.places[topic]
    chain.counts[place] -= 1.0
    if chain.counts[place] == 0.0:
        n_active -= 1
        last = chain.active[n_active]
        chain.active[place] = last
        chain.counts[place] = chain.counts[n_active]
        chain.places[last] = place
        chain.places[topic] = NOWHERE
    return n_active


@njit(**KERNEL)
def mix(bits):
    """The output function of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), a bijection."""
    bits = (bits ^ (bits >> FIRST_SHIFT)) * FIRST_FACTOR
    bits = (bits ^ (bits >> SECOND_SHIFT)) * SECOND_FACTOR
    return bits ^ (bits >> THIRD_SHIFT)


@njit(**KERNEL)
def uniform(state):
    """A number in [0, 1) from the state of a stream."""
    return np.float64(mix(state) >> UNUSED_BITS) * (1.0 / 9007199254740992.0)
