"""The start temperature from the data: its parts against dense computations, its limits."""

import numpy as np
import pytest
from scipy import sparse

from tempering.models.lda.start import (
    document_contrast,
    growth_factor,
    starting_inverse_temperature,
)


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


def test_the_start_is_hotter_where_documents_differ_more_and_runs_are_longer():
    starts = [starting_inverse_temperature(mu, 0.02, 15.0) for mu in (0.1, 0.3, 0.6, 0.97)]
    assert np.all(np.diff(starts) < 0)
    lengths = [starting_inverse_temperature(0.5, 0.02, rate) for rate in (6.0, 12.0, 50.0)]
    assert np.all(np.diff(lengths) < 0)
    start = starting_inverse_temperature(0.5, 0.02, 15.0)
    assert growth_factor(start, 0.5, 0.02) > 1 + 4 / 15
    assert growth_factor(start - 0.01, 0.5, 0.02) < 1 + 4 / 15


def test_where_topics_cannot_part_there_is_no_tempering():
    assert starting_inverse_temperature(0.0, 0.02, 15.0) == 1.0
    assert starting_inverse_temperature(0.5, 0.02, 0.1) == 1.0
