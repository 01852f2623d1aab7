"""Topics for other tools."""

import sys

import numpy as np
import pytest
from scipy import sparse

from tempering.report import pyldavis_arguments, to_pyldavis


def test_the_arguments_of_pyldavis(fitted):
    empty = sparse.csr_array((2, fitted.X.shape[1]), dtype=int)
    X = sparse.vstack([fitted.X, empty], format="csr")
    arguments = pyldavis_arguments(fitted.model, X, fitted.vocabulary)
    np.testing.assert_allclose(arguments["topic_term_dists"].sum(axis=1), 1.0)
    np.testing.assert_allclose(arguments["doc_topic_dists"], fitted.model.transform(fitted.X))
    np.testing.assert_array_equal(arguments["doc_lengths"], fitted.X.sum(axis=1))
    np.testing.assert_array_equal(arguments["term_frequency"], fitted.X.sum(axis=0))
    assert arguments["vocab"] == fitted.vocabulary


@pytest.mark.slow  # It starts a process on each core.
def test_pyldavis_takes_them(fitted):
    pytest.importorskip("pyLDAvis")
    prepared = to_pyldavis(fitted.model, fitted.X, fitted.vocabulary)
    assert list(prepared.topic_coordinates.index) == list(range(5))
    components = fitted.model.components_
    best = fitted.vocabulary[components[2].argmax()]
    words = prepared.topic_info.query("Category == 'Topic2'")
    assert words.loc[words.logprob.idxmax(), "Term"] == best


def test_a_missing_package_is_named(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyLDAvis", None)
    with pytest.raises(ImportError, match="pip install pyLDAvis"):
        to_pyldavis(fitted.model, fitted.X)
