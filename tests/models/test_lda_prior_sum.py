"""The sum of α is raised where documents mix many topics, and what else holds late in a run."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.priors import raised_prior
from tempering.models.lda.sampling import Settled
from tempering.models.lda.topics import Topics

PRIOR = 0.1


def drawn(alpha, seed=0, n_documents=300):
    """Documents, and the topics that they were drawn from, as if these had been learned."""
    data = make_lda(
        n_documents, 10, n_words=400, document_length=100, alpha=alpha, eta=0.05, seed=seed
    )
    return data.counts, Topics(1e4 * data.topics.T + PRIOR, PRIOR)


@pytest.mark.parametrize("alpha", [0.4, 1.6])
def test_the_sum_is_raised_to_about_what_documents_were_drawn_with(alpha):
    counts, topics = drawn(alpha)
    raised = raised_prior(topics, np.full(10, 0.05), counts)
    assert alpha / 4 <= raised.mean() <= 2 * alpha


def test_it_is_never_made_smaller():
    counts, topics = drawn(0.02)
    prior = np.full(10, 0.1)
    assert raised_prior(topics, prior, counts) is prior


def test_topics_that_tell_documents_nothing_do_not_raise_it():
    """The flattest proportions would then be the best, however few topics documents are of."""
    counts, _ = drawn(0.1)
    frequencies = np.asarray(counts.sum(axis=0)).reshape(-1, 1) + PRIOR
    noise = np.random.default_rng(0).gamma(1.0, size=(400, 10))
    prior = np.full(10, 0.05)
    assert raised_prior(Topics(frequencies * noise, PRIOR), prior, counts) is prior


def test_shares_stay_and_threads_change_nothing():
    counts, topics = drawn(1.0)
    prior = np.linspace(0.02, 0.08, 10)
    raised = raised_prior(topics, prior, counts)
    assert raised.sum() > prior.sum()
    np.testing.assert_allclose(raised / raised.sum(), prior / prior.sum())
    assert_array_equal(raised, raised_prior(topics, prior, counts, n_threads=3))


def test_weights_that_are_no_counts_and_endless_repeats_tell_nothing():
    counts, topics = drawn(1.0)
    prior = np.full(10, 0.05)
    for factor in (0.5, 1e9):
        assert raised_prior(topics, prior, counts * factor) is prior
    assert raised_prior(topics, prior, counts[:0]) is prior


@pytest.mark.parametrize(("length", "n_predicted"), [(6, 3000), (60, 300), (200, 300)])
def test_of_short_documents_more_are_predicted(length, n_predicted, monkeypatch):
    predicted = []
    monkeypatch.setattr(
        LatentDirichlet, "_raise_prior", lambda own, _: predicted.append(own.prior_documents.shape)
    )
    X = np.zeros((4000, 3), int)
    X[np.arange(4000), np.arange(4000) % 3] = length
    LatentDirichletAllocation(2, max_iter=1, batch_size=2000, random_state=0, n_jobs=1).fit(X)
    assert set(predicted) == {(n_predicted, 3)}


@pytest.mark.slow
def test_topics_of_mixed_documents_are_better_for_it():
    data = make_lda(1500, 10, n_words=500, document_length=100, alpha=1.0, eta=0.05, seed=0)
    fits = [
        LatentDirichletAllocation(10, doc_topic_prior=prior, random_state=0).fit(data.counts[:1200])
        for prior in (None, 0.1)
    ]
    sums = [fitted.doc_topic_prior_.sum() for fitted in fits]
    assert sums[0] >= 2 * sums[1]
    scores = [fitted.score(data.counts[1200:]) for fitted in fits]
    assert scores[0] > scores[1] + 0.01


def model(**options):
    return LatentDirichlet(4, 40, [0.1, 0.2, 0.3, 0.4], PRIOR, **options)


def test_topics_settle_late_in_a_run_and_once():
    lda = model(update="sampled", settled=Settled(0.8, 0.7, 0.5))
    topics = Topics(np.eye(40, 4) + PRIOR, PRIOR)
    assert lda.revise(topics, 0.7, 0.79) is topics
    assert (lda.word_power, lda.doc_topic_prior[0]) == (1.0, 0.1)
    for parts in ((0.79, 0.8), (0.8, 0.81), (0.99, 1.0), (3.0, 3.1)):
        assert lda.revise(topics, *parts) is topics
        assert lda.word_power == 0.7
        assert_array_equal(lda.doc_topic_prior, [0.05, 0.1, 0.15, 0.2])


@pytest.mark.parametrize("update", ["variational", "mean"])
def test_where_topics_are_not_sampled_nothing_settles(update):
    counts, topics = drawn(1.0)
    lda = LatentDirichlet(
        10, 400, 0.05, PRIOR, update=update, settled=Settled(0.8, 0.7), prior_documents=counts
    )
    for parts in ((0.4, 0.5), (0.79, 0.86)):
        assert lda.revise(topics, *parts) is topics
    assert (lda.word_power, lda.doc_topic_prior[0]) == (1.0, 0.05)


def test_workers_are_not_sent_the_documents():
    counts, _ = drawn(1.0)
    lda = LatentDirichlet(10, 400, 0.05, PRIOR, update="sampled", prior_documents=counts)
    assert lda.for_workers().prior_documents is None
    assert lda.prior_documents is counts


def test_the_prior_of_short_documents_does_not_count_for_more_than_their_words():
    """Of words that never come twice no half tells the other: a flatter prior predicts better."""
    rng = np.random.default_rng(0)
    popular, own = rng.dirichlet(np.full(100, 0.3)), rng.dirichlet(np.full(100, 0.02), 20)
    visits = np.zeros((3000, 100), np.int64)
    for row in visits:
        shares = 0.5 * popular + 0.5 * own[rng.integers(20)]
        row[rng.choice(100, p=shares, size=6)] = 1
    lda = LatentDirichletAllocation(40, random_state=0).fit(visits)
    assert lda.doc_topic_prior_.sum() <= visits.sum(axis=1).mean()
    frequencies = visits.sum(axis=0) / visits.sum()
    assert lda.completion_score(visits) > float(frequencies @ np.log(frequencies + 1e-12)) + 0.1
