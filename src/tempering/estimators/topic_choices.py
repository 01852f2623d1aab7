"""What a fit of topics goes by: from parameters and documents to a model, step sizes, a policy."""

from __future__ import annotations

import sys
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tempering.estimators.batches import batch_size_for
from tempering.estimators.lda_backend import Where, on_gpu
from tempering.estimators.passes import PassWatch
from tempering.estimators.policies import as_policy
from tempering.estimators.recipe import RULES, Recipe, Size, told_end
from tempering.estimators.topic_transformer import POLICIES, TopicTransformer
from tempering.inference import BlockSource
from tempering.inference.callbacks import Callback
from tempering.inference.learning_rate import LearningRate
from tempering.models.arguments import as_numbers
from tempering.models.lda.model import LatentDirichlet, TopicStart, Update
from tempering.models.lda.priors import PREDICTED_DOCUMENTS
from tempering.temperature import Annealing, TemperaturePolicy

#: Documents of a corpus on disk whose perplexity is told.
TOLD_DOCUMENTS = 10_000


class TopicChoices(TopicTransformer):
    """The choices of an estimator of topics, made from its parameters."""

    doc_topic_prior: ArrayLike | str | None
    topic_word_prior: float | str | None
    update: Update | Literal["auto"]
    init: TopicStart | Literal["auto"]
    learning_decay: float | Literal["auto"]
    learning_offset: float | Literal["auto"]
    batch_size: int | Literal["auto"]
    mean_change_tol: float | None
    evaluate_every: int
    perp_tol: float
    verbose: int

    def _new_model(
        self, source: Any, n_documents: int, mean_length: float, start: TopicStart
    ) -> LatentDirichlet:
        """The model of a run; ``start`` is what ``init="auto"`` stands for there."""
        k = self.n_components
        alpha, eta = self.doc_topic_prior, self.topic_word_prior
        learn_alpha, learn_eta = _is_auto(alpha), _is_auto(eta)
        keep_alpha = alpha is not None
        adapts = self._update() == "sampled" and not keep_alpha
        if alpha is None or learn_alpha:
            alpha = RULES.doc_topic_prior(k, self._update(), mean_length)
        expected = f"positive: one number, or one for each of the {k} topics"
        alpha = as_numbers(alpha, "doc_topic_prior", expected)
        eta = 1.0 / k if eta is None or learn_eta else float(eta)
        with np.errstate(over="ignore"):
            narrow = alpha.astype(np.float32)  # as the kernels hold it
        if alpha.shape not in ((), (k,)) or not np.all(np.isfinite(narrow) & (narrow > 0)):
            raise ValueError(
                f"doc_topic_prior must be {expected}, that float32 can hold; "
                f"got {self.doc_topic_prior!r}."
            )
        if not eta * self.n_features_in_ <= float(np.finfo(np.float32).max):
            raise ValueError(
                f"topic_word_prior must be so small that float32 can hold it {self.n_features_in_} "
                f"times, once a word; got {self.topic_word_prior!r}."
            )
        size = Size(k, n_documents, mean_length, float(np.broadcast_to(alpha, k).sum()))
        return LatentDirichlet(
            k,
            self.n_features_in_,
            alpha,
            eta,
            update=self._update(),
            tolerance=self._tolerance(mean_length),
            max_iterations=self.max_doc_update_iter,
            word_power=RULES.word_power(size),
            settled=RULES.settled(size, keep_prior=keep_alpha),
            start=start if self.init == "auto" else self.init,
            mean_length=mean_length,
            learn_doc_topic_prior=learn_alpha,
            learn_topic_word_prior=learn_eta,
            adapted_part=RULES.adapts(size) if adapts else 0.0,
            prior_documents=_some(source) if adapts else None,
            n_threads=self._n_threads(),
        )

    def _recipe(
        self,
        model: LatentDirichlet,
        policy: TemperaturePolicy,
        rates: LearningRate,
        batch_size: int,
        n_steps: int,
    ) -> Recipe:
        """What the fit goes by, told before it changes."""
        ramp = policy if self.tempering == "auto" and isinstance(policy, Annealing) else None
        return Recipe(
            start=model.start,
            start_temperature=None if ramp is None else ramp.first_temperature,
            tempered_part=0.0 if ramp is None else ramp.fraction,
            update=model.update,
            doc_topic_prior=float(model.doc_topic_prior.mean()),
            adapted_part=model.adapted_part,
            topic_word_prior=model.topic_word_prior,
            word_power=model.word_power,
            end=told_end(rates, model.settled),
            step_sizes=str(rates),
            batch_size=batch_size,
            n_steps=n_steps,
        )

    def _tolerance(self, mean_length: float) -> float:
        """The part of a document's words that may still move between topics."""
        if self.mean_change_tol is None:
            return self.doc_update_tol
        return min(self.mean_change_tol * self.n_components / mean_length, 0.5)

    def _watches(self, source: Any, model: LatentDirichlet) -> list[Callback]:
        """What is to be done after each pass, if anything."""
        lines = bool(self.verbose) and not sys.stderr.isatty()  # where it is one, there is a bar
        told = self.evaluate_every > 0 and (lines or self.perp_tol > 0)
        if not lines and not told:
            return []
        watch = PassWatch(
            told_documents(source) if told else None,
            model.doc_topic_prior,
            every=self.evaluate_every,
            tolerance=self.perp_tol,
            lines=lines,
            n_threads=self._n_threads(),
        )
        return [watch]

    def _update(self) -> Update:
        if self.update != "auto":
            return self.update
        return "sampled" if self.tempering == "auto" else "variational"

    def _policy(
        self,
        source: Any,
        model: LatentDirichlet,
        rates: LearningRate,
        n_steps: int,
        rng: np.random.RandomState,
    ) -> TemperaturePolicy:
        """The policy, from the data where it is "auto"."""
        if self.tempering != "auto":
            return as_policy(self.tempering, POLICIES)
        generator = np.random.default_rng(rng.randint(np.iinfo(np.int32).max))
        return RULES.policy(source, model, rates, n_steps, generator)

    def _batch_size(self, n_visits: float, where: Where) -> int:
        """Documents of a minibatch, in a run of so many visits to documents."""
        if self.batch_size != "auto":
            return self.batch_size
        return batch_size_for(n_visits, on_gpu(where))

    def _learning_rate(self, n_steps: int | None = None) -> LearningRate:
        """Step sizes of a run of so many steps, or of a stream."""
        return RULES.learning_rate(
            self.learning_offset, self.learning_decay, self.n_components, self._update(), n_steps
        )


def told_documents(source: Any) -> Any:
    """The documents whose perplexity is told: all that are in memory, or a sample."""
    if isinstance(source, BlockSource):
        return source.sample(TOLD_DOCUMENTS, np.random.default_rng(0))
    return source


def _some(source: Any) -> Any:
    """A few documents, the same ones with every seed."""
    if isinstance(source, BlockSource):
        return source.sample(PREDICTED_DOCUMENTS, np.random.default_rng(0))
    n = min(PREDICTED_DOCUMENTS, source.shape[0])
    rows = np.random.default_rng(0).choice(source.shape[0], size=n, replace=False)
    return source[np.sort(rows)]


def _is_auto(prior: Any) -> bool:
    return isinstance(prior, str) and prior == "auto"
