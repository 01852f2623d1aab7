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
