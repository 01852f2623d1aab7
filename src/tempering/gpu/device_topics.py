"""Topics that stay on the device from step to step, and the local steps that change them.

A callback or a checkpoint that looks at them gets a copy. Where temperatures are learned, by the
formulas of :mod:`tempering.models.lda.steps`, there come to the host for each document (with one
temperature for all: for ten of them) its energy and the log normaliser of one of its words at a few
inverse temperatures. Only the formula "paper", which is there for the record, brings γ of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from tempering.gpu import jax_functions
from tempering.gpu.compiled_steps import DOCUMENTS_AT_ONCE
from tempering.gpu.device_data import DeviceDocuments, Group, ladder_step
from tempering.gpu.jax_device import compiled, jax, jnp, special
from tempering.gpu.jax_functions import log_rising, pad_topics
from tempering.models.base import Array, LocalStep, TemperatureTerms
from tempering.models.lda.steps import (
    SAMPLED_DOCUMENTS,
    Interpolation,
    check_formula,
    log_normalizers,
    mean_proportions,
)
from tempering.models.lda.topics import Topics
from tempering.models.natural import LocalTerms
from tempering.storage.state import check_types, stored

#: Steps that the host may be ahead of the device: it has to wait for nobody, but not to run away.
STEPS_AHEAD = 6


@dataclass(frozen=True)
class DeviceStatistics:
    """Σ_d s_d n_dv φ_dvk on the device, times a number: [n_words, padded topics]."""

    values: Any
    factor: float = 1.0

    def __mul__(self, factor: float) -> DeviceStatistics:
        return DeviceStatistics(self.values, factor * self.factor)

    __rmul__ = __mul__


def _take_topics(topics: DeviceTopics) -> dict[str, Any]:
    return {"parameters": topics.parameters(), "prior": topics.prior}


def _make_topics(parts: dict[str, Any]) -> DeviceTopics:
    check_types(parts, {"parameters": NDArray[np.float32], "prior": float})
    _, n_topics = parts["parameters"].shape
    return DeviceTopics(pad_topics(parts["parameters"], 1.0), n_topics, float(parts["prior"]))


@stored("device_topics", take=_take_topics, make=_make_topics)
class DeviceTopics:
    """λ on the device, or still on the host: [n_words, padded topics]."""

    def __init__(self, values: Any, n_topics: int, prior: float, unfinished: tuple[Any, ...] = ()):
        self.values = values
        self.n_topics = n_topics  # columns beyond it fill up
        self.prior = prior  # η
        self.unfinished = unfinished  # what the last steps made: the device may still be at it
        self._power_sums: tuple[np.ndarray, Any] | None = None

    @classmethod
    def of(cls, topics: Topics) -> DeviceTopics:
        """Topics of the host."""
        return cls(pad_topics(topics.parameters(), 1.0), topics.shape[1], topics.offset)

    @cached_property
    def host(self) -> Topics:
        """The same topics on the host."""
        return Topics(self.parameters(), self.prior)

    @property
    def shape(self) -> tuple[int, int]:
        """(V, K)."""
        return self.values.shape[0], self.n_topics

    def parameters(self) -> np.ndarray:
        """λ, [V, K], on the host."""
        return np.ascontiguousarray(self.values[:, : self.n_topics])

    def blend(self, target: Any, rate: float) -> DeviceTopics:
        """(1 − ρ) λ + ρ λ̂, started on the device; waits if the device is far behind."""
        statistics = target.statistics
        eta = target.prior.concentration  # tempered where the joint is
        # They travel to the device as one array.
        numbers = np.array([rate, statistics.factor, eta], np.float32)
        values = blended(self.values, statistics.values, numbers)
        if len(self.unfinished) == STEPS_AHEAD:
            self.unfinished[0].block_until_ready()
        unfinished = (*self.unfinished[1 - STEPS_AHEAD :], values)
        # Where η is learned, what λ holds of it changes; where it is given, it stays to the bit.
        prior = self.prior + rate * (eta - self.prior)
        return DeviceTopics(values, self.n_topics, prior, unfinished)

    def mean_log(self) -> float:
        """The mean of E log β_kv; one number for each word and topic comes to the host."""
        found = log_sums(self.values, n_topics=self.n_topics)
        words, totals = (np.asarray(part, float) for part in found)
        n_words, n_topics = self.shape
        return float(words.sum() / (n_words * n_topics) - digamma(totals[:n_topics]).mean())

    def log_power_sums(self, nodes: np.ndarray) -> Any:
        """log Σ_v E[β_kv^s] at a few s, [padded topics, nodes], on the device."""
        if self._power_sums is None or not np.array_equal(self._power_sums[0], nodes):
            self._power_sums = nodes, power_sums_of(self.values, nodes)
        return self._power_sums[1]

    def __getattr__(self, name: str) -> Any:
        """All else that topics of the host offer."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.host, name)


