"""Latent Dirichlet allocation whose topics and documents are on the device.

What travels to the device: documents, once or batch by batch; 1/T; α. And to the host: where a
temperature is learned, see :mod:`tempering.gpu.device_topics`; where α is learned, or adapts, K
numbers each step at T = 1, or each eighth; where η is learned, a number for each word, once in a
hundred steps; and what somebody asks for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Unpack

import numpy as np
from scipy.special import gammaln

from tempering.gpu.compiled_steps import (
    GROUP_SIZES,
    CompiledSteps,
    Kernel,
    default_kernel,
    steps_of,
)
from tempering.gpu.device_data import CorpusSource, CorpusStream, DeviceDocuments, Group
from tempering.gpu.device_topics import (
    DeviceStatistics,
    DeviceStep,
    DeviceTopics,
    SolvedGroup,
    temperature_terms,
)
from tempering.gpu.jax_device import (
    counterpart,
    device_mesh,
    on_all_devices,
    require_jax,
    with_attributes_of,
)
from tempering.gpu.jax_functions import SMALLEST_PARAMETER, pad_topics
from tempering.inference import BlockSource, Result, RobbinsMonro, fit
from tempering.inference.fitting import FitOptions
from tempering.models.base import Array, DataSource, UnsupportedTemperature
from tempering.models.lda.model import LatentDirichlet
from tempering.models.natural import LocalTerms
from tempering.temperature import AdaptiveTempering

#: Steps from one to the next that α adapts to the documents of: each time the host has to wait for
#: the device, and its batches are large enough to tell.
PRIOR_STEPS = 8


class DeviceLatentDirichlet(LatentDirichlet):
    """:class:`tempering.models.lda.model.LatentDirichlet` on the device."""

    #: A batch is never cut into shards: its groups are made in `local_step`.
    shard_size = 1 << 40

    posterior_type: ClassVar[type] = DeviceTopics

    kernel: Kernel

    @classmethod
    def of(cls, model: LatentDirichlet, kernel: Kernel) -> DeviceLatentDirichlet:
        """The same model, on the device."""
        if model.guide is not None:
            raise ValueError(
                "topics with a prior of their own for some words are fitted on the CPU: take "
                "backend='cpu', or leave out the guide."
            )
        return counterpart(model, cls, kernel=kernel)

    @property
    def steps(self) -> CompiledSteps:
        """The compiled parts for this model."""
        return steps_of(self, self.kernel)

    @property
    def placed_prior(self) -> Any:
        """α on the device."""
        return placed(self.doc_topic_prior.tobytes(), device_mesh())

    @property
    def alpha_steps(self) -> int:
        return 1 if self.learn_doc_topic_prior else PRIOR_STEPS

    def check(self, data: Any) -> None:
        """Documents are checked before they are sent."""

    def initialize(self, source: DataSource, rng: np.random.Generator) -> Any:
        """As on the host; but Gamma(100, 1/100) draws are made on the device."""
        if self.start == "words":
            return DeviceTopics.of(super().initialize(source, rng))
        topics = self.steps.draw(int(rng.integers(2**31)))
        return DeviceTopics(topics, self.n_topics, self.topic_word_prior)

    def expectations(self, posterior: Any) -> Any:
        """log β of every word, on the device, [n_words, padded topics], and λ."""
        return self.steps.table(posterior.values), posterior

    def local_step(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        data: DeviceDocuments,
        expectations: Any,
        inverse_temperature: float | Array,
        before: DeviceStep | None = None,
    ) -> DeviceStep:
        steps, alpha, (log_rows, _) = self.steps, self.placed_prior, expectations
        at_one = self.update == "sampled" and bool(np.all(np.equal(inverse_temperature, 1.0)))
        sampled = at_one and data.can_be_sampled
        statistics, prior_statistics, solved = None, None, []
        for group, documents, start in self._groups(data, sampled, before):
            s = temperatures_of(group, data, inverse_temperature)
            if sampled:
                given = documents, log_rows, placed(self.word_power, device_mesh()), alpha
                found = steps.sample(*given, statistics, width=group.width)
            else:
                given = documents, s, log_rows, alpha, statistics, start
                found = steps.solve(*given, width=group.width)
            statistics, gamma, rectangle = found
            if self.learns_alpha_next:
                prior_statistics = self._prior_statistics(gamma, group, prior_statistics)
            solved.append(SolvedGroup(group, rectangle, s, gamma))

        def compute_terms(local: DeviceStep) -> LocalTerms:
            if self.update != "variational":
                # The other updates ascend no bound, so none is reported.
                return LocalTerms(np.full(local.n, np.nan), np.nan)
            energies, entropies = self.terms_of(local, expectations)
            return LocalTerms(energies, float(entropies.sum()))

        weighted = DeviceStatistics(statistics)
        return DeviceStep(weighted, inverse_temperature, solved, prior_statistics, compute_terms)

    def terms_of(self, local: DeviceStep, expectations: tuple[Any, DeviceTopics]) -> list[Array]:
        """Energies of documents, and their entropies less divergences."""
        terms, (log_rows, _), alpha = self.steps.terms, expectations, self.placed_prior
        parts = [terms(own.rectangle, own.s, log_rows, alpha, own.gamma) for own in local.solved]
        return [local.in_order(part) for part in zip(*parts)]

    def continue_local_step(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        local: DeviceStep,
        data: DeviceDocuments,
        expectations: Any,
        inverse_temperature: float | Array,
    ) -> DeviceStep:
        return self.local_step(data, expectations, inverse_temperature, before=local)

    def _groups(
        self, data: DeviceDocuments, sampled: bool, before: DeviceStep | None
    ) -> Iterable[tuple[Group, Any, Any]]:
        """Groups of documents, packed or as rectangles, and the γ that they start from, if any.

        Rectangles of the step before do again, but not for chains, which have a place for each
        token. What is sent has one of several lengths: so it is not gathered by the large program,
        which would be compiled for each of them.
        """
        if before is None or sampled:
            corpus = data.corpus
            documents = corpus.packed if corpus.resident else corpus.rectangle
            for group in data.groups(GROUP_SIZES[self.kernel], for_tokens=sampled):
                yield group, documents(group), None
        else:
            yield from ((own.group, own.rectangle, own.gamma) for own in before.solved)

    def _prior_statistics(self, gamma: Any, group: Group, so_far: Any) -> Any:
        if self.learn_doc_topic_prior:
            return self.steps.log_proportions(gamma, np.int32(group.rows.size), so_far)
        return self.steps.prior_draws(gamma, self.placed_prior, so_far)

    def prior_statistics(self, local: DeviceStep) -> Array:
        return np.asarray(local.prior_statistics, float)[: self.n_topics] / local.n

    temperature_terms = temperature_terms  # pyright: ignore[reportAssignmentType]

    def topics_divergence(self, posterior: DeviceTopics, prior_weight: float) -> float:
        eta, n_words = self.topic_word_prior, self.n_words
        priors = np.float32(prior_weight * eta), np.float32(eta)
        words, totals = self.steps.divergence(posterior.values, *priors)
        log_gammas = gammaln(np.asarray(totals, float)[: self.n_topics])
        # The words have log Γ(η) already, to the power of one.
        normalizer = (prior_weight - 1) * n_words * gammaln(eta)
        normalizer -= prior_weight * gammaln(n_words * eta)
        total = np.asarray(words, float).sum() + log_gammas.sum()
        return float(total + self.n_topics * normalizer)


def temperatures_of(group: Group, data: DeviceDocuments, inverse_temperature: Any) -> Any:
    """The inverse temperatures of a group: one for all, or one for each document."""
    if np.ndim(inverse_temperature) == 0:
        return np.float32(inverse_temperature)
    s = np.ones(group.size, np.float32)
    s[: group.rows.size] = inverse_temperature[np.searchsorted(data.rows, group.rows)]
    return s


@lru_cache(maxsize=32)
def placed(value: bytes | float, mesh: Any) -> Any:
    """A number, or α of its bytes, on the devices of the mesh: sent once, as steps need it."""
    if isinstance(value, bytes):
        # So that no topic that only fills up is larger than others, to which θ is scaled.
        return on_all_devices(pad_topics(np.frombuffer(value), SMALLEST_PARAMETER))
    return on_all_devices(np.float32(value))


def fit_on_device(
    model: LatentDirichlet,
    data: Any,
    *,
    resident: bool | None = None,
    kernel: Kernel | None = None,
    **options: Unpack[FitOptions],
) -> Result:
    """:func:`tempering.fit` of topics, in minibatches, on the device; they come back to the host.

    Where there are several devices, all take part, unless ``jax.default_device`` names one. The GPU
    kernels (``kernel="pallas"``, or else "plain" JAX) give the bits of one on any number of them. A
    corpus that is not ``resident`` is sent batch by batch while the device computes, with the same
    result; by default that is one that does not fit into its memory.
    """
    require_jax()
    if isinstance(options.get("temperature"), AdaptiveTempering):
        raise UnsupportedTemperature(
            "AdaptiveTempering takes all documents at each step, and the device minibatches: take "
            "backend='cpu', or a schedule, such as "
            "tempering.Annealing(tempering.schedules.linear_inverse(2.0))."
        )
    streamed = isinstance(data, BlockSource)
    if not streamed:
        model.check(data)
    batch_size, initial = options.pop("batch_size", None), options.pop("initial", None)
    settings: FitOptions = {
        "max_passes": 10,
        "n_threads": 1,
        "elbo_every": 10**9,
        "final_elbo": False,
        "progress": False,
        **options,
        "learning_rate": options.get("learning_rate") or RobbinsMonro(16.0, 0.7),
        "initial": None if initial is None else DeviceTopics.of(initial),
    }
    on_device = DeviceLatentDirichlet.of(model, kernel or default_kernel())
    source = CorpusStream(data) if streamed else CorpusSource(data, batch_size, resident)
    result = fit(on_device, source, **settings)
    fitted = with_attributes_of(result.model, model)
    return replace(result, posterior=result.posterior.host, model=fitted)
