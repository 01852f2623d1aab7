"""A temperature for each datum of a NumPyro model: a density, and one that bears outliers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("numpyro")

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import log_density

from tempering.blackbox import TemperedSVI, local_inverse_temperatures, temper, temper_locally
from tempering.blackbox.handlers import LocallyTempered

pytestmark = pytest.mark.usefixtures("without_optimizations")

KEY = jax.random.key(3)
GRID, PRIOR = jnp.array([1.0, 0.5, 0.1]), jnp.array([0.5, 0.3, 0.2])
LINE = np.linspace(-80, 80, 4001)
PLANE = np.stack(np.meshgrid(np.linspace(-40, 40, 301), np.linspace(-40, 40, 301)), -1)


@pytest.mark.parametrize(
    ("density", "values", "cell"),
    [
        (dist.Normal(0.3, 1.5), LINE, 0.04),
        (dist.Laplace(0.3, 1.5), LINE, 0.04),
        (dist.Normal(jnp.array([0.3, -1.0]), 1.5).to_event(1), PLANE, (80 / 300) ** 2),
        (dist.Normal(0.0, 1.5).expand([2]).to_event(1), PLANE, (80 / 300) ** 2),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, dist.Distribution) else "",
)
def test_the_densities_have_weight_one_and_are_mixtures_of_powers(density, values, cell):
    tempered = LocallyTempered(density, GRID, jnp.log(PRIOR))
    # Each as one program: op by op it would be ten.
    mixture = np.exp(jax.jit(tempered.log_prob)(values))
    assert_allclose(mixture.sum() * cell, 1.0, rtol=2e-3)
    # By brute force: each power over its own sum.
    logs = np.asarray(jax.jit(density.log_prob)(values), float)
    powers = [np.exp(s * logs) / (np.exp(s * logs).sum() * cell) for s in np.asarray(GRID)]
    expected = sum(w * p for w, p in zip(np.asarray(PRIOR), powers, strict=True))
    assert_allclose(mixture, expected, rtol=5e-3, atol=1e-9)
    mean = sum(w * s * p for w, s, p in zip(np.asarray(PRIOR), np.asarray(GRID), powers))
    seen = expected > 1e-9
    found = np.asarray(jax.jit(tempered.inverse_temperature)(values))
    assert_allclose(found[seen], (mean / expected)[seen], rtol=5e-3)


def line(x, y):
    weights = numpyro.sample("weights", dist.Normal(jnp.zeros(2), 5.0).to_event(1))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(weights[0] + weights[1] * x, 0.5), obs=y)


@pytest.mark.slow
def test_a_line_is_found_in_spite_of_outliers():
    rng = np.random.default_rng(0)
    x = np.linspace(-2, 2, 100)
    y = 1 + 2 * x + 0.5 * rng.standard_normal(100)
    y[80::2] -= rng.uniform(5, 15, 10)  # a tenth, all at one end
    squares = np.polyfit(x, y, 1)[::-1]
    assert np.linalg.norm(squares - [1, 2]) > 1
    robust = temper_locally(line)
    svi = TemperedSVI(robust, AutoNormal(robust), numpyro.optim.Adam(0.05), temperature=None)
    x, y = jnp.asarray(x), jnp.asarray(y)
    # As one program: op by op the start alone would be two hundred.
    params = jax.jit(lambda key: svi.run(key, 500, x, y, progress_bar=False).params)(KEY)
    found = params["weights_auto_loc"]
    assert_allclose(found, [1, 2], atol=0.25)
    (s,) = local_inverse_temperatures(robust, {"weights": found[None]}, x, y).values()
    outliers = np.arange(100) % 2 == 0
    outliers[:80] = False
    assert s.shape == (100,)
    assert s[outliers].max() < 0.1
    assert s[~outliers].mean() > 0.4


def test_what_cannot_be_is_refused():
    def counts():
        rate = numpyro.sample("rate", dist.Exponential(1.0))
        numpyro.factor("prior", -rate)
        numpyro.sample("x", dist.Poisson(rate), obs=2)

    with numpyro.handlers.seed(rng_seed=0):
        with pytest.raises(
            ValueError, match=r"sites names \['z'\], which the model does not sample"
        ):
            temper_locally(line, sites=["y", "z"])(jnp.zeros(3), jnp.zeros(3))
        with pytest.raises(ValueError, match=r"the site 'x' is Poisson.*Normal and Laplace"):
            temper_locally(counts)()
        with pytest.raises(ValueError, match=r"the site 'prior' is Unit"):
            temper_locally(counts, sites=["prior"])()
    for handler, known in ((temper, "'likelihood', 'joint'"), (temper_locally, "'likelihood'")):
        with pytest.raises(ValueError, match=f"sites must be {known} or a list of sites; got 'y'"):
            handler(line, sites="y")
    with pytest.raises(ValueError, match="inverse_temperatures must be"):
        temper_locally(counts, [0.0, 1.0])
    with pytest.raises(ValueError, match="no site with local temperatures: give temper_locally"):
        local_inverse_temperatures(line, {"weights": jnp.zeros((1, 2))}, jnp.zeros(3), jnp.zeros(3))
    for draws in ({}, {"weight": jnp.zeros((1, 2))}):
        with pytest.raises(ValueError, match=r"all latent sites of the model; \['weights'\] lack"):
            local_inverse_temperatures(temper_locally(line), draws, jnp.zeros(3), jnp.zeros(3))


def test_a_datum_that_is_masked_counts_for_nothing():
    def masked(x, y):
        weights = numpyro.sample("weights", dist.Normal(jnp.zeros(2), 5.0).to_event(1))
        with numpyro.plate("data", len(x)), numpyro.handlers.mask(mask=jnp.isfinite(y)):
            numpyro.sample("y", dist.Normal(weights[0] + weights[1] * x, 0.5), obs=y)

    x, y, weights = jnp.arange(3.0), jnp.array([1.0, jnp.nan, 9.0]), {"weights": jnp.ones(2)}
    seen = jnp.array([0, 2])
    whole, others = (masked, x, y), (line, x[seen], y[seen])
    found, expected = jax.jit(
        lambda: [log_density(temper_locally(m), (*d,), {}, weights)[0] for m, *d in (whole, others)]
    )()
    assert_allclose(found, expected, rtol=1e-6)