class SolvedGroup(NamedTuple):
    """Documents that were solved together; all but their rows is on the device."""

    group: Group
    rectangle: Any
    s: Any  # inverse temperatures, one or [size]
    gamma: Any  # [size, padded topics]


@dataclass(eq=False, repr=False)
class DeviceStep(LocalStep):
    """A local step whose terms of the ELBO are computed only if somebody asks."""

    statistics: DeviceStatistics
    inverse_temperature: float | Array
    solved: Sequence[SolvedGroup]
    prior_statistics: Any  # [padded topics], where α learns from the step
    compute_terms: Callable[[DeviceStep], LocalTerms]
    bound: float = 0.0

    def __post_init__(self) -> None:
        self.n = sum(own.group.rows.size for own in self.solved)

    @cached_property
    def terms(self) -> LocalTerms:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.compute_terms(self)

    @property
    def gamma(self) -> Array:
        """γ of the documents, [n, padded topics], on the host."""
        return self.in_order(own.gamma for own in self.solved)

    def in_order(self, parts: Iterable[Any]) -> Array:
        """What groups have of each document, brought to the host in the order of the batch."""
        numbers = [
            np.asarray(part, float)[: own.group.rows.size] for part, own in zip(parts, self.solved)
        ]
        rows = np.concatenate([own.group.rows for own in self.solved])
        return np.concatenate(numbers)[np.argsort(rows)]


@compiled
def blended(topics, statistics, numbers):
    """λ after a step."""
    rate, scale, prior = numbers
    return (1.0 - rate) * topics + rate * (prior + scale * statistics)


@compiled
def log_sums(topics, *, n_topics):
    """Σ_k ψ(λ_vk) of each word, and Σ_v λ_vk."""
    real = jnp.arange(topics.shape[1]) < n_topics
    return jnp.where(real, jax_functions.digamma(topics), 0.0).sum(axis=1), topics.sum(axis=0)


@compiled
def power_sums_of(topics, nodes):
    """log Σ_v E[β_kv^s], [padded topics, nodes]."""
    totals = topics.sum(axis=0)

    def at(s):
        logs = log_rising(topics, s) - log_rising(totals, s)
        return jnp.log(jnp.exp(logs).sum(axis=0))

    return jax.lax.map(at, nodes).T


def temperature_terms(
    model: Any,
    local: DeviceStep,
    expectations: tuple[Any, DeviceTopics],
    inverse_temperatures: Array,
    data: DeviceDocuments,
    formula: str,
    shared: bool,
) -> TemperatureTerms:
    """Energies and log normalisers of documents, by the formula's name: a method of the model."""
    check_formula(formula)
    n_topics = model.n_topics
    to_grid, lengths = Interpolation(inverse_temperatures), data.corpus.totals[data.rows]
    nodes, (_, topics) = to_grid.nodes.astype(np.float32), expectations
    if formula == "calibrated" and shared:
        n = min(SAMPLED_DOCUMENTS, local.n)
        found = scores_of_sample(*_sample(local, data, n_topics), topics.values, nodes)
        energies, normalizers = (np.asarray(part, float)[:n] for part in found)
        share = lengths[:n].sum() / max(lengths.sum(), 1.0)
        normalizers = lengths[:n, None] * to_grid(normalizers)
        return TemperatureTerms(energies, normalizers, share or 1.0, exact=False)
    log_z = topics.log_power_sums(nodes)
    if formula in ("calibrated", "z-integrated"):
        found = [
            scores(own.rectangle, own.gamma, topics.values, log_z, n_topics=n_topics)
            for own in local.solved
        ]
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
    width = ladder_step(int(data.corpus.lengths[rows].max()))
    rectangle = data.corpus.rectangle(Group(rows, SAMPLED_DOCUMENTS, width))
    return rectangle, pad_topics(mean_proportions(gamma), 0.0)


@compiled
def scores_of_sample(rectangle, proportions, topics, nodes):
    """Σ log p̄ [size] and log Σ_v p̄_v^s [size, nodes], of a rectangle with its θ̄."""
    weights = proportions / topics.sum(axis=0)
    log_p = jnp.log(jnp.matmul(weights, topics.T, precision="highest"))
    columns = jnp.minimum(rectangle.columns, topics.shape[0] - 1)
    used = jnp.take_along_axis(log_p, columns, axis=1)
    sums = jax.lax.map(lambda s: special.logsumexp(s * log_p, axis=1), nodes)
    return (rectangle.counts * used).sum(axis=1), sums.T


@compiled
def scores(rectangle, gamma, topics, log_z, *, n_topics):
    """Σ log p̄ [size] and log Σ_k θ̄_k Z_k(s) [size, nodes], of a rectangle with its γ."""
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
