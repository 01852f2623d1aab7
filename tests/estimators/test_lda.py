"""The topic model as an estimator: scikit-learn's checks and steps, scores, errors."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation as Peer
from sklearn.utils.estimator_checks import parametrize_with_checks

import tempering
from on_disk import on_disk
from tempering import (
    Annealing,
    Checkpoint,
    LatentDirichletAllocation,
    LocalTempering,
    VariationalTempering,
    schedules,
)
from tempering.datasets import make_lda
from tempering.estimators.lda import TopicWarning, describe_troubles, unused_topics
from tempering.evaluation import topic_stability
from tempering.inference import ArraySource, evaluate_elbo
from tempering.models.lda.topics import Topics


@parametrize_with_checks(
    [
        LatentDirichletAllocation(max_iter=3),
        LatentDirichletAllocation(3, learning_method="batch", tempering="local", max_iter=3),
    ]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopicWarning)
        check(estimator)


def make_corpus(n=400, k=5, v=60, length=50, seed=0, dtype=np.int64):
    """Documents of k topics that share few words."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(v, 0.05), size=k)
    theta = rng.dirichlet(np.full(k, 0.1), size=n)
    return sparse.csr_matrix(
        [rng.multinomial(length, row @ topics) for row in theta], dtype=dtype
    ), topics


