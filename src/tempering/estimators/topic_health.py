"""Topics that died or became copies of each other.

The user is told of them, and they are left as they are: topics that were restarted gained nothing
in the mean over corpora (``lab/`` has the study).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tempering.models.lda.guide import Guide
from tempering.models.lda.layout import Float64
from tempering.models.lda.topics import WORDS_AT_A_TIME, Topics

#: Overlap from which two topics count as one.
COPY_OVERLAP = 0.99

#: A topic is used if it holds so many words, or, where X holds weights that are no counts or words
#: are few, this part of what topics hold on average.
FEWEST_USED_WORDS, SMALLEST_SHARE = 5.0, 0.1

#: So many names stand in a warning; the rest are counted.
NAMED_TOPICS = 8


class TopicWarning(UserWarning):
    """A topic has died, or is a copy of another one."""


def warn_of_troubles(topics: Topics, n_tokens: float, guide: Guide | None = None) -> None:
    """Warn, by name, of topics that died or became copies; called by a ``fit``."""
    held, overlaps = sizes_and_overlaps(topics)
    # What words lead a topic is no document's.
    unused = unused_topics(held if guide is None else held - guide.totals(), n_tokens)
    copies = np.triu(overlaps > COPY_OVERLAP, 1)
    copies[unused] = copies[:, unused] = False
    troubles = describe_troubles(unused, np.argwhere(copies))
    if troubles:
        warnings.warn(troubles, TopicWarning, stacklevel=4)


def unused_topics(counts: NDArray[np.floating], n_tokens: float) -> np.ndarray:
    """Topics that hold next to nothing, of expected counts [K] scaled to the whole corpus."""
    return np.flatnonzero(counts < min(FEWEST_USED_WORDS, SMALLEST_SHARE * n_tokens / len(counts)))


def describe_troubles(unused: np.ndarray, copies: Iterable[tuple[int, int]]) -> str | None:
    """A sentence that names them, or None if all is well."""
    parts = []
    if len(unused):
        parts.append(f"topics with next to no words: {_names([str(k) for k in unused])}")
    if pairs := [f"{a} = {b}" for a, b in copies]:
        parts.append(f"topics that are copies: {_names(pairs)}")
    if not parts:
        return None
    return (
        "; ".join(parts) + ". They do no harm to predictions, but fewer components, more passes or "
        "another random_state may serve better."
    )


def sizes_and_overlaps(topics: Topics) -> tuple[Float64, Float64]:
    """What each topic holds of all words, [K], and how much each two overlap, [K, K].

    The overlap of two distributions, sum_v sqrt(p_v q_v), is 1 where they are the same. A cosine of
    them would be next to 1 for any two topics that are half made of one and the same word. Counts
    are without the prior: it makes all topics of few words alike.
    """
    n_words, n_topics = topics.shape
    sizes, overlaps = np.zeros(n_topics), np.zeros((n_topics, n_topics))
    for start in range(0, n_words, WORDS_AT_A_TIME):
        counts = topics.counts(slice(start, start + WORDS_AT_A_TIME))
        # In float64: in float32, sums over a long vocabulary miss by percents.
        sizes += counts.sum(axis=0, dtype=np.float64)
        roots = np.sqrt(counts)
        overlaps += roots.T @ roots
    return sizes, overlaps / np.sqrt(np.outer(sizes, sizes)).clip(np.finfo(float).tiny)


def _names(names: list[str]) -> str:
    more = f" and {len(names) - NAMED_TOPICS} more" if len(names) > NAMED_TOPICS else ""
    return ", ".join(names[:NAMED_TOPICS]) + more
