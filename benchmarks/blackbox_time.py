"""What an adaptive run costs beside NumPyro's own SVI, both compiled.

    taskset -c 0 python benchmarks/blackbox_time.py --targets funnel seeds

Told are the microseconds of a step of plain SVI for all seeds together, and the time of an adaptive
run in parts of plain SVI's: the median over repetitions and, in brackets, the quartiles. In each of
them both run in turn, so that other work on the machine slows both. Time is that of the processor.
Both give their losses: a program that does not ask for them does not compute them.
"""

from __future__ import annotations

import argparse
import copy
import time
from typing import Any

import jax
import numpy as np
from numpyro.infer import SVI, Trace_ELBO

from blackbox import ADAM, KEY, Bench
from blackbox_targets import TARGETS
from tempering.blackbox import TemperedSVI


def programs(bench: Bench, keys: jax.Array, steps: int) -> list[Any]:
    """Plain SVI and an adaptive run, compiled for all keys."""
    model, data = bench.target.model, bench.target.data
    adaptive = TemperedSVI(model, bench.guide, ADAM)._fresh()

    def numpyros(key: jax.Array) -> Any:
        svi = SVI(model, copy.copy(bench.fresh), ADAM, Trace_ELBO())
        return svi.run(key, steps, *data, progress_bar=False)[::2]

    def ours(key: jax.Array) -> Any:
        return adaptive.run(key, steps, *data, progress_bar=False)[::2]

    return [jax.jit(jax.vmap(one)).lower(keys).compile() for one in (numpyros, ours)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS), choices=TARGETS)
    options = parser.parse_args()
    keys = jax.random.split(KEY, options.seeds)
    for name in options.targets:
        both = programs(Bench(TARGETS[name]()), keys, options.steps)
        seconds = np.zeros((options.repetitions + 1, 2))
        for i, j in np.ndindex(*seconds.shape):
            begin = time.process_time()
            jax.block_until_ready(both[j](keys))
            seconds[i, j] = time.process_time() - begin
        plain = 1e6 * np.median(seconds[1:, 0]) / options.steps
        low, times, high = np.quantile(seconds[1:, 1] / seconds[1:, 0], [0.25, 0.5, 0.75])
        print(f"{name}: {plain:.1f} µs, {times:.2f} ({low:.2f}, {high:.2f}) times", flush=True)


if __name__ == "__main__":
    main()
