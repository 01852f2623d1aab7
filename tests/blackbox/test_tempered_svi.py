"""SVI with a temperature: at T = 1 it is NumPyro's, and in the heat it is the objective it says."""

import threading
import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("numpyro")

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.infer import SVI, Trace_ELBO, TraceGraph_ELBO, TraceMeanField_ELBO, init_to_value
from numpyro.infer.autoguide import (
    AutoDelta,
    AutoGuideList,
    AutoLaplaceApproximation,
    AutoMultivariateNormal,
    AutoNormal,
)
from numpyro.infer.util import log_density

from tempering import (
    AdaptiveTempering,
    Annealing,
    LocalTempering,
    Mixture,
    families,
    schedules,
)
from tempering import fit as conjugate_fit
from tempering.blackbox import TemperedSVI, TemperedVI, temper
from tempering.blackbox.heat import policy_of
from tempering.temperature import TemperingWarning

pytestmark = pytest.mark.usefixtures("without_optimizations")

KEY = jax.random.key(3)
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.standard_normal((30, 3)), jnp.float32)
Y = X @ jnp.array([1.0, -2.0, 0.5]) + 0.5 * jnp.asarray(RNG.standard_normal(30), jnp.float32)
NOISE = 0.5


def regression(X, Y):
    weights = numpyro.sample("weights", dist.Normal(jnp.zeros(3), 1.0).to_event(1))
    with numpyro.plate("data", len(X)):
        numpyro.sample("y", dist.Normal(X @ weights, NOISE), obs=Y)


def adam():
    return numpyro.optim.Adam(0.02)


def new(model=regression, guide=AutoNormal, loss=None, **options):
    return TemperedSVI(model, guide(model), adam(), loss, **options)


def posterior_at(s):
    """Mean and covariance of the tempered posterior, which is Gaussian."""
    precision = np.eye(3) + s * np.asarray(X.T @ X) / NOISE**2
    covariance = np.linalg.inv(precision)
    return covariance @ np.asarray(s * X.T @ Y) / NOISE**2, covariance


def log_evidence():
    covariance = NOISE**2 * np.eye(len(X)) + np.asarray(X @ X.T)
    _, determinant = np.linalg.slogdet(2 * np.pi * covariance)
    return -0.5 * (determinant + np.asarray(Y) @ np.linalg.solve(covariance, np.asarray(Y)))


def fitted(svi, *data):
    """Parameters and losses of a run along a path of 1/T, as one program: op by op the start alone
    would be two hundred, each compiled by itself."""

    @jax.jit
    def run(path):
        state = svi.init(KEY, *data)
        state = state._replace(heat=policy_of(None).begin(path.size, None)._replace(path=path))
        state = state._replace(heat=state.heat._replace(inverse_temperature=path[0]))
        step = lambda state, _: svi.update(state, *data)  # noqa: E731
        state, losses = jax.lax.scan(step, state, length=path.size)
        return svi.get_params(state), losses

    return lambda policy: run(policy_of(policy).begin(svi.num_steps, None).path)


LOSSES = [Trace_ELBO, TraceMeanField_ELBO, TraceGraph_ELBO]


@pytest.mark.parametrize(
    "temperature", [pytest.param(None, marks=pytest.mark.slow), schedules.constant(1.0)]
)
def test_at_temperature_one_it_is_numpyros_to_the_bit(temperature):
    plain = SVI(regression, AutoNormal(regression), adam(), Trace_ELBO())
    expected = plain.run(KEY, 50, X, Y, progress_bar=False)
    svi = new(temperature=temperature)
    result = svi.run(KEY, 50, X, Y, progress_bar=False)
    # After 50 steps any gradient that differs in a bit would have told in the parameters.
    assert_array_equal(result.losses, expected.losses)
    for name, value in expected.params.items():
        assert_array_equal(result.params[name], value)
    assert_array_equal(svi.evaluate(result.state, X, Y), plain.evaluate(expected.state, X, Y))
    assert_array_equal(result.temperatures, np.ones(50))


