"""Document completion against sums written out, and sampled θ against exact posteriors."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import digamma, gammaln

from tempering.evaluation import (
    completion_score,
    gibbs_proportions,
    split_documents,
)
from tempering.evaluation.completion import mean_field_proportions


def make_corpus(n_documents=200, n_words=50, n_topics=4, seed=0, length=30):
    """Documents drawn from LDA, and their topics and proportions."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.2), n_topics)
    theta = rng.dirichlet(np.full(n_topics, 0.3), n_documents)
    counts = np.array([rng.multinomial(length, p) for p in theta @ topics])
    return sparse.csr_array(counts), topics, theta


def exact_theta(tokens, topics, alpha):
    """E[θ | tokens] by enumeration of all assignments of tokens to topics."""
    n_topics = topics.shape[0]
    log_weights, means = [], []
    for z in itertools.product(range(n_topics), repeat=len(tokens)):
        counts = np.bincount(z, minlength=n_topics)
        log_prior = np.sum(gammaln(alpha + counts) - gammaln(alpha))
        log_weights.append(log_prior + np.sum(np.log(topics[z, tokens])))
        means.append((counts + alpha) / (len(tokens) + alpha.sum()))
    weights = np.exp(np.array(log_weights) - max(log_weights))
    return weights @ np.array(means) / weights.sum()


def score_from_theta(held_out, topics, theta):
    return completion_score(held_out, held_out, topics, inference=lambda observed: theta)


