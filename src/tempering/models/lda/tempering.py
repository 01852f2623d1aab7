"""What the temperatures of a topic model are learned from.

The energy E log p(w, z | θ, β) of the paper mixes badly with a normaliser in which z is summed out:
it sends T to its maximum. The formulas here score a document by the probability p̄ of its words
under posterior means, p̄_v = Σ_k θ̄_k β̄_kv, with the normaliser of that same distribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import digamma, logsumexp

from tempering.families import Dirichlet
from tempering.models.base import Array, LocalStep, TemperatureTerms, UnsupportedTemperature
from tempering.models.lda.kernels import document_energy
from tempering.models.lda.partition import Interpolation, log_power_sums
from tempering.models.lda.steps import (
    DocumentStep,
    Summary,
    mean_proportions,
    predictive_energies,
    summarise,
)

if TYPE_CHECKING:
    from tempering.models.lda.model import LatentDirichlet, TopicExpectations


def temperature_terms(
    model: LatentDirichlet,
    local: LocalStep,
    expectations: TopicExpectations,
    grid: Array,
    data: Any,
    formula: str,
    shared: bool,
) -> TemperatureTerms:
    """Energies and log normalisers of documents, by the formula's name.

    =====================  ======================================================================
    VT "calibrated"        Σ log p̄ of a sample of documents, and N_d log Σ_v p̄_v^s
    VT "z-integrated"      Σ log p̄ of all documents (log C(s) is the model's, by Monte Carlo)
    LVT "calibrated"       Σ log p̄, and N_d log Σ_k θ̄_k Z_k(s) with Z_k(s) = Σ_v E[β_kv^s]
    LVT "words"            Σ φ E log β, and N_d Σ_k φ̄_k log Z_k(s)
    LVT "paper"            E log p(w, z), and N_d log Σ_k E[θ_k^s] Z_k(s)
    =====================  ======================================================================
    """
    check_formula(formula)
    if formula == "z-integrated":
        summary = summarise(local, model, expectations, predictive=True)
        assert summary.predictive is not None
        return TemperatureTerms(summary.predictive, np.zeros((1, grid.size)), exact=False)
    if formula == "calibrated" and shared:
        summary = summarise(local, model, expectations, predictive=False)
        return _sampled_documents(summary, expectations, grid)
    assert isinstance(local, DocumentStep)  # local temperatures are learned where it was solved
    solved = local
    if formula == "calibrated":
        energies = predictive_energies(model, solved, expectations)
    elif formula == "words":
        energies = _word_energies(model, solved, expectations)
    else:
        energies = solved.energies
    to_grid = Interpolation(grid)
    log_z = expectations.posterior.log_power_sums(to_grid.nodes)  # [K, nodes]
    at_nodes = log_normalizers(formula, solved.gamma, model.doc_topic_prior, log_z, to_grid.nodes)
    normalizer = to_grid(at_nodes)
    lengths = solved.documents.lengths[:, None]
    return TemperatureTerms(energies, lengths * normalizer, exact=False)


def check_formula(formula: str) -> None:
    """Raise if topics have no such formula."""
    if formula not in ("calibrated", "z-integrated", "words", "paper"):
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


def _word_energies(
    model: LatentDirichlet, local: DocumentStep, expectations: TopicExpectations
) -> Array:
    """Σ_v n_dv Σ_k φ_dvk E log β_kv: the energy less its part in θ."""
    documents = local.documents
    energy = document_energy(
        documents.indptr,
        documents.columns,
        documents.counts,
        expectations.log_rows(documents.words),
        local.gamma,
        local.inverse_temperature,
        n_threads=model.n_threads,
    ).energy
    return without_proportions(
        energy, local.gamma, model.doc_topic_prior, local.inverse_temperature
    )


def without_proportions(
    energies: Array, gamma: Any, alpha: Array, inverse_temperature: float | Array
) -> Array:
    """Energies less their part in θ, Σ_v n_dv Σ_k φ_dvk E log θ_dk."""
    gamma, s = gamma.astype(np.float64), np.reshape(inverse_temperature, (-1, 1))
    expected = digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))
    return energies - np.sum((gamma - alpha) / s * expected, axis=1)


def log_normalizers(formula: str, gamma: Any, alpha: Array, log_z: Array, nodes: Array) -> Array:
    """The log normaliser of one word of each document at the nodes, [n, nodes]."""
    if formula == "words":
        used = np.maximum(gamma - alpha, 0.0)
        share = used / np.maximum(used.sum(axis=1, keepdims=True), 1e-30)
        return share @ log_z
    if formula == "paper":
        log_theta = Dirichlet(alpha.size).log_moment(gamma, nodes)  # [n, nodes, K]
        return logsumexp(log_theta + log_z.T, axis=2)
    largest = log_z.max(axis=0)
    return np.log(mean_proportions(gamma) @ np.exp(log_z - largest)) + largest
