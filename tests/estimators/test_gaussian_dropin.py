"""A Bayesian Gaussian mixture in the place of scikit-learn's: types, warm starts, attributes."""

import warnings

import numpy as np
import pytest
from sklearn import mixture as sklearn_mixture
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import tempering
from tempering import BayesianGaussianMixture
from tempering.plots import plot_mixtures

TYPES = ["full", "tied", "diag", "spherical"]
every_type = pytest.mark.parametrize("covariance_type", TYPES)


def blobs(n=300, std=0.7):
    return make_blobs(n, centers=3, cluster_std=std, random_state=1)


@every_type
def test_every_type_finds_its_clusters_and_describes_them(covariance_type):
    X, labels = blobs()
    options = {"covariance_type": covariance_type, "n_init": 10, "random_state": 0}
    model = BayesianGaussianMixture(5, **options).fit(X)
    assert adjusted_rand_score(labels, model.predict(X)) > 0.97
    assert model.converged_
    shapes = {"full": (5, 2, 2), "tied": (2, 2), "diag": (5, 2), "spherical": (5,)}
    roots = model.precisions_cholesky_
    assert model.covariances_.shape == roots.shape == shapes[covariance_type]
    if covariance_type in ("full", "tied"):
        np.testing.assert_allclose(model.precisions_, roots @ np.swapaxes(roots, -1, -2))
        identity = np.broadcast_to(np.eye(2), model.covariances_.shape)
        np.testing.assert_allclose(model.covariances_ @ model.precisions_, identity, atol=1e-12)
        assert np.all(roots[..., 1, 0] == 0.0)
    else:
        np.testing.assert_allclose(model.precisions_, roots**2)
        np.testing.assert_allclose(model.covariances_, 1 / model.precisions_)
    drawn, components = model.sample(3000)
    np.testing.assert_allclose(drawn[components == 0].mean(axis=0), model.means_[0], atol=0.15)
    assert np.exp(model.score_samples(drawn[:1])) > 0


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_the_update_is_scikit_learns(covariance_type):
    """Hard assignments that stay: the parameters of one step are those of one step of theirs.

    (Their bound and their weights of data use Wishart terms for these types; the means and
    covariances that follow from assignments are the same.)
    """
    X, _ = make_blobs(300, centers=[[0, 0], [40, 0], [0, 40]], random_state=1)
    options = {"n_components": 3, "covariance_type": covariance_type, "reg_covar": 0.0}
    options |= {"init_params": "kmeans", "random_state": 0}
    options["weight_concentration_prior_type"] = "dirichlet_distribution"
    ours = BayesianGaussianMixture(**options, covariance_prior=None).fit(X)
    theirs = sklearn_mixture.BayesianGaussianMixture(**options).fit(X)
    for name in ("means_", "covariances_", "precisions_cholesky_", "degrees_of_freedom_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6)
    for name in ("mean_prior_", "covariance_prior_", "weight_concentration_prior_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name))


def test_one_shared_covariance_is_that_of_the_residuals():
    X, labels = make_blobs(900, centers=[[0, 0], [40, 0], [0, 40]], random_state=1)
    X = X @ [[1.0, 0.8], [0.0, 0.6]]
    model = BayesianGaussianMixture(3, covariance_type="tied", covariance_prior=None).fit(X)
    means = np.stack([X[labels == k].mean(axis=0) for k in range(3)])
    residuals = X - means[labels]
    pulled = sum(
        100 / 301 * 3 * np.outer(mean - X.mean(axis=0), mean - X.mean(axis=0)) for mean in means
    )
    scale = np.cov(X.T) + residuals.T @ residuals + pulled
    np.testing.assert_allclose(model.covariances_, scale / (2 + 900), rtol=1e-4)
    assert model.degrees_of_freedom_ == pytest.approx(902)


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_in_one_dimension_all_types_but_the_shared_one_are_the_same(covariance_type):
    X = blobs()[0][:, :1]
    options = {"n_components": 2, "random_state": 0, "tol": 1e-6}
    full = BayesianGaussianMixture(**options).fit(X)
    model = BayesianGaussianMixture(**options, covariance_type=covariance_type).fit(X)
    assert model.elbo_ == pytest.approx(full.elbo_, abs=1e-3)
    np.testing.assert_allclose(model.means_, full.means_, atol=1e-3)


@every_type
def test_the_elbo_never_falls_over_warm_starts_and_ends_where_one_fit_does(covariance_type):
    X, _ = blobs()
    options = {"n_components": 4, "covariance_type": covariance_type, "init_params": "kmeans"}
    options |= {"n_init": 1, "random_state": 0}
    steps = BayesianGaussianMixture(**options, warm_start=True, max_iter=1)
    bounds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        while not bounds or not steps.converged_:
            bounds.append(steps.fit(X).lower_bound_)
            assert steps.n_iter_ == 1
    whole = BayesianGaussianMixture(**options).fit(X)
    assert np.all(np.diff(bounds) >= 0)
    assert whole.lower_bounds_[-1] == whole.lower_bound_
    np.testing.assert_allclose(whole.lower_bounds_[: len(bounds)], bounds, rtol=1e-9)


def test_a_warm_start_keeps_all_priors_of_the_first_fit():
    X, *_ = blobs()
    options = {"n_components": 3, "warm_start": True, "max_iter": 2, "random_state": 0}
    same, changed = (BayesianGaussianMixture(**options).fit(X[:200]) for _ in range(2))
    changed.set_params(weight_concentration_prior=100.0, mean_prior=X[0])
    for model in (same, changed):
        model.fit(X)
    assert changed.weight_concentration_prior_ == 1 / 3
    np.testing.assert_array_equal(changed.mean_prior_, same.mean_prior_)
    np.testing.assert_array_equal(changed.weights_, same.weights_)
    np.testing.assert_array_equal(changed.means_, same.means_)


def test_a_warm_start_of_another_shape_is_refused_and_leaves_the_model():
    X, _ = blobs()
    model = BayesianGaussianMixture(3, warm_start=True).fit(X)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="set warm_start=False"):
        model.set_params(n_components=4).fit(X)
    model.set_params(n_components=3)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(ValueError, match="X has 1 features"):
        model.fit(X[:, :1])


def test_only_a_fit_that_did_not_converge_warns():
    X, _ = blobs()
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        BayesianGaussianMixture(4, max_iter=1, init_params="random", random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianGaussianMixture(4, random_state=0).fit(X)
        BayesianGaussianMixture(4, random_state=0, batch_size=100, max_iter=2).fit(X)
        start = BayesianGaussianMixture(4, random_state=0, max_iter=0).fit(X)
        of_batches = BayesianGaussianMixture(4, random_state=0, max_iter=0, batch_size=10).fit(X)
        assert np.array_equal(of_batches.means_, start.means_)
    assert start.n_iter_ == 0
    assert not start.converged_
    assert np.isfinite(start.elbo_)


@pytest.mark.parametrize("start", ["k-means++", "random_from_data"])
def test_starts_from_data_are_data(start):
    X, _ = blobs()
    model = BayesianGaussianMixture(
        3, init_params=start, max_iter=0, random_state=0, mean_precision_prior=1e-9
    ).fit(X)
    distances = np.linalg.norm(X - model.means_[:, None], axis=2).min(axis=1)
    np.testing.assert_allclose(distances, 0, atol=1e-6)
    fitted = model.set_params(max_iter=200).fit(X)
    assert fitted.converged_


@every_type
def test_single_precision_stays_and_saved_models_keep_it(covariance_type, tmp_path):
    X = blobs()[0].astype(np.float32)
    model = BayesianGaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(X)
    double = BayesianGaussianMixture(3, covariance_type=covariance_type, random_state=0)
    double.fit(X.astype(float))
    names = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")
    for name in names:
        assert getattr(model, name).dtype == np.float32
        np.testing.assert_allclose(getattr(model, name), getattr(double, name), rtol=1e-5)
    model.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    assert loaded.predict_proba(X).dtype == loaded.score_samples(X).dtype == np.float32
    np.testing.assert_array_equal(loaded.score_samples(X), model.score_samples(X))
    assert loaded.partial_fit(X).means_.dtype == np.float32


def test_verbose_prints_where_there_is_no_terminal(capsys):
    X, _ = blobs()
    options = {"init_params": "random", "random_state": 0, "n_init": 1, "tol": 0.0}
    options |= {"max_iter": 12, "verbose": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        BayesianGaussianMixture(3, **options, verbose_interval=5).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["pass 5", "pass 10"]


@every_type
def test_a_picture_of_every_type(covariance_type):
    X, _ = blobs()
    model = BayesianGaussianMixture(3, covariance_type=covariance_type).fit(X)
    axis = plot_mixtures(X, {covariance_type: model}).axes[0]
    assert len(axis.lines) == 1 + 3  # the data, and the outlines
