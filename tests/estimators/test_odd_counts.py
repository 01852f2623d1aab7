"""Documents that are odd but honest are fitted; bad ones are refused, and nothing is changed."""

import re
import threading
import warnings

import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import tempering.evaluation as evaluation
from tempering import LatentDirichletAllocation
from tempering.corpus import Corpus, CorpusError
from tempering.datasets import make_lda
from tempering.estimators.lda import TopicWarning
from tempering.evaluation import completion
from tempering.inference import fit
from tempering.models.lda.model import LatentDirichlet

pytestmark = pytest.mark.filterwarnings("ignore::tempering.estimators.lda.TopicWarning")


def counts_of(n=60):
    return make_lda(n, 3, n_words=40, document_length=50, seed=0).counts.toarray().astype(float)


def fitted(X=None, **options):
    options = {"tempering": None, "max_iter": 3, "random_state": 0, "n_jobs": 1} | options
    return LatentDirichletAllocation(3, **options).fit(counts_of() if X is None else X)


# Large counts.


@pytest.mark.parametrize("scale", [1e6, 1e8, 1e10])
def test_proportions_of_long_documents_are_those_of_their_words(scale):
    """A document written out many times has proportions that do not depend on how many."""
    model, X = fitted(), counts_of(10)
    assert_allclose(model.transform(scale * X), model.transform(1e4 * X), atol=1e-4)


@pytest.mark.parametrize(
    "options", [{}, {"tempering": "auto"}, {"tempering": "variational"}, {"tempering": "local"}]
)
def test_one_very_frequent_word_leaves_finite_topics(options):
    X = counts_of()
    X[5, 3] = 1e9
    model = fitted(X, **options)
    assert np.isfinite(model.components_).all()
    proportions = model.transform(X)
    assert_allclose(proportions.sum(axis=1), 1.0)
    # Most of what there is, is this word: it leads its topic, and its document belongs there.
    assert model.topics(1)[proportions[5].argmax()] == [3]
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize("tempering", [None, "local"])
def test_a_corpus_of_very_long_documents_has_the_topics_of_a_long_one(tempering):
    options = {"tempering": tempering, "update": "variational", "init": "random"}
    long, very_long = (fitted(scale * counts_of(), **options) for scale in (1e3, 1e8))
    topics = [
        model.components_ / model.components_.sum(axis=1)[:, None] for model in (long, very_long)
    ]
    assert_allclose(topics[1], topics[0], atol=2e-2)


def test_a_stream_takes_a_count_of_a_billion():
    model, X = fitted(), counts_of()
    X[5, 3] = 1e9
    model.partial_fit(X)
    assert np.isfinite(model.components_).all()


# Bad counts.


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e300, 1e30])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_a_bad_batch_is_named_and_changes_nothing(value, make):
    model = fitted()
    before, n_iter = model.components_, model.n_batch_iter_
    prior, seen = model.doc_topic_prior_, model._state.data_seen
    X = counts_of()
    X[5, 3] = value
    message = f"row 5, column 3 holds {re.escape(str(value))} "
    for method in (model.partial_fit, model.transform, model.score):
        with pytest.raises(ValueError, match=message):
            method(make(X))
    assert_array_equal(model.components_, before)
    assert_array_equal(model.doc_topic_prior_, prior)
    assert (model.n_batch_iter_, model._state.data_seen) == (n_iter, seen)
    with pytest.raises(ValueError, match=message):
        LatentDirichletAllocation(3).fit(make(X))


# Sparse matrices that lie.


def lying_matrix():
    X = sparse.csr_matrix(counts_of())
    indices = X.indices.copy()
    indices[7] = 1_000_000
    return sparse.csr_matrix((X.data, indices, X.indptr), shape=X.shape)


