"""Topics that are copies are found."""

import numpy as np
import pytest

from tempering.estimators.lda import sizes_and_overlaps
from tempering.models.lda.topics import Topics

PRIOR = 0.1


def topics_of(counts):
    return Topics(np.asarray(counts, np.float32).T + np.float32(PRIOR), PRIOR)


def overlapping_pairs(counts, overlap):
    _, overlaps = sizes_and_overlaps(topics_of(counts))
    return [tuple(pair) for pair in np.argwhere(np.triu(overlaps > overlap, 1))]


@pytest.fixture
def counts():
    """Four topics of 40 words; the last is a copy of the first."""
    counts = 1000 * np.random.default_rng(0).dirichlet(np.full(40, 0.1), 3)
    return np.vstack([counts, 0.5 * counts[0]])


def test_pairs_are_found_whatever_their_sizes():
    topics = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 1.0], [3.0, 0.1, 0.0], [0.0, 0.0, 0.0]])
    assert overlapping_pairs(topics, 0.9) == [(0, 2)]


def test_topics_are_no_copies_because_they_share_their_first_word():
    topics = np.full((2, 101), 0.0)
    topics[:, 0] = 0.5
    topics[0, 1:51] = topics[1, 51:] = 0.01
    assert topics[0] @ topics[1] > 0.98 * (topics[0] @ topics[0])  # so a cosine takes them for one
    assert overlapping_pairs(topics, 0.9) == []
    assert overlapping_pairs(topics, 0.49) == [(0, 1)]


@pytest.mark.parametrize("alike", ["frequent", "rare"])
def test_topics_that_differ_in_half_of_what_they_hold_are_no_copies(alike):
    rng = np.random.default_rng(1)
    counts = np.zeros((3, 6000))
    counts[2, :2000] = 1000.0  # what makes them frequent
    same, other = slice(2000), slice(2000, None)
    if alike == "rare":
        same, other = other, same
    counts[:2, same] = rng.gamma(1.0, size=counts[0, same].size)
    half = counts[0, same].sum() / counts[0, other].size
    counts[0, other][::2] = counts[1, other][1::2] = 2 * half
    assert overlapping_pairs(counts, 0.95) == []
    assert overlapping_pairs(counts, 0.45)[:1] == [(0, 1)]
    counts[:2, other] = 0.0
    assert overlapping_pairs(counts, 0.999) == [(0, 1)]
