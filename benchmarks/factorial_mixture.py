"""Does the factorial mixture find its features? Is it fast?

    PYTHONPATH=. python benchmarks/factorial_mixture.py --seeds 40 --output toy.jsonl
    PYTHONPATH=. python benchmarks/factorial_mixture.py --part faces --faces yaleb_96x84.npz
    PYTHONPATH=. python benchmarks/factorial_mixture.py --part speed

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
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import ttest_rel
from threadpoolctl import threadpool_limits

from reproduction.faces import load_images, split
from reproduction.factorial import (
    EXACT,
    MEAN_FIELD,
    RESTARTED,
    agreement,
    local_tempering,
)
from reproduction.toy import ACTIVE, FEATURES, NOISE
from tempering import (
    Annealing,
    FactorialMixture,
    VariationalTempering,
    fit,
    schedules,
)
from tempering.datasets import ToyImages, make_toy_images
from tempering.estimators.factorial_mixture import Narrow
from tempering.inference import Algorithm, ArraySource, Constant
from tempering.inference.executors import open_executor
from tempering.models.factorial_mixture import FactorialModel, log_density
from tempering.temperature import Untempered

TOY_ITERATIONS = 400

POLICIES: dict[str, Any] = {
    "VI": None,
    "AVI 10→1 in 10": Annealing(schedules.linear(10.0), passes=10),
    "AVI 10→1 in 100": Annealing(schedules.linear(10.0), passes=100),
    "VT": VariationalTempering(),
    "LVT": local_tempering(),
    "AVI auto": Annealing(schedules.linear, passes=100, start="auto"),
}
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    **{name: {"tempering": policy, **MEAN_FIELD} for name, policy in POLICIES.items()},
    "best of 5 VI": {"tempering": None, "n_init": 5, **MEAN_FIELD},
    **{
        f"{name} + restarts": {"tempering": policy, **RESTARTED}
        for name, policy in POLICIES.items()
    },
    **{f"{name}, exact": {"tempering": POLICIES[name], **EXACT} for name in ("VI", "VT", "LVT")},
}
TRUTHS = {"truth": RESTARTED, "truth, exact": EXACT}


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
        "found": agreement(data.features, estimator.features_).found,
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
    rows = rows_of(arguments.output)
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
            add_row(rows, row, arguments.output)
    Console(width=150).print(toy_table(rows))


#: Iterations after which the held-out images are looked at.
MARKS = (1, 5, 10, 20, 50, 80)
#: What the same number of features is fitted with, in one run: 100 iterations at most.
FACE_METHODS: dict[str, dict[str, Any]] = {
    "VI": {"tempering": None},
    "AVI 6→1 in 5": {"tempering": Annealing(schedules.linear(6.0), passes=5)},
    "AVI 6→1 in 50": {"tempering": Annealing(schedules.linear(6.0), passes=50)},
    "VT": {"tempering": VariationalTempering()},
    "LVT": {"tempering": local_tempering()},
    "VI, restarts": {"local_restarts": 2, "max_iter": 300, "tol": 1e-2},
}


def run_faces(arguments: argparse.Namespace) -> None:
    """Held-out log likelihood of faces by iteration, in nats a pixel."""
    images, rows = load_images(arguments.faces), rows_of(arguments.output)
    done = {(row["seed"], row["k"], row["method"]) for row in rows}
    for seed in range(arguments.face_seeds):
        X, held_out = split(images, 500, seed=seed)
        for k in arguments.components:
            for method in arguments.methods or FACE_METHODS:
                if (seed, k, method) in done:
                    continue
                row = {"seed": seed, "k": k, "method": method}
                row |= run_face(k, FACE_METHODS[method], X, held_out, seed)
                add_row(rows, row, arguments.output)
    sheet = Table(title="Faces: held-out nats a pixel by iteration")
    for column in ("K", "method", "seed", *map(str, MARKS), "end", "ELBO", "T"):
        sheet.add_column(column, justify="left" if column == "method" else "right")
    for column in ("iterations", "seconds", "CPU s"):
        sheet.add_column(column, justify="right")
    for row in sorted(rows, key=lambda row: (row["k"], [*FACE_METHODS].index(row["method"]))):
        sheet.add_row(
            str(row["k"]),
            row["method"],
            str(row["seed"]),
            *(f"{row['scores'][str(m)]:.4f}" if str(m) in row["scores"] else "" for m in MARKS),
            f"{row['end']:.4f}",
            f"{row['elbo']:,.0f}",
            f"{row['temperature']:.2f}",
            str(row["iterations"]),
            f"{row['seconds']:.1f}",
            f"{row['cpu']:.1f}",
        )
    Console(width=150).print(sheet)


def run_face(
    k: int, options: dict[str, Any], X: np.ndarray, held_out: np.ndarray, seed: int
) -> dict[str, Any]:
    """One fit, with looks at the held-out images on the way that its time does not include."""
    options = {"local_restarts": 0, "max_iter": 100, "tol": 1.0, **options}
    estimator = FactorialMixture(
        k,
        noise_variance=0.5,
        feature_variance=0.5,
        activation_probability=0.3,
        random_state=seed,
        **options,
    )
    model = estimator._new_model(X)
    scores: dict[str, float] = {}
    looks, made = [(0.0, 0.0)], count(1)

    def score(posterior: Any) -> float:
        expected = model.expectations(narrow.back(posterior))
        return float(log_density(model, held_out, expected).mean()) / X.shape[1]

    def look(report: Any) -> None:
        began, cpu = time.perf_counter(), time.process_time()
        step = next(made)
        if step in MARKS:
            scores[str(step)] = score(report.posterior)
        looks.append((time.perf_counter() - began, time.process_time() - cpu))

    began, cpu = time.perf_counter(), time.process_time()
    # As the estimator does it, but with someone who looks.
    narrow = Narrow.of(X, k)
    start = model.initialize(ArraySource(X), np.random.default_rng(seed))
    result = fit(
        narrow.model(model),
        narrow.data,
        initial=narrow.turned(start),
        temperature=estimator._policy(options["max_iter"]),
        max_passes=options["max_iter"],
        tolerance=options["tol"],
        callbacks=[look],
    )
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {
        "scores": scores,
        "end": score(result.posterior),
        "elbo": result.elbo,
        "temperature": 1 / float(np.mean(result.heat.inverse_temperature)),
        "iterations": next(made) - 1,
        "seconds": seconds - sum(wall for wall, _ in looks),
        "cpu": cpu - sum(cpu for _, cpu in looks),
    }


def rows_of(path: Path | None) -> list[dict[str, Any]]:
    """What was computed before."""
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def add_row(rows: list[dict[str, Any]], row: dict[str, Any], path: Path | None) -> None:
    """Keep a row, on disk too."""
    rows.append(row)
    if path:
        with path.open("a") as lines:
            lines.write(json.dumps(row) + "\n")


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
            with open_executor(None, threads) as executor:
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


def seconds_of(function: Any, fewest: int = 5, enough: float = 1.0) -> Seconds:
    """Of the best of some calls, of short ones the more: others may use the machine too."""
    cpu, wall = [], []
    while len(cpu) < fewest or sum(cpu) < enough:
        began = time.process_time(), time.perf_counter()
        function()
        cpu.append(time.process_time() - began[0])
        wall.append(time.perf_counter() - began[1])
    return Seconds(min(cpu), min(wall))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["toy", "faces", "speed"], default="toy")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--face-seeds", type=int, default=2)
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
