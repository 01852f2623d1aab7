"""Digests by which the documents of a fit are known."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.estimators import fitted_documents
from tempering.estimators.fitted_documents import count_fitted, digests, remember_documents


@pytest.fixture
def counts():
    return sparse.csr_array(np.random.default_rng(0).poisson(0.5, size=(200, 30)))


def test_digests_depend_on_words_and_counts_alone(counts):
    expected = digests(counts)
    assert expected.size == (counts.sum(axis=1) > 0).sum()
    assert np.unique(expected).size == expected.size
    indices, data = counts.indices.copy(), counts.data.copy()
    for row in range(200):
        entries = slice(counts.indptr[row], counts.indptr[row + 1])
        indices[entries], data[entries] = indices[entries][::-1], data[entries][::-1]
    other = sparse.csr_array((data.astype(np.float64), indices, counts.indptr), counts.shape)
    np.testing.assert_array_equal(digests(other), expected)
    other.data[0] += 1
    assert (digests(other) != expected).sum() == 1


@pytest.mark.parametrize("n_stored", [1000, 50])
def test_fitted_documents_are_counted(counts, monkeypatch, n_stored):
    monkeypatch.setattr(fitted_documents, "MOST", n_stored)
    monkeypatch.setattr(fitted_documents, "ROWS", 7)
    model = SimpleNamespace()
    remember_documents(model, counts[:120])
    assert model.fitted_documents_.size == min(n_stored, 120)
    n_looked_up = {1000: 120, 50: 50}[n_stored]
    assert count_fitted(model, counts[:120]) == (n_looked_up, n_looked_up)
    n_fitted, n_others = count_fitted(model, counts[120:])
    assert n_fitted == 0
    assert 0 < n_others <= 80
    assert count_fitted(model, counts) == (n_looked_up, n_looked_up + n_others)


def test_a_stream_of_documents_forgets_those_of_a_fit(counts):
    model = LatentDirichletAllocation(2, max_iter=1, random_state=0).fit(counts)
    assert count_fitted(model, counts.toarray()) == (200, 200)
    model.partial_fit(counts[:100])
    assert count_fitted(model, counts)[1] == 0
