"""Words shared out among anchors: against least squares, brute force and known topics."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from tempering.datasets import make_lda
from tempering.evaluation import topic_stability
from tempering.models.lda import recovery, start
from tempering.models.lda.recovery import CorpusPieces, anchor_shares, mixture_weights
from tempering.models.lda.start import SPREAD, anchored_topics, farthest_rows


def test_weights_are_those_of_least_squares_on_the_simplex():
    rng = np.random.default_rng(0)
    anchors = rng.dirichlet(np.full(12, 0.2), size=4)
    anchors /= np.sqrt((anchors**2).sum(axis=1).max())
    rows = rng.dirichlet(np.full(12, 0.2), size=30)  # within the plane of the anchors, and off it
    rows[:10] = rng.dirichlet(np.ones(4), size=10) @ anchors
    gram, products = anchors @ anchors.T, rows @ anchors.T
    found = mixture_weights(products.astype(np.float32), gram.astype(np.float32))
    for row, own in zip(rows, found):
        # A sum of 1 as one more equation, of great weight.
        best, _ = nnls(np.vstack([anchors.T, np.full(4, 1e3)]), np.append(row, 1e3))
        np.testing.assert_allclose(own, best, atol=0.03)


def shares_of(X, chosen, chance=0.0):
    """By their company of all words, from a table of pairs; and the shares that are found."""
    lengths = X.sum(axis=1)
    pairs = X / (lengths * (lengths - 1))[:, None]
    company = X.T @ pairs - np.diag(pairs.sum(axis=0))
    company /= company.sum(axis=1, keepdims=True)
    words, chance = np.arange(X.shape[1]), np.full(len(chosen), chance)
    documents = CorpusPieces(sparse.csr_matrix(X))
    return company, anchor_shares(documents, words, words, company[chosen], chance)


def test_shares_explain_the_company_of_words(monkeypatch):
    monkeypatch.setattr(recovery, "ANCHORS_AT_A_TIME", 2)
    monkeypatch.setattr(recovery, "WORDS_AT_A_TIME", 4)
    X = np.random.default_rng(0).poisson(0.8, size=(60, 9))
    X = X[X.sum(axis=1) > 1]
    chosen = np.array([1, 4, 7])
    company, shares = shares_of(X, chosen)
    for row, own in zip(company, shares):
        anchors = company[chosen]
        best, _ = nnls(np.vstack([anchors.T, np.full(3, 1e3)]), np.append(row, 1e3))
        left = np.linalg.norm(row - own @ anchors) - np.linalg.norm(row - best @ anchors)
        assert left == pytest.approx(0.0, abs=1e-3)
    np.testing.assert_allclose(shares[chosen], np.eye(3), atol=0.02)


def test_chance_in_the_company_of_an_anchor_draws_no_words_to_others():
    X = np.random.default_rng(0).poisson(0.8, size=(60, 9))
    X = X[X.sum(axis=1) > 1]
    others = np.array([0, 2, 3, 5, 6, 8])
    without, shares = shares_of(X, [1, 4, 7])[1], shares_of(X, [1, 4, 7], 1e-2)[1]
    assert shares[others].max(axis=1).mean() > without[others].max(axis=1).mean() + 0.05
    # However large it is, half of an anchor's own length is left.
    np.testing.assert_allclose(shares_of(X, [1, 4, 7], 1e3)[1], shares_of(X, [1, 4, 7], 1e4)[1])


def test_topics_are_found_that_documents_mix():
    """The company of the purest word is mostly of other topics here: agreement of 0.47."""
    made = make_lda(2000, 20, n_words=300, document_length=60, alpha=0.5, eta=0.02, seed=0)
    found = anchored_topics(sparse.csr_matrix(made.counts), 20)
    assert topic_stability(found.T, made.topics) > 0.9


def test_rare_words_are_no_anchors_by_chance():
    """Of documents of 12 words; with distances as they seem the agreement is 0.5."""
    made = make_lda(2000, 15, n_words=1000, document_length=12, alpha=0.1, eta=0.05, seed=0)
    found = anchored_topics(sparse.csr_matrix(made.counts), 15)
    assert topic_stability(found.T, made.topics) > 0.75


def test_very_many_topics_start_from_company(monkeypatch):
    X = np.random.default_rng(0).poisson(0.6, size=(40, 7))
    X = X[X.sum(axis=1) > 1]
    monkeypatch.setattr(start, "FEW_TOPICS", 3)
    company, _ = shares_of(X, [0])
    weights = X / (X.sum(axis=1) * (X.sum(axis=1) - 1))[:, None]
    expected = X.T @ weights[:, farthest_rows(company, 4)]
    expected = (1 - SPREAD) * expected / expected.sum(axis=0)
    expected += SPREAD * X.sum(axis=0)[:, None] / X.sum()
    counts = sparse.csr_matrix(X)
    np.testing.assert_allclose(anchored_topics(counts, 4), expected)
    # But not where there are many words for each.
    monkeypatch.setattr(start, "WORDS_OF_A_TOPIC", X.sum() / 4)
    assert not np.allclose(anchored_topics(counts, 4), expected)


@pytest.mark.parametrize("few_topics", [100, 3])  # the better of two starts, and corners alone
def test_the_number_of_threads_moves_no_bit(monkeypatch, few_topics):
    monkeypatch.setattr(start, "FEW_TOPICS", few_topics)
    monkeypatch.setattr(start, "WORDS_OF_A_TOPIC", 100)
    monkeypatch.setattr(recovery, "ROWS_AT_A_TIME", 64)
    monkeypatch.setattr(recovery, "PIECE", 5000)
    monkeypatch.setattr(recovery, "WORDS_AT_A_TIME", 512)
    made = make_lda(400, 30, n_words=2000, document_length=60, alpha=0.1, eta=0.05, seed=0)
    X, starts = sparse.csr_matrix(made.counts), []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads, user_api="blas"):
            starts.append(anchored_topics(X, 30, n_threads=n_threads))
    np.testing.assert_array_equal(starts[0], starts[1])
    np.testing.assert_array_equal(starts[0], starts[2])


@pytest.mark.parametrize("few_topics", [100, 3])  # words shared out, and company
def test_a_corpus_in_pieces_is_one_corpus(monkeypatch, few_topics):
    monkeypatch.setattr(start, "FEW_TOPICS", few_topics)
    X = np.random.default_rng(0).poisson(0.6, size=(60, 12))
    X[7:9] = 0  # a document without words, and one of a single word
    X[8, 3] = 1
    led = np.zeros((12, 1))
    led[[2, 5], 0] = 1.0
    whole = anchored_topics(sparse.csr_matrix(X), 5, led)
    monkeypatch.setattr(recovery, "PIECE", X.sum() / 7)
    found = anchored_topics(sparse.csr_matrix(X), 5, led, n_threads=2)
    np.testing.assert_allclose(found, whole, rtol=1e-5)


def test_heavy_documents_are_not_cut_into_empty_pieces():
    documents = CorpusPieces(sparse.csr_matrix(np.full((3, 4), 1e9)))
    assert documents.bounds.tolist() == [0, 1, 2, 3]
