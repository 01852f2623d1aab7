"""Words that stick together, such as "new york"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: A phrase occurs so often at least, and is so much more common than chance: NPMI, at most 1.
LEAST_COUNT, LEAST_NPMI = 5, 0.5


def sticks_together(words: Sequence[str], counts: ArrayLike) -> NDArray[np.bool_]:
    """Whether each is one word, or several, between spaces, that occur together for a reason.

    The measure is NPMI = log(p(phrase) / Π p(word)) / −(n − 1) log p(phrase), with p the part of
    all single words: 0 if words meet by chance, 1 if they only occur together. A word of a phrase
    that is not among the words was never counted alone, and the phrase is not kept.
    """
    numbers = np.asarray(counts, np.float64)
    places = {word: place for place, word in enumerate(words)}
    several = [place for place, word in enumerate(words) if " " in word]
    kept = np.ones(len(words), bool)
    kept[several] = False
    # Of one word, or none, that occurs there is nothing to compare.
    total = numbers[kept].sum()
    for place in several:
        parts = [places.get(part) for part in words[place].split(" ")]
        if numbers[place] < LEAST_COUNT or None in parts or numbers[place] >= total:
            continue
        own = np.log(numbers[place] / total)
        alone = sum(np.log(numbers[part] / total) for part in parts)
        kept[place] = (own - alone) / (-(len(parts) - 1) * own) >= LEAST_NPMI
    return kept
