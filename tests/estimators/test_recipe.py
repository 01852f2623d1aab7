"""How ``tempering="auto"`` cools, and where it starts."""

import numpy as np
import pytest
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.estimators.recipe import RULES, Size, batch_size_for
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


def test_batches_grow_with_the_run_and_with_short_documents():
    sizes = [batch_size_for(n * 10) for n in (2_000, 20_000, 100_000, 290_000, 10_000_000)]
    assert sizes == [16, 100, 223, 380, 1024]
    sizes = [batch_size_for(1_000, mean_length=length) for length in (60.0, 150.0, 500.0, 5000.0)]
    assert sizes == [16, 6, 2, 2]
    assert [batch_size_for(n, on_gpu=True) for n in (290_000 * 10, 36e6)] == [1450, 8192]


def test_few_long_documents_go_in_small_batches():
    """Of so many words as move the topics, however few the documents are."""
    for length, n, batch_size in ((40, 60, 16), (250, 60, 4), (700, 30, 2)):
        lda = LatentDirichletAllocation(3, max_iter=2, random_state=0).fit(corpus(length, n))
        assert lda.recipe_.batch_size == batch_size
        assert lda.n_batch_iter_ == 2 * -(-n // batch_size)


def first_inverse_temperature(length, start, rate=1.0):
    model = LatentDirichlet(5, 60, 0.02, 0.2, update="mean", start=start, mean_length=length)
    rng = np.random.default_rng(0)
    policy = RULES.policy(corpus(length), model, Constant(rate), 200, rng)
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
    # Many topics have less of the prior each, but more in all; in a short document at most half.
    priors = [RULES.doc_topic_prior(k, "sampled", 60.0) for k in (10, 50, 100, 400)]
    assert 1 / 10 == priors[0] > priors[1] == priors[2] > priors[3]
    assert 100 * priors[2] < 400 * priors[3]
    assert 400 * RULES.doc_topic_prior(400, "sampled", 6.0) == pytest.approx(3.0)
    assert RULES.doc_topic_prior(400, "sampled", 0.5) == 1 / 400
    rates = [RULES.learning_rate("auto", "auto", k, "sampled", 9) for k in (20, 50, 100, 400, 999)]
    decays = [rate.rule.decay for rate in rates]
    assert decays[0] == decays[1] == 0.55 < decays[2] < decays[3] == decays[4] == 0.7
    # A start that tells very many topics apart is not given up within the run.
    delays = [
        RULES.learning_rate("auto", "auto", 200, "sampled", n, told).rule.delay
        for n, told in ((2000, False), (2000, True), (5, True))
    ]
    assert delays == [200.0, 2000.0, 16.0]
    # The more topics, the less a word says; but of a short document the prior decides much.
    powers = [RULES.word_power(Size(k, 2e4, 60.0, 10.0)) for k in (50, 100, 400)]
    assert 1.0 == powers[0] > powers[1] > powers[2] > 0.8
    assert powers[2] < RULES.word_power(Size(400, 2e4, 6.0, 10.0)) < 1.0
    # A part of alpha that adapts to the documents needs topics with many words.
    parts = [RULES.adapts(Size(k, 2e4, 60.0, 10.0)) for k in (40, 240, 500)]
    assert 0.8 == parts[0] > parts[1] > parts[2] == 0.0
    long, short = (
        [RULES.tempered(Size(k, 2e4, n, 7.0)) for k in (100, 200, 400)] for n in (60.0, 14.0)
    )
    assert 0.4 == long[0] < long[1] < long[2]
    assert short == [0.4, 0.4, 0.4]


def test_at_the_end_many_topics_are_less_sharp():
    assert RULES.settled(Size(100, 2e4, 60.0, 5.0), keep_prior=False) is None
    size = Size(400, 1e4, 60.0, 10.0)
    settled = RULES.settled(size, keep_prior=False)
    assert settled.word_power < RULES.word_power(size) - 0.1
    assert settled.prior_factor < 0.7
    assert RULES.settled(size, keep_prior=True).prior_factor == 1.0
    # Topics with many words, and those of short documents, stay sharper.
    many_words = RULES.settled(Size(400, 1e6, 60.0, 10.0), keep_prior=False)
    short = RULES.settled(Size(400, 1e4, 12.0, 6.0), keep_prior=False)
    assert settled.prior_factor < short.prior_factor < many_words.prior_factor < 1.0


def test_the_recipe_of_a_fit_is_told():
    X = corpus()
    lda = LatentDirichletAllocation(5, max_iter=5, random_state=0).fit(X)
    first = lda.history_[0]
    assert lda.recipe_.start_temperature == pytest.approx(first.temperature)
    assert lda.recipe_.n_steps == len(lda.history_)
    told = str(lda.recipe_).splitlines()
    assert len(told) == 10
    assert f"from T = {first.temperature:.2f} to 1" in told[1]
    plain = LatentDirichletAllocation(5, tempering=None, max_iter=1, random_state=0).fit(X)
    assert "T = 1 throughout" in str(plain.recipe_)
