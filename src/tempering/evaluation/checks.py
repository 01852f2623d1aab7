"""Checks of what the measures are given; errors name the argument, the value and the remedy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tempering.families.checks import (
    canonical_csr,
    check_compressed,
    check_sparse_counts,
    refuse,
    supported,
)
from tempering.models.arguments import as_numbers, shown

#: Rows of probabilities may miss 1 by this much: the rounding of a long float32 row.
ROUNDING = 1e-3


def counts_of(X: Any) -> Any:
    """The counts of a :class:`tempering.corpus.Corpus`; anything else as it is."""
    return X.counts if is_corpus(X) else X


def is_corpus(X: Any) -> bool:
    """Whether X is a corpus in memory."""
    return sparse.issparse(getattr(X, "counts", None))


def as_counts(counts: Any, name: str, n_words: int | None = None) -> sparse.csr_array:
    """Counts [D, V], also of a Corpus, as a CSR matrix without duplicates or stored zeros."""
    counts = counts_of(counts)
    check_compressed(counts, name)
    if not sparse.issparse(counts):
        counts = supported(_as_table(counts, name))
    wanted = f"{name} must be a matrix of counts, one document a row"
    if counts.ndim == 0:
        raise ValueError(
            f"{wanted}; got {shown(counts.item())}. (What is on disk is read as a whole by "
            "tempering.corpus.read.)"
        )
    if counts.ndim != 2 or counts.dtype.kind not in "biuf":
        raise ValueError(f"{wanted}; got shape {counts.shape} of type {counts.dtype}.")
    if n_words is not None and counts.shape[1] != n_words:
        raise ValueError(
            f"{name} has {counts.shape[1]} columns, but topics has {n_words}: "
            "both must be over the same vocabulary."
        )
    counts = sparse.csr_array(counts)
    check_compressed(counts, name)
    counts = canonical_csr(counts)
    check_sparse_counts(counts, f"{name} must hold finite counts")
    return counts


def check_whole_counts(counts: Any, name: str, remedy: str) -> None:
    """Words are held out or visited one by one; the remedy follows in the error."""
    if np.any(counts.data != np.floor(counts.data)):
        raise ValueError(f"{name} must hold whole counts{remedy}")


def _as_table(rows: Any, name: str) -> NDArray[Any]:
    try:
        table = np.asarray(rows)
        if table.dtype == object and table.ndim == 2:  # such as of a frame that may lack values
            table = table.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a table of numbers: {error}") from error
    # What only a longer type can hold is infinite to all that is computed with it.
    with np.errstate(over="ignore"):
        return table.astype(np.float64) if table.dtype == np.longdouble else table


def as_nonnegative(rows: ArrayLike, name: str) -> NDArray[Any]:
    """A table of finite numbers that are not negative, with something in each row."""
    table = _as_table(rows, name)
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be a table of numbers with at least one row and one column; got shape "
            f"{table.shape} of type {table.dtype}."
        )
    wrong = ~(np.isfinite(table) & (table >= 0))
    refuse(wrong, table, f"{name} must be finite and not negative")
    empty = np.flatnonzero(table.max(axis=1) == 0)
    if empty.size:
        raise ValueError(f"{name} must have something in each row, but row {empty[0]} is all 0.")
    return table


def as_probabilities(rows: ArrayLike, name: str) -> NDArray[Any]:
    """A table whose rows are probability distributions, up to rounding."""
    table = as_nonnegative(rows, name)
    totals = table.sum(axis=1, dtype=np.float64)
    wrong = np.flatnonzero(np.abs(totals - 1) > ROUNDING)
    if wrong.size:
        raise ValueError(
            f"{name} must have rows that sum to 1, but row {wrong[0]} sums to {totals[wrong[0]]:g} "
            f"({wrong.size} such row(s)): divide each row by its sum."
        )
    return table


def normalised(weights: ArrayLike) -> NDArray[Any]:
    """Rows divided by their sums, added up in float64: topics, of their Dirichlet parameters."""
    table = np.asarray(weights)
    totals = table.sum(axis=1, dtype=np.float64, keepdims=True)
    return table / totals.astype(table.dtype if table.dtype.kind == "f" else np.float64)


def check_word_list(vocabulary: Any) -> None:
    """Refuse what is no list of words."""
    if isinstance(vocabulary, str | Mapping) or not hasattr(vocabulary, "__getitem__"):
        raise ValueError(f"vocabulary must be a list of words; got {shown(vocabulary)}.")


def as_labels(
    labels: ArrayLike, name: str, documents: str, n: int
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The different labels of n documents, and the place of each document's own among them."""
    try:
        told = np.asarray(labels)
    except ValueError as error:
        raise ValueError(f"{name} must hold one value a document: {error}") from error
    if told.shape != (n,) or n == 0:
        raise ValueError(
            f"{name} must hold one value for each of the {n} documents of {documents}; got shape "
            f"{told.shape}."
        )
    try:
        names, places = np.unique(told, return_inverse=True)
    except TypeError as error:
        problem = f"all text, or all numbers, and none may be missing: {error}"
        raise ValueError(f"{name} must be {problem}") from error
    # Of a list of texts, NumPy makes the text "nan" of a number that is none.
    values = np.asarray(labels, object) if told.dtype.kind == "U" else told
    unknown = np.flatnonzero(values != values)
    if unknown.size:
        raise ValueError(
            f"{name} must be known, but document {unknown[0]} has {values[unknown[0]]} "
            f"({unknown.size} such document(s)): leave them out of {documents}."
        )
    return names, places


def as_alpha(alpha: ArrayLike, n_topics: int) -> NDArray[np.float64]:
    """The prior of the topic proportions, one entry for each topic."""
    expected = f"positive and finite: one number, or one for each of the {n_topics} topics"
    given = as_numbers(alpha, "alpha", expected)
    if given.shape not in ((), (n_topics,)) or not np.all(np.isfinite(given) & (given > 0)):
        raise ValueError(f"alpha must be {expected}; got {alpha!r}.")
    return np.broadcast_to(given, n_topics).copy()


def word_rows(
    topics: NDArray[Any], counts: sparse.csr_array, dtype: type[np.floating]
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """The place of each entry's word, and the topics of the words that occur, a word a row."""
    used = np.zeros(topics.shape[1], dtype=bool)
    used[counts.indices] = True
    places = (np.cumsum(used) - 1).astype(np.int32)
    totals = topics.sum(axis=1, dtype=np.float64)
    rows = topics[:, used].T / totals
    return places[counts.indices], np.ascontiguousarray(rows, dtype=dtype)
