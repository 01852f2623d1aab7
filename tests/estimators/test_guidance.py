"""Topics led by seeds and by prior matrices: that they stay on their subject through the heat."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import tempering
from tempering import LatentDirichletAllocation
from tempering.cli.topics import topic_rows
from tempering.corpus import Corpus
from tempering.datasets import make_lda
from tempering.estimators.lda import TopicWarning
from tempering.gpu.device_lda import fit_on_device
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Guide
from tempering.report import collect
from tempering.workbench import drop_topic, extend_topics, merge_topics, split_topic, topic_labels

SUBJECTS = [5, 2, 7]


@pytest.fixture(scope="module")
def drawn():
    return make_lda(400, n_topics=8, n_words=240, document_length=50, seed=4)


@pytest.fixture(scope="module")
def seeds(drawn):
    special = drawn.topics / drawn.topics.sum(axis=0)
    words = {}
    for k in SUBJECTS:
        frequent = np.argsort(-drawn.topics[k])[:25]
        words[f"subject {k}"] = [int(v) for v in frequent[np.argsort(-special[k, frequent])[:3]]]
    return words


def nearest(model, drawn):
    """The true topic that is nearest to each found one, and their cosine."""
    found = np.maximum(model.components_ - model.topic_word_prior_, 0.0)
    found = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
    cosines = found @ (drawn.topics / np.linalg.norm(drawn.topics, axis=1, keepdims=True)).T
    return cosines.argmax(axis=1), cosines.max(axis=1)


WAYS = {
    "default": {},
    "random start": {"init": "random"},
    "batch": {"learning_method": "batch", "max_iter": 30, "seed_strength": 1.0},
    "plain": {"tempering": None},
    "annealing": {"tempering": "annealing"},
    "variational": {"tempering": "variational"},
    "local": {"tempering": "local"},
    "mean": {"update": "mean"},
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_seeds_survive_the_heat(way, drawn, seeds):
    options = {"random_state": 0, "seed_topics": seeds, **WAYS[way]}
    model = LatentDirichletAllocation(8, **options).fit(drawn.counts)
    topics, cosines = nearest(model, drawn)
    assert topics[:3].tolist() == SUBJECTS
    assert cosines[:3].min() > 0.9


def test_topics_beside_those_that_are_led_are_found_as_well():
    drawn = make_lda(1000, n_topics=20, n_words=800, document_length=60, seed=1)
    special = drawn.topics / drawn.topics.sum(axis=0)
    subjects = np.random.default_rng(1).choice(20, 5, replace=False)
    frequent = {k: np.argsort(-drawn.topics[k])[:40] for k in subjects}
    seeds = {str(k): own[np.argsort(-special[k, own])[:3]].tolist() for k, own in frequent.items()}
    model = LatentDirichletAllocation(20, seed_topics=seeds, random_state=1).fit(drawn.counts)
    topics, cosines = nearest(model, drawn)
    assert topics[:5].tolist() == subjects.tolist()
    assert sorted(topics) == list(range(20))
    assert cosines.mean() > 0.98


def test_seeds_lead_streams(drawn, seeds):
    model = LatentDirichletAllocation(
        8, seed_topics=seeds, total_samples=2000, random_state=0, batch_size=20
    )
    for _ in range(5):
        model.partial_fit(drawn.counts)
    assert nearest(model, drawn)[0][:3].tolist() == SUBJECTS
    assert topic_labels(model)[:3] == list(seeds)


@pytest.mark.parametrize("way", ["default", "random start", "plain", "mean"])
def test_words_stay_out(way, drawn, seeds):
    frequent = np.argsort(-drawn.topics[5])[:3]
    out = [int(v) for v in frequent]
    words = [v for v in seeds["subject 5"] if v not in out] or [
        int(np.argsort(-drawn.topics[5])[9])
    ]
    told = {"five": {"words": words, "without": out}}
    options = {"random_state": 0, "seed_topics": told, **WAYS[way]}
    model = LatentDirichletAllocation(8, **options).fit(drawn.counts)
    shares = model.components_[:, out] / model.components_[:, out].sum(axis=0)
    assert shares[0].max() < 1e-4
    assert np.isfinite(model.transform(drawn.counts)).all()
    assert model.topic_word_prior_[0, out].tolist() == [0.0] * 3


def test_a_matrix_of_one_number_is_that_number(drawn):
    options = {"random_state": 0, "max_iter": 2}
    plain = LatentDirichletAllocation(8, topic_word_prior=0.1, **options).fit(drawn.counts)
    matrix = np.full((8, 240), 0.1)
    same = LatentDirichletAllocation(8, topic_word_prior=matrix, **options).fit(drawn.counts)
    assert_array_equal(plain.components_, same.components_)


def test_a_matrix_leads_whichever_topics(drawn):
    matrix = np.full((8, 240), 0.1)
    matrix[6] += 2000 * drawn.topics[1]
    matrix[3] += 2000 * drawn.topics[4]
    model = LatentDirichletAllocation(8, topic_word_prior=matrix, random_state=0).fit(drawn.counts)
    topics, _ = nearest(model, drawn)
    assert (topics[6], topics[3]) == (1, 4)
    assert_allclose(model.topic_word_prior_, matrix, rtol=1e-5)


def test_the_number_of_threads_changes_nothing(drawn, seeds):
    options = {"random_state": 0, "max_iter": 2, "seed_topics": seeds}
    one, two = (LatentDirichletAllocation(8, n_jobs=n, **options).fit(drawn.counts) for n in (1, 2))
    assert_array_equal(one.components_, two.components_)


def test_words_are_those_of_the_corpus_or_of_the_columns(drawn, seeds):
    names = [f"w{v}" for v in range(240)]
    by_name = {name: [names[v] for v in words] for name, words in seeds.items()}
    options = {"random_state": 0, "max_iter": 2}
    expected = LatentDirichletAllocation(8, seed_topics=seeds, **options).fit(drawn.counts)
    for X in (
        Corpus(sparse.csr_matrix(drawn.counts), names),
        pd.DataFrame(drawn.counts.toarray(), columns=names),
    ):
        model = LatentDirichletAllocation(8, seed_topics=by_name, **options).fit(X)
        assert_array_equal(model.components_, expected.components_)


def test_a_led_model_is_saved_shown_and_edited(drawn, seeds, tmp_path):
    seeds = {**seeds, "last": {"words": [1], "without": [2, 3]}}
    model = LatentDirichletAllocation(8, seed_topics=seeds, random_state=0).fit(drawn.counts)
    tokens = collect(model, None).facts["tokens"]
    assert tokens == pytest.approx(drawn.counts.sum(), rel=0.05)
    model.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    assert loaded.seed_topics == seeds
    assert topic_labels(loaded)[:4] == list(seeds)
    assert_array_equal(loaded.topic_word_prior_, model.topic_word_prior_)
    for each in (model, loaded):
        each.partial_fit(drawn.counts[:50])
    assert_array_equal(loaded.components_, model.components_)
    assert (loaded.components_[3, [2, 3]] < 1e-3).all()
    assert sum(row["share"] for row in topic_rows(model, 3, None)) == pytest.approx(1, abs=1e-4)

    merged, dropped = merge_topics(model, [0, 3]), drop_topic(model, 1)
    split = split_topic(model, 3, drawn.counts, passes=0)
    prior = model.topic_word_prior_
    lead = prior - prior[prior > 0].min()
    assert_allclose(merged.topic_word_prior_[0, seeds["subject 5"]], prior[0, seeds["subject 5"]])
    assert merged.topic_word_prior_[0, 2] > 0  # topic 0 may have it, so that the two may
    assert_allclose(dropped.topic_word_prior_, np.delete(prior, 1, 0), rtol=1e-6)
    assert split.topic_word_prior_[[3, 8], 2].tolist() == [0.0, 0.0]
    halves = split.topic_word_prior_[[3, 8], 1] - prior[prior > 0].min()
    assert halves.sum() == pytest.approx(lead[3, 1], rel=1e-4)
    for edited in (merged, dropped, split):
        assert_allclose(edited.components_.sum(), model.components_.sum(), rtol=0.3)
        assert edited.partial_fit(drawn.counts[:20]).transform(drawn.counts[:2]).shape[0] == 2
        edited.save(tmp_path / f"edited {edited.n_components}", overwrite=True)


def test_a_topic_with_nothing_but_its_seeds_is_told(drawn):
    X = sparse.hstack([drawn.counts, sparse.csr_array((400, 1), dtype=np.int32)]).tocsr()
    model = LatentDirichletAllocation(
        1 + 8, seed_topics={"gone": {"words": [240], "without": list(range(240))}}, random_state=0
    )
    with pytest.warns(TopicWarning, match="next to no words: 0"):
        model.fit(X)


BAD = [
    ({"seed_topics": {}}, "seed_topics must name topics and their words"),
    ({"seed_topics": {"a": "market"}}, "got 'market' for 'a'"),
    ({"seed_topics": {"a": {"word": [1]}}}, "got {'word': .1.} for 'a'"),
    ({"seed_topics": {"a": []}}, r"seed_topics\['a'\] has no words"),
    ({"seed_topics": {"a": {"words": [1, 2], "without": [2]}}}, "with and without '2'"),
    ({"seed_topics": {1: [1], "1": [2]}}, "seed_topics names two topics '1'"),
    ({"seed_topics": {"a": [1, 240]}}, "seed_topics has 240, no columns .* from 0 to 239"),
    ({"seed_topics": {"a": ["x"]}}, "seed_topics has 'x', no columns of X, whose words are not"),
    ({"seed_topics": {name: [1] for name in "abc"}}, "has 3 topics, and n_components=2 is less"),
    ({"seed_topics": {"a": [1]}, "seed_strength": 0.0}, "seed_strength"),
    ({"seed_topics": {"a": [1]}, "topic_word_prior": "auto"}, "topic_word_prior must be one num"),
    ({"seed_topics": {"a": [1]}, "backend": "jax"}, "seed_topics leads topics on the CPU alone"),
    ({"topic_word_prior": np.ones((3, 240))}, r"2 rows of 240 .* got shape \(3, 240\)"),
    ({"topic_word_prior": -np.ones((2, 240))}, "that are 0 or above"),
    ({"topic_word_prior": np.full((2, 240), np.nan)}, "that are 0 or above"),
    ({"topic_word_prior": np.eye(2, 240)}, "keeps the word in column 2 out of all topics"),
    ({"topic_word_prior": np.arange(2)[:, None] * np.ones(240)}, "all words out of topic 0"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_guidance_is_named(options, message, drawn):
    model = LatentDirichletAllocation(2, max_iter=1, **options)
    with pytest.raises(ValueError, match=message):
        model.fit(drawn.counts)
    assert not hasattr(model, "_state")


def test_words_that_are_not_there_are_all_named():
    corpus = Corpus(sparse.csr_matrix(np.eye(3, dtype=int)), ["sun", "sea", "snow"])
    model = LatentDirichletAllocation(2, seed_topics={"a": ["sun", "moon"], "b": ["ice"]})
    with pytest.raises(ValueError, match="seed_topics has 'moon', 'ice', not among the 3 words"):
        model.fit(corpus)


def test_a_device_refuses_a_guide(drawn):
    pytest.importorskip("jax")
    model = LatentDirichlet(2, 240, 0.5, 0.1, guide=Guide([1], np.ones((1, 2))))
    with pytest.raises(ValueError, match="fitted on the CPU: take backend='cpu'"):
        fit_on_device(model, drawn.counts)


def test_old_topics_are_kept_and_new_ones_found(drawn):
    """A first corpus lacks the documents of two topics; a second one has all."""
    has = drawn.proportions[:, [2, 7]].sum(axis=1) > 0.05
    old = LatentDirichletAllocation(6, random_state=0).fit(drawn.counts[~has])
    before, cosines = nearest(old, drawn)
    model = extend_topics(old, drawn.counts, 2)
    after, found = nearest(model, drawn)
    good = cosines > 0.9
    assert good.sum() >= 5
    assert_array_equal(after[:6][good], before[good])
    assert sorted(after[6:]) == [2, 7]
    assert found[6:].min() > 0.9
    assert old.n_components == 6


def test_old_topics_are_kept_over_other_words(drawn):
    names = np.array([f"w{v}" for v in range(240)], dtype=object)
    old = LatentDirichletAllocation(8, random_state=0).fit(
        Corpus(sparse.csr_matrix(drawn.counts), list(names))
    )
    order = np.random.default_rng(0).permutation(240)[:200]
    other = Corpus(sparse.csr_matrix(drawn.counts)[:, order], [*names[order]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopicWarning)
        model = extend_topics(old, other, 1, strength=10.0)
        assert list(extend_topics(old, drawn.counts, 0).vocabulary_) == list(names)
    one, two = old.components_[:, order], model.components_[:8]
    cosines = (one * two).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(two, axis=1)
    assert cosines.min() > 0.98
    with pytest.raises(ValueError, match="X has 200 columns, but the model 240 words"):
        extend_topics(old, drawn.counts[:, :200], 1)
    with pytest.raises(ValueError, match="shares no word"):
        extend_topics(old, Corpus(sparse.csr_matrix(np.eye(2, dtype=int)), ["a", "b"]), 1)