class TestSplit:
    def test_halves_of_the_types(self):
        corpus, _, _ = make_corpus(length=40)
        observed, held_out = split_documents(corpus, 1)
        assert_array_equal((observed + held_out).toarray(), corpus.toarray())
        assert observed.multiply(held_out).nnz == 0
        n_types = np.diff(corpus.indptr)
        assert np.unique(n_types % 2).size == 2
        assert_array_equal(np.diff(observed.indptr), (n_types + 1) // 2)

    def test_short_documents_are_observed(self):
        observed, held_out = split_documents([[0, 0, 0], [0, 5, 0], [1, 0, 3]])
        assert_array_equal(np.diff(observed.indptr), [0, 1, 1])
        assert_array_equal(np.diff(held_out.indptr), [0, 0, 1])

    def test_the_seed_decides(self):
        corpus, _, _ = make_corpus()
        first, again, other = (split_documents(corpus, seed).observed for seed in (3, 3, 4))
        generator = split_documents(corpus, np.random.default_rng(3)).observed
        assert_array_equal(first.toarray(), again.toarray())
        assert_array_equal(first.toarray(), generator.toarray())
        assert (first != other).nnz > 0

    def test_every_type_is_held_out_as_often(self):
        corpus = sparse.csr_array(np.ones((4000, 6), dtype=int))
        part = split_documents(corpus).held_out.toarray().mean(axis=0)
        assert_allclose(part, 0.5, atol=5 * 0.5 / np.sqrt(4000))

    def test_stored_zeros_and_duplicates_are_no_types(self):
        corpus = sparse.csr_array(([2, 3, 0, 1], [1, 1, 0, 2], [0, 4]), shape=(1, 4))
        before = corpus.copy()
        observed, held_out = split_documents(corpus)
        assert_array_equal((observed + held_out).toarray(), [[0, 5, 1, 0]])
        assert (observed.nnz, held_out.nnz) == (1, 1)
        assert_array_equal(corpus.data, before.data)

    def test_any_matrix_will_do(self):
        corpus, _, _ = make_corpus()
        expected = split_documents(corpus).observed.toarray()
        for other in (sparse.csc_matrix(corpus), sparse.coo_array(corpus), corpus.toarray()):
            assert_array_equal(split_documents(other).observed.toarray(), expected)


class TestScore:
    def test_written_out(self):
        topics = np.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]])
        theta = np.array([[0.5, 0.5], [0.2, 0.8]])
        held_out = np.array([[2, 0, 1], [0, 3, 0]])
        by_hand = 2 * np.log(0.3) + np.log(0.525) + 3 * np.log(0.05 + 0.08)
        assert score_from_theta(held_out, topics, theta) == pytest.approx(by_hand / 6)

    def test_against_a_loop(self):
        corpus, topics, theta = make_corpus()
        _, held_out = split_documents(corpus)
        total = 0.0
        for d, v in np.argwhere(held_out.toarray()):
            total += held_out[d, v] * np.log(theta[d] @ topics[:, v])
        expected = total / held_out.sum()
        assert score_from_theta(held_out, topics, theta) == pytest.approx(expected)
        float32 = score_from_theta(held_out, topics.astype(np.float32), theta.astype(np.float32))
        assert float32 == pytest.approx(expected, rel=1e-6)

    def test_a_callable_gives_theta(self):
        corpus, topics, theta = make_corpus()
        observed, held_out = split_documents(corpus)
        seen = []
        score = completion_score(
            observed, held_out, topics, inference=lambda documents: seen.append(documents) or theta
        )
        assert score == score_from_theta(held_out, topics, theta)
        assert_array_equal(seen[0].toarray(), observed.toarray())

    @pytest.mark.parametrize("inference", ["gibbs", "vi"])
    def test_true_topics_score_best(self, inference):
        corpus, topics, theta = make_corpus()
        split = split_documents(corpus)
        true = completion_score(*split, topics, 0.3, inference)
        assert true < score_from_theta(split.held_out, topics, theta)
        unigram = np.tile(corpus.sum(axis=0) / corpus.sum(), (4, 1))
        assert completion_score(*split, unigram, 0.3, inference) < true - 0.1
        assert completion_score(*split, topics[:, ::-1], 0.3, inference) < true - 1

    def test_gibbs_and_vi_are_what_they_are_made_of(self):
        corpus, topics, _ = make_corpus()
        observed, held_out = split_documents(corpus)
        for inference, theta in (
            ("gibbs", gibbs_proportions(observed, topics, 0.2, seed=5, burn_in=3, n_sweeps=4)),
            ("vi", mean_field_proportions(observed, topics, 0.2)),
        ):
            score = completion_score(
                observed, held_out, topics, 0.2, inference, seed=5, burn_in=3, n_sweeps=4
            )
            assert score == score_from_theta(held_out, topics, theta)

    def test_an_impossible_word_is_minus_infinity(self):
        score = completion_score([[1, 0, 0]], [[0, 0, 1]], [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
        assert score == -np.inf


class TestGibbs:
    @pytest.mark.parametrize("alpha", [np.full(3, 0.1), np.full(3, 1.0), np.array([0.1, 0.5, 2.0])])
    @pytest.mark.parametrize("tokens", [[0, 1, 2, 3], [0, 0, 0, 4], [1, 1, 3, 3]])
    def test_against_enumeration(self, tokens, alpha):
        topics = np.random.default_rng(1).dirichlet(np.ones(5), 3)
        n_chains = 2000
        counts = np.tile(np.bincount(tokens, minlength=5), (n_chains, 1))
        theta = gibbs_proportions(counts, topics, alpha)
        error = theta.std(axis=0) / np.sqrt(n_chains)
        assert np.all(np.abs(theta.mean(axis=0) - exact_theta(tokens, topics, alpha)) < 5 * error)
        assert np.all(error < 0.005)
        assert_allclose(theta.sum(axis=1), 1)

    def test_one_long_chain_against_enumeration(self):
        topics = np.random.default_rng(1).dirichlet(np.ones(5), 3)
        alpha = np.full(3, 0.5)
        theta = gibbs_proportions([[1, 1, 1, 1, 0]], topics, alpha, n_sweeps=200_000)
        assert_allclose(theta[0], exact_theta([0, 1, 2, 3], topics, alpha), atol=0.005)

    def test_topics_that_cannot_make_a_word(self):
        topics = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0]])
        theta = gibbs_proportions([[7, 0, 0, 0], [7, 0, 0, 5], [0, 0, 0, 5]], topics, 0.5)
        assert_allclose(theta[0], [7.5 / 8.5, 0.5 / 8.5, 0.5 / 8.5])
        assert_allclose(theta[1], theta[0])
        assert_allclose(theta[2], 1 / 3)

    def test_an_empty_document_has_the_prior_mean(self):
        corpus, topics, _ = make_corpus()
        corpus = sparse.vstack([corpus, sparse.csr_array((1, 50), dtype=int)])
        alpha = np.array([1.0, 2.0, 3.0, 4.0])
        assert_allclose(gibbs_proportions(corpus, topics, alpha)[-1], alpha / 10)
        assert_allclose(gibbs_proportions(sparse.csr_array((2, 50)), topics, alpha)[1], alpha / 10)

    def test_any_number_of_threads(self):
        corpus, topics, _ = make_corpus()
        one = gibbs_proportions(corpus, topics, seed=7, n_threads=1)
        for n_threads in (2, 3, 8, None):
            assert_array_equal(gibbs_proportions(corpus, topics, seed=7, n_threads=n_threads), one)
        assert np.any(gibbs_proportions(corpus, topics, seed=8) != one)
        # A document's stream is its own: what stands after it does not matter.
        assert_array_equal(gibbs_proportions(corpus[:37], topics, seed=7), one[:37])

    def test_documents_draw_from_different_streams(self):
        _, topics, _ = make_corpus()
        counts = np.tile(np.arange(50) % 3, (300, 1))
        theta = gibbs_proportions(counts, topics, burn_in=0, n_sweeps=1)
        assert np.unique(theta, axis=0).shape[0] > 100


