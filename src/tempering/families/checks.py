"""Checks of data that several likelihoods share; errors name the row, the value, the expected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Larger numbers have squares, and sums of squares, beyond what float64 can hold.
LARGEST_VALUE = 1e100


@contextmanager
def naming_the_table(told: str = "X must be a table of numbers, one row a datum") -> Iterator[None]:
    """Errors of what makes an array, which do not say of what, say that it was X or another."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        if re.search(r"\b(X|y|array|features?|samples?|matrix|data)\b", str(error)):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{told}: {error}") from error


def check_table(x: Any, columns: int, kind: str) -> NDArray[Any]:
    """x as an array; raise ``ValueError`` unless it is finite, numeric and [n, columns]."""
    table = np.asarray(x)
    if table.dtype.kind not in "biuf":
        raise ValueError(f"{kind} data must be real numbers; got an array of type {table.dtype}.")
    check_shape(table.shape, columns, kind)
    refuse(
        ~(np.abs(table) <= LARGEST_VALUE),
        table,
        f"{kind} data must be at most {LARGEST_VALUE:g}, and finite",
    )
    return table


def check_shape(shape: tuple[int, ...], columns: int, kind: str) -> None:
    """Raise ``ValueError`` unless the shape is [n, columns]."""
    if len(shape) != 2:
        raise ValueError(
            f"{kind} data must have one datum a row, shape [n, {columns}]; "
            f"got an array of shape {shape}."
        )
    if shape[1] != columns:
        raise ValueError(f"{kind} data must have {columns} columns; got {shape[1]}, shape {shape}.")


def check_counts(table: NDArray[Any], kind: str) -> None:
    """Raise ``ValueError`` unless every entry is a non-negative whole number."""
    refuse(table < 0, table, f"{kind} counts must not be negative")
    refuse(table != np.floor(table), table, f"{kind} counts must be whole numbers")


def refuse(wrong: NDArray[np.bool_], table: NDArray[Any], expected: str) -> None:
    """Raise ``ValueError`` with the first entry of the table that is marked wrong, if any is."""
    if wrong.any():
        row, column = (int(index) for index in np.argwhere(wrong)[0])
        raise ValueError(
            f"{expected}; row {row}, column {column} holds {table[row, column]} "
            f"({int(wrong.sum())} such value(s))."
        )
