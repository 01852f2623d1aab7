"""Bayesian factor analysis as an estimator."""

import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.utils.estimator_checks import parametrize_with_checks

import tempering
from tempering import AdaptiveTempering, Annealing, BayesianFactorAnalysis, schedules


@parametrize_with_checks([BayesianFactorAnalysis(max_iter=4)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def drawn(n=400, columns=10, k=3, seed=0, shared=False):
    """Rows, and the density that they come from."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(k, columns))
    noise = np.full(columns, 0.5) if shared else rng.uniform(0.2, 1.2, columns)
    mean = rng.normal(3, 5, columns)
    rows = rng.normal(size=(n, k)) @ loadings + mean + noise * rng.normal(size=(n, columns))
    return rows, stats.multivariate_normal(mean, loadings.T @ loadings + np.diag(noise**2)), noise


@pytest.mark.parametrize("noise", ["feature", "shared"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_number_of_factors_is_found(k, noise):
    X, *_ = drawn(200, k=k, seed=1, shared=noise == "shared")
    factors = BayesianFactorAnalysis(noise=noise).fit(X)
    assert factors.n_relevant_ == k
    assert factors.components_.shape == (9, 10)
    assert np.abs(factors.components_[k:]).max() < 0.05


@pytest.mark.slow
def test_as_likely_as_maximum_likelihood_with_the_right_number_of_factors():
    """On many data the covariance is that of maximum likelihood."""
    X, *_ = drawn(1500, seed=1)
    ours, peer = BayesianFactorAnalysis(4).fit(X), FactorAnalysis(3, tol=1e-6).fit(X)
    assert ours.n_relevant_ == 3
    assert ours.score(X) == pytest.approx(peer.score(X), abs=0.01)
    np.testing.assert_allclose(ours.mean_, X.mean(axis=0), atol=0.01)
    covariance = ours.components_.T @ ours.components_ + np.diag(ours.noise_variance_)
    np.testing.assert_allclose(covariance, peer.get_covariance(), rtol=0.03, atol=0.03)


def sparse_loadings(seed):
    """Rows of two factors with four large loadings each, of twelve."""
    rng = np.random.default_rng(seed)
    loadings = np.zeros((2, 12))
    loadings[0, :4], loadings[1, 3:7] = [1.5, -1.2, 1.0, 0.8], [0.9, 1.3, -1.1, 1.4]
    return rng.normal(size=(200, 2)) @ loadings + rng.normal(size=(200, 12)), loadings


def recovery(components, loadings):
    """Root mean square error of the loadings, with the factors matched and their signs."""
    lengths = np.linalg.norm(components, axis=1)
    components = components[np.argsort(-lengths)[: len(loadings)]]
    overlap = loadings @ components.T
    rows, columns = linear_sum_assignment(-np.abs(overlap))
    signs = np.sign(overlap[rows, columns])[:, None]
    return np.sqrt(np.mean((signs * components[columns] - loadings[rows]) ** 2))


def test_sparse_loadings_are_found_where_dense_ones_are_turned():
    errors, zeros = [], []
    for seed in range(2):
        X, loadings = sparse_loadings(seed)
        found = [
            BayesianFactorAnalysis(2, loadings="sparse").fit(X),
            BayesianFactorAnalysis(2).fit(X),
            FactorAnalysis(2).fit(X),
            FactorAnalysis(2, rotation="varimax").fit(X),
        ]
        errors.append([recovery(each.components_, loadings) for each in found])
        zeros.append([np.abs(each.components_[:, 7:]).mean() for each in found])
    ours, dense, likely, turned = np.transpose(errors)
    assert np.all(ours < turned)
    assert np.all(ours < 0.5 * np.minimum(dense, likely))
    assert np.mean(zeros, axis=0)[0] < 0.7 * np.mean(zeros, axis=0)[1:].min()


def test_a_sparse_model_is_saved_and_fills_holes(tmp_path):
    X, _ = sparse_loadings(0)
    X[::7, 3] = np.nan
    sparse = BayesianFactorAnalysis(3, loadings="sparse").fit(X)
    assert np.isfinite(sparse.transform(X)).all()
    sparse.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), sparse.transform(X))
    assert loaded.score(X) == sparse.score(X)
    with pytest.raises(ValueError, match="loadings"):
        BayesianFactorAnalysis(3, loadings="few").fit(X)


def test_shared_noise_is_probabilistic_pca():
    X, *_ = drawn(2000, shared=True)
    ours, peer = BayesianFactorAnalysis(noise="shared").fit(X), PCA(3).fit(X)
    assert ours.noise_variance_ == pytest.approx(peer.noise_variance_, rel=0.02)
    assert ours.score(X) == pytest.approx(peer.score(X), abs=0.01)


def test_held_out_rows_are_more_likely_than_under_too_many_factors():
    for seed in range(3):
        X, truth, _ = drawn(2060, seed=seed)
        ours = BayesianFactorAnalysis().fit(X[:60])
        peer = FactorAnalysis(9, max_iter=5000).fit(X[:60])
        assert peer.score(X[60:]) + 0.1 < ours.score(X[60:]) < truth.logpdf(X[60:]).mean() + 0.05


def test_score_is_the_density_of_what_is_observed():
    X, *_ = drawn(200)
    factors = BayesianFactorAnalysis().fit(X)
    covariance = factors.components_.T @ factors.components_ + np.diag(factors.noise_variance_)
    seen = [0, 3, 4, 8]
    part = np.full_like(X[:5], np.nan)
    part[:, seen] = X[:5, seen]
    known = stats.multivariate_normal(factors.mean_[seen], covariance[np.ix_(seen, seen)])
    np.testing.assert_allclose(factors.score_samples(part), known.logpdf(X[:5, seen]))
    nothing = np.full((1, 10), np.nan)
    assert factors.score_samples(nothing) == pytest.approx(0.0)
    np.testing.assert_allclose(factors.transform(nothing), 0, atol=1e-12)
    np.testing.assert_allclose(
        factors.inverse_transform(factors.transform(nothing))[0], factors.mean_
    )


@pytest.mark.slow
def test_missing_values_are_filled_in_better_than_by_the_mean():
    X = load_digits().data[:600]
    X = X[:, X.std(axis=0) > 1]
    rng = np.random.default_rng(0)
    hidden = rng.random(X.shape) < 0.1
    holed = np.where(hidden, np.nan, X)
    factors = BayesianFactorAnalysis(20, max_iter=60, tol=1.0).fit(holed)
    filled = factors.inverse_transform(factors.transform(holed))
    mean = np.broadcast_to(np.nanmean(holed, axis=0), X.shape)
    error, naive = (np.mean((table - X)[hidden] ** 2) for table in (filled, mean))
    assert error < 0.5 * naive


def test_a_little_heat_switches_off_a_factor_of_chance():
    X, *_ = drawn(200, k=1)
    policy = Annealing(schedules.linear_inverse(1.2), passes=20)
    plain, tempered = (BayesianFactorAnalysis(tempering=each).fit(X) for each in (None, policy))
    assert tempered.n_relevant_ == 1 < plain.n_relevant_
    assert tempered.elbo_ > plain.elbo_ + 2


def test_much_heat_finds_nothing_better():
    """The start is next to the optimum; too much heat switches factors off for good."""
    X, *_ = drawn(100)
    plain, adaptive, annealed = (
        BayesianFactorAnalysis(4, tempering=policy, random_state=0, max_iter=200).fit(X)
        for policy in (None, AdaptiveTempering(), "annealing")
    )
    assert adaptive.elbo_ < plain.elbo_ + 0.1
    assert annealed.elbo_ < plain.elbo_ - 10
    assert annealed.n_relevant_ < plain.n_relevant_ == 3


def test_draws_have_the_moments_of_the_model():
    X, *_ = drawn()
    factors = BayesianFactorAnalysis(random_state=0).fit(X)
    rows = factors.sample(100_000)
    covariance = factors.components_.T @ factors.components_ + np.diag(factors.noise_variance_)
    np.testing.assert_allclose(rows.mean(axis=0), factors.mean_, atol=0.05)
    np.testing.assert_allclose(np.cov(rows.T), covariance, atol=0.1)
    with pytest.raises(ValueError, match="n_samples must be"):
        factors.sample(0)


def test_units_change_nothing_but_the_density():
    X, *_ = drawn(200)
    units = np.geomspace(1e-3, 1e3, 10)
    one, other = (BayesianFactorAnalysis(random_state=0).fit(t) for t in (X, X * units + 7))
    # Factors that are switched off may have another sign.
    one_product, other_product = (
        each.components_.T @ each.components_ / np.outer(scale, scale)
        for each, scale in ((one, 1.0 + 0 * units), (other, units))
    )
    np.testing.assert_allclose(other_product, one_product, rtol=1e-4, atol=1e-4)
    assert other.score(X * units + 7) == pytest.approx(one.score(X) - np.log(units).sum(), abs=1e-5)
    assert other.elbo_ == pytest.approx(one.elbo_ - 200 * np.log(units).sum(), abs=1e-2)


def test_saved_and_pickled(tmp_path):
    X, *_ = drawn(80)
    X[::7, 2] = np.nan
    factors = BayesianFactorAnalysis(4, max_iter=20).fit(X)
    factors.save(tmp_path / "model")
    for other in (tempering.load(tmp_path / "model"), pickle.loads(pickle.dumps(factors))):
        assert np.array_equal(other.transform(X), factors.transform(X))
        assert np.array_equal(other.components_, factors.components_)
        assert other.elbo_ == factors.elbo_


def test_threads_and_checkpoints_change_no_bit(tmp_path):
    X, *_ = drawn(2100)
    options = {"max_iter": 8, "random_state": 0}
    one, more = (BayesianFactorAnalysis(4, n_jobs=n, **options).fit(X) for n in (1, 2))
    assert np.array_equal(one.components_, more.components_)
    assert np.array_equal(one.transform(X), more.transform(X))
    kept = BayesianFactorAnalysis(4, **options).fit(X, checkpoint=tmp_path / "kept")
    assert np.array_equal(kept.components_, one.components_)


def test_what_is_constant_breaks_nothing():
    X, *_ = drawn(50)
    X[:, 4] = 2.0
    for noise in ("feature", "shared"):
        factors = BayesianFactorAnalysis(noise=noise).fit(X)
        assert np.isfinite(factors.score_samples(X)).all()
        assert factors.inverse_transform(factors.transform(X))[:, 4] == pytest.approx(2.0, abs=0.05)
    assert BayesianFactorAnalysis().fit(np.full((9, 3), 5.0)).n_relevant_ == 0


@pytest.mark.parametrize("noise", ["feature", "shared"])
def test_a_constant_whose_mean_is_rounded_is_constant(noise):
    X, *_ = drawn(50)
    for columns in ([4], range(10)):
        whole, rounded, nearly = X.copy(), X.copy(), X.copy()
        whole[:, columns], rounded[:, columns], nearly[:, columns] = 2.0, 0.1, 0.3
        rounded[7, columns], nearly[::2, columns] = np.nan, 0.1 + 0.2
        model = BayesianFactorAnalysis(2, noise=noise, max_iter=30)
        fits = [clone(model).fit(table) for table in (whole, rounded, nearly)]
        for factors in fits[1:]:
            assert factors.noise_variance_ == pytest.approx(fits[0].noise_variance_, rel=0.05)


def test_bad_data():
    X, *_ = drawn(50)
    factors = BayesianFactorAnalysis(2, max_iter=5).fit(X)
    holed = np.where(np.arange(10) == 3, np.nan, X)
    with pytest.raises(ValueError, match="column 3 is all NaN"):
        factors.fit(holed)
    with pytest.raises(ValueError, match=r"not infinity.*row 0, column 0"):
        factors.transform(np.full((2, 10), np.inf))
    with pytest.raises(ValueError, match="10 features"):
        factors.transform(X[:, :5])
    with pytest.raises(ValueError, match="2 factors"):
        factors.inverse_transform(X)
    with pytest.raises(ValueError, match="n_components=11 must be at most n_features=10"):
        BayesianFactorAnalysis(11).fit(X)
    with pytest.raises(ValueError, match="'noise' parameter"):
        BayesianFactorAnalysis(noise="odd").fit(X)


def test_numbers_whose_squares_vanish_are_refused():
    X = np.random.default_rng(0).normal(size=(50, 4)) * [1.0, 1.0, 1e-160, 1.0]
    with pytest.raises(ValueError, match=r"X varies by .*e-160 in column 2"):
        BayesianFactorAnalysis(1).fit(X)
