"""The start temperature from the data: its parts against dense computations, its limits."""

import numpy as np
import pytest
from scipy import sparse

from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.start import (
    FOLDINGS,
    document_contrast,
    growth_factor,
    starting_inverse_temperature,
)
from tempering.models.lda.topics import Topics


def test_contrast_is_the_second_singular_value():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7, size=(40, 25))
    X[3], X[:, 4] = 0, 0  # an empty document and an unused word
    used = X[X.sum(axis=1) > 0][:, X.sum(axis=0) > 0]
    scaled = used / np.sqrt(np.outer(used.sum(axis=1), used.sum(axis=0)))
    singular = np.linalg.svd(scaled, compute_uv=False)
    assert singular[0] == pytest.approx(1.0)
    contrast = document_contrast(sparse.csr_matrix(X), rng)
    assert contrast == pytest.approx(singular[1] ** 2, rel=1e-6)


def test_contrast_of_extreme_corpora():
    rng = np.random.default_rng(0)
    alike = sparse.csr_matrix(np.tile([3, 2, 1, 4], (30, 1)))
    apart = sparse.csr_matrix(np.kron(np.eye(3), np.full((10, 4), 2)))
    assert document_contrast(alike, rng) == pytest.approx(0.0, abs=1e-8)
    assert document_contrast(apart, rng) == pytest.approx(1.0)
    assert document_contrast(sparse.csr_matrix(np.ones((1, 5))), rng) == 0.0
    assert document_contrast(sparse.csr_matrix(np.ones((16, 4))), rng) == 0.0


def start(contrast=0.5, prior=0.02, words=2.0, total_rate=15.0):
    return starting_inverse_temperature(contrast, prior, words, total_rate, sweeps=5)


def test_the_start_is_hotter_where_documents_differ_more_or_are_shorter_and_runs_are_longer():
    assert np.all(np.diff([start(contrast=mu) for mu in (0.1, 0.3, 0.6, 0.97)]) < 0)
    assert np.all(np.diff([start(words=n) for n in (10.0, 2.0, 0.5, 0.1)]) < 0)
    assert np.all(np.diff([start(total_rate=rate) for rate in (10.0, 20.0, 50.0)]) < 0)
    factors = [growth_factor(start() + d, 0.5, 0.02, 2.0, sweeps=5) for d in (0.0, -0.01)]
    assert factors[0] > 1 + FOLDINGS / 15 > factors[1]


@pytest.mark.parametrize("update", ["variational", "mean"])
@pytest.mark.parametrize(("length", "s"), [(8, 0.3), (60, 0.6), (60, 0.9)])
def test_the_growth_factor_is_that_of_the_model(update, length, s):
    """Two kinds of documents, topics that differ a little: one full update, by the real kernels."""
    n_topics, n_words, n_documents, alpha, sweeps = 4, 40, 200, 0.05, 4
    rng = np.random.default_rng(0)
    kinds = np.full((2, n_words), 1.0)
    kinds[0, ::2] = kinds[1, 1::2] = 5.0
    # Expected counts instead of draws: then μ is that of the two kinds alone.
    X = np.repeat(kinds / kinds.sum(axis=1, keepdims=True) * length, n_documents // 2, axis=0)
    mu = document_contrast(sparse.csr_matrix(X), rng)
    direction = np.outer(rng.standard_normal(n_topics), kinds[0] - kinds[1])
    direction -= direction.mean(axis=0)
    model = LatentDirichlet(
        n_topics, n_words, alpha, 1e-6, update=update, tolerance=0.0,
        min_iterations=sweeps, max_iterations=sweeps,
    )  # fmt: skip
    shares = X.sum(axis=0) / X.sum()
    # Many words a topic: then digamma is the logarithm, and both updates are one in β.
    topics = Topics((1e6 * shares * (1.0 + 1e-3 * direction)).T, 1e-6)
    solved = model.local_step(sparse.csr_matrix(X), model.expectations(topics), s)
    after = solved.statistics.values.T.astype(np.float64)
    after = after / after.sum(axis=1, keepdims=True) / shares - 1.0
    after -= after.mean(axis=0)
    grown = np.linalg.norm(after) / np.linalg.norm(1e-3 * direction)
    expected = growth_factor(s, mu, alpha, length / n_topics, sweeps=sweeps)
    assert grown == pytest.approx(expected, rel=0.01)


def test_where_topics_cannot_part_there_is_no_tempering():
    assert start(contrast=0.0) == 1.0
    assert start(total_rate=0.1) == 1.0
