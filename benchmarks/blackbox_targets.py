"""Targets for ``blackbox.py``: models with data to fit and, where there are, data to predict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import init_to_uniform, init_to_value
from sklearn.datasets import load_breast_cancer


class Target(NamedTuple):
    """A model with the data to fit and, where there are, data to predict."""

    model: Callable[..., Any]
    data: tuple[Any, ...]
    held_out: tuple[Any, ...] | None = None
    start: Callable[..., Any] = init_to_uniform


def mixture(dimensions: int, n_clusters: int, std: float) -> Target:
    """Gaussian clusters of known width, their labels summed out."""
    rng = np.random.default_rng(0)
    centres = 4 * rng.standard_normal((n_clusters, dimensions))
    X = centres[rng.integers(n_clusters, size=600)] + std * rng.standard_normal((600, dimensions))

    def model(X):
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.full(n_clusters, 2.0)))
        with numpyro.plate("clusters", n_clusters):
            means = numpyro.sample("means", dist.Normal(0, 5).expand([dimensions]).to_event(1))
        component = dist.MultivariateNormal(means, scale_tril=std * jnp.eye(dimensions))
        with numpyro.plate("data", len(X)):
            numpyro.sample("X", dist.MixtureSameFamily(dist.Categorical(weights), component), obs=X)

    return Target(model, (jnp.asarray(X[:300]),), (jnp.asarray(X[300:]),))


def sinusoid() -> Target:
    """The frequency of a noisy sinusoid: one mode for each lobe of the periodogram."""
    rng = np.random.default_rng(1)
    t = rng.uniform(0, 2, size=160)
    y = 1.2 * np.sin(2 * np.pi * 1.3 * t + 0.7) + 0.4 * rng.standard_normal(160)

    def model(t, y):
        frequency = numpyro.sample("frequency", dist.Uniform(0.1, 4.0))
        a, b = numpyro.sample("a", dist.Normal(0, 1)), numpyro.sample("b", dist.Normal(0, 1))
        angle = 2 * jnp.pi * frequency * t
        mean = a * jnp.sin(angle) + b * jnp.cos(angle)
        numpyro.sample("y", dist.Normal(mean, 0.4), obs=y)

    t, y = jnp.asarray(t), jnp.asarray(y)
    return Target(model, (t[:80], y[:80]), (t[80:], y[80:]))


def horseshoe() -> Target:
    """Sparse logistic regression: 4 of 40 coefficients are not zero."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 40))
    coefficients = np.zeros(40)
    coefficients[:4] = [3.0, -3.0, 2.0, -2.0]
    y = rng.random(300) < 1 / (1 + np.exp(-X @ coefficients))

    def model(X, y):
        overall = numpyro.sample("overall", dist.HalfCauchy(0.3))
        local = numpyro.sample("local", dist.HalfCauchy(jnp.ones(40)).to_event(1))
        unit = numpyro.sample("unit", dist.Normal(jnp.zeros(40), 1).to_event(1))
        logits = X @ (unit * local * overall)
        numpyro.sample("y", dist.Bernoulli(logits=logits), obs=y)

    X, y = jnp.asarray(X), jnp.asarray(y, int)
    return Target(model, (X[:100], y[:100]), (X[100:], y[100:]))


def network() -> Target:
    """A neural net with ten hidden units and 40 data."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-3, 3, size=240)
    y = np.sin(2 * x) + 0.3 * x + 0.1 * rng.standard_normal(240)

    def model(x, y):
        first = numpyro.sample("first", dist.Normal(jnp.zeros((2, 10)), 2).to_event(2))
        second = numpyro.sample("second", dist.Normal(jnp.zeros(11), 1).to_event(1))
        hidden = jnp.tanh(x[:, None] * first[0] + first[1])
        numpyro.sample("y", dist.Normal(hidden @ second[:10] + second[10], 0.1), obs=y)

    x, y = jnp.asarray(x), jnp.asarray(y)
    return Target(model, (x[:40], y[:40]), (x[40:], y[40:]))


def funnel() -> Target:
    """Eight schools, centred: one mode with a neck, where annealing has nothing to find."""
    effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def model(errors, effects):
        mean = numpyro.sample("mean", dist.Normal(0, 5))
        spread = numpyro.sample("spread", dist.HalfCauchy(5))
        with numpyro.plate("schools", 8):
            school = numpyro.sample("school", dist.Normal(mean, spread))
            numpyro.sample("effects", dist.Normal(school, errors), obs=effects)

    return Target(model, (errors, effects))


def logistic() -> Target:
    """Logistic regression of 569 tumours, 30 measurements each: one mode."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    rows = np.random.default_rng(4).permutation(len(X))
    X, y = jnp.asarray(X[rows]), jnp.asarray(y[rows])

    def model(X, y):
        intercept = numpyro.sample("intercept", dist.Normal(0, 5))
        weights = numpyro.sample("weights", dist.Normal(jnp.zeros(30), 1).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=X @ weights + intercept), obs=y)

    return Target(model, (X[:400], y[:400]), (X[400:], y[400:]))


