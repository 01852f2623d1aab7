"""The last touch to topics of few words each: collapsed Gibbs sampling, averaged.

A stochastic step lets each document meet topics that remember its own words. Where a word is rare,
that memory is most of what they know about it: its tokens stay where they happened to be. In a
collapsed chain (Griffiths and Steyvers, PNAS 2004) a token meets all others and never itself. With
n the counts of the other tokens,

    p(z_i = k | the others) ∝ (n_dk + α_k) (n_kv + η) / (n_k + V η),

and λ is η plus the mean of what the tokens of a word expect, over the sweeps that count. η and the
sum of α are moved to where they make the counts most likely, as those of a default are guesses.

Such a chain believes the model more than a stochastic fit does, so it is for documents that follow
it. In real ones a word that is there comes again, or, in titles, does not, and topics of a chain
are worse there. That is told by how often equal words meet in a topic of a document: it is given up
where that is more or less often than they meet in the topic of two documents.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import digamma

from tempering.models.fastmath import ENTRY, KERNEL, f32, total_of
from tempering.models.lda.layout import Float32, Float64
from tempering.models.lda.priors import LARGEST_PRIOR, SMALLEST_PRIOR
from tempering.models.lda.sampling import GOLDEN, can_be_sampled, mix, uniform
from tempering.models.lda.start import are_few
from tempering.models.lda.topics import Topics, compact_words

#: Sweeps to begin with, with topics held as they are; collapsed ones, and those of them that count.
HELD_SWEEPS, SWEEPS, MEAN = 4, 40, 30

#: Sweeps from one look at the priors to the next, and rounds of Minka's fixed point at each.
LOOK, ROUNDS = 5, 5

#: Topics of more words than this, on average, have little to gain; of fewer, nothing to go by.
MOST_WORDS_OF_A_TOPIC, FEWEST_WORDS_OF_A_TOPIC = 5_000, 100

#: By what factor pairs of equal words may differ from what is expected.
AS_EXPECTED = 1.15


class Tokens(NamedTuple):
    """Documents token by token, and the topic of each."""

    firsts: NDArray[np.int64]  # [D + 1], where each document begins
    words: NDArray[np.int32]
    topics: NDArray[np.uint32]


class Room(NamedTuple):
    """What a chain writes to."""

    rows: Float32  # λ of the words that are in use, [U, K]
    totals: Float32  # its sums over all words, [K]
    held: Float32  # tokens of a document in each topic, [K]
    scaled: Float32  # (n_dk + α_k) over the totals, [K]
    weights: Float32  # of the topics for a token, [K]
    sums: Float32  # what the tokens of a word expect, added up, [U, K]


def repeated_words(tokens: Tokens, n_topics: int) -> float:
    """Pairs of equal words in one topic of a document, over what is expected.

    As many are expected as among pairs of tokens of that topic from two documents. Given topics of
    tokens that are drawn from the posterior this is 1 on average, if documents follow the model.
    """
    lengths, words = np.diff(tokens.firsts), tokens.words.astype(np.int64)
    topics = tokens.topics.astype(np.int64)
    documents = np.repeat(np.arange(lengths.size), lengths)

    def pairs(of: NDArray[np.int64]) -> tuple[Any, Any]:
        """Of tokens in each cell of a topic and something: pairs, with and without itself, [K]."""
        cells, n = np.unique(of * n_topics + topics, return_counts=True)
        own = cells % n_topics
        squares = np.bincount(own, n.astype(float) ** 2, n_topics)
        return squares, squares - np.bincount(own, n, n_topics)

    all_pairs, _ = pairs(np.zeros_like(words))
    of_words, _ = pairs(words)
    of_documents, within = pairs(documents)
    of_both, repeated = pairs(documents * (words.max() + 1) + words)
    apart = np.maximum(all_pairs - of_documents, 1.0)
    expected = float(within @ ((of_words - of_both) / apart))
    return float(repeated.sum()) / expected if expected > 0.0 else np.inf


def collapsed_topics(
    topics: Topics, documents: Any, alpha: Float64, seed: int, *, learn_alpha: bool
) -> Topics | None:
    """Topics by a chain over all tokens of documents [D, V], from those that a fit has found.

    None where these are to stay: where topics are very many, where they have many words each or
    next to none, and where documents do not follow the model.
    """
    (n_words, n_topics), eta = topics.shape, topics.offset
    of_a_topic = float(documents.data.sum(dtype=np.float64)) / n_topics
    if not FEWEST_WORDS_OF_A_TOPIC <= of_a_topic <= MOST_WORDS_OF_A_TOPIC:
        return None
    if not are_few(n_topics) or not can_be_sampled(documents.data):
        return None
    used, columns = compact_words(documents.indices, n_words)
    counts = documents.data.astype(np.int64)
    firsts = np.append(0, np.cumsum(counts))[documents.indptr].astype(np.int64)
    words = np.repeat(columns, counts)
    tokens = Tokens(firsts, words, np.zeros(words.size, np.uint32))
    rows, totals = topics.rows(used), topics.totals().astype(np.float32)
    held, scaled, weights = np.empty((3, n_topics), np.float32)
    room = Room(rows, totals, held, scaled, weights, np.zeros_like(rows))
    narrow = alpha.astype(np.float32)
    for sweep in range(-HELD_SWEEPS, SWEEPS):
        if 0 <= sweep <= SWEEPS - MEAN and sweep % LOOK == 0:
            of_words = np.zeros_like(rows)
            np.add.at(of_words, (words, tokens.topics), np.float32(1.0))
            if sweep:
                eta = likeliest_eta(of_words, eta, n_words)
            if sweep and learn_alpha:
                alpha = likeliest_sum(tokens, alpha)
                narrow = alpha.astype(np.float32)
            np.add(of_words, np.float32(eta), out=rows)
            totals[:] = of_words.sum(axis=0, dtype=np.float64) + n_words * eta
        if sweep == SWEEPS - MEAN:
            repeated = repeated_words(tokens, n_topics)
            if not 1.0 / AS_EXPECTED < repeated < AS_EXPECTED:
                return None
        first, fixed, keeps = sweep == -HELD_SWEEPS, sweep < 0, sweep >= SWEEPS - MEAN
        start = np.uint64(seed + (sweep + HELD_SWEEPS) * words.size)
        sweep_tokens(tokens, narrow, start, first, fixed, keeps, room)
    parameters = np.full(topics.shape, eta)
    parameters[used] += room.sums / MEAN
    return Topics(parameters, eta)


def likeliest_eta(counts: Float32, eta: float, n_words: int) -> float:
    """η that makes counts [U, K] of tokens by word and topic most likely (Minka, 2000)."""
    totals, seen = counts.sum(axis=0, dtype=np.float64), counts[counts > 0].astype(np.float64)
    for _ in range(ROUNDS):
        rise = (digamma(seen + eta) - digamma(eta)).sum()
        fall = n_words * (digamma(totals + n_words * eta) - digamma(n_words * eta)).sum()
        eta = float(np.clip(eta * rise / fall, SMALLEST_PRIOR, LARGEST_PRIOR))
    return eta


def likeliest_sum(tokens: Tokens, alpha: Float64) -> Float64:
    """α with the sum that makes the topics of documents most likely; its shares stay."""
    lengths = np.diff(tokens.firsts)
    documents = np.repeat(np.arange(lengths.size), lengths)
    cells, counts = np.unique(documents * alpha.size + tokens.topics, return_counts=True)
    for _ in range(ROUNDS):
        own, total = alpha[cells % alpha.size], alpha.sum()
        rise = (own * (digamma(counts + own) - digamma(own))).sum()
        fall = total * (digamma(lengths + total) - digamma(total)).sum()
        alpha = np.clip(alpha * (rise / fall), SMALLEST_PRIOR, LARGEST_PRIOR)
    return alpha


@njit(**ENTRY)
def sweep_tokens(tokens, alpha, seed, first, held, keeps, room):
    """Draw the topic of every token anew, one after the other.

    The ``first`` sweep draws each given those before it in its document; while topics are ``held``
    they do not change; with ``keeps`` expectations are added up.
    """
    state = mix(seed)
    for d in range(tokens.firsts.size - 1):
        room.held[:] = f32(0.0)
        if not first:
            for i in range(tokens.firsts[d], tokens.firsts[d + 1]):
                room.held[tokens.topics[i]] += f32(1.0)
        for k in range(alpha.size):
            room.scaled[k] = (room.held[k] + alpha[k]) / room.totals[k]
        for i in range(tokens.firsts[d], tokens.firsts[d + 1]):
            v = tokens.words[i]
            if not first:
                move_token(v, tokens.topics[i], f32(-1.0), held, alpha, room)
            for k in range(alpha.size):
                room.weights[k] = room.scaled[k] * room.rows[v, k]
            total = total_of(room.weights)
            if keeps:
                part = f32(1.0) / total
                for k in range(alpha.size):
                    room.sums[v, k] += part * room.weights[k]
            state += GOLDEN
            topic, point = np.uint32(0), f32(uniform(state)) * total - room.weights[0]
            while point >= f32(0.0) and topic < alpha.size - 1:
                topic += np.uint32(1)
                point -= room.weights[topic]
            tokens.topics[i] = topic
            move_token(v, topic, f32(1.0), held, alpha, room)


@njit(**KERNEL)
def move_token(v, topic, step, held, alpha, room):
    """Put a token of a word into a topic, or take it out."""
    room.held[topic] += step
    if not held:
        room.rows[v, topic] += step
        room.totals[topic] += step
    room.scaled[topic] = (room.held[topic] + alpha[topic]) / room.totals[topic]