POLICIES = {
    "auto": "auto",
    "none": None,
    "annealing": "annealing",
    "paper's annealing": Annealing(schedules.linear(5.0), passes=4),
    "variational": "variational",
    "local": "local",
    "joint": Annealing(schedules.linear_inverse(2.0), temper="joint"),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("learning_method", ["online", "batch"])
def test_topics_are_found_and_the_run_ends_at_temperature_one(policy, learning_method):
    X, _ = make_corpus()
    held_out, _ = make_corpus(100, seed=0)
    model = LatentDirichletAllocation(
        5,
        tempering=POLICIES[policy],
        learning_method=learning_method,
        learning_offset=10.0,
        batch_size=50,
        max_iter=20,
        random_state=0,
    ).fit(X)
    assert model.history_[-1].temperature == 1.0
    unigram = np.asarray(X.sum(axis=0)).ravel() / X.sum()
    baseline = held_out.toarray().sum(axis=0) @ np.log(unigram + 1e-9) / held_out.sum()
    assert model.completion_score(held_out) > baseline + 0.3
    assert model.perplexity(held_out) == pytest.approx(np.exp(-model.score(held_out)))


@pytest.mark.parametrize("learning_method", ["online", "batch"])
def test_untempered_steps_are_scikit_learns(learning_method):
    """From the same start, step by step, both with tight inner iterations."""
    X, _ = make_corpus(200)
    peer = Peer(
        5,
        learning_method=learning_method,
        batch_size=50,
        learning_offset=10.0,
        total_samples=200,
        max_iter=1,
        mean_change_tol=1e-8,
        max_doc_update_iter=2000,
        random_state=0,
    )
    ours = LatentDirichletAllocation(
        5,
        update="variational",
        tempering=None,
        learning_method=learning_method,
        batch_size=50,
        learning_offset=10.0,
        total_samples=200,
        doc_update_tol=1e-6,
        max_doc_update_iter=2000,
        random_state=0,
    )
    # One step of each to have them initialised, then the same topics for both.
    peer.partial_fit(X[:50])
    ours.partial_fit(X[:50])
    ours._state = ours._state._replace(posterior=Topics(peer.components_.T, 0.2))
    for start in range(50, 200, 50):
        batch = X[start : start + 50]
        peer.partial_fit(batch)
        ours.partial_fit(batch)
        np.testing.assert_allclose(ours.components_, peer.components_, rtol=2e-3, atol=1e-4)
    np.testing.assert_allclose(ours.transform(X), peer.transform(X), atol=2e-3)


@pytest.mark.parametrize("seed", [1, 4])
def test_the_bound_falls_in_batch_steps_only_where_sweeps_end_early(seed):
    """The inexact step is that of the documents: solved to the end, no step lowers the ELBO."""
    rng = np.random.default_rng(seed)
    X = sparse.csr_matrix(rng.poisson(rng.gamma(0.3, 3.0, size=(20, 12))))
    options = {"update": "variational", "init": "random", "tempering": None, "n_jobs": 1}
    rises = []
    for tolerance, sweeps in ((1e-2, 100), (1e-5, 10_000)):
        lda = LatentDirichletAllocation(
            3, learning_method="batch", max_iter=40, random_state=seed, doc_update_tol=tolerance,
            max_doc_update_iter=sweeps, **options,
        ).fit(X)  # fmt: skip
        rises.append(np.diff(lda.history_["elbo"]).min())
    assert -0.1 < rises[0] < -1e-3
    assert rises[1] > -1e-4


def test_any_number_type_without_a_dense_copy():
    X, _ = make_corpus(100)
    reference = LatentDirichletAllocation(3, max_iter=2, random_state=0).fit_transform(X)
    types = [X.astype(dtype) for dtype in (np.int8, np.uint16, np.float32, np.float64)]
    kinds = [sparse.csr_array(X), sparse.csc_matrix(X.astype(np.float32)), X.toarray()]
    for same in (*types, *kinds):
        model = LatentDirichletAllocation(3, max_iter=2, random_state=0)
        proportions = model.fit_transform(same)
        np.testing.assert_array_equal(proportions, reference.astype(proportions.dtype))


@pytest.mark.parametrize("policy", ["annealing", "variational", "local"])
def test_threads_never_change_a_bit(policy):
    X, _ = make_corpus(300)
    results = [
        LatentDirichletAllocation(
            5, tempering=policy, max_iter=3, batch_size=100, random_state=0, n_jobs=n
        )
        .fit(X)
        .components_
        for n in (1, 2, 3)
    ]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_a_corpus_on_disk_gives_what_one_in_memory_gives(tmp_path):
    X, _ = make_corpus(300)
    options = {"n_components": 5, "learning_method": "batch", "max_iter": 5, "random_state": 0}
    memory = LatentDirichletAllocation(**options).fit(X)
    disk = LatentDirichletAllocation(**options).fit(on_disk(tmp_path, X))
    np.testing.assert_array_equal(memory.components_, disk.components_)
    streamed = LatentDirichletAllocation(5, max_iter=10, random_state=0).fit(
        on_disk(tmp_path, X, batch_size=50)
    )
    assert streamed.n_batch_iter_ == 60


def test_a_stream_is_tempered_against_its_announced_length():
    X, _ = make_corpus(400)
    model = LatentDirichletAllocation(
        5,
        tempering="annealing",
        batch_size=20,
        total_samples=400,
        learning_offset=1.0,
        random_state=0,
    )
    temperatures = []
    for start in range(0, 400, 40):
        model.partial_fit(X[start : start + 40])
        temperatures.append(1 / model._state.heat.inverse_temperature)
    assert temperatures[0] > 1.5
    assert temperatures[-1] == 1.0
    assert np.all(np.diff(temperatures) <= 0)
    assert model.n_batch_iter_ == 20


def test_steps_of_a_stream_are_small_and_those_of_a_fit_settle():
    X = sparse.csr_matrix(np.random.default_rng(0).poisson(0.5, (60, 30)))

    def stream(**settings):
        model = LatentDirichletAllocation(3, total_samples=60, random_state=0, **settings)
        for start in range(0, 60, 10):
            model.partial_fit(X[start : start + 10])
        return model.components_

    np.testing.assert_array_equal(stream(), stream(learning_decay=0.7))
    settings = {"doc_topic_prior": 0.3, "batch_size": 10, "max_iter": 5, "random_state": 0}
    fitted = LatentDirichletAllocation(3, **settings).fit(X)
    rates = (16.0 + np.arange(1, 31)) ** -0.55
    np.testing.assert_allclose(fitted.history_["learning_rate"][:24], rates[:24])
    assert np.all(fitted.history_["learning_rate"][25:] < rates[25:])


@pytest.fixture(scope="module")
def alike():
    """Documents of 60 words that topics do not part."""
    return sparse.csr_matrix(np.random.default_rng(0).multinomial(60, np.full(50, 0.02), 400))


def settled_fit(X, n_topics=200, checkpoint=None, callbacks=(), **settings):
    model = LatentDirichletAllocation(
        n_topics, max_iter=1, batch_size=4, random_state=0, n_jobs=1, **settings
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few words make no 200 topics
        return model.fit(X, checkpoint=checkpoint, callbacks=callbacks)


@pytest.fixture(scope="module")
def settled(alike):
    return settled_fit(alike)


def test_alpha_adapts_to_the_documents_where_topics_have_many_words():
    data = make_lda(600, 4, n_words=300, document_length=100, seed=0).counts
    settings = {"random_state": 0, "n_jobs": 1, "max_iter": 4}
    free = LatentDirichletAllocation(4, **settings).fit(data)
    assert free.doc_topic_prior_.sum() == pytest.approx(1.0)
    assert np.ptp(free.doc_topic_prior_) > 0.01
    half = LatentDirichletAllocation(4, **settings).fit(data[:200])
    assert 0.001 < np.ptp(half.doc_topic_prior_) < np.ptp(free.doc_topic_prior_)
    few = LatentDirichletAllocation(4, **settings).fit(data[:90])
    np.testing.assert_allclose(few.doc_topic_prior_, 0.25)
    for settled in ({"doc_topic_prior": 0.25}, {"update": "mean"}, {"update": "variational"}):
        given = LatentDirichletAllocation(4, **settled, **settings).fit(data)
        np.testing.assert_allclose(given.doc_topic_prior_, 0.25)


def test_a_fit_goes_on_where_it_was_when_topics_have_settled(alike, settled, tmp_path):
    def stop(report):
        if report.record.step == 90:
            raise KeyError("stop")

    checkpoint = Checkpoint(tmp_path, every_steps=1)
    with pytest.raises(KeyError, match="stop"):
        settled_fit(alike, checkpoint=checkpoint, callbacks=[stop])
    resumed = settled_fit(alike, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.components_, settled.components_)
    np.testing.assert_array_equal(resumed.doc_topic_prior_, settled.doc_topic_prior_)
    assert resumed._model.word_power == settled._model.word_power < 0.9


def test_what_holds_for_settled_topics_is_saved(alike, settled, tmp_path):
    settled.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    assert loaded._model.settled == settled._model.settled
    np.testing.assert_array_equal(loaded.transform(alike[:5]), settled.transform(alike[:5]))


def test_learned_priors_and_updates():
    X, _ = make_corpus(400)
    learned = LatentDirichletAllocation(
        5,
        doc_topic_prior="auto",
        topic_word_prior="auto",
        update="variational",
        max_iter=15,
        random_state=0,
    ).fit(X)
    assert learned.doc_topic_prior_.shape == (5,)
    # Drawn with 0.1 for each of the five topics, and topics over a few words each.
    np.testing.assert_allclose(learned.doc_topic_prior_, 0.1, rtol=0.5)
    assert 0.0 < learned.topic_word_prior_ < 0.2
    given = LatentDirichletAllocation(
        5, doc_topic_prior=[0.1, 0.2, 0.3, 0.4, 0.5], max_iter=2, random_state=0
    ).fit(X)
    np.testing.assert_allclose(given.doc_topic_prior_, [0.1, 0.2, 0.3, 0.4, 0.5])
    other = LatentDirichletAllocation(5, update="mean", max_iter=15, random_state=0).fit(X)
    assert np.isnan(other.history_[0].elbo)
    assert other.completion_score(X) > learned.completion_score(X) - 0.3


def test_topics_and_their_words():
    X, _ = make_corpus(200, v=12)
    names = [f"word{v}" for v in range(12)]
    model = LatentDirichletAllocation(3, max_iter=3, random_state=0).fit(X)
    words = model.topics(4, names)
    assert [len(row) for row in words] == [4, 4, 4]
    assert words[0][0] == names[int(np.argmax(model.components_[0]))]
    assert model.topics(2)[0] == [int(v) for v in np.argsort(-model.components_[0])[:2]]
    assert list(model.get_feature_names_out()) == [
        f"latentdirichletallocation{k}" for k in range(3)
    ]
    assert model.coherence(X, 5).shape == (3,)
    # Of a small vocabulary there are fewer words than are asked for by default.
    small = LatentDirichletAllocation(2, max_iter=3, random_state=0).fit(X[:, :4])
    np.testing.assert_array_equal(small.coherence(X[:, :4]), small.coherence(X[:, :4], 4))
    with pytest.raises(ValueError, match="vocabulary has 2 words; the estimator was fitted to 12"):
        model.topics(3, ["a", "b"])


def test_temperatures_of_documents():
    X, _ = make_corpus(150)
    odd = sparse.csr_matrix(np.full((1, 60), 2))
    model = LatentDirichletAllocation(
        5, tempering=LocalTempering(), max_iter=10, learning_offset=10.0, random_state=0
    ).fit(X)
    temperatures = model.document_temperatures(sparse.vstack([X[:100], odd]).tocsr())
    assert temperatures.shape == (101,)
    assert np.argmax(temperatures) == 100


def test_gibbs_proportions_score_too():
    X, _ = make_corpus(200)
    model = LatentDirichletAllocation(5, max_iter=20, learning_offset=10.0, random_state=0).fit(X)
    mean_field = model.completion_score(X)
    exact = model.completion_score(X, inference="gibbs")
    assert exact == pytest.approx(mean_field, abs=0.3)
    assert exact == model.completion_score(X, inference="gibbs")
    with pytest.raises(ValueError, match="inference must be"):
        model.completion_score(X, inference="guess")
    for alpha in (1e-300, 1e300):
        with pytest.raises(ValueError, match="alpha must be between 1e-30 and"):
            model.completion_score(X, alpha=alpha)


def test_pickles_and_clones():
    X, _ = make_corpus(100)
    model = LatentDirichletAllocation(
        3, tempering=VariationalTempering(formula="calibrated"), max_iter=2, random_state=0
    ).fit(X)
    revived = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(revived.transform(X), model.transform(X))
    np.testing.assert_array_equal(clone(model).fit(X).components_, model.components_)


def test_copies_of_topics_are_named():
    """Kept hot until the last moment, the topics have no time to part."""
    X, _ = make_corpus(100)
    hot = Annealing(schedules.constant(5.0), fraction=0.99)
    model = LatentDirichletAllocation(
        3,
        tempering=hot,
        init="random",
        update="variational",
        learning_method="batch",
        max_iter=30,
        random_state=0,
    )
    with pytest.warns(TopicWarning, match="topics that are copies: 0 = 1, 0 = 2, 1 = 2"):
        model.fit(X)


def test_troubles_are_named_and_counted():
    assert describe_troubles(np.array([], int), []) is None
    many = describe_troubles(np.arange(20), [(3, 4)])
    assert "topics with next to no words: 0, 1, 2, 3, 4, 5, 6, 7 and 12 more" in many
    assert "copies: 3 = 4" in many
    assert list(unused_topics(np.array([500.0, 0.0]), 1e6)) == [1]


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({}, "words"),
        ({"init": "random"}, "random"),
        ({"n_init": 2}, "random"),
        ({"n_init": 2, "init": "words"}, "words"),
        ({"tempering": None}, "words"),
        ({"tempering": "annealing", "init": "random"}, "random"),
        ({"update": "variational"}, "words"),
    ],
)
def test_what_topics_start_from(options, start):
    X, _ = make_corpus(100)
    fitted = LatentDirichletAllocation(5, max_iter=1, random_state=0, **options).fit(X)
    assert fitted._model.start == start


