"""Poisson factorisation: its local step against brute force, and its bounds."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma, gammaln

from tempering import Annealing, Checkpoint, Natural, fit, schedules
from tempering.inference import ArraySource
from tempering.models import UnsupportedTemperature
from tempering.models.factor.poisson import PoissonFactors


def drawn(n=40, columns=8, k=3, seed=0):
    rng = np.random.default_rng(seed)
    theta, beta = rng.gamma(0.5, 2.0, (n, k)), rng.gamma(0.5, 2.0, (k, columns))
    return rng.poisson(theta @ beta)


def start(model, x, seed=1):
    return model.initialize(ArraySource(x), np.random.default_rng(seed))


@pytest.mark.parametrize("s", [1.0, 0.4])
def test_local_step_against_all_assignments_of_units(s):
    """q(z), energy and entropy of one row, with each unit's factor enumerated."""
    model = PoissonFactors(2, 3, 0.7, 1.3, 0.4, 0.6)
    x = np.array([[2, 0, 1]])
    posterior = start(model, drawn(20, 3, 2))
    log_beta = digamma(posterior.shape) - np.log(posterior.rate)
    beta = posterior.shape / posterior.rate
    step = model.local_step(x, model.expectations(posterior), s)
    shape, rate = step.shapes[0], step.rates[0]
    np.testing.assert_allclose(rate, 1.3 + s * beta.sum(0))
    log_theta, theta = digamma(shape) - np.log(rate), shape / rate

    units = [0, 0, 2]
    joint, counts = [], []
    for factors in itertools.product(range(2), repeat=3):
        logs = sum(log_theta[k] + log_beta[j, k] for j, k in zip(units, factors, strict=True))
        joint.append(logs - theta @ beta.sum(0) - gammaln(x + 1).sum())
        table = np.zeros((3, 2))
        for j, k in zip(units, factors, strict=True):
            table[j, k] += 1
        counts.append(table)
    joint, counts = np.array(joint), np.array(counts)
    q = np.exp(s * joint - np.logaddexp.reduce(s * joint))
    expected = np.tensordot(q, counts, 1)
    np.testing.assert_allclose(step.statistics.shape, s * expected, rtol=1e-9)
    np.testing.assert_allclose(step.statistics.rate, s * theta)
    np.testing.assert_allclose(shape, 0.7 + s * expected.sum(0), rtol=1e-4)
    assert step.energies[0] == pytest.approx(q @ joint)

    from scipy.stats import gamma

    prior = gamma(0.7, scale=1 / 1.3)
    minus_divergence = sum(
        own.expect(lambda t, own=own: prior.logpdf(t) - own.logpdf(t))
        for own in (gamma(shape[k], scale=1 / rate[k]) for k in range(2))
    )
    assert step.entropy == pytest.approx(-q @ np.log(q) + minus_divergence, abs=1e-6)


def test_divergence_by_quadrature():
    from scipy.stats import gamma

    model = PoissonFactors(1, 2, component_shape=0.8, component_rate=0.5)
    posterior = start(model, np.array([[1, 3], [0, 2]]))
    expected = 0.0
    for shape in posterior.shape[:, 0]:
        own, prior = gamma(shape, scale=1 / posterior.rate[0]), gamma(0.8, scale=2.0)
        expected += own.expect(lambda b, o=own, p=prior: o.logpdf(b) - p.logpdf(b))
    assert model.divergence(posterior) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("s", [1.0, 0.5])
def test_the_tempered_bound_never_falls(s, each):
    x = drawn()
    model = PoissonFactors(3, 8)
    temperatures = np.random.default_rng(2).uniform(s / 2, s, len(x)) if each else s
    posterior, step, bounds = start(model, x), None, []
    for _ in range(60):
        expected = model.expectations(posterior)
        if step is None:
            step = model.local_step(x, expected, temperatures)
        else:
            step = model.continue_local_step(step, x, expected, temperatures)
        bounds.append(step.tempered_energy + step.entropy - model.divergence(posterior))
        posterior = model.prior() + step.statistics
        after = model.continue_local_step(step, x, model.expectations(posterior), temperatures)
        assert (
            after.tempered_energy + after.entropy - model.divergence(posterior) > bounds[-1] - 1e-9
        )
    assert np.diff(bounds).min() > -1e-9
    assert bounds[-1] > bounds[0] + 1


def test_one_temperature_for_all_is_that_temperature_for_each():
    x, model = drawn(), PoissonFactors(3, 8)
    expected = model.expectations(start(model, x))
    common, each = (model.local_step(x, expected, s) for s in (0.6, np.full(len(x), 0.6)))
    np.testing.assert_allclose(common.energies, each.energies, rtol=1e-12)
    np.testing.assert_allclose(common.statistics.shape, each.statistics.shape, rtol=1e-10)


