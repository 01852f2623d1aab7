"""Learned temperatures: who is hot, and what it is worth to predict with them."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pictures import drawn
from reproduction import temperatures
from reproduction.experiment import Setting
from reproduction.lda_temperatures import (
    extremes,
    foreign_documents,
    separation,
    traits,
)
from reproduction.runner import run_experiment


@pytest.mark.slow
def test_the_quick_form_runs_draws_and_judges(tmp_path):
    rows = run_experiment(temperatures.EXPERIMENT, Setting(seeds=1), tmp_path)
    assert drawn(tmp_path / "temperatures.png")
    judged = json.loads((tmp_path / "temperatures.json").read_text())["claims"]
    assert len(judged) == 4
    assert all("nan" not in claim["numbers"] for claim in judged)
    by_method = {row["method"]: row for row in rows}
    weights = np.array(by_method["VT"]["weights"])
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=0.01)
    # At T = 1 for all, the learned temperature makes no difference to what is predicted.
    assert by_method["VT"]["tempered"] == pytest.approx(by_method["VT"]["scan"][-1], abs=0.02)
    # Words drawn one by one fit no topic.
    assert by_method["LVT"]["separation_uniform"] > 0.9


@given(st.lists(st.integers(0, 5), min_size=1), st.lists(st.integers(0, 5), min_size=1))
def test_separation_is_the_share_of_pairs_that_are_in_order(hot, others):
    counted = np.mean([(a > b) + 0.5 * (a == b) for a, b in product(hot, others)])
    assert separation(np.array(hot), np.array(others)) == pytest.approx(counted)


def test_foreign_documents_have_the_lengths_of_real_ones():
    counts = sparse.csr_matrix([[3, 0, 1], [0, 0, 0], [1, 1, 1]])
    drawn = foreign_documents(counts, np.array([0.0, 0.5, 0.5]), seed=0)
    np.testing.assert_array_equal(np.ravel(drawn.sum(axis=1)), [4, 0, 3])
    assert drawn[:, [0]].nnz == 0


def test_traits_of_documents():
    counts = sparse.csr_matrix([[3, 0, 1], [0, 2, 0]])
    described = traits(counts, np.array([0.5, 0.25, 0.25]))
    np.testing.assert_array_equal(described["length"], [4, 2])
    np.testing.assert_array_equal(described["variety"], [0.5, 0.5])
    np.testing.assert_allclose(described["rarity"], [(3 * np.log(2) + np.log(4)) / 4, np.log(4)])


def test_the_hottest_documents_are_shown_by_their_telling_words():
    counts = sparse.csr_matrix([[5, 1, 0], [0, 0, 2], [1, 0, 0]])
    shown = extremes(
        counts, np.array([1.0, 3.0, 2.0]), np.array([0.9, 0.05, 0.05]), ["the", "quark", "gene"]
    )
    assert shown["hottest"][0] == "T = 3.00, 2 words: gene"
    assert shown["coldest"][0] == "T = 1.00, 6 words: quark, the"
