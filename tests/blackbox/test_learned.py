"""A learned temperature: q(T) by brute force, normalisers by quadrature, and T = 1 at the end."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

pytest.importorskip("numpyro")

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import init_to_value
from numpyro.infer.autoguide import AutoDelta, AutoNormal

from tempering import Mixture, VariationalTempering, families
from tempering import fit as conjugate_fit
from tempering.blackbox import TemperedSVI, TemperedVI, log_normalizer

pytestmark = pytest.mark.usefixtures("without_optimizations")

KEY = jax.random.key(3)
POWERS = (1.0, 0.5, 0.25)
LINE, WIDE = np.linspace(-150, 150, 60_001), np.sinh(np.linspace(-30, 30, 60_001))
POSITIVE = np.exp(np.linspace(-40, 12, 20_001))
UNIT = 1 / (1 + np.exp(-np.linspace(-35, 35, 20_001)))
MEANS = jnp.array([-6.0, -1.0, 0.5, 4.0])


def normalizers(density, powers):
    return jax.jit(jax.vmap(lambda s: log_normalizer(density, s)))(jnp.asarray(powers))


def log_prob(density, at):
    """As one program: op by op it would be ten."""
    return np.asarray(jax.jit(density.log_prob)(at), float)


def normalizer(density, power):
    return jax.jit(lambda s: log_normalizer(density, s))(power)


def integral(log_density, at):
    """log ∫ exp(log_density) by trapezoids."""
    weights = np.gradient(np.asarray(at, float))
    return logsumexp(np.asarray(log_density, float), b=weights)


@pytest.mark.parametrize(
    ("density", "at"),
    [
        (dist.Normal(3.0, 1.5), LINE),
        (dist.Laplace(3.0, 1.5), LINE),
        (dist.StudentT(6.0, 3.0, 1.5), WIDE),
        (dist.LogNormal(0.3, 0.7), POSITIVE),
        (dist.Gamma(0.5, 2.0), POSITIVE),
        (dist.Gamma(3.0, 2.0), POSITIVE),
        (dist.Exponential(2.0), POSITIVE),
        (dist.Beta(0.5, 3.0), UNIT),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, dist.Distribution) else "",
)
def test_normalizers_are_integrals(density, at):
    with jax.enable_x64(True):
        logs = log_prob(density, at)
    for s, found in zip(POWERS, normalizers(density, POWERS), strict=True):
        assert_allclose(found, integral(s * logs, at), atol=2e-3)


@pytest.mark.parametrize(
    ("density", "n"),
    [
        (dist.Bernoulli(0.2), 2),
        (dist.Categorical(jnp.array([0.1, 0.2, 0.7])), 3),
        (dist.Binomial(20, jnp.array([0.4, 0.01])), 21),
        (dist.Binomial(jnp.array([900, 900]), jnp.array([0.5, 0.02])), 901),
        (dist.Poisson(jnp.array([0.01, 1.0, 30.0, 1000.0])), 3000),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, dist.Distribution) else "",
)
def test_normalizers_are_sums(density, n):
    counts = np.arange(n).reshape(-1, *(1,) * len(density.batch_shape))
    with jax.enable_x64(True):
        logs = log_prob(density, counts)
    powers = np.array([*POWERS, 0.1])
    for s, found in zip(powers, normalizers(density, powers), strict=True):
        assert_allclose(found, logsumexp(s * logs, axis=0), atol=1e-3)


def test_normalizers_of_vectors_masks_and_plates():
    scale = jnp.array([0.5, 1.0, 2.0])
    each = normalizer(dist.Normal(0.0, scale), 0.3)
    assert_allclose(normalizer(dist.Normal(0.0, scale).to_event(1), 0.3), each.sum())
    assert_allclose(normalizer(dist.Normal(0.0, 2.0).expand([4]).to_event(1), 0.3), 4 * each[2])
    masked = dist.Normal(0.0, scale).mask(jnp.array([True, False, True]))
    assert_allclose(normalizer(masked, 0.3), each * jnp.array([1, 0, 1]))
    # A Gaussian is a product of Gaussians along its own axes, each as wide as an eigenvalue says.
    covariance = np.array([[2.0, 0.6], [0.6, 1.0]])
    axes = dist.Normal(0.0, np.sqrt(np.linalg.eigvalsh(covariance)))
    normal = dist.MultivariateNormal(jnp.ones(2), covariance)
    assert_allclose(normalizer(normal, 0.3), normalizer(axes, 0.3).sum(), rtol=1e-5)


@pytest.mark.parametrize("component", [dist.Normal(MEANS, 0.7), dist.Laplace(MEANS, 0.7)])
def test_normalizers_of_mixtures_are_near_the_integral(component):
    weights = jnp.array([0.1, 0.2, 0.3, 0.4])
    mixture = dist.MixtureSameFamily(dist.Categorical(weights), component)
    two = dist.Categorical(jnp.stack([weights, weights[::-1]]))
    both = dist.MixtureSameFamily(two, component.expand([2, 4]))
    logs = log_prob(mixture, LINE)
    exact = np.array([integral(s * logs, LINE) for s in POWERS])
    # 128 draws: none is off by more than a factor of 4^(1−s), and their mean by far less.
    allowed = 0.1 * (1 - np.array(POWERS)) + 1e-5
    assert np.all(abs(normalizers(mixture, POWERS) - exact) < allowed)
    first, second = np.asarray(normalizers(both, POWERS)).T
    assert np.all(abs(first - exact) < allowed)
    logs = log_prob(dist.MixtureSameFamily(dist.Categorical(weights[::-1]), component), LINE)
    exact = np.array([integral(s * logs, LINE) for s in POWERS])
    assert np.all(abs(second - exact) < allowed)


def line(x, subsample=None):
    mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
    with numpyro.plate("data", len(x), subsample_size=subsample) as rows:
        numpyro.sample("x", dist.Normal(mean, 0.5), obs=x[rows])


def learned(model, *data, **options):
    """The first state and the one after a step, by a guide that is a point: no draw differs."""
    guide = AutoDelta(model, init_loc_fn=init_to_value(values={"mean": jnp.array(1.5)}))
    policy = VariationalTempering([1.0, 0.6, 0.3, 0.1], [0.1, 0.2, 0.3, 0.4], **options)
    svi = TemperedSVI(model, guide, numpyro.optim.Adam(1e-9), temperature=policy, num_steps=100)
    before = jax.jit(svi.init)(KEY, *data)
    return before.heat, jax.jit(svi.update)(before, *data)[0].heat


def test_q_of_the_temperature_is_that_of_brute_force():
    x = jnp.array([0.5, 2.8, 1.9])
    grid, prior = np.array([1.0, 0.6, 0.3, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    logs = log_prob(dist.Normal(1.5, 0.5), LINE)
    densities = [np.exp(s * logs - integral(s * logs, LINE)) for s in grid]
    data = np.array([[np.interp(each, LINE, d) for each in np.asarray(x)] for d in densities])
    expected = prior * data.prod(1)
    expected = expected @ grid / expected.sum()
    before, after = learned(line, x)
    assert_allclose(before.inverse_temperature, prior @ grid, rtol=1e-6)
    assert_allclose(after.inverse_temperature, expected, rtol=1e-3)
    assert 0.2 < expected < 0.5
    assert_allclose(after.path[:2], [prior @ grid, expected], rtol=1e-3)
    # It follows with the time constant that was asked for.
    _, damped = learned(line, x, damping=4.0)
    there = prior @ grid + (1 - np.exp(-1 / 4)) * (expected - prior @ grid)
    assert_allclose(damped.inverse_temperature, there, rtol=1e-3)


def test_a_subsampled_plate_has_its_scale_in_the_normalizer_too():
    """All data alike: then any two of six say the same as the six."""
    x = jnp.full(6, 2.2)
    _, whole = learned(line, x)
    _, part = learned(lambda x: line(x, subsample=2), x)
    assert_allclose(part.inverse_temperature, whole.inverse_temperature, rtol=1e-5)


@pytest.mark.slow
def test_the_temperature_is_that_of_the_conjugate_engine():
    """Clusters far apart, wider than the model's: labels summed out or not, log C is the same."""
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(-30.0, 1.6, 60), rng.normal(30.0, 1.6, 60)])
    conjugate = Mixture(
        families.IsotropicGaussian(1, 1.0), families.FixedWeights([0.5, 0.5]), [], [0.0, 0.001]
    )
    policy = VariationalTempering(fraction=None)
    history = conjugate_fit(
        conjugate, points[:, None], temperature=policy, finish=False, progress=False
    ).history
    there = history[-1].inverse_temperature

    def model(points):
        means = numpyro.sample("means", dist.Normal(jnp.zeros(2), 1000**0.5).to_event(1))
        clusters = dist.MixtureSameFamily(
            dist.Categorical(jnp.array([0.5, 0.5])), dist.Normal(means, 1.0)
        )
        with numpyro.plate("data", len(points)):
            numpyro.sample("points", clusters, obs=points)

    start = init_to_value(values={"means": jnp.array([-29.0, 29.0])})
    svi = TemperedSVI(
        model,
        AutoNormal(model, init_loc_fn=start),
        numpyro.optim.Adam(0.02),
        temperature=policy,
    )
    run = jax.jit(lambda key: svi.run(key, 600, jnp.asarray(points), progress_bar=False))
    here = 1 / np.asarray(run(KEY).temperatures)[300:]
    assert 0.3 < there < 0.5
    assert here.mean() == pytest.approx(there, abs=0.01)


