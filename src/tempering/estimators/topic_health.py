"""Finding topics that died or became copies of each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempering.models.lda.copies import Sizes, overlapping
from tempering.models.lda.topics import Topics

#: Overlap from which two topics count as one.
COPY_OVERLAP = 0.99

#: A topic is used if it holds so many words, or, where X holds weights that are no counts or words
#: are few, this part of what topics hold on average.
FEWEST_WORDS, SMALLEST_SHARE = 5.0, 0.1

#: So many names stand in a warning; the rest are counted.
NAMED = 8


class TopicWarning(UserWarning):
    """A topic has died, or is a copy of another one."""


def unused_topics(counts: NDArray[np.floating], n_tokens: float) -> np.ndarray:
    """Topics that hold next to nothing, of expected counts [K] scaled to the whole corpus."""
    return np.flatnonzero(counts < min(FEWEST_WORDS, SMALLEST_SHARE * n_tokens / len(counts)))


def copied_topics(topics: Topics, sizes: Sizes, skip: np.ndarray) -> list[tuple[int, int]]:
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


def _names(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
