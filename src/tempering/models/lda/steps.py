"""The topics as local steps see them; local steps of documents; what temperatures are learned from.

A step just solved computes its terms of the ELBO only if somebody asks. To be added to others, or
to leave its process, it becomes :class:`DocumentSums`: what the global update needs.

The energy E log p(w, z | θ, β) of the paper mixes badly with a normaliser in which z is summed out:
it sends T to its maximum. :func:`temperature_terms` scores a document by p̄_v = Σ_k θ̄_k β̄_kv, with
the normaliser of that distribution. The tempered partition function of D documents of N words is,
as in the paper's supplement,

    C(s) = ∫ p(β) [ ∫ p(θ) ( Σ_v (Σ_k θ_k β_kv)^s )^N dθ ]^D dβ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy import special
from scipy.special import logsumexp

from tempering.families import Dirichlet
from tempering.models.base import Array, LocalStep, TemperatureTerms, UnsupportedTemperature
from tempering.models.compilation import ENTRY, njit
from tempering.models.fastmath import digamma, larger, log, power
from tempering.models.lda.e_step import log_predictive
from tempering.models.lda.layout import Documents, Float32
from tempering.models.lda.topics import Topics, WordStatistics
from tempering.models.natural import LocalTerms, join_temperatures
from tempering.models.threads import WORDS_PER_BLOCK, in_blocks

TopicForm = Literal["variational", "mean"]

# digamma(x) is about -1/x: below this it would leave the range of float32.
SMALLEST_PARAMETER = np.float32(1e-30)


class Interpolation:
    """Smooth functions of s, known at Chebyshev nodes, on a grid of inverse temperatures."""

    def __init__(self, inverse_temperatures: Array, n_nodes: int = 12):
        grid = np.asarray(inverse_temperatures, float)
        low = min(float(grid.min()), 0.99)
        unit_nodes = chebyshev.chebpts1(n_nodes)
        self.nodes = low + (1.0 - low) * (unit_nodes + 1) / 2
        position = 2 * (grid - low) / (1.0 - low) - 1
        at_nodes = chebyshev.chebvander(unit_nodes, n_nodes - 1)
        self._matrix = chebyshev.chebvander(position, n_nodes - 1) @ np.linalg.inv(at_nodes)

    def __call__(self, values: Array) -> Array:
        """Values at the nodes [..., n_nodes] to values on the grid [..., M]."""
        return values @ self._matrix.T


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
        values, factor, offset = self.posterior.parts()
        log_rows = np.empty((words.size, totals.size), np.float32)

        def fill_block(start: int, stop: int) -> None:
            parts = values, words[start:stop], factor, offset
            fill_log_rows(*parts, log_totals, form == "mean", log_rows[start:stop])

        in_blocks(fill_block, words.size, self.n_threads, WORDS_PER_BLOCK)
        return log_rows

    def mean_rows(self, words: NDArray[np.int64], exponent: float = 1.0) -> Float32:
        """E β_kv for some words, to a power from 1/2 to 1: [U, K]."""
        shares = (1.0 / self.totals).astype(np.float32)
        values, factor, offset = self.posterior.parts()
        means = np.empty((words.size, shares.size), np.float32)

        def fill_block(start: int, stop: int) -> None:
            fill_mean_rows(values, words[start:stop], factor, offset, shares, means[start:stop])
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


#: Documents of a batch whose normaliser over the whole vocabulary is computed for VT.
SAMPLED_DOCUMENTS = 10


@dataclass(eq=False, repr=False)
class DocumentStep(LocalStep):
    """A local step of documents. Its terms of the ELBO are computed only if somebody asks.

    Asking is possible until the global update: the terms are those of the topics before it.
    """

    statistics: WordStatistics
    inverse_temperature: float | Array
    gamma: Float32
    documents: Documents
    compute_terms: Callable[[], LocalTerms]
    sum_prior_statistics: Callable[[Float32], Array] | None
    bound: float = 0.0

    def __post_init__(self) -> None:
        self.n = self.gamma.shape[0]

    @cached_property
    def terms(self) -> LocalTerms:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.compute_terms()

    @property
    def prior_statistics(self) -> Array | None:
        """What α is learned from, summed over the documents; None where it is not learned."""
        return None if self.sum_prior_statistics is None else self.sum_prior_statistics(self.gamma)

    def detached(self, expectations: TopicExpectations, terms: bool) -> DocumentSums:
        """The step as it leaves its process; with energies only if they are asked for here."""
        n = min(SAMPLED_DOCUMENTS, self.n)
        return DocumentSums(
            self.statistics,
            self.inverse_temperature,
            self.bound,
            self.n,
            self.terms if terms else None,
            self.documents.first(n),
            self.gamma[:n].copy(),
            float(self.documents.lengths.sum()),
            self.prior_statistics,
            predictive_energies(self, expectations) if terms else None,
        )


@dataclass(eq=False, repr=False)
class DocumentSums(LocalStep):
    """What the steps of some documents add up to; the first few documents are left of them."""

    statistics: WordStatistics
    inverse_temperature: float | Array
    bound: float
    n: int
    kept_terms: LocalTerms | None
    documents: Documents  # the first few, a sample of the batch: they come in random order
    gamma: Float32  # of these
    n_tokens: float  # words of all documents
    prior_statistics: Array | None  # what α is learned from, summed; None where it is not, [K]
    predictive: Array | None  # Σ_n log p̄_{w_n} of each, where energies are wanted, [n]

    @property
    def terms(self) -> LocalTerms:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self.kept_terms is None:
            raise RuntimeError(
                "the energies of these documents were not asked for when they were solved."
            )
        return self.kept_terms

    def __add__(self, other: LocalStep) -> LocalStep:
        if not isinstance(other, DocumentSums):
            return NotImplemented
        terms, statistics, predictive = None, self.prior_statistics, self.predictive
        if self.kept_terms is not None and other.kept_terms is not None:
            energies = np.concatenate([self.energies, other.energies])
            terms = LocalTerms(energies, self.entropy + other.entropy)
        if statistics is not None and other.prior_statistics is not None:
            statistics = statistics + other.prior_statistics
        if predictive is not None and other.predictive is not None:
            predictive = np.concatenate([predictive, other.predictive])
        return replace(
            self,
            statistics=self.statistics + other.statistics,
            inverse_temperature=join_temperatures(self, other),
            bound=self.bound + other.bound,
            n=self.n + other.n,
            kept_terms=terms,
            n_tokens=self.n_tokens + other.n_tokens,
            prior_statistics=statistics,
            predictive=predictive,
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


def temperature_terms(
    local: Any,
    expectations: TopicExpectations,
    alpha: Array,
    grid: Array,
    formula: str,
    shared: bool,
) -> TemperatureTerms:
    """Energies and log normalisers of documents, by the formula's name.

    =====================  ======================================================================
    VT "calibrated"        Σ log p̄ of a sample of documents, and N_d log Σ_v p̄_v^s
    VT "z-integrated"      Σ log p̄ of all documents (log C(s) is the model's, by Monte Carlo)
    LVT "calibrated"       Σ log p̄, and N_d log Σ_k θ̄_k Z_k(s) with Z_k(s) = Σ_v E[β_kv^s]
    LVT "paper"            E log p(w, z), and N_d log Σ_k E[θ_k^s] Z_k(s)
    =====================  ======================================================================
    """
    check_formula(formula)
    if formula == "z-integrated":
        solved_here = isinstance(local, DocumentStep)
        energies = predictive_energies(local, expectations) if solved_here else local.predictive
        return TemperatureTerms(energies, np.zeros((1, grid.size)), exact=False)
    if formula == "calibrated" and shared:
        if isinstance(local, DocumentStep):
            local = local.detached(expectations, terms=False)
        return _sampled_documents(local, expectations, grid)
    assert isinstance(local, DocumentStep)  # local temperatures are learned where it was solved
    if formula == "calibrated":
        energies = predictive_energies(local, expectations)
    else:
        energies = local.energies
    to_grid = Interpolation(grid)
    log_z = expectations.posterior.log_power_sums(to_grid.nodes)  # [K, nodes]
    at_nodes = log_normalizers(formula, local.gamma, alpha, log_z, to_grid.nodes)
    normalizer = to_grid(at_nodes)
    lengths = local.documents.lengths[:, None]
    return TemperatureTerms(energies, lengths * normalizer, exact=False)


def check_formula(formula: str) -> None:
    """Raise if topics have no such formula."""
    if formula not in ("calibrated", "z-integrated", "paper"):
        raise UnsupportedTemperature(f"LatentDirichlet has no temperature formula {formula!r}.")


def _sampled_documents(
    sums: DocumentSums, expectations: TopicExpectations, grid: Array
) -> TemperatureTerms:
    """Σ log p̄ and N log Σ_v p̄^s of the documents that are left of a batch."""
    documents, gamma = sums.documents, sums.gamma
    n = gamma.shape[0]
    weights = mean_proportions(gamma) / expectations.totals.astype(np.float32)
    log_probability = np.log(expectations.posterior.project(weights.T)).T  # [n, V]
    owner = np.repeat(np.arange(n), np.diff(documents.indptr))
    counts = documents.counts.astype(np.float64)
    used = log_probability[owner, documents.words]
    energies = np.bincount(owner, counts * used, minlength=n).astype(np.float64)
    to_grid = Interpolation(grid)
    normalizers = to_grid(log_power_sums(log_probability, to_grid.nodes))
    lengths = documents.lengths
    share = lengths.sum() / max(sums.n_tokens, 1.0)
    return TemperatureTerms(energies, lengths[:, None] * normalizers, share or 1.0, exact=False)


def log_normalizers(formula: str, gamma: Any, alpha: Array, log_z: Array, nodes: Array) -> Array:
    """The log normaliser of one word of each document at the nodes, [n, nodes]."""
    if formula == "paper":
        log_theta = Dirichlet(alpha.size).log_moment(gamma, nodes)  # [n, nodes, K]
        return logsumexp(log_theta + log_z.T, axis=2)
    largest = log_z.max(axis=0)
    return np.log(mean_proportions(gamma) @ np.exp(log_z - largest)) + largest


class TopicDraws(NamedTuple):
    """n draws of all topics from their prior, made one at a time from a seed: they are large."""

    n: int
    seed: int


def log_mean_power_sums(
    draws: TopicDraws, alpha: Array, eta: float, n_words: int, inverse_temperatures: Array
) -> Array:
    """log Σ_v (Σ_k θ_k β_kv)^s for draws of β, and 100 of θ for each, from priors: [n, 100, M]."""
    to_grid, n_draws = Interpolation(inverse_temperatures), 100
    topic_prior = np.full(n_words, eta)
    values = np.empty((draws.n, n_draws, np.size(inverse_temperatures)))
    for i in range(draws.n):
        rng = np.random.default_rng([draws.seed, i])
        topics = Dirichlet(n_words).sample(topic_prior, rng, alpha.size)
        theta = Dirichlet(alpha.size).sample(np.asarray(alpha), rng, n_draws)
        with np.errstate(divide="ignore"):
            log_mixed = np.log((theta @ topics).astype(np.float32))
        values[i] = to_grid(log_power_sums(log_mixed, to_grid.nodes))
    return values


def log_power_sums(log_probabilities: Array, powers: Array) -> Array:
    """log Σ_v p_v^s for distributions [n, V] and powers [M]: [n, M]."""
    largest = log_probabilities.max(axis=1, keepdims=True)
    shifted = log_probabilities - largest
    sums = [np.exp(s * shifted).sum(axis=1) for s in powers.astype(shifted.dtype)]
    return np.log(np.stack(sums, axis=1)) + largest * powers
