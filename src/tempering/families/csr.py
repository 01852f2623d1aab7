"""Sparse counts as kernels can trust them: within their shape, in order, and not the caller's.

scipy builds compressed matrices without a look at their indices, and sorts them, or adds up what
stands in them twice, in place and unasked, for a mere ``X.sum()``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

#: A word may be in a document so often: kernels compute in float32, where the sums over a corpus,
#: scaled to the length of a stream, must find room too.
LARGEST_COUNT = 1e12


def check_compressed(matrix: Any, name: str) -> None:
    """Raise ``ValueError`` unless the indices of a CSR, CSC or BSR matrix lie within its shape."""
    if not sparse.issparse(matrix):
        return
    kind = matrix.format
    if matrix.dtype == np.float16:  # of which scipy makes no other format
        raise ValueError(f"{name} holds float16: take {name}.astype(np.float32).")
    if kind == "coo":
        _check_places(matrix, name)
    if kind not in ("csr", "csc", "bsr"):
        return
    block = matrix.blocksize if kind == "bsr" else (1, 1)
    n_rows, n_columns = (size // side for size, side in zip(matrix.shape, block))
    row, columns = "row", "columns"
    if kind == "csc":
        n_rows, n_columns, row, columns = n_columns, n_rows, "column", "rows"
    indptr, indices = matrix.indptr, matrix.indices
    for part, array in (("indptr", indptr), ("indices", indices)):
        if array.dtype.kind not in "iu":
            raise ValueError(
                f"{name} is no valid sparse matrix: its {part} must be whole numbers; they are of "
                f"type {array.dtype}."
            )
    n_entries = min(len(indices), len(matrix.data))
    problem = None
    if len(indptr) != n_rows + 1 or indptr[0] != 0 or indptr[-1] > n_entries:
        problem = (
            f"indptr must have {n_rows + 1} entries and lead from 0 to {n_entries} at most; it has "
            f"{len(indptr)}, from {indptr[0]} to {indptr[-1]}"
        )
    elif n_rows and np.any(indptr[1:] < indptr[:-1]):
        first = int(np.argmax(indptr[1:] < indptr[:-1]))
        problem = f"indptr falls from {indptr[first]} to {indptr[first + 1]} at {row} {first}"
    elif indptr[-1]:
        used = indices[: indptr[-1]]
        if used.min() < 0 or used.max() >= n_columns:
            entry = int(np.argmax((used < 0) | (used >= n_columns)))
            place = f"{row} {_row_of(entry, indptr)}"
            problem = f"{place} holds index {used[entry]}, but there are {n_columns} {columns}"
    if problem:
        raise ValueError(
            f"{name} is no valid sparse matrix: {problem}. Build it from (data, (rows, columns)), "
            "which scipy checks."
        )


def _check_places(matrix: Any, name: str) -> None:
    """Raise ``ValueError`` unless the places of a COO matrix lie within its shape."""
    for places, size, axis in zip(matrix.coords, matrix.shape, ("row", "column")):
        if places.size and not 0 <= places.min() <= places.max() < size:
            wrong = places[(places < 0) | (places >= size)][0]
            raise ValueError(
                f"{name} is no valid sparse matrix: it holds {axis} {wrong}, but there are {size} "
                f"{axis}s."
            )


def supported(table: NDArray[Any]) -> NDArray[Any]:
    """A table in a type that scipy takes: float16, and numbers of other machines, are turned."""
    if table.dtype == np.float16:
        return table.astype(np.float32)
    return table.astype(table.dtype.newbyteorder("="), copy=False)


def canonical_csr(matrix: Any) -> Any:
    """A CSR matrix with sorted words, none twice, that shares its memory where it is so already."""
    n_entries = matrix.indptr[-1]
    make = sparse.csr_array if isinstance(matrix, sparse.sparray) else sparse.csr_matrix
    arrays = matrix.data[:n_entries], matrix.indices[:n_entries], matrix.indptr
    own: Any = make(arrays, shape=matrix.shape)
    if own.has_canonical_format:
        return own
    own = own.copy()
    own.sort_indices()
    if not own.has_canonical_format:
        if own.dtype.kind in "biu":  # sums of small types could overflow
            own.data = own.data.astype(np.int64)
        own.sum_duplicates()
    return own


def check_counts(matrix: Any, expected: str, largest: float = LARGEST_COUNT) -> None:
    """Raise ``ValueError`` unless what a CSR matrix stores can be counts."""
    data = matrix.data
    if not data.size or (data.min() >= 0 and data.max() <= largest):  # false where one is NaN
        return
    wrong = ~((data >= 0) & (data <= largest))
    entry = int(np.argmax(wrong))
    raise ValueError(
        f"{expected}, not negative, NaN or infinity, up to {largest:g} each; row "
        f"{_row_of(entry, matrix.indptr)}, column {matrix.indices[entry]} holds {data[entry]} "
        f"({int(wrong.sum())} such value(s))."
    )


def _row_of(entry: int, indptr: NDArray[Any]) -> int:
    return int(np.searchsorted(indptr, entry, side="right")) - 1
