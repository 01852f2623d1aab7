"""The sampled local step against enumeration, and what it promises."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import gammaln

from tempering.datasets import make_lda
from tempering.models.lda.e_step import e_step
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.sampling import can_be_sampled, sample_topics
from tempering.models.lda.topics import Topics


def exact_posterior(words, topics, alpha):
    """E[z_n = k] of each token with θ summed out, by enumeration of all assignments."""
    n_topics = topics.shape[0]
    expected, total = np.zeros((len(words), n_topics)), 0.0
    for z in product(range(n_topics), repeat=len(words)):
        counts = np.bincount(z, minlength=n_topics)
        weight = np.exp(gammaln(alpha + counts).sum()) * np.prod(topics[list(z), words])
        expected[np.arange(len(words)), z] += weight
        total += weight
    return expected / total


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(6, 0.5), size=3)
    counts = np.array([[2, 0, 1, 0, 1, 0], [0, 1, 0, 3, 0, 1], [1, 1, 1, 1, 1, 1]], float)
    return topics, counts, np.array([0.3, 0.5, 0.2])


def layout(counts):
    model = LatentDirichlet(2, counts.shape[1], 0.1, 0.1)
    return model.documents(sparse.csr_matrix(counts))


def test_long_chains_count_as_enumeration_does(small):
    topics, counts, alpha = small
    rows = np.ascontiguousarray(topics.T, np.float32)
    sample = sample_topics(layout(counts), rows, alpha, b"", burn_in=100, n_sweeps=400_000)
    for d, row in enumerate(counts):
        words = np.repeat(np.arange(6), row.astype(int))
        exact = exact_posterior(words, topics, alpha).sum(axis=0)
        assert_allclose(sample.gamma[d] - alpha, exact, atol=0.01)


def test_statistics_are_nearer_to_enumeration_than_mean_field(small):
    topics, counts, alpha = small
    documents, rows = layout(counts), np.ascontiguousarray(topics.T, np.float32)
    exact = np.zeros((6, 3))
    for row in counts:
        words = np.repeat(np.arange(6), row.astype(int))
        np.add.at(exact, words, exact_posterior(words, topics, alpha))
    sampled = sample_topics(documents, rows, alpha, b"", burn_in=100, n_sweeps=400_000)
    mean_field = e_step(*documents[:3], np.log(rows), alpha, tolerance=1e-6)
    errors = [np.abs(found - exact).sum() for found in (sampled.statistics, mean_field.statistics)]
    assert errors[0] < 0.6 * errors[1], errors


def test_a_token_is_judged_by_the_others_of_its_document(small):
    """In documents of two tokens its own share would be half of what it is judged by."""
    topics, _, alpha = small
    counts = np.kron(np.eye(3), np.ones((1, 2)))
    exact = np.zeros((6, 3))
    for d in range(3):
        words = np.array([2 * d, 2 * d + 1])
        exact[words] = exact_posterior(words, topics, alpha)
    rows = np.ascontiguousarray(topics.T, np.float32)
    sample = sample_topics(layout(counts), rows, alpha, b"", burn_in=100, n_sweeps=100_000)
    assert_allclose(sample.statistics, exact, atol=0.05)


def test_words_at_a_power_count_as_enumeration_does(small):
    topics, counts, alpha = small
    model = LatentDirichlet(3, 6, alpha, 0.1, update="sampled", word_power=0.6)
    rows = model.expectations(Topics(100.0 * topics.T, 0.1)).mean_rows(np.arange(6), 0.6)
    sample = sample_topics(layout(counts), rows, alpha, b"", burn_in=100, n_sweeps=2_000_000)
    for d, row in enumerate(counts):
        words = np.repeat(np.arange(6), row.astype(int))
        exact = exact_posterior(words, topics**0.6, alpha).sum(axis=0)
        assert_allclose(sample.gamma[d] - alpha, exact, atol=0.01)


@pytest.fixture(scope="module")
def corpus():
    return make_lda(300, 8, n_words=200, document_length=40, seed=3)


def solved(corpus, n_threads=1, scale=1.0, update="sampled", s=1.0, seed=0, power=1.0):
    options = {"update": update, "word_power": power, "n_threads": n_threads}
    model = LatentDirichlet(8, 200, 0.1, 0.1, **options)
    topics = Topics(np.random.default_rng(seed).gamma(0.5, size=(200, 8)) + 0.1, 0.1)
    data = sparse.csr_matrix(corpus.counts, dtype=float) * scale
    return model.local_step(data, model.expectations(topics), s), data


def test_nothing_is_lost(corpus):
    step, data = solved(corpus)
    assert_allclose(step.gamma.sum(axis=1), 0.8 + np.asarray(data.sum(axis=1)).ravel(), rtol=1e-5)
    by_word = step.statistics.values.sum(axis=1)
    counts = np.asarray(data.sum(axis=0)).ravel()
    assert_allclose(by_word, counts[counts > 0], rtol=1e-4)


def test_the_same_bits_again_and_on_threads(corpus):
    one, two, three = (solved(corpus, n_threads)[0] for n_threads in (1, 1, 3))
    for other in (two, three):
        assert_array_equal(one.gamma, other.gamma)
        assert_array_equal(one.statistics.values, other.statistics.values)


def test_the_salt_decides_the_draws(small):
    topics, counts, alpha = small
    documents, rows = layout(counts), np.ascontiguousarray(topics.T, np.float32)
    one, again, other = (
        sample_topics(documents, rows, alpha, salt).gamma for salt in (b"1", b"1", b"2")
    )
    assert_array_equal(one, again)
    assert np.any(one != other)


def test_other_topics_make_other_draws(corpus):
    assert np.any(solved(corpus)[0].gamma != solved(corpus, seed=1)[0].gamma)


def test_below_one_tokens_go_with_the_others_and_hot_steps_are_left_alone(corpus):
    def most(step):
        return (step.gamma.max(axis=1) / step.gamma.sum(axis=1)).mean()

    assert most(solved(corpus, power=0.5)[0]) > most(solved(corpus)[0]) + 0.05
    assert_array_equal(solved(corpus, power=0.5, s=0.5)[0].gamma, solved(corpus, s=0.5)[0].gamma)


@pytest.mark.parametrize(("scale", "s"), [(0.5, 1.0), (1.0, 0.5), (100.0, 1.0)])
def test_weights_hot_steps_and_endless_repeats_are_not_sampled(corpus, scale, s):
    sampled, _ = solved(corpus, scale=scale, s=s)
    mean, _ = solved(corpus, scale=scale, s=s, update="mean")
    assert_array_equal(sampled.gamma, mean.gamma)


def test_a_power_that_the_kernels_cannot_make_is_named():
    with pytest.raises(ValueError, match=r"word_power must be from 0\.5 to 1; got 0\.4"):
        LatentDirichlet(8, 200, 0.1, 0.1, word_power=0.4)


def test_what_can_be_sampled():
    assert can_be_sampled(np.array([1, 2, 30], np.float32))
    assert not can_be_sampled(np.array([1, 2.5], np.float32))
    assert not can_be_sampled(np.array([1, 1000], np.float32))


def test_an_empty_document_keeps_its_prior():
    counts = np.zeros((2, 6))
    counts[1, 2] = 3
    rows = np.ones((1, 2), np.float32)
    sample = sample_topics(layout(counts), rows, np.array([0.2, 0.4]), b"")
    assert_allclose(sample.gamma[0], [0.2, 0.4])
    assert_allclose(sample.gamma[1].sum(), 3.6)
