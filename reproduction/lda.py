"""Figure 2: held-out predictive log likelihood of topic models by documents visited.

Settings of the paper: α = η = 1/K, B = 100, τ = 1024, κ = 0.7, 100 temperatures from 1 to 10 on an
exponential scale for VT (updated every 1,000 steps, or 20 times in a shorter run), 100 evenly
spaced inverse temperatures for LVT.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction.experiment import Case, Experiment, Row, Setting
from reproduction.lda_claims import AVI, claims
from reproduction.lda_corpora import (
    GENERATED,
    GENERATED_DOCUMENTS,
    GENERATED_TOPICS,
    corpus_names,
    count_documents,
    load_documents,
)
from reproduction.lda_fits import (
    DAMPED_LVT,
    DAMPED_VT,
    DEFAULT,
    PRINTED_VT,
    QUICK_RUN,
    Run,
    ScoreCurve,
    final_scores,
    fit_topics,
    policy_of,
    temperature_path,
)
from reproduction.lda_pictures import draw_curves

METHODS = ("SVI", *AVI, "VT", DAMPED_VT, "LVT", DEFAULT)
#: Variants that are run with one seed: the one as printed does the same with all.
VARIANTS = (PRINTED_VT, DAMPED_LVT)
#: The paper's K, with one seed.
MANY_TOPICS, MANY_TOPICS_METHODS = 500, ("SVI", *AVI[1:], "VT", DEFAULT, "LVT")
#: A corpus as large as the paper's is passed over a little more than once: the longest schedule
#: takes one pass. A smaller one is passed over until as many documents were visited as here.
LONG_PASSES, FEWEST_VISITS = 1.2, 100_000


def cases(setting: Setting) -> list[Case]:
    if setting.scale == "quick":
        return _cases(GENERATED, GENERATED_DOCUMENTS, GENERATED_TOPICS, setting.seeds)
    listed = []
    for name in corpus_names(setting):
        n = count_documents(name, setting)
        listed += _cases(name, n, 100, setting.seeds)
        if n >= FEWEST_VISITS:
            listed += _cases(name, n, MANY_TOPICS, 1, MANY_TOPICS_METHODS, variants=())
    return listed


def _cases(
    corpus: str,
    documents: int,
    topics: int,
    seeds: int,
    methods: tuple[str, ...] = METHODS,
    variants: tuple[str, ...] = VARIANTS,
) -> list[Case]:
    passes = QUICK_RUN.passes
    if corpus != GENERATED:
        few = documents < FEWEST_VISITS
        passes = float(np.ceil(FEWEST_VISITS / documents)) if few else LONG_PASSES
    common = {"corpus": corpus, "documents": documents, "topics": topics, "passes": passes}
    runs = [(method, seed) for seed in range(seeds) for method in methods]
    runs += [(method, 0) for method in variants]
    return [{**common, "method": method, "seed": seed} for method, seed in runs]


def run_case(case: Case, setting: Setting) -> dict[str, Any]:
    documents = load_documents(case, setting)
    quick = setting.scale == "quick"
    run = QUICK_RUN if quick else Run(case["passes"])
    n, method = case["documents"], case["method"]
    every = run.every(n)
    curve = ScoreCurve(documents.split, case["topics"], run.passes * n, 6 if quick else 16)
    policy = None if method == DEFAULT else policy_of(method, every)
    fitted = fit_topics(documents.train, case["topics"], policy, case["seed"], run, callback=curve)
    temperatures = fitted.history["temperature"]
    return {
        **final_scores(documents.split, fitted.topics),
        "first_temperature": round(float(temperatures[0]), 4),
        "last_temperature": round(float(temperatures[-1]), 4),
        "every": every,
        "documents_seen": fitted.history[-1].data_seen,
        "visits": curve.visits,
        "scores": curve.scores,
        **temperature_path(fitted.history),
    }


def draw(rows: list[Row], out: Path) -> None:
    """``lda.png``: for each corpus and K the scores, and beside them the temperatures."""
    draw_curves(rows, out / "lda.png")


EXPERIMENT = Experiment(
    name="lda",
    title="Figure 2: topic models, held-out scores and temperatures",
    claims_of=(
        "Annealing improves held-out predictive likelihoods over SVI, slow schedules most; VT "
        "recovers or beats the best schedule; LVT is better than both."
    ),
    cases=cases,
    run=run_case,
    draw=draw,
    claims=claims,
)
