"""NPMI against a double loop over pairs of words."""

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from tempering.evaluation import c_npmi, npmi, top_words


def npmi_by_loops(topics, counts, n_words):
    """The definition, pair by pair."""
    occurs = counts > 0
    values = []
    for topic in topics:
        words = sorted(range(topic.size), key=lambda v: (-topic[v], v))[:n_words]
        pairs = []
        for i in range(n_words):
            for j in range(i):
                a, b = occurs[:, words[i]], occurs[:, words[j]]
                both = np.mean(a & b)
                if both == 0:
                    pairs.append(-1.0)
                elif both == 1:
                    pairs.append(0.0)
                else:
                    pairs.append(np.log(both / (a.mean() * b.mean())) / -np.log(both))
        values.append(np.mean(pairs))
    return values


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.3), 6)
    counts = rng.poisson(0.3, size=(80, 30))
    counts[:, 3] = 0
    counts[:, 4] = 2
    counts[:, 5] = 1
    topics[0, [3, 4, 5]] = 0.2
    return topics, counts


@pytest.mark.parametrize("n_words", [2, 5, 10, 30])
def test_against_loops(problem, n_words):
    topics, counts = problem
    expected = npmi_by_loops(topics, counts, n_words)
    for reference in (sparse.csr_array(counts), sparse.csc_matrix(counts), counts):
        assert_allclose(npmi(topics, reference, n_words), expected)


def test_extremes():
    topics = np.array([[0.6, 0.4, 0, 0, 0], [0, 0.6, 0.4, 0, 0], [0, 0, 0, 0.5, 0.5]])
    counts = [[1, 1, 0, 0, 0], [2, 3, 0, 0, 0], [0, 0, 4, 0, 0], [0, 0, 1, 1, 0]]
    # Always together; never together; a word that never occurs.
    assert_allclose(npmi(topics, counts, n_words=2), [1, -1, -1])


def test_only_presence_counts(problem):
    topics, counts = problem
    assert_array_equal(npmi(topics, counts), npmi(topics * 7, counts > 0))


def test_stored_zeros_are_absent():
    stored = sparse.csr_array(([1, 0, 1, 1], [0, 1, 0, 1], [0, 2, 3, 4]), shape=(3, 2))
    assert_array_equal(npmi([[0.5, 0.5]], stored, 2), npmi([[0.5, 0.5]], stored.toarray(), 2))


def test_independent_words_are_near_zero():
    rng = np.random.default_rng(0)
    counts = rng.random((20_000, 10)) < 0.3
    assert abs(npmi(np.full((1, 10), 0.1), counts)[0]) < 0.01


def test_top_words_break_ties_by_the_vocabulary():
    topics = [[0.2, 0.3, 0.2, 0.2, 0.1], [0, 0, 0, 0, 1]]
    assert_array_equal(top_words(topics, 3), [[1, 0, 2], [4, 0, 1]])
    rng = np.random.default_rng(0)
    for topics in (rng.integers(0, 4, size=(50, 20)) + 1, rng.random((50, 20))):
        assert_array_equal(top_words(topics, 7), np.argsort(-topics, axis=1, kind="stable")[:, :7])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.ones((3, 4))}, "X has 4 columns, but topics has 5"),
        ({"X": -np.ones((3, 5))}, "X must hold finite counts"),
        ({"X": "counts.npz"}, "X must be a matrix .*; got 'counts.npz'. .*tempering.corpus.read"),
        ({"X": [[None] * 5]}, "X must hold finite counts"),
        ({"X": [[10**400] * 5]}, "X must be a table of numbers"),
        ({"X": np.ones((0, 5))}, "X must have at least one document"),
        ({"topics": -np.ones((2, 5))}, "topics must be finite and not negative"),
        ({"topics": np.full((2, 5), np.inf)}, "topics must be finite"),
        ({"n_words": 1}, "n_words must be at least 2"),
        ({"n_words": 6}, "n_words must be a whole number from 1 to 5"),
    ],
)
def test_errors_name_the_argument(arguments, message):
    given = {"topics": np.ones((2, 5)), "X": np.ones((3, 5)), "n_words": 3} | arguments
    with pytest.raises(ValueError, match=message):
        npmi(**given)


def test_a_frame_of_nullable_numbers_is_a_table():
    X = np.random.default_rng(0).integers(0, 2, (20, 5))
    frame = pandas.DataFrame(X).astype("Int64")
    assert_array_equal(npmi(np.ones((2, 5)), frame, 3), npmi(np.ones((2, 5)), X, 3))


def test_a_top_word_twice_in_the_vocabulary_is_refused():
    """Either column would count for the other, or for nothing."""
    topics, texts = [[0.5, 0.3, 0.2]], [["sun", "sea", "sun"]]
    with pytest.raises(ValueError, match="vocabulary has a top word twice"):
        c_npmi(topics, texts, ["sun", "sun", "sea"], n_words=2)