@pytest.mark.parametrize(
    "loss", [LOSSES[0], *(pytest.param(loss, marks=pytest.mark.slow) for loss in LOSSES[1:])]
)
def test_the_tempered_gradient_is_that_of_finite_differences(loss):
    guide = AutoNormal(regression)
    svi = TemperedSVI(regression, guide, adam(), loss(), temperature=None)
    params = svi.get_params(svi.init(KEY, X, Y))

    def loss_of(locations, model):
        values = {**params, "weights_auto_loc": locations}
        return loss().loss(KEY, values, model, guide, X, Y)

    plain = jax.jit(jax.value_and_grad(lambda at: loss_of(at, regression)))
    tempered = jax.jit(jax.value_and_grad(lambda at, s: loss_of(at, temper(regression, s))))
    locations = np.array([0.3, -0.1, 0.2], np.float32)
    for ours, numpyros in zip(tempered(locations, 1.0), plain(locations), strict=True):
        assert_array_equal(ours, numpyros)
    with jax.enable_x64(True):
        locations = np.array([0.3, -0.1, 0.2])
        _, gradient = tempered(locations, 0.3)
        for axis in range(3):
            step = 1e-3 * np.eye(3)[axis]
            rise = tempered(locations + step, 0.3)[0] - tempered(locations - step, 0.3)[0]
            assert_allclose(gradient[axis], rise / 2e-3, rtol=1e-3)
        assert not np.allclose(gradient, tempered(locations, 1.0)[1])


def test_an_update_follows_the_gradient_at_its_temperature():
    svi = TemperedSVI(
        regression, AutoNormal(regression), optax.sgd(1e-3), temperature=schedules.constant(4.0)
    )
    svi.num_steps = 10
    state = svi.init(KEY, X, Y)
    _, step_key = jax.random.split(state.rng_key)
    params = svi.get_params(state)

    def loss(locations):
        values = {**params, "weights_auto_loc": locations}
        return svi.loss.loss(step_key, values, temper(regression, 0.25), svi.guide, X, Y)

    gradient = jax.jit(jax.grad(loss))(params["weights_auto_loc"])
    expected = params["weights_auto_loc"] - 1e-3 * gradient
    state, _ = jax.jit(svi.update)(state, X, Y)
    assert_allclose(svi.get_params(state)["weights_auto_loc"], expected, rtol=1e-5)


@pytest.mark.slow
def test_linear_regression_ends_at_its_posterior_and_evidence():
    """And in the heat, if it is not cooled, at the tempered posterior."""
    cooled = Annealing(schedules.linear(20.0))
    loss = Trace_ELBO(num_particles=8)
    svi = new(guide=AutoMultivariateNormal, loss=loss, temperature=cooled, num_steps=1500)
    fit = fitted(svi, X, Y)

    def check(params, s, **tolerance):
        mean, covariance = posterior_at(s)
        assert_allclose(params["auto_loc"], mean, atol=0.05)
        factor = np.asarray(params["auto_scale_tril"])
        assert_allclose(factor @ factor.T, covariance, **tolerance)

    params, _ = fit(cooled)
    check(params, 1.0, atol=0.004)
    # The guide can be exact: then each weight is the evidence, and so is the ELBO.
    found = svi.log_evidence(KEY, params, 1000, X, Y)
    assert abs(found.log_evidence - log_evidence()) < 4 * found.error < 0.2
    assert 500 < found.effective_draws <= 1000
    check(fit(Annealing(schedules.constant(20.0), fraction=1.0))[0], 0.05, rtol=0.25, atol=0.02)


