"""Digests of the documents of a fit, to distinguish training documents from held-out ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.evaluation.checks import as_counts
from tempering.inference import BlockSource

#: Digests that a model stores: all, or of a larger corpus the smallest.
MOST = 65_536
#: Documents whose digests are computed at a time.
ROWS = 16_384


def remember_documents(estimator: Any, source: Any) -> None:
    """Set ``fitted_documents_``; remove it if the documents are not in memory."""
    vars(estimator).pop("fitted_documents_", None)
    if isinstance(source, BlockSource):  # which would have to be read once more
        return
    smallest = np.empty(0, np.uint64)
    for start in range(0, source.shape[0], ROWS):
        block = source[start : start + ROWS]
        smallest = np.union1d(smallest, digests(block))[:MOST]
    estimator.fitted_documents_ = smallest


def count_fitted(estimator: Any, X: Any) -> tuple[int, int]:
    """Return how many documents the model was fitted to, and how many could be looked up.

    The second number is 0 if the model does not know its documents, as after ``partial_fit``. Of
    the documents of a large corpus, only those are looked up whose digests would be stored.
    """
    known = getattr(estimator, "fitted_documents_", np.empty(0, np.uint64))
    found = digests(as_counts(X, "X")) if known.size else known
    if known.size == MOST:
        found = found[found <= known[-1]]
    return int(np.isin(found, known).sum()), found.size


def digests(counts: sparse.csr_array) -> NDArray[np.uint64]:
    """Return a digest of each document that has words, whatever the order of its entries."""
    bits = counts.data.astype(np.float32).view(np.uint32).astype(np.uint64)
    mixed = _mix(counts.indices.astype(np.uint64) << np.uint64(32) | bits)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    starts, ends = counts.indptr[:-1], counts.indptr[1:]
    return (sums[ends] - sums[starts])[ends > starts]


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the output of the SplitMix64 generator for these states."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return numbers ^ numbers >> np.uint64(31)
