"""Numbers out of text, a million at a time."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

NEWLINE, COLON = 10, 58
# Whole numbers of so many digits fit into 64 bits for certain.
MOST_DIGITS = 18
LONGEST_REAL = 40
IN_REALS = frozenset(b"+-.0123456789Ee")


def separator_table(separators: bytes) -> NDArray[np.bool_]:
    """Which bytes stand between numbers."""
    table = np.zeros(256, bool)
    table[np.frombuffer(separators, np.uint8)] = True
    return table


BLANKS = separator_table(b" \t\r\n")
BLANKS_AND_COLONS = separator_table(b" \t\r\n:")


class Tokens:
    """The parts of a text between separators, as numbers.

    Parameters
    ----------
    text : bytes
        Lines, of which each ends in a line feed.
    separators : array of bool [256]
        Which bytes stand between numbers.

    Attributes
    ----------
    starts, ends : array of int32 [n]
        Where the parts lie.
    integers : array of int64 [n]
        Their values; -1 for what is not a whole number written in digits alone.
    """

    def __init__(self, text: bytes, separators: NDArray[np.bool_] = BLANKS):
        self.raw = np.frombuffer(text, np.uint8)
        between = separators[self.raw]
        edges = np.flatnonzero(np.diff(between, prepend=True, append=True)).astype(np.int32)
        self.starts, self.ends = edges[::2], edges[1::2]
        self.integers = self._integers(between)

    def __len__(self) -> int:
        return self.starts.size

    def _integers(self, between: NDArray[np.bool_]) -> NDArray[np.int64]:
        digits = self.raw - np.uint8(48)
        lengths = self.ends - self.starts
        longest = min(int(lengths.max(initial=0)), MOST_DIGITS)
        values = digits[self.starts].astype(np.int64)
        for place in range(1, longest):
            there = np.flatnonzero(lengths > place)
            values[there] *= 10
            values[there] += digits[self.starts[there] + place]
        values[lengths > MOST_DIGITS] = -1
        strange = np.flatnonzero((digits > 9) & ~between)
        values[np.searchsorted(self.starts, strange, side="right") - 1] = -1
        return values

    @cached_property
    def lines(self) -> NDArray[np.int32]:
        """The line of each part, from 0."""
        return np.cumsum(self.raw == NEWLINE, dtype=np.int32)[self.starts]

    def by_line(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Lines that are not blank, the first part of each, and how many parts it has."""
        begins = np.diff(self.lines, prepend=np.int32(-1)) != 0
        heads = np.flatnonzero(begins)
        return self.lines[heads].astype(np.int64), heads, np.diff(heads, append=len(self))

    def text(self, i: int) -> str:
        """A part as it is written, for messages."""
        shown = bytes(self.raw[self.starts[i] : min(self.ends[i], self.starts[i] + LONGEST_REAL)])
        return repr(shown.decode("utf-8", "replace"))

    def reals(self, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        """Some parts as real numbers; NaN for what is none."""
        values = self.integers[chosen].astype(np.float64)
        for i in np.flatnonzero(values < 0):
            values[i] = _real(bytes(self.raw[self.starts[chosen[i]] : self.ends[chosen[i]]]))
        return values


def _real(text: bytes) -> float:
    """A number; NaN for what is none. Python alone would also take ``1_000`` and ``infinity``."""
    if len(text) > LONGEST_REAL or not IN_REALS.issuperset(text):
        return np.nan
    try:
        return float(text)
    except ValueError:
        return np.nan
