"""The topics as local steps see them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempering.models.base import Array
from tempering.models.lda.partition import Interpolation
from tempering.models.lda.topics import Float32, Topics
from tempering.models.lda.word_rows import TopicForm, gather_log_rows, gather_mean_rows


class TopicExpectations(NamedTuple):
    """E_q[log β] and E_q[β] on demand: for the words of a batch alone."""

    posterior: Topics
    totals: Array  # Σ_v λ_vk, [K]
    form: TopicForm
    n_threads: int = 1

    def log_rows(self, words: NDArray[np.int64]) -> Float32:
        """E log β_kv, or the log of the posterior mean, for some words: [U, K]."""
        rows = self.posterior.lazy_rows(words)
        return gather_log_rows(rows, self.totals, self.form, self.n_threads)

    def mean_rows(self, words: NDArray[np.int64], exponent: float = 1.0) -> Float32:
        """E β_kv for some words, to a power from 1/2 to 1: [U, K]."""
        rows = self.posterior.lazy_rows(words)
        return gather_mean_rows(rows, self.totals, exponent, self.n_threads)

    def prepare(self, inverse_temperatures: Array) -> None:
        """Compute what local temperatures need of all words, before topics go to others."""
        self.posterior.log_power_sums(Interpolation(inverse_temperatures).nodes)
