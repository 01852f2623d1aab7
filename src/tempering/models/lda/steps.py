"""Local steps of documents: of one shard where it was solved, and of what becomes of it elsewhere.

A step that has just been solved still holds its documents and their proportions, and computes its
terms of the ELBO only if somebody asks. To be added to others, or to leave its process, it becomes
:class:`DocumentSums`, which hold what the global update needs, and no document but the first few.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tempering.models.base import Array, LocalStep, LocalTerms, join_temperatures
from tempering.models.lda.e_step import log_predictive
from tempering.models.lda.expectations import TopicExpectations
from tempering.models.lda.layout import Documents, Float32
from tempering.models.lda.topics import WordStatistics

#: Documents of a batch whose normaliser over the whole vocabulary is computed for VT.
SAMPLED_DOCUMENTS = 10


class Summary(NamedTuple):
    """What is left of documents that were solved.

    Attributes
    ----------
    documents, gamma
        The first few, a sample of the batch: its documents come in random order.
    n_tokens : float
        Words of all documents.
    prior_statistics : array [K] or None
        What α is learned from, summed over the documents; None where it is not learned.
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
        sum_prior_statistics: Callable[[Float32], Array] | None,
    ):
        self.statistics = statistics
        self.inverse_temperature = inverse_temperature
        self.bound = 0.0
        self.n = gamma.shape[0]
        self.gamma = gamma
        self.documents = documents
        self._compute_terms = compute_terms
        self._sum_prior_statistics = sum_prior_statistics

    @cached_property
    def terms(self) -> LocalTerms:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._compute_terms()

    @property
    def prior_statistics(self) -> Array | None:
        """What α is learned from, summed over the documents; None where it is not learned."""
        return (
            None if self._sum_prior_statistics is None else self._sum_prior_statistics(self.gamma)
        )

    def detached(self, expectations: TopicExpectations, terms: bool) -> DocumentSums:
        """The step as it leaves its process; with energies only if they are asked for here."""
        summary = summarise(self, expectations, predictive=terms)
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

    @property
    def prior_statistics(self) -> Array | None:
        """What α is learned from, summed over the documents; None where it is not learned."""
        return self.summary.prior_statistics

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


def summarise(local: LocalStep, expectations: TopicExpectations, *, predictive: bool) -> Summary:
    """What is left of a step; of sums, what they have kept."""
    if isinstance(local, DocumentSums):
        return local.summary
    assert isinstance(local, DocumentStep)
    documents = local.documents
    n = min(SAMPLED_DOCUMENTS, local.n)
    return Summary(
        documents.first(n),
        local.gamma[:n].copy(),
        float(documents.lengths.sum()),
        local.prior_statistics,
        predictive_energies(local, expectations) if predictive else None,
    )


def mean_proportions(gamma: Float32) -> Float32:
    """θ̄, the posterior means of the topic proportions."""
    return gamma / gamma.sum(axis=1, keepdims=True)


def predictive_energies(local: DocumentStep, expectations: TopicExpectations) -> Array:
    """Σ_n log p̄_{w_n} of each document."""
    documents = local.documents
    return log_predictive(
        *documents.word_counts,
        expectations.mean_rows(documents.words),
        mean_proportions(local.gamma),
        n_threads=expectations.n_threads,
    )