@pytest.mark.parametrize("policy", ["annealing", "variational", "local", None])
def test_tempering_changes_the_temperature_and_nothing_else(policy):
    X, _ = make_corpus(100)
    default, given = (
        LatentDirichletAllocation(5, tempering=own, max_iter=2, random_state=0).fit(X)
        for own in ("auto", policy)
    )
    assert replace(given.recipe_, temperature=default.recipe_.temperature) == default.recipe_
    alike = np.array_equal(given.components_, default.components_)
    assert alike == (policy is None)  # the default is at T = 1


def test_policies_that_need_a_bound_name_the_update_that_has_one():
    X, _ = make_corpus(100)
    for policy in ("adaptive", LocalTempering(formula="paper")):
        lda = LatentDirichletAllocation(3, tempering=policy, max_iter=4, random_state=0)
        lda.set_params(learning_method="batch")
        with pytest.raises(ValueError, match="update='variational'"):
            lda.fit(X)
        lda.set_params(update="variational").fit(X)


@pytest.mark.slow
def test_seeds_agree_on_topics_that_start_from_words():
    made = make_lda(1500, 40, n_words=400, document_length=30, alpha=0.05, eta=0.05, seed=0)

    def agreement(init):
        seeds = [
            LatentDirichletAllocation(20, init=init, max_iter=5, random_state=seed).fit(made.counts)
            for seed in (0, 1)
        ]
        return topic_stability(*(lda.components_ for lda in seeds))

    assert agreement("auto") > agreement("random") + 0.15


