"""Mixtures of regressions as an estimator."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import tempering
from tempering import AdaptiveTempering, Annealing, RegressionMixture, schedules
from tempering.inference import evaluate_elbo
from tempering.inference.sources import ArraySource


@parametrize_with_checks(
    [RegressionMixture(n_components=2, max_iter=4)],
    expected_failed_checks=lambda estimator: {
        "check_regressors_no_decision_function": "predict_proba is of components, given x and y"
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def lines(n=400, seed=0):
    """Three lines in two columns, far from 0."""
    rng = np.random.default_rng(seed)
    slopes, intercepts = np.array([[2.0, -1.0], [-2.0, 0.5], [0.5, 3.0]]), np.array([4.0, 0.0, -5])
    X, z = rng.normal([5.0, -3.0], [1.0, 2.0], size=(n, 2)), rng.integers(3, size=n)
    y = np.sum(X * slopes[z], axis=1) + intercepts[z] + rng.normal(0, 0.2, size=n)
    return X, y, z, slopes, intercepts


def test_lines_are_recovered():
    X, y, z, slopes, intercepts = lines()
    mixture = RegressionMixture(3, random_state=0).fit(X, y)
    order = [int(np.argmin(np.abs(mixture.coef_ - slope).sum(axis=1))) for slope in slopes]
    np.testing.assert_allclose(mixture.coef_[order], slopes, atol=0.05)
    np.testing.assert_allclose(mixture.intercept_[order], intercepts, atol=0.25)
    np.testing.assert_allclose(mixture.noise_variance_, 0.04, rtol=0.3)
    labels = mixture.predict_proba(X, y).argmax(axis=1)
    assert np.mean(np.array(order)[z] == labels) > 0.9
    assert mixture.converged_
    np.testing.assert_array_equal(mixture.predict_proba(X[:2]), [mixture.weights_] * 2)


def test_fits_are_searches_from_lines_of_few_rows():
    X, y, *_ = lines()
    mixture = RegressionMixture(3, random_state=0).fit(X, y)
    assert mixture.trail_[0].operator == "plain"
    assert mixture.elbo_ >= max(trial.elbo for trial in mixture.trail_)
    assert mixture.elbo_ >= RegressionMixture(3, random_state=0, n_init=1).fit(X, y).elbo_
    for options in ({"n_init": 1}, {"tempering": "annealing"}, {"batch_size": 100, "max_iter": 3}):
        assert RegressionMixture(3, random_state=0, **options).fit(X, y).trail_ == []
    rows = mixture._joined(X, y, reset=False)
    model, data = mixture._new_model(rows), mixture._transformed(rows)
    first, fresh = (
        start(model, data, np.random.RandomState(0))
        for start in (mixture._starts, mixture._another_start)
    )
    np.testing.assert_allclose(fresh.weights - model.prior().weights, len(X) / 3)
    alike, apart = (
        np.abs(np.diff(model.likelihood.conjugate.point(start.components)[0], axis=0)).min()
        for start in (first, fresh)
    )
    assert apart > 3 * alike


def one_line(X, y, mixture):
    """What a single Bayesian regression is in closed form: log evidence, and its predictive."""
    centre, middle = X.mean(axis=0), y.mean()
    inputs = np.column_stack([np.ones(len(X)), X - centre])
    prior = np.diag(mixture.coef_precision_prior * np.array([1.0, *X.var(axis=0)]))
    a, b, t = 1.0, 1e-3 * y.var(), y - middle
    # t ~ Student, with the scale matrix (b/a)(1 + inputs prior^-1 inputs').
    shape = b / a * (np.eye(len(X)) + inputs @ np.linalg.inv(prior) @ inputs.T)
    evidence = stats.multivariate_t.logpdf(t, np.zeros(len(t)), shape, 2 * a)
    matrix = prior + inputs.T @ inputs
    mean = np.linalg.solve(matrix, inputs.T @ t)
    a_n, b_n = a + len(t) / 2, b + 0.5 * (t @ t - mean @ matrix @ mean)

    def predictive(new):
        rows = np.column_stack([np.ones(len(new)), new - centre])
        spread = 1 + np.einsum("ni,ij,nj->n", rows, np.linalg.inv(matrix), rows)
        return stats.t(2 * a_n, rows @ mean + middle, np.sqrt(b_n / a_n * spread))

    return evidence, predictive


def test_one_component_is_bayesian_regression_in_closed_form():
    X, y, z, *_ = lines(60)
    X, y = X[z == 0], y[z == 0]
    mixture = RegressionMixture(1).fit(X, y)
    evidence, predictive = one_line(X, y, mixture)
    assert mixture.elbo_ == pytest.approx(evidence, abs=1e-6)
    new, targets = lines(7, seed=1)[:2]
    known = predictive(new)
    np.testing.assert_allclose(mixture.predict_log_density(new, targets), known.logpdf(targets))
    np.testing.assert_allclose(mixture.predict(new), known.mean())
    assert mixture.score(new, targets) == pytest.approx(known.logpdf(targets).mean())


def test_prediction_is_the_mean_of_what_the_predictive_density_says():
    X, y, *_ = lines()
    mixture = RegressionMixture(3, random_state=0).fit(X, y)
    grid = np.linspace(-80, 80, 64_001)
    for x in X[:3]:
        density = np.exp(mixture.predict_log_density(np.tile(x, (len(grid), 1)), grid))
        step = grid[1] - grid[0]
        assert density.sum() * step == pytest.approx(1, abs=1e-6)
        mean = (density * grid).sum() * step
        assert mixture.predict(x[None])[0] == pytest.approx(mean, abs=1e-4)


@pytest.mark.parametrize(
    "policy",
    [None, "annealing", "variational", "local", AdaptiveTempering()],
    ids=["vi", "avi", "vt", "lvt", "adaptive"],
)
def test_every_policy_ends_at_an_optimum_of_the_model(policy):
    X, y, *_ = lines(150)
    mixture = RegressionMixture(3, tempering=policy, random_state=1, max_iter=400).fit(X, y)
    assert mixture.history_[-1].temperature == 1.0
    assert mixture.converged_
    final = [record.elbo for record in mixture.history_ if record.phase == "final"]
    assert np.diff([*final, mixture.elbo_]).min() > -1e-7
    rows = mixture._transformed(mixture._joined(X, y, reset=False))
    model = mixture._model()
    again = (
        model.prior()
        + model.local_step(rows, model.expectations(mixture._state.posterior), 1.0).statistics
    )
    assert evaluate_elbo(model, again, ArraySource(rows)) == pytest.approx(mixture.elbo_, abs=0.01)


def test_the_tempered_bound_never_falls():
    X, y, *_ = lines(100)
    policy = Annealing(schedules.constant(3.0))
    mixture = RegressionMixture(3, tempering=policy, random_state=0).fit(X, y)
    bounds = [r.tempered_elbo for r in mixture.history_ if r.phase == "tempered"]
    assert len(bounds) > 20
    assert np.diff(bounds).min() > -1e-8


def test_units_and_origins_change_nothing_but_the_density():
    X, y, *_ = lines(200)
    one = RegressionMixture(3, random_state=0).fit(X, y)
    other = RegressionMixture(3, random_state=0).fit(X * [10.0, 0.1] + 50, 7 * y - 300)
    np.testing.assert_allclose(other.coef_ * [10.0, 0.1], 7 * one.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        other.predict(X * [10.0, 0.1] + 50), 7 * one.predict(X) - 300, rtol=1e-6
    )
    changed = other.score(X * [10.0, 0.1] + 50, 7 * y - 300)
    assert changed == pytest.approx(one.score(X, y) - np.log(7), abs=1e-6)


def test_draws_follow_the_lines():
    X, y, *_ = lines()
    mixture = RegressionMixture(3, random_state=0).fit(X, y)
    many = np.repeat(X[:1], 30_000, axis=0)
    drawn, labels = mixture.sample(many)
    np.testing.assert_allclose(np.bincount(labels) / 30_000, mixture.weights_, atol=0.015)
    for k in range(3):
        part = drawn[labels == k]
        line = X[0] @ mixture.coef_[k] + mixture.intercept_[k]
        assert part.mean() == pytest.approx(line, abs=0.02)
        assert part.var() == pytest.approx(mixture.noise_variance_[k], rel=0.08)


def test_saved_and_pickled(tmp_path):
    X, y, *_ = lines(80)
    mixture = RegressionMixture(3, random_state=0, max_iter=60).fit(X, y)
    mixture.save(tmp_path / "model")
    for other in (tempering.load(tmp_path / "model"), pickle.loads(pickle.dumps(mixture))):
        assert np.array_equal(other.predict(X), mixture.predict(X))
        assert np.array_equal(other.predict_log_density(X, y), mixture.predict_log_density(X, y))


def test_an_interrupted_fit_ends_in_the_same_bits(tmp_path):
    X, y, *_ = lines(100)
    whole = RegressionMixture(3, random_state=0).fit(X, y)
    kept = RegressionMixture(3, random_state=0).fit(X, y, checkpoint=tmp_path / "kept")
    again = RegressionMixture(3, random_state=0).fit(X, y, checkpoint=tmp_path / "kept")
    assert whole.elbo_ == kept.elbo_ == again.elbo_
    assert np.array_equal(whole.coef_, again.coef_)


def test_a_stream_and_threads():
    X, y, *_ = lines(3000)
    stream = RegressionMixture(3, random_state=0, learning_offset=2.0)
    for start in [*range(0, 3000, 100)] * 3:
        stream.partial_fit(X[start : start + 100], y[start : start + 100])
    batch, more = (RegressionMixture(3, random_state=0, n_jobs=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(batch.coef_, more.coef_)
    assert stream.score(X, y) > RegressionMixture(1).fit(X, y).score(X, y) + 1.0


def test_what_is_constant_breaks_nothing():
    X, y, *_ = lines(50)
    X[:, 1] = 3.0
    for targets in (y, np.full(50, 2.0)):
        mixture = RegressionMixture(2, random_state=0).fit(X, targets)
        assert np.isfinite(mixture.predict(X)).all()
    assert mixture.predict(X) == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize("value", [0.1, 1e50 / 3], ids=str)
def test_a_constant_whose_mean_is_rounded_is_constant(value):
    X, y, *_ = lines(60)
    constant = np.full(60, value)
    without = RegressionMixture(1).fit(X, y)
    with_it = RegressionMixture(1).fit(np.column_stack([X, constant]), y)
    np.testing.assert_allclose(with_it.coef_, np.column_stack([without.coef_, 0.0]))
    np.testing.assert_allclose(with_it.intercept_, without.intercept_)
    whole, rounded = (RegressionMixture(1).fit(X, target) for target in (np.ones(60), constant))
    np.testing.assert_allclose(rounded.noise_variance_, whole.noise_variance_)


def test_a_column_that_varies_by_rounding_only_is_constant():
    X, y, *_ = lines(60)
    nearly = np.where(np.arange(60) % 2, 0.1 + 0.2, 0.3)
    mixture = RegressionMixture(1).fit(np.column_stack([X, nearly]), y)
    assert np.abs(mixture.coef_[0, 2]) < 1e-9


def test_a_batch_that_leaves_nothing_but_rounding_is_refused_and_changes_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(np.where(np.arange(20) % 2, -3.0, 3.0)[:, None], 1.0, (20, 4))
    y = np.linspace(-1.0, 1.0, 20)
    mixture = RegressionMixture(3, random_state=0).partial_fit(X, y)
    before, density = dict(vars(mixture)), mixture.predict_log_density(X, y)
    for odd, targets, largest in (
        (X * np.logspace(-90, 90, 4), y, r"4\.32\d*e\+90, in row 16\."),
        (X * 1e30, X[:, 0] * 1e30, r"-5\.32\d*e\+30, in row 3\."),
        (X * 1e30, X[:, 0] * -9e30, r"4\.79\d*e\+31, in row 3\."),
    ):
        with pytest.raises(ValueError, match=f"stays as it was: the largest number is {largest}"):
            mixture.partial_fit(odd, targets)
        assert vars(mixture) == before
    assert np.array_equal(mixture.predict_log_density(X, y), density)


def test_a_fit_that_fails_changes_nothing():
    X, y, *_ = lines(50)
    mixture = RegressionMixture(1).fit(X, y)
    before, wider, holed = dict(vars(mixture)), np.column_stack([X, X]), np.full(50, np.nan)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        mixture.fit(wider, holed)
    assert vars(mixture) == before
    new = RegressionMixture(1)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        new.partial_fit(X, holed)
    with pytest.raises(NotFittedError):
        new.predict(X)
    assert np.isfinite(new.partial_fit(wider, y).predict(wider)).all()


def test_rows_far_off_have_a_density_or_are_refused():
    X, y, z, *_ = lines(60)
    mixture = RegressionMixture(1).fit(X[z == 0], y[z == 0])
    refused = 0
    for far in X[:, None] * np.logspace(7, 9, 3)[:, None, None, None]:
        for row in far:
            try:
                assert np.isfinite(mixture.predict_log_density(row, mixture.predict(row))).all()
            except ValueError as error:
                assert "lost in rounding" in str(error)  # noqa: PT017
                refused += 1
    assert refused > 0


def test_bad_data():
    X, y, *_ = lines(50)
    mixture = RegressionMixture(2, random_state=0, max_iter=5, tempering=None)
    holed = np.where(np.arange(50) == 7, np.nan, y)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        mixture.fit(X, holed)
    with pytest.raises(ValueError, match=r"y must hold numbers of at most 1e\+100; row 7"):
        mixture.fit(X, np.where(np.arange(50) == 7, 1e200, y))
    with pytest.raises(ValueError, match="y must be numbers"):
        mixture.fit(X, np.full(50, "a"))
    with pytest.raises(ValueError, match="y must be numbers, one for each row of X: int too large"):
        mixture.fit(X, [10**400, *y[1:]])
    with pytest.raises(ValueError, match=r"NaN or infinity.*row 3, column 1"):
        mixture.fit(np.where(np.arange(100).reshape(50, 2) == 7, np.inf, X), y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        mixture.fit(X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        mixture.fit(X, y[:20])
    with pytest.raises(ValueError, match="n_samples=1"):
        mixture.fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="2 features"):
        mixture.fit(X, y).predict(X[:, :1])
    with pytest.raises(ValueError, match="'noise_rate_prior'"):
        mixture.set_params(noise_rate_prior=0.0).fit(X, y)


def test_names_of_columns_are_kept_and_warn_of_nothing():
    pandas = pytest.importorskip("pandas")
    X, y, *_ = lines(50)
    table, mixture = pandas.DataFrame(X, columns=["a", "b"]), RegressionMixture(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixture.fit(table, y).predict_log_density(table, y)
        mixture.partial_fit(table, y)
    assert [*mixture.feature_names_in_] == ["a", "b"]
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        mixture.predict_log_density(X, y)


@pytest.mark.parametrize(("size", "of_y"), [(1e-90, 1e-90), (1e-200, 1.0), (1.0, 1e-200)])
def test_numbers_whose_squares_vanish_are_fitted_or_refused(size, of_y):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(200, 2))
    y = rng.choice([-1.0, 3.0], size=200) * X[:, 1]
    lines = RegressionMixture(2, random_state=0, max_iter=60)
    expected = clone(lines).fit(X, y).predict(X)
    if min(size, of_y) < 1e-100:
        with pytest.raises(ValueError, match=f"{'X' if of_y == 1 else 'y'} varies by .*e-"):
            lines.fit(size * X, of_y * y)
    else:
        found = lines.fit(size * X, of_y * y).predict(size * X) / of_y
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
