"""Topics for other tools."""

import sys

import numpy as np
import pytest

from tempering import (
    BayesianFactorAnalysis,
    BayesianGaussianMixture,
    GaussianHMM,
    PoissonFactorization,
    RegressionMixture,
)
from tempering.report import to_arviz
from tempering.report.exports import _dirichlet_draws


def test_draws_have_the_moments_of_a_dirichlet():
    parameters = np.array([[0.5, 3.0, 2.0, 4.5], [10.0, 1.0, 0.2, 0.8]])
    kept = np.array([0, 2])
    # Most gamma variables of such parameters are too small for a float.
    few = _dirichlet_draws(np.full((1, 2), 1e-3), np.arange(2), 100, np.random.default_rng(0))
    np.testing.assert_allclose(few.sum(axis=-1), 1.0)
    draws = _dirichlet_draws(parameters, kept, 20_000, np.random.default_rng(0))
    assert draws.shape == (1, 20_000, 2, 2)
    total = parameters.sum(axis=1, keepdims=True)
    means = (parameters / total)[:, kept]
    variances = means * (1 - means) / (total + 1)
    np.testing.assert_allclose(draws[0].mean(axis=0), means, rtol=0.05)
    np.testing.assert_allclose(draws[0].var(axis=0), variances, rtol=0.06)
    # Two entries of a Dirichlet vector have the covariance −m₁m₂ / (Σλ + 1).
    covariance = np.mean((draws[0] - means).prod(axis=2), axis=0)
    np.testing.assert_allclose(covariance, -means.prod(axis=1) / (total[:, 0] + 1), rtol=0.15)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_arviz_takes_them(fitted):
    pytest.importorskip("arviz")
    data = to_arviz(
        fitted.model, draws=200, X=fitted.X[:7], vocabulary=fitted.vocabulary, n_words=6
    )
    topics = data["posterior"]["topics"]
    assert topics.dims == ("chain", "draw", "topic", "word")
    assert topics.shape[:3] == (1, 200, 5)
    components = fitted.model.components_
    means = components / components.sum(axis=1, keepdims=True)
    columns = [fitted.vocabulary.index(word) for word in topics["word"].values]
    np.testing.assert_allclose(topics.mean(("chain", "draw")), means[:, columns], atol=0.005)
    proportions = data["posterior"]["proportions"]
    assert proportions.dims == ("chain", "draw", "document", "topic")
    np.testing.assert_allclose(proportions.sum("topic"), 1.0)
    expected = fitted.model.transform(fitted.X[:7])
    np.testing.assert_allclose(proportions.mean(("chain", "draw")), expected, atol=0.03)


ESTIMATORS = {
    "hmm": (GaussianHMM(2), {"emissions_mean": "means_", "transitions": "transmat_"}),
    "tied": (GaussianHMM(2, "tied"), {"emissions_mean": "means_", "start": "startprob_"}),
    "mixture": (BayesianGaussianMixture(2), {"components_mean": "means_", "weights": "weights_"}),
    "factors": (BayesianFactorAnalysis(1), {"mean": "mean_"}),
    "counts": (PoissonFactorization(2), {"components": "components_"}),
    "lines": (RegressionMixture(2), {"coef": "coef_", "intercept": "intercept_"}),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_draws_of_any_estimator_are_in_the_units_of_its_data(kind):
    pytest.importorskip("arviz")
    rng = np.random.default_rng(0)
    X = rng.normal(np.repeat([50.0, 90.0], 100)[:, None], 1.0, size=(200, 2)).round()
    data = (X[:, :1], X[:, 1]) if kind == "lines" else (X,)
    estimator, names = ESTIMATORS[kind]
    estimator.set_params(random_state=0).fit(*data)
    drawn = to_arviz(estimator, draws=2000)["posterior"]
    for name, attribute in names.items():
        each = drawn[name].values[0]
        error = 6 * each.std(axis=0) / np.sqrt(len(each)) + 1e-9
        np.testing.assert_array_less(
            np.abs(each.mean(axis=0) - getattr(estimator, attribute)), error
        )
    with pytest.raises(ValueError, match=f"{type(estimator).__name__} is neither"):
        to_arviz(estimator, X=X)


def test_a_missing_package_is_named(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match="pip install arviz"):
        to_arviz(fitted.model)