@pytest.mark.slow
def test_a_mixture_ends_where_the_conjugate_engine_does():
    """Clusters far apart: labels summed out, or each with a q of its own, are the same bound."""
    points = np.concatenate([RNG.normal(-5.0, 1.0, 40), RNG.normal(5.0, 1.0, 80)])
    family = families.IsotropicGaussian(1, 1.0)
    conjugate = Mixture(family, families.Dirichlet(2), np.ones(2), [0.0, 1 / 25])
    there = conjugate_fit(conjugate, points[:, None], progress=False)

    def model(points):
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(2)))
        means = numpyro.sample("means", dist.Normal(jnp.zeros(2), 5.0).to_event(1))
        clusters = dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(means, 1.0))
        with numpyro.plate("data", len(points)):
            numpyro.sample("points", clusters, obs=points)

    svi = new(model, loss=Trace_ELBO(num_particles=8))
    here = svi.run(KEY, 2000, jnp.asarray(points, jnp.float32), progress_bar=False)
    centres = np.sort(family.conjugate.point(there.posterior.components).ravel())
    assert_allclose(np.sort(here.params["means_auto_loc"]), centres, atol=0.05)
    elbo = -svi.evaluate(here.state, jnp.asarray(points, jnp.float32))
    # The guide's weight is Gaussian on the logit's scale, not a beta: it loses little.
    assert there.elbo - 0.5 < elbo < there.elbo + 0.5


@pytest.mark.slow
def test_the_evidence_of_a_guide_that_cannot_be_exact():
    svi = new(temperature=None)  # independent Gaussians for weights that are not
    svi.init(KEY, X, Y)
    mean, covariance = posterior_at(1.0)
    deviations = np.diag(np.linalg.inv(covariance)) ** -0.5
    params = {"weights_auto_loc": jnp.array(mean), "weights_auto_scale": jnp.array(deviations)}
    found = svi.log_evidence(KEY, params, 4000, X, Y)
    assert abs(found.log_evidence - log_evidence()) < 4 * found.error < 0.4
    # What they lose is KL(q ‖ p): the ELBO would be off by more than the error.
    lost = 0.5 * (np.linalg.slogdet(covariance)[1] - 2 * np.log(deviations).sum())
    assert lost > 2 * found.error


@pytest.mark.parametrize("guide", [AutoDelta, AutoLaplaceApproximation])
def test_the_evidence_of_a_point_is_refused(guide):
    """p(x, z) at one z was told as the evidence, without an error."""
    svi = new(guide=guide, temperature=None)
    params = svi.get_params(svi.init(KEY, X, Y))
    with pytest.raises(ValueError, match=r"one place for \[.*'weights'\], as AutoDelta has"):
        svi.log_evidence(KEY, params, 10, X, Y)


def test_factors_of_whole_numbers_are_tempered():
    """Their power was a whole number too: 0, until it was 1."""

    def model():
        numpyro.factor("energy", jnp.arange(4))

    for s in (0.0, 0.5, 1.0):
        assert log_density(temper(model, s), (), {}, {})[0] == 6 * s


def test_an_adaptive_run_is_not_worse_than_a_plain_one(monkeypatch):
    """Plain SVI starts at the narrow peak; the heat leads to the broad one, which is lower."""

    def model():
        z = numpyro.sample("z", dist.Normal(0.0, 5.0))
        peaks = 25 - 0.5 * ((z - 3) / 0.1) ** 2, 15 - 0.5 * ((z + 3) / 1.5) ** 2
        numpyro.factor("x", jnp.logaddexp(*peaks))

    def new_svi(temperature):
        guide = AutoNormal(model, init_loc_fn=init_to_value(values={"z": 3.0}))
        return TemperedSVI(model, guide, adam(), temperature=temperature, num_steps=900)

    hot = Annealing(schedules.geometric(1000.0), fraction=0.6)
    fit = fitted(new_svi(hot))
    assert fit(hot)[0]["z_auto_loc"] < 0  # so that there is something to keep
    plain, losses = fit(None)
    too_hot = "tempering.blackbox.tempered_svi.hot_start"
    monkeypatch.setattr(too_hot, lambda values: jnp.asarray(1e-3))
    run = partial(new_svi(AdaptiveTempering()).run, num_steps=900, progress_bar=False)
    kept = jax.jit(run)(KEY)
    found = plain["z_auto_loc"]
    assert found == pytest.approx(3, abs=0.1)
    assert_allclose(kept.params["z_auto_loc"], found, rtol=1e-4)
    assert_allclose(kept.losses, losses, rtol=1e-4)
    assert_array_equal(kept.temperatures, np.ones(900))
    assert not kept.tempered