class TestMeanField:
    def test_against_the_fixed_point(self):
        corpus, topics, _ = make_corpus(n_documents=20)
        alpha = np.array([0.1, 0.2, 0.3, 0.4])
        counts = corpus.toarray()
        gamma = alpha + counts.sum(axis=1, keepdims=True) / 4
        for _ in range(3000):
            weights = np.exp(digamma(gamma))
            gamma = alpha + weights * (counts / (weights @ topics) @ topics.T)
        expected = gamma / gamma.sum(axis=1, keepdims=True)
        assert_allclose(mean_field_proportions(corpus, topics, alpha), expected, atol=2e-3)

    def test_impossible_words_and_empty_documents(self):
        topics = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
        theta = mean_field_proportions([[0, 7, 0], [0, 7, 5], [0, 0, 5], [0, 0, 0]], topics, 0.5)
        assert_allclose(theta[0], [7.5 / 8, 0.5 / 8], rtol=1e-4)
        assert_allclose(theta[1], theta[0], rtol=1e-6)
        assert_allclose(theta[2:], 0.5)


CORPUS, TOPICS, THETA = make_corpus(n_documents=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observed": CORPUS[:, :49]}, "observed has 49 columns, but topics has 50"),
        ({"held_out": CORPUS[:, :49]}, "held_out has 49 columns, but topics has 50"),
        ({"held_out": CORPUS[:2]}, "same documents; got 3 and 2 rows"),
        ({"held_out": CORPUS * 0}, "held_out has no words"),
        ({"observed": CORPUS.astype(float) * np.nan}, "observed must hold finite counts"),
        ({"held_out": -CORPUS}, r"held_out must hold .* row 0, column \d+ holds -\d"),
        ({"observed": CORPUS * 0.5}, "observed must hold whole counts"),
        ({"observed": np.arange(5)}, "observed must be a matrix of counts"),
        ({"topics": -TOPICS}, "topics must be finite and not negative; row 0, column 0"),
        ({"topics": TOPICS * 2}, "topics must have rows that sum to 1, but row 0 sums to 2"),
        ({"topics": TOPICS * np.nan}, "topics must be finite"),
        ({"topics": TOPICS * 0}, "topics must have something in each row"),
        ({"topics": TOPICS[0]}, r"topics must be a table .* shape \(50,\)"),
        ({"alpha": 0.0}, "alpha must be positive and finite"),
        ({"alpha": [0.1, 0.1]}, "one for each of the 4 topics"),
        ({"inference": "exact"}, "inference must be .* got 'exact'"),
        ({"inference": lambda _: THETA[:2]}, r"theta must have shape \(3, 4\)"),
        ({"inference": lambda _: THETA * 2}, "theta must have rows that sum to 1"),
        ({"seed": -1}, "seed must be at least 0, and whole; got -1"),
        ({"burn_in": -1}, "burn_in must be at least 0, and whole"),
        ({"n_sweeps": 0}, "n_sweeps must be at least 1, and whole; got 0"),
        ({"n_threads": 0}, "n_threads must be at least 1, .*; got 0"),
    ],
)
def test_errors_name_the_argument(arguments, message):
    given = {"observed": CORPUS, "held_out": CORPUS, "topics": TOPICS} | arguments
    with pytest.raises(ValueError, match=message):
        completion_score(**given)
