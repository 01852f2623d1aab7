"""Topics that have become copies of each other, and what to do with the second one.

Where two topics end up as one, what the second should hold is spread over the others, and no single
step can mend it. So one of the copies takes over the other's words, and the one that is left begins
anew, with a few of all topics' words: it then gathers what they explain badly. If there is no
such thing, it soon is a copy of one of them again, nothing is lost, and there is a next time.
Topics that died, with nothing but what is left of their start, count as copies, and begin anew too.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tempering.models.lda.topics import Topics

#: Overlap from which two topics count as one while they are being learned.
SAME = 0.95

#: What a topic begins anew with, as a part of the mean size: what it gathers soon outweighs that.
BEGINNING = 0.1

#: Words that are frequent: in the others, what two topics hold differs by chance.
FREQUENT_WORDS = 2000


def overlaps(counts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The overlaps of all pairs of topics, by their counts [K, V], above the diagonal.

    The overlap of two distributions, sum_v sqrt(p_v q_v), is 1 where they are the same. A cosine of
    them would be next to 1 for any two topics that are half made of one and the same word. Counts
    are without the prior: it makes all topics of few words alike.
    """
    totals = counts.sum(axis=1, keepdims=True)
    roots = np.sqrt(counts / np.where(totals > 0, totals, 1.0))
    return np.triu(roots @ roots.T, 1)


def larger_overlaps(counts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The overlaps by frequent words or by all, whichever is larger, of counts word by word [V, K].

    All words alone would miss copies that differ in rare ones, and frequent ones those that hold
    hardly any of them.
    """
    frequent = np.argsort(counts.sum(axis=1), kind="stable")[-FREQUENT_WORDS:]
    return np.maximum(overlaps(counts[frequent].T), overlaps(counts.T))


def overlapping_pairs(counts: NDArray[np.floating], overlap: float) -> list[tuple[int, int]]:
    """Pairs of topics, by their counts [K, V], that overlap by more than this."""
    return [(int(first), int(second)) for first, second in np.argwhere(overlaps(counts) > overlap)]


def owners(overlap: NDArray[np.floating]) -> NDArray[np.int64]:
    """Who keeps the words of each topic: itself, or the first of those that it is a copy of.

    >>> owners(np.array([[0.0, 0.3, 0.97], [0.0, 0.0, 0.2], [0.0, 0.0, 0.0]]))
    array([0, 1, 0])
    """
    kept_by, same = np.arange(len(overlap)), overlap > SAME
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
    counts = topics.counts()
    word_totals = counts.sum(axis=1)
    kept_by = owners(larger_overlaps(counts))
    begun = np.flatnonzero(kept_by != np.arange(len(kept_by)))
    if not begun.size:
        return topics
    for copy in begun:
        counts[:, kept_by[copy]] += counts[:, copy]
    rng = np.random.default_rng(seed_of(topics.totals()))
    n_words, n_topics = counts.shape
    shares = rng.uniform(0.0, 2.0 * BEGINNING, (n_words, begun.size)).astype(np.float32) / n_topics
    counts *= 1.0 - shares.sum(axis=1, keepdims=True)
    counts[:, begun] = shares * word_totals[:, None]
    return Topics(counts + np.float32(topics.offset), topics.offset)
