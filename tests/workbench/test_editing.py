"""Edited models: what they hold, that they work as any other, and that the old one stays."""

from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone

import tempering
from tempering import LatentDirichletAllocation
from tempering.corpus import Corpus
from tempering.datasets import make_lda
from tempering.evaluation import match_topics
from tempering.models.lda.topics import Topics
from tempering.workbench import (
    drop_topic,
    merge_topics,
    rename_topics,
    split_topic,
    topic_labels,
)


@pytest.fixture(scope="module")
def drawn():
    return make_lda(400, n_topics=4, n_words=200, document_length=60, seed=3)


@pytest.fixture(scope="module")
def model(drawn):
    return LatentDirichletAllocation(4, random_state=0).fit(drawn.counts)


def counts_of(model):
    return model.components_ - model.topic_word_prior_


def test_merged_topics_have_the_words_of_both(model):
    merged = merge_topics(model, [2, 0])
    expected = np.delete(counts_of(model), 0, 0)
    expected[1] += counts_of(model)[0]
    assert_allclose(counts_of(merged), expected, atol=1e-2)
    assert_allclose(merged.doc_topic_prior_.sum(), model.doc_topic_prior_.sum())


def test_documents_move_with_the_merged_topics(model, drawn):
    before, after = (m.transform(drawn.counts) for m in (model, merge_topics(model, [0, 1])))
    assert np.abs(after[:, 0] - before[:, :2].sum(axis=1)).mean() < 0.02


def test_a_dropped_topic_is_gone(model):
    dropped = drop_topic(model, 1)
    assert_allclose(counts_of(dropped), np.delete(counts_of(model), 1, 0), atol=1e-2)


def test_a_split_undoes_a_merge(model, drawn):
    again = split_topic(merge_topics(model, [0, 3]), 0, drawn.counts)
    matching = match_topics(model.components_, again.components_)
    assert matching.indices.tolist() in ([0, 1, 2, 3], [3, 1, 2, 0])
    assert matching.similarities.min() > 0.95
    assert_allclose(counts_of(again).sum(), counts_of(model).sum(), rtol=1e-3)


def test_the_old_model_stays_and_the_new_one_works(model, drawn, tmp_path):
    before = model.components_.copy()
    for number, edited in enumerate(
        (
            merge_topics(model, [0, 1]),
            drop_topic(model, 3),
            split_topic(model, 2, drawn.counts),
            rename_topics(model, {1: "one"}),
        )
    ):
        n = edited.n_components
        assert edited.transform(drawn.counts).shape == (400, n)
        assert np.isfinite(edited.completion_score(drawn.counts))
        edited.save(tmp_path / str(number))
        loaded = tempering.load(tmp_path / str(number))
        assert np.array_equal(loaded.components_, edited.components_)
        loaded.partial_fit(drawn.counts[:50])
        assert loaded.components_.shape == (n, 200)
        assert len(topic_labels(edited)) == n
    assert np.array_equal(model.components_, before)
    assert model.n_components == 4


def test_a_prior_that_is_one_number_for_all_topics_fits_the_edited_model(model, drawn):
    flat = clone(model).set_params(topic_word_prior=np.full((4, 200), 0.1), max_iter=1)
    flat.fit(drawn.counts)
    for edited in (merge_topics(flat, [0, 1]), split_topic(flat, 0, drawn.counts, passes=0)):
        assert clone(edited).fit(drawn.counts).n_components == edited.n_components
        assert clone(edited).get_params()["topic_word_prior"] == 0.1


def test_labels_go_with_their_topics_and_into_the_file(model, drawn, tmp_path):
    named = rename_topics(model, ["a", "b", "c", "d"])
    assert topic_labels(merge_topics(named, [2, 1])) == ["a", "c", "d"]
    assert topic_labels(drop_topic(named, 0)) == ["b", "c", "d"]
    split = split_topic(named, 0, drawn.counts)
    plain = split_topic(model, 0, drawn.counts)
    assert topic_labels(split) == ["a", "b", "c", "d", topic_labels(plain)[4]]
    named.save(tmp_path / "model")
    assert topic_labels(tempering.load(tmp_path / "model")) == ["a", "b", "c", "d"]
    assert topic_labels(rename_topics(named, {3: "z"})) == ["a", "b", "c", "z"]
    assert not hasattr(model, "topic_labels_")


