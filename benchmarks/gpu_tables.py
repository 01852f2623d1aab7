"""Mixtures on a GPU against the CPU: passes a second from the same start, and the ELBO.

    python benchmarks/gpu_tables.py [--passes 10] [--rows 1.0]

Double precision on both. A time is that of a whole fit by the engine, the table sent included,
after a first one that compiles; the CPU has all its cores.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import cpu_count

from lda_common import print_table, write_json
from tempering.families import Bernoulli, Dirichlet, FullGaussian
from tempering.gpu.device_data import TableSource
from tempering.gpu.jax_factorial import JaxFactorialModel
from tempering.gpu.jax_models import JaxMixture
from tempering.inference import fit
from tempering.models import Mixture
from tempering.models.factorial_mixture import FactorialModel


class Problem(NamedTuple):
    """A model, its counterpart in JAX, and data."""

    name: str
    model: Any
    in_jax: Any
    data: np.ndarray


def gaussians(rng: np.random.Generator, n: int, d: int, k: int) -> Problem:
    """Clusters with covariances of their own."""
    centres = rng.normal(0, 3, (k, d))
    data = centres[rng.integers(k, size=n)] + rng.standard_normal((n, d))
    likelihood = FullGaussian(d)
    prior = likelihood.conjugate.natural(np.zeros(d), 1.0, d, np.eye(d))
    model = Mixture(likelihood, Dirichlet(k), np.ones(k), prior)
    return Problem(f"Gaussian mixture, D = {d}, K = {k}", model, JaxMixture.of(model), data)


def bernoullis(rng: np.random.Generator, n: int, d: int, k: int) -> Problem:
    """Binary vectors."""
    probabilities = rng.beta(0.5, 0.5, (k, d))
    data = (rng.random((n, d)) < probabilities[rng.integers(k, size=n)]).astype(float)
    likelihood = Bernoulli(d)
    model = Mixture(likelihood, Dirichlet(k), np.ones(k), likelihood.conjugate.natural(1.0, 1.0))
    return Problem(f"Bernoulli mixture, D = {d}, K = {k}", model, JaxMixture.of(model), data)


def factorial(rng: np.random.Generator, n: int, d: int, k: int) -> Problem:
    """Sums of features; more than twelve are inferred as if independent."""
    shapes = rng.standard_normal((k, d))
    data = (rng.random((n, k)) < 0.3) @ shapes + 0.5 * rng.standard_normal((n, d))
    local = "exact" if k <= 12 else "mean-field"
    model = FactorialModel(k, d, 0.25, 1.0, 0.3, local=local, local_restarts=2)
    name = f"factorial mixture ({local}), D = {d}, K = {k}"
    return Problem(name, model, JaxFactorialModel.of(model), data)


def measure(problem: Problem, passes: int) -> dict[str, Any]:
    """A row of the table."""
    options: dict[str, Any] = {"max_passes": passes, "tolerance": 0.0, "progress": False}
    started = time.perf_counter()
    on_cpu = fit(problem.model, problem.data, **options)
    cpu_seconds = time.perf_counter() - started
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        on_gpu = fit(problem.in_jax, TableSource(problem.data), n_threads=1, **options)
        seconds.append(time.perf_counter() - started)
    gpu_seconds = float(np.median(seconds[1:]))
    return {
        "model": problem.name,
        "rows": problem.data.shape[0],
        "passes": passes,
        f"{cpu_count()} cores, s": cpu_seconds,
        "GPU, first, s": seconds[0],
        "GPU, s": gpu_seconds,
        "times as fast": cpu_seconds / gpu_seconds,
        "ELBO, CPU": on_cpu.elbo,
        "relative difference": abs(on_gpu.elbo / on_cpu.elbo - 1.0),
    }


def main() -> None:
    """Measure one problem after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--rows", type=float, default=1.0, help="share of the rows to take")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    problems = (
        lambda: gaussians(rng, int(500_000 * options.rows), 32, 64),
        lambda: bernoullis(rng, int(500_000 * options.rows), 256, 64),
        lambda: factorial(rng, int(20_000 * options.rows), 4096, 12),
        lambda: factorial(rng, int(50_000 * options.rows), 1024, 64),
    )
    rows = []
    for make in problems:
        rows.append(measure(make(), options.passes))
        print(rows[-1], flush=True)
    print_table("Mixtures", rows)
    write_json(options.json, {"rows": rows})


if __name__ == "__main__":
    main()
