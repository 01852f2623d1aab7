"""Learned temperatures and priors on the device, against those of the engine on the CPU."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, special

pytest.importorskip("jax")

from tempering import (
    Annealing,
    Checkpoint,
    LatentDirichletAllocation,
    LocalTempering,
    VariationalTempering,
)
from tempering.datasets import make_lda
from tempering.gpu import jax_functions
from tempering.gpu.device_data import CorpusSource
from tempering.gpu.device_lda import DeviceLatentDirichlet, fit_on_device
from tempering.gpu.device_topics import DeviceTopics
from tempering.inference import RobbinsMonro, fit
from tempering.inference.executors import Serial
from tempering.models.base import UnsupportedTemperature
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Topics

COUNTS = make_lda(90, 4, 60, 20.0, seed=2).counts
DATA = sparse.csr_matrix(sparse.vstack([COUNTS[:3], 0 * COUNTS[:1], COUNTS[4:]]))
DATA.eliminate_zeros()  # so the fourth document is empty
RUN = {"learning_rate": RobbinsMonro(16.0, 0.7), "batch_size": 45, "max_passes": 3, "seed": 3}
TIGHT = {"tolerance": 1e-6, "max_iterations": 1000}
GRID = np.geomspace(1.0, 0.1, 30)

POLICIES = {
    "untempered": None,
    "annealing from where the data say": Annealing(start="auto", fraction=0.7),
    "variational": VariationalTempering(formula="calibrated", damping=1.0),
    "variational, z-integrated": VariationalTempering(formula="z-integrated", n_samples=5),
    "local": LocalTempering(max_alternations=3, tolerance=0.02, damping=1.0),
    "local, paper": LocalTempering(max_alternations=2, formula="paper"),
}

LEARNED = {
    "alpha": {"learn_doc_topic_prior": True},
    "eta": {"learn_topic_word_prior": True},
    "both": {"learn_doc_topic_prior": True, "learn_topic_word_prior": True},
    "eta, while alpha adapts": {"learn_topic_word_prior": True, "adapted_part": 0.5},
}


def new_model(update: Any = "variational", **options: Any) -> LatentDirichlet:
    return LatentDirichlet(4, 60, 0.1, 0.1, update=update, **{**TIGHT, **options})


def new_topics(seed=0, prior=0.1) -> Topics:
    return Topics(prior + np.random.default_rng(seed).gamma(0.3, 5.0, (60, 4)), prior)


def both_fits(model, policy, kernel="plain", **changes):
    """The fit on the device, and that on the CPU from the same topics."""
    run = {**RUN, "temperature": policy, **changes}
    expected = fit(model, DATA, **run, initial=new_topics(), n_threads=1, progress=False)
    found = fit_on_device(
        model, DATA, **run, initial=new_topics(), kernel=kernel, elbo_every=1, final_elbo=True
    )
    return found, expected


def assert_same_fit(found, expected, rtol=1e-3):
    ours, others = (result.posterior.parameters() for result in (found, expected))
    assert np.abs(ours - others).sum() < rtol * others.sum()
    for column in ("passes", "learning_rate", "phase"):
        assert_array_equal(found.history[column], expected.history[column])
    for column in ("inverse_temperature", "elbo", "tempered_elbo"):
        assert_allclose(found.history[column], expected.history[column], rtol=rtol)


@pytest.mark.parametrize("policy", list(POLICIES)[1:])
def test_a_learned_temperature_takes_the_path_of_the_cpu(policy):
    found, expected = both_fits(new_model(), POLICIES[policy])
    assert_same_fit(found, expected)
    temperatures = expected.history["inverse_temperature"]
    # With so few words, integrals over the prior leave nothing to temper.
    assert (temperatures[0] < 0.999) == (policy != "variational, z-integrated")
    assert_allclose(found.heat.inverse_temperature, expected.heat.inverse_temperature, rtol=1e-3)


def test_documents_of_one_batch_keep_their_temperatures():
    found, expected = both_fits(new_model(), POLICIES["local"], batch_size=None)
    assert_same_fit(found, expected)
    assert np.shape(found.heat.inverse_temperature) == (90,)
    assert np.ptp(expected.heat.inverse_temperature) > 0.01
    assert_allclose(found.heat.inverse_temperature, expected.heat.inverse_temperature, rtol=1e-3)


@pytest.mark.parametrize("policy", ["variational", "local"])
def test_other_updates_learn_temperatures_too(policy):
    found, expected = both_fits(new_model("mean"), POLICIES[policy])
    assert_same_fit(found, expected)
    assert expected.history["inverse_temperature"][0] < 0.999


@pytest.mark.parametrize("policy", [pytest.param("variational", marks=pytest.mark.slow), "local"])
def test_the_gpu_kernels_learn_temperatures_and_priors(policy):
    model = new_model(tolerance=1e-4, **LEARNED["both"])
    found, expected = both_fits(model, POLICIES[policy], kernel="interpreted", max_passes=2)
    assert_same_fit(found, expected, rtol=5e-3)


@pytest.mark.parametrize("learned", LEARNED)
def test_priors_are_learned_as_on_the_cpu(learned, monkeypatch):
    monkeypatch.setattr("tempering.models.lda.model.TOPIC_PRIOR_STEPS", 3)
    monkeypatch.setattr("tempering.gpu.device_lda.PRIOR_STEPS", 1)
    model = new_model(**LEARNED[learned])
    found, expected = both_fits(model, None, max_passes=5)
    assert_same_fit(found, expected)
    for name in ("doc_topic_prior", "topic_word_prior"):
        assert_allclose(getattr(found.model, name), getattr(expected.model, name), rtol=1e-3)
    assert np.ptp(expected.model.doc_topic_prior) > 1e-3 or learned == "eta"
    assert abs(expected.model.topic_word_prior - 0.1) > 1e-3 or learned == "alpha"
    assert_allclose(found.posterior.offset, expected.posterior.offset, rtol=1e-6)
    assert type(found.model) is LatentDirichlet


@pytest.mark.parametrize(
    ("formula", "shared"),
    [
        ("calibrated", True),
        ("z-integrated", True),
        ("calibrated", False),
        ("paper", False),
    ],
)
@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_what_temperatures_are_learned_from(formula, shared, weight):
    data, topics = weight * DATA, new_topics()
    s = 0.6 if shared else np.linspace(0.2, 1.0, data.shape[0])
    model = new_model()
    device = DeviceLatentDirichlet.of(model, "plain")
    (batch,) = CorpusSource(data).sweep()
    placed = device.expectations(DeviceTopics.of(topics))
    found = device.temperature_terms(
        device.local_step(batch.data, placed, s), placed, GRID, batch.data, formula, shared
    )
    on_host = model.expectations(topics)
    expected = model.temperature_terms(
        model.local_step(data, on_host, s), on_host, GRID, data, formula, shared
    )
    assert_allclose(found.energies, expected.energies, rtol=1e-4, atol=1e-3)
    assert_allclose(found.log_normalizers, expected.log_normalizers, rtol=1e-4, atol=1e-3)
    assert found.share == pytest.approx(expected.share)
    assert found.exact == expected.exact
    with pytest.raises(UnsupportedTemperature, match="no temperature formula 'map'"):
        device.temperature_terms(
            device.local_step(batch.data, placed, s), placed, GRID, batch.data, "map", shared
        )


def test_sums_over_all_words_equal_those_of_the_host():
    topics = new_topics(prior=1e-3)
    placed = DeviceTopics.of(topics)
    nodes = np.array([0.01, 0.3, 0.77, 1.0])
    sums = np.asarray(placed.log_power_sums(nodes.astype(np.float32)))[:4]
    assert_allclose(sums, topics.log_power_sums(nodes), rtol=1e-4, atol=1e-5)
    assert placed.mean_log() == pytest.approx(topics.mean_log(), rel=1e-5)


def test_rising_factorials():
    x = np.exp(np.random.default_rng(0).uniform(-15, 22, 5000)).astype(np.float32)
    for s in (0.01, 0.5, 1.0):
        wide = x.astype(float)
        # Γ itself loses digits where x is large; there x^s is as good.
        expected = np.where(
            wide < 1e4, special.gammaln(wide + s) - special.gammaln(wide), s * np.log(wide)
        )
        assert_allclose(jax_functions.log_rising(x, np.float32(s)), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("policy", "batch_size", "learned"),
    [("untempered", 45, "both"), ("variational", 45, "both"), ("local", None, "alpha")],
)
def test_a_fit_that_is_taken_up_again_ends_in_the_same_bits(tmp_path, policy, batch_size, learned):
    run = {**RUN, "temperature": POLICIES[policy], "batch_size": batch_size, "max_passes": 4}
    model = new_model("mean", **LEARNED[learned])

    class Stop(Exception):
        pass

    def stop(report):
        if report.record.passes >= 2:
            raise Stop

    kept = Checkpoint(tmp_path, every_steps=1)
    expected = fit_on_device(model, DATA, **run)
    with pytest.raises(Stop):
        fit_on_device(model, DATA, **run, checkpoint=kept, callbacks=[stop])
    result = fit_on_device(model, DATA, **run, checkpoint=kept)
    assert_array_equal(result.posterior.parameters(), expected.posterior.parameters())
    assert_array_equal(
        result.history["inverse_temperature"], expected.history["inverse_temperature"]
    )
    assert_array_equal(result.model.doc_topic_prior, expected.model.doc_topic_prior)
    assert result.model.topic_word_prior == expected.model.topic_word_prior


@pytest.mark.parametrize("policy", ["variational", "local"])
def test_topics_come_to_the_host_once(monkeypatch, policy):
    calls, parameters = [], DeviceTopics.parameters

    def watched(topics):
        calls.append(topics.shape)
        return parameters(topics)

    monkeypatch.setattr(DeviceTopics, "parameters", watched)
    fit_on_device(new_model(**LEARNED["both"]), DATA, **RUN, temperature=POLICIES[policy])
    assert len(calls) == 1


@pytest.mark.parametrize("backend", ["jax", "gpu"])
def test_a_stream_of_topics_is_for_the_cpu(backend):
    lda = LatentDirichletAllocation(4, backend=backend)
    with pytest.raises(ValueError, match=f"backend='{backend}' is for fit.*backend='cpu'"):
        lda.partial_fit(DATA)
    assert not hasattr(lda, "n_features_in_")


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_device_and_an_executor_are_two_places(method):
    lda = LatentDirichletAllocation(4, backend="jax", executor=Serial())
    with pytest.raises(ValueError, match=r"backend='jax'.*Serial.*backend='cpu'"):
        getattr(lda, method)(DATA)
    assert not hasattr(lda, "n_features_in_")
