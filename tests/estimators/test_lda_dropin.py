"""What a user of scikit-learn's LatentDirichletAllocation passes and reads, beyond its tests."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.decomposition
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import digamma

import tempering
from on_disk import on_disk
from tempering import LatentDirichletAllocation
from tempering.corpus import Corpus, open_corpus
from tempering.datasets import make_lda
from tempering.estimators.lda import TopicWarning
from tempering.models.lda.priors import fit_symmetric_concentration

THEIRS = sklearn.decomposition.LatentDirichletAllocation
X = make_lda(80, 3, n_words=30, document_length=40, seed=0).counts
SMALL = {"n_components": 3, "max_iter": 3, "random_state": 0}


def fitted(data=X, **parameters):
    return LatentDirichletAllocation(**{**SMALL, **parameters}).fit(data)


def test_every_parameter_of_scikit_learn_is_taken_with_its_default():
    defaults = THEIRS().get_params()
    assert defaults.keys() <= LatentDirichletAllocation().get_params().keys()
    assert fitted(**{**defaults, **SMALL}).components_.shape == (3, 30)


@pytest.mark.parametrize(
    "method", ["fit", "fit_transform", "partial_fit", "transform", "perplexity", "score"]
)
def test_every_argument_of_scikit_learn_is_taken(method):
    theirs = inspect.signature(getattr(THEIRS, method)).parameters
    ours = inspect.signature(getattr(LatentDirichletAllocation, method)).parameters
    assert theirs.keys() <= ours.keys()


def test_every_attribute_of_scikit_learn_is_there():
    theirs = THEIRS(3, max_iter=1).fit(X)
    names = [name for name in vars(theirs) if name.endswith("_")]
    assert {"bound_", "random_state_", "exp_dirichlet_component_"} <= set(names)
    model = fitted(evaluate_every=1)
    assert [name for name in names if not hasattr(model, name)] == []
    assert isinstance(model.random_state_, np.random.RandomState)


@pytest.mark.parametrize("n_jobs", [-1, -2, -100, 2])
def test_the_number_of_jobs_is_joblib_s_and_changes_nothing(n_jobs):
    assert_array_equal(fitted(n_jobs=n_jobs).components_, fitted(n_jobs=1).components_)
    mixture = tempering.BayesianGaussianMixture(2, n_jobs=n_jobs, max_iter=5)
    assert mixture.fit(X.toarray()[:, :2]).means_.shape == (2, 2)


def test_no_jobs_are_refused():
    with pytest.raises(ValueError, match="n_jobs"):
        fitted(n_jobs=0)


@pytest.mark.parametrize("never", [-1, 0])
def test_evaluating_never_is_the_default(never):
    model = fitted(evaluate_every=never)
    assert_array_equal(model.components_, fitted().components_)
    assert not hasattr(model, "bound_")


@pytest.mark.parametrize("method", ["online", "batch"])
def test_a_fit_ends_when_perplexity_changes_no_more(method):
    options = {"learning_method": method, "max_iter": 40, "evaluate_every": 2}
    whole, short = fitted(**options), fitted(**options, perp_tol=1e3)
    assert whole.n_iter_ == 40
    # At T = 1, from where there are two perplexities to be compared, and at a pass that has one.
    began = short.history_[short.history_.final_phase_start].passes
    assert began + 2 <= short.n_iter_ <= began + 4
    assert short.n_iter_ % 2 == 0
    assert fitted(**options, perp_tol=1e-12).n_iter_ == 40
    assert fitted(**{**options, "evaluate_every": 0}, perp_tol=1e3).n_iter_ == 40


def test_each_restart_has_perplexities_of_its_own(capsys):
    fitted(n_init=2, verbose=1, evaluate_every=1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        f"iteration: {i} of max_iter: 3" for i in (1, 2, 3, 1, 2, 3)
    ]


def test_perplexity_is_of_the_documents_of_the_fit():
    model = fitted(evaluate_every=1)
    assert model.bound_ == model.perplexity(X) == model.perplexity(X, sub_sampling=True)


def test_feature_names_cause_no_warning():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X.toarray(), columns=[f"word{v}" for v in range(30)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(table, evaluate_every=1)


def test_a_decay_of_one_half_as_in_many_a_grid_search():
    assert fitted(learning_decay=0.5).n_iter_ == 3


def test_the_mean_change_ends_the_sweeps_of_a_document():
    loose, same, tight = (fitted(mean_change_tol=tol, update="mean") for tol in (10.0, 0.1, 1e-9))
    # A change of t a topic on the average is one of K t words, of the 40 that a document has.
    part = 0.1 * 3 / (X.sum() / X.shape[0])
    direct = fitted(doc_update_tol=part, update="mean")
    assert_array_equal(same.components_, direct.components_)
    assert np.any(loose.components_ != tight.components_)


def test_transform_applies_the_mean_change_tolerance():
    model = fitted(max_doc_update_iter=10_000)
    exact = model.set_params(doc_update_tol=0.0).transform(X)
    errors = [
        np.abs(model.set_params(doc_update_tol=0.5, mean_change_tol=tol).transform(X) - exact).max()
        for tol in (None, 1e-7)
    ]
    assert errors[0] > 1e-4 > 1e-5 > errors[1]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_type_of_the_documents_is_kept(kind, tmp_path):
    model = fitted(X.astype(kind))
    model.save(tmp_path / "model")
    for known in (model, tempering.load(tmp_path / "model")):
        assert known.components_.dtype == known.exp_dirichlet_component_.dtype == kind
        assert known.transform(X).dtype == kind
        assert known.partial_fit(X).components_.dtype == kind
    counted = fitted(X)
    assert counted.components_.dtype == np.float32
    assert counted.transform(X).dtype == np.float64


def test_the_type_of_whole_numbers_changes_no_topic():
    topics = [fitted(X.astype(kind)).components_ for kind in (int, np.float32, np.float64)]
    assert_array_equal(topics[0], topics[1])
    assert_array_equal(topics[0], topics[2])


def test_expected_logarithms():
    model = fitted()
    topics = model.components_.astype(float)
    expected = np.exp(digamma(topics) - digamma(topics.sum(axis=1, keepdims=True)))
    assert_allclose(model.exp_dirichlet_component_, expected, rtol=1e-5)


def test_proportions_without_normalising():
    model = LatentDirichletAllocation(**SMALL)
    raw = model.fit_transform(X, normalize=False)
    assert_array_equal(raw, model.transform(X, normalize=False))
    assert_allclose(raw.sum(axis=1), X.sum(axis=1) + model.doc_topic_prior_.sum(), rtol=1e-5)


def test_fit_transform_takes_what_fit_takes(tmp_path):
    LatentDirichletAllocation(**SMALL).fit_transform(X, checkpoint=tmp_path / "kept")
    assert (tmp_path / "kept").exists()


def test_a_stream_that_is_interrupted_is_as_it_was(monkeypatch):
    """Steps write into the topics: those before the one that fails are taken back, too."""
    interrupted, expected = (
        LatentDirichletAllocation(
            3, doc_topic_prior="auto", batch_size=20, total_samples=100, random_state=0
        ).partial_fit(X)
        for _ in range(2)
    )
    advance, n_steps = tempering.inference.Algorithm.advance, iter(range(3))

    def advance_or_fail(*arguments, **options):
        if next(n_steps, None) is None:
            raise KeyboardInterrupt
        return advance(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(tempering.inference.Algorithm, "advance", advance_or_fail)
        with pytest.raises(KeyboardInterrupt):
            interrupted.partial_fit(X)
    for model in (interrupted, expected):
        model.partial_fit(X)
    assert_array_equal(interrupted.components_, expected.components_)
    assert_array_equal(interrupted.doc_topic_prior_, expected.doc_topic_prior_)


def test_another_number_of_topics_after_the_fit_is_told():
    model = LatentDirichletAllocation(**SMALL).fit(X).set_params(n_components=5)
    assert model.transform(X).shape[1] == len(model.get_feature_names_out()) == 3
    assert np.isfinite(model.completion_score(X, alpha=np.ones(3)))
    with pytest.raises(ValueError, match=r"n_components=3, which was changed to 5 since"):
        model.partial_fit(X)


def test_the_perplexity_of_another_fit_is_forgotten():
    model = LatentDirichletAllocation(**SMALL, evaluate_every=1).fit(X)
    assert model.bound_ == model.perplexity(X)
    assert not hasattr(model.set_params(evaluate_every=0).fit(X), "bound_")


def test_a_perplexity_that_cannot_be_told_is_refused_before_the_fit():
    steps = []
    model = LatentDirichletAllocation(**SMALL, evaluate_every=1)
    with pytest.raises(ValueError, match=r"evaluate_every=1 asks .* two different words"):
        model.fit(np.eye(10, dtype=int), callbacks=[steps.append])
    assert not steps


def test_a_warning_that_is_an_error_leaves_the_fit():
    model = LatentDirichletAllocation(**SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TopicWarning):
            model.fit(np.ones((5, 1)))
    assert model.components_.shape == (3, 1)


@pytest.mark.parametrize("options", [{"learning_method": "batch", "max_iter": 40}, {"max_iter": 4}])
def test_the_prior_of_words_is_that_of_the_topics_at_the_end(options):
    """Not of those that a fit without heat starts from, which are random."""
    drawn = make_lda(300, 4, n_words=100, document_length=60, eta=0.1, seed=1).counts
    model = LatentDirichletAllocation(
        4, topic_word_prior="auto", tempering=None, random_state=0, **options
    ).fit(drawn)
    at_the_end = fit_symmetric_concentration(model._state.posterior.mean_log(), 100, 0.1)
    assert_allclose(model.topic_word_prior_, at_the_end, rtol=0.3)


def test_a_stream_of_minibatches_is_no_batch(tmp_path):
    """Each step would forget all documents but its own."""
    batch = {**SMALL, "learning_method": "batch"}
    with pytest.raises(ValueError, match=r"all documents at each step, .* minibatches of 20"):
        LatentDirichletAllocation(**batch).fit(on_disk(tmp_path, X, batch_size=20))
    whole = LatentDirichletAllocation(**batch).fit(on_disk(tmp_path, X, batch_size=80))
    assert_array_equal(whole.components_, LatentDirichletAllocation(**batch).fit(X).components_)


def test_only_a_fit_takes_a_stream_from_disk(tmp_path):
    model, source = LatentDirichletAllocation(**SMALL).fit(X), on_disk(tmp_path, X)
    for method in (model.transform, model.score, model.partial_fit):
        with pytest.raises(ValueError, match=r"X is a corpus on disk.*blocks"):
            method(source)
    (path,) = tmp_path.glob("*.parquet")
    with pytest.raises(ValueError, match=r"fit takes tempering\.corpus\.open_source\(path\)"):
        model.fit(open_corpus(path))


def test_stored_zeros_change_nothing():
    stored = sparse.csr_matrix(X.toarray() + 1)
    stored.data -= 1
    expected = LatentDirichletAllocation(**SMALL).fit(X)
    found = LatentDirichletAllocation(**SMALL).fit(stored)
    assert_array_equal(found.components_, expected.components_)
    assert found.completion_score(stored) == expected.completion_score(X)
    assert stored.nnz == X.shape[0] * X.shape[1]


def test_columns_in_another_order_than_the_words_are_refused():
    words = [f"w{v}" for v in range(30)]
    model = LatentDirichletAllocation(**SMALL).fit(Corpus(X, words))
    frame = pd.DataFrame(X.toarray(), columns=words)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        assert_array_equal(model.transform(frame), model.transform(X))
    with pytest.raises(ValueError, match="column 0 of X is 'w29', but 'w0' in the model"):
        model.transform(frame[words[::-1]])


def test_documents_after_a_fit_count_as_much_as_those_of_it():
    """And not as a million documents like them would."""
    drawn = make_lda(600, 5, n_words=100, document_length=50, seed=2).counts
    model = LatentDirichletAllocation(5, random_state=0).fit(drawn[:400])
    words, score = drawn[:400].sum(), model.completion_score(drawn[500:])
    for _ in range(2):
        model.partial_fit(drawn[400:410])
    assert_allclose(model.components_.sum() - 100, words, rtol=0.02)
    assert model.completion_score(drawn[500:]) > score - 0.005
