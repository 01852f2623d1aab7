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

#: Words that the overlap is computed from: the most frequent ones.
COMPARED_WORDS = 2000


def overlapping_pairs(counts: NDArray[np.floating], overlap: float) -> list[tuple[int, int]]:
    """Pairs of topics, by their counts [K, V], that overlap by more than this.

    The overlap of two distributions, sum_v sqrt(p_v q_v), is 1 where they are the same. A cosine of
    them would be next to 1 for any two topics that are half made of one and the same word. Counts
    are without the prior: it makes all topics of few words alike.
    """
    totals = counts.sum(axis=1, keepdims=True)
    roots = np.sqrt(counts / np.where(totals > 0, totals, 1.0))
    pairs = np.argwhere(np.triu(roots @ roots.T, 1) > overlap)
    return [(int(first), int(second)) for first, second in pairs]


def without_copies(topics: Topics) -> Topics:
    """The topics with all copies but the first begun anew; themselves if there are no copies.

    A function of the topics alone: what is random is made of them, by a hash.
    """
    counts = topics.counts()
    word_totals = counts.sum(axis=1)
    frequent = np.argsort(word_totals, kind="stable")[-COMPARED_WORDS:]
    begun: set[int] = set()
    for first, second in overlapping_pairs(counts[frequent].T, SAME):
        if first not in begun and second not in begun:
            begun.add(second)
            counts[:, first] += counts[:, second]
    if not begun:
        return topics
    digest = blake2b(topics.totals().tobytes(), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "little"))
    n_words, n_topics = counts.shape
    shares = rng.uniform(0.0, 2.0 * BEGINNING, (n_words, len(begun))).astype(np.float32) / n_topics
    counts *= 1.0 - shares.sum(axis=1, keepdims=True)
    counts[:, sorted(begun)] = shares * word_totals[:, None]
    return Topics(counts + np.float32(topics.offset), topics.offset)
