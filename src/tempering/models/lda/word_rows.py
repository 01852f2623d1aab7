"""Rows of the batch's words: E beta and E log beta from the topics, and tempered exponentials."""

from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import special

from tempering.models.fastmath import ENTRY, KERNEL, digamma, exp_or_zero, f32, larger, log
from tempering.models.lda.blocks import WORDS, in_blocks

Float32 = NDArray[np.float32]
TopicForm = Literal["variational", "mean"]

# digamma(x) is about -1/x: below this it would leave the range of float32.
SMALLEST_PARAMETER = np.float32(1e-30)


def log_word_rows(
    posterior_rows: Float32, topic_totals: NDArray[np.float64], form: TopicForm = "variational"
) -> Float32:
    """Log weights of the topics for each of a batch's words.

    Parameters
    ----------
    posterior_rows : array of shape (n_words, n_topics)
        Dirichlet parameters lambda of the topics, word by word, for the batch's words alone.
    topic_totals : array of shape (n_topics,)
        Sum of each topic's parameters over the whole vocabulary.
    form : {"variational", "mean"}
        E log beta = digamma(lambda) - digamma(total), or the log of the posterior mean,
        log(lambda / total).

    Returns
    -------
    array of shape (n_words, n_topics), float32
    """
    if form not in ("variational", "mean"):
        raise ValueError(f"form must be 'variational' or 'mean', got {form!r}.")
    posterior_rows = np.ascontiguousarray(posterior_rows, dtype=np.float32)
    if posterior_rows.ndim != 2 or posterior_rows.shape[1] != np.size(topic_totals):
        raise ValueError(
            "posterior_rows must have a column for each of the "
            f"{np.size(topic_totals)} topic_totals, got shape {posterior_rows.shape}."
        )
    every_row = np.arange(posterior_rows.shape[0])
    return gather_log_rows(posterior_rows, every_row, 1.0, 0.0, topic_totals, form)


def gather_log_rows(
    values: Float32,
    words: NDArray[np.int64],
    factor: float,
    offset: float,
    topic_totals: NDArray[np.float64],
    form: TopicForm,
    n_threads: int = 1,
) -> Float32:
    """The same for parameters offset + factor * values[words], in one pass over them."""
    totals = np.asarray(topic_totals, dtype=np.float64)
    log_totals = special.digamma(totals) if form == "variational" else np.log(totals)
    log_totals = log_totals.astype(np.float32)
    log_rows = np.empty((words.size, values.shape[1]), np.float32)

    def fill_block(start: int, stop: int) -> None:
        fill_log_rows(
            values,
            words[start:stop],
            np.float32(factor),
            np.float32(offset),
            log_totals,
            form == "mean",
            log_rows[start:stop],
        )

    in_blocks(fill_block, words.size, n_threads, WORDS)
    return log_rows


def gather_mean_rows(
    values: Float32,
    words: NDArray[np.int64],
    factor: float,
    offset: float,
    topic_totals: NDArray[np.float64],
    n_threads: int = 1,
) -> Float32:
    """The posterior means lambda / total, lambda being offset + factor * values[words]."""
    shares = (1.0 / topic_totals).astype(np.float32)
    rows = np.empty((words.size, values.shape[1]), np.float32)

    def fill_block(start: int, stop: int) -> None:
        lazy = (np.float32(factor), np.float32(offset))
        fill_mean_rows(values, words[start:stop], *lazy, shares, rows[start:stop])

    in_blocks(fill_block, words.size, n_threads, WORDS)
    return rows


@njit(**ENTRY)
def fill_mean_rows(values, words, factor, offset, shares, rows):
    """Set the rows: each parameter times its topic's share, 1 / total."""
    for u in range(words.size):
        row = values[words[u]]
        out = rows[u]
        for k in range(row.size):
            out[k] = larger(offset + factor * row[k], SMALLEST_PARAMETER) * shares[k]


@njit(**ENTRY)
def fill_log_rows(values, words, factor, offset, log_totals, mean, log_rows):
    """Set the log rows: log or digamma of each parameter, less that of its topic's total."""
    for u in range(words.size):
        row = values[words[u]]
        out = log_rows[u]
        if mean:
            for k in range(row.size):
                parameter = larger(offset + factor * row[k], SMALLEST_PARAMETER)
                out[k] = log(parameter) - log_totals[k]
        else:
            for k in range(row.size):
                parameter = larger(offset + factor * row[k], SMALLEST_PARAMETER)
                out[k] = digamma(parameter) - log_totals[k]


@njit(**KERNEL)
def row_maximum(log_row):
    """The largest entry of a row, NaN if any entry is."""
    top = f32(-np.inf)
    for k in range(log_row.size):
        top = larger(top, log_row[k])
    return top


@njit(**KERNEL)
def exponentiate(log_row, maximum, s, row):
    """Set row = exp(s (log_row - maximum)), zero in the padding; return its sum, at least 1."""
    n_topics = log_row.size
    total = f32(0.0)
    for k in range(n_topics):
        row[k] = exp_or_zero(s * (log_row[k] - maximum))
        total += row[k]
    for k in range(n_topics, row.size):
        row[k] = f32(0.0)
    return total


@njit(**ENTRY)
def fill_maxima(start, stop, log_rows, maxima):
    """Set the maxima of the rows from `start` to `stop`."""
    for v in range(start, stop):
        maxima[v] = row_maximum(log_rows[v])


@njit(**ENTRY)
def fill_rows(start, stop, log_rows, s, maxima, rows, row_sums):
    """Set maxima, tempered rows and their sums, from `start` to `stop`, at one temperature."""
    for v in range(start, stop):
        maxima[v] = row_maximum(log_rows[v])
        row_sums[v] = exponentiate(log_rows[v], maxima[v], s, rows[v])
