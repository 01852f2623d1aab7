"""Sequences of unequal lengths, one after the other in one array: no padding, and no lists. And
long ones cut into pieces, for steps that see only some of them.

Foti, Xu, Laird and Fox (2014), "Stochastic variational inference for hidden Markov models": a piece
is solved together with a few rows before and after it, its buffers, because a chain forgets. What
counts is the piece alone, so that all pieces together count each row and each move once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempering.models.arguments import check_number, shown


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


def piece_lengths(lengths: ArrayLike | None, total: int, longest: int) -> NDArray[np.int64]:
    """Lengths of the pieces of all sequences, in order: none longer, and as equal as can be."""
    check_number(longest, "piece_length", "a whole number, 1 or more", least=1, whole=True)
    parts = []
    for length in checked_lengths(lengths, total).tolist():
        count = -(-length // int(longest))
        parts.append(length // count + (np.arange(count) < length % count))
    return np.concatenate(parts)


class Pieces(Sequences):
    """Data of which each is a piece of a sequence, with its buffers.

    Parameters
    ----------
    rows : array [total, ...]
        The observations of all sequences, one sequence after the other.
    lengths : array of int [n], optional
        How many of them each sequence has; by default all are one sequence.
    piece_length : int
        Most rows of a piece.
    buffer : int
        Rows before and after it that are solved with it, where its sequence has them.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering.models.hmm.sequences import Pieces
    >>> pieces = Pieces(np.arange(7), piece_length=3, buffer=1)
    >>> pieces.shape, pieces.inner_lengths, pieces[1:2].rows
    ((3,), array([3, 2, 2]), array([2, 3, 4, 5]))
    """

    def __init__(
        self, rows: Any, lengths: ArrayLike | None = None, *, piece_length: int, buffer: int
    ):
        check_number(buffer, "buffer", "a whole number, 0 or more", least=0, whole=True)
        buffer = min(int(buffer), len(rows))
        table = np.asarray(rows)
        whole = checked_lengths(lengths, len(table))
        own = piece_lengths(whole, len(table), piece_length)
        ends = np.cumsum(own)
        sequence = np.searchsorted(np.cumsum(whole), ends, side="left")
        first = np.concatenate([[0], np.cumsum(whole)])
        begin = ends - own
        self._hold(
            table,
            own=np.column_stack([begin, ends]),
            reach=np.column_stack(
                [
                    np.maximum(begin - buffer, first[sequence]),
                    np.minimum(ends + buffer, first[sequence + 1]),
                ]
            ),
            since=begin - first[sequence],
        )

    def _hold(self, table: Any, own: Any, reach: Any, since: Any) -> None:
        # ``since``: how many rows of its sequence lie before the piece.
        self._table, self._own, self._reach, self._since = table, own, reach, since
        self.lengths = reach[:, 1] - reach[:, 0]
        self.bounds = np.concatenate([[0], np.cumsum(self.lengths)])

    @property
    def table(self) -> Any:
        return self._table

    @property
    def rows(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The rows of the pieces with their buffers: a copy, of as many as there are pieces."""
        return np.concatenate([self.table[start:stop] for start, stop in self._reach])

    @property
    def inner_lengths(self) -> NDArray[np.int64]:
        return self._own[:, 1] - self._own[:, 0]

    @property
    def inner(self) -> Inner:
        shift = self.bounds[:-1] - self._reach[:, 0]
        return Inner(self._own + shift[:, None], self._since == 0)

    @property
    def in_the_middle(self) -> NDArray[np.bool_]:
        return self._own[:, 0] - self._reach[:, 0] < self._since

    def __getitem__(self, which: slice | NDArray[Any]) -> Pieces:
        some = object.__new__(Pieces)
        some._hold(self._table, self._own[which], self._reach[which], self._since[which])
        return some
