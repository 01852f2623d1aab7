"""Adaptive tempering against the best of a grid of schedules, found afterwards for each bed.

    python benchmarks/adaptive_tempering.py --seeds 20 --jobs 16 --out runs.json
    python benchmarks/adaptive_tempering.py --table runs.json

Told are the mean gap of the final ELBO (T = 1) to the best that anything reached for that seed, the
passes, and a paired Wilcoxon test against the best schedule, in which fits that differ by less than
0.01 nats are equal. ``--constants`` varies each constant of the policy by a factor of two, both
ways; ``--policies "adaptive: PUSH_ROWS=10; rest=5e-4"`` sets some of them. Set
``OMP_NUM_THREADS=1`` with more than one job.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from ast import literal_eval
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from beds import beds
from tempering import AdaptiveTempering, Annealing, VariationalTempering, schedules
from tempering.temperature import adaptive

#: Nats by which two fits differ that ended in one optimum.
SAME = 0.01
SHAPES = {"T": schedules.linear, "1/T": schedules.linear_inverse}
SCHEDULES = {
    f"{shape} {first} in {length}": (shape, first, length)
    for shape in SHAPES
    for first in (1.3, 3.0, 10.0, 30.0)
    for length in ((50, 150) if first < 5 else (150,))
}
CONSTANTS = (
    *(
        "pace",
        "rest",
        "push",
        "FASTEST",
        "SETTLED",
        "PUSH_ROWS",
        "FORGETTING",
        "FRESH_ROWS",
        "ENOUGH",
    ),
    *(
        "SAMPLED",
        "HANDED_OVER",
        "HOPE",
        "FAR",
        "FAR_LATER",
        "LATER",
        "SEARCH_ROWS",
        "LEAST_SAMPLE",
        "PLAIN_STARTS",
        "LONG_STARTS",
        "RISEN",
        "QUIET_START",
    ),
)
USUAL = {name: getattr(adaptive, name) for name in dir(adaptive) if name.isupper()}


def policy_of(name: str) -> tuple[Any, dict[str, Any]]:
    """A policy by its name, and options of the fit."""
    if name in SCHEDULES:
        shape, first, length = SCHEDULES[name]
        return Annealing(SHAPES[shape](first), passes=length), {}
    for constant, usual in USUAL.items():
        setattr(adaptive, constant, usual)
    if name.startswith("adaptive: "):
        changes = dict(change.split("=") for change in name.removeprefix("adaptive: ").split("; "))
        values = {constant: literal_eval(value) for constant, value in changes.items()}
        for constant, value in values.items():
            if constant.isupper():
                setattr(adaptive, constant, value)  # of this process alone
        return AdaptiveTempering(**{c: v for c, v in values.items() if c.islower()}), {}
    if name.startswith("VI, best of "):
        return None, {"n_init": int(name.removeprefix("VI, best of "))}
    return {
        "VI": (None, {}),
        "VT": (VariationalTempering(), {}),
        "adaptive": (AdaptiveTempering(), {}),
    }[name]


def run(bed: str, name: str, seed: int, files: tuple[list[str], int]) -> dict[str, Any]:
    """One fit, in a process of its own."""
    warnings.simplefilter("ignore")
    policy, options = policy_of(name)
    started = time.process_time()
    row = {"bed": bed, "policy": name, "seed": seed}
    try:
        elbo, passes = beds(*files)[bed](policy, seed, **options)
    except Exception as error:
        return {**row, "error": f"{type(error).__name__}: {error}"[:200]}
    return {**row, "elbo": elbo, "passes": passes, "seconds": time.process_time() - started}


def show(rows: list[dict[str, Any]]) -> None:
    """The table: a bed a row."""
    rows = [row for row in rows if "elbo" in row]
    names = list(dict.fromkeys(row["policy"] for row in rows))
    others = [name for name in names if name not in SCHEDULES]
    print("| bed | best schedule | " + " | ".join(others) + " |")
    print("|---" * (2 + len(others)) + "|")
    for bed in dict.fromkeys(row["bed"] for row in rows):
        here = [row for row in rows if row["bed"] == bed]
        best: dict[int, float] = {}
        for row in here:
            best[row["seed"]] = max(best.get(row["seed"], -np.inf), row["elbo"])
        gaps: dict[str, dict[int, float]] = {}
        passes: dict[str, list[float]] = {}
        for row in here:
            gaps.setdefault(row["policy"], {})[row["seed"]] = best[row["seed"]] - row["elbo"]
            passes.setdefault(row["policy"], []).append(row["passes"])
        means = {name: float(np.mean(list(gap.values()))) for name, gap in gaps.items()}
        rival = min((n for n in means if n in SCHEDULES), key=means.__getitem__, default=None)

        cells = [_cell(name, rival, gaps, passes) for name in (rival, *others)]
        print(f"| {bed} | {rival}: " + " | ".join(cells) + " |")


def _cell(
    name: str | None,
    rival: str | None,
    gaps: dict[str, dict[int, float]],
    passes: dict[str, list[float]],
) -> str:
    """Mean gap; passes; and whether that is better (+) or worse (−) than the rival, with p."""
    if name is None or name not in gaps:
        return "–"
    mine = gaps[name]
    text = f"{np.mean(list(mine.values())):.1f}; {np.mean(passes[name]):.0f}"
    if rival is None or name == rival:
        return text
    pairs = np.array([gap - gaps[rival][seed] for seed, gap in mine.items() if seed in gaps[rival]])
    pairs[np.abs(pairs) < SAME] = 0.0
    if not np.any(pairs):
        return text + " ="
    p = wilcoxon(pairs).pvalue
    return text + (f" {'+' if np.mean(pairs) < 0 else '−'}{p:.0e}" if p < 0.05 else " =")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beds", nargs="*", help="names; all by default")
    parser.add_argument("--policies", nargs="*", help="names; all by default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--corpora", nargs="*", default=[], help=".npz files of counts or faces")
    parser.add_argument("--documents", type=int, default=5000, help="of a corpus")
    parser.add_argument("--constants", action="store_true", help="vary each constant by 2, 1/2")
    parser.add_argument("--limit", type=float, default=np.inf, help="seconds, then what is done")
    parser.add_argument("--out", type=Path, default=Path("adaptive-tempering.json"))
    parser.add_argument("--table", type=Path, nargs="*", help="only print these results")
    options = parser.parse_args()
    if options.table:
        show([row for path in options.table for row in json.loads(path.read_text())])
        return
    names = options.policies or ["VI", *SCHEDULES, "adaptive"]
    if options.constants:
        usual = {c: getattr(AdaptiveTempering(), c, USUAL.get(c)) for c in CONSTANTS}
        varied = [f"adaptive: {c}={type(v)(f * v)}" for c, v in usual.items() for f in (0.5, 2.0)]
        names = ["adaptive", *varied]
    files = options.corpora, options.documents
    chosen = options.beds or list(beds(*files))
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    started, rows = time.time(), []
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = [
            pool.submit(run, bed, name, seed, files)
            for seed in seeds
            for bed in chosen
            for name in names
        ]
        for job in as_completed(jobs):
            if not job.cancelled():
                rows.append(job.result())
            if time.time() - started > options.limit:
                for waiting in jobs:
                    waiting.cancel()
    order = {name: place for place, name in enumerate([*chosen, *names])}
    rows.sort(key=lambda row: (order[row["bed"]], order[row["policy"]], row["seed"]))
    options.out.write_text(json.dumps(rows))
    show(rows)
    errors = {(row["bed"], row["policy"]): row["error"] for row in rows if "error" in row}
    for (bed, policy), error in errors.items():
        print(f"{bed}, {policy}: {error}")


if __name__ == "__main__":
    main()
