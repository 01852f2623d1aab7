"""The defaults of ``LatentDirichletAllocation``, and the recipe that reports them."""

import numpy as np
import pytest
from scipy import sparse

from tempering import Annealing, LatentDirichletAllocation, LocalTempering
from tempering.estimators.recipe import RULES, Size, batch_size_for, describe_policy


def corpus(length=50, n=200, seed=0):
    """Documents of five topics that share few words."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(60, 0.05), size=5)
    theta = rng.dirichlet(np.full(5, 0.1), size=n)
    return sparse.csr_matrix([rng.multinomial(length, row @ topics) for row in theta])


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({}, 0),
        ({"update": "variational"}, 40),
        ({"init": "random"}, 40),
        ({"n_init": 2}, 40),
        ({"update": "variational", "tempering": None}, 0),
        ({"tempering": "annealing"}, 67),
    ],
)
def test_only_what_gains_by_heat_is_heated(options, part):
    lda = LatentDirichletAllocation(5, max_iter=5, batch_size=20, random_state=0, **options)
    history = lda.fit(corpus()).history_
    hot = history["phase"] == "tempered"
    inverse = history["inverse_temperature"]
    assert hot.sum() == np.ceil(len(history) * part / 100)
    assert np.all(inverse[~hot] == 1.0)
    # It cools evenly in the inverse temperature, from its hottest step.
    evenly = 0.5 + 0.5 * np.arange(hot.sum()) / max(hot.sum(), 1)
    np.testing.assert_allclose(inverse[hot], evenly, 0.01)
    heat = f"from T = 2.00 to 1 in the first {part}% of the run" if part else "T = 1 throughout"
    assert lda.recipe_.temperature == heat


def test_weights_that_are_not_sampled_are_heated():
    lda = LatentDirichletAllocation(5, max_iter=2, random_state=0).fit(0.5 * corpus())
    assert lda.history_[0].temperature == pytest.approx(2.0)


def test_a_stream_is_not_heated():
    """Its topics are used before it ends."""
    lda = LatentDirichletAllocation(5, batch_size=20, total_samples=200, random_state=0)
    lda.partial_fit(corpus()[:20])
    assert lda._state.heat.inverse_temperature == 1.0


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


def test_the_recipe_describes_the_fit():
    lda = LatentDirichletAllocation(5, max_iter=5, random_state=0).fit(corpus())
    assert lda.recipe_.n_steps == len(lda.history_)
    lines = str(lda.recipe_).splitlines()
    assert len(lines) == 10
    assert lines[1].endswith("T = 1 throughout")
    described = [describe_policy(own) for own in (Annealing(passes=3.0), LocalTempering())]
    assert described == ["Annealing", "LocalTempering"]
