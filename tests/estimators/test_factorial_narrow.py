"""Tables with more columns than rows: turned into few columns, they give the same fit."""

import numpy as np
import pytest

from tempering import FactorialMixture, LocalTempering, VariationalTempering, fit
from tempering.estimators.factorial_mixture import Narrow, worthwhile
from tempering.models.factorial_mixture import FactorialModel

N, D, K = 40, 300, 3


def wide(seed=0, n=N, rank=None):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((K, D))
    noise = rng.standard_normal((n, rank or D)) @ rng.standard_normal((rank or D, D)) / D**0.5
    return (rng.random((n, K)) < 0.4) @ features + 0.5 * noise, 0.3 * rng.standard_normal((K, D))


def model_of(**options):
    return FactorialModel(K, D, 0.25, 1.0, 0.4, **options)


@pytest.mark.parametrize("rank", [None, 5])
def test_inner_products_stay_what_they_are(rank):
    X, means = wide(rank=rank)
    X[3] = X[7]
    narrow, model = Narrow.of(X, K), model_of()
    rank = N - 1 if rank is None else rank + K
    assert narrow.data.shape == (N, rank + K)
    np.testing.assert_allclose(narrow.data @ narrow.data.T, X @ X.T, atol=1e-9)
    turned = narrow.turned(model.features_at(means, [5.0, 9.0, 2.0]))
    expected = narrow.model(model).expectations(turned)
    np.testing.assert_allclose(expected.products, means @ means.T, atol=1e-10)
    np.testing.assert_allclose(expected.means @ narrow.data.T, means @ X.T, atol=1e-9)


@pytest.mark.parametrize("policy", [None, VariationalTempering(), LocalTempering()])
@pytest.mark.parametrize("options", [{"local": "exact"}, {"local_restarts": 2}])
def test_the_turned_data_give_the_same_fit(policy, options):
    X, means = wide()
    model, narrow = model_of(learn=["noise_variance"], **options), Narrow.of(X, K)
    start = model.features_at(means, 0.4 * N)
    here = fit(model, X, initial=start, temperature=policy, max_passes=15)
    there = fit(
        narrow.model(model),
        narrow.data,
        initial=narrow.turned(start),
        temperature=policy,
        max_passes=15,
    )
    np.testing.assert_allclose(there.history["elbo"], here.history["elbo"], rtol=1e-8)
    posterior = narrow.back(there.posterior)
    for name, part in here.posterior.items():
        np.testing.assert_allclose(posterior[name], part, rtol=1e-6, atol=1e-6)
    assert there.model.noise_variance == pytest.approx(here.model.noise_variance, rel=1e-8)


def test_data_of_zeros():
    narrow = Narrow.of(np.zeros((4, D)), K)
    assert narrow.data.shape == (4, K)
    posterior = narrow.turned(model_of().features_at(np.ones((K, D)), 1.0))
    assert narrow.back(posterior).precision_mean.shape == (K, D)


def test_the_estimator_turns_wide_tables_and_nobody_sees_it(tmp_path):
    X, means = wide()
    assert worthwhile(*X.shape, K)
    settings = {"noise_variance": 0.25, "feature_variance": 1.0, "activation_probability": 0.4}
    settings |= {"n_init": 1, "local": "mean-field", "init": means}
    estimator = FactorialMixture(K, **settings, random_state=0)
    estimator.fit(X, checkpoint=tmp_path / "kept")
    model = model_of(local_restarts=2)
    start = model.features_at(means, 0.4 * N)
    here = fit(model, X, initial=start, max_passes=300, tolerance=1e-2)
    assert estimator.elbo_ == pytest.approx(here.elbo, rel=1e-9)
    assert estimator.n_iter_ == here.history[-1].passes
    features = model.expectations(here.posterior).means
    rates = model.local_step(X, model.expectations(here.posterior), 1.0).activations.mean(axis=0)
    np.testing.assert_allclose(estimator.features_, features[np.argsort(-rates)], atol=1e-6)
    assert estimator.transform(X).shape == (N, K)
    again = FactorialMixture(K, **settings, random_state=0).fit(X, checkpoint=tmp_path / "kept")
    np.testing.assert_array_equal(again.features_, estimator.features_)


def test_the_start_is_that_of_the_seed_and_the_turned_data_are_searched():
    X, _ = wide()
    options = {"local": "mean-field"}
    fits = [FactorialMixture(K, random_state=seed, **options).fit(X) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0].features_, fits[1].features_)
    first = [estimator.history_["elbo"][0] for estimator in fits]
    assert first[0] == first[1] != first[2]
    assert any(trial.operator == "features" for trial in fits[0].trail_)
    assert fits[0].features_.shape == (K, D)


class Watched(FactorialMixture):
    """It shows each of its iterations."""

    def _run_options(self):
        self.seen = []
        return {**super()._run_options(), "callbacks": [self.seen.append]}


def test_who_watches_sees_features_of_the_data():
    X, _ = wide()
    watched = Watched(K, n_init=1, random_state=0).fit(X)
    assert len(watched.seen) == watched.n_iter_
    last = watched._model.expectations(watched.seen[-1].posterior)
    order = np.argsort(last.means[:, 0])
    found = watched.features_[np.argsort(watched.features_[:, 0])]
    np.testing.assert_allclose(last.means[order], found, atol=1e-8)


@pytest.mark.parametrize(
    ("shape", "n_features", "pays"),
    [((1914, 8064), 60, True), ((1914, 8064), 8, False), ((10_000, 16), 8, False)],
)
def test_tables_are_turned_where_it_pays(shape, n_features, pays):
    assert worthwhile(*shape, n_features) == pays
