"""Topic models under other priors, start temperatures and schedules.

Three parts: α and η around 1/K; the temperature at which AVI starts; the length and the shape of
its schedule.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction.experiment import Case, Experiment, Row, Setting
from reproduction.lda_corpora import GENERATED_TOPICS, first_corpus, load_documents
from reproduction.lda_fits import (
    PAPER_START,
    QUICK_RUN,
    Run,
    final_scores,
    fit_topics,
    policy_of,
)
from reproduction.lda_pictures import STYLES, tidy
from reproduction.lda_sensitivity_claims import (
    FACTORS,
    LENGTHS,
    PRIOR_METHODS,
    SHAPES,
    STARTS,
    cell_mean,
    claims,
    part_of,
)
from tempering.temperature import Annealing, Untempered, schedules

FULL_DOCUMENTS, FULL_TOPICS, FULL_RUN = 10_000, 50, Run(passes=3)
MAKERS = {
    "linear in T": schedules.linear,
    "linear in 1/T": schedules.linear_inverse,
    "geometric": schedules.geometric,
}


def cases(setting: Setting) -> list[Case]:
    quick = setting.scale == "quick"
    common = {
        **first_corpus(setting, FULL_DOCUMENTS),
        "topics": GENERATED_TOPICS if quick else FULL_TOPICS,
        "passes": (QUICK_RUN if quick else FULL_RUN).passes,
    }
    listed: list[Case] = []
    factors = FACTORS[::2] if quick else FACTORS
    starts = STARTS[::3] if quick else STARTS
    lengths = LENGTHS[1::2] if quick else LENGTHS
    for seed in range(setting.seeds):
        listed += [
            {"part": "priors", "method": method, "alpha": alpha, "eta": eta, "seed": seed}
            for alpha in factors
            for eta in factors
            for method in PRIOR_METHODS
        ]
        listed += [{"part": "start", "start": start, "seed": seed} for start in starts]
        listed += [
            {"part": "schedule", "shape": shape, "length": length, "seed": seed}
            for shape in SHAPES
            for length in lengths
        ]
    return [{**common, **case} for case in listed]


def run_case(case: Case, setting: Setting) -> dict[str, Any]:
    documents = load_documents(case, setting)
    run = QUICK_RUN if setting.scale == "quick" else FULL_RUN
    k = case["topics"]
    fitted = fit_topics(
        documents.train,
        k,
        _policy(case, run),
        case["seed"],
        run,
        alpha=case.get("alpha", 1.0) / k,
        eta=case.get("eta", 1.0) / k,
    )
    return final_scores(documents.split, fitted.topics)


def _policy(case: Case, run: Run) -> Untempered:
    if case["part"] == "priors":
        return policy_of(case["method"], run.every(case["documents"]))
    if case["part"] == "start":
        start = case["start"]
        # T = 1 from the start is plain SVI.
        return Untempered() if start == 1 else Annealing(schedules.linear(start), passes=1.0)
    return Annealing(MAKERS[case["shape"]](PAPER_START), passes=case["length"])


def draw(rows: list[Row], out: Path) -> None:
    """``lda-sensitivity.png``: scores by priors, by first temperature, by length and shape."""
    from tempering.plots.canvas import new_figure

    figure = new_figure(figsize=(12.0, 4.4))
    priors, starts, lengths = figure.subplots(1, 3, width_ratios=(1.3, 1.0, 1.0))
    _draw_priors(priors, part_of(rows, "priors"))
    _draw_line(starts, part_of(rows, "start"), "start", "black", "AVI over one pass")
    plain = cell_mean(part_of(rows, "start"), start=1)
    starts.set_xlabel("temperature at the start")
    starts.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    colours = ("#08519c", "#d62728", "#2ca02c")
    for shape, colour in zip(SHAPES, colours):
        own = [row for row in part_of(rows, "schedule") if row["shape"] == shape]
        _draw_line(lengths, own, "length", colour, shape)
    ticks = sorted({row["length"] for row in part_of(rows, "schedule")})
    lengths.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    lengths.set_xlabel(f"length in passes, from T = {PAPER_START:.2f}")
    for axis in (starts, lengths):
        axis.axhline(plain, color="black", lw=1, ls=":", label="SVI")
        axis.minorticks_off()
    for axis in (priors, starts, lengths):
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 2}
        axis.legend(fontsize=8, frameon=False, **below)
        axis.set_ylabel("held-out nats a word")
        tidy(axis)
    figure.savefig(out / "lda-sensitivity.png", dpi=110)


def _draw_priors(axis: Any, rows: list[Row]) -> None:
    """A line a method over all pairs of factors."""
    settings = sorted({(row["alpha"], row["eta"]) for row in rows})
    for method in PRIOR_METHODS:
        colour, line = STYLES[method]
        means = [cell_mean(rows, method=method, alpha=a, eta=e) for a, e in settings]
        axis.plot(range(len(settings)), means, line, color=colour, marker="o", ms=4, label=method)
    labels = [f"{a:g}\n{e:g}" for a, e in settings]
    axis.set_xticks(range(len(settings)), labels, fontsize=8)
    axis.set_xlabel("α · K (above) and η · K (below)")


def _draw_line(axis: Any, rows: list[Row], x: str, colour: str, label: str) -> None:
    places = sorted({row[x] for row in rows})
    means = [np.mean([row["vi"] for row in rows if row[x] == place]) for place in places]
    axis.plot(places, means, "-", color=colour, label=label)
    axis.plot([row[x] for row in rows], [row["vi"] for row in rows], "o", color=colour, ms=3)
    axis.set_xscale("log")


EXPERIMENT = Experiment(
    name="lda-sensitivity",
    title="Topic models: priors, start temperature, schedule",
    claims_of=(
        "No sensitivity to α and η was found; annealing is worse than SVI in many cases when the "
        "temperature is larger than 5; too slow a schedule is harmful too."
    ),
    cases=cases,
    run=run_case,
    draw=draw,
    claims=claims,
    default_seeds={"quick": 1, "full": 2},
)
