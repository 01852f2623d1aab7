"""What the temperatures of topics on the device are learned from.

The formulas are those of :mod:`tempering.models.lda.tempering`, computed where the documents are.
To the host come, for each document (with one temperature for all, of a sample of them), its energy
and the log normaliser of one of its words at a few inverse temperatures.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tempering.models.base import Array, TemperatureTerms
from tempering.models.lda.partition import Interpolation
from tempering.models.lda.steps import SAMPLED_DOCUMENTS
from tempering.models.lda.tempering import check_formula
from tempering.scale.device_corpus import DeviceDocuments
from tempering.scale.groups import Group, ladder_step
from tempering.scale.jax_functions import digamma, log_rising, padded_topics

if TYPE_CHECKING:
    from tempering.scale.device_lda import DeviceExpectations, DeviceLatentDirichlet, DeviceStep

#: Documents whose words are scored at a time.
DOCUMENTS_AT_ONCE = 64


class TemperatureParts(NamedTuple):
    """The compiled parts."""

    pick: Any  # (γ of a group, places or −1, γ of the sample so far) → γ of the sample
    sample: Any  # (rectangle, γ, λ, nodes) → Σ log p̄ [size], log Σ_v p̄_v^s [size, nodes]
    predictive: Any  # (rectangle, γ, λ) → Σ log p̄ [size]
    word_energies: Any  # (energies, s, γ, α) → energies less their part in θ [size]
    normalizers: Any  # (formula, γ, α, log Z, nodes) → of one word [size, nodes]


def temperature_terms(
    model: DeviceLatentDirichlet,
    local: DeviceStep,
    expectations: DeviceExpectations,
    grid: Array,
    data: DeviceDocuments,
    formula: str,
    shared: bool,
) -> TemperatureTerms:
    """Energies and log normalisers of documents, by the formula's name."""
    check_formula(formula)
    parts, to_grid = temperature_parts(model.n_topics), Interpolation(grid)
    nodes, topics = to_grid.nodes.astype(np.float32), expectations.posterior
    lengths = data.corpus.totals[data.rows]
    if formula == "calibrated" and shared:
        n = min(SAMPLED_DOCUMENTS, local.n)
        found = parts.sample(*_sample(parts, local, data), topics.values, nodes)
        energies, normalizers = (np.asarray(part, float)[:n] for part in found)
        share = lengths[:n].sum() / max(lengths.sum(), 1.0)
        normalizers = lengths[:n, None] * to_grid(normalizers)
        return TemperatureTerms(energies, normalizers, share or 1.0, exact=False)
    alpha = model.placed_prior
    predictive = formula in ("calibrated", "z-integrated")
    found = []
    for part in local.solved:
        if predictive:
            energies = parts.predictive(part.rectangle, part.gamma, topics.values)
        else:
            energies = model.steps.terms(
                part.rectangle, part.s, expectations.log_rows, alpha, part.gamma
            )[0]
        if formula == "words":
            energies = parts.word_energies(energies, part.s, part.gamma, alpha)
        log_z = topics.log_power_sums(nodes)
        found.append((energies, parts.normalizers(formula, part.gamma, alpha, log_z, nodes)))
    energies = local.in_order([energies for energies, _ in found])
    if formula == "z-integrated":
        return TemperatureTerms(energies, np.zeros((1, grid.size)), exact=False)
    normalizers = to_grid(local.in_order([normalizers for _, normalizers in found]))
    return TemperatureTerms(energies, lengths[:, None] * normalizers, exact=False)


def _sample(parts: TemperatureParts, local: DeviceStep, data: DeviceDocuments) -> tuple[Any, Any]:
    """The first documents of a batch, which come in random order, and their γ."""
    rows = data.rows[:SAMPLED_DOCUMENTS]
    width = ladder_step(int(data.lengths[rows].max()))
    gamma = None
    for part in local.solved:
        where = {row: place for place, row in enumerate(part.group.rows)}
        places = np.full(SAMPLED_DOCUMENTS, -1, np.int32)
        places[: rows.size] = [where.get(row, -1) for row in rows]
        if np.any(places >= 0):
            gamma = parts.pick(part.gamma, places, gamma)
    return data.corpus.rectangle(Group(rows, SAMPLED_DOCUMENTS, width)), gamma


@cache
def temperature_parts(n_topics: int) -> TemperatureParts:
    """The parts for so many topics, compiled once for each shape."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    real = jnp.arange(padded_topics(n_topics)) < n_topics

    def means(gamma):
        gamma = jnp.where(real, gamma, 0.0)
        return gamma / gamma.sum(axis=-1, keepdims=True)

    @jax.jit
    def pick(gamma, places, so_far):
        there, so_far = (places >= 0)[:, None], 1.0 if so_far is None else so_far
        return jnp.where(there, gamma[jnp.maximum(places, 0)], so_far)

    @jax.jit
    def sample(rectangle, gamma, topics, nodes):
        weights = means(gamma) / topics.sum(axis=0)
        log_p = jnp.log(jnp.matmul(weights, topics.T, precision="highest"))
        columns = jnp.minimum(rectangle.columns, topics.shape[0] - 1)
        used = jnp.take_along_axis(log_p, columns, axis=1)
        sums = jax.lax.map(lambda s: logsumexp(s * log_p, axis=1), nodes)
        return (rectangle.counts * used).sum(axis=1), sums.T

    @jax.jit
    def predictive(rectangle, gamma, topics):
        totals = topics.sum(axis=0)

        def one(document):
            columns, counts, gamma = document
            rows = topics[jnp.minimum(columns, topics.shape[0] - 1)]
            return counts @ jnp.log((rows * (means(gamma) / totals)).sum(axis=1))

        documents = rectangle.columns, rectangle.counts, gamma
        return jax.lax.map(one, documents, batch_size=DOCUMENTS_AT_ONCE)

    @jax.jit
    def word_energies(energies, s, gamma, alpha):
        totals = jnp.where(real, gamma, 0.0).sum(axis=1, keepdims=True)
        log_theta = digamma(gamma) - digamma(totals)
        return energies - jnp.where(real, (gamma - alpha) * log_theta, 0.0).sum(axis=1) / s

    def normalizers(formula, gamma, alpha, log_z, nodes):
        if formula == "words":
            used = jnp.where(real, jnp.maximum(gamma - alpha, 0.0), 0.0)
            share = used / jnp.maximum(used.sum(axis=1, keepdims=True), 1e-30)
            return jnp.matmul(share, log_z, precision="highest")
        if formula == "paper":
            totals = jnp.where(real, gamma, 0.0).sum(axis=1, keepdims=True)

            def at(node):
                s, own = node
                logs = log_rising(gamma, s) - log_rising(totals, s) + own
                return logsumexp(jnp.where(real, logs, -jnp.inf), axis=1)

            return jax.lax.map(at, (nodes, log_z.T)).T
        largest = log_z.max(axis=0)
        mixed = jnp.matmul(means(gamma), jnp.exp(log_z - largest), precision="highest")
        return jnp.log(mixed) + largest

    return TemperatureParts(
        pick, sample, predictive, word_energies, jax.jit(normalizers, static_argnums=0)
    )
