"""Topics that have become copies of each other, and what to do with the second one.

Where two topics end up as one, what the second should hold is spread over the others, and no single
step can mend it. So one of the copies takes over the other's words, and the one that is left begins
anew, with a share of all topics' words: it then gathers what they explain badly. If there is no
such thing, it soon is a copy of one of them again, nothing is lost, and there is a next time.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tempering.models.lda.topics import Topics

#: Overlap from which two topics count as one while they are being learned.
SAME = 0.95

#: Words that the overlap is computed from: the most frequent ones.
COMPARED_WORDS = 2000


def overlapping_pairs(counts: NDArray[np.floating], overlap: float) -> list[tuple[int, int]]:
    """Pairs of topics, by their counts [K, V], that overlap by more than this.

    The overlap of two distributions, sum_v sqrt(p_v q_v), is 1 where they are the same. A cosine of
    them would be next to 1 for any two topics that are half made of one and the same word. Counts
    are without the prior: it makes topics of next to no words alike, which are no copies.
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
    frequent = np.argsort(counts.sum(axis=1), kind="stable")[-COMPARED_WORDS:]
    pairs = overlapping_pairs(counts[frequent].T, SAME)
    if not pairs:
        return topics
    digest = blake2b(topics.totals().tobytes(), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "little"))
    n_words, n_topics = counts.shape
    begun: set[int] = set()
    for first, second in pairs:
        if first in begun or second in begun:
            continue
        begun.add(second)
        counts[:, first] += counts[:, second]
        counts[:, second] = 0.0
        share = rng.uniform(0.0, 2.0, n_words).astype(np.float32) / n_topics
        words = share * counts.sum(axis=1)
        counts *= (1.0 - share)[:, None]
        counts[:, second] = words
    return Topics(counts + np.float32(topics.offset), topics.offset)
