"""Topics that are copies: found, and replaced by what another topic has too much of."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda
from tempering.models.lda import model
from tempering.models.lda.copies import similar_pairs, without_copies
from tempering.models.lda.topics import Topics

PRIOR = 0.1


def topics_of(counts):
    return Topics(np.asarray(counts, np.float32).T + np.float32(PRIOR), PRIOR)


@pytest.fixture
def counts():
    """Four topics of 40 words; the last is a copy of the first."""
    rng = np.random.default_rng(0)
    counts = 1000 * rng.dirichlet(np.full(40, 0.1), 3)
    counts[1] *= 5  # the largest
    return np.vstack([counts, 0.5 * counts[0]])


def test_pairs_are_found_by_their_direction():
    topics = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 1.0], [3.0, 0.1, 0.0], [0.0, 0.0, 0.0]])
    assert similar_pairs(topics, 0.9) == [(0, 2)]


def test_another_topic_mostly_the_largest_is_shared_with_one_of_two_copies(counts):
    times = {1: 0, 2: 0}
    for scale in range(1, 41):  # other sizes of all topics make other draws
        before = scale * counts
        after = without_copies(topics_of(before)).parameters().T - PRIOR
        assert_allclose(after[0], before[0] + before[3], rtol=1e-3, atol=1e-2)  # holds both
        third = 1 if not np.allclose(after[1], before[1], rtol=1e-3, atol=1e-2) else 2
        assert_allclose(after[third] + after[3], before[third], rtol=1e-3, atol=1e-2)  # shared out
        assert_allclose(after[3 - third], before[3 - third], rtol=1e-3, atol=1e-2)  # stays
        assert similar_pairs(after, 0.98) == []
        times[third] += 1
    assert times[1] > 3 * times[2] > 0  # in 11 of 12 cases it is the one with five times the words


def test_topics_without_copies_stay_the_same_object(counts):
    topics = topics_of(counts[:3])
    assert without_copies(topics) is topics


def test_it_is_a_function_of_the_topics(counts):
    first, second = (without_copies(topics_of(counts)).parameters() for _ in range(2))
    assert_array_equal(first, second)


def test_two_copies_alone_stay_as_they_are():
    topics = topics_of([[5.0, 1.0], [10.0, 2.0]])
    assert_allclose(without_copies(topics).parameters(), topics.parameters(), rtol=1e-6)


def test_topics_that_were_missed_are_found(monkeypatch):
    """On these data two topics end up as one and another as two, unless copies are parted."""
    data = make_lda(1000, 10, n_words=500, document_length=200, seed=3)

    def missed(seed):
        lda = LatentDirichletAllocation(10, random_state=seed, n_jobs=1).fit(data.counts)
        unit, truth = (
            table / np.linalg.norm(table, axis=1, keepdims=True)
            for table in (lda.components_, data.topics)
        )
        return int(np.sum((truth @ unit.T).max(axis=1) < 0.8))

    with_parting = sum(missed(seed) for seed in (0, 1))
    monkeypatch.setattr(model, "REVISIONS", ())
    without = sum(missed(seed) for seed in (0, 1))
    assert with_parting < without
