"""Rows of the batch's words: E beta and E log beta from the topics, and tempered exponentials."""

from typing import Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import special

from tempering.models.fastmath import ENTRY, KERNEL, digamma, exp_or_zero, f32, larger, log, power
from tempering.models.lda.blocks import FEWEST_WORDS, in_blocks

Float32 = NDArray[np.float32]
TopicForm = Literal["variational", "mean"]

# digamma(x) is about -1/x: below this it would leave the range of float32.
SMALLEST_PARAMETER = np.float32(1e-30)


# Values, words, factor and offset of some lazy rows.
PartOfRows = tuple[Float32, NDArray[np.int64], np.float32, np.float32]


class LazyRows(NamedTuple):
    """Dirichlet parameters of some words, offset + factor * values[words], not yet computed."""

    values: Float32  # [words of the vocabulary or some of them, n_topics]
    words: NDArray[np.int64]  # places among them
    factor: float
    offset: float

    @property
    def shape(self) -> tuple[int, int]:
        """Of the rows when they are computed."""
        return self.words.size, self.values.shape[1]

    def part(self, start: int, stop: int) -> PartOfRows:
        """What kernels take of the rows from `start` to `stop`."""
        words = self.words[start:stop]
        return self.values, words, np.float32(self.factor), np.float32(self.offset)


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
    return gather_log_rows(LazyRows(posterior_rows, every_row, 1.0, 0.0), topic_totals, form)


def gather_log_rows(
    rows: LazyRows, topic_totals: NDArray[np.float64], form: TopicForm, n_threads: int = 1
) -> Float32:
    """The same for lazy rows, in one pass over them."""
    totals = np.asarray(topic_totals, dtype=np.float64)
    log_totals = special.digamma(totals) if form == "variational" else np.log(totals)
    log_totals = log_totals.astype(np.float32)
    log_rows = np.empty(rows.shape, np.float32)

    def fill_block(start: int, stop: int) -> None:
        part = rows.part(start, stop)
        fill_log_rows(*part, log_totals, form == "mean", log_rows[start:stop])

    in_blocks(fill_block, rows.words.size, n_threads, FEWEST_WORDS)
    return log_rows


def gather_mean_rows(
    rows: LazyRows, topic_totals: NDArray[np.float64], exponent: float = 1.0, n_threads: int = 1
) -> Float32:
    """The posterior means of the topics, lambda / total, to a power from 1/2 to 1."""
    shares = (1.0 / topic_totals).astype(np.float32)
    means = np.empty(rows.shape, np.float32)

    def fill_block(start: int, stop: int) -> None:
        fill_mean_rows(*rows.part(start, stop), shares, means[start:stop])
        if exponent != 1.0:
            raise_rows(np.float32(exponent), means[start:stop])

    in_blocks(fill_block, rows.words.size, n_threads, FEWEST_WORDS)
    return means


@njit(**ENTRY)
def fill_mean_rows(values, words, factor, offset, shares, rows):
    """Set the rows: each parameter times its topic's share, 1 / total."""
    for u in range(words.size):
        row = values[words[u]]
        out = rows[u]
        for k in range(row.size):
            out[k] = larger(offset + factor * row[k], SMALLEST_PARAMETER) * shares[k]


@njit(**ENTRY)
def raise_rows(exponent, rows):
    """Raise all entries of the rows to a power."""
    for u in range(rows.shape[0]):
        row = rows[u]
        for k in range(row.size):
            row[k] = power(row[k], exponent)


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
