"""What the temperatures of topics on the device are learned from.

The formulas are those of :mod:`tempering.models.lda.temperatures`. To the host come, for each
document (with one temperature for all: for ten of them), its energy and the log normaliser of one
of its words at a few inverse temperatures. Only the formula "paper", which is there for the record,
brings γ of all documents.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tempering.gpu.compiled_steps import DOCUMENTS_AT_ONCE
from tempering.gpu.device_corpus import DeviceDocuments, Group, ladder_step
from tempering.gpu.device_topics import DeviceExpectations, DeviceStep
from tempering.gpu.jax_functions import pad_topics
from tempering.models.base import Array, TemperatureTerms
from tempering.models.lda.steps import SAMPLED_DOCUMENTS, mean_proportions
from tempering.models.lda.temperatures import check_formula, log_normalizers
from tempering.models.lda.topics import Interpolation


def temperature_terms(
    model: Any,
    local: DeviceStep,
    expectations: DeviceExpectations,
    inverse_temperatures: Array,
    data: DeviceDocuments,
    formula: str,
    shared: bool,
) -> TemperatureTerms:
    """Energies and log normalisers of documents, by the formula's name: a method of the model."""
    check_formula(formula)
    n_topics = model.n_topics
    to_grid, lengths = Interpolation(inverse_temperatures), data.corpus.totals[data.rows]
    nodes, topics = to_grid.nodes.astype(np.float32), expectations.posterior
    if formula == "calibrated" and shared:
        n = min(SAMPLED_DOCUMENTS, local.n)
        found = compiled_sample()(*_sample(local, data, n_topics), topics.values, nodes)
        energies, normalizers = (np.asarray(part, float)[:n] for part in found)
        share = lengths[:n].sum() / max(lengths.sum(), 1.0)
        normalizers = lengths[:n, None] * to_grid(normalizers)
        return TemperatureTerms(energies, normalizers, share or 1.0, exact=False)
    log_z = topics.log_power_sums(nodes)
    if formula in ("calibrated", "z-integrated"):
        score = compiled_scores(n_topics)
        found = [score(own.rectangle, own.gamma, topics.values, log_z) for own in local.solved]
        energies, normalizers = (local.in_order(part) for part in zip(*found))
    else:
        energies, gamma = model.terms_of(local, expectations)[0], local.gamma[:, :n_topics]
        host_z = np.asarray(log_z, float)[:n_topics]
        alpha = model.doc_topic_prior
        normalizers = log_normalizers(formula, gamma, alpha, host_z, to_grid.nodes)
    if formula == "z-integrated":
        return TemperatureTerms(energies, np.zeros((1, inverse_temperatures.size)), exact=False)
    return TemperatureTerms(energies, lengths[:, None] * to_grid(normalizers), exact=False)


def _sample(local: DeviceStep, data: DeviceDocuments, n_topics: int) -> tuple[Any, Any]:
    """The first documents of a batch, which come in random order, and their θ̄."""
    rows = data.rows[:SAMPLED_DOCUMENTS]
    gamma = np.ones((SAMPLED_DOCUMENTS, n_topics), np.float32)
    for own in local.solved:
        _, mine, theirs = np.intersect1d(rows, own.group.rows, return_indices=True)
        if mine.size:
            places = np.resize(theirs, SAMPLED_DOCUMENTS)  # of one length, to be compiled once
            gamma[mine] = np.asarray(own.gamma[places])[: mine.size, :n_topics]
    width = ladder_step(int(data.lengths[rows].max()))
    rectangle = data.corpus.rectangle(Group(rows, SAMPLED_DOCUMENTS, width))
    return rectangle, pad_topics(mean_proportions(gamma), 0.0)


@cache
def compiled_sample() -> Any:
    """(rectangle, θ̄, λ, nodes) → Σ log p̄ [size], log Σ_v p̄_v^s [size, nodes]."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    @jax.jit
    def sample(rectangle, proportions, topics, nodes):
        weights = proportions / topics.sum(axis=0)
        log_p = jnp.log(jnp.matmul(weights, topics.T, precision="highest"))
        columns = jnp.minimum(rectangle.columns, topics.shape[0] - 1)
        used = jnp.take_along_axis(log_p, columns, axis=1)
        sums = jax.lax.map(lambda s: logsumexp(s * log_p, axis=1), nodes)
        return (rectangle.counts * used).sum(axis=1), sums.T

    return sample


@cache
def compiled_scores(n_topics: int) -> Any:
    """(rectangle, γ, λ, log Z) → Σ log p̄ [size], log Σ_k θ̄_k Z_k(s) [size, nodes]."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def scores(rectangle, gamma, topics, log_z):
        # What only fills up may hold anything, and is not even to change the rounding.
        real = jnp.arange(gamma.shape[1]) < n_topics
        gamma, log_z = jnp.where(real, gamma, 0.0), jnp.where(real[:, None], log_z, -jnp.inf)
        proportions = gamma / gamma.sum(axis=1, keepdims=True)
        totals, largest = topics.sum(axis=0), log_z.max(axis=0)
        mixed = jnp.matmul(proportions, jnp.exp(log_z - largest), precision="highest")

        def one(document):
            columns, counts, weights = document
            rows = topics[jnp.minimum(columns, topics.shape[0] - 1)]
            return counts @ jnp.log((rows * weights).sum(axis=1))

        documents = rectangle.columns, rectangle.counts, proportions / totals
        energies = jax.lax.map(one, documents, batch_size=DOCUMENTS_AT_ONCE)
        return energies, jnp.log(mixed) + largest

    return scores