def test_weights_that_underflow_are_made_anew():
    """A column that all components but the inactive one leave out."""
    x = np.array([[3, 0], [0, 4]])
    model = PoissonFactors(2, 2, 1e-3, 1.0, 1e-4, 1.0)
    posterior = model.prior() + model.prior()
    step = model.local_step(x, model.expectations(posterior), 1.0)
    assert np.isfinite(step.energies).all()
    assert np.isfinite(step.entropy)
    np.testing.assert_allclose(step.statistics.shape.sum(1), [3, 4])


def test_sparse_is_dense_and_threads_change_no_bit():
    x, model = np.tile(drawn(300), (4, 1)), PoissonFactors(3, 8)
    results = [
        fit(model, data, max_passes=15, n_threads=threads, progress=False, temperature=policy)
        for policy in [Annealing(schedules.linear(1.4), passes=5)]
        for data, threads in [(x, 1), (sparse.csr_matrix(x), 1), (sparse.csr_array(x), 2)]
    ]
    for result in results[1:]:
        assert result.elbo == results[0].elbo
        assert np.array_equal(result.posterior.shape, results[0].posterior.shape)


def test_an_interrupted_fit_ends_in_the_same_bits(tmp_path):
    x, model = drawn(), PoissonFactors(3, 8)
    options = {"max_passes": 12, "progress": False, "tolerance": 0.0}
    whole = fit(model, x, **options)

    def stop(report):
        if report.record.step == 5:
            raise RuntimeError("stop")

    checkpoint = Checkpoint(tmp_path / "kept", every_steps=1)
    with pytest.raises(RuntimeError, match="stop"):
        fit(model, x, checkpoint=checkpoint, callbacks=[stop], **options)
    seen = []
    resumed = fit(model, x, checkpoint=checkpoint, callbacks=[seen.append], **options)
    assert len(seen) < 12
    assert resumed.elbo == whole.elbo
    assert np.array_equal(resumed.posterior.shape, whole.posterior.shape)


def test_draws_and_new_counts_have_their_moments():
    model = PoissonFactors(2, 3, 2.0, 4.0)
    shape, rate = np.array([[3.0, 1.0], [2.0, 9.0], [5.0, 4.0]]), np.array([2.0, 3.0])
    posterior = Natural(shape=shape, rate=rate)
    components = model.draw(posterior, 40_000, np.random.default_rng(0))["components"]
    mean = (shape / rate).T
    np.testing.assert_allclose(components.mean(axis=0), mean, rtol=0.02)
    np.testing.assert_allclose(components.var(axis=0), mean / rate[:, None], rtol=0.05)
    counts = model.simulate({"components": mean}, np.zeros((100_000, 3)), np.random.default_rng(1))
    # θ ~ Gamma(2, 4): mean 1/2, variance 1/8.
    np.testing.assert_allclose(counts.mean(axis=0), mean.sum(axis=0) / 2, rtol=0.02)
    expected = mean.sum(axis=0) / 2 + np.square(mean).sum(axis=0) / 8
    np.testing.assert_allclose(counts.var(axis=0), expected, rtol=0.03)


def test_the_activations_that_a_fit_ended_with_are_kept():
    """Solved anew some rows end in another optimum; from those kept, the bound is what was told."""
    x, model = drawn(), PoissonFactors(3, 8)
    result = fit(model, x, max_passes=500, tolerance=1e-7, keep_local=True)
    expected, divergence = model.expectations(result.posterior), model.divergence(result.posterior)
    shapes = result.local * (model.activation_rate + expected[1])
    again, anew = (model.local_step(x, expected, 1.0, start) for start in (shapes, None))
    assert again.energy + again.entropy - divergence == pytest.approx(result.elbo, abs=1e-3)
    assert np.abs(result.local - anew.local).max() > 0.5


def test_data_that_are_none():
    model = PoissonFactors(2, 3)
    for wrong in ([[1, -1, 0]], [[np.nan, 0, 0]], [[1, 2]]):
        with pytest.raises(ValueError, match=r"count|columns"):
            fit(model, np.array(wrong), progress=False)
    with pytest.raises(ValueError, match="activation_rate must be"):
        PoissonFactors(2, 3, activation_rate=0.0)


def test_temperatures_cannot_be_learned():
    from tempering import VariationalTempering

    with pytest.raises(UnsupportedTemperature, match="PoissonFactors does not define"):
        fit(PoissonFactors(2, 8), drawn(), temperature=VariationalTempering(), progress=False)
