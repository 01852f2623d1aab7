"""What one can ask of fitted topics: proportions of documents, scores, words, temperatures."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import digamma
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from tempering.estimators.parameters import PolicyNames, Tempering, TypedParameters, as_policy
from tempering.estimators.saving import SaveMixin, expect_kinds, expect_names
from tempering.estimators.words import check_columns, check_words, remember_words, words_of
from tempering.evaluation import completion_score, npmi, split_documents, top_words
from tempering.evaluation.checks import as_alpha, counts_of, is_corpus, normalised
from tempering.families.checks import (
    canonical_csr,
    check_compressed,
    check_sparse_counts,
    naming_the_table,
    supported,
)
from tempering.inference import BlockSource
from tempering.inference.run import State
from tempering.models.arguments import check_whole, shown
from tempering.models.base import Array
from tempering.models.lda.e_step import e_step
from tempering.models.lda.model import LatentDirichlet
from tempering.models.threads import number_of_threads
from tempering.temperature import (
    AdaptiveTempering,
    Annealing,
    LocalTempering,
    TemperaturePolicy,
    VariationalTempering,
    schedules,
)

#: The names that ``tempering`` takes, with settings that suit topic models.
POLICIES: PolicyNames = {
    # Unless topics start from words and are sampled: see `TopicChoices`.
    "auto": lambda: Annealing(schedules.linear_inverse(2.0), fraction=0.4),
    "adaptive": AdaptiveTempering,
    # Linear in 1/T: most of a schedule linear in T is spent where all topics are alike.
    "annealing": lambda: Annealing(schedules.linear_inverse(2.0)),
    # Undamped, the temperature jumps to its optimum before the topics have changed.
    "variational": lambda: VariationalTempering(formula="calibrated", damping=1.0, every=4),
    "local": lambda: LocalTempering(max_alternations=2, tolerance=0.02, damping=1.0),
}

#: Documents whose proportions are inferred at a time; bounds the memory, not the result.
INFERENCE_ROWS = 16_384


def refuse_texts(X: Any) -> None:
    """Say what counts words, where texts are given in the place of counts."""
    listed = isinstance(X, str | list | tuple) or getattr(X, "ndim", 0) == 1
    # A data set of Hugging Face has mappings with a column of text.
    if (listed or hasattr(X, "with_format")) and isinstance(next(iter(X), None), str | Mapping):
        raise ValueError(
            "X must hold counts of words, one document a row; got texts. Count their words first: "
            "X = tempering.corpus.from_texts(texts)."
        )


class TopicTransformer(
    TypedParameters, SaveMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """A fitted topic model, whatever fitted it."""

    n_components: int
    tempering: Tempering
    doc_update_tol: float
    mean_change_tol: float | None
    max_doc_update_iter: int
    n_jobs: int | None

    _input_tags = ("positive_only", "sparse")

    _model: LatentDirichlet
    _state: State

    def transform(self, X: Any, *, normalize: bool = True) -> np.ndarray:
        """Topic proportions of documents at T = 1, of shape (n_samples, n_components).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or Corpus
            Documents over the vocabulary of the fit.
        normalize : bool
            Rows that sum to 1; without it, Dirichlet parameters.
        """
        check_is_fitted(self)
        gamma = self._infer(self._validated(X, reset=False))
        if normalize:
            gamma /= gamma.sum(axis=1, keepdims=True)
        return gamma.astype(np.float32) if self._fitted_in() == np.float32 else gamma

    def fit_transform(
        self, X: Any, y: Any = None, *, normalize: bool = True, **fit_parameters: Any
    ) -> np.ndarray:
        """:meth:`fit`, with what else it takes, and :meth:`transform`."""
        fitted: Any = self
        return fitted.fit(X, y, **fit_parameters).transform(X, normalize=normalize)

    def completion_score(
        self,
        X: Any,
        random_state: int = 0,
        *,
        inference: Literal["vi", "gibbs"] = "vi",
        alpha: ArrayLike | None = None,
    ) -> float:
        """Held-out log probability a word, in nats, by document completion.

        Half of the word types of each document fit its topic proportions, the rest are predicted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or Corpus
            Documents that the topics were not fitted to.
        random_state : int
            Decides which words are held out.
        inference : {"vi", "gibbs"}
            Mean-field proportions as in :meth:`transform`, or their exact posterior mean by a Gibbs
            chain, which does not favour blurred topics.
        alpha : float or array of shape (n_components,), optional
            Prior of the proportions; that of the fit by default.
        """
        check_is_fitted(self)
        if inference not in ("vi", "gibbs"):
            raise ValueError(f"inference must be 'vi' or 'gibbs'; got {inference!r}.")
        split = split_documents(self._validated(X, reset=False), random_state)
        given = None if alpha is None else as_alpha(alpha, self._model.n_topics)
        alpha = self._model.doc_topic_prior if given is None else given
        # Else sums and logarithms of it are no numbers there.
        if given is not None and not np.all((given > 1e-30) & (given < 1e30)):
            raise ValueError(
                "alpha must be between 1e-30 and 1e+30, as documents are solved in float32; got "
                f"{shown(given)}."
            )

        def infer(observed: Any) -> Array:
            gamma = self._infer(sparse.csr_matrix(observed), alpha)
            return gamma / gamma.sum(axis=1, keepdims=True)

        how = infer if inference == "vi" else "gibbs"
        options = {"seed": random_state, "n_threads": self._n_threads()}
        return completion_score(*split, self._topics(), alpha, how, **options)

    def score(self, X: Any, y: Any = None) -> float:
        """:meth:`completion_score`: log probability a held-out word. Higher is better.

        It compares fits with the same number of topics. Others differ in the prior of the
        proportions besides: compare them with one sum of α for all, as in
        ``completion_score(X, inference="gibbs", alpha=2 / n_components)``, or by
        :func:`tempering.workbench.choose_n_topics`.
        """
        return self.completion_score(X)

    def perplexity(self, X: Any, sub_sampling: bool = False) -> float:
        """exp(−:meth:`completion_score`): of predicted words, not of a bound. Lower is better.

        ``sub_sampling`` is scikit-learn's, for its bound; a score of words does not depend on it.
        """
        return float(np.exp(-self.completion_score(X)))

    def topics(self, n_words: int = 10, vocabulary: Sequence[str] | None = None) -> list[list[Any]]:
        """The most probable words of each topic, most probable first.

        Parameters
        ----------
        n_words : int
            Words of a topic.
        vocabulary : sequence of str, optional
            The words; by default those of the corpus, or the feature names, of the fit, or those
            that the model was saved with; else the numbers of the columns.
        """
        check_is_fitted(self)
        vocabulary = words_of(self, vocabulary)
        check_whole(n_words=n_words)
        rows = top_words(self._topics(), min(n_words, self.n_features_in_))
        if vocabulary is None:
            return [[int(v) for v in row] for row in rows]
        return [[str(vocabulary[v]) for v in row] for row in rows]

    def coherence(self, X: Any, n_words: int = 10) -> Array:
        """NPMI of each topic's top words, with co-occurrence in the documents X."""
        check_is_fitted(self)
        check_whole(2, n_words=n_words)
        n_words = min(n_words, self.n_features_in_)
        return npmi(self._topics(), self._validated(X, reset=False), n_words)

    def document_temperatures(self, X: Any) -> Array:
        """The temperature that each document would have under local tempering with these topics.

        A hot document is one that the topics explain badly: an outlier.
        """
        check_is_fitted(self)
        return 1.0 / self._local_inverse_temperatures(self._validated(X, reset=False))

    @property
    def components_(self) -> np.ndarray:
        """Dirichlet parameters of the topics, (n_components, n_features)."""
        if not hasattr(self, "_state"):
            raise AttributeError("components_ is there after fit or partial_fit.")
        # Topic by topic in memory, where a sum over a topic's words rounds least.
        dtype = np.float64 if self._fitted_in() == np.float64 else np.float32
        return np.ascontiguousarray(self._state.posterior.parameters().T, dtype)

    @property
    def exp_dirichlet_component_(self) -> np.ndarray:
        """exp(E[log β]), (n_components, n_features)."""
        components = self.components_
        totals = digamma(components.sum(axis=1, keepdims=True, dtype=np.float64))
        return np.exp(digamma(components.astype(np.float64)) - totals).astype(components.dtype)

    @property
    def doc_topic_prior_(self) -> Array:
        """α, one for each topic."""
        return np.array(self._model.doc_topic_prior)

    @property
    def topic_word_prior_(self) -> float | Array:
        """η; where topics are led, of each topic and word, (n_components, n_features)."""
        eta, guide = self._model.topic_word_prior, self._model.guide
        return eta if guide is None else guide.matrix(eta, self.n_features_in_)

    @property
    def _n_features_out(self) -> int:
        return self._model.n_topics

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.transformer_tags is not None
        tags.transformer_tags.preserves_dtype = ["float32", "float64"]
        return tags

    def _check_loaded(self: Any) -> None:
        super()._check_loaded()
        expect_kinds(self, _stream_policy=TemperaturePolicy)
        self._model.n_threads = self._n_threads()
        expect_names(self, "topic_labels_", self.n_components, "topics")

    def _validated(self, X: Any, *, reset: bool) -> sparse.csr_matrix:
        """X as CSR of counts, whatever their type; never a dense copy, and never X to write to."""
        given, X = X, counts_of(X)
        if isinstance(X, BlockSource) or callable(getattr(type(X), "blocks", None)):
            raise ValueError(
                "X is a corpus on disk. fit takes tempering.corpus.open_source(path) of a .parquet "
                "file; give all else some documents at a time, as "
                "tempering.corpus.open_corpus(path).blocks() has them."
            )
        if not reset:
            check_words(self, given)
            if not hasattr(self, "feature_names_in_"):  # which scikit-learn looks at
                check_columns(self, given)
        if is_corpus(given) and 0 in given.shape:
            raise ValueError(f"X must have a document and a word at least; got {given!r}.")
        check_compressed(X, "X")
        refuse_texts(X)
        checked = X
        with naming_the_table(), warnings.catch_warnings():
            if sparse.issparse(X):  # which cannot have names
                warnings.filterwarnings("ignore", "X does not have valid feature names")
            X = validate_data(
                self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False
            )
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X must hold counts, which are real numbers; got {X.dtype}.")
        if X is not checked:  # it may have come from a format without a check
            check_compressed(X, "X")
        X = canonical_csr(X) if sparse.issparse(X) else sparse.csr_matrix(supported(X))
        check_sparse_counts(X, "X must hold counts", type(self).__name__)
        if reset:
            remember_words(self, given)
        return X

    def _counts(self, X: Any, *, reset: bool) -> sparse.csr_matrix:
        """X to be fitted, in float32: the same numbers in float64 give the same topics."""
        X = self._validated(X, reset=reset)
        if reset:
            self._fitted_type = X.dtype.name
        if X.dtype != np.float64:
            return X
        return sparse.csr_matrix((X.data.astype(np.float32), X.indices, X.indptr), shape=X.shape)

    def _fitted_in(self) -> np.dtype | None:
        """The type of the documents of the fit, where that is one of fractions."""
        name = getattr(self, "_fitted_type", "")
        return np.dtype(name) if name in ("float32", "float64") else None

    def _named_policy(self) -> TemperaturePolicy:
        """The policy, where it does not depend on the data."""
        return as_policy(self.tempering, POLICIES)

    def _n_threads(self) -> int:
        return number_of_threads(self.n_jobs)

    def _tolerance(self, mean_length: float) -> float:
        """Return the part of a document's words whose change ends its sweeps."""
        if self.mean_change_tol is None:
            return self.doc_update_tol
        return min(self.mean_change_tol * self.n_components / mean_length, 0.5)

    def _topics(self) -> np.ndarray:
        """Posterior means of the topics, (n_components, n_features)."""
        return normalised(self._state.posterior.parameters().T)

    def _infer(self, X: Any, alpha: ArrayLike | None = None) -> Array:
        """Dirichlet parameters of the documents' proportions at T = 1, with the topics fixed."""
        model = self._model
        expected = model.expectations(self._state.posterior)
        gammas = []
        for start in range(0, X.shape[0], INFERENCE_ROWS):
            documents = model.documents(X[start : start + INFERENCE_ROWS])
            solved = e_step(
                *documents.word_counts,
                expected.log_rows(documents.words),
                model.doc_topic_prior if alpha is None else alpha,
                1.0,
                tolerance=min(self._tolerance(model.mean_length), 1e-3),
                max_iterations=self.max_doc_update_iter,
                n_threads=self._n_threads(),
                return_statistics=False,
            )
            gammas.append(solved.gamma.astype(np.float64))
        return np.concatenate(gammas)

    def _local_inverse_temperatures(self, X: Any) -> Array:
        policy = self._named_policy()
        if not isinstance(policy, LocalTempering):
            policy = POLICIES["local"]()
        model = self._model
        heat = policy.begin(model, X.shape[0], np.random.default_rng(0))
        expected = model.expectations(self._state.posterior)
        parts = []
        for start in range(0, X.shape[0], INFERENCE_ROWS):
            rows = slice(start, start + INFERENCE_ROWS)
            solved = policy.solve(heat, model, X[rows], expected, rows)
            parts.append(np.broadcast_to(solved.inverse_temperature, solved.n))
        return np.concatenate(parts)
