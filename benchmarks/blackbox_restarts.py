"""Restarts of a Bayesian neural net: all in one program, and one after the other.

    python benchmarks/blackbox_restarts.py --restarts 64 --steps 1000

Told are the seconds of each way after compilation, their ratio, and the best ELBO. The keys are the
same in both. On a GPU many small fits cost hardly more than one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from blackbox import ADAM, Bench
from blackbox_targets import TARGETS
from tempering.blackbox import TemperedSVI
from tempering.blackbox.tempered_svi import _forgetful


def one_run(bench: Bench, temperature: Any, steps: int) -> Callable[[jax.Array], jax.Array]:
    """A run of a key, which gives its ELBO. A guide remembers its first trace: each has its own."""
    model, data = bench.target.model, bench.target.data
    svi = TemperedSVI(model, _forgetful(bench.guide), ADAM, temperature=temperature)

    def run(key: jax.Array) -> jax.Array:
        params = svi.run(key, steps, *data, progress_bar=False).params
        return -svi._losses(svi.loss, key, params, 100, data, {}).mean()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="network", choices=TARGETS)
    parser.add_argument("--restarts", type=int, default=64)
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    bench = Bench(TARGETS[options.target]())
    keys = jax.random.split(jax.random.key(0), options.restarts)
    print(f"{options.target}, {options.restarts} runs of {options.steps} steps, {jax.devices()[0]}")
    for name in ("plain", "adaptive"):
        temperature = None if name == "plain" else "adaptive"
        together = jax.jit(jax.vmap(one_run(bench, temperature, options.steps)))
        together = together.lower(keys).compile()
        alone = jax.jit(one_run(bench, temperature, options.steps)).lower(keys[0]).compile()
        jax.block_until_ready((together(keys), alone(keys[0])))
        begin = time.perf_counter()
        elbos = jax.block_until_ready(together(keys))
        middle = time.perf_counter()
        one_by_one = jnp.stack([jax.block_until_ready(alone(key)) for key in keys])
        times = middle - begin, time.perf_counter() - middle
        print(
            f"{name}: together {times[0]:.2f} s, one after the other {times[1]:.2f} s, ratio "
            f"{times[1] / times[0]:.1f}; best ELBO {elbos.max():.1f}, {one_by_one.max():.1f}"
        )


if __name__ == "__main__":
    main()
