"""Topics that have become copies of each other, and what to do with the second one.

Where two topics end up as one, another one often holds the words of two: there are as many topics
as there should be, and no single step can mend it. So one of the copies takes over the other's
words, and the one that is left shares those of a third topic, word by word at random. If that topic
was two, they part; if it was not, they are copies again, nothing is lost, and there is a next time.
The third topic is the largest, which is the one that is two where topics are few and alike in size;
or, every other time, drawn by size: with many topics the largest hold what all documents share.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from tempering.models.base import Array
from tempering.models.lda.topics import Topics

#: Cosine similarity from which two topics count as one while they are being learned.
SAME = 0.9

#: Words that similarity is computed from: the most frequent ones.
COMPARED_WORDS = 2000

#: How unequally the words of a topic are shared out.
LEAST_SHARE = 0.1


def similar_pairs(topics: Array, similarity: float) -> list[tuple[int, int]]:
    """Pairs of topics [K, V] with a cosine similarity above this; topics of zeros have none."""
    lengths = np.linalg.norm(topics, axis=1, keepdims=True)
    unit = topics / np.where(lengths > 0, lengths, 1.0)
    pairs = np.argwhere(np.triu(unit @ unit.T, 1) > similarity)
    return [(int(first), int(second)) for first, second in pairs]


def without_copies(topics: Topics) -> Topics:
    """The topics with one of each pair of copies given to another topic; themselves if none are.

    A function of the topics alone: what is random is made of them, by a hash.
    """
    counts = topics.parameters() - np.float32(topics.offset)  # [V, K]
    frequent = np.argsort(counts.sum(axis=1), kind="stable")[-COMPARED_WORDS:]
    pairs = similar_pairs(np.maximum(counts[frequent].T, 0.0), SAME)
    if not pairs:
        return topics
    digest = blake2b(topics.totals().tobytes(), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "little"))
    sizes = np.maximum(counts.sum(axis=0, dtype=np.float64), 0.0)
    taken: set[int] = set()
    for first, second in pairs:
        if first in taken or second in taken:
            continue
        taken |= {first, second}
        sizes[[first, second]] = 0.0
        if not sizes.any():
            break
        drawn = rng.choice(sizes.size, p=sizes / sizes.sum())
        third = int(np.argmax(sizes) if rng.random() < 0.5 else drawn)
        taken.add(third)
        sizes[third] = 0.0
        counts[:, first] += counts[:, second]
        share = rng.uniform(LEAST_SHARE, 1.0 - LEAST_SHARE, counts.shape[0]).astype(np.float32)
        counts[:, second] = share * counts[:, third]
        counts[:, third] *= 1.0 - share
    return Topics(counts + np.float32(topics.offset), topics.offset)
