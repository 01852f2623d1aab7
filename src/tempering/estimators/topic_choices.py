"""What a fit of topics goes by: its parameters, and what is made of them and of the documents."""

import sys
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Annotated, Any, Literal

import numpy as np
from sklearn.utils._param_validation import Interval

from tempering.estimators.parameters import (
    Auto,
    Count,
    Jobs,
    NotNegative,
    Numbers,
    Positive,
    RandomState,
    Tempering,
    Total,
    Verbose,
)
from tempering.estimators.recipe import (
    RULES,
    Recipe,
    Size,
    batch_size_for,
    describe_policy,
    told_end,
)
from tempering.estimators.topic_transformer import TopicTransformer
from tempering.estimators.words import guided_prior, is_guided
from tempering.evaluation import completion_score, split_documents
from tempering.evaluation.checks import is_corpus
from tempering.gpu.jax_device import Backend, choose_backend, has_gpu
from tempering.inference import ArraySource, BlockSource, Report
from tempering.inference.callbacks import Callback
from tempering.inference.executors import Executor
from tempering.inference.fitting import seeds_of_restarts
from tempering.inference.run import LearningRate
from tempering.models.arguments import as_numbers
from tempering.models.lda.model import LatentDirichlet, TopicStart, Update
from tempering.models.lda.priors import as_doc_topic_prior, documents_to_predict, raised_prior
from tempering.models.lda.sampling import can_be_sampled
from tempering.models.lda.start import are_few, tells_topics_apart
from tempering.models.lda.topics import Topics
from tempering.temperature import AdaptiveTempering, TemperaturePolicy, Untempered

Where = Literal["numba", "jax"]


