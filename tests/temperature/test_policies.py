"""What learned temperatures do: their bound, their pace, and that they end."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp

from problems import tiny_mixture
from tempering.families import Dirichlet, IsotropicGaussian
from tempering.inference import Algorithm, ArraySource, Constant, fit
from tempering.inference.executors import Serial
from tempering.models import Mixture
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Topics
from tempering.temperature import LocalTempering, VariationalTempering, log_partition

GRID, PRIOR = np.array([1.0, 0.6, 0.3, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])


def blobs(n=600, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.array([[-4.0, 0.0], [4.0, 0.0], [0.0, 5.0]])
    return centres[rng.integers(0, 3, size=n)] + rng.normal(size=(n, 2))


def gaussian_mixture(k=3):
    likelihood = IsotropicGaussian(2, 1.0)
    prior = likelihood.conjugate.natural(np.zeros(2), 20.0)
    return Mixture(likelihood, Dirichlet(k), np.full(k, 1.0), prior)


def one_step(model, data, posterior, policy):
    algorithm = Algorithm(model, policy, Constant(), Serial(), data.shape[0], 100)
    (batch,) = ArraySource(data).sweep()
    return algorithm.advance(algorithm.start(posterior, np.random.default_rng(0)), batch)


def bound_of_temperatures(step, model, posterior):
    """What is left of the recorded bound without the entropy of q(z) and the global divergence."""
    return step.tempered_elbo - step.local.entropy + model.divergence(posterior)


@pytest.mark.parametrize("times", [1.0, 7.0])
def test_one_temperature_adds_the_sum_over_its_grid_to_the_bound(times):
    """At the best q(y) it is log Σ_m π_m e^{s_m E} / C(s_m); a prior need not be normalised."""
    model, data, posterior = tiny_mixture("isotropic", n=6)
    policy = VariationalTempering(GRID, prior=times * PRIOR, fraction=None)
    step = one_step(model, data, posterior, policy)
    scores = np.log(PRIOR) + GRID * step.local.energy - log_partition(model, GRID, 6).values
    bound = bound_of_temperatures(step, model, posterior)
    assert bound == pytest.approx(logsumexp(scores), rel=1e-9)
    q = np.exp(scores - logsumexp(scores))
    np.testing.assert_allclose(step.state.heat.weights, q, atol=1e-12)
    assert step.local.inverse_temperature == pytest.approx(q @ GRID)


@pytest.mark.parametrize("times", [1.0, 7.0])
def test_temperatures_of_data_add_sums_over_their_grids_to_the_bound(times):
    model, data, posterior = tiny_mixture("full", n=6)
    model.shard_size = 2
    policy = LocalTempering(
        GRID, prior=times * PRIOR, fraction=None, max_alternations=1000, tolerance=1e-13
    )
    step = one_step(model, data, posterior, policy)
    log_c = model.local_log_normalizer(model.expectations(posterior), GRID, data)
    scores = np.log(PRIOR) + np.outer(step.local.energies, GRID) - log_c
    bound = bound_of_temperatures(step, model, posterior)
    assert bound == pytest.approx(logsumexp(scores, axis=1).sum(), rel=1e-9)


def test_a_temperature_that_is_updated_now_and_then_keeps_its_pace():
    """Damping is in passes: every fifth step moves s as far as five steps do."""

    def path(every):
        policy = VariationalTempering([1.0, 0.5], damping=2.0, every=every, fraction=None)
        still = {"learning_rate": Constant(1e-12), "batch_size": 60, "progress": False}
        history = fit(
            gaussian_mixture(), blobs(), temperature=policy, max_passes=2, finish=False, **still
        ).history
        return history["inverse_temperature"]

    each, fifth = path(1), path(5)
    assert np.ptp(each) > 0.1
    np.testing.assert_allclose(fifth[4::5], each[4::5], atol=0.003)
    assert len(set(fifth)) == 4


def test_each_datum_goes_on_from_its_own_temperature():
    """With one alternation a step, and whatever the shards."""
    model, data, posterior = tiny_mixture("full", n=12)
    found = []
    for shard_size in (100, 5):
        model.shard_size = shard_size
        policy = LocalTempering(GRID, fraction=None, max_alternations=1)
        algorithm = Algorithm(model, policy, Constant(), Serial(), 12, 100)
        state = algorithm.start(posterior, np.random.default_rng(0))
        (batch,) = ArraySource(data).sweep()
        for _ in range(3):
            step = algorithm.advance(state, batch)
            state = step.state
        found.append(state.heat.inverse_temperature)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    assert np.ptp(found[0]) > 0.01


def local_path(damping, fraction=None):
    """Mean 1/T_i, step by step; with one component the energies do not depend on T_i."""
    history = fit(
        gaussian_mixture(1),
        blobs(),
        temperature=LocalTempering(damping=damping, fraction=fraction),
        learning_rate=Constant(1e-12),
        batch_size=100,
        max_passes=4,
        finish=False,
        progress=False,
    ).history
    return history["inverse_temperature"]


def test_all_local_temperatures_are_damped_by_one_factor_that_rises():
    factor = local_path(2.0) / local_path(0.0)
    assert factor[0] == pytest.approx(0.505)  # the mean of 0.01, 0.02, …, 1
    assert (1 - factor[12]) / (1 - factor[0]) == pytest.approx(np.exp(-1))  # after two passes
    assert np.all(np.diff(factor) > 0)


def test_local_temperatures_come_to_one_without_a_jump():
    """However slow their common factor is: a line reaches 1 with the end of the tempered part."""
    factor = local_path(1e9, fraction=0.5) / local_path(0.0, fraction=0.5)
    line = np.minimum(np.arange(24) / 12, 1.0)
    np.testing.assert_allclose(factor, np.maximum(line, 0.505), rtol=1e-6)


def test_a_floor_rises_under_a_temperature_that_would_stay_high():
    """Data far from what the model can explain keep T at its maximum, if nothing else is done."""
    data = 30.0 * np.random.default_rng(0).standard_normal((600, 2))
    options = {"learning_rate": Constant(1e-12), "batch_size": 100, "progress": False}
    paths = {}
    for fraction in (None, 0.5):
        policy = VariationalTempering(fraction=fraction)
        history = fit(
            gaussian_mixture(), data, temperature=policy, max_passes=4, finish=False, **options
        ).history
        paths[fraction] = history["inverse_temperature"]
    np.testing.assert_allclose(paths[None], 0.1, atol=1e-3)
    floor = np.minimum(np.arange(24) / 12, 1.0)
    np.testing.assert_allclose(paths[0.5], np.maximum(floor, 0.1), atol=1e-3)


def test_nothing_is_learned_about_a_temperature_that_has_come_to_one():
    history = fit(
        gaussian_mixture(),
        blobs(),
        temperature=VariationalTempering(fraction=0.5),
        batch_size=100,
        max_passes=4,
        progress=False,
    ).history
    start = history.final_phase_start
    assert 0 < start < len(history) - 5
    assert np.ptp([record.weights for record in history[:start]], axis=0).max() > 0.01
    for record in history[start:]:
        np.testing.assert_array_equal(record.weights, history[start - 1].weights)


@pytest.mark.parametrize("shard_size", [1024, 16])
def test_a_sample_of_documents_stands_for_all_of_them(shard_size):
    """Forty documents alike: the few that are looked at tell what all of them would."""
    grid = np.linspace(0.1, 1.0, 10)
    model = LatentDirichlet(2, 4, 0.4, 0.3, tolerance=1e-7, max_iterations=5000)
    model.shard_size = shard_size
    topics = Topics(np.array([[4.0, 1.0], [3.0, 2.0], [1.0, 5.0], [2.0, 2.0]]), 0.3)
    words = np.array([2, 0, 1, 1])
    data = sparse.csr_matrix(np.tile(words, (40, 1)))
    policy = VariationalTempering(grid, fraction=None, formula="calibrated")
    means = topics.parameters() / topics.parameters().sum(axis=0)
    start = policy.begin(model, 40, np.random.default_rng(0)).inverse_temperature
    gamma = model.local_step(data, model.expectations(topics), start).gamma[0]
    step = one_step(model, data, topics, policy)
    p = means @ (gamma / gamma.sum())
    scores = [40 * (s * words @ np.log(p) - 4 * np.log(np.sum(p**s))) for s in grid]
    np.testing.assert_allclose(
        step.state.heat.weights, np.exp(scores - logsumexp(scores)), rtol=1e-3
    )
