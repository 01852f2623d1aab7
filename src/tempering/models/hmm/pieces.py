"""Long sequences cut into pieces, for steps that see only some of them.

Foti, Xu, Laird and Fox (2014), "Stochastic variational inference for hidden Markov models": a piece
is solved together with a few rows before and after it, its buffers, because a chain forgets. What
counts is the piece alone, so that all pieces together count each row and each move once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempering.models.arguments import check_number
from tempering.models.hmm.sequences import Inner, Sequences, checked_lengths


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
    >>> from tempering.models.hmm.pieces import Pieces
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
