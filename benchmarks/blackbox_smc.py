"""The evidence of the targets of ``blackbox.py``, beside that of BlackJAX's adaptive tempered SMC.

    pip install blackjax
    python benchmarks/blackbox_smc.py --targets seeds sinusoid

Particles start at the prior and move by HMC in unconstrained space: ten moves at each temperature,
with the variances of the particles as its inverse masses. Ours is ``log_evidence`` of one adaptive
fit with ``AutoNormal`` and 10,000 draws.
"""

from __future__ import annotations

import argparse

import blackjax
import jax
import jax.numpy as jnp
import numpyro
from blackjax.smc.resampling import systematic
from numpyro.infer import Predictive
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import potential_energy, unconstrain_fn

from blackbox_targets import TARGETS, Target
from tempering.blackbox import TemperedSVI, temper


def by_smc(target: Target, key: jax.Array, n_particles: int) -> tuple[float, int]:
    """log p(x), and the number of temperatures."""
    latent = [
        name
        for name, site in numpyro.handlers.trace(numpyro.handlers.seed(target.model, 0))
        .get_trace(*target.data)
        .items()
        if site["type"] == "sample" and not site["is_observed"]
    ]
    draws = Predictive(target.model, num_samples=n_particles)(key, *target.data)
    draws = {name: draws[name] for name in latent}
    particles = jax.vmap(lambda each: unconstrain_fn(target.model, target.data, {}, each))(draws)

    def at(s: float, z: dict[str, jax.Array]) -> jax.Array:
        return -potential_energy(temper(target.model, s), target.data, {}, z)

    @jax.jit
    def step(key, state):
        spread = jax.tree.map(lambda values: jnp.var(values, axis=0).ravel(), state.particles)
        parameters = {
            "step_size": jnp.full(1, 0.3),
            "inverse_mass_matrix": jnp.concatenate(jax.tree.leaves(spread))[None],
            "num_integration_steps": jnp.full(1, 8),
        }
        smc = blackjax.adaptive_tempered_smc(
            lambda z: at(0.0, z),
            lambda z: at(1.0, z) - at(0.0, z),
            blackjax.hmc.build_kernel(),
            blackjax.hmc.init,
            parameters,
            systematic,
            target_ess=0.8,
            num_mcmc_steps=10,
        )
        return smc.step(key, state)

    state = blackjax.smc.tempered.init(particles)
    evidence, n_temperatures = 0.0, 0
    while state.tempering_param < 1 and n_temperatures < 200:
        state, info = step(jax.random.fold_in(key, n_temperatures), state)
        evidence += float(info.log_likelihood_increment)
        n_temperatures += 1
    return evidence, n_temperatures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS), choices=TARGETS)
    parser.add_argument("--particles", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    for name in options.targets:
        target = TARGETS[name]()
        for seed in range(options.runs):
            evidence, n = by_smc(target, jax.random.key(seed), options.particles)
            print(f"{name}: SMC {evidence:.2f} at {n} temperatures", flush=True)
        guide = AutoNormal(target.model, init_loc_fn=target.start)
        svi = TemperedSVI(target.model, guide, numpyro.optim.Adam(0.02))
        for seed in range(options.runs):
            key = jax.random.key(seed)
            params = svi.run(key, 2000, *target.data, progress_bar=False).params
            found = svi.log_evidence(key, params, 10_000, *target.data)
            print(f"{name}: ours {found.log_evidence:.2f} ± {found.error:.2f}", end=", ")
            print(f"{found.effective_draws:.0f} effective draws", flush=True)


if __name__ == "__main__":
    main()