def test_the_jacobian_of_a_transform_is_not_tempered():
    """MCMC moves in unconstrained space: NumPyro adds a factor for it, which is no likelihood."""

    def model():
        rate = numpyro.sample("rate", dist.Exponential(1.0))
        numpyro.sample("x", dist.Exponential(rate), obs=2.0)

    energy = numpyro.infer.util.potential_energy(temper(model, 0.25), (), {}, {"rate": 0.5})
    rate = np.exp(0.5)
    assert_allclose(-energy, -rate + 0.25 * (0.5 - 2 * rate) + 0.5, rtol=1e-6)


def test_joint_annealing_of_plain_functions_has_their_prior():
    vi = TemperedVI(jnp.negative, jnp.negative, 0.0, adam(), temperature=Annealing(temper="joint"))
    assert vi.sites == "joint"


def test_joint_tempering_weighs_the_prior_too():
    def values(**options):
        tempered = temper(regression, 0.3, **options)
        at = {"weights": jnp.array([0.3, -0.1, 0.2])}
        return numpyro.infer.util.log_density(tempered, (X, Y), {}, at)[0]

    whole = numpyro.infer.util.log_density(
        regression, (X, Y), {}, {"weights": jnp.array([0.3, -0.1, 0.2])}
    )[0]
    assert_allclose(values(sites="joint"), 0.3 * whole, rtol=1e-6)
    assert_allclose(values(sites=["weights"]) + values(), 1.3 * whole, rtol=1e-6)
    # An analytic KL would be that to the prior as it is.
    guide = AutoNormal(regression)
    svi = TemperedSVI(regression, guide, adam(), temperature=None)
    params = svi.get_params(svi.init(KEY, X, Y))
    losses = [
        jax.jit(partial(loss.loss, KEY, params, temper(regression, 0.3, "joint"), guide))(X, Y)
        for loss in (Trace_ELBO(num_particles=4000), TraceMeanField_ELBO(num_particles=4000))
    ]
    assert_allclose(*losses, rtol=2e-2)


def test_a_subsampled_plate_keeps_its_scale():
    def model(X, Y):
        weights = numpyro.sample("weights", dist.Normal(jnp.zeros(3), 1.0).to_event(1))
        with numpyro.plate("data", len(X), subsample_size=5) as rows:
            numpyro.sample("y", dist.Normal(X[rows] @ weights, NOISE), obs=Y[rows])

    at = {"weights": jnp.array([0.3, -0.1, 0.2])}
    hot = numpyro.handlers.seed(temper(model, 0.25), KEY)
    trace = numpyro.handlers.trace(numpyro.handlers.substitute(hot, at)).get_trace(X, Y)
    assert trace["y"]["scale"] == 6.0
    rows = trace["data"]["value"]
    density = dist.Normal(X[rows] @ at["weights"], NOISE).log_prob(Y[rows])
    assert_allclose(trace["y"]["fn"].log_prob(Y[rows]), 0.25 * density, rtol=1e-6)
    run = partial(new(model, temperature=schedules.linear(5.0)).run, progress_bar=False)
    assert jax.eval_shape(lambda key: run(key, 20, X, Y), KEY).losses.shape == (20,)
    with pytest.raises(ValueError, match="plate 'data' subsamples"):
        new(model).log_evidence(KEY, {}, 10, X, Y)


