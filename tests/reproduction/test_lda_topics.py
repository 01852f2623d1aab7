"""Gains over SVI by the number of topics."""

import json

import numpy as np
import pytest

from pictures import drawn
from reproduction import lda_topics
from reproduction.experiment import Setting
from reproduction.runner import run_experiment


@pytest.mark.slow
def test_the_quick_form_runs_draws_and_judges(tmp_path):
    rows = run_experiment(lda_topics.EXPERIMENT, Setting(seeds=1), tmp_path)
    assert len(rows) == len(lda_topics.METHODS) * len(lda_topics.TOPICS["quick"])
    assert drawn(tmp_path / "lda-topics.png")
    judged = json.loads((tmp_path / "lda-topics.json").read_text())["claims"]
    assert [claim["added"] for claim in judged] == [False, True]
    assert all("nan" not in claim["numbers"] for claim in judged)


def rows_with(slopes, at_first=0.1, noise=0.0):
    rng = np.random.default_rng(0)
    return [
        {
            "corpus": "made",
            "documents": 10,
            "passes": 1,
            "topics": k,
            "method": method,
            "seed": seed,
            "vi": -8.0 - seed + gain + noise * rng.normal(),
            "gibbs": -8.0,
        }
        for seed in range(2)
        for k in (50, 100, 200, 400)
        for method in lda_topics.METHODS
        for gain in [
            0.0 if method == "SVI" else at_first + slopes.get(method, 0.01) * np.log2(k / 50)
        ]
    ]


def test_gains_are_differences_on_the_same_seed():
    sizes, gain = lda_topics.gains(rows_with({"VT": 0.02}), "VT", "vi")
    np.testing.assert_allclose(gain, 0.1 + 0.02 * (sizes - np.log2(50)))


@pytest.mark.parametrize(
    ("slopes", "at_first", "verdict"),
    [
        ({}, 0.1, "holds"),
        ({"VT": -0.01}, 0.1, "holds in part"),
        ({}, -0.9, "holds in part"),
        (dict.fromkeys(lda_topics.METHODS, -0.01), 0.1, "does not hold"),
    ],
)
def test_verdicts_follow_the_slopes(slopes, at_first, verdict):
    rows = rows_with(slopes, at_first, noise=1e-4)
    assert lda_topics.claims(rows)[0].verdict == verdict
