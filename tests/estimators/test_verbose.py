"""What ``verbose=1`` shows: a bar on a terminal, lines elsewhere."""

import sys
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tempering import (
    BayesianFactorAnalysis,
    FactorialMixture,
    GaussianHMM,
    LatentDirichletAllocation,
    Mixture,
    PoissonFactorization,
    RegressionMixture,
    fit,
)
from tempering.families import Dirichlet, Poisson
from tempering.inference.callbacks import Report, progress_bar
from tempering.inference.run import Record
from tempering.temperature.adaptive import AdaptiveHeat


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    "estimator",
    [
        BayesianFactorAnalysis(max_iter=12),
        FactorialMixture(2, max_iter=12, n_init=1),
        GaussianHMM(2, n_iter=12, n_init=1),
        PoissonFactorization(2, max_iter=12),
        RegressionMixture(2, max_iter=12, n_init=1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_fit_tells_how_far_it_is(estimator, terminal, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    X = np.random.default_rng(0).poisson(5.0, (100, 3))
    targets = [X[:, 0]] if isinstance(estimator, RegressionMixture) else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.set_params(tol=0.0, verbose=1, random_state=0).fit(X, *targets)
    lines, bar = capsys.readouterr()
    assert lines.startswith("pass 10  ELBO ") is not terminal
    assert ("done after 12 passes  ELBO " in bar and "100%" in bar) is terminal


@pytest.mark.parametrize("terminal", [False, True])
def test_a_search_reports_its_rounds(terminal, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    X = np.random.default_rng(0).poisson(5.0, (100, 3))
    hmm = GaussianHMM(3, n_init=3, verbose=1, random_state=0, n_iter=20, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        hmm.fit(X)
    lines, bar = capsys.readouterr()
    if terminal:
        assert "search" in bar
        assert "best by" in bar
        assert "100%" in bar
        return
    passes = [int(line.split()[1]) for line in lines.splitlines() if line.startswith("pass ")]
    assert passes[:2] == [10, 20]
    # A line for each round that completes ten passes more.
    spent = np.cumsum([trial.passes for trial in hmm.trail_ if trial.operator != "last"])
    rounds = [int(n) for before, n in pairwise(spent) if n // 10 > before // 10]
    assert len(rounds) > 1
    assert [passed for passed in passes if passed > 20][: len(rounds)] == rounds


@pytest.fixture
def shown(monkeypatch):
    """All that a bar has shown, a dictionary each time."""
    from rich.progress import Progress

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    seen, update = [], Progress.update

    def remember(self, task, **fields):
        seen.append(fields)
        update(self, task, **fields)

    monkeypatch.setattr(Progress, "update", remember)
    return seen


def test_the_bar_of_a_fit_that_ends_early_is_full(shown):
    model = Mixture(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 1.0])
    result = fit(model, [[1], [9]], max_passes=500, progress=True)
    assert result.converged
    assert shown[-1]["completed"] == shown[-1]["total"]
    assert shown[-1]["where"].startswith(f"done after {result.history[-1].passes:g} passes  ELBO")


def test_the_bar_of_a_fit_that_fails_is_not_full(shown):
    def fail(report):
        raise KeyboardInterrupt

    X = np.ones((20, 2))
    with pytest.raises(KeyboardInterrupt):
        LatentDirichletAllocation(2, verbose=1, random_state=0).fit(X, callbacks=[fail])
    assert "done" not in str(shown[-1:])


def test_the_bar_names_phases_and_the_objective(shown):
    """Nothing cools at T = 1.000, and an ELBO that is not the objective may fall."""
    steps = [  # temperature of the step, and the heat after it
        (5.0, AdaptiveHeat(0.2, inverse_temperature_before=0.1)),
        (5.0, AdaptiveHeat(0.2, inverse_temperature_before=0.2)),
        (5.0, AdaptiveHeat(0.9999, inverse_temperature_before=0.2)),
        (1.0001, AdaptiveHeat(1.0, inverse_temperature_before=0.9999)),
        (1.0, AdaptiveHeat(finished=True)),
    ]
    with progress_bar(True) as bar:
        for i, (temperature, heat) in enumerate(steps):
            record = Record(i, i + 1, 10, temperature, 1.0, 1.0, 0.0, -3.0, 1.0, "tempered", None)
            bar(Report(record, None, heat, 10.0, 0))
    phases = [(each["description"], "may fall" in each["where"]) for each in shown[:-1]]
    assert phases == [
        ("cooling", True),
        ("cooling", True),
        ("holding: components are separating", True),
        ("T = 1", False),
        ("T = 1", False),
    ]