def test_labels_that_are_summed_out_weigh_tempered_likelihoods():
    pytest.importorskip("funsor")
    from numpyro.infer import TraceEnum_ELBO

    x = jnp.array([-1.0, 0.5, 2.0])

    def model(x):
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        with numpyro.plate("data", 3):
            label = numpyro.sample("label", dist.Bernoulli(0.3), infer={"enumerate": "parallel"})
            numpyro.sample("x", dist.Normal(mean + 2.0 * label, 1.0), obs=x)

    def guide(x):
        numpyro.sample("mean", dist.Delta(0.2))

    loss = TraceEnum_ELBO().loss(KEY, {}, temper(model, 0.4), guide, x)
    tempered = [0.4 * dist.Normal(0.2 + 2.0 * label, 1.0).log_prob(x) for label in (0, 1)]
    summed = jnp.log(0.7 * jnp.exp(tempered[0]) + 0.3 * jnp.exp(tempered[1])).sum()
    assert_allclose(-loss, summed + dist.Normal().log_prob(0.2), rtol=1e-5)

    def near(x):
        numpyro.sample("mean", dist.Normal(0.0, 0.7))

    grid = np.linspace(-6, 6, 2001)[:, None]
    densities = [np.exp(dist.Normal(grid + 2.0 * label, 1.0).log_prob(x)) for label in (0, 1)]
    marginal = np.prod(0.7 * densities[0] + 0.3 * densities[1], axis=1)
    exact = np.log(np.trapezoid(marginal * np.exp(dist.Normal().log_prob(grid[:, 0])), grid[:, 0]))
    found = TemperedSVI(model, near, adam(), TraceEnum_ELBO()).log_evidence(KEY, {}, 2000, x)
    assert abs(found.log_evidence - exact) < 4 * found.error < 0.2


def test_one_compilation_serves_all_temperatures():
    traced = []

    def model(X, Y):
        traced.append(None)
        regression(X, Y)

    svi = new(model, temperature=schedules.linear(5.0), num_steps=20)
    state = svi.init(KEY, X, Y)
    step = jax.jit(svi.update)
    state, _ = step(state, X, Y)
    before = len(traced)
    path = []
    for _ in range(19):
        path.append(float(state.heat.inverse_temperature))
        state, _ = step(state, X, Y)
    assert len(traced) == before
    assert len(set(path)) > 10
    assert path[-1] == 1.0


@pytest.mark.slow
def test_a_run_goes_on_from_a_state():
    svi = new(temperature=schedules.linear(5.0))
    once = svi.run(KEY, 30, X, Y, progress_bar=False)
    again = svi.run(KEY, 10, X, Y, progress_bar=False, init_state=once.state, stable_update=True)
    assert_array_equal(again.temperatures, np.ones(10))
    assert int(again.state.heat.step) == 40


def test_a_state_without_a_temperature_is_refused():
    svi = new(temperature=schedules.linear(5.0), num_steps=3)
    plain = SVI(svi.model, svi.guide, svi.optim, svi.loss).init(KEY, X, Y)
    with pytest.raises(ValueError, match=r"SVIState.* Start from its parameters: init_params="):
        svi.update(plain, X, Y)


@pytest.mark.slow
def test_schedules_of_optax_and_of_the_package_are_one():
    def path(temperature):
        return 1 / new(temperature=temperature, num_steps=12).init(KEY, X, Y).heat.path

    found = path(Annealing(schedules.linear, start="auto"))
    assert found[0] > 10
    assert np.all(np.diff(found) <= 0)
    assert_array_equal(found[8:], np.ones(4))
    own = path(Annealing(schedules.linear(5.0), fraction=0.5))
    assert_allclose(own, [5, 13 / 3, 11 / 3, 3, 7 / 3, 5 / 3] + 6 * [1], rtol=1e-6)
    optaxs = path(Annealing(optax.linear_schedule(5.0, 1.0, 1), fraction=0.5))
    assert_allclose(optaxs, own, rtol=1e-6)


