"""Topics that died or became copies of each other.

The user is told of them, and they are left as they are: topics that were restarted gained nothing
in the mean over corpora (``lab/`` has the study).
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempering.models.lda.guide import Guide
from tempering.models.lda.layout import Float32, Float64
from tempering.models.lda.topics import WORDS_AT_A_TIME, Topics

#: Overlap from which two topics count as one.
COPY_OVERLAP = 0.99

#: A topic is used if it holds so many words, or, where X holds weights that are no counts or words
#: are few, this part of what topics hold on average.
FEWEST_USED_WORDS, SMALLEST_SHARE = 5.0, 0.1

#: Words that are compared first, and at a time.
FREQUENT_WORDS = 2000

#: What rounding in float32 may take from an overlap.
OVERLAP_ROUNDING = 1e-3

#: So many names stand in a warning; the rest are counted.
NAMED_TOPICS = 8


class TopicWarning(UserWarning):
    """A topic has died, or is a copy of another one."""


def warn_of_troubles(topics: Topics, n_tokens: float, guide: Guide | None = None) -> None:
    """Warn, by name, of topics that died or became copies; called by a ``fit``."""
    sizes = sizes_of(topics)
    # What words lead a topic is no document's.
    held = sizes.topics if guide is None else sizes.topics - guide.totals()
    unused = unused_topics(held, n_tokens)
    troubles = describe_troubles(unused, copied_topics(topics, sizes, unused))
    if troubles:
        warnings.warn(troubles, TopicWarning, stacklevel=4)


def unused_topics(counts: NDArray[np.floating], n_tokens: float) -> np.ndarray:
    """Topics that hold next to nothing, of expected counts [K] scaled to the whole corpus."""
    return np.flatnonzero(counts < min(FEWEST_USED_WORDS, SMALLEST_SHARE * n_tokens / len(counts)))


def copied_topics(topics: Topics, sizes: TopicSizes, skip: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of topics that are nearly the same, leaving some out."""
    same = overlapping(topics, sizes, COPY_OVERLAP)
    same[skip] = same[:, skip] = False
    return [(int(first), int(second)) for first, second in np.argwhere(same)]


def describe_troubles(unused: np.ndarray, copies: list[tuple[int, int]]) -> str | None:
    """A sentence that names them, or None if all is well."""
    parts = []
    if len(unused):
        parts.append(f"topics with next to no words: {_names([str(k) for k in unused])}")
    if copies:
        parts.append(f"topics that are copies: {_names([f'{a} = {b}' for a, b in copies])}")
    if not parts:
        return None
    return (
        "; ".join(parts) + ". They do no harm to predictions, but fewer components, more passes or "
        "another random_state may serve better."
    )


class TopicSizes(NamedTuple):
    """How much there is of each word and of each topic, without the prior."""

    words: Float32  # [V]
    topics: Float64  # [K]


def sizes_of(topics: Topics) -> TopicSizes:
    """What all topics hold of each word, and what each topic holds of all."""
    n_words, n_topics = topics.shape
    sizes = TopicSizes(np.empty(n_words, np.float32), np.zeros(n_topics))
    for words in _blocks(n_words):
        counts = topics.counts(words)
        sizes.words[words] = counts.sum(axis=1)
        # In float64: in float32, sums over a long vocabulary miss by percents.
        np.add(sizes.topics, counts.sum(axis=0, dtype=np.float64), out=sizes.topics)
    return sizes


def overlapping(topics: Topics, sizes: TopicSizes, overlap: float) -> NDArray[np.bool_]:
    """Which pairs of topics overlap by more than this, above the diagonal of [K, K].

    The overlap of two distributions, sum_v sqrt(p_v q_v), is 1 where they are the same. A cosine of
    them would be next to 1 for any two topics that are half made of one and the same word. Counts
    are without the prior: it makes all topics of few words alike.

    Frequent words come first. The words that are left add no more than if they were shared out
    alike, which is the root of the product of what the two topics hold of them (Cauchy-Schwarz), so
    that soon few topics are left to compare.
    """
    order = np.argsort(-sizes.words, kind="stable")[: np.count_nonzero(sizes.words)]
    left = np.flatnonzero(sizes.topics > 0)
    found = np.zeros((left.size, left.size))
    start = 0
    while start < order.size and left.size:
        words = order[start : start + max(FREQUENT_WORDS, start)]
        start += words.size
        for block in np.array_split(words, -(-words.size // FREQUENT_WORDS)):
            counts = topics.counts(block)[:, left]
            roots = np.sqrt(counts / sizes.topics[left].astype(counts.dtype))
            found += roots.T @ roots
        others = np.sqrt(np.maximum(1.0 - found.diagonal(), 0.0))
        possible = np.triu(found + np.outer(others, others) > overlap - OVERLAP_ROUNDING, 1)
        some = np.flatnonzero(possible.any(axis=0) | possible.any(axis=1))
        left, found = left[some], found[np.ix_(some, some)]
    same = np.zeros((sizes.topics.size, sizes.topics.size), bool)
    same[np.ix_(left, left)] = np.triu(found > overlap, 1)
    return same


def _blocks(n_words: int) -> list[slice]:
    """Some words at a time, so that what is computed of them stays small."""
    return [slice(n, n + WORDS_AT_A_TIME) for n in range(0, n_words, WORDS_AT_A_TIME)]


def _names(names: list[str]) -> str:
    more = f" and {len(names) - NAMED_TOPICS} more" if len(names) > NAMED_TOPICS else ""
    return ", ".join(names[:NAMED_TOPICS]) + more
