"""Topics that are copies of each other: which pairs overlap by more than so much.

Copies are told to the user, and not mended: topics that were restarted gained nothing in the mean
over corpora (``lab/`` has the study).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempering.models.lda.topics import WORDS_AT_A_TIME, Float32, Float64, Topics

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


def overlapping(topics: Topics, sizes: Sizes, overlap: float) -> NDArray[np.bool_]:
    """Which pairs of topics overlap by more than this, above the diagonal of [K, K].

    The overlap of two distributions, sum_v sqrt(p_v q_v), is 1 where they are the same. A cosine of
    them would be next to 1 for any two topics that are half made of one and the same word. Counts
    are without the prior: it makes all topics of few words alike.

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
