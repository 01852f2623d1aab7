"""Latent Dirichlet allocation whose topics and documents are on the device.

It is the model that a whole fit on the device runs with, under the engine and for temperatures that
follow a schedule: the host decides which documents come next and how hot it is, and only what
somebody asks for (a bound, a checkpoint, the topics at the end) travels back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln

from tempering.models.base import Array, DataSource, LocalStep, LocalTerms
from tempering.models.lda.copies import SAME, owners, seed_of
from tempering.models.lda.model import LatentDirichlet
from tempering.scale.device_corpus import DeviceDocuments, on_device
from tempering.scale.device_steps import DeviceSteps, Sizes, device_steps
from tempering.scale.device_topics import DeviceStatistics, DeviceTopics
from tempering.scale.jax_functions import pad_topics
from tempering.scale.recasting import recast
from tempering.scale.solver import GROUP_SIZES, Kernel, settings_of

#: Steps from one to the next that α learns from: each time the host has to wait for the device, and
#: its batches are large enough to tell.
PRIOR_STEPS = 8


class DeviceExpectations(NamedTuple):
    """log β of every word, on the device."""

    log_rows: Any  # [n_words, padded topics]


class DeviceStep(LocalStep):
    """A local step whose terms of the ELBO are computed only if somebody asks."""

    def __init__(
        self,
        statistics: DeviceStatistics,
        inverse_temperature: float,
        n: int,
        compute_terms: Callable[[], LocalTerms],
        prior_draws: Any = None,
    ):
        self.statistics = statistics
        self.inverse_temperature = inverse_temperature
        self.bound = 0.0
        self.n = n
        self.prior_draws = prior_draws  # [padded topics], on the device, if α learns from the step
        self._compute_terms = compute_terms

    @cached_property
    def terms(self) -> LocalTerms:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._compute_terms()


class DeviceLatentDirichlet(LatentDirichlet):
    """:class:`tempering.models.lda.model.LatentDirichlet` on the device.

    Its priors are given, but α may follow the documents.
    """

    #: A batch is never cut into shards: its groups are made in `local_step`.
    shard_size = 1 << 40

    posterior_type: ClassVar[type] = DeviceTopics

    kernel: Kernel

    @classmethod
    def of(cls, model: LatentDirichlet, kernel: Kernel) -> DeviceLatentDirichlet:
        """The same model, on the device."""
        return recast(model, cls, kernel=kernel)

    @property
    def steps(self) -> DeviceSteps:
        """The compiled parts for this model."""
        return steps_of(self, self.kernel)

    def initialize(self, source: DataSource, rng: np.random.Generator) -> Any:
        """As on the host; but Gamma(100, 1/100) draws are made on the device."""
        if self.start == "words":
            return DeviceTopics.of(super().initialize(source, rng), self.topic_word_prior)
        topics = self.steps.draw(int(rng.integers(2**31)))
        return DeviceTopics(topics, self.n_topics, self.topic_word_prior)

    def expectations(self, posterior: Any) -> Any:
        return DeviceExpectations(self.steps.table(posterior.values))

    def local_step(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, data: DeviceDocuments, expectations: Any, inverse_temperature: float | Array
    ) -> Any:
        steps, s = self.steps, np.float32(inverse_temperature)
        log_rows, alpha = expectations.log_rows, placed_prior(self.doc_topic_prior.tobytes())
        statistics, draws, solved = None, None, []
        sampled = self.update == "sampled" and s == 1.0 and data.can_be_sampled
        if sampled and self.word_power != 1.0:
            log_rows = np.float32(self.word_power) * log_rows
        for group in data.groups(GROUP_SIZES[self.kernel], for_tokens=sampled):
            rectangle = data.corpus.rectangle(group)
            if sampled:
                statistics, gamma = steps.sample(rectangle, log_rows, alpha, statistics)
            else:
                statistics, gamma = steps.solve(rectangle, s, log_rows, alpha, statistics)
            if self._learns_from_the_next:
                draws = steps.prior_draws(gamma, alpha, draws)
            if self.update == "variational":
                solved.append((group, rectangle, gamma))

        def compute_terms() -> LocalTerms:
            energies, entropy = np.full(data.shape[0], np.nan), np.nan
            if self.update == "variational":
                entropy = 0.0
                for group, rectangle, gamma in solved:
                    n = group.rows.size
                    parts = steps.terms(rectangle, s, log_rows, alpha, gamma)
                    own, local = (np.asarray(part, float)[:n] for part in parts)
                    energies[np.searchsorted(data.rows, group.rows)] = own
                    entropy += float(local.sum())
            # The other updates ascend no bound, so none is reported.
            return LocalTerms(energies, entropy)

        weighted = DeviceStatistics(statistics)
        return DeviceStep(weighted, float(inverse_temperature), data.shape[0], compute_terms, draws)

    @property
    def _learns_from_the_next(self) -> bool:
        """Whether α learns from the step that is next; it counts those at T = 1 alone."""
        return self.followed_part > 0.0 and (self._steps_at_temperature_one + 1) % PRIOR_STEPS == 0

    def learn_hyperparameters(self, local: DeviceStep, posterior: Any, rate: float) -> None:
        if self._learns_from_the_next:
            super().learn_hyperparameters(local, posterior, min(1.0, PRIOR_STEPS * rate))
        self._steps_at_temperature_one += 1

    def prior_statistics(self, local: DeviceStep) -> Array:
        return np.asarray(local.prior_draws, float)[: self.n_topics] / local.n

    def without_copies(self, posterior: DeviceTopics) -> DeviceTopics:
        # The host decides by the overlaps alone; the topics, which are much larger, stay.
        values, prior = posterior.values, np.float32(posterior.prior)
        overlap, totals = (np.asarray(part) for part in self.steps.overlaps(values, prior))
        kept_by = owners(overlap > SAME)
        if np.array_equal(kept_by, np.arange(len(kept_by))):
            return posterior
        seed = seed_of(totals) % 2**31
        values = self.steps.begin_anew(values, prior, kept_by.astype(np.int32), seed)
        return DeviceTopics(values, posterior.n_topics, posterior.prior)

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


@lru_cache(maxsize=16)
def placed_prior(numbers: bytes) -> Any:
    """α on the device, from its numbers: sent once, as every step needs it."""
    return on_device(pad_topics(np.frombuffer(numbers), 1.0))


def steps_of(model: LatentDirichlet, kernel: Kernel) -> DeviceSteps:
    """The compiled parts for this model."""
    mean_topics = model.update != "variational"
    sizes = Sizes(model.n_words, model.n_topics, mean_topics, settings_of(model), kernel)
    return device_steps(sizes)