def test_runs_of_one_program_find_their_own_starts():
    policy = policy_of(Annealing(schedules.linear, start="auto"))
    starts = jnp.array([0.5, 0.02])
    paths = jax.jit(jax.vmap(lambda start: policy.begin(12, start).path))(starts)
    for path, start in zip(paths, starts):
        assert path[0] == start
        assert_array_equal(path, policy.begin(12, start).path)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", ["adaptive", Annealing(start="auto")])
def test_restarts_are_runs_of_their_own_and_the_best_is_kept(temperature):
    svi = new(temperature=temperature)
    restarts = svi.run_restarts(KEY, 60, 3, X, Y, keep_all=True)
    losses = np.asarray(restarts.all.losses)
    assert losses.shape == (3, 60)
    assert len(np.unique(losses[:, 0])) == 3
    best = int(np.argmax(restarts.elbos))
    assert_array_equal(restarts.best.losses, losses[best])
    # The guide and the transforms are of use afterwards.
    draws = svi.guide.sample_posterior(KEY, restarts.best.params, sample_shape=(4,))
    assert draws["weights"].shape == (4, 3)
    assert np.isfinite(svi.evaluate(restarts.best.state, X, Y))


def product(x):
    both = numpyro.sample("a", dist.Normal()) * numpyro.sample("b", dist.Normal())
    numpyro.sample("x", dist.Normal(both, 1.0), obs=x)


def guide_of_parts():
    guide = AutoGuideList(product)
    guide.append(AutoDelta(numpyro.handlers.block(product, hide=["b"])))
    guide.append(AutoNormal(numpyro.handlers.block(product, hide=["a"])))
    return guide


@pytest.mark.parametrize("make", [lambda: AutoNormal(product), guide_of_parts])
def test_a_guide_that_is_used_again_starts_from_the_new_key(make):
    guide, x = make(), jnp.ones(5)

    def start(guide, key):
        svi = TemperedSVI(product, guide, adam(), temperature=None)
        return svi.get_params(svi.init(key, x))

    for seed in range(3):
        key = jax.random.key(seed)
        own, fresh = start(guide, key), start(make(), key)
        for name, value in fresh.items():
            assert_array_equal(own[name], value)
    traced = jax.jit(lambda key: start(guide, key))(jax.random.key(0))
    assert traced["a_auto_loc"] != fresh["a_auto_loc"]
    # Values of the traced program would raise an error here.
    assert np.isfinite(guide.sample_posterior(KEY, fresh)["b"])


def test_a_second_run_has_the_start_of_its_own_key(monkeypatch):
    """The plain and the tempered part of an adaptive run have a start each."""
    starts = []

    def race(step, states, *_, **__):
        starts.append([np.ravel(jax.tree.leaves(state.optim_state)[1]) for state in states])
        return states[len(starts) % 2], jnp.zeros(30)

    monkeypatch.setattr("tempering.blackbox.tempered_svi.better_of_two", race)
    svi = new(product)
    for seed in range(3):
        result = svi.run(jax.random.key(seed), 30, 10.0 * jnp.ones(5), progress_bar=False)
        assert result.tempered == (seed % 2 == 0)  # which the race has kept here
    assert len(np.unique(np.ravel(starts))) == np.size(starts)


def test_a_start_at_either_end_of_the_temperatures_is_warned_of():
    def flat(x):
        mean = numpyro.sample("mean", dist.Normal())
        numpyro.sample("x", dist.Normal(mean, 1e4), obs=x)

    def steep(x):
        mean = numpyro.sample("mean", dist.Normal())
        numpyro.sample("x", dist.Normal(mean, 1e-6), obs=x)

    for model, message in ((flat, "has tempered nothing"), (steep, "found no start temperature")):
        with pytest.warns(TemperingWarning, match=message) as caught:
            new(model, num_steps=30).init(KEY, jnp.ones(5))
        assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", TemperingWarning)
        new(num_steps=30).init(KEY, X, Y)


