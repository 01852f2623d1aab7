"""What ``verbose=1`` shows: a bar on a terminal, lines elsewhere."""

import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tempering import (
    BayesianFactorAnalysis,
    FactorialMixture,
    GaussianHMM,
    PoissonFactorization,
    RegressionMixture,
)


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    "estimator",
    [
        BayesianFactorAnalysis(max_iter=12),
        FactorialMixture(2, max_iter=12),
        GaussianHMM(2, n_iter=12, n_init=1),
        PoissonFactorization(2, max_iter=12),
        RegressionMixture(2, max_iter=12),
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
    assert ("pass 12.00/12" in bar) is terminal
