"""The topics as local steps see them: all words, or the rows of some, to be sent elsewhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempering.models.base import Array
from tempering.models.lda.partition import Interpolation
from tempering.models.lda.topics import Float32, Float64, Topics
from tempering.models.lda.word_rows import (
    LazyRows,
    TopicForm,
    gather_log_rows,
    gather_mean_rows,
)

#: The part of the vocabulary up to which the rows of a batch's words are worth being cut out.
WORTH_CUTTING = 0.8


class TopicRows:
    """λ for some words, with what :class:`Topics` tells of all of them together.

    Parameters
    ----------
    topics : Topics
        All words.
    words : array [U]
        Their places in the vocabulary, rising.
    """

    def __init__(self, topics: Topics, words: NDArray[np.int64]):
        self.offset, self.factor = topics.offset, topics.factor
        self._words = words
        self._values = topics._values[words]
        self._power_sums = topics._power_sums

    def lazy_rows(self, words: NDArray[np.int64]) -> LazyRows:
        """λ for some of the words, to be computed where it is needed."""
        return LazyRows(self._values, self._places(words), self.factor, self.offset)

    def log_power_sums(self, nodes: Float64) -> Float64:
        """The sums over the whole vocabulary, as they were when the rows were cut out."""
        if self._power_sums is None or not np.array_equal(self._power_sums[0], nodes):
            raise RuntimeError("the power sums of the topics were not computed before they left.")
        return self._power_sums[1]

    def _places(self, words: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self._words, words)


class TopicExpectations(NamedTuple):
    """E_q[log β] and E_q[β] on demand: for the words of a batch alone."""

    posterior: Topics | TopicRows
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

    @property
    def topics(self) -> Topics:
        """The topics with all their words, where the global update is made."""
        assert isinstance(self.posterior, Topics)
        return self.posterior

    # What an executor asks that sends expectations to other processes.

    @property
    def nbytes(self) -> int:
        """Size of λ, V × K × 4."""
        return self.posterior._values.nbytes

    def for_columns(self, columns: NDArray[np.int64]) -> TopicExpectations:
        """What documents need that use these words alone; all of it where that is hardly less."""
        if columns.size > WORTH_CUTTING * self.topics.shape[0]:
            return self
        return self._replace(posterior=TopicRows(self.topics, columns))

    def prepare(self, inverse_temperatures: Array) -> None:
        """Compute what local temperatures need of all words, before some of them leave."""
        self.topics.log_power_sums(Interpolation(inverse_temperatures).nodes)