def test_indices_out_of_the_shape_are_refused_wherever_documents_come_in():
    X, model = lying_matrix(), fitted()
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    for call in (
        LatentDirichletAllocation(3).fit,
        model.partial_fit,
        model.transform,
        model.score,
        model.perplexity,
        model.coherence,
        model.document_temperatures,
        evaluation.split_documents,
        lambda X: evaluation.npmi(topics, X),
        lambda X: completion.mean_field_proportions(X, topics),
        lambda X: evaluation.gibbs_proportions(X, topics),
        lambda X: evaluation.completion_score(X, X, topics),
        lambda X: fit(LatentDirichlet(3, 40, 0.1, 0.1), X),
    ):
        with pytest.raises(ValueError, match=r"is no valid sparse matrix: .*< 40"):
            call(X)
    with pytest.raises(CorpusError, match=r"is no valid sparse matrix: .*< 40"):
        Corpus(X)


# The caller's data.


def unsorted_matrix(dtype=np.float64):
    """Words backwards, one of them in two parts, in memory that nobody may write to."""
    X = sparse.csr_matrix(counts_of())
    rows = [slice(*ends) for ends in zip(X.indptr, X.indptr[1:])]
    indices, data = (np.concatenate([part[r][::-1] for r in rows]) for part in (X.indices, X.data))
    indices, data = np.insert(indices, 0, indices[0]), np.insert(data, 0, 1.0)
    indptr = X.indptr + (np.arange(X.indptr.size) > 0).astype(X.indptr.dtype)
    arrays = data.astype(dtype), indices, indptr
    for array in arrays:
        array.flags.writeable = False
    return sparse.csr_matrix(arrays, shape=X.shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("options", [{}, {"tempering": "auto"}, {"learning_method": "batch"}])
def test_nothing_is_written_into_the_caller_s_documents(dtype, options):
    X = unsorted_matrix(dtype)
    before = [part.copy() for part in (X.data, X.indices, X.indptr)]
    model = fitted(X, **options)
    model.partial_fit(X)
    model.transform(X)
    model.score(X)
    model.coherence(X)
    for part, was in zip((X.data, X.indices, X.indptr), before):
        assert_array_equal(part, was)

    sorted_copy = X.copy()
    sorted_copy.sum_duplicates()
    assert_array_equal(fitted(sorted_copy, **options).components_, fitted(X, **options).components_)


def test_two_threads_fit_one_unsorted_matrix():
    X = unsorted_matrix()
    expected = fitted(X).components_
    found = []
    threads = [threading.Thread(target=lambda: found.append(fitted(X))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    for model in found:
        assert_array_equal(model.components_, expected)


@pytest.mark.slow
def test_two_processes_fit_one_unsorted_matrix_that_is_mapped_from_disk():
    """As joblib does with what is large: here, with all that there is."""
    X = unsorted_matrix()
    model = LatentDirichletAllocation(3, tempering=None, max_iter=3, random_state=0, n_jobs=1)
    with Parallel(n_jobs=2, max_nbytes=1) as processes:
        assert processes([delayed(type)(X.data)]) == [np.memmap]
        found = processes(delayed(model.fit)(X) for _ in range(2))
    for each in found:
        assert_array_equal(each.components_, fitted(X).components_)


# Too many topics, and other mistakes.


def test_topics_that_hold_next_to_nothing_are_told():
    few = make_lda(20, 10, n_words=500, document_length=60, seed=0).counts
    message = "topics with next to no words: .* and [0-9]+ more"
    with pytest.warns(TopicWarning, match=message) as told:
        LatentDirichletAllocation(50, random_state=0, n_jobs=1).fit(few)
    assert told[0].filename == __file__


@pytest.mark.parametrize(("n_topics", "warns"), [(10, True), (3, False)])
def test_more_topics_than_documents_are_told(n_topics, warns):
    few = np.kron(np.eye(3, dtype=int), np.ones((1, 30), int)) * 5
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        LatentDirichletAllocation(n_topics, random_state=0).fit(few)
    message = f"n_components={n_topics} is more than the 3 documents of X"
    found = [each for each in told if message in str(each.message)]
    assert [(each.category, each.filename) for each in found] == [(TopicWarning, __file__)] * warns


@pytest.mark.filterwarnings("error::tempering.estimators.lda.TopicWarning")
@pytest.mark.parametrize("make", [lambda X: X, lambda X: X * 0.01], ids=["counts", "weights"])
def test_a_default_fit_of_enough_documents_warns_of_nothing(make):
    enough = make_lda(200, 20, n_words=500, document_length=60, seed=0).counts
    LatentDirichletAllocation(20, random_state=0, n_jobs=1).fit(make(enough))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_far_too_many_topics_are_refused_at_once(method):
    with pytest.raises(ValueError, match=r"n_components=10000000 is more than the .* words of doc"):
        getattr(LatentDirichletAllocation(10**7), method)(counts_of())


def test_a_stream_can_be_long_but_not_endless():
    X = counts_of()
    LatentDirichletAllocation(3, total_samples=1e15, random_state=0, n_jobs=1).partial_fit(X)
    with pytest.raises(ValueError, match="total_samples"):
        LatentDirichletAllocation(3, total_samples=1e300).partial_fit(X)


@pytest.mark.parametrize("texts", [["a cat", "a dog"], ("a cat",), "a cat", np.array(["a", "b"])])
def test_texts_are_sent_to_where_words_are_counted(texts):
    with pytest.raises(ValueError, match=r"tempering\.corpus\.from_texts\(texts\)"):
        LatentDirichletAllocation(3).fit(texts)


def test_an_unknown_policy_is_told_all_names():
    names = "None, one of 'auto', 'adaptive', 'annealing', 'variational', 'local'"
    with pytest.raises(ValueError, match=names):
        LatentDirichletAllocation(3, tempering="hot").fit(counts_of())


@pytest.mark.parametrize("dtype", [np.float16, ">f8", ">i4"])
def test_counts_of_unusual_types_are_counts(dtype):
    X = counts_of()
    assert_allclose(fitted(X.astype(dtype)).components_, fitted(X).components_, rtol=1e-5)


@pytest.mark.parametrize(
    "X", [np.full((9, 4), "many", object), np.full((9, 4), np.datetime64("2020-01-01"))]
)
def test_what_is_no_table_of_counts_is_named(X):
    with pytest.raises((TypeError, ValueError), match="X must"):
        LatentDirichletAllocation(3).fit(X)


@pytest.mark.parametrize("axis", ["row", "col"])
def test_places_out_of_the_shape_are_refused(axis):
    X = sparse.coo_matrix(counts_of())
    places = getattr(X, axis).copy()
    places[5] = 10**6
    setattr(X, axis, places)
    topics = np.full((2, 40), 1 / 40)
    for call in (LatentDirichletAllocation(3).fit, lambda X: evaluation.npmi(topics, X)):
        with pytest.raises(ValueError, match="X is no valid sparse matrix"):
            call(X)


def test_places_of_entries_are_whole_numbers():
    X = sparse.csr_matrix(counts_of())
    X.indptr = X.indptr.astype(float)
    with pytest.raises(ValueError, match="its indices must be whole numbers"):
        LatentDirichletAllocation(3).fit(X)


@pytest.mark.parametrize("prior", [1e300, 1e38])
def test_a_prior_that_is_beyond_the_kernels_is_named(prior):
    with pytest.raises(ValueError, match="topic_word_prior must be so small"):
        fitted(topic_word_prior=prior)


@pytest.mark.parametrize("alpha", ["odd", 0, [0.1, 0.2], np.nan])
@pytest.mark.parametrize("inference", ["vi", "gibbs"])
def test_a_prior_of_a_score_that_is_none_is_named(inference, alpha):
    with pytest.raises(ValueError, match="alpha must be positive"):
        fitted().completion_score(counts_of(), inference=inference, alpha=alpha)


@pytest.mark.parametrize("prior", [1e-300, {}, [[1], [2, 3]]])
def test_a_prior_that_is_none_is_named(prior):
    with pytest.raises(ValueError, match="doc_topic_prior"):
        fitted(doc_topic_prior=prior)
