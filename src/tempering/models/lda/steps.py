"""Local steps of documents: of one shard where it was solved, and of what becomes of it elsewhere.

A step that has just been solved still holds its documents and their proportions, and computes its
terms of the ELBO only if somebody asks. To be added to others, or to leave its process, it becomes
:class:`DocumentSums`, which hold what the global update needs, and no document but the first few.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from tempering.models.base import Array, LocalStep, LocalTerms, join_temperatures
from tempering.models.lda.hyperparameters import prior_draws
from tempering.models.lda.kernels import log_predictive
from tempering.models.lda.topics import Float32, WordStatistics

if TYPE_CHECKING:
    from tempering.models.lda.model import LatentDirichlet, TopicExpectations

#: Documents of a batch whose normaliser over the whole vocabulary is computed for VT.
SAMPLED_DOCUMENTS = 10


class Documents(NamedTuple):
    """Documents over the distinct words of their batch, in the kernels' layout."""

    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    counts: Float32
    words: NDArray[np.int64]  # the word that each column stands for

    @property
    def lengths(self) -> Array:
        """Number of words N_d of each document."""
        running = np.append(0.0, np.cumsum(self.counts, dtype=np.float64))
        return np.diff(running[self.indptr])

    def first(self, n: int) -> Documents:
        """The first documents, over the words of all their entries, in memory of their own."""
        end = self.indptr[n]
        words = self.words[self.columns[:end]]
        columns = np.arange(end, dtype=np.int32)
        return Documents(self.indptr[: n + 1].copy(), columns, self.counts[:end].copy(), words)


class Solved(NamedTuple):
    """What the local variables of documents come to."""

    gamma: Float32  # [D, K]
    statistics: Float32  # [U, K], expected counts of the words by topic, weighted by 1/T


class Summary(NamedTuple):
    """What is left of documents that were solved.

    Attributes
    ----------
    documents, gamma
        The first few, a sample of the batch: its documents come in random order.
    n_tokens : float
        Words of all documents.
    prior_statistics : array [K] or None
        What α is learned from, where it is; see :func:`sum_prior_statistics`.
    predictive : array [n] or None
        Σ_n log p̄_{w_n} of each document, where energies are wanted.
    """

    documents: Documents
    gamma: Float32
    n_tokens: float
    prior_statistics: Array | None
    predictive: Array | None

    def joined(self, other: Summary) -> Summary:
        """Of the documents of both; the sample is that of the first."""
        statistics, predictive = self.prior_statistics, self.predictive
        if statistics is not None and other.prior_statistics is not None:
            statistics = statistics + other.prior_statistics
        if predictive is not None and other.predictive is not None:
            predictive = np.concatenate([predictive, other.predictive])
        n_tokens = self.n_tokens + other.n_tokens
        return Summary(self.documents, self.gamma, n_tokens, statistics, predictive)


class DocumentStep(LocalStep):
    """A local step of documents. Its terms of the ELBO are computed only if somebody asks.

    Asking is possible until the global update: the terms are those of the topics before it.
    """

    def __init__(
        self,
        statistics: WordStatistics,
        inverse_temperature: float | Array,
        gamma: Float32,
        documents: Documents,
        compute_terms: Callable[[], LocalTerms],
    ):
        self.statistics = statistics
        self.inverse_temperature = inverse_temperature
        self.bound = 0.0
        self.n = gamma.shape[0]
        self.gamma = gamma
        self.documents = documents
        self._compute_terms = compute_terms

    @cached_property
    def terms(self) -> LocalTerms:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._compute_terms()

    def detached(
        self, model: LatentDirichlet, expectations: TopicExpectations, terms: bool
    ) -> DocumentSums:
        """The step as it leaves its process; with energies only if they are asked for here."""
        summary = summarise(self, model, expectations, predictive=terms)
        return DocumentSums(
            self.statistics,
            self.inverse_temperature,
            self.bound,
            self.n,
            self.terms if terms else None,
            summary,
        )


class DocumentSums(LocalStep):
    """What the steps of some documents add up to."""

    def __init__(
        self,
        statistics: WordStatistics,
        inverse_temperature: float | Array,
        bound: float,
        n: int,
        terms: LocalTerms | None,
        summary: Summary,
    ):
        self.statistics = statistics
        self.inverse_temperature = inverse_temperature
        self.bound = bound
        self.n = n
        self.summary = summary
        self._terms = terms

    @property
    def terms(self) -> LocalTerms:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self._terms is None:
            raise RuntimeError(
                "the energies of these documents were not asked for when they were solved."
            )
        return self._terms

    def __add__(self, other: LocalStep) -> LocalStep:
        if not isinstance(other, DocumentSums):
            return NotImplemented
        terms = None
        if self._terms is not None and other._terms is not None:
            energies = np.concatenate([self.energies, other.energies])
            terms = LocalTerms(energies, self.entropy + other.entropy)
        return DocumentSums(
            self.statistics + other.statistics,
            join_temperatures(self, other),
            self.bound + other.bound,
            self.n + other.n,
            terms,
            self.summary.joined(other.summary),
        )


def summarise(
    local: LocalStep, model: LatentDirichlet, expectations: TopicExpectations, *, predictive: bool
) -> Summary:
    """What is left of a step; of sums, what they have kept."""
    if isinstance(local, DocumentSums):
        return local.summary
    assert isinstance(local, DocumentStep)
    documents, gamma = local.documents, local.gamma
    n = min(SAMPLED_DOCUMENTS, local.n)
    return Summary(
        documents.first(n),
        gamma[:n].copy(),
        float(documents.lengths.sum()),
        sum_prior_statistics(model, gamma) if model.learns_proportions else None,
        predictive_energies(model, local, expectations) if predictive else None,
    )


def sum_log_proportions(gamma: Float32) -> Array:
    """Σ_d E log θ_d, [K]."""
    wide = gamma.astype(np.float64)
    return (digamma(wide) - digamma(wide.sum(axis=1, keepdims=True))).sum(axis=0)


def sum_prior_statistics(model: LatentDirichlet, gamma: Float32) -> Array:
    """What α is learned from, [K]: Σ_d E log θ_d, or draws from the prior where its sum is kept."""
    if model.learn_doc_topic_prior:
        return sum_log_proportions(gamma)
    # In the precision of γ, so that what a document does not hold is 0.
    counts = gamma - model.doc_topic_prior.astype(np.float32)
    return prior_draws(np.maximum(counts, 0.0), model.doc_topic_prior)


def mean_prior_statistics(model: LatentDirichlet, local: LocalStep) -> Array:
    """The mean of these statistics over the documents of a step, [K]."""
    if isinstance(local, DocumentStep):
        return sum_prior_statistics(model, local.gamma) / local.n
    assert isinstance(local, DocumentSums)
    assert local.summary.prior_statistics is not None
    return local.summary.prior_statistics / local.n


def mean_proportions(gamma: NDArray[np.float32]) -> NDArray[np.float32]:
    """θ̄, the posterior means of the topic proportions."""
    return gamma / gamma.sum(axis=1, keepdims=True)


def predictive_energies(
    model: LatentDirichlet, local: DocumentStep, expectations: TopicExpectations
) -> Array:
    """Σ_n log p̄_{w_n} of each document."""
    documents = local.documents
    return log_predictive(
        documents.indptr,
        documents.columns,
        documents.counts,
        expectations.mean_rows(documents.words),
        mean_proportions(local.gamma),
        n_threads=model.n_threads,
    )
