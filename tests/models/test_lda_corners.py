"""Corners of the company of words: pairs by brute force, known topics, tables of few dimensions."""

import numpy as np
import pytest
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda
from tempering.evaluation import topic_stability
from tempering.models.lda import recovery, start
from tempering.models.lda.recovery import CorpusPieces, first_eigenvectors, table_of_pairs
from tempering.models.lda.start import anchored_topics


@pytest.fixture
def few_are_many(monkeypatch):
    """As if more than three topics were very many, and a hundred words enough for each."""
    monkeypatch.setattr(start, "FEW_TOPICS", 3)
    monkeypatch.setattr(start, "WORDS_OF_A_TOPIC", 100)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_pairs_are_counted_in_pieces(monkeypatch, n_threads):
    X = np.random.default_rng(0).poisson(0.6, size=(60, 12))
    X[7:9] = 0  # a document without words, and one of a single word
    X[8, 3] = 1
    words = np.array([0, 2, 3, 5, 9, 11])
    lengths = X.sum(axis=1)
    kept = X[lengths > 1] / np.sqrt(lengths * (lengths - 1.0))[lengths > 1, None]
    own = X[lengths > 1] / (lengths * (lengths - 1.0))[lengths > 1, None]
    expected = (kept.T @ kept - np.diag(own.sum(axis=0)))[np.ix_(words, words)]
    monkeypatch.setattr(recovery, "PIECE", X.sum() / 7)
    found = table_of_pairs(CorpusPieces(sparse.csr_matrix(X), n_threads), words)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_eigenvectors_are_the_first_ones(monkeypatch):
    monkeypatch.setattr(recovery, "ROWS_AT_A_TIME", 16)
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((50, 50)))[0]
    expected = np.append(np.linspace(5.0, 3.0, 8), rng.uniform(-1.0, 1.0, 42))
    table = ((basis * expected) @ basis.T).astype(np.float32)
    values, vectors = first_eigenvectors(table, 8, n_threads=2)
    np.testing.assert_allclose(values, expected[:8], rtol=1e-4)
    np.testing.assert_allclose(np.abs(np.einsum("ck,ck->k", vectors, basis[:, :8])), 1.0, rtol=1e-3)


def test_corners_of_a_table_without_chance_are_the_topics():
    """Documents of 20 topics at once, and words of ten: there is no anchor among them."""
    topics = np.random.default_rng(0).dirichlet(np.full(600, 0.3), size=30)
    mixed = (np.eye(30) * 0.7 + 0.7**2) / (21.0 * 22.0)  # E θθ' with α = 0.7
    found = recovery.corners((topics.T @ mixed @ topics).astype(np.float32), 30)
    expected = mixed @ topics
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-3)
    # What is left once all that they share is taken off.
    found, expected = (np.maximum(rows - topics.mean(axis=0), 0.0) for rows in (found, expected))
    assert topic_stability(found, expected) > 0.98


def test_mixed_topics_are_told_apart_without_anchors(monkeypatch):
    """Words shared out among anchors make copies here; the corners do not."""
    made = make_lda(12_000, 30, n_words=600, document_length=100, alpha=0.7, eta=0.3, seed=0)
    X = sparse.csr_matrix(made.counts)
    found = anchored_topics(X, 30).T
    monkeypatch.setattr(start, "corners_of_company", lambda *arguments: np.empty((0, 600)))
    anchored = anchored_topics(X, 30).T
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert topic_stability(found, made.topics) > 0.88 > 0.7 > topic_stability(anchored, made.topics)


def test_a_start_that_predicts_worse_is_not_taken(monkeypatch):
    made = make_lda(400, 5, n_words=100, document_length=40, alpha=0.1, eta=0.05, seed=0)
    X = sparse.csr_matrix(made.counts)

    def alike(documents, words, n):
        return np.random.default_rng(0).dirichlet(np.full(words.size, 100.0), n)

    monkeypatch.setattr(start, "corners_of_company", alike)
    found = anchored_topics(X, 5)
    monkeypatch.setattr(start, "corners_of_company", lambda *arguments: np.empty((0, 100)))
    np.testing.assert_array_equal(found, anchored_topics(X, 5))


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize(
    ("X", "most"),
    [
        (np.tile([3, 2, 4, 0, 1, 5], (60, 1)), 4),  # all documents are alike
        (np.repeat([[9, 8, 0, 0], [0, 0, 7, 9]], 40, axis=0), 4),
        (np.repeat([[9, 8, 0, 0, 0], [0, 0, 7, 9, 0], [0, 0, 0, 0, 1]], 40, axis=0), 4),
        (np.full((600, 1), 3), 1),
        (np.tile(np.eye(4), (200, 1)), 0),  # no word has company
    ],
)
def test_documents_that_tell_few_topics_apart(X, most):
    found = anchored_topics(sparse.csr_matrix(X), 4)
    assert found.shape[0] == X.shape[1]
    assert found.shape[1] <= most
    assert np.all(found >= 0)
    np.testing.assert_allclose(found.sum(axis=0), 1.0)


@pytest.mark.usefixtures("few_are_many")
def test_words_that_lead_topics_are_followed_as_before():
    X = sparse.csr_matrix(np.random.default_rng(0).poisson(0.6, size=(200, 12)))
    led = np.zeros((12, 1))
    led[[2, 5], 0] = 1.0
    assert anchored_topics(X, 5, led)[[2, 5], 0].sum() > 0.4


MIXED = {"n_words": 200, "document_length": 100, "eta": 0.05, "seed": 0}


def keeps_start(lda):
    """Whether the steps of a fit were held back by the whole run."""
    return f"delay={lda.recipe_.n_steps}.0" in str(lda.recipe_)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize(
    ("alpha", "given", "kept"), [(1.0, None, True), (2.0, 2.0, True), (0.02, None, False)]
)
def test_a_fit_of_very_many_topics_that_documents_mix_keeps_its_start(
    monkeypatch, alpha, given, kept
):
    monkeypatch.setattr(start, "START_WORDS", 10_000)
    made = make_lda(1000, 8, alpha=alpha, **MIXED)
    lda = LatentDirichletAllocation(8, doc_topic_prior=given, max_iter=3, random_state=0)
    components = lda.fit(made.counts).components_
    assert keeps_start(lda) == kept
    np.testing.assert_array_equal(components, lda.fit(made.counts).components_)
    assert topic_stability(components, made.topics) > 0.9


@pytest.mark.parametrize(
    ("alpha", "given", "kept"), [(1.0, None, True), (2.0, 2.0, False), (0.1, None, False)]
)
def test_a_fit_of_a_few_topics_that_documents_mix_keeps_its_start(alpha, given, kept):
    """But where a prior is given, nothing is tried that would tell whether they do."""
    made = make_lda(1000, 8, alpha=alpha, **MIXED)
    lda = LatentDirichletAllocation(8, doc_topic_prior=given, max_iter=3, random_state=0)
    lda.fit(made.counts)
    assert keeps_start(lda) == kept
    assert topic_stability(lda.components_, made.topics) > 0.9


def test_several_fits_may_start_from_words():
    made = make_lda(300, 8, alpha=2.0, **MIXED)
    lda = LatentDirichletAllocation(8, init="words", n_init=2, max_iter=1, random_state=0)
    assert len(lda.fit(made.counts).components_) == 8
