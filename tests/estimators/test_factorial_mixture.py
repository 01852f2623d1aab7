"""The FactorialMixture estimator: scikit-learn's checks, features found, predictions, errors."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from pictures import drawn
from reproduction.features import draw_features, match_features
from tempering import Annealing, FactorialMixture, LocalTempering, schedules


@parametrize_with_checks([FactorialMixture(n_components=2, max_iter=4)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


FEATURES = np.array(
    [
        [1, 1, 0, 0, 0, 0, 0, 0, 1],
        [0, 0, 1, 1, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0, 0, 0, 1, 0],
    ],
    float,
)


def images(n=300, seed=0):
    rng = np.random.default_rng(seed)
    active = rng.random((n, 4)) < 0.3
    return active @ FEATURES + 0.2 * rng.standard_normal((n, 9)), active


POLICIES = [None, "adaptive", "annealing", "variational", "local"]


@pytest.mark.parametrize("tempering", POLICIES)
@pytest.mark.parametrize("local", ["exact", "mean-field"])
def test_every_policy_ends_at_temperature_one(tempering, local):
    """And the default finds the features, which the others do from most starts."""
    X, active = images()
    model = FactorialMixture(
        4, noise_variance=0.04, tempering=tempering, local=local, n_init=2, random_state=0
    ).fit(X)
    assert model.converged_
    assert model.history_[-1].temperature == 1.0
    assert model.elbo_ == max(model.restart_elbos_)
    assert np.all(np.diff(model.activation_rates_) <= 0)
    if tempering != "adaptive":
        return
    order = match_features(model.features_, FEATURES)
    np.testing.assert_allclose(model.features_[order], FEATURES, atol=0.1)
    assert np.mean(model.transform(X)[:, order].round() == active) > 0.99
    restored = model.inverse_transform(model.transform(X))
    assert np.mean(np.square(X - restored)) < 0.05


@pytest.mark.parametrize("init", ["small", "prior", "data", FEATURES])
def test_every_start_works(init):
    X, _ = images()
    model = FactorialMixture(4, init=init, random_state=1).fit(X)
    order = match_features(model.features_, FEATURES)
    np.testing.assert_allclose(model.features_[order], FEATURES, atol=0.15)


def test_the_size_of_the_noise_is_found():
    X, _ = images(3000)
    model = FactorialMixture(4, random_state=0).fit(X)
    assert model.noise_variance_ == pytest.approx(0.04, rel=0.1)
    learned = FactorialMixture(
        4,
        noise_variance=0.1,
        learn=("noise_variance", "activation_probability"),
        activation_probability=[0.5, 0.5, 0.5, 0.5],
        random_state=0,
    ).fit(X)
    assert learned.noise_variance_ == pytest.approx(0.04, rel=0.03)
    np.testing.assert_allclose(learned.activation_probability_, 0.3, atol=0.03)
    assert learned.elbo_ > model.elbo_ - 10  # from noise and activations that were far off


def test_unseen_samples():
    X, _ = images()
    new, _ = images(seed=1)
    good = FactorialMixture(4, noise_variance=0.04, random_state=0).fit(X)
    poor = FactorialMixture(1, noise_variance=0.04, random_state=0).fit(X)
    assert good.score(new) > poor.score(new) + 1
    assert good.score_samples(new).shape == (300,)
    many = FactorialMixture(13, noise_variance=0.04, random_state=0, max_iter=60).fit(X)
    assert many.score(new) > poor.score(new)


def test_minibatches():
    X, _ = images(3000)
    model = FactorialMixture(
        4, noise_variance=0.04, batch_size=300, max_iter=20, n_init=4, random_state=0
    ).fit(X)
    order = match_features(model.features_, FEATURES)
    np.testing.assert_allclose(model.features_[order], FEATURES, atol=0.15)


def test_a_stream():
    """Minibatches by hand, tempered over the stream; and a fitted model goes on."""
    X, _ = images(6000)
    options = {"noise_variance": 0.04, "random_state": 0}
    start = FEATURES + 0.3 * np.random.default_rng(0).standard_normal(FEATURES.shape)
    first, *rest = np.split(X, 60)
    stream = FactorialMixture(4, init=start, total_samples=6000, **options).partial_fit(first)
    before = stream.score(X)
    for rows in rest:
        stream.partial_fit(rows)
    assert stream.score(X) > before + 0.2
    assert stream.n_iter_ == 60
    order = match_features(stream.features_, FEATURES)
    np.testing.assert_allclose(stream.features_[order], FEATURES, atol=0.1)
    alone = FactorialMixture(4, **options).partial_fit(first)
    before = alone.score(X)
    for rows in rest:
        alone.partial_fit(rows)
    assert alone.score(X) > before + 1
    fitted = FactorialMixture(4, **options).fit(X[:3000])
    before = fitted.score(X[3000:])
    for rows in np.split(X[3000:], 10):
        fitted.partial_fit(rows)
    assert fitted.score(X[3000:]) > before - 0.01
    assert fitted.n_features_in_ == 9
    assert np.all(np.diff(fitted.activation_rates_) <= 0)
    with pytest.raises(ValueError, match="fitted with n_components=4"):
        fitted.set_params(n_components=5).partial_fit(first)


def test_the_same_seed_the_same_bits():
    X, _ = images(2500)
    options = {"tempering": LocalTempering(), "max_iter": 6, "random_state": 3}
    one, two = (FactorialMixture(4, n_jobs=jobs, **options).fit(X) for jobs in (1, 2))
    assert one.features_.tobytes() == two.features_.tobytes()
    assert one.elbo_ == two.elbo_
    assert one.inverse_temperatures_.shape == (2500,)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.transform(X), two.transform(X))
    assert clone(one).get_params()["tempering"] is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_variance": -1.0}, "noise_variance"),
        ({"activation_probability": [0.1, 0.2]}, "activation_probability"),
        ({"tempering": "hot"}, "tempering must be"),
        ({"local": "exact", "n_components": 13}, "K <= 12"),
        ({"init": np.zeros((2, 2))}, "init must hold"),
        ({"learn": ("sigma",)}, "learn may hold"),
        ({"tempering": Annealing(schedules.linear(2.0), passes=2000)}, "max_passes"),
    ],
)
def test_errors_name_the_argument(options, message):
    with pytest.raises(ValueError, match=message):
        FactorialMixture(**{"n_components": 4, **options}).fit(images(50)[0])


def test_errors_of_a_fitted_model():
    X, _ = images(100)
    model = FactorialMixture(4, max_iter=5, random_state=0).fit(X)
    with pytest.raises(ValueError, match="activations of 4 features"):
        model.inverse_transform(np.zeros((3, 5)))


def test_pictures(tmp_path):
    X, _ = images(200)
    fits = {
        name: FactorialMixture(5, tempering=name, max_iter=20, random_state=0).fit(X)
        for name in ("adaptive", "variational")
    }
    features = {name: fit.features_ for name, fit in fits.items()}
    draw_features(tmp_path / "features.png", features, (3, 3), FEATURES)
    assert drawn(tmp_path / "features.png")