@pytest.mark.slow
def test_restarts_of_a_guide_of_several_parts_start_at_places_of_their_own():
    def two(x):
        product = numpyro.sample("a", dist.Normal()) * numpyro.sample("b", dist.Normal())
        numpyro.sample("x", dist.Normal(product, 1.0), obs=x)

    inner, guide = AutoGuideList(numpyro.handlers.block(two, hide=["b"])), AutoGuideList(two)
    inner.append(AutoDelta(inner.model))
    guide.append(inner)
    guide.append(AutoDelta(numpyro.handlers.block(two, hide=["a"])))
    svi = TemperedSVI(two, guide, adam(), temperature=None)
    restarts = svi.run_restarts(KEY, 1, 3, jnp.ones(5), keep_all=True, n_evaluations=1)
    assert restarts.all is not None
    for place in ("a_auto_loc", "b_auto_loc"):
        assert np.ptp(restarts.all.params[place]) > 0.1  # one step is 0.02


def test_restarts_are_judged_with_the_mutable_state_that_they_ended_with():
    def centred(x):
        memory = numpyro.primitives.mutable("memory", {"mean": jnp.zeros(())})
        memory["mean"] = 0.5 * (memory["mean"] + x.mean())
        shift = numpyro.sample("shift", dist.Normal(0.0, 1.0))
        numpyro.sample("x", dist.Normal(memory["mean"] + shift, 1.0), obs=x)

    x = jnp.full(50, 20.0)
    svi = new(centred, temperature=None)
    restarts = svi.run_restarts(KEY, 100, 2, x, progress_bar=False)
    assert float(restarts.best.losses[-1]) < 100
    assert np.all(np.asarray(restarts.elbos) > -100)
    known = {**restarts.best.params, **restarts.best.state.mutable_state}
    assert svi.log_evidence(KEY, known, 100, x).log_evidence > -100
    for params, lacks in (
        (restarts.best.params, "memory"),
        (restarts.best, "memory', 'shift_auto_loc', 'shift_auto_scale"),
    ):
        with pytest.raises(ValueError, match=rf"params lacks \['{lacks}'\]: give result.params"):
            svi.log_evidence(KEY, params, 100, x)
    # It may be the first to call the guide, which is of use afterwards.
    other = new(centred, temperature=None)
    assert other.log_evidence(KEY, known, 2, x) == svi.log_evidence(KEY, known, 2, x)
    assert np.isfinite(other.run(KEY, 2, x, progress_bar=False).losses[0])


def test_a_guide_may_belong_to_a_model_that_cannot_be_copied():
    class Model:
        def __init__(self):
            self.lock = threading.Lock()

        def sample(self, X, Y):
            with self.lock:
                regression(X, Y)

    assert TemperedSVI(Model().sample, AutoNormal(Model().sample), adam()).guide is not None


@pytest.mark.slow
def test_plain_functions_are_the_same_model():
    def log_likelihood(z, X, Y):
        return dist.Normal(X @ z["weights"], NOISE).log_prob(Y).sum()

    def log_prior(z):
        return dist.Normal().log_prob(z["weights"]).sum()

    like = {"weights": jnp.zeros(3)}
    vi = TemperedVI(log_likelihood, log_prior, like, adam(), temperature=schedules.linear(5.0))
    result = vi.run(KEY, 30, X, Y, progress_bar=False)
    svi = new(temperature=schedules.linear(5.0))
    numpyros = svi.run(KEY, 30, X, Y, progress_bar=False)
    assert_allclose(result.losses, numpyros.losses, rtol=1e-4)
    assert_array_equal(result.temperatures, numpyros.temperatures)
    ours = vi.log_evidence(KEY, result.params, 100, X, Y)
    assert_allclose(ours, svi.log_evidence(KEY, numpyros.params, 100, X, Y), rtol=1e-3)
    draws = vi.sample(KEY, result.params, 2000)["weights"]
    assert draws.shape == (2000, 3)
    assert_allclose(draws.mean(0), result.params["z_auto_loc"], atol=0.02)


