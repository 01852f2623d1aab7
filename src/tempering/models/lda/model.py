"""Latent Dirichlet allocation on the contract of the engine.

    β_k ~ Dir(η_k),   θ_d ~ Dir(α),   z_dn ~ θ_d,   w_dn ~ β_{z_dn}.

A datum is a document, a row of a CSR matrix of counts. The topic proportions θ_d are local and not
tempered; the words are: p(w_dn, z_dn | θ_d, β)^{s_d}.
"""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from tempering.families.checks import check_compressed, check_sparse_counts
from tempering.models.arguments import check_number, check_whole
from tempering.models.base import (
    Array,
    DataSource,
    LocalStep,
    Model,
    TemperatureTerms,
    UnsupportedTemperature,
)
from tempering.models.lda.e_step import document_energy, e_step
from tempering.models.lda.layout import Documents, Float32
from tempering.models.lda.priors import (
    LOOKS,
    as_doc_topic_prior,
    fit_concentration,
    fit_symmetric_concentration,
    prior_draws,
    proportions_divergence,
    raised_prior,
    share_out,
    sum_log_proportions,
)
from tempering.models.lda.sampling import Settled, can_be_sampled, sample_topics
from tempering.models.lda.start import initial_topics
from tempering.models.lda.steps import (
    DocumentStep,
    TopicDraws,
    TopicExpectations,
    log_mean_power_sums,
    temperature_terms,
)
from tempering.models.lda.topics import Guide, TopicPrior, Topics, WordStatistics, compact_words
from tempering.models.natural import LocalTerms
from tempering.storage.state import stored

#: η takes a pass over all topics to learn, so that with minibatches it is done once in so many
#: steps, or earlier after 1, 2, 4, 8 and so on, as topics change most at first.
TOPIC_PRIOR_STEPS = 100

Update = Literal["variational", "mean", "sampled"]
TopicStart = Literal["random", "words"]

#: What a run of topics learns besides the priors.
LEARNED = {"_mean_prior_statistics": Array | None, "_steps_at_temperature_one": int}


