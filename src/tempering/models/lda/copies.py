"""Topics that have become copies of each other, and what to do with the second one.

Where two topics end up as one, what the second should hold is spread over the others, and no single
step can mend it. So one of the copies takes over the other's words, and the one that is left begins
anew, with a few of all topics' words: it then gathers what they explain badly. If there is no
such thing, it soon is a copy of one of them again, nothing is lost, and there is a next time.
Topics that died, with nothing but what is left of their start, count as copies, and begin anew too.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempering.models.lda.topics import WORDS_AT_A_TIME, Float32, Float64, Topics

#: Overlap from which two topics count as one while they are being learned.
SAME = 0.95

#: What a topic begins anew with, as a part of the mean size: what it gathers soon outweighs that.
BEGINNING = 0.1

#: Words that are frequent: in the others, what two topics hold differs by chance.
FREQUENT_WORDS = 2000

#: What rounding in float32 may take from an overlap.
ROUNDING = 1e-3


class Sizes(NamedTuple):
    """How much there is of each word and of each topic, without the prior."""

    words: Float32  # [V]
    topics: Float64  # [K]


def sizes_of(topics: Topics) -> Sizes:
    """What all topics hold of each word, and what each topic holds of all."""
    n_words, n_topics = topics.shape
    sizes = Sizes(np.empty(n_words, np.float32), np.zeros(n_topics))
    for words in _blocks(n_words):
        counts = topics.counts(words)
        sizes.words[words] = counts.sum(axis=1)
        # In float64: in float32, sums over a long vocabulary miss by percents.
        np.add(sizes.topics, counts.sum(axis=0, dtype=np.float64), out=sizes.topics)
    return sizes


def frequent_words(sizes: Sizes) -> NDArray[np.int64]:
    """The words that topics hold most of."""
    return np.argsort(sizes.words, kind="stable")[-FREQUENT_WORDS:]


def overlaps(counts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The overlaps of all pairs of topics, by their counts word by word [V, K].

    The overlap of two distributions, sum_v sqrt(p_v q_v), is 1 where they are the same. A cosine of
    them would be next to 1 for any two topics that are half made of one and the same word. Counts
    are without the prior: it makes all topics of few words alike.
    """
    roots = _roots(counts, counts.sum(axis=0, dtype=np.float64))
    return roots.T @ roots


def overlapping(topics: Topics, sizes: Sizes, overlap: float) -> NDArray[np.bool_]:
    """Which pairs of topics overlap by more than this, above the diagonal of [K, K].

    Frequent words first: the others add no more than if they were shared out alike, which is the
    root of the product of what the two topics hold of them (Cauchy-Schwarz). Few pairs can overlap
    by that, and only their topics are compared word by word.
    """
    frequent = _roots(topics.counts(frequent_words(sizes)), sizes.topics)
    within = frequent.T @ frequent
    others = np.sqrt(np.maximum(np.sign(sizes.topics) - within.diagonal(), 0.0))
    possible = np.triu(within + np.outer(others, others) > overlap - ROUNDING, 1)
    candidates = np.flatnonzero(possible.any(axis=0) | possible.any(axis=1))
    found = np.zeros((candidates.size, candidates.size))
    for words in _blocks(topics.shape[0] if candidates.size else 0):
        roots = _roots(topics.counts(words)[:, candidates], sizes.topics[candidates])
        found += roots.T @ roots
    same = np.zeros_like(possible)
    same[np.ix_(candidates, candidates)] = np.triu(found > overlap, 1)
    return same


def _roots(counts: NDArray[np.floating], totals: Float64) -> NDArray[np.floating]:
    """Square roots of the topics' probabilities, word by word."""
    return np.sqrt(counts / np.where(totals > 0, totals, 1.0).astype(counts.dtype))


def _blocks(n_words: int) -> list[slice]:
    """Some words at a time, so that what is computed of them stays small."""
    return [slice(n, n + WORDS_AT_A_TIME) for n in range(0, n_words, WORDS_AT_A_TIME)]


def owners(same: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Who keeps the words of each topic: itself, or the first of those that it is a copy of.

    >>> owners(np.array([[0.0, 0.3, 0.97], [0.0, 0.0, 0.2], [0.0, 0.0, 0.0]]) > 0.95)
    array([0, 1, 0])
    """
    kept_by = np.arange(len(same))
    for first in np.flatnonzero(same.any(axis=1)):
        if kept_by[first] == first:
            copies = np.flatnonzero(same[first])
            kept_by[copies[kept_by[copies] == copies]] = first
    return kept_by


def seed_of(totals: NDArray[np.floating]) -> int:
    """A seed that is made of the topics' sizes, by a hash."""
    return int.from_bytes(blake2b(totals.tobytes(), digest_size=8).digest(), "little")


def without_copies(topics: Topics) -> Topics:
    """The topics with all copies but the first begun anew; themselves if there are no copies.

    A function of the topics alone: what is random is made of them.
    """
    sizes = sizes_of(topics)
    # All words alone would miss copies that differ in rare ones, and frequent ones those that hold
    # hardly any of them.
    by_frequent = np.triu(overlaps(topics.counts(frequent_words(sizes))) > SAME, 1)
    kept_by = owners(by_frequent | overlapping(topics, sizes, SAME))
    begun = np.flatnonzero(kept_by != np.arange(len(kept_by)))
    if not begun.size:
        return topics
    counts = topics.counts()
    for copy in begun:
        counts[:, kept_by[copy]] += counts[:, copy]
    rng = np.random.default_rng(seed_of(topics.totals()))
    n_words, n_topics = counts.shape
    shares = rng.uniform(0.0, 2.0 * BEGINNING, (n_words, begun.size)).astype(np.float32) / n_topics
    counts *= 1.0 - shares.sum(axis=1, keepdims=True)
    counts[:, begun] = shares * sizes.words[:, None]
    return Topics(counts + np.float32(topics.offset), topics.offset)
