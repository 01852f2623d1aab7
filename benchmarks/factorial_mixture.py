"""Does the factorial mixture find its features? Is it fast?

    python benchmarks/factorial_mixture.py --seeds 40 --output toy.jsonl
    python benchmarks/factorial_mixture.py --part faces --faces yaleb_96x84.npz
    python benchmarks/factorial_mixture.py --part speed

The toy is the paper's: 8 binary 4 × 4 images, each with a weight from U[0.5, 1], N = 10,000,
σ² = 0.1, π = 0.3, σ_μ² = 0.35. Each seed draws weights, data and the start anew; all methods of a
seed have the same data.

* ``ELBO``: at T = 1, under the method's own q(z): factorised, or joint (exact), which is tighter;
* ``gap``: below the best known for these data with the same kind of q(z), fits from the true
  features included;
* ``all found``: runs in which each true feature has a partner of its own at a squared distance
  under a quarter of its length.

A run that was stopped goes on where it was: what stands in the output is not computed again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import linear_sum_assignment
from scipy.stats import ttest_rel
from threadpoolctl import threadpool_limits

from tempering import (
    Annealing,
    FactorialMixture,
    LocalTempering,
    VariationalTempering,
    schedules,
)
from tempering.datasets import ToyImages, make_toy_images
from tempering.inference import Algorithm, ArraySource, Constant, fit
from tempering.inference.executors import local_executor
from tempering.models.factorial_mixture import FactorialModel
from tempering.temperature import Untempered, even_inverse_temperatures

NOISE, FEATURES, ACTIVE = 0.1, 0.35, 0.3
TOY_ITERATIONS = 400

MEAN_FIELD = {"local": "mean-field", "local_restarts": 0, "moves": False}
RESTARTED = {"local": "mean-field", "local_restarts": 2, "moves": False}
EXACT = {"local": "exact", "moves": False}
POLICIES: dict[str, Any] = {
    "VI": None,
    "AVI 10→1 in 10": Annealing(schedules.linear(10.0), passes=10),
    "AVI 10→1 in 100": Annealing(schedules.linear(10.0), passes=100),
    "VT": VariationalTempering(),
    "LVT": LocalTempering(even_inverse_temperatures(50), max_alternations=2),
    "AVI auto": Annealing(schedules.linear, passes=100, start="auto"),
}
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "default, no moves": {"moves": False},
    **{name: {"tempering": policy, **MEAN_FIELD} for name, policy in POLICIES.items()},
    "best of 5 VI": {"tempering": None, "n_init": 5, **MEAN_FIELD},
    **{
        f"{name} + restarts": {"tempering": policy, **RESTARTED}
        for name, policy in POLICIES.items()
    },
    **{f"{name}, exact": {"tempering": POLICIES[name], **EXACT} for name in ("VI", "VT", "LVT")},
    "VI, exact + moves": {"tempering": None, "local": "exact"},
}
TRUTHS = {"truth": RESTARTED, "truth, exact": EXACT}


def features_found(true: np.ndarray, found: np.ndarray) -> int:
    """True features with a partner of their own nearby."""
    distances = np.square(true[:, None] - found[None]).sum(axis=-1)
    rows, columns = linear_sum_assignment(distances)
    near = distances[rows, columns] < 0.25 * np.square(true[rows]).sum(axis=1)
    return int(near.sum())


def run_toy(options: dict[str, Any], data: ToyImages, seed: int) -> dict[str, Any]:
    """Fit once, and measure."""
    options = {"max_iter": TOY_ITERATIONS, "tol": 0.1, **options}
    estimator = FactorialMixture(
        8,
        noise_variance=NOISE,
        feature_variance=FEATURES,
        activation_probability=ACTIVE,
        random_state=seed,
        **options,
    )
    wall, cpu = time.perf_counter(), time.process_time()
    estimator.fit(data.X)
    return {
        "elbo": estimator.elbo_,
        "exact": options.get("local", "exact") == "exact",
        "found": features_found(data.features, estimator.features_),
        "iterations": estimator.n_iter_,
        "temperature": estimator.temperature_,
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
    }


def toy_table(rows: list[dict[str, Any]]) -> Table:
    """Means over the seeds, a line for each method."""
    best: dict[tuple[int, bool], float] = {}
    for row in rows:
        place = row["seed"], row["exact"]
        best[place] = max(best.get(place, -np.inf), row["elbo"])
    plain = {row["seed"]: row["elbo"] for row in rows if row["method"] == "VI"}
    sheet = Table(title="Factorial mixture, toy data")
    for column in ("method", "seeds", "ELBO", "median gap", "largest gap", "all 8 found"):
        sheet.add_column(column, justify="left" if column == "method" else "right")
    for column in ("iterations", "seconds", "CPU s", "p (better than VI)"):
        sheet.add_column(column, justify="right")
    for method in (*METHODS, *TRUTHS):
        some = [row for row in rows if row["method"] == method]
        if not some:
            continue
        gaps = np.array([best[row["seed"], row["exact"]] - row["elbo"] for row in some])
        pairs = [(row["elbo"], plain[row["seed"]]) for row in some if row["seed"] in plain]
        p = np.nan
        if len(pairs) > 1 and method != "VI":
            p = ttest_rel(*np.transpose(pairs), alternative="greater").pvalue
        mean = lambda name, some=some: np.mean([row[name] for row in some])  # noqa: E731
        sheet.add_row(
            method,
            str(len(some)),
            f"{mean('elbo'):,.0f}",
            f"{np.median(gaps):,.0f}",
            f"{gaps.max():,.0f}",
            f"{np.mean([row['found'] == 8 for row in some]):.0%}",
            f"{mean('iterations'):.0f}",
            f"{mean('seconds'):.2f}",
            f"{mean('cpu'):.2f}",
            "" if np.isnan(p) else f"{p:.1g}",
        )
    return sheet


def run_all_toys(arguments: argparse.Namespace) -> None:
    rows: list[dict[str, Any]] = []
    if arguments.output and arguments.output.exists():
        rows = [json.loads(line) for line in arguments.output.read_text().splitlines()]
    done = {(row["seed"], row["method"]) for row in rows}
    methods = {name: METHODS[name] for name in arguments.methods or METHODS}
    for seed in range(arguments.seeds):
        data = make_toy_images(seed=seed)
        truths = {
            name: {"tempering": None, "init": data.features, **options}
            for name, options in TRUTHS.items()
        }
        for method, options in {**truths, **methods}.items():
            if (seed, method) in done:
                continue
            row = {"seed": seed, "method": method, **run_toy(options, data, seed)}
            rows.append(row)
            if arguments.output:
                with arguments.output.open("a") as lines:
                    lines.write(json.dumps(row) + "\n")
    Console(width=150).print(toy_table(rows))


def run_faces(arguments: argparse.Namespace) -> None:
    """Held-out log likelihood of faces by iteration, in nats a pixel."""
    archive = np.load(arguments.faces)
    images = archive["images"][~archive["bad"].astype(bool)].astype(float)
    X = images.reshape(len(images), -1)
    X = (X - X.mean()) / X.std()
    order = np.random.default_rng(0).permutation(len(X))
    held_out, X = X[order[:500]], X[order[500:]]
    policies = {
        "VI": None,
        "AVI 6→1 in 5": Annealing(schedules.linear(6.0), passes=5),
        "AVI 6→1 in 50": Annealing(schedules.linear(6.0), passes=50),
        "VT": VariationalTempering(),
        "LVT": LocalTempering(even_inverse_temperatures(50), max_alternations=2),
        "AVI auto + restarts": "auto",
    }
    marks = (1, 5, 10, 20, 50, 80)
    sheet = Table(title=f"Faces, {X.shape[0]} × {X.shape[1]}: held-out nats a pixel by iteration")
    for column in (
        "K",
        "method",
        *map(str, marks),
        "end",
        "ELBO",
        "T",
        "iterations",
        "seconds",
        "CPU s",
    ):
        sheet.add_column(column, justify="right")
    for k in arguments.components:
        for name in arguments.methods or policies:
            cells = face_cells(k, policies[name], X, held_out, marks, "restarts" in name)
            sheet.add_row(str(k), name, *cells)
            Console(width=150).print(name, k, *cells)
    Console(width=150).print(sheet)


def face_cells(
    k: int, policy: Any, X: np.ndarray, held_out: np.ndarray, marks: Any, restarts: bool
) -> list[str]:
    """One fit, with looks at the held-out images on the way that its time does not include."""
    estimator = FactorialMixture(
        k,
        noise_variance=0.5,
        feature_variance=0.5,
        activation_probability=0.3,
        tempering=policy,
        local_restarts=2 if restarts else 0,
        max_iter=100,
        random_state=0,
    )
    model = estimator._new_model(X)
    looks, scores = [0.0], {}

    def look(report: Any) -> None:
        began = time.perf_counter()
        if report.record.step + 1 in marks:
            expected = model.expectations(report.posterior)
            scores[report.record.step + 1] = model.log_predictive(held_out, expected).mean()
        looks.append(time.perf_counter() - began)

    began, cpu = time.perf_counter(), time.process_time()
    result = fit(
        model,
        X,
        temperature=estimator._policy(100),
        max_passes=100,
        tolerance=1.0,
        callbacks=[look],
    )
    seconds, cpu = time.perf_counter() - began - sum(looks), time.process_time() - cpu
    end = model.log_predictive(held_out, model.expectations(result.posterior)).mean()
    pixels = X.shape[1]
    cells = [f"{scores[mark] / pixels:.4f}" if mark in scores else "" for mark in marks]
    return [
        *cells,
        f"{end / pixels:.4f}",
        f"{result.elbo:,.0f}",
        f"{1 / np.mean(result.heat.inverse_temperature):.2f}",
        str(len(result.history)),
        f"{seconds:.1f}",
        f"{cpu:.1f}",
    ]


def run_speed(arguments: argparse.Namespace) -> None:
    """Seconds a step, against its matrix products and against plain NumPy with as many sweeps."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from factorial_oracle import elbo, update_activations, update_features

    sheet = Table(title="One iteration with its ELBO: CPU on one thread, wall clock on two")
    for column in ("N", "D", "K", "sweeps", "CPU ms", "ns a datum and column", "× BLAS"):
        sheet.add_column(column, justify="right")
    for column in ("NumPy ms", "× faster", "two threads ms", "× faster"):
        sheet.add_column(column, justify="right")
    cases = [(n, 1024, 32, 1) for n in (1000, 2000, 4000)]
    cases += [(2000, d, 32, 1) for d in (512, 2048, 4096, 8192)]
    cases += [(1914, 8064, 60, 1), (10_000, 16, 8, 1), (10_000, 16, 8, 10)]
    for n, d, k, sweeps in cases:
        rng = np.random.default_rng(0)
        true = rng.standard_normal((k, d))
        X = (rng.random((n, k)) < 0.3) @ true + rng.standard_normal((n, d))
        # Without a tolerance each point is swept as often as in plain NumPy.
        model = FactorialModel(k, d, 1.0, 1.0, 0.3, max_sweeps=sweeps, tolerance=0.0)
        start = model.features_at(true, 0.3 * n)
        (batch,) = ArraySource(X).sweep()
        steps = []
        for threads in (1, 2):
            with local_executor(threads) as executor:
                algorithm = Algorithm(
                    model, Untempered(), Constant(), executor, n, 1000, continues=True
                )
                state = algorithm.advance(algorithm.start(start, rng), batch).state
                steps.append(seconds_of(lambda a=algorithm, s=state, b=batch: a.advance(s, b)))
        cpu, wall = steps[0].cpu, steps[1].wall
        means, z = true.copy(), rng.random((n, k))
        blas = seconds_of(
            lambda X=X, m=means, z=z: (
                X @ m.T,
                z.T @ X,
                z.T @ z,
                m @ m.T,
                np.linalg.solve(z.T @ z, m),
            )
        ).cpu
        variances = np.full(k, 1.0 / n)

        def direct(X=X, means=means, variances=variances, z=z, sweeps=sweeps):
            for _ in range(sweeps):
                update_activations(X, means, variances, z, 1.0, 1.0, 0.3)
            update_features(X, means, variances, z, 1.0, 1.0, 1.0)
            elbo(X, means, variances, z, 1.0, 1.0, 1.0, 0.3)

        # Where each of its passes takes seconds, plain NumPy is not waited for.
        slow = seconds_of(direct) if n * d * k * sweeps < 2e8 else None
        sheet.add_row(
            f"{n:,}",
            f"{d:,}",
            str(k),
            str(sweeps),
            f"{1e3 * cpu:.1f}",
            f"{1e9 * cpu / n / d:.2f}",
            f"{cpu / blas:.2f}",
            f"{1e3 * slow.cpu:.0f}" if slow else "",
            f"{slow.cpu / cpu:.1f}" if slow else "",
            f"{1e3 * wall:.1f}",
            f"{slow.wall / wall:.1f}" if slow else "",
        )
    Console(width=150).print(sheet)


class Seconds(NamedTuple):
    """What something took."""

    cpu: float
    wall: float


def seconds_of(function: Any, repeats: int = 5) -> Seconds:
    """Of the best of some calls: others may use the machine too."""
    cpu, wall = [], []
    for _ in range(repeats):
        began = time.process_time(), time.perf_counter()
        function()
        cpu.append(time.process_time() - began[0])
        wall.append(time.perf_counter() - began[1])
    return Seconds(min(cpu), min(wall))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["toy", "faces", "speed"], default="toy")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--components", nargs="*", type=int, default=[30, 60])
    parser.add_argument("--faces", type=Path, help="yaleb_96x84.npz")
    parser.add_argument("--output", type=Path, help="JSON lines, one a fit; taken up if it exists")
    arguments = parser.parse_args()
    if arguments.part == "faces" and arguments.faces is None:
        parser.error("--part faces needs --faces PATH")
    # One thread for BLAS, as in a fit: what it does in plain NumPy is timed on one thread too.
    with threadpool_limits(1, user_api="blas"):
        {"toy": run_all_toys, "faces": run_faces, "speed": run_speed}[arguments.part](arguments)


if __name__ == "__main__":
    main()
