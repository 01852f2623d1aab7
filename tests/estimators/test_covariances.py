"""The prior of covariances whose scale is learned."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import tempering
from tempering import BayesianGaussianMixture
from tempering.estimators.covariances import COVARIANCE_TYPES, LearnedScale

every_type = pytest.mark.parametrize("covariance_type", list(COVARIANCE_TYPES))


def clusters(n=400, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, size=n)
    mixing = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 2.0]])
    return 8.0 * np.eye(3)[labels] + rng.normal(size=(n, 3)) @ mixing, labels


def fitted(covariance_type, **options):
    X, _ = clusters()
    return BayesianGaussianMixture(
        3, covariance_type=covariance_type, random_state=0, **options
    ).fit(X)


@every_type
def test_the_scale_maximises_the_elbo(covariance_type):
    """By brute force: the posterior's divergence from the prior is least at the learned scale."""
    kind, estimator = COVARIANCE_TYPES[covariance_type], fitted(covariance_type, n_init=1)
    model, posterior = estimator._model(), estimator._state.posterior
    likelihood, prior = model.likelihood, model.prior().components
    learned = LearnedScale(covariance_type, 1e-9 * kind.identity(3))
    mean, precision, degrees, central = kind.describe(
        likelihood, learned(likelihood, prior, posterior.components)
    )
    freedom = float(np.ravel(degrees)[0])
    scale = freedom * (central if covariance_type == "tied" else central[0])

    def divergence(scale):
        component = kind.prior(likelihood, mean[0], precision[0], freedom, scale)
        components = np.broadcast_to(component, prior.shape)
        return np.sum(likelihood.conjugate.divergence(posterior.components, components))

    best, rng = divergence(scale), np.random.default_rng(0)
    assert np.isfinite(best)
    for _ in range(20):
        noise = rng.normal(size=scale.shape)
        if kind.matrices:
            noise = noise + noise.T
        assert divergence(scale + 0.02 * np.min(np.abs(scale) + 0.1) * noise) > best
    assert divergence(1.1 * scale) > best
    assert divergence(0.9 * scale) > best


@every_type
def test_the_scale_is_bounded_from_below(covariance_type):
    """Rows that are alike in a column do not let the scale vanish there."""
    X, labels = clusters()
    X[:, 2] = labels
    model = BayesianGaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(X)
    first = BayesianGaussianMixture(3, covariance_type=covariance_type, max_iter=0).fit(X)
    kind = COVARIANCE_TYPES[covariance_type]
    rule, found = first.covariance_prior_, model.covariance_prior_
    if kind.matrices:
        ratios = np.linalg.eigvals(np.linalg.solve(rule, found)).real
    else:
        ratios = np.atleast_1d(found / rule)
    assert ratios.min() > 0.0099
    if covariance_type != "spherical":
        assert ratios.min() == pytest.approx(0.01, rel=1e-3)
        assert ratios.max() > 0.02


@every_type
def test_the_elbo_never_falls_while_the_scale_is_learned(covariance_type):
    X, _ = clusters()
    model = BayesianGaussianMixture(
        6, covariance_type=covariance_type, init_params="random", n_init=1, tol=1e-6, random_state=0
    ).fit(X)
    assert np.all(np.diff(model.lower_bounds_) > -1e-8)


def test_the_learned_scale_is_reported():
    model = fitted("full")
    _, _, degrees, central = COVARIANCE_TYPES["full"].describe(
        model._likelihood(), model._model().prior().components
    )
    np.testing.assert_allclose(model.covariance_prior_, degrees[0] * central[0])
    within = np.linalg.inv(np.linalg.inv(model.covariances_).mean(axis=0))
    learned = model.degrees_of_freedom_prior_ * within
    np.testing.assert_allclose(model.covariance_prior_, learned, rtol=0.01)


@every_type
def test_a_loaded_mixture_still_learns_its_scale(covariance_type, tmp_path):
    X, model = clusters(40)[0], fitted(covariance_type)
    before = model.score_samples(X)
    model.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.score_samples(X), before)
    scale = np.copy(loaded.covariance_prior_)
    assert np.isfinite(loaded.partial_fit(2.0 * X).score(X))
    assert np.any(loaded.covariance_prior_ != scale)


@every_type
def test_the_automatic_scale_starts_from_the_rule(covariance_type):
    kind, (X, _) = COVARIANCE_TYPES[covariance_type], clusters()
    start = BayesianGaussianMixture(4, covariance_type=covariance_type, max_iter=0).fit(X)
    rule = kind.of_data(np.cov(X.T)) / 4 ** (2 / 3)
    np.testing.assert_allclose(start.covariance_prior_, rule, rtol=1e-4, atol=1e-6)


def test_a_prior_that_is_given_stays():
    model = fitted("full", covariance_prior=np.eye(3))
    np.testing.assert_array_equal(model.covariance_prior_, np.eye(3))
    vague = fitted("full", covariance_prior=None)
    np.testing.assert_allclose(vague.covariance_prior_, np.cov(clusters()[0].T), rtol=1e-4)
    assert vague.mean_precision_prior_ == 1.0


def test_small_clusters_are_not_erased():
    rng = np.random.default_rng(0)
    centres = np.array([(i, j) for i in range(5) for j in range(5)], float)
    labels = np.repeat(np.arange(25), 12)
    X = centres[labels] + 0.1 * rng.normal(size=(300, 2))
    options = {"n_components": 25, "random_state": 0}
    learned = BayesianGaussianMixture(**options).fit(X)
    vague = BayesianGaussianMixture(**options, covariance_prior=None).fit(X)
    assert adjusted_rand_score(labels, learned.predict(X)) > 0.99
    assert adjusted_rand_score(labels, vague.predict(X)) < 0.9
