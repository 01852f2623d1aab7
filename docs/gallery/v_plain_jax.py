"""Four centres from a likelihood and a prior in JAX.

Eighty points in four clusters, in grey. Each centre has a colour: its dots are draws from what
`TemperedVI` fitted to two plain functions, log p(x | z) and log p(z).
"""

import sys

import jax
import jax.numpy as jnp
import optax
from matplotlib.figure import Figure

from tempering.blackbox import TemperedVI

truth = jnp.array([[-6.0, 0.0], [-2.0, 0.0], [2.0, 0.0], [6.0, 0.0]])
points = truth[jnp.arange(80) % 4] + 0.5 * jax.random.normal(jax.random.key(1), (80, 2))


def log_likelihood(z, points):
    squares = jnp.sum((points[:, None] - z["centres"]) ** 2, -1) / 0.5**2
    densities = -0.5 * squares - jnp.log(2 * jnp.pi * 0.5**2)
    return jnp.sum(jax.nn.logsumexp(densities, axis=1) - jnp.log(4))


def log_prior(z):
    return jnp.sum(jax.scipy.stats.norm.logpdf(z["centres"], scale=5.0))


vi = TemperedVI(log_likelihood, log_prior, {"centres": jnp.zeros((4, 2))}, optax.adam(0.05))
result = vi.run(jax.random.key(0), 900, points, progress_bar=False)
draws = vi.sample(jax.random.key(1), result.params, 300)["centres"]

figure = Figure(figsize=(8.0, 2.0), layout="constrained")
axis = figure.subplots()
axis.plot(*points.T, "o", color="0.7", markersize=5, mew=0)
for k, color in enumerate(("#c1571e", "#2a6fb0", "#3a8f5c", "#7b4fa3")):
    axis.plot(*draws[:, k].T, ".", color=color, alpha=0.4, markersize=4, mew=0)
axis.set(xlabel="first coordinate", ylabel="second", ylim=(-1.4, 1.4), aspect="equal")
axis.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "plain-jax.png", dpi=110)