def test_a_stream_can_start_from_the_words_of_its_first_documents():
    X, topics = make_corpus(2000)
    streams = {}
    for init in ("auto", "words"):
        lda = LatentDirichletAllocation(5, init=init, total_samples=2000, random_state=0)
        streams[init] = lda.partial_fit(X[:500])
    assert [lda._model.start for lda in streams.values()] == ["random", "words"]
    streams["words"].partial_fit(X[500:])
    assert topic_stability(streams["words"].components_, topics) > 0.9


def test_the_best_of_several_starts():
    X, _ = make_corpus(200)
    best = LatentDirichletAllocation(5, n_init=4, max_iter=5, random_state=0).fit(X)
    one = LatentDirichletAllocation(5, init="random", max_iter=5, random_state=0).fit(X)
    elbos = [
        evaluate_elbo(model._model, model._state.posterior, ArraySource(X)) for model in (best, one)
    ]
    assert np.isfinite(elbos).all()
    assert elbos[0] > elbos[1]


@pytest.mark.parametrize("options", [{}, {"learning_method": "batch"}, {"init": "random"}])
def test_documents_that_are_all_empty_have_the_mean_of_the_prior(options):
    X = np.zeros((2, 5), int)
    with pytest.warns(TopicWarning, match="every document of X is empty"):
        lda = LatentDirichletAllocation(60, random_state=0, **options).fit(X)
    np.testing.assert_allclose(lda.transform(X), 1 / 60, rtol=1e-6)
    assert np.isfinite(lda.components_).all()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (-np.ones((3, 4)), "Negative values in data.*row 0, column 0 holds -1"),
        (np.array([[1.0, np.nan]]), "NaN"),
        (np.array([["a", "b"]]), "string|convert"),
        (np.empty((0, 4)), "0 sample"),
        (np.array([[np.inf, 1.0]]), "infinity"),
    ],
)
def test_bad_documents_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        LatentDirichletAllocation(2).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"doc_topic_prior": 0.0}, "doc_topic_prior"),
        ({"doc_topic_prior": [0.1, -0.1]}, "doc_topic_prior must be positive"),
        ({"doc_topic_prior": [0.1]}, "one for each of the 2 topics"),
        ({"topic_word_prior": -1.0}, "topic_word_prior"),
        ({"topic_word_prior": {}}, "topic_word_prior must be one positive number"),
        ({"tempering": "hot"}, "tempering must be None, one of 'auto', 'adaptive', 'annealing'"),
        ({"learning_method": "offline"}, "learning_method"),
        ({"tempering": Annealing(passes=50)}, "leaves no phase at T = 1"),
        (
            {"tempering": "adaptive", "update": "sampled", "learning_method": "batch"},
            "take another .* update='variational'",
        ),
        (
            {"tempering": "adaptive", "update": "mean", "learning_method": "batch"},
            "take another .* update='variational'",
        ),
        ({"tempering": LocalTempering(formula="paper"), "update": "mean"}, "energies.*calibrated"),
        (
            {"tempering": VariationalTempering(formula="monte-carlo"), "update": "sampled"},
            "energies, .* update='variational'",
        ),
    ],
)
def test_bad_arguments_are_named(options, message):
    X, _ = make_corpus(20)
    with pytest.raises(ValueError, match=message):
        LatentDirichletAllocation(**{"n_components": 2, **options}).fit(X)


