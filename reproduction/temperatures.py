"""The temperatures that are learned: q(y) over a run, and one for each document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import entropy

from reproduction.experiment import Case, Experiment, Row, Setting
from reproduction.lda_corpora import (
    GENERATED_TOPICS,
    Documents,
    first_corpus,
    load_documents,
)
from reproduction.lda_fits import (
    DAMPED_LVT,
    DAMPED_VT,
    PRINTED_LVT,
    PRINTED_VT,
    QUICK_RUN,
    Fitted,
    Run,
    final_scores,
    fit_topics,
    policy_of,
    temperature_path,
)
from reproduction.lda_pictures import STYLES, tidy
from reproduction.lda_temperatures import (
    correlations,
    document_temperatures,
    extremes,
    foreign_documents,
    predict_at,
    separation,
    traits,
)
from reproduction.temperatures_claims import claims

METHODS = ("SVI", "VT", PRINTED_VT, DAMPED_VT, "LVT", PRINTED_LVT, DAMPED_LVT)
FULL_DOCUMENTS, FULL_TOPICS, FULL_RUN = 20_000, 100, Run(passes=2)
#: Inverse temperatures at which θ is inferred for prediction.
SCANNED = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: Documents of the training part whose temperatures are looked at.
EXAMINED = 2000
#: How many times q(y) is written down.
SNAPSHOTS = 24


def cases(setting: Setting) -> list[Case]:
    quick = setting.scale == "quick"
    common = {
        **first_corpus(setting, FULL_DOCUMENTS),
        "topics": GENERATED_TOPICS if quick else FULL_TOPICS,
        "passes": (QUICK_RUN if quick else FULL_RUN).passes,
    }
    return [
        {**common, "method": method, "seed": seed}
        for seed in range(setting.seeds)
        for method in METHODS
    ]


def run_case(case: Case, setting: Setting) -> dict[str, Any]:
    documents = load_documents(case, setting)
    run = QUICK_RUN if setting.scale == "quick" else FULL_RUN
    policy = policy_of(case["method"], run.every(case["documents"]))
    fitted = fit_topics(documents.train, case["topics"], policy, case["seed"], run)
    temperatures = fitted.history["temperature"]
    changes = np.diff(temperatures)
    result: dict[str, Any] = {
        **final_scores(documents.split, fitted.topics),
        **temperature_path(fitted.history),
        "first_temperature": round(float(temperatures[0]), 4),
        "last_temperature": round(float(temperatures[-1]), 4),
        "falling_share": float(np.mean(changes[np.abs(changes) > 1e-9] < 0))
        if changes.any()
        else 1,
        "scan": [round(predict_at(fitted, documents.split, s), 5) for s in SCANNED],
    }
    if case["method"] in (DAMPED_VT, PRINTED_VT, "VT"):
        result |= _snapshots(fitted)
    if case["method"] == "VT":
        assert fitted.heat is not None
        s = float(fitted.heat.inverse_temperature)
        result |= {"tempered": round(predict_at(fitted, documents.split, s), 5)}
    if case["method"] == "LVT":
        result |= {"tempered": round(predict_at(fitted, documents.split, None), 5)}
        result |= _examine(fitted, documents)
    return result


def _snapshots(fitted: Fitted) -> dict[str, Any]:
    """q(y) along the run."""
    steps = np.unique(np.linspace(0, len(fitted.history) - 1, SNAPSHOTS).astype(int))
    weights = np.stack([fitted.history[int(step)].weights for step in steps])
    return {
        "weights": np.round(weights, 4).tolist(),
        "weight_visits": fitted.history["data_seen"][steps].tolist(),
    }


def _examine(fitted: Fitted, documents: Documents) -> dict[str, Any]:
    """Which documents are hot: those with what traits, and whether foreign ones are."""
    counts = documents.train[:EXAMINED]
    totals = np.asarray(documents.train.sum(axis=0, dtype=np.float64)).ravel()
    frequencies = totals / totals.sum()
    hot = document_temperatures(fitted, counts)
    held_out = document_temperatures(fitted, documents.held_out)
    flat = np.full(totals.size, 1.0 / totals.size)
    foreign = {
        name: separation(
            document_temperatures(fitted, foreign_documents(documents.held_out, drawn_from, 0)),
            held_out,
        )
        for name, drawn_from in (("unigram", frequencies), ("uniform", flat))
    }
    return {
        "document_temperatures": np.round(np.sort(hot)[:: max(1, hot.size // 400)], 3).tolist(),
        "document_temperature_median": float(np.median(hot)),
        "document_temperature_95": float(np.quantile(hot, 0.95)),
        **correlations(hot, traits(counts, frequencies)),
        **extremes(counts, hot, frequencies, documents.vocabulary),
        **{f"separation_{name}": round(value, 4) for name, value in foreign.items()},
    }


def draw(rows: list[Row], out: Path) -> None:
    """``temperatures.png``: q(y) and T over a run, documents' T, predicting at a temperature."""
    from tempering.plots.canvas import new_figure

    figure = new_figure(figsize=(11.0, 7.6))
    (spread, paths), (documents, scan) = figure.subplots(2, 2)
    first = [row for row in rows if row["seed"] == 0]
    by_method = {row["method"]: row for row in first}
    _draw_spread(spread, by_method)
    for method in METHODS:
        colour, line = STYLES[method]
        row = by_method[method]
        paths.plot(row["heat_visits"], row["temperatures"], line, color=colour, label=method)
        scan.plot(SCANNED, row["scan"], line, color=colour)
        if "tempered" in row:
            place = 1.0 / row["last_temperature"]
            scan.plot(place, row["tempered"], "*", ms=11, color=colour, mec="white")
    paths.set_yscale("log")
    paths.set_yticks([1, 2, 5, 10, 100], ["1", "2", "5", "10", "100"])
    paths.set_ylabel("temperature, 1 / E[1/T]")
    for axis in (spread, paths):
        axis.set_xlabel("documents visited")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.tick_params(axis="x", labelsize=8)
    paths.set_title("learned temperature over the run", fontsize=10, loc="left")
    documents.hist(by_method["LVT"]["document_temperatures"], bins=40, color="#2ca02c")
    documents.set_xlabel("temperature of a document")
    documents.set_ylabel("documents (a sample)")
    documents.set_title("LVT: temperatures of documents", fontsize=10, loc="left")
    scan.set_xlim(SCANNED[0] - 0.03, SCANNED[-1] + 0.03)
    scan.set_xlabel("1/T at which θ is inferred (★: as learned)")
    scan.set_ylabel("held-out nats a word")
    scan.set_title("predicting at a temperature", fontsize=10, loc="left")
    top = max(max(row["scan"]) for row in first)
    plain = [row["scan"][-1] for row in first if row["method"] in ("SVI", "VT", "LVT")]
    scan.set_ylim(min(plain) - 1.5 * (top - min(plain)) - 0.02, top + 0.02)
    for axis in (spread, paths, documents, scan):
        tidy(axis)
    handles, labels = paths.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False, fontsize=9)
    figure.savefig(out / "temperatures.png", dpi=110)


def _draw_spread(axis: Any, by_method: dict[str, Row]) -> None:
    """Over how many temperatures q(y) spreads: exp of its entropy, 100 where it is uniform."""
    for method, row in by_method.items():
        if "weights" in row:
            colour, line = STYLES[method]
            weights = np.array(row["weights"], float)
            weights /= weights.sum(axis=1, keepdims=True)
            spread = np.exp(entropy(weights, axis=1))
            axis.plot(row["weight_visits"], spread, line, color=colour, marker="o", ms=3)
    axis.set_yscale("log")
    axis.set_yticks([1, 2, 5, 10, 100], ["1", "2", "5", "10", "100"])
    axis.set_ylabel("temperatures that q(y) spreads over")
    axis.set_title("q(y) of VT, of 100 temperatures", fontsize=10, loc="left")


EXPERIMENT = Experiment(
    name="temperatures",
    title="Learned temperatures: of the fit, and of documents",
    claims_of=(
        "Expected temperatures fall as the fit improves; outliers get a high local temperature; "
        "predicting with the learned temperatures is better still (footnote)."
    ),
    cases=cases,
    run=run_case,
    draw=draw,
    claims=claims,
    default_seeds={"quick": 1, "full": 1},
)
