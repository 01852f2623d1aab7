"""Data with a known answer are drawn as they say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tempering.corpus import Stored, read, write
from tempering.corpus.corpus import gather
from tempering.datasets import LDAStream, make_lda, make_toy_images
from tempering.datasets import synthetic as synthetic_module


def test_a_corpus_has_its_sizes():
    counts, topics, proportions = make_lda(300, 4, 60, document_length=80, seed=3)
    assert counts.shape == (300, 60)
    assert_allclose(topics.sum(axis=1), np.ones(4))
    assert_allclose(proportions.sum(axis=1), np.ones(300))
    lengths = counts.sum(axis=1)
    assert lengths.min() >= 1
    assert abs(lengths.mean() - 80) < 5 * np.sqrt(80 / 300)


def test_words_come_from_the_topics_in_their_proportions():
    counts, topics, proportions = make_lda(4000, 3, 20, document_length=100, seed=1)
    lengths = counts.sum(axis=1)
    expected = (proportions * lengths[:, None]).sum(axis=0) @ topics
    found = counts.sum(axis=0)
    assert np.abs(found - expected).max() < 5 * np.sqrt(expected.max())
    # Document by document: the variance of a multinomial, and no more.
    means = proportions @ topics * lengths[:, None]
    excess = ((counts.toarray() - means) ** 2).sum() / (
        means * (1 - means / lengths[:, None])
    ).sum()
    assert abs(excess - 1) < 0.05


def test_proportions_and_topics_are_dirichlet():
    corpus = make_lda(5000, 4, 500, document_length=1, alpha=0.5, eta=0.2, seed=2)
    for draws, concentration in ((corpus.proportions, 0.5), (corpus.topics, 0.2)):
        k = draws.shape[1]
        variance = (1 / k) * (1 - 1 / k) / (k * concentration + 1)
        assert_allclose(draws.var(axis=0).mean(), variance, rtol=0.1 if k < 100 else 0.3)


def test_same_seed_same_corpus():
    a, b, c = make_lda(50, seed=1), make_lda(50, seed=1), make_lda(50, seed=2)
    assert_array_equal(a.counts.toarray(), b.counts.toarray())
    assert_array_equal(a.topics, b.topics)
    assert np.any(a.counts.toarray() != c.counts.toarray())


def test_a_stream_is_the_corpus_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic_module, "BLOCK_SIZE", 16)
    stream = LDAStream(100, 3, 30, seed=5)
    assert isinstance(stream, Stored)
    assert [block.shape[0] for block in stream.blocks()] == [16] * 6 + [4]
    corpus = make_lda(100, 3, 30, seed=5)
    assert_array_equal(gather(stream).counts.toarray(), corpus.counts.toarray())
    write(tmp_path / "a.parquet", stream)
    assert_array_equal(read(tmp_path / "a.parquet").counts.toarray(), corpus.counts.toarray())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_documents": 0}, "n_documents must be at least 1, and whole; got 0"),
        ({"n_topics": 2.5}, "n_topics must be at least 1, and whole; got 2.5"),
        ({"seed": -1}, "seed must be at least 0, and whole; got -1"),
        ({"alpha": 0.0}, "alpha must be positive, and at most 1e9; got 0.0"),
        ({"eta": np.nan}, "eta must be positive, and at most 1e9; got nan"),
        ({"document_length": -1}, "document_length must be positive, and at most 1e5; got -1"),
        ({"document_length": 1e9}, "document_length must be positive, and at most 1e5; got 10"),
    ],
)
def test_sizes_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_lda(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_images": -3}, "n_images must be at least 1, and whole; got -3"),
        ({"noise_variance": -1.0}, "noise_variance must be from 0 to 1e9; got -1.0"),
        ({"activation_probability": 3}, "activation_probability must be from 0 to 1; got 3"),
    ],
)
def test_images_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_toy_images(**options)


def test_toy_images():
    X, features, active = make_toy_images(20_000, noise_variance=0.1, seed=0)
    assert (X.shape, features.shape, active.shape) == ((20_000, 16), (8, 16), (20_000, 8))
    weights = features.max(axis=1)
    assert np.all((weights >= 0.5) & (weights <= 1.0))
    assert_array_equal(np.isin(features, [0.0]) | (features == weights[:, None]), True)
    assert sorted((features > 0).sum(axis=1)) == [4, 4, 4, 4, 4, 4, 5, 6]
    assert_allclose(active.mean(axis=0), np.full(8, 0.3), atol=0.02)
    residual = X - active @ features
    assert_allclose(residual.var(), 0.1, rtol=0.02)
    assert_allclose(residual.mean(), 0.0, atol=0.003)
    assert_array_equal(make_toy_images(10, seed=4).X, make_toy_images(10, seed=4).X)
