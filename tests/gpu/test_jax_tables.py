"""Mixtures and the factorial mixture in JAX against the CPU."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("jax")

from tempering import (
    Annealing,
    BayesianGaussianMixture,
    BernoulliMixture,
    Checkpoint,
    FactorialMixture,
    LocalTempering,
    PoissonMixture,
    VariationalTempering,
    schedules,
)
from tempering.estimators.devices import model_on
from tempering.families import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Dirichlet,
    FullGaussian,
    IsotropicGaussian,
    Poisson,
    StickBreaking,
)
from tempering.gpu import device_data, jax_models
from tempering.gpu.device_data import TableSource, as_rows
from tempering.gpu.jax_factorial import JaxFactorialModel
from tempering.gpu.jax_models import JaxMixture
from tempering.inference import RobbinsMonro, fit
from tempering.models import Mixture
from tempering.models.factorial_mixture import FactorialModel
from tempering.storage.state import from_json, to_json

pytestmark = pytest.mark.usefixtures("without_optimizations")

N, D, K = 203, 3, 4
RNG = np.random.default_rng(0)
CENTRES = RNG.normal(0, 3, (K, D))
POINTS = CENTRES[RNG.integers(K, size=N)] + RNG.standard_normal((N, D))
COUNTS = RNG.poisson(np.exp(0.4 * CENTRES)[RNG.integers(K, size=N)])

LIKELIHOODS = {
    "full": (FullGaussian(D), POINTS),
    "diagonal": (DiagonalGaussian(D), POINTS),
    "isotropic": (IsotropicGaussian(D, 0.7), POINTS),
    "bernoulli": (Bernoulli(D), (POINTS > 0).astype(float)),
    "poisson": (Poisson(D), COUNTS.astype(float)),
}
PRIORS = {
    "full": lambda family: family.natural(np.zeros(D), 1.0, D, np.eye(D)),
    "diagonal": lambda family: family.natural(np.zeros(D), 1.0, 2.0, np.ones(D)),
    "isotropic": lambda family: family.natural(np.zeros(D), 9.0),
    "bernoulli": lambda family: family.natural(1.0, 1.0),
    "poisson": lambda family: family.natural(1.0, 0.5),
}
TEMPERATURES = [1.0, 0.3, np.linspace(0.1, 1.0, N)]


def new_mixture(name, sticks=False):
    likelihood, data = LIKELIHOODS[name]
    prior = PRIORS[name](likelihood.conjugate)
    weights = StickBreaking(K) if sticks else Dirichlet(K)
    return Mixture(likelihood, weights, np.ones(weights.size), prior), data


def new_factorial(local="mean-field", restarts=2, n_features=5, **options):
    rng = np.random.default_rng(1)
    shapes = rng.normal(0, 2, (n_features, D))
    data = (rng.random((N, n_features)) < 0.3) @ shapes + 0.5 * rng.standard_normal((N, D))
    probabilities = np.linspace(0.2, 0.4, n_features)
    model = FactorialModel(
        n_features, D, 0.25, 4.0, probabilities, local=local, local_restarts=restarts,
        **{"tolerance": 1e-6, "max_sweeps": 400, **options},
    )  # fmt: skip
    return model, data


def assert_same_step(on_cpu, in_jax, rtol):
    for name, expected in on_cpu.statistics.items():
        scale = np.abs(expected).max()
        assert_allclose(in_jax.statistics[name], expected, rtol=rtol, atol=rtol * scale)
    assert_allclose(in_jax.energies, on_cpu.energies, rtol=rtol, atol=rtol)
    assert_allclose(in_jax.entropy, on_cpu.entropy, rtol=rtol, atol=rtol)
    assert in_jax.n == on_cpu.n


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_step_of_a_mixture_equals_that_of_the_cpu(name, monkeypatch):
    model, data = new_mixture(name, sticks=name == "full")
    expected = model.expectations(model.initialize(TableSource(data), np.random.default_rng(2)))
    # Several pieces, the last of which overlaps.
    monkeypatch.setattr(jax_models, "NUMBERS_AT_ONCE", 64 * model.likelihood.conjugate.size)
    jax_models.jax.clear_caches()
    pair = (model, JaxMixture.of(model))
    for s in TEMPERATURES:
        assert_same_step(*(m.local_step(data, expected, s) for m in pair), rtol=1e-10)
    jax_models.jax.clear_caches()


@pytest.mark.parametrize(
    ("local", "restarts"), [("exact", 0), ("mean-field", 0), ("mean-field", 3)]
)
def test_a_step_of_the_factorial_mixture_equals_that_of_the_cpu(local, restarts):
    model, data = new_factorial(local, restarts)
    start = model.initialize(TableSource(data), np.random.default_rng(3))
    expected = model.expectations(start)
    pair, rtol = (model, JaxFactorialModel.of(model)), 1e-9 if local == "exact" else 1e-4
    for s in TEMPERATURES:
        steps = [m.local_step(data, expected, s) for m in pair]
        assert_same_step(*steps, rtol=rtol)
        # And once more from where it was, at other features.
        moved = model.expectations(model.prior() + steps[0].statistics)
        steps = [m.continue_local_step(b, data, moved, 0.9) for m, b in zip(pair, steps)]
        assert_same_step(*steps, rtol=rtol)
        activations = np.asarray(steps[1].activations)[:N]
        assert_allclose(activations, steps[0].activations, atol=1e-4)


@pytest.mark.slow
@given(
    n=st.integers(1, 70),
    k=st.integers(1, 7),
    s=st.floats(0.05, 1.0),
    local=st.sampled_from(["exact", "mean-field"]),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=6, deadline=None)
def test_any_activations(n, k, s, local, seed):
    """In JAX, s · energy + entropy of a point is nowhere below that of the CPU by more than chance.

    Of several optima next to each other rounding may choose another one, so that only the sum holds
    for mean-field inference.
    """
    rng = np.random.default_rng(seed)
    model = FactorialModel(
        k, D, 0.5, 4.0, 0.3, local=local, local_restarts=2, tolerance=1e-6, max_sweeps=400
    )
    data = rng.normal(0, 2, (n, D))
    posterior = model.initialize(TableSource(data), rng)
    expected = model.expectations(posterior)
    on_cpu, in_jax = (m.local_step(data, expected, s) for m in (model, JaxFactorialModel.of(model)))
    bounds = [s * step.energy + step.entropy for step in (on_cpu, in_jax)]
    assert_allclose(bounds[1], bounds[0], rtol=1e-6 if local == "exact" else 2e-3)


POLICIES = {
    "none": None,
    "annealing": Annealing(schedules.linear_inverse(3.0), fraction=0.5),
    "variational": VariationalTempering(),
    "local": LocalTempering(max_alternations=3),
}


def both_fits(model, in_jax, data, **options):
    options = {"max_passes": 9, "seed": 5, "progress": False, "tolerance": 0.0, **options}
    batch_size = options.pop("batch_size", None)
    return (
        fit(model, data, batch_size=batch_size, n_threads=1, **options),
        fit(in_jax, TableSource(data, batch_size), n_threads=1, **options),
    )


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("batch_size", [None, 64])
def test_fits_of_mixtures_equal_those_of_the_cpu(policy, batch_size):
    model, data = new_mixture("full")
    on_cpu, in_jax = both_fits(
        model, JaxMixture.of(model), data, temperature=POLICIES[policy], batch_size=batch_size
    )
    for name, expected in on_cpu.posterior.items():
        assert_allclose(in_jax.posterior[name], expected, rtol=1e-6, atol=1e-6)
    assert_allclose(in_jax.history["elbo"], on_cpu.history["elbo"], rtol=1e-8)
    assert_allclose(in_jax.elbo, on_cpu.elbo, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("local", ["exact", pytest.param("mean-field", marks=pytest.mark.slow)])
def test_fits_of_the_factorial_mixture_equal_those_of_the_cpu(policy, local):
    model, data = new_factorial(local, restarts=1, learn=["noise_variance"])
    on_cpu, in_jax = both_fits(
        model, JaxFactorialModel.of(model), data, temperature=POLICIES[policy]
    )
    rtol = 1e-7 if local == "exact" else 1e-3
    assert_allclose(in_jax.elbo, on_cpu.elbo, rtol=rtol)
    assert_allclose(in_jax.model.noise_variance, on_cpu.model.noise_variance, rtol=rtol)


@pytest.mark.slow
@pytest.mark.parametrize("resident", [True, False])
@pytest.mark.parametrize("batch_size", [None, 64])
def test_tables_that_are_kept_and_those_that_are_sent(resident, batch_size):
    source = TableSource(POINTS, batch_size, resident)
    assert source.shape == POINTS.shape
    batches = source.batches(3)
    seen = [as_rows(next(batches).data) for _ in range(4)]
    expected = device_data.ArraySource(POINTS, batch_size).batches(3)
    for rows, batch in zip(seen, expected, strict=False):
        assert_array_equal(np.asarray(rows.values)[: rows.n], batch.data)
        assert_array_equal(np.asarray(rows[5:9].values)[:4], batch.data[5:9])
    swept = np.concatenate(
        [np.asarray(rows.values)[: rows.n] for rows in (as_rows(b.data) for b in source.sweep())]
    )
    assert_array_equal(swept, POINTS)


def test_rows_are_picked_and_read_as_those_of_a_table():
    """So that a fit can be pushed off a saddle."""
    rows = as_rows(POINTS)
    assert_array_equal(np.asarray(rows), POINTS)
    assert_array_equal(rows[np.array([3, 1])], POINTS[[3, 1]])


def test_shapes_are_few():
    shapes = {as_rows(np.zeros((n, 1))).values.shape for n in range(1, 2000)}
    assert len(shapes) < 80
    assert all(as_rows(np.zeros((n, 1))).values.shape[0] < 1.2 * n + 1 for n in (1, 17, 1001))


def test_shards_of_a_table_add_up(monkeypatch):
    model, data = new_mixture("full")
    monkeypatch.setattr(device_data, "SHARD_NUMBERS", 60 * model.likelihood.conjugate.size)
    assert JaxMixture.of(model).shard_size == 60
    on_cpu, in_jax = both_fits(model, JaxMixture.of(model), data)
    assert_allclose(in_jax.elbo, on_cpu.elbo, rtol=1e-8)


@pytest.mark.parametrize("local", ["exact", pytest.param("mean-field", marks=pytest.mark.slow)])
def test_a_run_that_is_taken_up_again_ends_in_the_same_bits(tmp_path, local):
    model, data = new_factorial(local, restarts=1)
    in_jax = JaxFactorialModel.of(model)
    options = {"max_passes": 6, "progress": False, "tolerance": 0.0}
    expected = fit(in_jax, TableSource(data), **options)

    def stop(report):
        if report.record.step == 3:
            raise KeyError

    kept = Checkpoint(tmp_path, every_steps=1)
    with pytest.raises(KeyError):
        fit(in_jax, TableSource(data), **options, checkpoint=kept, callbacks=[stop])
    result = fit(in_jax, TableSource(data), **options, checkpoint=kept)
    assert_array_equal(result.posterior.precision_mean, expected.posterior.precision_mean)


def test_steps_can_be_stored():
    model, data = new_factorial()
    in_jax = JaxFactorialModel.of(model)
    start = in_jax.initialize(TableSource(data), np.random.default_rng(3))
    step = in_jax.local_step(data, in_jax.expectations(start), 1.0)
    arrays = {}
    again = from_json(to_json(step, "step", arrays), arrays)
    assert type(again) is type(step)
    assert_array_equal(again.activations, step.activations)
    assert type(in_jax.on_cpu()) is FactorialModel
    assert in_jax.on_cpu().shard_size == model.shard_size


def test_a_likelihood_that_jax_does_not_know():
    weights = Dirichlet(2)
    model = Mixture(Categorical(3), weights, np.ones(2), np.ones(3))
    with pytest.raises(TypeError, match="mixtures of Categorical do not run in JAX"):
        JaxMixture.of(model)


def test_learning_rates_of_minibatches():
    model, data = new_mixture("bernoulli")
    rates = RobbinsMonro(10.0, 0.7)
    on_cpu, in_jax = both_fits(
        model, JaxMixture.of(model), data, batch_size=50, learning_rate=rates
    )
    assert_allclose(in_jax.posterior.components, on_cpu.posterior.components, rtol=1e-8)


ESTIMATORS = {
    "gaussian": (BayesianGaussianMixture, POINTS, {}),
    "gaussian, minibatches": (BayesianGaussianMixture, POINTS, {"batch_size": 64, "max_iter": 4}),
    "bernoulli": (BernoulliMixture, POINTS, {}),
    "poisson": (PoissonMixture, COUNTS, {}),
    "factorial": (FactorialMixture, POINTS, {"learn": ["noise_variance"], "max_iter": 60}),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "bernoulli" else [pytest.mark.slow])
        for name in ESTIMATORS
    ],
)
def test_estimators_find_the_same_on_both_backends(name):
    estimator, data, options = ESTIMATORS[name]
    settings = {"random_state": 0, "total_samples": 2 * N, **options}
    on_cpu, in_jax = (
        estimator(K, backend=backend, **settings).fit(data) for backend in ("cpu", "jax")
    )
    assert_allclose(in_jax.elbo_, on_cpu.elbo_, rtol=1e-6)
    assert_allclose(in_jax.score(data), on_cpu.score(data), rtol=1e-5)
    on_cpu, in_jax = (
        estimator(K, backend=backend, **settings).partial_fit(data).partial_fit(data)
        for backend in ("cpu", "jax")
    )
    assert_allclose(in_jax.score(data), on_cpu.score(data), rtol=1e-6)
    if name == "factorial":
        assert_allclose(in_jax.noise_variance_, on_cpu.noise_variance_, rtol=1e-6)
        assert type(in_jax._model) is FactorialModel


def test_a_gpu_is_taken_for_many_data(monkeypatch):
    monkeypatch.setattr("tempering.gpu.jax_device.platform", lambda: "gpu")
    monkeypatch.setattr("tempering.gpu.jax_device.DRIVER_FILES", ("/",))
    model, _ = new_mixture("full")
    assert type(model_on("auto", model, 1000)) is Mixture
    assert type(model_on("auto", model, 10**9)) is JaxMixture
    assert type(model_on("auto", new_factorial()[0], 10**9)) is JaxFactorialModel