@stored("latent_dirichlet", without=("prior_documents", "n_threads"), attributes=LEARNED)
@dataclass(eq=False, repr=False)
class LatentDirichlet(Model):
    """The topic model; ``LatentDirichletAllocation`` tells most of its parameters.

    ``update`` says how topics enter φ: "variational", as exp E log β (the paper, the one with an
    ELBO); "mean", by their posterior mean; "sampled", as "mean" until T = 1, and there by
    :mod:`tempering.models.lda.sampling`, to ``word_power``. ``settled`` takes the place of that
    power, and of α, at the end of a run. ``mean_length``, words of a document, is for the tempered
    partition function. α and η are learned at T = 1 alone: while topics are alike, α would keep
    them so. Where α is not learned, the part ``adapted_part`` of its sum adapts to the documents,
    and ``prior_documents`` decide whether that sum is raised (:mod:`tempering.models.lda.priors`).
    """

    #: The default batches are one shard, which threads share; larger ones go to several workers.
    shard_size = 1024

    #: What its posteriors are.
    posterior_type: ClassVar[type] = Topics

    n_topics: int
    n_words: int
    doc_topic_prior: Array  # [K], or one number for all, which is made that
    topic_word_prior: float
    _: KW_ONLY
    update: Update = "variational"
    tolerance: float = 1e-2
    min_iterations: int = 5
    max_iterations: int = 100
    word_power: float = 1.0
    settled: Settled | None = None
    start: TopicStart = "random"
    mean_length: float = 100.0
    learn_doc_topic_prior: bool = False
    learn_topic_word_prior: bool = False
    adapted_part: float = 0.0
    prior_documents: Any = None
    guide: Guide | None = None
    n_threads: int = 1

    def __post_init__(self) -> None:
        for name in ("topic_word_prior", "word_power", "adapted_part"):
            setattr(self, name, float(getattr(self, name)))
        self._mean_prior_statistics: Array | None = None
        self._steps_at_temperature_one = 0
        self.check_parameters()

    def check_parameters(self) -> None:
        self.doc_topic_prior = as_doc_topic_prior(self.doc_topic_prior, self.n_topics)
        for name in ("topic_word_prior", "mean_length"):
            value, largest = getattr(self, name), float(np.finfo(np.float64).max)
            check_number(value, name, "positive and finite", above=0, most=largest)
        if self.guide is not None:
            self.guide.check(self.n_words, self.n_topics, self.topic_word_prior)
            if self.learn_topic_word_prior:
                raise ValueError("a prior of words that a guide is beside of cannot be learned.")
        check_number(self.word_power, "word_power", "from 0.5 to 1", least=0.5, most=1)
        check_whole(max_iterations=self.max_iterations)
        for name in ("tolerance", "adapted_part"):
            number = getattr(self, name)
            if not 0 <= number < 1:
                raise ValueError(f"{name} must be from 0 to below 1; got {number}.")

    def check_posterior(self, posterior: Any) -> None:
        shape, kind = (self.n_words, self.n_topics), self.posterior_type
        if not isinstance(posterior, kind):
            raise ValueError(f"the topics must be {kind.__name__}; got {posterior!r:.60}.")
        if posterior.shape != shape or posterior.totals().shape != shape[1:]:
            raise ValueError(f"the topics have the shape {posterior.shape}; {shape} is asked for.")
        parameters = posterior.parameters()
        finite = np.isfinite(parameters).all() and (parameters >= 0).all()
        if not finite or not parameters.any(axis=0).all():
            raise ValueError("the topics must be proper distributions.")

    def prior(self) -> TopicPrior:
        return TopicPrior(self.topic_word_prior, self.guide)

    def initialize(self, source: DataSource, rng: np.random.Generator) -> Topics:
        return initial_topics(self, source, rng)

    def expectations(self, posterior: Topics) -> TopicExpectations:
        form = "variational" if self.update == "variational" else "mean"
        return TopicExpectations(posterior, posterior.totals(), form, self.n_threads)

    def documents(self, data: Any) -> Documents:
        """A CSR matrix over the distinct words in it."""
        words, columns = compact_words(data.indices, self.n_words)
        # Memory that can be written to, as kernels would be compiled once more for any other.
        counts = np.require(data.data, np.float32, ["C", "W"])
        return Documents(data.indptr.astype(np.int64), columns, counts, words)

    def local_step(
        self,
        data: Any,
        expectations: TopicExpectations,
        inverse_temperature: float | Array,
        gamma: Float32 | None = None,
    ) -> DocumentStep:
        documents = self.documents(data)
        if self.samples(documents.counts, inverse_temperature):
            rows = expectations.mean_rows(documents.words, self.word_power)
            salt = np.asarray(expectations.totals).tobytes()
            solved = sample_topics(
                documents, rows, self.doc_topic_prior, salt, n_threads=self.n_threads
            )
        else:
            rows = expectations.log_rows(documents.words)
            solved = e_step(
                *documents.word_counts,
                rows,
                self.doc_topic_prior,
                inverse_temperature,
                tolerance=self.tolerance,
                min_iterations=self.min_iterations,
                max_iterations=self.max_iterations,
                n_threads=self.n_threads,
                gamma=gamma,
            )
        found: Float32 = solved.gamma

        def compute_terms() -> LocalTerms:
            if self.update != "variational":
                # These updates ascend no bound, so none is reported.
                return LocalTerms(np.full(documents.indptr.size - 1, np.nan), np.nan)
            energies, entropies = document_energy(
                *documents.word_counts, rows, found, inverse_temperature, n_threads=self.n_threads
            )
            divergence = proportions_divergence(found, self.doc_topic_prior)
            return LocalTerms(energies, float(entropies.sum() - divergence.sum()))

        assert solved.statistics is not None
        return DocumentStep(
            WordStatistics(documents.words, solved.statistics),
            inverse_temperature,
            found,
            documents,
            compute_terms,
            self._sum_prior_statistics if self.learns_proportions else None,
        )

    def samples(self, counts: Float32, inverse_temperature: float | Array) -> bool:
        """Whether the topics of documents with these counts are sampled."""
        at_one = self.update == "sampled" and bool(np.all(np.equal(inverse_temperature, 1.0)))
        return at_one and can_be_sampled(counts)

    def with_bound(self) -> LatentDirichlet:
        if self.update == "variational":
            return self
        variational = copy(self)
        variational.update = "variational"
        return variational

    def continue_local_step(
        self,
        local: DocumentStep,
        data: Any,
        expectations: TopicExpectations,
        inverse_temperature: float | Array,
    ) -> DocumentStep:
        return self.local_step(data, expectations, inverse_temperature, gamma=local.gamma)

    def divergence(self, posterior: Any, prior_weight: float = 1.0) -> float:
        if self.update != "variational":
            return np.nan  # as it would be added to a bound that is not there
        return self.topics_divergence(posterior, prior_weight)

    def topics_divergence(self, posterior: Any, prior_weight: float) -> float:
        """KL(q(β) ‖ p(β)^prior_weight) of all topics."""
        return posterior.divergence(self.topic_word_prior, prior_weight, self.guide)

    @property
    def learns_proportions(self) -> bool:
        """Whether α is learned, or adapts."""
        return self.learn_doc_topic_prior or self.adapted_part > 0.0

    @property
    def alpha_steps(self) -> int:
        """Steps at T = 1 from one to the next that α learns from."""
        return 1

    @property
    def learns_alpha_next(self) -> bool:
        """Whether α learns from the next step at T = 1."""
        due = (self._steps_at_temperature_one + 1) % self.alpha_steps == 0
        return self.learns_proportions and due

    def learn_hyperparameters(self, local: LocalStep, posterior: Topics, rate: float) -> None:
        """Move α and η to where they make the current q(θ) and q(β) most likely."""
        steps = self._steps_at_temperature_one
        early = steps < TOPIC_PRIOR_STEPS and steps & (steps - 1) == 0
        eta_is_due = early or steps % TOPIC_PRIOR_STEPS == 0 or rate == 1.0
        if self.learns_alpha_next:
            rate = min(1.0, self.alpha_steps * rate)
            mean, remembered = self.prior_statistics(local), self._mean_prior_statistics
            if remembered is None and not self.learn_doc_topic_prior:
                # One batch alone would starve topics that it happens not to hold.
                remembered = np.full(self.n_topics, mean.mean())
            if remembered is not None:
                mean = (1 - rate) * remembered + rate * mean
            self._mean_prior_statistics = mean
            if self.learn_doc_topic_prior:
                self.doc_topic_prior = fit_concentration(mean, self.doc_topic_prior)
            elif mean.any():
                total = float(self.doc_topic_prior.sum())
                self.doc_topic_prior = share_out(total, mean, self.adapted_part)
        if self.learn_topic_word_prior and eta_is_due:
            self.topic_word_prior = fit_symmetric_concentration(
                posterior.mean_log(), self.n_words, self.topic_word_prior
            )
        self._steps_at_temperature_one += 1

    def prior_statistics(self, local: Any) -> Array:
        """What α is learned from: the mean over the documents of a step."""
        return local.prior_statistics / local.n

    def _sum_prior_statistics(self, gamma: Float32) -> Array:
        """What α is learned from, [K]: Σ_d E log θ_d, or draws from the prior if its sum stays."""
        if self.learn_doc_topic_prior:
            return sum_log_proportions(gamma)
        # In the precision of γ, so that what a document does not hold is 0.
        counts = gamma - self.doc_topic_prior.astype(np.float32)
        return prior_draws(np.maximum(counts, 0.0), self.doc_topic_prior)

    def revise(self, posterior: Any, before: float, after: float) -> Any:
        """Raise the sum of α, and settle; the topics stay. Only where they are sampled."""
        if self.update == "sampled":
            if any(before < part <= after for part in LOOKS):
                self._raise_prior(posterior)
            if self.settled is not None and after >= self.settled.part:
                self.word_power = self.settled.word_power
                self.doc_topic_prior = self.settled.prior_factor * self.doc_topic_prior
                self.settled = None
        return posterior

    def _raise_prior(self, posterior: Any) -> None:
        """Let α count for more, if that predicts better; if not, never look again."""
        if self.prior_documents is None:
            return
        prior = self.doc_topic_prior
        raised = raised_prior(posterior.host, prior, self.prior_documents, self.n_threads)
        if raised is prior:
            self.prior_documents = None
        self.doc_topic_prior = raised

    def for_workers(self) -> LatentDirichlet:
        model = copy(self)
        model.prior_documents = model.guide = None
        return model

    def check(self, data: Any) -> None:
        if not sparse.issparse(data) or data.format != "csr":
            raise ValueError(
                f"documents must be a CSR matrix of counts; got {type(data).__name__}."
            )
        check_compressed(data, "documents")
        if data.shape[1] != self.n_words:
            raise ValueError(
                f"the documents have {data.shape[1]} words, the model {self.n_words}: they must "
                "share one vocabulary."
            )
        check_sparse_counts(data, "documents must hold counts")

    # What learned temperatures need.

    def temperature_terms(
        self,
        local: LocalStep,
        expectations: TopicExpectations,
        inverse_temperatures: Array,
        data: Any,
        formula: str,
        shared: bool,
    ) -> TemperatureTerms:
        return temperature_terms(
            local, expectations, self.doc_topic_prior, inverse_temperatures, formula, shared
        )

    def draw_prior(self, n: int, rng: np.random.Generator) -> TopicDraws:
        if self.guide is not None:
            raise UnsupportedTemperature(
                "log C(T) is known for a prior that is the same for all words: without "
                "formula='z-integrated', or without a guide, temperatures can be learned."
            )
        return TopicDraws(n, int(rng.integers(2**63)))

    def log_local_integral(self, parameters: TopicDraws, inverse_temperatures: Array) -> Array:
        """log ∫ p(θ) (Σ_v (Σ_k θ_k β_kv)^s)^N dθ for draws of the topics, [n, M]."""
        alpha, eta = self.doc_topic_prior, self.topic_word_prior
        power_sums = log_mean_power_sums(parameters, alpha, eta, self.n_words, inverse_temperatures)
        return logsumexp(self.mean_length * power_sums, axis=1) - np.log(power_sums.shape[1])
