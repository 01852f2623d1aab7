"""Documents sorted by length and padded in groups, so that few shapes are ever compiled.

A group is a rectangle: a fixed number of documents, and as many places for words as the ladder
of lengths has on the step that holds its longest document.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Shortest rectangle.
SHORTEST = 32

#: Places in a rectangle at most, so that a few very long documents take a group of their own.
LARGEST_GROUP = 1 << 22


class Group(NamedTuple):
    """Some documents, by their rows in a CSR matrix, and the shape of their rectangle."""

    rows: NDArray[np.int64]
    size: int  # documents in the rectangle; those beyond `rows` are empty
    width: int  # places for words


class Rectangle(NamedTuple):
    """A group as arrays on the device.

    A place without a word has the column `n_words` and the count 0.
    """

    columns: Any  # [size, width], int32
    counts: Any  # [size, width], float32
    lengths: Any  # [size], int32: distinct words


def ladder_step(length: int) -> int:
    """The width for documents of so many distinct words: 32, 64, 128, …

    >>> ladder_step(3), ladder_step(64), ladder_step(65)
    (32, 64, 128)
    """
    return max(SHORTEST, 1 << (length - 1).bit_length()) if length > 0 else SHORTEST


def cut_into_groups(lengths: NDArray, rows: NDArray, size: int) -> Iterator[Group]:
    """Sort documents by their length, longest first, and cut them into groups.

    Parameters
    ----------
    lengths : array
        Distinct words of each document of the corpus.
    rows : array
        Documents of the batch.
    size : int
        Documents of a group; fewer where they are very long.
    """
    order = rows[np.argsort(-lengths[rows], kind="stable")]
    start = 0
    while start < order.size:
        width = ladder_step(int(lengths[order[start]]))
        n = max(1, min(size, LARGEST_GROUP // width))
        yield Group(order[start : start + n], n, width)
        start += n
