"""Priors, first temperatures and schedules of topic models."""

import json

import pytest

from pictures import drawn
from reproduction import lda_sensitivity
from reproduction.experiment import Setting
from reproduction.lda_sensitivity_claims import (
    FACTORS,
    LENGTHS,
    PRIOR_METHODS,
    SHAPES,
    STARTS,
    claims,
)
from reproduction.runner import run_experiment


@pytest.mark.slow
def test_the_quick_form_runs_draws_and_judges(tmp_path):
    run_experiment(lda_sensitivity.EXPERIMENT, Setting(seeds=1), tmp_path)
    assert drawn(tmp_path / "lda-sensitivity.png")
    judged = json.loads((tmp_path / "lda-sensitivity.json").read_text())["claims"]
    assert len(judged) == 4
    assert all("nan" not in claim["numbers"] for claim in judged)


def rows_with(prior_effect=0.0, flat_gain=0.1, hot=-0.1, best_length=1.0, inverse=0.05):
    """Runs whose scores depend on their parameters in a known way."""
    common = {"corpus": "made", "documents": 10, "topics": 5, "passes": 3, "gibbs": -8.0}
    rows = [
        {
            "part": "priors",
            "method": method,
            "alpha": alpha,
            "eta": eta,
            "vi": -8.0 + prior_effect * alpha + (gain if eta < 2 or method == "SVI" else flat_gain),
        }
        for alpha in FACTORS
        for eta in FACTORS
        for method in PRIOR_METHODS
        for gain in [0.1 * (method != "SVI")]
    ]
    rows += [
        {"part": "start", "start": start, "vi": -8.0 + (hot if start > 5 else 0.01 * (start > 1))}
        for start in STARTS
    ]
    rows += [
        {
            "part": "schedule",
            "shape": shape,
            "length": length,
            "vi": -8.0 - abs(length - best_length) + inverse * (shape == "linear in 1/T"),
        }
        for shape in SHAPES
        for length in LENGTHS
    ]
    return [
        {**common, **row, "seed": seed, "vi": row["vi"] + 0.001 * seed * (1 + i % 3)}
        for seed in range(3)
        for i, row in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("place", "options", "verdict"),
    [
        (0, {}, "holds"),
        (0, {"prior_effect": 0.1}, "holds in part"),
        (0, {"prior_effect": 0.1, "flat_gain": -0.1}, "does not hold"),
        (1, {}, "holds"),
        (1, {"hot": 0.1}, "does not hold"),
        (2, {}, "holds"),
        (2, {"best_length": 2.0}, "does not hold"),
        (3, {}, "holds"),
        (3, {"inverse": -0.05}, "does not hold"),
    ],
)
def test_verdicts_follow_the_scores(place, options, verdict):
    assert claims(rows_with(**options))[place].verdict == verdict
