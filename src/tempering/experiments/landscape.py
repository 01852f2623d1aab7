"""Figure 1: the annealed ELBO of two Gaussians, and why annealing works.

A mixture of two one-dimensional Gaussians with known weights (0.3, 0.7) and unit variance has two
optima in the means (μ0, μ1): the right one and its mirror image. At a high temperature there is
one; cooling slowly through the temperature at which it splits leads to the better of the two.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tempering.families import FixedWeights, IsotropicGaussian, Normal
from tempering.inference import Report, fit
from tempering.models import Mixture, Natural
from tempering.models.base import Array
from tempering.temperature import Annealing, Untempered, schedules

WEIGHTS = (0.3, 0.7)
MEANS = (-3.2, 3.2)
PRIOR_VARIANCE = 25.0
TEMPERATURES = (20.0, 13.0, 8.5, 1.0)
GRID = np.linspace(-6.0, 6.0, 121)

SCHEDULES: dict[str, Untempered] = {
    "plain VI": Untempered(),
    "linear in T, 20 to 1 in 50 iterations": Annealing(schedules.linear(20.0), passes=50),
    "linear in 1/T, 20 to 1 in 50 iterations": Annealing(schedules.linear_inverse(20.0), passes=50),
    "geometric, 20 to 1 in 50 iterations": Annealing(schedules.geometric(20.0), passes=50),
}


@dataclass(frozen=True)
class Success:
    """How often a schedule reached the global optimum."""

    schedule: str
    runs: int
    global_optimum: int
    mean_elbo: float
    iterations: float


def two_gaussians() -> Mixture:
    """The model: unknown means, everything else known."""
    likelihood = IsotropicGaussian(1, variance=1.0)
    prior = likelihood.conjugate.natural(mean=[0.0], variance=PRIOR_VARIANCE)
    return Mixture(likelihood, FixedWeights(WEIGHTS), np.empty(0), prior)


def draw_data(n: int, rng: np.random.Generator) -> Array:
    """n points of the true mixture, in the true proportions."""
    labels = (np.arange(n) >= WEIGHTS[0] * n).astype(int)
    return (np.asarray(MEANS)[labels] + rng.standard_normal(n))[:, None]


def posterior_at(model: Mixture, means: Array, variances: Array) -> Natural:
    """q(μ) with the given means and variances, each [2]."""
    conjugate = Normal(1)
    components = [conjugate.natural(mean=[m], variance=v) for m, v in zip(means, variances)]
    return Natural(weights=np.empty(0), components=np.stack(components))


def means_of(posterior: Natural) -> Array:
    """(μ0, μ1), the means of q."""
    return posterior.components[:, 0] / posterior.components[:, 1]


def annealed_elbo(model: Mixture, data: Array, temperature: float, grid: Array = GRID) -> Array:
    """The annealed ELBO over (μ0, μ1), with q(z) optimal and the variances of q(μ) as if sure of z.

    Returns an array [len(grid), len(grid)] indexed by μ0, then μ1.
    """
    s = 1.0 / temperature
    likelihood, conjugate, prior = model.likelihood, Normal(1), model.prior().components[0]
    log_joints, divergences = [], []
    for weight in WEIGHTS:
        variance = 1.0 / (1.0 / PRIOR_VARIANCE + s * len(data) * weight)
        natural = conjugate.natural(grid[:, None], np.full(grid.size, variance))
        expected = conjugate.expected_statistics(natural)
        log_joints.append(np.log(weight) + likelihood.expected_log_likelihood(data, expected))
        divergences.append(conjugate.divergence(natural, prior))
    # s · energy + entropy = Σ_i log Σ_k exp{s log_joint_ik} at the optimal q(z)
    first, second = log_joints
    values = np.stack([np.logaddexp(s * row[:, None], s * second).sum(axis=0) for row in first.T])
    return values - divergences[0][:, None] - divergences[1]


def local_optima(values: Array, grid: Array = GRID) -> list[tuple[float, float]]:
    """Grid points that are higher than all eight neighbours."""
    padded = np.pad(values, 1, constant_values=-np.inf)
    rows, columns = values.shape
    neighbours = [
        padded[1 + i : 1 + i + rows, 1 + j : 1 + j + columns]
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    ]
    peaks = np.argwhere(values > np.max(neighbours, axis=0))
    return [(float(grid[i]), float(grid[j])) for i, j in peaks]


def success_table(
    model: Mixture,
    data: Array,
    n_starts: int,
    rng: np.random.Generator,
    report: Callable[[str], None] = lambda name: None,
) -> list[Success]:
    """Coordinate ascent from random starts under each schedule."""
    starts = rng.normal(scale=np.sqrt(PRIOR_VARIANCE), size=(n_starts, 2))
    table = []
    for name, temperature in SCHEDULES.items():
        report(name)
        runs = [
            fit(
                model,
                data,
                temperature=temperature,
                initial=posterior_at(model, start, np.ones(2)),
                max_passes=500,
                tolerance=1e-8,
                n_threads=1,
                progress=False,
            )
            for start in starts
        ]
        # Unequal weights tell the two optima apart: in the better one the lighter is on the left.
        right = sum(bool(means_of(run.posterior)[0] < means_of(run.posterior)[1]) for run in runs)
        table.append(
            Success(
                name,
                n_starts,
                right,
                float(np.mean([run.elbo for run in runs])),
                float(np.mean([len(run.history) for run in runs])),
            )
        )
    return table


def annealed_path(model: Mixture, data: Array, start: Array) -> list[tuple[float, float, float]]:
    """(T, μ0, μ1) along one run that cools linearly from 20 to 1 in 50 iterations."""
    path = [(20.0, float(start[0]), float(start[1]))]

    def record(report: Report) -> None:
        first, second = means_of(report.posterior)
        path.append((report.record.temperature, float(first), float(second)))

    fit(
        model,
        data,
        temperature=SCHEDULES["linear in T, 20 to 1 in 50 iterations"],
        initial=posterior_at(model, start, np.ones(2)),
        max_passes=500,
        tolerance=1e-8,
        callbacks=[record],
        progress=False,
    )
    return path


def run(
    out: Path,
    *,
    n_starts: int = 200,
    n_data: int = 300,
    seed: int = 0,
    report: Callable[[str], None] = lambda name: None,
) -> dict:
    """The whole experiment: numbers to ``landscape.json`` and ``.csv``, the figure to ``.png``."""
    from tempering.plots.landscape import draw_landscape

    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    model, data = two_gaussians(), draw_data(n_data, rng)
    report("the annealed ELBO on a grid")
    surfaces = {T: annealed_elbo(model, data, T) for T in TEMPERATURES}
    optima = {T: local_optima(values) for T, values in surfaces.items()}
    # A start in the basin of the wrong optimum, which plain VI does not leave.
    path = annealed_path(model, data, np.array([5.0, 1.0]))
    table = success_table(model, data, n_starts, rng, report)
    numbers = {
        "seed": seed,
        "n_data": n_data,
        "optima": {str(T): places for T, places in optima.items()},
        "success": [asdict(row) for row in table],
        "path": path,
    }
    draw_landscape(out / "landscape.png", GRID, surfaces, optima, path)
    (out / "landscape.json").write_text(json.dumps(numbers, indent=2) + "\n")
    with (out / "landscape.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(numbers["success"][0]))
        writer.writeheader()
        writer.writerows(numbers["success"])
    return numbers
