"""Share of fits at the best known ELBO, by the CPU time of a search: its anytime curve.

    PYTHONPATH=. python benchmarks/search_curve.py out.jsonl --budget 20 --seeds 10 --jobs 16

A line of the output is one search, or one run of restarts: the ELBO of its best solution after each
improvement, with the CPU time until then in plain fits of the same problem and seed. The table
takes the best ELBO of a problem and seed in all files that are given for the best known;
`--also benchmarks/known.jsonl` has those of seeds 1000 to 1002 and 2000 to 2002 so far.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

from problems import PROBLEMS
from tempering import fit, search
from tempering.search import OPERATORS

#: Points of the curve, in plain fits; ELBOs that differ by less, in nats, are level.
POINTS, LEVEL = (1, 2, 5, 10, 20, 50), 0.5
#: A run ends when a step gains this number of nats a datum.
TOLERANCE = 1e-6


def restarts(model: Any, data: Any, seed: int, budget: float, options: Any) -> Iterator[Any]:
    """Yield the CPU seconds and the ELBO of plain fits, until the budget is spent."""
    spent = first = 0.0
    number = 0
    while spent <= budget * first or not number:
        began = time.process_time()
        elbo = fit(model, data, seed=seed + 100_000 * number, **options).elbo
        spent += time.process_time() - began
        first, number = first or spent, number + 1
        yield spent, elbo


def searched(model: Any, data: Any, seed: int, budget: float, options: Any) -> Iterator[Any]:
    """Yield the CPU seconds and the ELBO of each accepted round of a search."""
    spent = 0.0
    counts: dict[str, list[float]] = options.pop("counts")
    for trial in search(model, data, budget=budget, seed=seed, **options).trail:
        spent += trial.cpu_seconds
        own = counts.setdefault(trial.operator, [0, 0, 0.0])
        for place, part in enumerate((1, int(trial.accepted), trial.cpu_seconds)):
            own[place] += part
        if trial.accepted:
            yield spent, trial.elbo


def run(name: str, method: str, seed: int, budget: float, without: list[str]) -> dict[str, Any]:
    """Return the curve of one search, or of restarts."""
    warnings.simplefilter("ignore")
    model, data = PROBLEMS[name](seed)
    options: dict[str, Any] = {
        "max_passes": 1000,
        "tolerance": TOLERANCE * len(data),
        "n_threads": 1,
    }
    runs = {"search": searched, "restarts": restarts}[method]
    curve: list[tuple[float, float]] = []
    counts: dict[str, list[float]] = {}
    if method == "search":
        options["counts"] = counts
        options["operators"] = [one for one in OPERATORS if one.name not in without]
    for seconds, elbo in runs(model, data, seed, budget, {**options, "progress": False}):
        if not curve or elbo > curve[-1][1]:
            curve.append((seconds, float(elbo)))
    unit = curve[0][0]
    curve = [(round(seconds / unit, 3), elbo) for seconds, elbo in curve]
    for own in counts.values():
        own[2] = round(own[2] / unit, 3)
    row = {"problem": name, "method": method, "seed": seed, "budget": budget, "curve": curve}
    return {**row, "operators": counts}


def table(paths: list[Path]) -> None:
    """Print the mean share at the best known, over problems, for each method."""
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    best: dict[Any, float] = {}
    for row in rows:
        key = row["problem"], row["seed"]
        best[key] = max(best.get(key, -np.inf), row["curve"][-1][1])
    print(f"{'method':12}" + "".join(f"{f'@{point}':>7}" for point in POINTS))
    for method in sorted({row["method"] for row in rows} - {"known"}):
        shares = []
        for point in POINTS:
            reached: dict[str, list[bool]] = {}
            for row in rows:
                if row["method"] == method and row["budget"] >= point:
                    elbo = [elbo for spent, elbo in row["curve"] if spent <= point][-1]
                    level = elbo > best[row["problem"], row["seed"]] - LEVEL
                    reached.setdefault(row["problem"], []).append(level)
            shares.append(np.mean([np.mean(levels) for levels in reached.values()] or [np.nan]))
        print(f"{method:12}" + "".join(f"{share:7.3f}" for share in shares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--methods", nargs="+", default=["search", "restarts"])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--budget", type=float, default=20.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--without", nargs="*", default=[], help="operators to leave out")
    parser.add_argument("--seconds", type=float, default=np.inf, help="start no run after this")
    parser.add_argument("--also", type=Path, nargs="*", default=[], help="files with known ELBOs")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [(n, m, s) for s in seeds for n in options.problems for m in options.methods]
    began = time.monotonic()
    with ProcessPoolExecutor(options.jobs) as pool, options.output.open("a") as output:
        runs = {pool.submit(run, *task, options.budget, options.without): task for task in tasks}
        for done in as_completed(runs):
            if not done.cancelled():
                output.write(json.dumps(done.result()) + "\n")
                output.flush()
            if time.monotonic() - began > options.seconds:
                for waiting in runs:
                    waiting.cancel()
    table([options.output, *options.also])


if __name__ == "__main__":
    main()