def test_the_temperature_ends_at_one_and_plain_functions_do_the_same():
    rng = np.random.default_rng(1)
    x = jnp.asarray(3.0 + rng.standard_normal(20), jnp.float32)
    policy = VariationalTempering(every=3)

    def log_likelihood(z, x):
        return dist.Normal(z, 0.5).log_prob(x).sum()

    vi = TemperedVI(
        log_likelihood,
        dist.Normal(0.0, 10.0).log_prob,
        0.0,
        numpyro.optim.Adam(0.02),
        temperature=policy,
        log_normalizer=lambda z, s, x: len(x) * log_normalizer(dist.Normal(z, 0.5), s),
    )
    svi = TemperedSVI(line, AutoNormal(line), numpyro.optim.Adam(0.02), temperature=policy)
    paths = []
    for each in (svi, vi):
        run = jax.jit(lambda key, each=each: each.run(key, 90, x, progress_bar=False))
        paths.append(1 / np.asarray(run(KEY).temperatures))
    for path in paths:
        assert path[0] < 0.5
        assert np.any(np.diff(path[:60]) < 0)  # learned, not scheduled
        assert_array_equal(path[60:], 1.0)
        assert np.all(path >= np.minimum(np.arange(90) / 60, 1) - 1e-6)
        assert path[1] == path[2] != path[0]  # q(T) was learned in the first step, not the second
    assert_allclose(*paths, atol=0.15)  # their draws differ