def brownian() -> Target:
    """Brownian motion that is seen in its first and last ten of thirty steps, with noise."""
    rng = np.random.default_rng(5)
    path = np.cumsum(0.1 * rng.standard_normal(30))
    seen = np.r_[:10, 20:30]
    y = path[seen] + 0.15 * rng.standard_normal(20)

    def model(y):
        innovation = numpyro.sample("innovation", dist.LogNormal(0, 2))
        noise = numpyro.sample("noise", dist.LogNormal(0, 2))
        steps = numpyro.sample("steps", dist.Normal(jnp.zeros(30), 1).to_event(1))
        numpyro.sample("y", dist.Normal(innovation * jnp.cumsum(steps)[seen], noise), obs=y)

    return Target(model, (jnp.asarray(y),))


def seeds() -> Target:
    """Seeds that germinate on 21 plates (Crowder, 1978): a logit for each plate, centred."""
    germinated = [10, 23, 23, 26, 17, 5, 53, 55, 32, 46, 10, 8, 10, 8, 23, 0, 3, 22, 15, 32, 3]
    sown = [39, 62, 81, 51, 39, 6, 74, 72, 51, 79, 13, 16, 30, 28, 45, 4, 12, 41, 30, 51, 7]
    kind, extract = np.repeat([0, 1], [11, 10]), np.repeat([0, 1, 0, 1], [5, 6, 5, 5])
    design = jnp.asarray(np.stack([np.ones(21), kind, extract, kind * extract], 1), jnp.float32)

    def model(sown, germinated):
        spread = numpyro.sample("spread", dist.HalfCauchy(1.0))
        weights = numpyro.sample("weights", dist.Normal(jnp.zeros(4), 3).to_event(1))
        with numpyro.plate("plates", 21):
            logits = numpyro.sample("logits", dist.Normal(design @ weights, spread))
            numpyro.sample("germinated", dist.Binomial(sown, logits=logits), obs=germinated)

    return Target(model, (jnp.asarray(sown), jnp.asarray(germinated)))


def growth() -> Target:
    """Growth curves of eight groups with shared priors; the fit starts long after they rose."""
    rng = np.random.default_rng(6)
    middle, height = rng.normal(5, 1, 8), rng.normal(3, 0.5, 8)
    group, t = np.repeat(np.arange(8), 24), rng.uniform(0, 10, 192)
    y = height[group] / (1 + np.exp(middle[group] - t)) + 0.2 * rng.standard_normal(192)
    seen = np.arange(192) % 2 == 0

    def model(group, t, y):
        middle = numpyro.sample("middle", dist.Normal(5, 5))
        spread = numpyro.sample("spread", dist.HalfNormal(2))
        noise = numpyro.sample("noise", dist.HalfNormal(1))
        with numpyro.plate("groups", 8):
            middles = numpyro.sample("middles", dist.Normal(middle, spread))
            heights = numpyro.sample("heights", dist.Normal(2, 2))
        mean = heights[group] / (1 + jnp.exp(jnp.clip(middles[group] - t, -40, 40)))
        numpyro.sample("y", dist.Normal(mean, noise), obs=y)

    def part(rows):
        return jnp.asarray(group[rows]), jnp.asarray(t[rows]), jnp.asarray(y[rows])

    late = init_to_value(values={"middle": jnp.array(20.0), "middles": jnp.full(8, 20.0)})
    return Target(model, part(seen), part(~seen), late)


TARGETS = {
    "mixture, 2-D": lambda: mixture(2, 8, 0.7),
    "mixture, 10-D": lambda: mixture(10, 8, 1.0),
    "sinusoid": sinusoid,
    "horseshoe": horseshoe,
    "network": network,
    "funnel": funnel,
    "logistic": logistic,
    "Brownian motion": brownian,
    "seeds": seeds,
    "growth curves": growth,
}
