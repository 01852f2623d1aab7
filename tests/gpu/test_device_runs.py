"""Fits on the device with all that the engine has: bounds, callbacks, checkpoints, data on disk."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

pytest.importorskip("jax")

from on_disk import on_disk
from tempering import Annealing, Checkpoint, LatentDirichletAllocation, schedules
from tempering.datasets import make_lda
from tempering.gpu.device_data import CorpusSource
from tempering.gpu.device_lda import DeviceLatentDirichlet, fit_on_device
from tempering.gpu.device_topics import DeviceTopics
from tempering.inference import RobbinsMonro, evaluate_elbo, fit
from tempering.inference.sources import ArraySource
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Topics
from tempering.storage.state import StorageError

COUNTS = make_lda(90, 4, 60, 20.0, seed=2).counts
DATA = sparse.csr_matrix(sparse.vstack([COUNTS[:7], 0 * COUNTS[:1], COUNTS[8:]]))
DATA.eliminate_zeros()  # so the eighth document is empty
RUN = {
    "temperature": Annealing(schedules.linear_inverse(2.0), fraction=0.5),
    "learning_rate": RobbinsMonro(16.0, 0.7),
    "batch_size": 45,
    "max_passes": 3,
    "seed": 3,
}

TIGHT = {"tolerance": 1e-6, "max_iterations": 1000}


def new_model(update="mean", **options):
    return LatentDirichlet(4, 60, 0.1, 0.1, update=update, **options)


def parameters(result):
    return result.posterior.parameters()


class Stop(Exception):
    pass


def stop_at(step):
    def stop(report):
        if report.record.step == step:
            raise Stop

    return stop


def test_bounds_equal_those_of_the_engine():
    model = new_model("variational", **TIGHT)
    topics = model.initialize(None, np.random.default_rng(0))
    expected = fit(model, DATA, **RUN, initial=topics, n_threads=1, progress=False)
    topics = model.initialize(None, np.random.default_rng(0))
    result = fit_on_device(model, DATA, **RUN, initial=topics, elbo_every=1, final_elbo=True)
    assert_allclose(result.history["elbo"], expected.history["elbo"], rtol=1e-4)
    assert_allclose(result.history["tempered_elbo"], expected.history["tempered_elbo"], rtol=1e-4)
    assert_allclose(result.elbo, expected.elbo, rtol=1e-4)


def test_the_bound_of_given_topics_equals_that_of_the_engine():
    """Also with the joint tempered, and with the divergence by itself."""
    model = new_model("variational", **TIGHT)
    rng = np.random.default_rng(1)
    topics = Topics(0.1 + rng.gamma(0.3, 5.0, (60, 4)), 0.1)
    on_device = DeviceLatentDirichlet.of(model, "plain")
    placed = DeviceTopics.of(topics)
    for weight in (1.0, 0.4):
        assert_allclose(
            on_device.divergence(placed, weight), model.divergence(topics, weight), rtol=1e-5
        )
    assert_allclose(
        evaluate_elbo(on_device, placed, CorpusSource(DATA, 45)),
        evaluate_elbo(model, topics, ArraySource(DATA, 45)),
        rtol=1e-5,
    )


def test_the_divergence_of_many_words():
    """Sums of many small numbers and a few large ones keep their digits."""
    n_words, n_topics, eta = 9000, 3, 0.002
    rng = np.random.default_rng(0)
    large = rng.random((n_words, n_topics)) < 0.03
    values = np.where(large, rng.gamma(0.3, 1000.0, large.shape), 1e-4 * rng.random(large.shape))
    model = LatentDirichlet(n_topics, n_words, 0.1, eta)
    topics = Topics(eta + values, eta)
    placed = DeviceTopics.of(topics)
    on_device = DeviceLatentDirichlet.of(model, "plain")
    assert_allclose(on_device.divergence(placed), model.divergence(topics), rtol=1e-4)


def test_callbacks_see_topics_and_end_the_run():
    seen = []

    def watch(report):
        seen.append((report.record.step, report.posterior.parameters().sum()))
        return report.record.step == 3

    result = fit_on_device(new_model(), DATA, **RUN, callbacks=[watch])
    assert [step for step, _ in seen] == [0, 1, 2, 3]
    assert len(result.history) == 4
    assert_allclose(seen[-1][1], parameters(result).sum(), rtol=1e-6)


def test_topics_on_the_device_offer_what_those_of_the_host_do():
    topics = Topics(np.random.default_rng(0).gamma(1.0, 1.0, (60, 4)), 0.1)
    placed = DeviceTopics.of(topics)
    assert placed.shape == (60, 4)
    assert_allclose(placed.totals(), topics.totals(), rtol=1e-6)
    assert_allclose(placed.mean_log(), topics.mean_log(), rtol=1e-5)
    with pytest.raises(AttributeError):
        _ = placed.nothing


@pytest.mark.parametrize("stop", [0, 2, 4])
def test_a_run_that_is_taken_up_again_ends_in_the_same_bits(tmp_path, stop):
    model = new_model()
    expected = fit_on_device(model, DATA, **RUN)
    kept = Checkpoint(tmp_path / "kept", every_steps=1)
    with pytest.raises(Stop):
        fit_on_device(model, DATA, **RUN, checkpoint=kept, callbacks=[stop_at(stop)])
    steps = []
    result = fit_on_device(
        model,
        DATA,
        **RUN,
        checkpoint=kept,
        callbacks=[lambda report: steps.append(report.record.step)],
    )
    assert steps == list(range(stop + 1, 6))
    assert_array_equal(parameters(result), parameters(expected))
    assert_array_equal(
        result.history["inverse_temperature"], expected.history["inverse_temperature"]
    )
    # And once more, when it is over: nothing is left to do.
    again = fit_on_device(model, DATA, **RUN, checkpoint=kept, callbacks=[stop_at(0)])
    assert_array_equal(parameters(again), parameters(expected))


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    fit_on_device(new_model(), DATA, **RUN, checkpoint=tmp_path)
    with pytest.raises(StorageError, match="belongs to other data"):
        fit_on_device(new_model(), DATA[:80], **RUN, checkpoint=tmp_path)
    with pytest.raises(StorageError, match=r"model\.class \(it was DeviceLatentDirichlet"):
        fit(new_model(), DATA, **RUN, checkpoint=tmp_path, progress=False, final_elbo=False)


@pytest.mark.slow
def test_restarts_keep_the_one_with_the_best_bound():
    results = [
        fit_on_device(new_model("variational", **TIGHT), DATA, **RUN, n_init=n, final_elbo=True)
        for n in (1, 3)
    ]
    assert len(results[1].restart_elbos) == 3
    assert results[1].elbo == max(results[1].restart_elbos)
    # The first restart is the fit without restarts.
    assert results[1].restart_elbos[0] == results[0].elbo


def test_documents_on_disk_give_what_those_in_memory_do(tmp_path):
    source = on_disk(tmp_path, DATA, batch_size=90)
    run = {**RUN, "batch_size": 90}
    streamed, kept = (fit_on_device(new_model(), data, **run) for data in (source, DATA))
    assert_allclose(parameters(streamed), parameters(kept), rtol=1e-5)
    smaller = on_disk(tmp_path, DATA, batch_size=30, block_size=20)
    model = new_model(tolerance=1e-5, max_iterations=500)
    start = [model.initialize(None, np.random.default_rng(0)) for _ in range(2)]
    run = {**RUN, "batch_size": None}  # that of the source
    result = fit_on_device(model, smaller, **run, initial=start[0])
    expected = fit(model, smaller, **run, initial=start[1], progress=False, final_elbo=False)
    assert_array_equal(result.history["passes"], expected.history["passes"])
    difference = np.abs(parameters(result) - parameters(expected)).sum()
    assert difference < 1e-3 * parameters(expected).sum()


@pytest.mark.parametrize("method", ["online", pytest.param("batch", marks=pytest.mark.slow)])
def test_the_estimator_hands_everything_on(tmp_path, method):
    settings = {
        "learning_method": method,
        "update": "variational",
        "evaluate_every": 2,
        "max_iter": 3,
        "batch_size": 45,
        "random_state": 0,
        "backend": "jax",
    }
    calls = []
    watch = lambda report: calls.append(type(report.posterior))  # noqa: E731
    lda = LatentDirichletAllocation(4, **settings)
    lda.fit(DATA, checkpoint=tmp_path / method, callbacks=[watch])
    assert set(calls) == {DeviceTopics}
    assert len(calls) == len(lda.history_)
    assert_array_equal(np.isfinite(lda.history_["elbo"]), np.arange(len(calls)) % 2 == 0)
    again = LatentDirichletAllocation(4, **settings).fit(DATA, checkpoint=tmp_path / method)
    assert_array_equal(again.components_, lda.components_)
