"""Does tempering gain more with more topics?

The paper: "larger topic numbers make the optimization problem harder, thus yielding larger
improvements of the annealing approaches over SVI".
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.experiment import Case, Claim, Experiment, Row, Setting
from reproduction.lda_claims import described
from reproduction.lda_corpora import first_corpus, load_documents
from reproduction.lda_fits import (
    DEFAULT,
    QUICK_RUN,
    Run,
    final_scores,
    fit_topics,
    policy_of,
)
from reproduction.lda_pictures import STYLES, tidy
from reproduction.statistics import LEVEL, mean_text, weakest

ANNEALING = ("AVI, tA = 1", "VT", "LVT")
METHODS = ("SVI", *ANNEALING, DEFAULT)
TOPICS = {"quick": (5, 10, 20), "full": (50, 100, 200, 500)}
FULL_DOCUMENTS, FULL_RUN = 20_000, Run(passes=2)


def cases(setting: Setting) -> list[Case]:
    passes = (QUICK_RUN if setting.scale == "quick" else FULL_RUN).passes
    common = {**first_corpus(setting, FULL_DOCUMENTS), "passes": passes}
    return [
        {**common, "topics": topics, "method": method, "seed": seed}
        for seed in range(setting.seeds)
        for topics in TOPICS[setting.scale]
        for method in METHODS
    ]


def run_case(case: Case, setting: Setting) -> dict[str, Any]:
    documents = load_documents(case, setting)
    run = QUICK_RUN if setting.scale == "quick" else FULL_RUN
    method = case["method"]
    policy = None if method == DEFAULT else policy_of(method, run.every(case["documents"]))
    fitted = fit_topics(documents.train, case["topics"], policy, case["seed"], run)
    return final_scores(documents.split, fitted.topics)


def gains(rows: list[Row], method: str, value: str) -> tuple[np.ndarray, np.ndarray]:
    """log2 K, and by how much a method is above SVI there: an entry for each seed and K."""
    plain = {(row["topics"], row["seed"]): row[value] for row in rows if row["method"] == "SVI"}
    own = [row for row in rows if row["method"] == method]
    sizes = np.log2([row["topics"] for row in own])
    return sizes, np.array([row[value] - plain[row["topics"], row["seed"]] for row in own])


def claims(rows: list[Row]) -> list[Claim]:
    topics = sorted({row["topics"] for row in rows})
    what = f"{described(rows[0])}, K = {', '.join(map(str, topics))}, {_seeds(rows)} seeds"
    verdicts, numbers = zip(*(_trend(rows, method) for method in ANNEALING))
    added = _trend(rows, DEFAULT)
    return [
        Claim(
            "lda-topics",
            "More topics make the problem harder, and the gain of annealing over SVI larger.",
            what,
            "; ".join(numbers),
            weakest(verdicts),
            "for AVI, VT and LVT, the gain must rise with log K (slope > 0 with p < 0.05) and be "
            "positive at the largest K; some of these for “in part”",
        ),
        Claim(
            "lda-topics",
            "The gain of this package's default over SVI rises with K.",
            what,
            added[1],
            added[0][0],
            added[0][1],
            added=True,
        ),
    ]


def _seeds(rows: list[Row]) -> int:
    return len({row["seed"] for row in rows})


def _trend(rows: list[Row], method: str) -> tuple[Any, str]:
    """The verdict on one method, and its numbers."""
    from scipy.stats import linregress

    sizes, gain = gains(rows, method, "vi")
    line = linregress(sizes, gain)
    exact_sizes, exact_gain = gains(rows, method, "gibbs")
    exact = linregress(exact_sizes, exact_gain)
    ends = [gain[sizes == size] for size in (sizes.min(), sizes.max())]
    text = (
        f"{method}: {mean_text(ends[0], 3)} at K = {2 ** sizes.min():.0f}, "
        f"{mean_text(ends[1], 3)} at K = {2 ** sizes.max():.0f}, "
        f"{line.slope:+.4f} a doubling (p = {line.pvalue:.2g}); by exact θ {exact.slope:+.4f} "
        f"(p = {exact.pvalue:.2g})"
    ).replace("-", "−")
    last = float(np.mean(ends[1]))
    if line.slope > 0 and line.pvalue < LEVEL and last > 0:
        return ("holds", "the gain rises with log K, p < 0.05, and is positive at the end"), text
    if line.slope > 0 and (last > 0 or line.pvalue < LEVEL):
        return ("holds in part", "the gain rises, but is not positive, or not shown to rise"), text
    return ("does not hold", "the gain does not rise with K"), text


def draw(rows: list[Row], out: Path) -> None:
    """``lda-topics.png``: scores and gains over SVI by K, by both measures."""
    from tempering.plots.canvas import new_figure

    figure = new_figure(figsize=(11.0, 3.9))
    axes = figure.subplots(1, 3)
    for method in METHODS:
        colour, line = STYLES[method]
        own = [row for row in rows if row["method"] == method]
        topics = sorted({row["topics"] for row in own})
        means = [np.mean([row["vi"] for row in own if row["topics"] == k]) for k in topics]
        axes[0].plot(topics, means, line, color=colour, marker="o", ms=4, label=method)
        for axis, value in zip(axes[1:], ("vi", "gibbs")):
            sizes, gain = gains(rows, method, value)
            if method == "SVI":
                axis.axhline(0.0, color=colour, lw=1)
                continue
            means = [gain[sizes == math.log2(k)].mean() for k in topics]
            axis.plot(topics, means, line, color=colour)
            axis.plot(2**sizes, gain, "o", color=colour, ms=3)
    axes[0].set_ylabel("held-out nats a word")
    axes[1].set_ylabel("gain over SVI, nats a word")
    titles = ("mean-field θ, α = 1/K", "gain, mean-field θ", "gain, exact θ, α = 0.1")
    for axis, title in zip(axes, titles):
        axis.set_title(title, fontsize=10, loc="left")
        axis.set_xscale("log", base=2)
        topics = sorted({row["topics"] for row in rows})
        axis.set_xticks(topics, [str(k) for k in topics])
        axis.set_xlabel("topics K")
        tidy(axis)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    figure.savefig(out / "lda-topics.png", dpi=110)


EXPERIMENT = Experiment(
    name="lda-topics",
    title="Topic models: the gain of tempering by the number of topics",
    claims_of="Larger topic numbers make the problem harder, thus larger improvements over SVI.",
    cases=cases,
    run=run_case,
    draw=draw,
    claims=claims,
    default_seeds={"quick": 1, "full": 2},
)
