"""The topics as local steps see them: E log β and E β, for the words of a batch alone."""

from typing import Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import special

from tempering.models.base import Array
from tempering.models.fastmath import ENTRY, digamma, larger, log, power
from tempering.models.lda.layout import Float32
from tempering.models.lda.topics import Interpolation, Topics
from tempering.models.threads import WORDS_PER_BLOCK, in_blocks

TopicForm = Literal["variational", "mean"]

# digamma(x) is about -1/x: below this it would leave the range of float32.
SMALLEST_PARAMETER = np.float32(1e-30)


class TopicExpectations(NamedTuple):
    """E_q[log β] and E_q[β] on demand: for the words of a batch alone."""

    posterior: Topics
    totals: Array  # Σ_v λ_vk, [K]
    form: TopicForm
    n_threads: int = 1

    def log_rows(self, words: NDArray[np.int64]) -> Float32:
        """E log β_kv, or the log of the posterior mean, for some words: [U, K]."""
        totals, form = np.asarray(self.totals, np.float64), self.form
        log_totals = special.digamma(totals) if form == "variational" else np.log(totals)
        log_totals = log_totals.astype(np.float32)
        rows = self.posterior.lazy_rows(words)
        log_rows = np.empty(rows.shape, np.float32)

        def fill_block(start: int, stop: int) -> None:
            part = rows.part(start, stop)
            fill_log_rows(*part, log_totals, form == "mean", log_rows[start:stop])

        in_blocks(fill_block, words.size, self.n_threads, WORDS_PER_BLOCK)
        return log_rows

    def mean_rows(self, words: NDArray[np.int64], exponent: float = 1.0) -> Float32:
        """E β_kv for some words, to a power from 1/2 to 1: [U, K]."""
        shares = (1.0 / self.totals).astype(np.float32)
        rows = self.posterior.lazy_rows(words)
        means = np.empty(rows.shape, np.float32)

        def fill_block(start: int, stop: int) -> None:
            fill_mean_rows(*rows.part(start, stop), shares, means[start:stop])
            if exponent != 1.0:
                raise_rows(np.float32(exponent), means[start:stop])

        in_blocks(fill_block, words.size, self.n_threads, WORDS_PER_BLOCK)
        return means

    def prepare(self, inverse_temperatures: Array) -> None:
        """Compute what local temperatures need of all words, before topics go to others."""
        self.posterior.log_power_sums(Interpolation(inverse_temperatures).nodes)


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
