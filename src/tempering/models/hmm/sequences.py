"""Sequences of unequal lengths, one after the other in one array: no padding, and no lists. And
long ones cut into pieces, for steps that see only some of them.

Foti, Xu, Laird and Fox (2014), "Stochastic variational inference for hidden Markov models": a piece
is solved together with a few rows before and after it, its buffers, because a chain forgets. What
counts is the piece alone, so that all pieces together count each row and each move once.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempering.models.arguments import check_number, shown


class Sequences:
    """Data of which each is a sequence, or a piece of one with its buffers; they can be cut and
    drawn as the rows of an array can.

    Parameters
    ----------
    rows : array [total, ...]
        The observations of all sequences, one sequence after the other.
    lengths : array of int [n], optional
        How many of them each sequence has; by default all are one sequence.
    piece_length : int, optional
        The most rows of a piece; by default sequences stay whole.
    buffer : int
        How many rows before a piece (one at least) and after it are solved with it, where its
        sequence has them.

    Examples
    --------
    >>> from tempering.models import Sequences
    >>> words = Sequences(range(6), lengths=[3, 1, 2])
    >>> words.shape, words[1:].rows
    ((3,), array([3, 4, 5]))
    >>> pieces = Sequences(range(7), piece_length=3, buffer=1)
    >>> pieces.shape, pieces.inner_lengths, pieces[1:2].rows
    ((3,), array([3, 2, 2]), array([2, 3, 4, 5]))
    """

    def __init__(
        self,
        rows: Any,
        lengths: ArrayLike | None = None,
        *,
        piece_length: int | None = None,
        buffer: int = 0,
    ):
        table = np.asarray(rows)
        whole = checked_lengths(lengths, len(table))
        own = reach = spans(whole)
        since = np.zeros(len(whole), np.int64)
        if piece_length is not None:
            check_number(buffer, "buffer", "a whole number, 0 or more", least=0, whole=True)
            buffer = min(int(buffer), len(table))
            own = spans(piece_lengths(whole, len(table), piece_length))
            # Of the sequence that each piece is of.
            first, last = reach[np.searchsorted(reach[:, 1], own[:, 1])].T
            # Without the row before it, the move into a piece would count nowhere.
            before = np.maximum(own[:, 0] - max(buffer, 1), first)
            reach = np.column_stack([before, np.minimum(own[:, 1] + buffer, last)])
            since = own[:, 0] - first
        #: How many rows there are in all, also where these are some of the sequences.
        self.n_rows = len(table)
        self._hold(table, own, reach, since)

    def _hold(self, table: Any, own: Any, reach: Any, since: Any) -> None:
        """Data of the rows ``own`` [n, 2], solved with those of ``reach``, that have ``since`` rows
        of their sequences before them."""
        #: The rows of all data, each once.
        self.table = table
        self._own, self._reach, self._since = own, reach, since
        #: How many rows of each datum are solved, and how many of these count.
        self.lengths, self.inner_lengths = reach[:, 1] - reach[:, 0], own[:, 1] - own[:, 0]
        #: Where each datum begins, and at last where the last one ends.
        self.bounds = np.concatenate([[0], np.cumsum(self.lengths)])

    @property
    def shape(self) -> tuple[int]:
        """The number of sequences, alone."""
        return (len(self.lengths),)

    @cached_property
    def rows(self) -> Any:
        """The rows of one datum after the other: without a copy, if they lie together."""
        if np.array_equal(self._reach[1:, 0], self._reach[:-1, 1]):
            return self.table[self._reach[0, 0] : self._reach[-1, 1]]
        return np.concatenate([self.table[start:stop] for start, stop in self._reach.tolist()])

    @property
    def inner_bounds(self) -> NDArray[np.int64]:
        """The first of the rows that count of each datum, and the one after the last, [n, 2]."""
        return self._own + (self.bounds[:-1] - self._reach[:, 0])[:, None]

    @property
    def begins(self) -> NDArray[np.bool_]:
        """Whether a sequence begins with the rows that count, [n]."""
        return self._since == 0

    @property
    def in_the_middle(self) -> NDArray[np.bool_]:
        """Whether the rows of each datum begin in the middle of a sequence."""
        return self._own[:, 0] - self._reach[:, 0] < self._since

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, which: slice | NDArray[Any]) -> Self:
        """Some of the sequences, and of the table what lies between the first and the last row."""
        own, reach, since = self._own[which], self._reach[which], self._since[which]
        if len(since) == 0:
            raise IndexError(f"there are no sequences {which!r:.60} among {len(self)}.")
        first, last = int(reach.min()), int(reach.max())
        some = object.__new__(type(self))  # they have been checked
        some.n_rows = self.n_rows
        some._hold(self.table[first:last], own - first, reach - first, since)
        return some

    def blocks(self, most_rows: int) -> Iterator[tuple[slice, Self]]:
        """All sequences in order, so many rows at a time; a longer sequence comes alone."""
        first, n = 0, len(self)
        while first < n:
            reach = self.bounds[first] + most_rows
            last = max(first + 1, int(np.searchsorted(self.bounds, reach, side="right")) - 1)
            yield slice(first, last), self[first:last]
            first = last


def spans(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first row of each of so many, one after the other, and the one after its last, [n, 2]."""
    ends = np.cumsum(lengths)
    return np.column_stack([ends - lengths, ends])


def checked_lengths(lengths: ArrayLike | None, total: int) -> NDArray[np.int64]:
    """Lengths as whole numbers that add up to so many rows; an error says what is wrong."""
    if lengths is None:
        lengths = [total]
    try:
        given = np.atleast_1d(np.asarray(lengths, float))
        right = given.ndim == 1 and bool(np.all((given == np.floor(given)) & (given < 2**62)))
    except (TypeError, ValueError, OverflowError):
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


def piece_lengths(lengths: ArrayLike | None, total: int, longest: int) -> NDArray[np.int64]:
    """Lengths of the pieces of all sequences, in order: none longer, and as equal as can be."""
    check_number(longest, "piece_length", "a whole number, 1 or more", least=1, whole=True)
    parts = []
    for length in checked_lengths(lengths, total).tolist():
        count = -(-length // int(longest))
        parts.append(length // count + (np.arange(count) < length % count))
    return np.concatenate(parts)
