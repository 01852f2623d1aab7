"""Hyperparameters are learned at T = 1 alone, at the pace of the steps, and kept with their run."""

from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse

from tempering.inference import Algorithm, ArraySource, Checkpoint, Constant, RobbinsMonro, fit
from tempering.inference.executors import Serial
from tempering.models.factorial_mixture import LEARNABLE, FactorialModel
from tempering.models.lda.model import LatentDirichlet
from tempering.temperature import (
    AdaptiveTempering,
    Annealing,
    LocalTempering,
    VariationalTempering,
    schedules,
)

NAMES = {
    "factorial": LEARNABLE,
    "topics": ("doc_topic_prior", "topic_word_prior"),
}


def problem(name):
    rng = np.random.default_rng(0)
    if name == "factorial":
        active = rng.random((60, 3)) < 0.4
        data = active @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(60, 4))
        return FactorialModel(3, 4, 0.2, 1.0, 0.3, learn=LEARNABLE), data
    topics = rng.dirichlet(np.full(20, 0.2), size=3)
    theta = rng.dirichlet([1.0, 0.5, 0.1], size=60)
    data = sparse.csr_matrix([rng.multinomial(30, row @ topics) for row in theta])
    options = {"learn_doc_topic_prior": True, "learn_topic_word_prior": True, "n_threads": 1}
    return LatentDirichlet(3, 20, 0.3, 0.1, **options), data


def learned(model, name):
    return {key: np.copy(getattr(model, key)) for key in NAMES[name]}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "policy",
    [
        Annealing(schedules.linear(4.0), passes=4),
        VariationalTempering(fraction=0.4),
        LocalTempering(fraction=0.4),
    ],
    ids=["AVI", "VT", "LVT"],
)
def test_they_stay_as_they_were_until_temperature_one(name, policy):
    model, data = problem(name)
    given = learned(model, name)
    algorithm = Algorithm(model, policy, Constant(), Serial(), 60, 10)
    rng = np.random.default_rng(1)
    state = algorithm.start(model.initialize(ArraySource(data), rng), rng)
    (batch,) = ArraySource(data).sweep()
    for _ in range(4):
        state = algorithm.advance(state, batch).state
        assert not state.heat.finished
        for key, value in learned(model, name).items():
            np.testing.assert_array_equal(value, given[key])
    state = algorithm.advance(state, batch).state
    assert state.heat.finished
    for key, value in learned(model, name).items():
        assert np.all(value != given[key]), key


@pytest.mark.parametrize("passes", [1, 2])
def test_a_short_run_ends_with_a_step_that_learns_them(passes):
    """Also where its policy has had no time to cool."""
    model, data = problem("factorial")
    options = {"temperature": AdaptiveTempering(), "max_passes": passes, "progress": False}
    result = fit(model, data, **options)
    assert result.history[-1].phase == "final"
    for key, value in learned(model, "factorial").items():
        assert np.all(value != learned(result.model, "factorial")[key]), key


@pytest.mark.parametrize("name", NAMES["factorial"])
def test_a_small_step_moves_them_by_its_part(name):
    model, data = problem("factorial")
    posterior = model.initialize(ArraySource(data), np.random.default_rng(1))
    local = model.local_step(data, model.expectations(posterior), 1.0)
    posterior = model.prior() + local.statistics
    values = {}
    for rate in (1.0, 0.1):
        moved = deepcopy(model)
        moved.learn_hyperparameters(local, posterior, rate)
        values[rate] = getattr(moved, name) - getattr(model, name)
    assert np.all(np.abs(values[1.0]) > 1e-3)
    np.testing.assert_allclose(values[0.1], 0.1 * values[1.0], rtol=1e-9)


def test_the_prior_of_proportions_remembers_earlier_batches():
    """A batch moves what it is learned from by the step size, whatever the batches before it."""
    model, data = problem("topics")
    posterior = model.initialize(ArraySource(data), np.random.default_rng(1))
    expected = model.expectations(posterior)
    first, second = (model.local_step(part, expected, 1.0) for part in (data[:30], data[30:]))
    learned_from = []
    for rate in (0.0, 0.25, 1.0):
        moved = deepcopy(model)
        moved.learn_hyperparameters(first, posterior, 1.0)
        moved.learn_hyperparameters(second, posterior, rate)
        learned_from.append(moved._mean_prior_statistics)
    before, between, after = learned_from
    assert np.all(np.abs(after - before) > 1e-3)
    np.testing.assert_allclose(between, before + 0.25 * (after - before))


@pytest.mark.parametrize("name", NAMES)
def test_shards_learn_what_the_whole_does(name):
    found = []
    for shard_size in (1024, 16):
        model, data = problem(name)
        model.shard_size = shard_size
        found.append(learned(fit(model, data, max_passes=3, progress=False).model, name))
    for key, value in found[0].items():
        np.testing.assert_allclose(found[1][key], value, rtol=1e-3)


def test_the_number_of_documents_says_nothing_of_alpha():
    """It is learned from the mean of the documents: twice the same ones teach the same."""
    model, data = problem("topics")
    start = model.initialize(ArraySource(data), np.random.default_rng(0))
    once, twice = (
        fit(
            problem("topics")[0], rows, initial=deepcopy(start), max_passes=1, progress=False
        ).model.doc_topic_prior
        for rows in (data, sparse.vstack([data, data]).tocsr())
    )
    np.testing.assert_allclose(twice, once, rtol=1e-3)


class Killed(Exception):
    """What ends a run here."""


def test_what_the_best_restart_learned_comes_back_from_a_checkpoint(tmp_path):
    """Also when a later restart, which is no better, was the one that was interrupted."""
    options = {"max_passes": 6, "tolerance": 0.0, "n_init": 3, "progress": False}
    options |= {"learning_rate": RobbinsMonro(4.0, 0.7), "batch_size": 20}
    model, data = problem("topics")
    whole = fit(model, data, **options)
    best = int(np.argmax(whole.restart_elbos))
    assert best < 2, "the interrupted restart must not be the best one"

    def kill(report):
        if report.restart == 2:
            raise Killed

    checkpoint = Checkpoint(tmp_path, every_minutes=None, every_steps=1)
    with pytest.raises(Killed):
        fit(model, data, callbacks=[kill], checkpoint=checkpoint, **options)
    resumed = fit(model, data, checkpoint=checkpoint, **options)
    assert resumed.restart_elbos == whole.restart_elbos
    for key, value in learned(whole.model, "topics").items():
        np.testing.assert_array_equal(getattr(resumed.model, key), value)
        assert np.all(value != getattr(model, key))
