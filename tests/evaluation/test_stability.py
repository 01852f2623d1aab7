"""Matching of topics against all permutations."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tempering.evaluation import match_topics, topic_stability


@pytest.fixture
def fits():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.full(20, 0.3), size=(2, 5))


def cosine(x, y):
    return x @ y / np.sqrt((x @ x) * (y @ y))


def test_against_all_permutations(fits):
    a, b = fits
    best = max(
        itertools.permutations(range(5)),
        key=lambda order: sum(cosine(a[k], b[j]) for k, j in enumerate(order)),
    )
    indices, similarities = match_topics(a, b)
    assert_array_equal(indices, best)
    assert_allclose(similarities, [cosine(a[k], b[j]) for k, j in enumerate(best)])
    assert topic_stability(a, b) == pytest.approx(similarities.mean())


def test_the_order_of_topics_does_not_matter(fits):
    a, b = fits
    order = np.array([3, 0, 4, 1, 2])
    indices, similarities = match_topics(a, a[order])
    assert_array_equal(order[indices], range(5))
    assert_allclose(similarities, 1)
    assert similarities.max() <= 1
    assert topic_stability(a, b[order]) == pytest.approx(topic_stability(a, b))
    assert topic_stability(a, b) == pytest.approx(topic_stability(b, a))


def test_the_scale_of_topics_does_not_matter(fits):
    a, b = fits
    assert topic_stability(a * 1e-200, b * 1e200) == pytest.approx(topic_stability(a, b))
    assert topic_stability([[1, 0], [0, 1]], [[0, 5], [2, 0]]) == 1


def test_errors_name_the_argument(fits):
    a, b = fits
    with pytest.raises(ValueError, match=r"a and b must .* shapes \(5, 20\) and \(5, 19\)"):
        match_topics(a, b[:, :19])
    with pytest.raises(ValueError, match="a and b must have the same number of topics"):
        match_topics(a, b[:4])
    with pytest.raises(ValueError, match="b must be finite and not negative"):
        match_topics(a, -b)
    with pytest.raises(ValueError, match="a must have something in each row, but row 0 is all 0"):
        match_topics(a * 0, b)