@dataclass(eq=False, repr=False)
class TopicChoices(TopicTransformer):
    """The parameters of an estimator of topics, and the choices that are made from them."""

    n_components: Count = 10
    _: KW_ONLY
    doc_topic_prior: Positive | Numbers | Auto | None = None
    topic_word_prior: Positive | Numbers | Auto | None = None
    seed_topics: dict[str, Any] | None = None
    seed_strength: Positive = 0.3
    tempering: Tempering = "auto"
    update: Literal[Update, "auto"] = "auto"
    init: Literal[TopicStart, "auto"] = "auto"
    learning_method: Literal["online", "batch"] = "online"
    learning_decay: Annotated[float, Interval(Real, 0.5, 1, closed="both")] | Auto = "auto"
    learning_offset: NotNegative | Auto = "auto"
    max_iter: Count = 10
    batch_size: Count | Auto = "auto"
    total_samples: Total | None = None
    doc_update_tol: Annotated[float, Interval(Real, 0, 1, closed="left")] = 1e-2
    mean_change_tol: NotNegative | None = None
    max_doc_update_iter: Count = 100
    n_init: Count = 1
    evaluate_every: Annotated[int, Integral] = 0
    perp_tol: NotNegative = 0.0
    backend: Backend = "auto"
    n_jobs: Jobs | None = None
    executor: Executor | None = None
    random_state: RandomState = None
    verbose: Verbose = 0

    def _new_model(
        self,
        source: Any,
        n_documents: int,
        mean_length: float,
        start: TopicStart,
        n_data: float | None = None,
    ) -> LatentDirichlet:
        """The model of a run; ``start`` is what ``init="auto"`` stands for there."""
        k = self.n_components
        alpha, eta = self.doc_topic_prior, self.topic_word_prior
        learn_alpha, learn_eta, guide = _is_auto(alpha), _is_auto(eta), None
        keep_alpha = alpha is not None
        adapts = self._update() == "sampled" and not keep_alpha
        if alpha is None or learn_alpha:
            alpha = RULES.doc_topic_prior(k, self._update(), mean_length)
        alpha = as_doc_topic_prior(alpha, k)
        if is_guided(self):
            eta, guide = guided_prior(self, source, n_data or n_documents)
        else:
            wanted = "one positive number, or one for each word of each topic"
            given = 1.0 / k if eta is None or learn_eta else eta
            eta = float(as_numbers(given, "topic_word_prior", wanted))
        if not eta * self.n_features_in_ <= float(np.finfo(np.float32).max):
            raise ValueError(
                f"topic_word_prior must be so small that float32 can hold it {self.n_features_in_} "
                f"times, once a word; got {self.topic_word_prior!r}."
            )
        documents = None
        if adapts:  # a few, the same ones with every seed
            n_some = documents_to_predict(mean_length)
            documents = _known(source).sample(n_some, np.random.default_rng(0))
        size = Size(k, n_documents, mean_length, float(alpha.sum()))
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
            prior_documents=documents,
            guide=guide,
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
        return Recipe(
            start=model.start,
            temperature=describe_policy(policy),
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

    def _watches(self, source: Any, model: LatentDirichlet) -> list[Callback]:
        """What prints a line a pass, and ends a fit by the perplexity of its documents, if asked.

        While a fit is tempered, perplexity falls with the cooling; only what it is at T = 1 counts.
        """
        lines = bool(self.verbose) and not sys.stderr.isatty()  # where it is one, there is a bar
        split = split_documents(told_documents(source)) if self.evaluate_every > 0 else None
        if split is not None and not split.held_out.nnz:
            raise ValueError(
                f"evaluate_every={self.evaluate_every} asks for perplexities, but no document of X "
                "has two different words, to predict one by the other: take evaluate_every=0."
            )
        if not lines and (split is None or self.perp_tol == 0):
            return []
        alpha, threads = model.doc_topic_prior, self._n_threads()
        last, previous = 0, np.nan

        def watch(report: Report) -> bool:
            nonlocal last, previous
            record = report.record
            if record.step == 0:  # of each restart
                last, previous = 0, np.nan
            passes = int(record.passes + 1e-9)
            if passes == last:
                return False
            last, stops = passes, False
            line = f"iteration: {passes} of max_iter: {report.planned_passes:g}"
            if split is not None and passes % self.evaluate_every == 0:
                components = report.posterior.parameters().T
                topics = components / components.sum(axis=1, keepdims=True, dtype=np.float64)
                score = completion_score(*split, topics, alpha, inference="vi", n_threads=threads)
                perplexity = float(np.exp(-score))
                line += f", perplexity: {perplexity:.4f}"
                if record.phase == "final":
                    stops = abs(perplexity - previous) < self.perp_tol
                    previous = perplexity
            if lines:
                print(line, flush=True)
            return stops

        return [watch]

    def _update(self) -> Update:
        return "sampled" if self.update == "auto" else self.update

    def _policy(
        self, model: LatentDirichlet, source: Any, stream: bool = False
    ) -> TemperaturePolicy:
        """Return the policy; "auto" has no heat where it brought nothing, nor in streams.

        The topics of a stream are used before it ends, which heat would blur.
        """
        weights = not isinstance(source, BlockSource) and not can_be_sampled(source.data)
        sampled = model.update == "sampled" and not weights
        if self.tempering == "auto" and sampled and (model.start == "words" or stream):
            return Untempered()
        return self._named_policy()

    def _documents(self, X: Any) -> Any:
        """What ``fit`` is given; as a source, what a cluster holds."""
        if is_corpus(X):
            return X
        if self.executor is not None:
            visits = self.max_iter
            return self.executor.open(X, lambda n: self._batch_size(n * visits, "numba"))
        if type(X).__module__.startswith("dask"):
            raise ValueError(
                f"X is in Dask ({type(X).__name__}): pass "
                "executor=tempering.cluster.DaskExecutor(client) to the estimator, or compute() it."
            )
        return X

    def _where(self, word_visits: float) -> Where:
        """What runs a fit of so many visits to words; an error if that is not there."""
        if self.executor is None:
            # Some seconds of work for the CPU, as many as it takes to load JAX and to compile.
            worthwhile = word_visits >= 2e7
            adaptive = self.tempering == "adaptive" or isinstance(self.tempering, AdaptiveTempering)
            # An adaptive temperature is found on the CPU, and topics are led there.
            on_cpu = adaptive or is_guided(self)
            return choose_backend(self.backend, worthwhile=worthwhile and not on_cpu)
        return "numba"

    def _check_executor(self) -> None:
        """Refuse two places for one fit."""
        if self.executor is not None and self.backend in ("jax", "gpu"):
            raise ValueError(
                f"backend={self.backend!r} fits topics on the device of this process, but executor="
                f"{self.executor!r} sends their documents elsewhere. Leave out the executor, or "
                "take backend='cpu', which the workers of a cluster run."
            )

    def _batch_size(self, n_visits: float, where: Where, mean_length: float = 0.0) -> int:
        """Documents of a minibatch, in a run of so many visits to documents of this many words."""
        if self.batch_size != "auto":
            return self.batch_size
        if self._update() != "sampled":
            mean_length = 0.0  # small batches were tried with samples alone
        return batch_size_for(n_visits, mean_length, on_gpu=where == "jax" and has_gpu())

    def _learning_rate(self, n_steps: int | None = None, mixed: bool = False) -> LearningRate:
        """Step sizes of a run of so many steps, or of a stream."""
        offset, decay = self.learning_offset, self.learning_decay
        return RULES.learning_rate(offset, decay, self.n_components, self._update(), n_steps, mixed)


def told_documents(source: Any) -> Any:
    """The documents whose perplexity is told: all that are in memory, or a sample."""
    if isinstance(source, BlockSource):
        return source.sample(10_000, np.random.default_rng(0))
    return source


def mixed_start(
    model: LatentDirichlet, source: Any, n_words: float, seed: int
) -> tuple[Topics | None, bool]:
    """Topics that words tell apart, if they do, and whether documents mix many of them.

    Such documents say little about a topic each, so that large steps and words to a power below 1
    would undo the start. They are recognized by a sum of α that is raised, where it is not given.
    """
    if model.update != "sampled" or not tells_topics_apart(model, n_words):
        return None, False
    topics = model.initialize(_known(source), np.random.default_rng(seeds_of_restarts(seed, 1)[0]))
    prior, n_topics = model.doc_topic_prior, model.n_topics
    usual = n_topics * RULES.doc_topic_prior(n_topics, model.update, model.mean_length)
    few, given = are_few(n_topics), model.prior_documents is None
    if not given:
        prior = raised_prior(topics, prior, model.prior_documents, model.n_threads)
    # Twice as much, or four times with few topics: blurred ones ask for twice as much, too.
    if (few and given) or prior.sum() < (3.0 if few else 1.5) * usual:
        return topics, False
    model.doc_topic_prior, model.word_power, model.settled = prior, 1.0, None
    return topics, True


def _known(source: Any) -> Any:
    return source if isinstance(source, BlockSource) else ArraySource(source)


def _is_auto(prior: Any) -> bool:
    return isinstance(prior, str) and prior == "auto"