def test_a_temperature_that_cannot_be_learned_is_refused_by_name():
    def normal():
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        numpyro.sample("x", dist.Normal(mean, 1.0), obs=1.0)

    def weibull():
        scale = numpyro.sample("scale", dist.LogNormal(0.0, 1.0))
        with numpyro.plate("data", 3):
            numpyro.sample("x", dist.Weibull(scale, 2.0), obs=jnp.ones(3))

    def labels():
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        label = numpyro.sample("label", dist.Categorical(jnp.array([0.5, 0.5])))
        numpyro.sample("x", dist.Normal(mean + label, 1.0), obs=1.0)

    options = {"optim": numpyro.optim.Adam(0.02), "temperature": VariationalTempering()}
    options["num_steps"] = 9

    def first_step(svi):
        state = jax.eval_shape(svi.init, KEY)
        jax.eval_shape(lambda state: svi.update(state), state)

    with pytest.raises(ValueError, match=r"'x' is Weibull,.*'adaptive'.*log_normalizer.register"):
        first_step(TemperedSVI(weibull, AutoNormal(weibull), **options))
    with pytest.raises(ValueError, match=r"observed sites only.*\['mean'\]"):
        first_step(TemperedSVI(normal, AutoNormal(normal), temper="joint", **options))
    with (
        pytest.warns(UserWarning, match="discrete"),
        pytest.raises(ValueError, match=r"a guide that draws all others; got \['label'\]"),
    ):
        first_step(TemperedSVI(labels, AutoNormal(normal), **options))
    with pytest.raises(ValueError, match=r"'likelihood' is Unit,.*TemperedVI by log_normalizer="):
        first_step(TemperedVI(jnp.negative, jnp.negative, 0.0, **options))
    options["temperature"] = VariationalTempering(formula="paper")
    with pytest.raises(ValueError, match="formula must be 'auto' here; got 'paper'"):
        TemperedSVI(normal, AutoNormal(normal), **options)
