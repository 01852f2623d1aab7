"""Sequences of unequal lengths, one after the other in one array: no padding, and no lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempering.models.arguments import shown


class Inner(NamedTuple):
    """Which part of each datum counts."""

    bounds: NDArray[np.int64]  # its first row and the one after its last, [n, 2]
    begins: NDArray[np.bool_]  # whether a sequence begins with it, [n]


class Sequences:
    """Data of which each is a sequence; they can be cut and drawn as the rows of an array can.

    Parameters
    ----------
    rows : array [total, ...]
        The observations of all sequences, one sequence after the other.
    lengths : array of int [n], optional
        How many of them each sequence has; by default all are one sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering.models import Sequences
    >>> words = Sequences(np.arange(6), lengths=[3, 1, 2])
    >>> words.shape, words[1:].rows
    ((3,), array([3, 4, 5]))
    """

    def __init__(self, rows: Any, lengths: ArrayLike | None = None):
        table = np.asarray(rows)
        self._take(table, checked_lengths(lengths, len(table)))

    def _take(self, rows: Any, lengths: NDArray[np.int64]) -> None:
        self.rows, self.lengths = rows, lengths
        #: Where each sequence begins, and at last where the last one ends.
        self.bounds = np.concatenate([[0], np.cumsum(lengths)])

    @property
    def shape(self) -> tuple[int]:
        """The number of sequences, alone."""
        return (len(self.lengths),)

    @property
    def table(self) -> Any:
        """The rows of all data, each once."""
        return self.rows

    @property
    def inner_lengths(self) -> NDArray[np.int64]:
        """How many rows of each datum count: all of them."""
        return self.lengths

    @property
    def inner(self) -> Inner:
        """Which they are."""
        return Inner(np.column_stack([self.bounds[:-1], self.bounds[1:]]), np.ones(len(self), bool))

    @property
    def in_the_middle(self) -> NDArray[np.bool_]:
        """Whether the rows of each datum begin in the middle of a sequence."""
        return np.zeros(len(self), bool)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, which: slice | NDArray[Any]) -> Sequences:
        """Some of the sequences: without a copy of their rows, if they lie together."""
        chosen = np.arange(len(self))[which]
        if len(chosen) == 0:
            raise IndexError(f"there are no sequences {which!r:.60} among {len(self)}.")
        first, last = int(chosen[0]), int(chosen[-1])
        if np.array_equal(chosen, np.arange(first, last + 1)):
            rows = self.rows[self.bounds[first] : self.bounds[last + 1]]
        else:
            rows = np.concatenate([self.rows[self.bounds[i] : self.bounds[i + 1]] for i in chosen])
        some = object.__new__(Sequences)  # they have been checked
        some._take(rows, self.lengths[chosen])
        return some

    def blocks(self, most_rows: int) -> Iterator[tuple[slice, Sequences]]:
        """All sequences in order, so many rows at a time; a longer sequence comes alone."""
        first, n = 0, len(self)
        while first < n:
            reach = self.bounds[first] + most_rows
            last = max(first + 1, int(np.searchsorted(self.bounds, reach, side="right")) - 1)
            yield slice(first, last), self[first:last]
            first = last


def checked_lengths(lengths: ArrayLike | None, total: int) -> NDArray[np.int64]:
    """Lengths as whole numbers that add up to so many rows; an error says what is wrong."""
    if lengths is None:
        lengths = [total]
    try:
        given = np.asarray(lengths, float)
        right = given.ndim == 1 and bool(np.all(given == np.floor(given)))
    except (TypeError, ValueError):
        right = False
    if not right:
        raise ValueError(f"lengths must be whole numbers, one a sequence; got {shown(lengths)}.")
    whole = given.astype(np.int64)
    if len(whole) == 0 or whole.min() < 1:
        place = int(np.argmax(whole < 1)) if len(whole) else None
        what = "there is none" if place is None else f"sequence {place} has {whole[place]}"
        raise ValueError(
            f"lengths must be at least 1 for each sequence; {what}. Leave empty sequences out."
        )
    if whole.sum() != total:
        raise ValueError(
            f"lengths must add up to the number of rows: they add up to {whole.sum()}, and there "
            f"are {total} rows."
        )
    return whole
