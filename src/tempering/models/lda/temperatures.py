"""What the temperatures of a topic model are learned from.

The energy E log p(w, z | θ, β) of the paper mixes badly with a normaliser in which z is summed out:
it sends T to its maximum. The formulas of :func:`temperature_terms` score a document by the
probability p̄ of its words under posterior means, p̄_v = Σ_k θ̄_k β̄_kv, with the normaliser of that
same distribution.

The tempered partition function, with topic assignments summed out, of D documents of N words each
is, as in the paper's supplement,

    C(s) = ∫ p(β) [ ∫ p(θ) ( Σ_v (Σ_k θ_k β_kv)^s )^N dθ ]^D dβ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from tempering.families import Dirichlet
from tempering.models.base import Array, LocalStep, TemperatureTerms, UnsupportedTemperature
from tempering.models.lda.expectations import TopicExpectations
from tempering.models.lda.steps import (
    DocumentStep,
    Summary,
    mean_proportions,
    predictive_energies,
    summarise,
)
from tempering.models.lda.topics import Interpolation

#: Draws of θ for each draw of the topics.
PROPORTION_DRAWS = 100


def temperature_terms(
    local: LocalStep,
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
        summary = summarise(local, expectations, predictive=True)
        assert summary.predictive is not None
        return TemperatureTerms(summary.predictive, np.zeros((1, grid.size)), exact=False)
    if formula == "calibrated" and shared:
        summary = summarise(local, expectations, predictive=False)
        return _sampled_documents(summary, expectations, grid)
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
    summary: Summary, expectations: TopicExpectations, grid: Array
) -> TemperatureTerms:
    """Σ log p̄ and N log Σ_v p̄^s of the first documents of a batch, which come in random order."""
    documents, gamma = summary.documents, summary.gamma
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
    share = lengths.sum() / max(summary.n_tokens, 1.0)
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
    """log Σ_v (Σ_k θ_k β_kv)^s for draws of β and θ from their priors: [n, PROPORTION_DRAWS, M]."""
    to_grid = Interpolation(inverse_temperatures)
    topic_prior = np.full(n_words, eta)
    values = np.empty((draws.n, PROPORTION_DRAWS, np.size(inverse_temperatures)))
    for i in range(draws.n):
        rng = np.random.default_rng([draws.seed, i])
        topics = Dirichlet(n_words).sample(topic_prior, rng, alpha.size)
        theta = Dirichlet(alpha.size).sample(np.asarray(alpha), rng, PROPORTION_DRAWS)
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
