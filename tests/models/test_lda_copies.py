"""Topics that are copies: found, and begun anew with a share of all others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda
from tempering.models.lda import model
from tempering.models.lda.copies import overlapping, sizes_of, without_copies
from tempering.models.lda.topics import Topics

PRIOR = 0.1


def topics_of(counts):
    return Topics(np.asarray(counts, np.float32).T + np.float32(PRIOR), PRIOR)


def overlapping_pairs(counts, overlap):
    topics = topics_of(counts)
    return [tuple(pair) for pair in np.argwhere(overlapping(topics, sizes_of(topics), overlap))]


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


def test_one_of_two_copies_takes_all_and_the_other_begins_with_a_few_of_all_words(counts):
    after = without_copies(topics_of(counts)).parameters().T - PRIOR
    assert_allclose(after.sum(axis=0), counts.sum(axis=0), rtol=1e-3, atol=1e-2)  # no word is lost
    assert_allclose(after[3].sum(), 0.1 * counts.sum() / 4, rtol=0.5)
    held = np.array([counts[0] + counts[3], counts[1], counts[2]])
    some = held.sum(axis=0) > 1.0
    share = after[3, some] / held[:, some].sum(axis=0)
    assert np.all((share >= 0) & (share <= 0.05))
    assert np.ptp(share) > 0.03
    assert_allclose(after[:3, some], held[:, some] * (1 - share), rtol=1e-3, atol=1e-2)
    assert overlapping_pairs(after, 0.95) == []


@pytest.mark.parametrize("shared", ["frequent", "rare"])
def test_copies_may_differ_in_frequent_words_or_in_rare_ones(shared):
    rng = np.random.default_rng(1)
    frequent, rare = 2000, 4000
    counts = np.zeros((frequent + rare, 3))
    counts[:frequent, 2] = 1000.0  # what makes them frequent
    same, other = slice(frequent), slice(frequent, None)
    if shared == "rare":
        same, other = other, same
    size = counts[same].shape[0]
    counts[same, :2] = rng.gamma(1.0, size=(size, 1))
    rows = np.arange(frequent + rare)[other]
    counts[rows[::2], 0] = counts[rows[1::2], 1] = 0.05 if shared == "rare" else 0.5
    after = without_copies(topics_of(counts.T)).parameters() - PRIOR
    assert_allclose(after[same, 0], 2 * counts[same, 0], rtol=0.1)


def test_topics_without_copies_stay_the_same_object(counts):
    topics = topics_of(counts[:3])
    assert without_copies(topics) is topics


def test_it_is_a_function_of_the_topics(counts):
    first, second = (without_copies(topics_of(counts)).parameters() for _ in range(2))
    assert_array_equal(first, second)


def test_of_three_copies_one_is_left(counts):
    counts = np.vstack([counts, 2 * counts[0]])
    after = without_copies(topics_of(counts)).parameters().T - PRIOR
    assert overlapping_pairs(after, 0.95) == []
    assert_allclose(after.sum(axis=0), counts.sum(axis=0), rtol=1e-3, atol=1e-2)


def test_no_topic_begins_anew_at_the_last_step(counts):
    lda = model.LatentDirichlet(4, 40, 0.1, PRIOR, update="sampled")
    topics = topics_of(counts)
    assert lda.revise(topics, 0.8, 0.9) is not topics
    assert lda.revise(topics, 0.91, 0.94) is topics
    assert lda.revise(topics, 0.98, 0.995) is not topics
    assert lda.revise(topics, 0.8, 1.0) is topics


def test_topics_settle_late_in_a_run_once_and_for_all():
    settled = model.Settled(0.8, 0.7, 0.02)
    lda = model.LatentDirichlet(4, 40, 0.1, PRIOR, update="sampled", settled=settled)
    topics = topics_of(np.eye(4, 40))
    lda.revise(topics, 0.7, 0.79)
    assert (lda.word_power, lda.doc_topic_prior[0]) == (1.0, 0.1)
    for parts in ((0.79, 0.8), (0.8, 0.81), (0.99, 1.0), (3.0, 3.1)):
        lda.revise(topics, *parts)
        assert lda.word_power == 0.7
        assert_array_equal(lda.doc_topic_prior, np.full(4, 0.02))


@pytest.mark.parametrize("update", ["variational", "mean", "collapsed"])
def test_where_topics_are_not_sampled_nothing_settles(update, counts):
    settled = model.Settled(0.8, 0.7, 0.02)
    lda = model.LatentDirichlet(4, 40, 0.1, PRIOR, update=update, settled=settled)
    topics = topics_of(counts)
    assert lda.revise(topics, 0.84, 0.86) is topics
    assert (lda.word_power, lda.doc_topic_prior[0]) == (1.0, 0.1)


def test_a_prior_that_was_given_stays():
    settled = model.Settled(0.8, 0.7)
    lda = model.LatentDirichlet(
        4, 40, [0.1, 0.2, 0.3, 0.4], PRIOR, update="sampled", settled=settled
    )
    lda.revise(topics_of(np.eye(4, 40)), 0.79, 0.8)
    assert_array_equal(lda.doc_topic_prior, [0.1, 0.2, 0.3, 0.4])


def test_topics_that_were_missed_are_found(monkeypatch):
    """From random starts two topics end up as one here and another as two, or copies begin anew."""
    data = make_lda(1000, 10, n_words=500, document_length=200, seed=3)

    def missed(seed):
        lda = LatentDirichletAllocation(
            10, init="random", learning_offset=16.0, random_state=seed, n_jobs=1
        ).fit(data.counts)
        unit, truth = (
            table / np.linalg.norm(table, axis=1, keepdims=True)
            for table in (lda.components_, data.topics)
        )
        return int(np.sum((truth @ unit.T).max(axis=1) < 0.8))

    with_revisions = sum(missed(seed) for seed in (0, 1))
    monkeypatch.setattr(model, "REVISIONS", ())
    without = sum(missed(seed) for seed in (0, 1))
    assert with_revisions < without