@pytest.mark.slow
def test_the_adaptive_temperature_finds_clusters_that_plain_svi_misses():
    """Ten seeds each: labels are summed out, the width is known."""
    centres = np.array([(i, j) for i in (-6.0, -2.0, 2.0, 6.0) for j in (-3.0, 3.0)])
    rng = np.random.default_rng(1)
    points = jnp.asarray(centres[np.arange(160) % 8] + 0.4 * rng.standard_normal((160, 2)))

    def model(points):
        with numpyro.plate("clusters", 8):
            means = numpyro.sample("means", dist.Normal(0, 5).expand([2]).to_event(1))
        labels = dist.Categorical(jnp.full(8, 1 / 8))
        clusters = dist.Normal(means, 0.4).to_event(1)
        with numpyro.plate("data", len(points)):
            numpyro.sample("points", dist.MixtureSameFamily(labels, clusters), obs=points)

    def share(temperature):
        svi = TemperedSVI(
            model, AutoNormal(model), numpyro.optim.Adam(0.05), temperature=temperature
        )
        runs = svi.run_restarts(KEY, 900, 10, points, keep_all=True, n_evaluations=20).all
        means = np.asarray(runs.params["means_auto_loc"])  # [10, 8, 2]
        distances = np.linalg.norm(means[:, :, None] - centres, axis=-1)
        return np.mean(np.all(distances.min(1) < 1.0, axis=1))

    adaptive = share("adaptive")
    assert adaptive >= 0.9
    assert adaptive > share(None)


def test_what_cannot_be_is_refused_before_any_work():
    for empty in (None, {}):
        with pytest.raises(ValueError, match="like must hold a number at least"):
            TemperedVI(lambda z: 0.0, lambda z: 0.0, empty, adam())
    with pytest.raises(ValueError, match=r"temperature must be 'adaptive'.*'hot'"):
        new(temperature="hot")
    with pytest.raises(ValueError, match=r"temperature is LocalTempering.*temper_locally\(model\)"):
        new(temperature=LocalTempering())
    with pytest.raises(ValueError, match=r"from T = 10 to 9.991: .* transition_steps=1"):
        new(temperature=optax.linear_schedule(10.0, 1.0, 1000))
    with pytest.raises(ValueError, match=r"temper must be 'likelihood'.*'prior'"):
        new(temper="prior")
    with pytest.raises(ValueError, match=r"temper must be 'likelihood'.*; got 3"):
        new(temper=3)
    with pytest.raises(ValueError, match=r"temper names \['z'\]"):
        new(temper=["z"]).run(KEY, 10, X, Y)
    with pytest.raises(ValueError, match="no observed site"):
        new().run(KEY, 10, X, None)
    with pytest.raises(ValueError, match=r"num_steps is None.*give num_steps to TemperedSVI"):
        new().init(KEY, X, Y)
    with pytest.raises(ValueError, match="num_steps must be at least 1, and whole; got 0"):
        new().run(KEY, 0, X, Y)
    with pytest.raises(ValueError, match="n_restarts must be at least 1, and whole"):
        new().run_restarts(KEY, 10, 0, X, Y)
    with pytest.raises(ValueError, match=r"init_state is one state.* would be the same"):
        new().run_restarts(KEY, 10, 2, X, Y, init_state=())
    for length in ({"passes": 10}, {"passes": 9.5}, {"fraction": 1.0}, {"fraction": 0.95}):
        svi = new(temperature=Annealing(**length))
        for run in (svi.run, lambda *data, svi=svi: svi.run_restarts(*data[:2], 2, *data[2:])):
            with pytest.raises(ValueError, match="no step at T = 1 in a run of num_steps=10: make"):
                run(KEY, 10, X, Y)
    assert new(temperature=Annealing(passes=9)).run(KEY, 10, X, Y).temperatures[-1] == 1.0