def test_another_vocabulary_is_refused():
    X, _ = make_corpus(50)
    model = LatentDirichletAllocation(2, max_iter=2).fit(X)
    with pytest.raises(ValueError, match="X has 61 features, but LatentDirichletAllocation"):
        model.transform(sparse.csr_matrix(np.ones((2, 61))))


@pytest.mark.parametrize("tempering", ["variational", "local"])
@pytest.mark.parametrize("learning_method", ["online", "batch"])
def test_a_stream_after_a_tempered_fit_is_at_temperature_one(tempering, learning_method):
    X = np.random.default_rng(0).poisson(0.5, size=(60, 30))
    model = LatentDirichletAllocation(
        3, tempering=tempering, learning_method=learning_method, max_iter=3, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopicWarning)  # noise has no topics
        model.fit(X).partial_fit(X[:25])
    assert model._state.heat.finished
    assert np.all(model._state.heat.inverse_temperature == 1.0)


def test_a_stream_of_unknown_length_is_cooled():
    X = sparse.csr_matrix(np.random.default_rng(0).poisson(0.5, size=(2000, 10)))
    policy = Annealing(schedules.linear_inverse(2.0), fraction=0.4)
    model = LatentDirichletAllocation(3, tempering=policy, random_state=0)
    temperatures = []
    for _ in range(10):
        model.partial_fit(X)
        temperatures.append(1.0 / np.mean(model._state.heat.inverse_temperature))
    assert temperatures[0] > temperatures[2] > 1.0
    assert temperatures[4:] == [1.0] * 6  # 8,000 documents are 40% of the 20,000


