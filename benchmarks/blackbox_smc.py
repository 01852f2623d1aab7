"""What sequential Monte Carlo says of the targets of ``blackbox.py``: a reference.

    python benchmarks/blackbox_smc.py [--particles 4000] [--seeds 3] [--targets network funnel]

BlackJAX's adaptive tempered SMC (``pip install blackjax``) cools particles from the prior to the
posterior. At each temperature they make steps of HMC, with their own variances for the masses and a
step size that follows the rate of acceptance. Told are log p(x), which no ELBO can exceed, and the
log predictive density of a held-out datum, for each seed.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
from blackjax.smc import extend_params
from blackjax.smc.resampling import systematic
from jax.flatten_util import ravel_pytree
from numpyro.handlers import seed, trace
from numpyro.infer import log_likelihood
from numpyro.infer.util import constrain_fn, potential_energy, unconstrain_fn

from blackbox_targets import TARGETS, Target
from tempering.blackbox import temper

LEAPFROGS, ACCEPTED, EFFECTIVE = 20, 0.8, 0.9


def prior_draws(target: Target, key: jax.Array, n: int) -> Any:
    """Parameters from the prior, unconstrained."""

    def one(key: jax.Array) -> Any:
        sites = trace(seed(target.model, key)).get_trace(*target.data)
        drawn = {
            name: site["value"]
            for name, site in sites.items()
            if site["type"] == "sample" and not site["is_observed"]
        }
        return unconstrain_fn(target.model, target.data, {}, drawn)

    return jax.jit(jax.vmap(one))(jax.random.split(key, n))


def cool(target: Target, key: jax.Array, n: int, moves: int) -> tuple[Any, float, int]:
    """Particles of the posterior, log p(x), and the number of temperatures."""

    def log_density(s: float, position: Any) -> jax.Array:
        return -potential_energy(temper(target.model, s), target.data, {}, position)

    def algorithm(parameters: dict[str, jax.Array]) -> Any:
        return blackjax.adaptive_tempered_smc(
            lambda position: log_density(0.0, position),
            lambda position: log_density(1.0, position) - log_density(0.0, position),
            blackjax.hmc.build_kernel(),
            blackjax.hmc.init,
            extend_params(parameters),
            systematic,
            EFFECTIVE,
            num_mcmc_steps=moves,
        )

    @jax.jit
    def step(key: jax.Array, state: Any, step_size: jax.Array) -> Any:
        positions = jax.vmap(lambda particle: ravel_pytree(particle)[0])(state.particles)
        parameters = {
            "step_size": step_size,
            "inverse_mass_matrix": positions.var(0) + 1e-9,
            "num_integration_steps": jnp.asarray(LEAPFROGS),
        }
        state, info = algorithm(parameters).step(key, state)
        rate = info.update_info.acceptance_rate.mean()
        step_size = jnp.clip(step_size * jnp.exp(rate - ACCEPTED), 1e-3, 1.0)
        return state, step_size, info.log_likelihood_increment

    key, first = jax.random.split(key)
    state = algorithm({}).init(prior_draws(target, first, n))
    step_size, evidence, count = jnp.asarray(0.2), 0.0, 0
    while float(state.tempering_param) < 1.0:
        key, now = jax.random.split(key)
        state, step_size, gained = step(now, state, step_size)
        evidence, count = evidence + float(gained), count + 1
    return state.particles, evidence, count


def predict(target: Target, particles: Any) -> float | None:
    """Mean log predictive density of held-out data."""
    if target.held_out is None:
        return None
    draws = jax.vmap(lambda p: constrain_fn(target.model, target.data, {}, p))(particles)
    (densities,) = log_likelihood(target.model, draws, *target.held_out).values()
    n = len(densities)
    return float(jnp.mean(jax.scipy.special.logsumexp(densities, axis=0) - jnp.log(n)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument("--particles", type=int, default=4000)
    parser.add_argument("--moves", type=int, default=10, help="steps of HMC at each temperature")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for name in options.targets:
        target = TARGETS[name]()
        for number in range(options.seeds):
            started = time.perf_counter()
            particles, evidence, count = cool(
                target, jax.random.key(number), options.particles, options.moves
            )
            row = {
                "target": name,
                "seed": number,
                "log_evidence": round(evidence, 2),
                "held_out": predict(target, particles),
                "temperatures": count,
                "seconds": round(time.perf_counter() - started, 1),
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