def test_names_are_of_words_that_tell_a_topic_from_others():
    """The first word of both names neither; a function names them by such words too."""
    words = ["the", "ship", "crew", "sail", "law", "court", "judge"]
    X = sparse.csr_array(np.repeat([[6, 4, 3, 2, 0, 0, 0], [6, 0, 0, 0, 4, 3, 2]], 40, axis=0))
    model = LatentDirichletAllocation(2, random_state=0).fit(Corpus(X, words))
    assert [top[0] for top in model.topics(1)] == ["the", "the"]
    assert sorted(name.split(",")[0] for name in topic_labels(model)) == ["law", "ship"]
    named = rename_topics(model, lambda top: f"{top[0]} of {len(top)}")
    assert sorted(topic_labels(named)) == ["law of 7", "ship of 7"]


def test_another_fit_forgets_the_labels(model, drawn, tmp_path):
    named = rename_topics(model, ["a", "b", "c", "d"]).set_params(n_components=3, max_iter=2)
    named.fit(drawn.counts).save(tmp_path / "model")
    assert len(topic_labels(tempering.load(tmp_path / "model"))) == 3


@pytest.mark.parametrize(
    ("message", "edit"),
    [
        ("topics must name two different", lambda m: merge_topics(m, [1])),
        ("topics must name two different", lambda m: merge_topics(m, [1, 1, 2])),
        ("topics must be the number of a topic, from 0 to 3", lambda m: merge_topics(m, [0, 4])),
        ("topic must be the number", lambda m: drop_topic(m, -1)),
        ("topic must be the number .*; got True", lambda m: drop_topic(m, True)),
        ("topics must be the number .*; got False", lambda m: merge_topics(m, [False, True])),
        ("X has 3 columns", lambda m: split_topic(m, 0, np.ones((2, 3)))),
        ("no two words in X", lambda m: split_topic(m, 0, np.zeros((2, 200), int))),
        ("labels must hold one name for each of the 4", lambda m: rename_topics(m, ["a"])),
        ("labels must hold one name", lambda m: rename_topics(m, None)),
        ("topics must be numbers of topics; got None", lambda m: merge_topics(m, None)),
        ("model must be a LatentDirichletAllocation", lambda m: topic_labels("model")),
        ("labels must be the number", lambda m: rename_topics(m, {9: "a"})),
    ],
)
def test_edits_that_cannot_be_are_refused(model, message, edit):
    with pytest.raises(ValueError, match=message):
        edit(model)


def test_a_topic_without_words_cannot_be_split(model, drawn):
    empty = deepcopy(model)
    parameters, eta = empty._state.posterior.parameters().copy(), model.topic_word_prior_
    parameters[:, 1] = eta
    empty._state = empty._state._replace(posterior=Topics(parameters, eta))
    with pytest.raises(ValueError, match="topic 1 is its prior alone"):
        split_topic(empty, 1, drawn.counts)
    assert np.isfinite(split_topic(empty, 0, drawn.counts).components_).all()


def test_the_only_topic_cannot_be_dropped():
    model = LatentDirichletAllocation(1, random_state=0).fit(np.ones((20, 3), int))
    with pytest.raises(ValueError, match="only one"):
        drop_topic(model, 0)


def mean_score(model, X):
    return model.completion_score(X, inference="gibbs", alpha=0.1)


def test_topics_settle_where_documents_are_given(model, drawn):
    """What was dropped is taken over by others, and predicts better than before they knew."""
    X = drawn.counts
    left, settled = drop_topic(model, 2), drop_topic(model, 2, X)
    assert counts_of(left).sum() < 0.9 * drawn.counts.sum()
    assert_allclose(counts_of(settled).sum(), drawn.counts.sum(), rtol=1e-2)
    assert mean_score(settled, X) > mean_score(left, X) + 0.02
    assert_allclose(drop_topic(model, 2, X, passes=0).components_, left.components_)
    again = drop_topic(model, 2, X)
    assert_allclose(again.components_, settled.components_, rtol=0)

    before = model.components_.copy()
    merged = merge_topics(model, [0, 1], X)
    assert_allclose(counts_of(merged).sum(), drawn.counts.sum(), rtol=1e-2)
    assert mean_score(split_topic(merged, 0, X), X) > mean_score(merged, X) + 0.02
    assert_allclose(model.components_, before, rtol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"passes": -1}, "passes must be at least 0, and whole; got -1"),
        ({"X": np.ones((3, 7))}, "X has 7 features"),
        ({"X": np.zeros((3, 200))}, "X must hold at least one word"),
    ],
)
def test_documents_that_cannot_settle_are_named(model, options, message):
    with pytest.raises(ValueError, match=message):
        merge_topics(model, [0, 1], **options)
