"""Checks of data that several likelihoods share; errors name the row, the value, the expected.

Kernels trust sparse counts, but scipy builds compressed matrices without a look at their indices,
and sorts them, or adds up what stands in them twice, in place and unasked, for a mere ``X.sum()``.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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


def check_table(x: Any, columns: int, kind: str, holes: bool = False) -> NDArray[Any]:
    """x as an array; raise ``ValueError`` unless it is finite, but for NaN where it may have
    ``holes``, numeric and [n, columns]."""
    table = np.asarray(x)
    if table.dtype.kind not in "biuf":
        raise ValueError(f"{kind} data must be real numbers; got an array of type {table.dtype}.")
    check_shape(table.shape, columns, kind)
    wrong = np.abs(table) > LARGEST_VALUE if holes else ~(np.abs(table) <= LARGEST_VALUE)
    otherwise = "or NaN" if holes else "and finite"
    refuse(wrong, table, f"{kind} data must be at most {LARGEST_VALUE:g}, {otherwise}")
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
    # In the words that scikit-learn's checks ask for, then in ours.
    refuse(table < 0, table, f"Negative values in data: {kind} must not be negative")
    refuse(table != np.floor(table), table, f"{kind} must be whole numbers")


def refuse(wrong: NDArray[np.bool_], table: NDArray[Any], expected: str) -> None:
    """Raise ``ValueError`` with the first entry of the table that is marked wrong, if any is."""
    if wrong.any():
        row, column = (int(index) for index in np.argwhere(wrong)[0])
        raise ValueError(
            f"{expected}; row {row}, column {column} holds {table[row, column]} "
            f"({int(wrong.sum())} such value(s))."
        )


#: A word may be in a document so often: kernels compute in float32, where the sums over a corpus,
#: scaled to the length of a stream, must find room too.
FLOAT32_COUNT = 1e12


def check_compressed(matrix: Any, name: str) -> None:
    """Raise ``ValueError`` unless the indices of a sparse matrix lie within its shape."""
    if not sparse.issparse(matrix):
        return
    if matrix.dtype == np.float16:  # of which scipy makes no other format
        raise ValueError(f"{name} holds float16: take {name}.astype(np.float32).")
    make: Any = type(matrix)
    try:
        # Of an object that shares the arrays: what scipy mends of it is not the caller's.
        if matrix.format in ("csr", "csc", "bsr"):
            if {matrix.indptr.dtype.kind, matrix.indices.dtype.kind} - set("iu"):
                raise ValueError("its indices must be whole numbers")
            n_entries = matrix.indptr[-1]
            indices = matrix.indices[:n_entries], matrix.indptr
            make((matrix.data[:n_entries], *indices), shape=matrix.shape).check_format()
        elif matrix.format == "coo":
            make((matrix.data, matrix.coords), shape=matrix.shape)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(
            f"{name} is no valid sparse matrix: {error}. Build it from (data, (rows, columns)), "
            "which scipy checks."
        ) from error


def supported(table: NDArray[Any]) -> NDArray[Any]:
    """A table in a type that scipy takes: float16, and numbers of other machines, are turned."""
    if table.dtype == np.float16:
        return table.astype(np.float32)
    return table.astype(table.dtype.newbyteorder("="), copy=False)


def canonical_csr(matrix: Any) -> Any:
    """A CSR matrix with sorted words, none twice or 0 times; in its own memory if it is not so."""
    n_entries = matrix.indptr[-1]
    make = sparse.csr_array if isinstance(matrix, sparse.sparray) else sparse.csr_matrix
    arrays = matrix.data[:n_entries], matrix.indices[:n_entries], matrix.indptr
    own: Any = make(arrays, shape=matrix.shape)
    if own.has_canonical_format and own.data.all():
        return own
    own = own.copy()
    own.sort_indices()
    if not own.has_canonical_format:
        if own.dtype.kind in "biu":  # sums of small types could overflow
            own.data = own.data.astype(np.int64)
        own.sum_duplicates()
    own.eliminate_zeros()
    return own


def check_sparse_counts(matrix: Any, expected: str, passed_to: str = "") -> None:
    """Raise ``ValueError`` unless what a CSR matrix stores can be counts."""
    data = matrix.data
    # False where one is NaN.
    if not data.size or (data.min() >= 0 and data.max() <= FLOAT32_COUNT):
        return
    if passed_to and data.min() < 0:  # words that scikit-learn looks for
        expected = f"Negative values in data passed to {passed_to}: {expected}"
    wrong = ~((data >= 0) & (data <= FLOAT32_COUNT))
    entry = int(np.argmax(wrong))
    row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
    raise ValueError(
        f"{expected}, not negative, NaN or infinity, up to {FLOAT32_COUNT:g} each; row {row}, "
        f"column {matrix.indices[entry]} holds {data[entry]} ({int(wrong.sum())} such value(s))."
    )
