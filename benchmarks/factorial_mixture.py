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

import single_thread  # noqa: F401  before numpy
from tempering import (
    Annealing,
    FactorialMixture,
    LocalTempering,
    VariationalTempering,
    schedules,
)
from tempering.inference import Algorithm, ArraySource, Constant, fit
from tempering.inference.executors import Serial
from tempering.models.factorial_mixture import FactorialModel
from tempering.temperature import Untempered, even_inverse_temperatures

SHAPES = """
1111 1000 1000 0000 0001 0000 0010 0000
0000 1000 0100 0110 0010 0000 0111 1000
0000 1000 0010 0110 0100 0011 0010 1100
0000 1000 0001 0000 1000 0011 0000 1110
"""
NOISE, FEATURES, ACTIVE = 0.1, 0.35, 0.3
TOY_ITERATIONS = 400

MEAN_FIELD = {"local": "mean-field", "local_restarts": 0}
RESTARTED = {"local": "mean-field", "local_restarts": 2}
EXACT = {"local": "exact"}
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
    **{name: {"tempering": policy, **MEAN_FIELD} for name, policy in POLICIES.items()},
    "best of 5 VI": {"tempering": None, "n_init": 5, **MEAN_FIELD},
    **{
        f"{name} + restarts": {"tempering": policy, **RESTARTED}
        for name, policy in POLICIES.items()
    },
    **{f"{name}, exact": {"tempering": POLICIES[name], **EXACT} for name in ("VI", "VT", "LVT")},
}
TRUTHS = {"truth": RESTARTED, "truth, exact": EXACT}


class Toy(NamedTuple):
    """Data with known features."""

    X: np.ndarray
    features: np.ndarray


def toy(seed: int, n: int = 10_000) -> Toy:
    """The paper's toy data."""
    rng = np.random.default_rng(seed)
    rows = [line.split() for line in SHAPES.split("\n") if line]
    shapes = np.array([[int(bit) for part in image for bit in part] for image in zip(*rows)])
    features = shapes * rng.uniform(0.5, 1.0, size=(8, 1))
    active = rng.random((n, 8)) < ACTIVE
    noise = np.sqrt(NOISE) * rng.standard_normal((n, 16))
    return Toy(active @ features + noise, features)


def features_found(true: np.ndarray, found: np.ndarray) -> int:
    """True features with a partner of their own nearby."""
    distances = np.square(true[:, None] - found[None]).sum(axis=-1)
    rows, columns = linear_sum_assignment(distances)
    near = distances[rows, columns] < 0.25 * np.square(true[rows]).sum(axis=1)
    return int(near.sum())


def run_toy(options: dict[str, Any], data: Toy, seed: int) -> dict[str, Any]:
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
        data = toy(seed)
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
        "default": "auto",
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
            cells = face_cells(k, policies[name], X, held_out, marks, name == "default")
            sheet.add_row(str(k), name, *cells)
            Console(width=150).print(name, k, *cells)
    Console(width=150).print(sheet)


def face_cells(
    k: int, policy: Any, X: np.ndarray, held_out: np.ndarray, marks: Any, default: bool
) -> list[str]:
    """One fit, with looks at the held-out images on the way that its time does not include."""
    estimator = FactorialMixture(
        k,
        noise_variance=0.5,
        feature_variance=0.5,
        activation_probability=0.3,
        tempering=policy,
        local_restarts=2 if default else 0,
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
        temperature=estimator._policy(),
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
    """One thread: seconds a step, against its matrix products and against plain NumPy."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from factorial_oracle import update_activations, update_features

    sheet = Table(title="One iteration, one thread")
    for column in ("N", "D", "K", "ms", "ns a datum and column", "× BLAS", "NumPy ms", "× faster"):
        sheet.add_column(column, justify="right")
    cases = [(n, 1024, 32) for n in (1000, 2000, 4000)]
    cases += [(2000, d, 32) for d in (512, 2048, 4096, 8192)]
    for n, d, k in (*cases, (1914, 8064, 60), (10_000, 16, 8)):
        rng = np.random.default_rng(0)
        true = rng.standard_normal((k, d))
        X = (rng.random((n, k)) < 0.3) @ true + rng.standard_normal((n, d))
        model = FactorialModel(k, d, 1.0, 1.0, 0.3, max_sweeps=1)
        start = model.features_at(true, 0.3 * n)
        algorithm = Algorithm(model, Untempered(), Constant(), Serial(), n, 1000, continues=True)
        (batch,) = ArraySource(X).sweep()
        state = algorithm.advance(algorithm.start(start, rng), batch).state
        step = seconds_of(lambda a=algorithm, s=state, b=batch: a.advance(s, b))
        means, z = true.copy(), rng.random((n, k))
        blas = seconds_of(
            lambda X=X, m=means, z=z: (
                X @ m.T,
                z.T @ X,
                z.T @ z,
                m @ m.T,
                np.linalg.solve(z.T @ z, m),
            )
        )
        variances = np.full(k, 1.0 / n)

        def direct(X=X, means=means, variances=variances, z=z):
            update_activations(X, means, variances, z, 1.0, 1.0, 0.3)
            update_features(X, means, variances, z, 1.0, 1.0, 1.0)

        slow = seconds_of(direct, repeats=1 if n * d * k > 1e8 else 3)
        sheet.add_row(
            f"{n:,}",
            f"{d:,}",
            str(k),
            f"{1e3 * step:.1f}",
            f"{1e9 * step / n / d:.2f}",
            f"{step / blas:.2f}",
            f"{1e3 * slow:.0f}",
            f"{slow / step:.0f}",
        )
    Console(width=150).print(sheet)


def seconds_of(function: Any, repeats: int = 5) -> float:
    """CPU seconds of the best of some calls: others may use the machine too."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


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
    {"toy": run_all_toys, "faces": run_faces, "speed": run_speed}[arguments.part](arguments)


if __name__ == "__main__":
    main()
