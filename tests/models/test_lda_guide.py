"""Priors of words that differ from topic to topic, against plain formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma, gammaln

from tempering import Checkpoint, fit
from tempering.datasets import make_lda
from tempering.models.base import UnsupportedTemperature
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.start import farthest_rows
from tempering.models.lda.topics import Guide, TopicPrior, Topics, WordStatistics, split_prior
from tempering.temperature import VariationalTempering


def prior_matrix(rng, n_topics=4, n_words=30, eta=0.2):
    matrix = np.full((n_topics, n_words), eta)
    matrix[:, rng.choice(n_words, 9, replace=False)] += rng.gamma(2.0, size=(n_topics, 9))
    return matrix


def test_the_matrix_comes_back():
    matrix = prior_matrix(np.random.default_rng(0))
    matrix[1, 3] = 0.0
    eta, guide = split_prior(matrix)
    assert eta == 0.2
    assert_allclose(guide.matrix(eta, 30), matrix, rtol=1e-6)
    assert split_prior(np.full((3, 4), 0.5)) == (0.5, None)


@pytest.mark.parametrize("prior_weight", [1.0, 0.4])
def test_the_divergence_is_that_of_dirichlets(prior_weight):
    rng = np.random.default_rng(1)
    matrix = prior_matrix(rng)
    eta, guide = split_prior(matrix)
    parameters = rng.gamma(2.0, size=(30, 4)) + 0.1
    found = Topics(parameters, eta).divergence(eta, prior_weight, guide)
    expected = 0.0
    for own, prior in zip(parameters.T, matrix):
        mean = digamma(own) - digamma(own.sum())
        log_q = gammaln(own.sum()) - gammaln(own).sum() + (own - 1) @ mean
        log_p = gammaln(prior.sum()) - gammaln(prior).sum() + (prior - 1) @ mean
        expected += log_q - prior_weight * log_p - (1 - prior_weight) * -mean.sum()
    # A density to a power has no −1 of its own: Topics.divergence counts p(β) as η · log β.
    assert_allclose(found, expected, rtol=1e-5)


def test_steps_move_to_the_prior_and_the_statistics():
    rng = np.random.default_rng(2)
    matrix = prior_matrix(rng)
    matrix[2, 5] = matrix[0, 5] = 0.0
    eta, guide = split_prior(matrix)
    dense = rng.gamma(2.0, size=(30, 4))
    topics, prior = Topics(dense, eta), TopicPrior(eta, guide)
    for rate in (0.3, 1e-3, 0.7, 1.0, 0.2):
        words = np.sort(rng.choice(30, 12, replace=False))
        values = rng.gamma(1.0, size=(12, 4)).astype(np.float32)
        topics = topics.blend(prior + 3.0 * WordStatistics(words, values), rate)
        target = matrix.T.copy()
        target[words] += 3.0 * values
        dense = (1 - rate) * dense + rate * target
        dense[5, [0, 2]] = eta * 1e-4
        assert_allclose(topics.parameters(), dense, rtol=1e-4, atol=1e-6)
        assert_allclose(topics.totals(), dense.sum(axis=0), rtol=1e-5)


def test_the_bound_never_falls():
    drawn = make_lda(60, n_topics=3, n_words=30, document_length=30, seed=0)
    matrix = prior_matrix(np.random.default_rng(3), 3)
    eta, guide = split_prior(matrix)
    model = LatentDirichlet(3, 30, 0.3, eta, guide=guide, tolerance=0.0, max_iterations=300)
    result = fit(model, drawn.counts.tocsr(), max_passes=15, elbo_every=1, seed=0, progress=False)
    elbos = result.history["elbo"]
    assert np.all(np.diff(elbos) > -1e-3 * abs(elbos[-1]) * 1e-3)
    plain = fit(
        LatentDirichlet(3, 30, 0.3, eta), drawn.counts.tocsr(), max_passes=2, progress=False
    )
    assert result.elbo != plain.elbo


def test_what_all_topics_have_alike_leads_none():
    common = np.full((3, 10), 0.1)
    common[:, 4] = 5.0
    eta, guide = split_prior(common)
    assert guide.leads(eta, 10)[0].size == 0
    common[1, 7] = 2.0
    eta, guide = split_prior(common)
    topics, led = guide.leads(eta, 10)
    assert topics.tolist() == [1]
    assert np.flatnonzero(led[:, 0]).tolist() == [7]


def test_rows_that_are_given_are_not_found_again():
    points = np.vstack([np.eye(4), np.full((2, 4), 0.25)])
    assert sorted(farthest_rows(points, 2, np.eye(4)[:2])) == [2, 3]
    # A point that was given twice adds nothing to the plane.
    assert sorted(farthest_rows(points, 2, np.eye(4)[[0, 1, 1]])) == [2, 3]
    assert farthest_rows(points, 0, np.eye(4)).size == 0


def test_a_guide_must_fit_its_model():
    counts = np.ones((1, 2), np.float32)
    for words, own in (([7], counts), ([0], np.ones((1, 3))), ([2, 1], np.ones((2, 2)))):
        with pytest.raises(ValueError, match="guide must have rising places of words below 5"):
            LatentDirichlet(2, 5, 0.5, 0.1, guide=Guide(words, own))
    with pytest.raises(ValueError, match="must add up to positive numbers"):
        LatentDirichlet(2, 5, 0.5, 0.1, guide=Guide([1], -counts))
    with pytest.raises(ValueError, match="cannot be learned"):
        LatentDirichlet(2, 5, 0.5, 0.1, guide=Guide([1], counts), learn_topic_word_prior=True)


def test_log_c_is_not_made_up():
    drawn = make_lda(30, n_topics=2, n_words=5, document_length=9, seed=0)
    model = LatentDirichlet(2, 5, 0.5, 0.1, guide=Guide([1], np.ones((1, 2))))
    with pytest.raises(UnsupportedTemperature, match="the same for all words"):
        fit(
            model,
            drawn.counts.tocsr(),
            temperature=VariationalTempering(formula="z-integrated"),
            progress=False,
        )


def test_a_checkpoint_of_another_guide_is_refused(tmp_path):
    X = make_lda(40, n_topics=2, n_words=20, document_length=20, seed=0).counts.tocsr()

    def run(count, **options):
        guide = Guide([3], np.full((1, 2), count, np.float32))
        model = LatentDirichlet(2, 20, 0.5, 0.1, guide=guide)
        return fit(model, X, batch_size=10, max_passes=3, progress=False, seed=1, **options)

    def kill(report):
        if report.record.step == 7:
            raise KeyboardInterrupt

    whole = run(5.0)
    kept = Checkpoint(tmp_path / "run", every_minutes=None, every_steps=2)
    with pytest.raises(KeyboardInterrupt):
        run(5.0, checkpoint=kept, callbacks=[kill])
    with pytest.raises(ValueError, match="guide"):
        run(6.0, checkpoint=kept)
    again = run(5.0, checkpoint=kept)
    assert_array_equal(again.posterior.parameters(), whole.posterior.parameters())