def test_a_stream_that_has_cooled_is_saved_whatever_cooled_it(tmp_path):
    X = make_corpus(100)[0]
    schedule = Annealing(lambda progress: 2.0 - progress, passes=0.5)
    stream = LatentDirichletAllocation(3, tempering=schedule, total_samples=200, random_state=0)
    for _ in range(3):
        stream.partial_fit(X)
    with pytest.warns(UserWarning, match="tempering .* is stored as null"):
        stream.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model").partial_fit(X)
    np.testing.assert_array_equal(loaded.components_, stream.partial_fit(X).components_)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"tempering": "local"}, {"doc_topic_prior": "auto"}])
def test_jax_fits_what_the_kernels_fit(options):
    pytest.importorskip("jax")
    X = make_lda(300, 3, n_words=40, document_length=50, eta=0.1, seed=0).counts
    scores = [
        LatentDirichletAllocation(3, backend=backend, random_state=0, **options)
        .fit(X)
        .completion_score(X)
        for backend in ("cpu", "jax")
    ]
    assert scores[1] == pytest.approx(scores[0], abs=0.02)


def test_a_gpu_that_is_not_there_is_an_error():
    jax = pytest.importorskip("jax")
    if jax.default_backend() == "gpu":
        pytest.skip("there is a GPU")
    with pytest.raises(ImportError, match=r"backend='gpu' needs a GPU.*tempering\[gpu\]"):
        LatentDirichletAllocation(2, backend="gpu").fit(np.eye(4, dtype=int))
