"""Annealing the joint against annealing the likelihood only.

Earlier work anneals p(β) p(x, z | β); the paper anneals the likelihood alone, because a tempered
prior can be extremely skewed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import gamma

from reproduction.experiment import Case, Experiment, Row, Setting
from reproduction.factorial import MEAN_FIELD, agreement
from reproduction.lda_corpora import GENERATED_TOPICS, first_corpus, load_documents
from reproduction.lda_fits import (
    PAPER_START,
    QUICK_RUN,
    Run,
    final_scores,
    fit_topics,
)
from reproduction.lda_pictures import tidy
from reproduction.prior_claims import LIKELIHOOD, TEMPERED, claims, part_of
from tempering.datasets import make_toy_images
from tempering.estimators import FactorialMixture
from tempering.temperature import Annealing, schedules

#: The paper's example: a gamma prior at T = 2.
SHAPE, TEMPERATURE = 0.05, 2.0
IMAGES = {"quick": 500, "full": 2000}
FMM_SEEDS = {"quick": 2, "full": 20}
FULL_DOCUMENTS, FULL_TOPICS, FULL_RUN = 10_000, 50, Run(passes=3)
#: Topics with a smaller prior have more to lose from a flatter one: η in units of 1/K.
ETA_FACTORS = (1.0, 10.0)


def cases(setting: Setting) -> list[Case]:
    quick = setting.scale == "quick"
    topics = {
        "part": "topics",
        **first_corpus(setting, FULL_DOCUMENTS),
        "topics": GENERATED_TOPICS if quick else FULL_TOPICS,
        "passes": (QUICK_RUN if quick else FULL_RUN).passes,
    }
    listed: list[Case] = [{"part": "gamma", "shape": SHAPE, "temperature": TEMPERATURE}]
    listed += [
        {
            "part": "features",
            "n_images": IMAGES[setting.scale],
            "start": start,
            "method": method,
            "seed": seed,
        }
        for seed in range(FMM_SEEDS[setting.scale])
        for start in ("small", "prior")
        for method in TEMPERED
    ]
    listed += [
        {**topics, "eta": factor, "method": method, "seed": seed}
        for seed in range(setting.seeds)
        for factor in ETA_FACTORS
        for method in TEMPERED
    ]
    return listed


def run_case(case: Case, setting: Setting) -> dict[str, Any]:
    if case["part"] == "gamma":
        return annealed_medians(case["shape"], case["temperature"])
    if case["part"] == "features":
        return _fit_features(case)
    documents = load_documents(case, setting)
    policy = Annealing(schedules.linear(PAPER_START), passes=1.0, temper=_tempered(case["method"]))
    fitted = fit_topics(
        documents.train,
        case["topics"],
        policy,
        case["seed"],
        QUICK_RUN if setting.scale == "quick" else FULL_RUN,
        eta=case["eta"] / case["topics"],
    )
    return final_scores(documents.split, fitted.topics)


def annealed_medians(shape: float, temperature: float) -> dict[str, float]:
    """Medians of a gamma prior with rate 1, and of two things that annealing it may mean.

    Its density to the power 1/T is a gamma density again, with shape (shape − 1)/T + 1 and rate
    1/T. Dividing its natural parameter by T, with 1/x as base measure, makes the shape shape/T.
    """
    original = gamma.ppf(0.5, shape)
    density = gamma.ppf(0.5, (shape - 1) / temperature + 1, scale=temperature)
    natural = gamma.ppf(0.5, shape / temperature, scale=temperature)
    return {
        "median": float(original),
        "median_density": float(density),
        "median_natural": float(natural),
        "orders_density": float(np.log10(density / original)),
        "orders_natural": float(np.log10(natural / original)),
    }


def _tempered(method: str) -> Any:
    return "likelihood" if method == LIKELIHOOD else "joint"


def _fit_features(case: Case) -> dict[str, Any]:
    data = make_toy_images(case["n_images"], seed=case["seed"])
    estimator = FactorialMixture(
        len(data.features),
        noise_variance=0.1,
        feature_variance=0.35,
        activation_probability=0.3,
        tempering=Annealing(schedules.linear(10.0), passes=100, temper=_tempered(case["method"])),
        init=case["start"],
        max_iter=200,
        tol=1e-5 * len(data.X),
        random_state=case["seed"],
        n_jobs=1,
        **MEAN_FIELD,
    ).fit(data.X)
    found, error = agreement(data.features, estimator.features_)
    return {"elbo": estimator.elbo_, "found": found, "error": error}


def draw(rows: list[Row], out: Path) -> None:
    """``prior.png``: the gamma density annealed, and the paired effect on both models."""
    from tempering.plots.canvas import new_figure

    figure = new_figure(figsize=(12.0, 3.9))
    density, features, topics = figure.subplots(1, 3)
    _draw_gamma(density, part_of(rows, "gamma")[0])
    _draw_pairs(features, part_of(rows, "features"), "start", "elbo", "start of the features")
    features.set_ylabel("joint − likelihood: ELBO at T = 1, nats")
    _draw_pairs(topics, part_of(rows, "topics"), "eta", "vi", "prior of the topics, η · K")
    topics.set_ylabel("joint − likelihood: nats a word")
    features.set_title("factorial mixture, toy images", fontsize=10, loc="left")
    topics.set_title("topic model", fontsize=10, loc="left")
    for axis in (density, features, topics):
        tidy(axis)
    figure.savefig(out / "prior.png", dpi=110)


def _draw_gamma(axis: Any, row: Row) -> None:
    shape, temperature = row["shape"], row["temperature"]
    x = np.geomspace(1e-16, 10.0, 400)
    curves = {
        f"gamma({shape:g})": (gamma.cdf(x, shape), row["median"], "black"),
        f"its density to the power 1/{temperature:g}": (
            gamma.cdf(x, (shape - 1) / temperature + 1, scale=temperature),
            row["median_density"],
            "#d62728",
        ),
        f"its shape divided by {temperature:g}": (
            gamma.cdf(x, shape / temperature, scale=temperature),
            row["median_natural"],
            "#08519c",
        ),
    }
    for name, (values, median, colour) in curves.items():
        axis.plot(x, values, color=colour, label=f"{name}\nmedian {median:.1e}")
        axis.plot([median], [0.5], "o", color=colour, ms=5)
    axis.set_xscale("log")
    axis.set_xlabel("x")
    axis.set_ylabel("probability below x")
    axis.set_title("a gamma prior, annealed", fontsize=10, loc="left")
    axis.legend(fontsize=7, frameon=False, loc="upper left")


def _draw_pairs(axis: Any, rows: list[Row], by: str, value: str, label: str) -> None:
    """A dot for each seed, a bar for their mean."""
    places = list(dict.fromkeys(row[by] for row in rows))
    for place, name in enumerate(places):
        own = [row for row in rows if row[by] == name]
        likelihood = {row["seed"]: row[value] for row in own if row["method"] == LIKELIHOOD}
        gaps = [row[value] - likelihood[row["seed"]] for row in own if row["method"] != LIKELIHOOD]
        spread = np.linspace(-0.15, 0.15, len(gaps)) if len(gaps) > 1 else [0.0]
        axis.plot(place + np.asarray(spread), gaps, "o", color="#4292c6", ms=4)
        axis.plot([place - 0.25, place + 0.25], [np.mean(gaps)] * 2, color="black", lw=2)
    axis.axhline(0.0, color="0.5", lw=1)
    axis.set_xticks(
        range(len(places)), [name if isinstance(name, str) else f"{name:g}" for name in places]
    )
    axis.set_xlim(-0.6, len(places) - 0.4)
    axis.set_xlabel(label)


EXPERIMENT = Experiment(
    name="prior",
    title="Annealing the joint, or the likelihood only",
    claims_of=(
        "Annealing the prior too has nearly the same effect but can lead to practical problems: at "
        "T = 2 the median of a gamma(0.05) prior moves by over five orders of magnitude."
    ),
    cases=cases,
    run=run_case,
    draw=draw,
    claims=claims,
    default_seeds={"quick": 1, "full": 3},
)
