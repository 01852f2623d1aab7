"""Whole fits in JAX against the engine, and where they run."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

pytest.importorskip("jax")

from tempering import AdaptiveTempering, Annealing, schedules
from tempering.datasets import make_lda
from tempering.gpu import device_data, device_lda, jax_device
from tempering.gpu.compiled_steps import steps_of
from tempering.gpu.device_lda import fit_on_device
from tempering.gpu.jax_device import JaxUnavailable, choose_backend
from tempering.inference import RobbinsMonro, fit
from tempering.models.base import UnsupportedTemperature
from tempering.models.lda.model import LatentDirichlet

DATA = sparse.csr_matrix(make_lda(120, 5, 200, 20.0, seed=1).counts)
POLICY = Annealing(schedules.linear_inverse(2.0), fraction=0.5)
RUN = {
    "temperature": POLICY,
    "learning_rate": RobbinsMonro(16.0, 0.7),
    "batch_size": 40,
    "max_passes": 2,
    "seed": 3,
}


def new_model(**options):
    return LatentDirichlet(5, 200, 0.1, 0.1, **{"update": "mean", **options})


def new_topics(model):
    return model.initialize(None, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("kernel", "update"),
    [
        ("plain", "mean"),
        ("plain", "variational"),
        pytest.param("interpreted", "mean", marks=pytest.mark.slow),
    ],
)
def test_a_fit_equals_that_of_the_engine(kernel, update):
    model = new_model(update=update, tolerance=1e-5, max_iterations=500)
    topics = new_topics(model)
    expected = fit(
        model, DATA, **RUN, initial=topics, n_threads=1, progress=False, final_elbo=False
    )
    result = fit_on_device(model, DATA, **RUN, initial=topics, kernel=kernel)
    parameters, other = (r.posterior.parameters() for r in (result, expected))
    assert np.abs(parameters - other).sum() / other.sum() < 1e-3
    for column in ("passes", "inverse_temperature", "learning_rate", "phase"):
        assert_array_equal(result.history[column], expected.history[column])
    assert result.heat.inverse_temperature == expected.heat.inverse_temperature


def test_a_start_from_words_equals_that_of_the_engine():
    model = new_model(tolerance=1e-5, max_iterations=500, start="words", mean_length=20.0)
    expected = fit(model, DATA, **RUN, n_threads=1, progress=False, final_elbo=False)
    result = fit_on_device(model, DATA, **RUN, kernel="plain")
    parameters, other = (r.posterior.parameters() for r in (result, expected))
    assert np.abs(parameters - other).sum() / other.sum() < 1e-3


@pytest.mark.parametrize(
    ("update", "steps", "batch_size", "tolerance", "n_fits"),
    [
        ("mean", 1, 40, 1e-3, 1),
        # Chains are drawn in another way there: single fits differ by some percent.
        ("sampled", 1, 40, 0.04, 4),
        pytest.param("mean", 8, 120, 0.02, 1, marks=pytest.mark.slow),
    ],
)
def test_alpha_adapts_to_the_documents_as_in_the_engine(
    monkeypatch, update, steps, batch_size, tolerance, n_fits
):
    monkeypatch.setattr(device_lda, "PRIOR_STEPS", steps)
    model = new_model(update=update, tolerance=1e-5, max_iterations=500, adapted_part=0.9)
    run = {**RUN, "max_passes": batch_size / 2, "batch_size": batch_size}
    topics = new_topics(model)
    on_host = {"n_threads": 1, "progress": False, "final_elbo": False}
    priors = []
    for seed in range(run["seed"], run["seed"] + n_fits):
        own = {**run, "seed": seed, "initial": topics}
        expected = fit(model, DATA, **own, **on_host)
        result = fit_on_device(model, DATA, **own, kernel="plain")
        priors.append([r.model.doc_topic_prior for r in (result, expected)])
    ours, other = np.mean(priors, axis=0)
    assert ours.sum() == pytest.approx(0.5)
    assert np.ptp(other) > 0.01
    np.testing.assert_allclose(ours, other, rtol=tolerance)
    assert type(result.model) is LatentDirichlet
    assert set(vars(result.model)) == set(vars(model))


def test_the_joint_is_annealed_like_in_the_engine():
    model, run = new_model(tolerance=1e-5), dict(RUN)
    run["temperature"] = Annealing(schedules.linear_inverse(4.0), fraction=0.5, temper="joint")
    topics = new_topics(model)
    expected = fit(
        model, DATA, **run, initial=topics, n_threads=1, progress=False, final_elbo=False
    )
    result = fit_on_device(model, DATA, **run, initial=topics)
    parameters, other = (r.posterior.parameters() for r in (result, expected))
    assert np.abs(parameters - other).sum() / other.sum() < 1e-3


@pytest.mark.slow  # that of sampled topics stands beside, in test_device_sampling.py
def test_a_corpus_that_is_sent_gives_the_same_bits(monkeypatch):
    model = new_model()
    kept = fit_on_device(model, DATA, **RUN)
    monkeypatch.setattr(device_data, "device_memory", lambda: 1000.0)
    assert not device_data.DeviceCorpus(DATA).resident
    sent = fit_on_device(model, DATA, **RUN)
    assert_array_equal(sent.posterior.parameters(), kept.posterior.parameters())


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64])
def test_counts_of_any_type(dtype):
    model = new_model()
    expected = fit_on_device(model, DATA.astype(np.float32), **RUN)
    result = fit_on_device(model, DATA.astype(dtype), **RUN)
    assert_array_equal(result.posterior.parameters(), expected.posterior.parameters())


def test_the_same_seed_gives_the_same_bits_and_nothing_is_compiled_again():
    model = new_model(tolerance=2e-3)
    first = fit_on_device(model, DATA, **RUN)
    n_compiled = steps_of(model, "plain").n_compiled()
    second = fit_on_device(model, DATA, **RUN)
    other = fit_on_device(model, DATA, **{**RUN, "seed": 4})
    assert steps_of(model, "plain").n_compiled() == n_compiled
    assert_array_equal(first.posterior.parameters(), second.posterior.parameters())
    assert not np.array_equal(first.posterior.parameters(), other.posterior.parameters())


def test_topics_are_drawn_near_one():
    model = new_model()
    topics = np.asarray(steps_of(model, "plain").draw(1))[:, :5]
    assert abs(topics.mean() - 1.0) < 0.02
    assert abs(topics.std() - 0.1) < 0.02


def test_what_cannot_be_fitted():
    with pytest.raises(ValueError, match="no phase at T = 1"):
        fit_on_device(new_model(), DATA, **{**RUN, "temperature": Annealing(passes=5.0)})
    with pytest.raises(ValueError, match="share one vocabulary"):
        fit_on_device(new_model(), DATA[:, :100], **RUN)


def test_backends():
    assert choose_backend("cpu") == "numba"
    assert choose_backend("jax") == "jax"
    with pytest.raises(ValueError, match="got 'cuda'"):
        choose_backend("cuda")


def test_a_missing_gpu_says_what_to_install(monkeypatch, caplog):
    monkeypatch.setattr("tempering.gpu.jax_device.platform", lambda: "cpu")
    monkeypatch.setattr("tempering.gpu.jax_device.DRIVER_FILES", ("/",))
    caplog.set_level("INFO", logger="tempering")
    assert choose_backend("auto") == "numba"
    assert caplog.messages == ["backend='auto': fitting on the CPU, as JAX found no GPU, only cpu."]
    with pytest.raises(JaxUnavailable, match=r"found only cpu.*tempering\[gpu\]"):
        choose_backend("gpu")


def test_a_gpu_is_taken_where_it_is_worth_it(monkeypatch):
    monkeypatch.setattr("tempering.gpu.jax_device.platform", lambda: "gpu")
    monkeypatch.setattr("tempering.gpu.jax_device.DRIVER_FILES", ("/",))
    assert choose_backend("auto") == "jax"
    assert choose_backend("auto", worthwhile=False) == "numba"
    assert choose_backend("gpu", worthwhile=False) == "jax"


@pytest.mark.slow
def test_without_a_driver_nothing_is_loaded():
    code = (
        "import sys, numpy as np, tempering\n"
        "from tempering.gpu import jax_device\n"
        "jax_device.DRIVER_FILES = ('/nowhere',)\n"
        "tempering.LatentDirichletAllocation(2, max_iter=1).fit(np.eye(4, dtype=int))\n"
        "assert jax_device.choose_backend('auto') == 'numba'\n"
        "print('jax' in sys.modules)\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == "False"


def test_a_missing_jax_says_what_to_install(monkeypatch):
    monkeypatch.setattr(jax_device, "find_spec", lambda name: None)
    monkeypatch.setattr(jax_device, "DRIVER_FILES", ("/",))
    assert choose_backend("auto") == "numba"
    with pytest.raises(ImportError, match=r"pip install 'tempering\[gpu\]'"):
        choose_backend("jax")


def test_an_adaptive_temperature_is_refused_with_what_to_take():
    counts = sparse.csr_matrix(np.eye(4))
    with pytest.raises(UnsupportedTemperature, match="backend='cpu'"):
        fit_on_device(LatentDirichlet(2, 4, 0.5, 0.5), counts, temperature=AdaptiveTempering())
