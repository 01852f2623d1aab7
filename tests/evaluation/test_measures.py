"""Windowed coherence against gensim and a count by hand; diversity, overlap and labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from tempering.corpus import Corpus
from tempering.evaluation import (
    c_npmi,
    c_v,
    inverted_rbo,
    label_nmi,
    purity,
    topic_diversity,
    topic_measures,
    umass,
)
from tempering.evaluation.coherence import windows_with_pairs

LENGTHS = [3, 9, 10, 11, 40, 109, 110, 111, 150, 0]
TEXTS = [[(i * i + 3 * j * j + i * j) % 23 % 13 for j in range(n)] for i, n in enumerate(LENGTHS)]
TOPICS = np.full((3, 13), 0.01)
for row, words in zip(TOPICS, [[0, 3, 5, 7], [1, 2, 6, 12], [4, 11, 8, 9]]):
    row[words] = [0.4, 0.3, 0.2, 0.1]
COUNTS = np.array([np.bincount(np.array(text, int), minlength=13) for text in TEXTS])

#: What gensim 4.4.0 printed of these texts and words, with topn=4.
OF_GENSIM = {
    "c_v": [0.49124080690741334, 0.4868169368899931, 0.7259637859102289],
    "c_npmi": [-0.09587341264366384, -0.15475014057529687, 0.08234189499351455],
    "umass": [-0.38771693659969925, -0.9202434863049578, -0.36018092178352995],
}


@pytest.mark.parametrize("vocabulary", [None, [f"word{v}" for v in range(13)]])
def test_gensims_values(vocabulary):
    texts = TEXTS if vocabulary is None else [[vocabulary[v] for v in text] for text in TEXTS]
    for measure, name in ((c_v, "c_v"), (c_npmi, "c_npmi")):
        assert_allclose(measure(TOPICS, texts, vocabulary, n_words=4), OF_GENSIM[name], atol=1e-9)
    assert_allclose(umass(TOPICS, COUNTS, n_words=4), OF_GENSIM["umass"], atol=1e-9)


@pytest.mark.parametrize("window", [1, 2, 7, 200])
def test_windows_without_a_word_twice_are_those_of_the_definition(window):
    rng = np.random.default_rng(window)
    texts = [rng.permutation(20)[:n].tolist() for n in (0, 1, 5, 20, 20)]
    topics = rng.dirichlet(np.ones(20), 2)
    n_windows, joints = windows_with_pairs(topics, texts, None, 3, window)
    windows = [
        set(text[start : start + window])
        for text in texts
        for start in range(max(len(text) - window + 1, 1))
    ]
    assert n_windows == len(windows)
    for words, joint in zip(np.argsort(-topics, axis=1)[:, :3], joints, strict=True):
        together = [[sum({a, b} <= seen for seen in windows) for a in words] for b in words]
        assert joint.tolist() == together


def test_words_that_never_occur_gain_nothing():
    topics = [[0.5, 0.3, 0.2, 0.0, 0.0], [0.5, 0.3, 0.0, 0.2, 0.0]]
    texts = [[0, 1, 2], [0, 1, 4], [4, 2]]
    known, unknown = c_npmi(topics, texts, n_words=3)
    assert -1 <= unknown < known
    known, unknown = c_v([[0.5, 0.3, 0.0, 0.0], [0.0, 0.0, 0.5, 0.3]], texts[:2] * 2, n_words=2)
    assert known > 0.5
    assert unknown < 0.5
    known, unknown = umass(topics, [[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]], n_words=3)
    assert unknown < known


def test_overlap_of_two_rankings():
    # The rankings 0 1 2 and 1 0 3 share 0, 2 and 2 of their first 1, 2 and 3 words.
    topics = [[0.5, 0.3, 0.2, 0.0], [0.3, 0.5, 0.0, 0.2]]
    p = 0.9
    overlap = 2 / 3 * p**3 + (1 - p) / p * (0 * p + 1 * p**2 + 2 / 3 * p**3)
    assert_allclose(inverted_rbo(topics, n_words=3), 1 - overlap)
    assert inverted_rbo(topics[:1], n_words=3) == 1
    assert topic_diversity(topics, n_words=3) == 4 / 6


def test_labels():
    theta = np.eye(3)[[0, 0, 0, 1, 1, 2]]
    labels = ["x", "x", "y", "y", "y", "x"]
    assert_allclose(purity(theta, labels), 5 / 6)
    assert label_nmi(theta, [7, 7, 7, 8, 8, 9]) == 1
    assert label_nmi(theta, [7, 7, 7, 7, 7, 7]) == 0


def test_the_table_has_what_was_asked_for():
    plain = topic_measures(TOPICS, COUNTS, n_words=4)
    assert set(plain.of_topics) == {"npmi", "umass"}
    theta, labels = np.tile(np.eye(2), (5, 2))[:, :3], ["x", "y"] * 5
    whole = topic_measures(TOPICS, COUNTS, texts=iter(TEXTS), theta=theta, labels=labels, n_words=4)
    for name, values in OF_GENSIM.items():
        assert_allclose(whole.of_topics[name], values, atol=1e-9)
        assert_allclose(whole.of_model[name], np.mean(values), atol=1e-9)
    assert whole.of_model["purity"] == 1
    for name in ("c_v", "inverted_rbo", "label_nmi"):
        assert name in str(whole)


def test_a_corpus_knows_the_words_of_texts():
    corpus = Corpus(sparse.csr_array(COUNTS), [f"w{v}" for v in range(13)])
    texts = [[f"w{v}" for v in text] for text in TEXTS]
    told = topic_measures(TOPICS, corpus, texts=texts, n_words=4)
    assert_allclose(told.of_topics["c_v"], OF_GENSIM["c_v"], atol=1e-9)
    with pytest.raises(ValueError, match=r"none of the topics' top words.*give vocabulary="):
        topic_measures(TOPICS, COUNTS, texts=texts, n_words=4)


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("document 1 is one string, 'sun sea'", {"texts": [[0, 1], "sun sea"]}),
        ("vocabulary has 2 words, but topics has 13", {"texts": TEXTS, "vocabulary": ["a", "b"]}),
        ("at least one document", {"texts": []}),
        ("texts must hold a list of words for each document; got 3", {"texts": 3}),
        ("document 1 is None", {"texts": [[0, 1], None]}),
        (r"document 0 is \[\[0\]\]", {"texts": [[[0]]]}),
        ("vocabulary must be a list of words", {"texts": TEXTS, "vocabulary": {"a": 0}}),
        ("theta and labels go together", {"theta": np.ones((10, 3))}),
        ("labels must hold one value", {"theta": np.ones((10, 3)), "labels": ["x"]}),
        ("labels must be all text, or all numbers", {"theta": np.eye(2), "labels": [None, "a"]}),
        ("labels must be known, but document 1", {"theta": np.eye(2), "labels": [0, np.nan]}),
        ("n_words", {"n_words": 1}),
    ],
)
def test_what_cannot_be_measured_is_refused(message, arguments):
    with pytest.raises(ValueError, match=message):
        topic_measures(TOPICS, COUNTS, **{"n_words": 4, **arguments})
    with pytest.raises(ValueError, match="weight must be between 0 and 1"):
        inverted_rbo(TOPICS, 4, weight=1.0)
