"""Starts of mixtures, and the search that follows the first of them."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from tempering import BayesianGaussianMixture, BernoulliMixture, Mixture, PoissonMixture
from tempering.estimators import starts
from tempering.estimators.starts import another_start, best_start, kmeans_labels, start_of
from tempering.families import DiagonalGaussian, Dirichlet
from tempering.search import SearchResult

GRID = np.array([(i, j) for i in range(3) for j in range(3)], float)


def grid(n=600, std=0.1, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 9, size=n)
    return GRID[labels] + std * rng.normal(size=(n, 2)), labels


def model_of(X, n_components):
    likelihood = DiagonalGaussian(X.shape[1])
    prior = likelihood.conjugate.natural(0.0, 0.01, 1.0, 0.01)
    return Mixture(likelihood, Dirichlet(n_components), np.ones(n_components), prior)


def centres(model, posterior):
    return model.likelihood.conjugate.standard(posterior.components)[0]


@pytest.mark.parametrize("name", ["kmeans", "random"])
def test_all_rows_are_assigned_in_shards_as_at_once(name, monkeypatch):
    X, _ = grid()
    model = model_of(X, 9)
    whole = start_of(model, X, name, np.random.RandomState(0))
    monkeypatch.setattr(starts, "SHARD_ROWS", 100)
    shards = start_of(model, X, name, np.random.RandomState(0))
    assert model.counts(shards).sum() == pytest.approx(len(X))
    for part in whole:
        np.testing.assert_allclose(shards[part], whole[part])


@pytest.mark.parametrize("name", ["k-means++", "random_from_data"])
def test_a_component_starts_from_one_datum(name):
    X, _ = grid()
    model = model_of(X, 5)
    posterior = start_of(model, X, name, np.random.RandomState(0))
    np.testing.assert_allclose(model.counts(posterior), 1.0)
    apart = np.linalg.norm(X - centres(model, posterior)[:, None] * 1.01, axis=2).min(axis=1)
    np.testing.assert_allclose(apart, 0.0, atol=1e-9)


def test_rejects_unknown_start():
    X, _ = grid()
    name: Any = "cold"
    with pytest.raises(ValueError, match="the start must be one of auto, kmeans"):
        start_of(model_of(X, 9), X, name, np.random.RandomState(0))


@pytest.mark.parametrize("units", [(1.0, 1.0), (1.0, 1000.0)])
def test_the_first_start_is_the_better_one_of_two_metrics(units):
    """Distances in columns of very different units see one of them alone."""
    X, labels = grid()
    X = X * units
    model = model_of(X, 9)
    found = best_start(model, X, "auto", np.random.RandomState(0))
    raw = start_of(model, X, "kmeans", np.random.RandomState(0))
    assigned = [model.assign(X, model.expectations(start)).probabilities for start in (found, raw)]
    scores = [adjusted_rand_score(labels, part.argmax(axis=1)) for part in assigned]
    assert scores[0] > 0.9
    assert scores[1] < 0.5 or units[0] == units[1]


def test_fresh_starts_differ():
    X, _ = grid()
    model, rng = model_of(X, 9), np.random.RandomState(0)
    drawn = [centres(model, another_start(model, X, "auto", rng)) for _ in range(4)]
    assert len({tuple(part.ravel().round(6)) for part in drawn}) == 4


def test_kmeans_sees_a_sample_of_many_rows(monkeypatch):
    X, labels = grid(2000)
    monkeypatch.setattr(starts, "KMEANS_ROWS", 500)
    monkeypatch.setattr(starts, "KMEANS_ROWS_EACH", 50)
    found = kmeans_labels(X, 9, np.random.RandomState(0), n_init=5)
    assert adjusted_rand_score(labels, found) > 0.99


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("X", "n_components"),
    [
        (np.ones((5, 2)), 3),
        (np.repeat(RNG.normal(size=(3, 2)), 10, axis=0), 5),
        (RNG.normal(size=(4, 3)), 4),
        (np.column_stack([RNG.normal(size=50), np.full(50, 1e8)]), 3),
        (RNG.normal(size=(60, 100)), 5),
        (np.round(RNG.normal(size=(80, 3))), 6),
    ],
    ids=["one point", "3 points", "N = K", "constant column", "D = 100", "discrete"],
)
def test_odd_data_are_fitted(X, n_components):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of k-means, that some points are alike
        model = BayesianGaussianMixture(n_components, random_state=0).fit(X)
    assert np.isfinite(model.score(X))
    assert np.isfinite(model.covariances_).all()


@pytest.mark.parametrize("kind", [BayesianGaussianMixture, BernoulliMixture])
def test_fits_search_and_n_init_is_the_work(kind, monkeypatch):
    results = []
    summarise = kind._summarise
    monkeypatch.setattr(
        kind, "_summarise", lambda self, result: (results.append(result), summarise(self, result))
    )
    X = (grid()[0] > 1.0).astype(float) + 0.01 * RNG.normal(size=(600, 2))
    for n_init in (1, "auto", 8):
        assert kind(4, n_init=n_init, random_state=0, max_iter=300).fit(X).n_iter_ <= 300
    one, some, many = results
    assert not isinstance(one, SearchResult)
    assert isinstance(some, SearchResult)
    unit = some.trail[0].passes
    assert some.passes < many.passes
    assert many.passes > 6 * unit
    assert many.elbo >= some.elbo >= one.elbo - 0.1


@pytest.mark.parametrize("options", [{"batch_size": 100}, {"tempering": "annealing"}])
def test_other_fits_are_made_once_by_default(options):
    X, _ = grid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianGaussianMixture(3, random_state=0, max_iter=30, **options).fit(X)
        thrice = BayesianGaussianMixture(3, n_init=3, random_state=0, max_iter=30, **options).fit(X)
    assert len(model.restart_elbos_) == 1
    assert len(thrice.restart_elbos_) == 3


@pytest.mark.parametrize("noise", [0.12, 10.0])
def test_columns_of_noise_do_not_mislead(noise):
    X, labels = grid(2000)
    X = np.column_stack([X, noise * np.random.default_rng(1).normal(size=(len(X), 3))])
    model = BayesianGaussianMixture(9, n_init=20, random_state=0).fit(X)
    assert adjusted_rand_score(labels, model.predict(X)) > 0.99


def test_threads_do_not_change_a_bit():
    X, _ = grid()
    one, two = (
        BayesianGaussianMixture(9, random_state=0, n_jobs=n_jobs).fit(X) for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.means_, two.means_)
    assert one.elbo_ == two.elbo_


def test_a_first_minibatch_may_be_small():
    X, _ = grid()
    for kind in (BayesianGaussianMixture, BernoulliMixture):
        model = kind(9, random_state=0).partial_fit(X[:5])
        assert np.isfinite(model.partial_fit(X[5:100]).score(X))


@pytest.mark.parametrize("kind", [BernoulliMixture, PoissonMixture])
def test_small_clusters_of_binary_rows_and_of_counts_are_found(kind):
    rng, labels = np.random.default_rng(0), np.repeat(np.arange(20), 20)
    X = rng.poisson(rng.gamma(1.0, 5.0, size=(20, 30))[labels])
    if kind is BernoulliMixture:
        X = rng.random((400, 30)) < rng.beta(0.5, 0.5, size=(20, 30))[labels]
    model = kind(20, random_state=0).fit(X)
    assert adjusted_rand_score(labels, model.predict(X)) > 0.95
