"""The tempered partition function log C(T): how it can be computed, and what it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction.experiment import Case, Experiment, Row, Setting
from reproduction.lda_pictures import tidy
from reproduction.partition_claims import claims, part_of
from reproduction.partition_numbers import (
    GRID,
    compare_assignments,
    compare_base_measure,
    compare_bounds,
    compare_modes,
    compare_sampling,
    leave_out,
)

SIZES = {"quick": (10, 1000, 100_000), "full": (10, 100, 1000, 10_000, 100_000)}
SAMPLES = {"quick": (100, 1000), "full": (10, 100, 1000, 10_000)}
REPEATS = {"quick": 5, "full": 20}
BOUND_SAMPLES = {"quick": 500, "full": 4000}
MODELS = ("factorial mixture", "topic model")


def cases(setting: Setting) -> list[Case]:
    scale = setting.scale
    listed: list[Case] = [
        {"part": "sampling", "n": n, "samples": samples, "repeats": REPEATS[scale]}
        for n in SIZES[scale]
        for samples in SAMPLES[scale]
    ]
    listed += [{"part": "mode", "n": n} for n in SIZES[scale]]
    listed += [{"part": "base measure", "s": s} for s in (0.2, 0.5, 0.8)]
    listed += [{"part": "bounds", "samples": BOUND_SAMPLES[scale]}]
    listed += [{"part": "assignments", "documents": 20, "seed": 0}]
    listed += [
        {"part": "left out", "model": model, "penalised": penalised, "seed": seed}
        for seed in range(setting.seeds)
        for model in MODELS
        for penalised in (True, False)
    ]
    return listed


def run_case(case: Case, setting: Setting) -> dict[str, Any]:
    part = case["part"]
    if part == "sampling":
        return compare_sampling(case["n"], case["samples"], case["repeats"], seed=0)
    if part == "mode":
        return compare_modes(case["n"])
    if part == "base measure":
        return compare_base_measure(case["s"])
    if part == "bounds":
        return compare_bounds(case["samples"])
    if part == "assignments":
        return compare_assignments(case["documents"], case["seed"])
    return leave_out(case["model"], case["penalised"], case["seed"])


def draw(rows: list[Row], out: Path) -> None:
    """``partition.png``: error of sampling, MAP, bounds, and T without C(T)."""
    from tempering.plots.canvas import new_figure

    figure = new_figure(figsize=(11.0, 7.6))
    (sampling, mode), (bounds, left_out) = figure.subplots(2, 2)
    _draw_sampling(sampling, part_of(rows, "sampling"))
    _draw_modes(mode, part_of(rows, "mode"))
    _draw_bounds(bounds, part_of(rows, "bounds")[0])
    _draw_left_out(left_out, part_of(rows, "left out"))
    for axis in (sampling, mode, bounds, left_out):
        tidy(axis)
        axis.legend(fontsize=8, frameon=False)
    figure.savefig(out / "partition.png", dpi=95)


def _draw_sampling(axis: Any, rows: list[Row]) -> None:
    samples = sorted({row["samples"] for row in rows})
    shades = np.linspace(0.75, 0.1, len(samples))
    for count, shade in zip(samples, shades):
        own = [row for row in rows if row["samples"] == count]
        errors = [max(row["error"], 1e-4) for row in own]
        axis.plot(
            [row["n"] for row in own], errors, "o-", color=str(shade), label=f"{count:,} draws"
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("data N")
    axis.set_ylabel("error of log C, nats")
    axis.set_title("Monte Carlo against quadrature", fontsize=10, loc="left")


def _draw_modes(axis: Any, rows: list[Row]) -> None:
    colours = ("#9ecae1", "#4292c6", "#08519c", "#08306b", "black")
    for row, colour in zip(rows, colours):
        scaled = np.array(row["exact_curve"]) / row["n"]
        axis.plot(1 / GRID, scaled, color=colour, lw=1.5, label=f"exact, N = {row['n']:,}")
    scaled = np.array(rows[-1]["map_curve"]) / rows[-1]["n"]
    axis.plot(1 / GRID, scaled, "--", color="#d62728", label="MAP")
    axis.plot(1 / GRID, -scaled, ":", color="#d62728", label="MAP, sign as printed")
    axis.set_xlabel("temperature")
    axis.set_ylabel("log C(T) / N, nats")
    axis.set_title("MAP approximation (Bernoulli model)", fontsize=10, loc="left")


def _draw_bounds(axis: Any, row: Row) -> None:
    """How far each bound is from log C: an upper one has to be above 0."""
    exact = np.array(row["monte_carlo"])
    curves = {
        "(1 − 1/T) N log V, upper": ("upper", "--", "#d62728"),
        "“upper”, as printed": ("printed_upper", ":", "#d62728"),
        "lower, as printed": ("lower", "--", "#08519c"),
    }
    for label, (name, line, colour) in curves.items():
        gap = np.array(row[name]) - exact
        axis.plot(row["temperatures"], gap, line, color=colour, lw=2, label=label)
    axis.axhline(0.0, color="black", lw=1)
    axis.set_yscale("symlog", linthresh=0.1)
    axis.set_yticks([-0.1, -0.05, 0, 0.05, 0.1, 1], ["−0.1", "−0.05", "0", "0.05", "0.1", "1"])
    axis.set_xlabel("temperature")
    axis.set_ylabel("bound − log C, nats")
    axis.set_title("bounds (a small topic model)", fontsize=10, loc="left")


def _draw_left_out(axis: Any, rows: list[Row]) -> None:
    colours = dict(zip(MODELS, ("#0072b2", "#2ca02c")))
    for row in rows:
        if row["seed"] == 0:
            path = row["temperatures"]
            place = np.linspace(0.0, 1.0, len(path))
            axis.plot(
                place,
                path,
                "-" if row["penalised"] else ":",
                color=colours[row["model"]],
                # Both end in one line: the first must show behind the second.
                lw=4 if row["model"] == MODELS[0] and not row["penalised"] else 1.6,
                label=f"{row['model']}, {'with' if row['penalised'] else 'without'} C(T)",
            )
    axis.set_xlabel("part of the run")
    axis.set_ylabel("temperature, 1 / E[1/T]")
    axis.set_title("VT with and without C(T)", fontsize=10, loc="left")


EXPERIMENT = Experiment(
    name="partition",
    title="The tempered partition function log C(T)",
    claims_of=(
        "C(T) can be estimated by Monte Carlo with 100 samples or fewer, bounded, or taken at the "
        "prior's mode; it rises with T, and without it T would go to its maximum."
    ),
    cases=cases,
    run=run_case,
    draw=draw,
    claims=claims,
    default_seeds={"quick": 1, "full": 5},
)
