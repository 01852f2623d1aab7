"""How ``tempering="auto"`` cools, and where it starts."""

import numpy as np
import pytest
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.estimators.automatic import (
    automatic_policy,
    default_decay,
    default_doc_topic_prior,
    default_followed_part,
    default_word_power,
    tempered_part,
)
from tempering.inference import Constant
from tempering.models.lda.model import LatentDirichlet


def corpus(length=50, n=200, seed=0):
    """Documents of five topics that share few words."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(60, 0.05), size=5)
    theta = rng.dirichlet(np.full(5, 0.1), size=n)
    return sparse.csr_matrix([rng.multinomial(length, row @ topics) for row in theta])


@pytest.mark.parametrize("init", ["words", "random"])
def test_it_cools_evenly_in_the_inverse_temperature_from_its_hottest_step(init):
    lda = LatentDirichletAllocation(5, init=init, max_iter=5, batch_size=20, random_state=0)
    history = lda.fit(corpus()).history_
    hot = history["phase"] == "tempered"
    inverse = history["inverse_temperature"]
    assert hot.sum() == 20  # 40% of 50 steps
    assert np.all(inverse[~hot] == 1.0)
    assert inverse[0] < 0.8
    rises = np.diff(np.append(inverse[hot], 1.0))
    np.testing.assert_allclose(rises, (1.0 - inverse[0]) / 20)


def first_inverse_temperature(length, start, rate=1.0):
    model = LatentDirichlet(5, 60, 0.02, 0.2, update="mean", start=start, mean_length=length)
    rng = np.random.default_rng(0)
    policy = automatic_policy(corpus(length), model, Constant(rate), 200, rng)
    return 1.0 / policy.schedule(0.0)


def test_topics_that_start_from_words_are_not_lost_in_the_heat():
    """They are as far from it as documents are long, and where it is not so hot, it is left."""
    for length, least in ((1, 0.18), (2, 0.36), (4, 0.45), (8, 0.45)):
        assert first_inverse_temperature(length, "random") < least - 0.05
        assert first_inverse_temperature(length, "words") == pytest.approx(least)
    long = [first_inverse_temperature(50, start) for start in ("random", "words")]
    assert long[0] == long[1] > 0.5


def test_a_run_of_small_steps_starts_less_hot():
    """Topics must be able to part within it."""
    starts = [first_inverse_temperature(50, "random", rate) for rate in (1.0, 0.3, 0.1)]
    assert np.all(np.diff(starts) > 0.01)


def test_what_many_topics_and_short_documents_change():
    assert default_doc_topic_prior(10, "sampled", 60.0) == 0.1
    # In a short document the prior counts for half of its words at most, in a long one for more.
    assert 400 * default_doc_topic_prior(400, "sampled", 6.0) == pytest.approx(3.0)
    assert 400 * default_doc_topic_prior(400, "sampled", 60.0) > 3.0
    decays = [default_decay(n_topics) for n_topics in (20, 50, 100, 200, 400, 1000)]
    assert decays[0] == decays[1] == 0.55
    assert np.all(np.diff(decays[1:5]) > 0.01)
    assert max(decays) == pytest.approx(0.7)
    # With few documents a topic the words keep their power.
    powers = [default_word_power(400, n_documents, 60.0, 10.0) for n_documents in (3e3, 6e3, 1e5)]
    assert 1.0 == powers[0] > powers[1] > powers[2] > 0.8
    # A part of alpha that follows the documents needs topics with many words.
    parts = [default_followed_part(n_topics, 2e4, 60.0) for n_topics in (40, 240, 500)]
    assert 0.8 == parts[0] > parts[1] > parts[2] == 0.0
    long, short = ([tempered_part(k, n, 7.0) for k in (100, 200, 400)] for n in (60.0, 14.0))
    assert 0.4 == long[0] < long[1] < long[2]
    assert short == [0.4, 0.4, 0.4]
