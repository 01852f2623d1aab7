"""Latent Dirichlet allocation with scikit-learn's interface, tempered, and many times as fast."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from tempering.estimators.batches import batch_size_for
from tempering.estimators.jobs import N_JOBS
from tempering.estimators.lda_backend import (
    Where,
    advance,
    as_documents,
    check_executor,
    fit_topics,
    on_gpu,
    topics_backend,
)
from tempering.estimators.passes import PassWatch
from tempering.estimators.policies import Tempering, as_policy
from tempering.estimators.recipe import RULES, Recipe, Size, told_end
from tempering.estimators.sizes import LARGEST_TOTAL, WHOLE, check_n_components
from tempering.estimators.topic_health import (
    TopicWarning,
    copied_topics,
    describe_troubles,
    sizes_of,
    unused_topics,
)
from tempering.estimators.topic_transformer import POLICIES, TopicTransformer
from tempering.estimators.words import remember_words
from tempering.gpu.jax_device import Backend
from tempering.inference import (
    Algorithm,
    ArraySource,
    BlockSource,
    Constant,
    History,
    State,
)
from tempering.inference.callbacks import Callback
from tempering.inference.checkpoint import (
    CheckpointLike,
    alone_with_checkpoint,
    remembered_seed,
)
from tempering.inference.compilation import say_compiling, telling
from tempering.inference.executors import Executor, Serial
from tempering.inference.learning_rate import LearningRate
from tempering.models.arguments import as_numbers
from tempering.models.lda.model import LatentDirichlet, TopicStart, Update
from tempering.models.lda.priors import PREDICTED_DOCUMENTS
from tempering.temperature import Annealing, Heat, TemperaturePolicy, Untempered

#: What a stream of unknown length is taken for: as many documents in all, as in scikit-learn, and a
#: run of that many for the temperature, which must come down though nobody knows when it ends.
UNKNOWN_TOTAL, UNKNOWN_HORIZON = 1e6, 2e4
#: Documents of a corpus on disk whose perplexity is told.
TOLD_DOCUMENTS = 10_000


class LatentDirichletAllocation(TopicTransformer):
    """Topic model fitted by tempered stochastic variational inference.

    Parameters and attributes are those of :class:`sklearn.decomposition.LatentDirichletAllocation`
    where it has them.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    doc_topic_prior : float, array-like of shape (n_components,), "auto" or None, default=None
        Prior of the topic proportions of a document (α): one number, one for each topic, or
        learned. 1 / n_components by default; where topics are sampled 0.05 at least (less with
        more than 100 of them, and in short documents), raised where documents mix many topics, and
        partly shared out as documents use topics.
    topic_word_prior : float, "auto" or None, default=None
        Prior of the words of a topic (η), or learned; 1 / n_components by default.
    tempering : {"auto", "annealing", "variational", "local"}, policy or None, default="auto"
        "auto" starts at a temperature that is computed from the data, and cools linearly in 1/T
        over 40% of the run (see ``recipe_``). Else a name for a policy's default setting, an object
        such as ``tempering.Annealing(...)``, or None for T = 1 throughout (plain SVI).
    update : {"auto", "variational", "mean", "collapsed", "sampled"}, default="auto"
        How topics and proportions enter the inner update: as in the paper; posterior-mean topics;
        posterior means of both; or as "mean" until T = 1, from where on the topics of each document
        are sampled by a short Gibbs chain with its proportions summed out (with more than 50
        topics, by topics to a power a little below 1). Only "variational" ascends an evidence lower
        bound. "auto" is "sampled" with ``tempering="auto"``, else "variational".
    init : {"auto", "random", "words"}, default="auto"
        Topics to start from: random draws; or the company of words that keep different company,
        which depends on the documents alone, so that fits with different seeds find much the same
        topics. "auto" is "words" in :meth:`fit` with ``tempering="auto"`` and without restarts,
        else "random". In a stream "words" looks at the documents of the first :meth:`partial_fit`.
    learning_method : {"online", "batch"}, default="online"
        Minibatches (stochastic variational inference) or all documents at each step.
    learning_decay : float or "auto", default="auto"
        κ: minibatch step t has the size (learning_offset + t) ** −κ. "auto" is 0.7; in
        :meth:`fit` with `update="sampled"` 0.55, and from 50 topics on 0.05 more each time their
        number doubles, up to 0.7. Such topics are averaged over the last fifth of the run: there
        the steps are smaller.
    learning_offset : float or "auto", default="auto"
        Holds the first steps back. "auto" is 16; in :meth:`fit` with `update="sampled"` a tenth of
        the steps, from 16 to 200.
    max_iter : int, default=10
        Passes over the documents.
    batch_size : int or "auto", default="auto"
        Documents of a minibatch. "auto" cuts the run into 2,000 steps, enough for the temperature
        to be felt; where these would have more than 100 documents, into more (4,500 with a million
        visits to documents, and four times as many with 16 million), of 16 to 1,024 documents. On a
        GPU it is 2,000 steps of up to 8,192.
    total_samples : float, default=None
        Documents that a stream of :meth:`partial_fit` calls will bring in all; its tempered part
        runs over its share of them. None if that is not known: then it is over after 8,000
        documents, and counts are scaled to a corpus of a million.
    doc_update_tol : float, default=1e-2
        A document's inner iteration ends when a sweep moves less than this part of its words
        between topics. Unlike a mean over topics, the rule does not weaken as topics are added.
    mean_change_tol : float, default=None
        scikit-learn's rule in the place of ``doc_update_tol``: the mean change over topics, for a
        document of average length.
    max_doc_update_iter : int, default=100
        Most sweeps of a document.
    n_init : int, default=1
        Restarts; the one with the best ELBO is kept.
    evaluate_every : int, default=0
        Steps between two evaluations of the ELBO for ``history_``, and passes between two of the
        perplexity that ``verbose`` prints and ``perp_tol`` looks at. With 0 or less there is one
        ELBO a pass, and no perplexity.
    perp_tol : float, default=0.0
        With ``evaluate_every`` above 0, end the fit when perplexity changes by less than this at
        T = 1 (scikit-learn's default is 0.1).
    backend : {"auto", "cpu", "jax", "gpu"}, default="auto"
        What runs a fit: the CPU; JAX on whatever device it finds; JAX, but only on a GPU. "auto" is
        the GPU where there is one and :meth:`fit` has 20 million words or more to visit, as it
        takes some seconds to compile, and the CPU elsewhere. JAX needs
        ``pip install 'tempering[gpu]'``.
    n_jobs : int, default=None
        Threads; None or -1 for one a core, -2 for one less, and so on. Never changes the result.
    executor : Executor, default=None
        Who solves the shards of a batch: threads of this process, or a cluster, with
        ``tempering.cluster.DaskExecutor(client)``, which run on CPUs. Never changes the result, and
        is not saved.
    random_state : int, RandomState instance or None, default=None
        The same seed gives the same topics.
    verbose : int, default=0
        Show a progress bar; where there is no terminal, print a line a pass.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Dirichlet parameters of the topics (λ); divided by their row sums, the topics. In float64
        where X was, else in float32, as they are computed.
    exp_dirichlet_component_ : array of shape (n_components, n_features)
        exp(E[log β]).
    bound_ : float
        After a fit with ``evaluate_every`` above 0: :meth:`perplexity` of its documents (of 10,000
        of them, where they stream from disk).
    random_state_ : RandomState
        The random numbers that the fit began with.
    recipe_ : Recipe
        What the fit went by where nothing was said: print it.
    history_ : History
        Temperature, ELBO and more at each step.
    temperature_ : float
        The temperature at the end of the tempered phase.
    doc_topic_prior_, topic_word_prior_ : array, float
        The priors, learned or given.
    vocabulary_ : array of str
        The words, where X was a :class:`tempering.corpus.Corpus` that has them.
    counting_ : dict
        How text was made into them, where it was: see :class:`tempering.corpus.WordCounting`.
    n_iter_, n_batch_iter_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import LatentDirichletAllocation
    >>> X = np.repeat([[4, 3, 0, 0], [0, 0, 5, 4]], 50, axis=0)
    >>> lda = LatentDirichletAllocation(n_components=2, learning_method="batch", random_state=0)
    >>> lda.fit_transform(X)[[0, 99]].round(1).max(axis=1)
    array([0.9, 0.9])
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [WHOLE],
        "doc_topic_prior": [
            Interval(Real, 0, None, closed="neither"),
            "array-like",
            StrOptions({"auto"}),
            None,
        ],
        "topic_word_prior": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
        "tempering": [str, TemperaturePolicy, None],
        "update": [StrOptions({"auto", "variational", "mean", "collapsed", "sampled"})],
        "init": [StrOptions({"auto", "random", "words"})],
        "learning_method": [StrOptions({"online", "batch"})],
        "learning_decay": [Interval(Real, 0.5, 1, closed="both"), StrOptions({"auto"})],
        "learning_offset": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "total_samples": [Interval(Real, 1, LARGEST_TOTAL, closed="both"), None],
        "doc_update_tol": [Interval(Real, 0, 1, closed="left")],
        "mean_change_tol": [Interval(Real, 0, None, closed="left"), None],
        "max_doc_update_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [WHOLE],
        "evaluate_every": [Integral],
        "perp_tol": [Interval(Real, 0, None, closed="left")],
        "backend": [StrOptions({"cpu", "auto", "jax", "gpu"})],
        "n_jobs": N_JOBS,
        "executor": [Executor, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: ArrayLike | str | None = None,
        topic_word_prior: float | str | None = None,
        tempering: Tempering = "auto",
        update: Update | Literal["auto"] = "auto",
        init: TopicStart | Literal["auto"] = "auto",
        learning_method: Literal["online", "batch"] = "online",
        learning_decay: float | Literal["auto"] = "auto",
        learning_offset: float | Literal["auto"] = "auto",
        max_iter: int = 10,
        batch_size: int | Literal["auto"] = "auto",
        total_samples: float | None = None,
        doc_update_tol: float = 1e-2,
        mean_change_tol: float | None = None,
        max_doc_update_iter: int = 100,
        n_init: int = 1,
        evaluate_every: int = 0,
        perp_tol: float = 0.0,
        backend: Backend = "auto",
        n_jobs: int | None = None,
        executor: Executor | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.tempering = tempering
        self.update: Update | Literal["auto"] = update
        self.init: TopicStart | Literal["auto"] = init
        self.learning_method = learning_method
        self.learning_decay: float | Literal["auto"] = learning_decay
        self.learning_offset: float | Literal["auto"] = learning_offset
        self.max_iter = max_iter
        self.batch_size: int | Literal["auto"] = batch_size
        self.total_samples = total_samples
        self.doc_update_tol = doc_update_tol
        self.mean_change_tol = mean_change_tol
        self.max_doc_update_iter = max_doc_update_iter
        self.n_init = n_init
        self.evaluate_every = evaluate_every
        self.perp_tol = perp_tol
        self.backend: Backend = backend
        self.n_jobs = n_jobs
        self.executor = executor
        self.random_state = random_state
        self.verbose = verbose

    @alone_with_checkpoint
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        checkpoint: CheckpointLike = None,
        resume: bool = True,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Learn the topics of a corpus.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), Corpus, or BlockSource
            Counts (or weights) of words in documents; or a corpus that streams from disk, in
            minibatches of its own ``batch_size``. With a :class:`tempering.cluster.DaskExecutor`,
            also a Dask bag or dataframe, as :class:`tempering.cluster.DaskSource` takes it.
        y : Ignored
            Not used, present for API consistency.
        checkpoint : path or Checkpoint, optional
            A directory in which the fit is kept, every ten minutes or as often as
            :class:`tempering.Checkpoint` says, and at Ctrl-C.
        resume : bool
            Go on from the checkpoint, if there is one, and end in the same bits as if the fit had
            never been interrupted. One of other data or of other parameters is refused. False
            starts anew, and replaces it.
        callbacks : sequence of callables
            Each is called with a :class:`tempering.inference.Report` after each step; a true return
            value ends the fit.

        Returns
        -------
        self
        """
        check_executor(self.backend, self.executor)
        X = as_documents(X, self.executor, lambda n: self._batch_size(n * self.max_iter, "numba"))
        source = X if isinstance(X, BlockSource) else self._counts(X, reset=True)
        if isinstance(source, BlockSource):
            self.n_features_in_ = source.shape[1]
            remember_words(self, source)
            n_documents, n_tokens = source.size, float(source.n_tokens)
            n_entries, batch_size = n_tokens, source.batch_size
        else:
            n_documents, n_tokens = source.shape[0], float(source.sum(dtype=np.float64))
            n_entries, batch_size = source.nnz, None
        if not n_tokens > 0:
            raise ValueError("X must hold at least one word; every document is empty.")
        check_n_components(self.n_components, n_entries, "words of documents in X")
        where = topics_backend(self.backend, n_tokens * self.max_iter, self.executor)
        if batch_size is None:
            batch_size = self._batch_size(n_documents * self.max_iter, where)
        rng = check_random_state(remembered_seed(self.random_state, checkpoint, resume))
        # Restarts are for different starts, and that from words is one and the same.
        start = "words" if self.tempering == "auto" and self.n_init == 1 else "random"
        model = self._new_model(source, n_documents, n_tokens / n_documents, start)
        online = self.learning_method == "online"
        steps_a_pass = -(-n_documents // batch_size) if online else 1
        n_steps = steps_a_pass * self.max_iter
        rates = self._learning_rate(n_steps) if online else Constant()
        with telling(say_compiling) if self.verbose else nullcontext():
            policy = self._policy(source, model, rates, n_steps, rng)
            result = fit_topics(
                model,
                source,
                where,
                temperature=policy,
                learning_rate=rates,
                batch_size=batch_size if online else None,
                max_passes=self.max_iter,
                n_init=self.n_init,
                seed=int(rng.randint(np.iinfo(np.int32).max)),
                n_threads=1,
                executor=self.executor,
                elbo_every=self.evaluate_every if self.evaluate_every > 0 else steps_a_pass,
                final_elbo=False,
                callbacks=[*callbacks, *self._watches(source, model)],
                progress=bool(self.verbose),
                checkpoint=checkpoint,
                resume=resume,
            )
        self.recipe_ = self._recipe(model, policy, rates, batch_size, n_steps)
        self.history_ = result.history
        self.n_iter_ = int(np.ceil(result.history[-1].passes))
        self.n_batch_iter_ = len(result.history)
        self.temperature_ = 1.0 / np.mean(result.heat.inverse_temperature)
        self._learned_inverse_temperature = result.heat.inverse_temperature
        self._state = State(
            result.posterior,
            Heat(finished=True),  # documents that come later meet topics that are fitted already
            len(result.history),
            result.history[-1].data_seen,
        )
        assert isinstance(result.model, LatentDirichlet)
        self._model = result.model
        self._stream_policy = Untempered()
        self.random_state_ = rng
        if self.evaluate_every > 0:
            self.bound_ = float(np.exp(-self._completion_score(_told(source))))
        self._report_troubles(n_tokens)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the topics with more documents of a stream, in minibatches of ``batch_size``.

        The stream is cooled as it comes: over 40% of ``total_samples`` (with more than 100 topics
        up to half), or of the first 20,000 documents where that is not known, then T = 1. Topics
        are better if the number is given.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Documents.
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self
        """
        check_executor(self.backend, self.executor)
        first = not hasattr(self, "_state")
        X = self._counts(X, reset=first)
        n_data = int(self.total_samples or UNKNOWN_TOTAL)
        horizon = self.total_samples or UNKNOWN_HORIZON
        seen = 0 if first else self._state.data_seen
        n_entries = X.nnz / X.shape[0] * max(horizon, X.shape[0])
        check_n_components(self.n_components, n_entries, "words of documents in such a stream")
        # A stream comes in small pieces from the host: without being asked to, it stays there.
        where = topics_backend(self.backend, 0, self.executor)
        batch_size = self._batch_size(max(horizon, seen), where)
        if first:
            self.random_state_ = rng = check_random_state(self.random_state)
            mean_length = max(X.sum(dtype=np.float64) / X.shape[0], 1.0)
            self._model = self._new_model(X, int(horizon), mean_length, start="random")
            n_steps = max(1, int(horizon // batch_size))
            self._stream_policy = self._policy(X, self._model, self._learning_rate(), n_steps, rng)
            self._stream_seed = int(rng.randint(np.iinfo(np.int32).max))
        algorithm = Algorithm(
            self._model,
            self._stream_policy,
            self._learning_rate(),
            self.executor or Serial(),
            n_data=n_data,
            planned_passes=horizon / n_data,
        )
        if first:
            generator = np.random.default_rng(self._stream_seed)
            topics = self._model.initialize(ArraySource(X), generator)
            self._state = algorithm.start(topics, generator)
            self.history_ = History()
        self._state = advance(algorithm, self._state, X, batch_size, where)
        self.n_batch_iter_ = self._state.step
        self.n_iter_ = max(1, self._state.data_seen // n_data)
        self._learned_inverse_temperature = self._state.heat.inverse_temperature
        return self

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
            _told(source) if told else None,
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

    def _report_troubles(self, n_tokens: float) -> None:
        """Warn, by name, of topics that died or became copies."""
        topics = self._state.posterior
        sizes = sizes_of(topics)
        unused = unused_topics(sizes.topics, n_tokens)
        troubles = describe_troubles(unused, copied_topics(topics, sizes, unused))
        if troubles:
            warnings.warn(troubles, TopicWarning, stacklevel=4)


def _told(source: Any) -> Any:
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
