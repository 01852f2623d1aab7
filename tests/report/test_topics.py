"""Words, sizes and places of topics, against their definitions."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.spatial.distance import jensenshannon, pdist

from tempering.report.tables import (
    LEAST_SHARE,
    RELEVANCE_STEPS,
    TOP_WORDS,
    TopicWords,
    classical_scaling,
    topic_table,
    word_table,
)


def random_words(n_topics, n_words, seed=0, prior=0.1):
    parameters = prior + np.random.default_rng(seed).gamma(0.3, 20.0, size=(n_topics, n_words))
    return parameters, TopicWords.from_parameters(parameters, prior)


def test_sizes_follow_from_the_parameters():
    parameters, words = random_words(4, 90)
    counts = (parameters - 0.1).sum(axis=1)
    np.testing.assert_allclose(words.prevalence, counts / counts.sum())
    np.testing.assert_allclose(words.n_tokens, counts.sum())
    np.testing.assert_allclose(words.marginal.sum(), 1.0)
    by_hand = sum(p * row for p, row in zip(words.prevalence, words.topics))
    np.testing.assert_allclose(words.marginal, by_hand)


def test_topics_that_nothing_was_assigned_to_share_alike():
    words = TopicWords.from_parameters(np.full((3, 5), 0.2), 0.2)
    np.testing.assert_allclose(words.prevalence, 1 / 3)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 150), st.integers(0, 10_000), st.sampled_from([1, 7, 30]))
def test_every_word_that_the_slider_can_bring_to_the_top_is_stored(k, v, seed, n_words):
    _, words = random_words(k, v, seed)
    for topic in range(k):
        stored = words.relevant(topic, n_words)
        assert len(stored) == len(np.unique(stored))
        for weight in RELEVANCE_STEPS:
            p, lift = words.topics[topic], words.topics[topic] / words.marginal
            score = weight * np.log(p) + (1 - weight) * np.log(lift)
            best = np.sort(score)[::-1][: min(n_words, v)]
            found = np.sort(score[stored])[::-1][: min(n_words, v)]
            np.testing.assert_allclose(found, best)


def test_the_tables_hold_probabilities_and_shares():
    parameters, words = random_words(6, 200)
    relevant = [words.relevant(k) for k in range(6)]
    vocabulary = [f"w{v}" for v in range(200)]
    table = word_table(words, relevant, vocabulary)
    place = {text: i for i, text in enumerate(table["text"])}
    joint = words.prevalence[:, None] * words.topics
    posterior = joint / joint.sum(axis=0)
    for text, i in place.items():
        v = vocabulary.index(text)
        assert table["probability"][i] == pytest.approx(words.marginal[v], rel=1e-4)
        ids, parts = table["topics"][i][::2], np.array(table["topics"][i][1::2]) / 1000
        np.testing.assert_allclose(parts, posterior[ids, v], atol=6e-4)
        assert ids[0] == posterior[:, v].argmax()
        assert set(ids) == set(np.flatnonzero(posterior[:, v] >= LEAST_SHARE))
    topics = topic_table(words, relevant)
    assert [topic["id"] for topic in topics] == list(np.argsort(-words.prevalence))
    for topic in topics:
        columns = [vocabulary.index(table["text"][i]) for i in topic["words"]]
        means = parameters[topic["id"]] / parameters[topic["id"]].sum()
        np.testing.assert_allclose(topic["probabilities"], means[columns], rtol=1e-4)
        assert len(topic["words"]) >= TOP_WORDS


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10_000))
def test_points_of_a_plane_are_found_again_from_their_distances(n, seed):
    points = np.random.default_rng(seed).normal(size=(n, 2))
    square = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.testing.assert_allclose(pdist(classical_scaling(square)), pdist(points), atol=1e-7)


def test_three_topics_lie_at_their_distances():
    _, words = random_words(3, 60)
    places = words.positions()
    for a, b in [(0, 1), (0, 2), (1, 2)]:
        distance = jensenshannon(words.topics[a], words.topics[b])
        assert np.linalg.norm(places[a] - places[b]) == pytest.approx(distance, rel=1e-6)
