"""Checks of what the kernels are given: they trust their indices, so nothing wrong may pass."""

import numpy as np
from numpy.typing import ArrayLike

from tempering.models.lda.layout import Batch, Float32, Settings, padded_to


def check_batch(
    indptr: ArrayLike, columns: ArrayLike, counts: ArrayLike, rows: ArrayLike, name: str
) -> tuple[Batch, Float32]:
    """The batch and its rows in the kernels' types; kernels do not check their indices."""
    batch = Batch(
        np.ascontiguousarray(indptr, dtype=np.int64),
        np.ascontiguousarray(columns, dtype=np.int32),
        np.ascontiguousarray(counts, dtype=np.float32),
    )
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"{name} must have shape (n_words, n_topics), got {rows.shape}.")
    n_entries = batch.columns.size
    ends_fit = batch.indptr.size > 0 and batch.indptr[0] == 0 and batch.indptr[-1] == n_entries
    if not ends_fit or np.any(np.diff(batch.indptr) < 0) or batch.counts.size != n_entries:
        raise ValueError(
            "indptr must rise from 0 to the number of columns, and counts must match columns."
        )
    if n_entries and (batch.columns.min() < 0 or batch.columns.max() >= rows.shape[0]):
        raise ValueError(f"columns must lie from 0 to {rows.shape[0] - 1}, the rows of {name}.")
    if not np.all(np.isfinite(batch.counts)) or np.any(batch.counts < 0):
        raise ValueError("counts must be finite and not negative.")
    return batch, rows


def check_settings(
    n_documents: int,
    n_topics: int,
    alpha: ArrayLike,
    inverse_temperature: float | ArrayLike,
    theta: str,
    tolerance: float,
    min_iterations: int,
    max_iterations: int,
) -> tuple[Settings, bool]:
    """The settings, and whether all documents share one inverse temperature."""
    alpha = np.asarray(alpha, dtype=np.float32)
    if alpha.shape not in ((), (n_topics,)) or not np.all(np.isfinite(alpha) & (alpha > 0)):
        raise ValueError(f"alpha must be positive and finite: one number or {n_topics}.")
    if not 0 <= tolerance < 1:
        raise ValueError(f"tolerance must lie in [0, 1), got {tolerance}.")
    if max_iterations < 1:
        raise ValueError(f"max_iterations must be at least 1, got {max_iterations}.")
    padded_alpha = np.empty(padded_to(16, n_topics), np.float32)
    padded_alpha[:n_topics] = alpha
    padded_alpha[n_topics:] = padded_alpha[0]
    inverse_temperatures, shared = check_inverse_temperature(inverse_temperature, n_documents)
    settings = Settings(
        padded_alpha,
        inverse_temperatures,
        is_collapsed(theta),
        bool(np.all(padded_alpha == padded_alpha[0])),
        np.float32(tolerance),
        int(min_iterations),
        int(max_iterations),
    )
    return settings, shared


def check_inverse_temperature(
    inverse_temperature: float | ArrayLike, n_documents: int
) -> tuple[Float32, bool]:
    """One inverse temperature for each document, and whether they were given as one number."""
    given = np.asarray(inverse_temperature, dtype=np.float32)
    if given.shape not in ((), (n_documents,)) or not np.all((given > 0) & (given <= 1)):
        raise ValueError(
            f"inverse_temperature must lie in (0, 1]: one number or one for each of the "
            f"{n_documents} documents."
        )
    return np.broadcast_to(given, n_documents).copy(), given.ndim == 0


def check_gamma(gamma: ArrayLike, shape: tuple[int, int]) -> Float32:
    """A gamma given by the caller."""
    gamma = np.ascontiguousarray(gamma, dtype=np.float32)
    if gamma.shape != shape or not np.all(np.isfinite(gamma) & (gamma > 0)):
        raise ValueError(f"gamma must be positive and finite and have shape {shape}.")
    return gamma


def is_collapsed(theta: str) -> bool:
    if theta not in ("variational", "collapsed"):
        raise ValueError(f"theta must be 'variational' or 'collapsed', got {theta!r}.")
    return theta == "collapsed"


def check_finite(maxima: Float32) -> None:
    """Refuse rows with a NaN, which is then their maximum, or with an infinite maximum."""
    wrong = np.flatnonzero(~np.isfinite(maxima))
    if wrong.size:
        raise ValueError(
            f"log_rows must hold numbers, with a finite one in each row, but row {wrong[0]} of "
            f"{maxima.size} does not: check the topics."
        )
