"""Latent Dirichlet allocation with scikit-learn's interface, many times as fast."""

import warnings
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state

from tempering.estimators.fitted_documents import remember_documents
from tempering.estimators.parameters import check_n_components, check_unchanged, kept_whole
from tempering.estimators.topic_choices import TopicChoices, mixed_start, told_documents
from tempering.estimators.words import check_guidance, remember_labels, remember_words
from tempering.inference import Algorithm, ArraySource, Batch, BlockSource, Constant, History
from tempering.inference.callbacks import Callback
from tempering.inference.checkpoint import CheckpointLike, alone_with_checkpoint, remembered_seed
from tempering.inference.executors import Serial
from tempering.inference.fitting import FitOptions, fit
from tempering.inference.run import Result, State
from tempering.models.compilation import on_compilation, say_compiling
from tempering.models.lda.layout import Float64
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import WORDS_AT_A_TIME, Guide, Topics
from tempering.temperature import Heat, Untempered


class TopicWarning(UserWarning):
    """A topic has died or is a copy of another one, or there are more topics than documents."""


@dataclass(eq=False, repr=False)
class LatentDirichletAllocation(TopicChoices):
    """Topic model fitted by stochastic variational inference and Gibbs chains, or tempered.

    Parameters and attributes are those of :class:`sklearn.decomposition.LatentDirichletAllocation`
    where it has them.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    doc_topic_prior : float, array-like of shape (n_components,), "auto" or None, default=None
        Prior of the topic proportions of a document (α); "auto" learns it. None is
        1 / n_components, or, if topics are sampled, a start that adapts to the documents (see
        ``recipe_``).
    topic_word_prior : float, array-like of shape (n_components, n_features), "auto" or None, \
default=None
        Prior of the words of a topic (η); "auto" learns it, and None is 1 / n_components. A
        matrix with a number for each topic and word leads topics; 0 keeps the word out of it.
    seed_topics : dict, default=None
        Names of topics, and the words that lead them: ``{"economy": ["market", "bank"]}``, or,
        with words to keep out, ``{"economy": {"words": ["market"], "without": ["river"]}}``. Led
        topics come first, and ``topic_labels_`` has their names. A word is a word of the corpus,
        or the number of its column.
    seed_strength : float, default=0.3
        How much seed words count: the prior of their topic holds each as often as the documents
        do, times this.
    tempering : {"auto", "adaptive", "annealing", "variational", "local"}, policy or None, \
default="auto"
        The temperature, and nothing else. "auto" is T = 1 where topics start from words and are
        sampled, as by default; otherwise it cools from T = 2 over 40% of the run. None is T = 1
        throughout. "adaptive" needs ``learning_method="batch"`` and ``update="variational"``.
    update : {"auto", "variational", "mean", "sampled"}, default="auto"
        How topics enter the inner update. "variational" is the paper's, and the only one that
        climbs an evidence lower bound; "mean" uses posterior means; "sampled" is "mean" until
        T = 1, then short Gibbs chains. "auto" is "sampled".
    init : {"auto", "random", "words"}, default="auto"
        Where topics start: from random draws, or from words that occur together, so that all
        seeds find much the same topics. "auto" is "words" in :meth:`fit` without restarts, and
        "random" otherwise.
    learning_method : {"online", "batch"}, default="online"
        Minibatches (stochastic variational inference) or all documents at each step.
    learning_decay : float or "auto", default="auto"
        κ: minibatch step t has the size (learning_offset + t) ** −κ. ``recipe_`` tells what "auto"
        came to, here and below.
    learning_offset : float or "auto", default="auto"
        Makes the first steps smaller.
    max_iter : int, default=10
        Passes over the documents.
    batch_size : int or "auto", default="auto"
        Documents in a minibatch; "auto" goes by how many there are, and how long.
    total_samples : float, default=None
        How many documents all calls of :meth:`partial_fit` will bring. If None, the stream cools
        over 8,000 documents, and counts are scaled to a corpus of a million; or, after :meth:`fit`,
        to its documents and those that came since.
    doc_update_tol : float, default=1e-2
        The sweeps of a document end when one moves less than this part of its words to other
        topics; :meth:`transform` uses 1e-3 if that is less. With the default, the local step is
        inexact: a step of ``update="variational"`` can lower the ELBO slightly. It never falls with
        ``learning_method="batch"``, T = 1, ``doc_update_tol=1e-5`` and a ``max_doc_update_iter`` of
        10,000.
    mean_change_tol : float, default=None
        scikit-learn's rule instead of ``doc_update_tol``, in fits and in :meth:`transform`: the
        mean change over topics, for a document of average length.
    max_doc_update_iter : int, default=100
        The most sweeps of a document.
    n_init : int, default=1
        Restarts; the one with the best ELBO is kept.
    evaluate_every : int, default=0
        Steps between two ELBOs in ``history_``, and passes between two perplexities, which
        ``verbose`` prints. With 0 or less there is one ELBO a pass, and no perplexity.
    perp_tol : float, default=0.0
        With ``evaluate_every`` above 0, end the fit when the perplexity of its documents changes by
        less than this at T = 1 (scikit-learn's default is 0.1). A fit that is resumed has none to
        compare its first one with.
    backend : {"auto", "cpu", "jax", "gpu"}, default="auto"
        Where a fit runs: on the CPU, on whatever device JAX finds ("jax"), or only on a GPU.
        "auto" takes a GPU if there is one and :meth:`fit` visits at least 20 million words.
        :meth:`partial_fit` runs on the CPU.
    n_jobs : int, default=None
        Threads; None or -1 for one on each core, -2 for one less, and so on. It never changes the
        result.
    executor : Executor, default=None
        As in :class:`tempering.BayesianGaussianMixture`.
    random_state : int, RandomState instance or None, default=None
        The same seed gives the same topics.
    verbose : int, default=0
        Show a progress bar or, without a terminal, print a line for each pass.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Dirichlet parameters of the topics (λ); divided by their row sums they are the topics.
        float64 if X is, otherwise float32, in which they are computed.
    exp_dirichlet_component_ : array of shape (n_components, n_features)
        exp(E[log β]).
    bound_ : float
        After a fit with ``evaluate_every`` above 0: :meth:`perplexity` of its documents (of 10,000
        of them if they stream from disk).
    recipe_ : Recipe
        What the fit chose for the parameters that were not given: print it.
    history_ : History
        Temperature, ELBO and more at each step.
    temperature_ : float
        The temperature at the end of the tempered phase.
    doc_topic_prior_, topic_word_prior_ : array, float
        The priors, learned or given.
    topic_labels_ : array of str
        With ``seed_topics``: the names, and "" for the other topics.
    vocabulary_ : array of str
        The words, if X was a :class:`tempering.corpus.Corpus` that has them.
    fitted_documents_ : array of uint64
        After :meth:`fit`: digests of its documents (65,536 at most), by which ``tempering
        evaluate`` distinguishes training from held-out documents.
    counting_ : dict
        How the text was split into words, if it was: see :class:`tempering.corpus.WordCounting`.
    n_iter_, n_batch_iter_, random_state_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> lda = LatentDirichletAllocation(n_components=2, learning_method="batch", random_state=0)
    >>> lda.fit_transform(X)[[0, 99]].round(1).max(axis=1)
    array([0.9, 0.9])
    """

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
        checkpoint, resume
            As in :meth:`tempering.BayesianGaussianMixture.fit`.
        callbacks : sequence of callables
            Each is called with a :class:`tempering.inference.Report` after each step; a true return
            value ends the fit.
        """
        with kept_whole(self):
            self._check_executor()
            check_guidance(self)
            source, n_documents, n_tokens = self._measured(self._documents(X))
            mean_length = n_tokens / n_documents or 1.0
            where = self._where(n_tokens * self.max_iter)
            if isinstance(source, BlockSource):
                batch_size = source.batch_size
            else:
                batch_size = self._batch_size(n_documents * self.max_iter, where, mean_length)
            rng = check_random_state(remembered_seed(self.random_state, checkpoint, resume))
            # Restarts are for different starts, and that from words is one and the same.
            start = "words" if self.n_init == 1 else "random"
            model = self._new_model(source, n_documents, mean_length, start)
            online = self.learning_method == "online"
            steps_a_pass = -(-n_documents // batch_size) if online else 1
            n_steps = steps_a_pass * self.max_iter
            seed = rng.randint(np.iinfo(np.int32).max)
            with on_compilation(say_compiling) if self.verbose else nullcontext():
                initial, mixed = None, False
                if online and self.n_init == 1:
                    initial, mixed = mixed_start(model, source, n_tokens, seed)
                rates = self._learning_rate(n_steps, mixed) if online else Constant()
                policy = self._policy(model, source)
                options: FitOptions = {
                    "temperature": policy,
                    "learning_rate": rates,
                    "initial": initial,
                    "batch_size": batch_size if online else None,
                    "max_passes": self.max_iter,
                    "n_init": self.n_init,
                    "seed": seed,
                    "n_threads": 1,  # the kernels have threads of their own
                    "executor": self.executor,
                    "elbo_every": self.evaluate_every if self.evaluate_every > 0 else steps_a_pass,
                    "final_elbo": False,
                    "callbacks": [*callbacks, *self._watches(source, model)],
                    "progress": bool(self.verbose),
                    "checkpoint": checkpoint,
                    "resume": resume,
                }
                run = fit
                if where == "jax":
                    from tempering.gpu.device_lda import fit_on_device as run
                result = run(model, source, **options)
            self.recipe_ = self._recipe(model, policy, rates, batch_size, n_steps)
            self._keep(result)
            remember_documents(self, source)
            self.random_state_ = rng
            self.__dict__.pop("bound_", None)  # of another fit
            if self.evaluate_every > 0:
                self.bound_ = self.perplexity(told_documents(source))
            remember_labels(self)
        warn_of_troubles(self._state.posterior, n_documents, n_tokens, self._model.guide)
        return self

    def _measured(self, X: Any) -> tuple[Any, int, float]:
        """The documents as counts or as a source, how many they are, and how many words."""
        if isinstance(X, BlockSource):
            source, self.n_features_in_ = X, X.shape[1]
            remember_words(self, source)
            n_documents, n_tokens = source.size, float(source.n_tokens)
            n_entries = n_tokens
            if self.learning_method == "batch" and source.batch_size < n_documents:
                raise ValueError(
                    "learning_method='batch' takes all documents at each step, but X streams in "
                    f"minibatches of {source.batch_size}: take 'online', or X in memory."
                )
        else:
            source = self._counts(X, reset=True)
            n_documents, n_tokens = source.shape[0], float(source.sum(dtype=np.float64))
            n_entries = source.nnz
        check_n_components(self.n_components, n_entries, "words of documents in X")
        return source, n_documents, n_tokens

    def _keep(self, result: Result) -> None:
        """What a fit found, also for documents that come later: they meet topics at T = 1."""
        assert isinstance(result.model, LatentDirichlet)
        self._model, self._stream_policy = result.model, Untempered()
        self.history_, last = result.history, result.history[-1]
        self.n_iter_, self.n_batch_iter_ = int(np.ceil(last.passes)), len(result.history)
        self.temperature_ = 1.0 / np.mean(result.heat.inverse_temperature)
        cold = Heat(finished=True)
        self._state = State(result.posterior, cold, self.n_batch_iter_, last.data_seen)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the topics with more documents of a stream, in minibatches of ``batch_size``.

        By default topics of a stream start from random draws. So the stream is cooled as it comes:
        over 40% of ``total_samples``, or of the first 20,000 documents if that is unknown, then
        T = 1. Topics are better if the number is given.
        """
        with kept_whole(self):
            self._check_executor()
            if self.backend in ("jax", "gpu"):
                raise ValueError(
                    f"backend={self.backend!r} is for fit: streams of documents are fitted on the "
                    "CPU. Take backend='cpu' or 'auto' for partial_fit."
                )
            check_guidance(self)
            first = not hasattr(self, "_state")
            if not first:
                check_unchanged(self, n_components=self._model.n_topics)
            X = self._counts(X, reset=first)
            # Without its length, a stream has a million documents, as in scikit-learn, and the
            # temperature comes down in a run of 20,000, though nobody knows when it ends.
            n_data, horizon = int(self.total_samples or 1e6), self.total_samples or 2e4
            seen = 0 if first else self._state.data_seen
            if not self.total_samples and not first and self.history_:
                # The topics of a fit: as if of a million, some documents would count for all of it.
                last = self.history_[-1]
                n_data = round(last.data_seen / last.passes) + seen - last.data_seen + X.shape[0]
            n_entries = X.nnz / X.shape[0] * max(horizon, X.shape[0])
            check_n_components(self.n_components, n_entries, "words of documents in such a stream")
            batch_size = self._batch_size(max(horizon, seen), "numba")
            rates, executor = self._learning_rate(), self.executor or Serial()
            if first:
                self.random_state_ = rng = check_random_state(self.random_state)
                mean_length = max(X.sum(dtype=np.float64) / X.shape[0], 1.0)
                self._model = self._new_model(X, int(horizon), mean_length, "random", n_data)
                remember_labels(self)
                self._stream_seed = rng.randint(np.iinfo(np.int32).max)
                self._stream_policy = self._policy(self._model, X, stream=True)
            elif X.shape[0] > batch_size:
                # Steps write into them: one that fails is to take back those before it.
                self._model, self._state = deepcopy((self._model, self._state))
            policy, passes = self._stream_policy, horizon / n_data
            algorithm = Algorithm(
                self._model, policy, rates, executor, n_data, planned_passes=passes
            )
            if first:
                generator = np.random.default_rng(self._stream_seed)
                topics = self._model.initialize(ArraySource(X), generator)
                self._state = algorithm.start(topics, generator)
                self.history_ = History()
            state = self._state
            self.__dict__.pop("fitted_documents_", None)
            for start in range(0, X.shape[0], batch_size):
                batch = Batch(X[start : start + batch_size])
                state = algorithm.advance(state, batch, evaluate=False).state
            self._state, self.n_batch_iter_ = state, state.step
            if state.heat.finished:  # and so that a policy of one's own stops nobody from saving
                self._stream_policy = Untempered()
            self.n_iter_ = max(1, self._state.data_seen // n_data)
        return self


def warn_of_troubles(
    topics: Topics, n_documents: int, n_tokens: float, guide: Guide | None = None
) -> None:
    """Warn of more topics than documents, and, by name, of topics that died or became copies."""
    if n_tokens == 0:
        empty = (
            "every document of X is empty, so the topics hold nothing but their prior and start."
        )
        warnings.warn(empty, TopicWarning, stacklevel=5)
        return
    if topics.shape[1] > n_documents:
        warnings.warn(
            f"n_components={topics.shape[1]} is more than the {n_documents} documents of X, which "
            "cannot distinguish that many topics: fit fewer topics, or more documents.",
            TopicWarning,
            stacklevel=5,
        )
    held, overlaps = sizes_and_overlaps(topics)
    # What words lead a topic is no document's.
    unused = unused_topics(held if guide is None else held - guide.totals(), n_tokens)
    copies = np.triu(overlaps > 0.99, 1)
    copies[unused] = copies[:, unused] = False
    troubles = describe_troubles(unused, np.argwhere(copies))
    if troubles:
        warnings.warn(troubles, TopicWarning, stacklevel=5)


def unused_topics(counts: NDArray[np.floating], n_tokens: float) -> np.ndarray:
    """Topics that hold next to nothing, of expected counts [K] scaled to the whole corpus."""
    # Five words, or a tenth of the average where X holds weights that are no counts, or is small.
    return np.flatnonzero(counts < min(5.0, 0.1 * n_tokens / len(counts)))


def describe_troubles(unused: np.ndarray, copies: Iterable[tuple[int, int]]) -> str | None:
    """A sentence that names them, or None if all is well."""
    parts = []
    if len(unused):
        parts.append(f"topics with next to no words: {_names([str(k) for k in unused])}")
    if pairs := [f"{a} = {b}" for a, b in copies]:
        parts.append(f"topics that are copies: {_names(pairs)}")
    if not parts:
        return None
    return (
        "; ".join(parts) + ". They do no harm to predictions, but fewer components, more passes or "
        "another random_state may serve better."
    )


def sizes_and_overlaps(topics: Topics) -> tuple[Float64, Float64]:
    """What each topic holds of all words, [K], and how much each two overlap, [K, K].

    The overlap of two distributions, sum_v sqrt(p_v q_v), is 1 where they are the same. A cosine of
    them would be next to 1 for any two topics that are half made of one and the same word. Counts
    are without the prior: it makes all topics of few words alike.
    """
    n_words, n_topics = topics.shape
    sizes, overlaps = np.zeros(n_topics), np.zeros((n_topics, n_topics))
    for start in range(0, n_words, WORDS_AT_A_TIME):
        counts = topics.counts(slice(start, start + WORDS_AT_A_TIME))
        # In float64: in float32, sums over a long vocabulary miss by percents.
        sizes += counts.sum(axis=0, dtype=np.float64)
        roots = np.sqrt(counts)
        overlaps += roots.T @ roots
    return sizes, overlaps / np.sqrt(np.outer(sizes, sizes)).clip(np.finfo(float).tiny)


def _names(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
