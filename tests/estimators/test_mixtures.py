"""The mixture estimators: scikit-learn's checks, scikit-learn's optimum, and what is new."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import mixture as sklearn_mixture
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from tempering import (
    Annealing,
    BayesianFactorAnalysis,
    BayesianGaussianMixture,
    BernoulliMixture,
    FactorialMixture,
    GaussianHMM,
    LatentDirichletAllocation,
    LocalTempering,
    PoissonMixture,
    RegressionMixture,
    Untempered,
    VariationalTempering,
    schedules,
)
from tempering.inference import RobbinsMonro, engine
from tempering.inference.run import usual_rate
from tempering.temperature import Heat, TemperaturePolicy


@parametrize_with_checks(
    [
        BayesianGaussianMixture(n_components=3, max_iter=4),
        BayesianGaussianMixture(2, tempering="local", init_params="kmeans", max_iter=4),
        BernoulliMixture(n_components=2, max_iter=4),
        PoissonMixture(n_components=2, max_iter=4),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(n=500, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [3.0, 5.0]])
    return centres[rng.integers(0, 3, size=n)] + rng.normal(size=(n, 2)) + shift


@pytest.mark.parametrize("prior_type", ["dirichlet_process", "dirichlet_distribution"])
def test_the_optimum_is_scikit_learns(prior_type, monkeypatch):
    """From the same responsibilities, at T = 1, to the same parameters."""
    X = blobs(300)
    start = np.random.default_rng(1).dirichlet(np.full(4, 0.3), size=300)

    monkeypatch.setattr(
        "tempering.estimators.gaussian_mixture.best_start",
        lambda model, X, *_: model.prior() + model.statistics(X, start),
    )
    ours = BayesianGaussianMixture(
        4,
        weight_concentration_prior_type=prior_type,
        covariance_prior=None,
        n_init=1,
        reg_covar=0.0,
        tol=1e-12,
        max_iter=20_000,
    ).fit(X)
    if prior_type == "dirichlet_process":
        # Here alone components change places on the way, for a higher optimum: it is one for both.
        start = ours.predict_proba(X)

    class Peer(sklearn_mixture.BayesianGaussianMixture):
        def _initialize_parameters(self, X, random_state, *rest, **options):
            self._initialize(X, start)

    peer = Peer(
        n_components=4,
        weight_concentration_prior_type=prior_type,
        reg_covar=0.0,
        tol=1e-12,
        max_iter=20_000,
    ).fit(X)
    for name in ("weights_", "means_", "covariances_", "mean_precision_", "degrees_of_freedom_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(peer, name), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("seed", [2, 16])
def test_the_largest_component_has_the_first_stick(seed):
    """So that no start is better than another because of the order it happens to leave."""
    X, _ = make_blobs(500, centers=4, random_state=seed)
    default, other = (
        BayesianGaussianMixture(10, init_params=start, random_state=seed).fit(X)
        for start in ("auto", "random")
    )
    assert default.elbo_ > other.elbo_ - 0.1
    counts = default.weight_concentration_[0] - 1.0
    assert np.all(np.diff(counts) < 1e-5)
    assert np.all(np.diff(default.history_["elbo"][-5:]) > -1e-9)


def test_a_stream_does_not_change_its_labels():
    """Components keep their places between batches, whichever is the largest at the time."""
    small, large = (np.random.default_rng(0).normal(centre, 1.0, (60, 1)) for centre in (0, 50))
    model = BayesianGaussianMixture(2, random_state=0)
    model.partial_fit(np.concatenate([small, large[:30]]))
    label = model.predict([[50.0]])
    for _ in range(5):
        model.partial_fit(np.concatenate([small[:2], large]))
    assert model.weights_[label] > 0.5
    np.testing.assert_array_equal(model.predict([[50.0]]), label)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
@pytest.mark.parametrize("tempering", [None, "annealing", "variational", "local"])
def test_every_policy_finds_three_blobs(covariance_type, tempering):
    model = BayesianGaussianMixture(
        3, covariance_type=covariance_type, tempering=tempering, random_state=0
    ).fit(blobs())
    assert model.converged_
    assert model.history_[-1].temperature == 1.0
    found = model.means_[np.argsort(model.means_[:, 0])]
    np.testing.assert_allclose(found, [[0, 0], [3, 5], [6, 0]], atol=0.4)
    assert model.lower_bound_ == model.elbo_


#: So hot for so long that the components forget their start.
HOT = Annealing(schedules.linear(3.0), passes=20)


@pytest.mark.parametrize("init_params", ["kmeans", "random"])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_annealing_finds_blobs_of_known_covariance(covariance_type, init_params):
    """From a random start too."""
    covariance = np.eye(2) if covariance_type == "full" else np.ones(2)
    model = BayesianGaussianMixture(
        3,
        covariance_type=covariance_type,
        tempering=HOT,
        init_params=init_params,
        degrees_of_freedom_prior=2000,
        covariance_prior=2000 * covariance,
        random_state=0,
    ).fit(blobs())
    found = model.means_[np.argsort(model.means_[:, 0])]
    np.testing.assert_allclose(found, [[0, 0], [3, 5], [6, 0]], atol=0.4)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_annealing_with_a_vague_covariance_prior_merges_blobs(covariance_type, monkeypatch):
    """Covariances that are learned grow with the temperature: why it is not the default."""
    # The push that every fit is given at its end may part them again.
    monkeypatch.setattr(engine, "leave_saddle", lambda *arguments, **options: iter(()))
    cold, hot = (
        BayesianGaussianMixture(
            3, covariance_type=covariance_type, tempering=tempering, covariance_prior=None
        ).fit(blobs())
        for tempering in (None, HOT)
    )
    assert hot.converged_
    assert hot.elbo_ < cold.elbo_ - 100
    middle = np.linalg.norm(hot.means_ - cold.means_.mean(axis=0), axis=1)
    assert (
        middle.mean() < 0.9 * np.linalg.norm(cold.means_ - cold.means_.mean(axis=0), axis=1).mean()
    )


def test_local_temperatures_mark_outliers():
    X = np.vstack([blobs(), [[40.0, 40.0]]])
    model = BayesianGaussianMixture(3, tempering=LocalTempering(), random_state=0).fit(X)
    assert model.inverse_temperatures_.shape == (501,)
    assert np.argmin(model.inverse_temperatures_) == 500


def test_far_from_the_origin_nothing_is_lost():
    here, there = (
        BayesianGaussianMixture(3, random_state=0).fit(blobs(shift=shift)) for shift in (0.0, 1e6)
    )
    np.testing.assert_allclose(there.means_ - 1e6, here.means_, atol=1e-6)
    np.testing.assert_allclose(there.covariances_, here.covariances_, rtol=1e-6)
    assert there.elbo_ == pytest.approx(here.elbo_, rel=1e-6)


def test_score_is_the_posterior_predictive_density():
    """Against an average of the density over draws of the posterior."""
    X = blobs(60)
    model = BayesianGaussianMixture(
        2, weight_concentration_prior_type="dirichlet_distribution", random_state=0
    ).fit(X)
    inner, rng = model._model(), np.random.default_rng(0)
    posterior = model._state.posterior
    weights = np.exp(inner.weights.sample_log_weights(posterior.weights, rng, 4000))
    draws = inner.likelihood.conjugate.sample(posterior.components, rng, 4000)
    points = X[:5] - model._centre
    densities = np.exp(inner.likelihood.log_likelihood(points, draws))  # [draws, K, n]
    average = np.einsum("sk,skn->sn", weights, densities)
    error = average.std(axis=0) / np.sqrt(4000)
    np.testing.assert_array_less(
        np.abs(np.exp(model.score_samples(X[:5])) - average.mean(axis=0)), 5 * error
    )
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())


def test_samples_follow_the_mixture():
    model = BayesianGaussianMixture(3, random_state=0).fit(blobs())
    X, labels = model.sample(20_000)
    np.testing.assert_allclose(np.bincount(labels) / 20_000, model.weights_, atol=0.01)
    for k in range(3):
        np.testing.assert_allclose(X[labels == k].mean(axis=0), model.means_[k], atol=0.06)
        np.testing.assert_allclose(np.cov(X[labels == k].T), model.covariances_[k], atol=0.15)
    with pytest.raises(ValueError, match="Invalid value for 'n_samples': 0"):
        model.sample(0)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_samples_are_as_wide_as_a_component_of_outliers(covariance_type):
    """Numbers that stand for missing ones, say: the precision alone no longer tells how wide."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[:3] = -999_999.0
    model = BayesianGaussianMixture(1, covariance_type=covariance_type, random_state=0).fit(X)
    drawn = model.sample(20_000)[0]
    wide = np.sqrt(model.covariances_.reshape(4, 4).diagonal())
    np.testing.assert_allclose(drawn.std(axis=0), wide, rtol=0.02)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize("n_components", [1, 3])
def test_fits_collinear_and_wide_tables(covariance_type, n_components):
    rng = np.random.default_rng(0)
    counts = [rng.multinomial(100, weights) for weights in rng.dirichlet(np.ones(12), size=200)]
    normal = rng.normal(size=(300, 4))
    sizes = [1.0, 1e3, 1e6, 1e-3, 1e4]
    tables = {
        "wide": 10 * rng.normal(size=(20, 50)),
        "equal sums": np.array(counts, float),
        "wide counts": rng.poisson(3.0, size=(5, 60)),
        "collinear": 1e4 * np.c_[normal, normal[:, 0] + normal[:, 1]],
        "of different sizes": np.c_[normal, normal[:, 0] + normal[:, 1]] * sizes,
    }
    for name, X in tables.items():
        model = BayesianGaussianMixture(n_components, covariance_type=covariance_type, tol=1.0)
        assert np.isfinite(model.fit(X).score_samples(X)).all(), name


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_covariances_of_nearly_collinear_columns_are_exact(covariance_type):
    normal = np.random.default_rng(0).normal(size=(200, 3))
    X = 1e3 * np.c_[normal, normal[:, 0]]
    prior = np.cov(X.T)
    model = BayesianGaussianMixture(covariance_type=covariance_type, covariance_prior=prior)
    covariance = model.fit(X).covariances_.reshape(4, 4)
    assert_allclose(covariance, 200 * prior / model.degrees_of_freedom_.sum(), rtol=1e-9)


def test_dependent_columns_are_named():
    normal = np.random.default_rng(0).normal(size=(300, 4))
    X = 1e8 * np.c_[normal, normal[:, 1]]
    for n_rows, expected in ((300, r"columns \[1, 4\] are linearly"), (4, "4 rows for 5 columns")):
        model = BayesianGaussianMixture(covariance_prior=1e-9, reg_covar=0.0)
        with pytest.raises(ValueError, match=f"{expected}.* raise covariance_prior or reg_covar"):
            model.fit(X[:n_rows])


def test_a_prior_that_rounding_spoils_is_named():
    X = np.random.default_rng(0).normal(size=(300, 4))
    model = BayesianGaussianMixture(3, mean_prior=np.full(4, 1e12), covariance_prior=np.eye(4))
    X[5] = 99.0
    with pytest.raises(ValueError, match=r"the prior is lost in rounding.* 99\.0, in row 5"):
        model.fit(X)


def test_partial_fit_learns_from_a_stream():
    X = blobs(6000)
    whole = BayesianGaussianMixture(3, random_state=0).fit(X)
    annealed = BayesianGaussianMixture(
        3,
        random_state=0,
        total_samples=6000,
        tempering="annealing",
        degrees_of_freedom_prior=2000,
        covariance_prior=2000 * np.eye(2),
    )
    for start in range(0, 6000, 300):
        annealed.partial_fit(X[start : start + 300])
    assert annealed.n_iter_ == 20
    assert annealed.score(X) == pytest.approx(whole.score(X), abs=0.02)
    unknown_length = BayesianGaussianMixture(3, random_state=0)
    for start in range(0, 6000, 300):
        unknown_length.partial_fit(X[start : start + 300])
    assert unknown_length.score(X) == pytest.approx(whole.score(X), abs=0.02)


def test_minibatches_come_close_to_coordinate_ascent():
    X = blobs(2000)
    batch = BayesianGaussianMixture(3, random_state=0).fit(X)
    stochastic = BayesianGaussianMixture(3, random_state=0, batch_size=200, max_iter=20).fit(X)
    assert stochastic.elbo_ == pytest.approx(batch.elbo_, abs=30)


def test_minibatches_have_the_steps_of_a_fit_by_hand():
    X = np.random.default_rng(0).poisson(3.0, (200, 2))
    policy = Annealing(fraction=0.7)
    options = {"tempering": policy, "batch_size": 20, "max_iter": 10, "random_state": 0}
    mixture = PoissonMixture(3, **options).fit(X)
    by_hand = usual_rate(policy, 10, 10)
    assert by_hand == RobbinsMonro(delay=1.0, decay=0.7, hold=70.0, pace=5 / 3)
    # However long they are held, the last ones have the same size.
    assert by_hand(100) == pytest.approx(usual_rate(Untempered(), 10, 10)(100))
    rates = mixture.history_["learning_rate"]
    assert list(rates) == [by_hand(t) for t in range(1, 101)]
    given = PoissonMixture(3, learning_offset=5.0, **options).fit(X)
    assert list(given.history_["learning_rate"]) == [(5.0 + t) ** -0.7 for t in range(1, 101)]


def test_the_best_of_several_starts_is_kept():
    X = blobs(200)
    elbos = [
        BayesianGaussianMixture(8, init_params="random", n_init=n, random_state=3).fit(X).elbo_
        for n in (1, 3)
    ]
    assert elbos[1] >= elbos[0]


@pytest.mark.parametrize("kind", [BayesianGaussianMixture, BernoulliMixture, PoissonMixture])
def test_threads_pickles_and_clones_give_the_same(kind):
    X = np.random.default_rng(0).poisson(2.0, size=(300, 3))
    model = kind(2, random_state=0, n_jobs=1, max_iter=10).fit(X)
    again = clone(model).set_params(n_jobs=2).fit(X)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    revived = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.score_samples(X), revived.score_samples(X))


def test_discrete_mixtures_recover_their_components():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, size=600)
    probabilities = np.array(
        [[0.9, 0.9, 0.1, 0.1, 0.5], [0.1, 0.9, 0.9, 0.1, 0.1], [0.5, 0.1, 0.1, 0.9, 0.9]]
    )
    binary = rng.random((600, 5)) < probabilities[labels]
    found = BernoulliMixture(3, random_state=0).fit(binary).probabilities_
    order = [np.argmin(np.abs(found - row).sum(axis=1)) for row in probabilities]
    np.testing.assert_allclose(found[order], probabilities, atol=0.1)
    rates = np.array([[1.0, 10.0], [10.0, 1.0], [20.0, 20.0]])
    model = PoissonMixture(3, tempering=VariationalTempering(), random_state=0)
    found = model.fit(rng.poisson(rates[labels])).rates_
    order = [np.argmin(np.abs(found - row).sum(axis=1)) for row in rates]
    np.testing.assert_allclose(found[order], rates, rtol=0.2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 99}, "n_components=99 is more than n_samples=30"),
        ({"tempering": "hot"}, "tempering must be None, one of 'adaptive'"),
        ({"tempering": 3.0}, "tempering"),
        ({"mean_prior": [0.0]}, "mean_prior must have 2 entries"),
        ({"mean_prior": [0.0, np.nan]}, "mean_prior must hold numbers"),
        ({"mean_prior": [0.0, 1e200]}, "mean_prior must hold numbers"),
        ({"covariance_prior": np.diag([np.inf, 1.0])}, "covariance_prior must hold finite"),
        ({"covariance_prior": [1.0]}, r"covariance_prior must have shape \(2, 2\)"),
        ({"covariance_prior": -np.eye(2)}, "positive definite"),
        ({"degrees_of_freedom_prior": 0.5}, "'degrees_of_freedom_prior' should be greater than 1"),
        ({"weight_concentration_prior": 0.0}, "weight_concentration_prior"),
        ({"tempering": Annealing(passes=1000)}, "leaves no phase at T = 1"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        BayesianGaussianMixture(**options).fit(blobs(30))


def test_minibatches_make_a_hundred_passes_where_none_are_asked_for():
    """None of them ends before, as a fit to all data does."""
    X = np.random.default_rng(0).poisson(3.0, size=(40, 2))
    assert PoissonMixture(2, batch_size=20, random_state=0).fit(X).n_iter_ == 100
    assert PoissonMixture(2, batch_size=20, max_iter=3, random_state=0).fit(X).n_iter_ == 3
    assert 3 < PoissonMixture(2, random_state=0).fit(X).n_iter_ < 1000


def test_negative_counts_are_named():
    with pytest.raises(ValueError, match="row 1, column 0 holds -3"):
        PoissonMixture(1).fit([[1.0, 2.0], [-3.0, 1.0]])
    with pytest.raises(ValueError, match="row 1, column 0 holds -3"):
        PoissonMixture(1).partial_fit([[1.0, 2.0]]).partial_fit([[1.0, 2.0], [-3.0, 1.0]])
    with pytest.raises(ValueError, match="component_prior must be two positive numbers"):
        PoissonMixture(1, component_prior=(0.0, 1.0)).fit([[1.0, 2.0], [3.0, 1.0]])
    with pytest.raises(ValueError, match=r"component_prior must be two positive numbers.*inf"):
        PoissonMixture(1, component_prior=([1.0, np.inf], 1.0)).fit([[1.0, 2.0], [3.0, 1.0]])


@pytest.mark.parametrize("kind", [BayesianGaussianMixture, GaussianHMM, BayesianFactorAnalysis])
def test_how_the_rows_lie_in_memory_moves_no_bit(kind):
    """A DataFrame lies there column by column."""
    X = np.random.default_rng(0).normal(size=(300, 6))
    found = [kind(3, tol=1.0, random_state=0).fit(x) for x in (X, np.asfortranarray(X))]
    for name, part in found[0]._state.posterior.items():
        np.testing.assert_array_equal(found[1]._state.posterior[name], part, err_msg=name)


def test_predictive_density_integrates_like_a_density():
    """In one dimension, over a wide grid."""
    X = blobs(50)[:, :1]
    model = BayesianGaussianMixture(2, random_state=0).fit(X)
    grid = np.linspace(-200, 200, 40_001)[:, None]
    assert np.exp(model.score_samples(grid)).sum() * 0.01 == pytest.approx(1.0, abs=1e-3)


FITTED = {
    "tied": (
        lambda: BayesianGaussianMixture(3, covariance_type="tied"),
        {"covariance_type": "full"},
    ),
    "full": (lambda: BayesianGaussianMixture(3), {"covariance_type": "diag"}),
    "sticks": (
        lambda: BayesianGaussianMixture(3),
        {"weight_concentration_prior_type": "dirichlet_distribution"},
    ),
    "weights": (
        lambda: PoissonMixture(3, tempering=None),
        {"weight_concentration_prior_type": "dirichlet_process"},
    ),
    "size": (lambda: BernoulliMixture(3, tempering=None), {"n_components": 4}),
}


@pytest.mark.parametrize("name", FITTED)
def test_parameters_that_are_changed_after_the_fit_are_told(name):
    make, changed = FITTED[name]
    X = np.random.default_rng(0).poisson(np.repeat([[2.0, 9.0], [9.0, 2.0]], 20, axis=0))
    model = make().fit(X)
    before, parameter = model.predict_proba(X), *changed
    kept = {parameter: getattr(model, parameter)}
    model.set_params(**changed)
    for use in (model.predict, model.score, model.partial_fit, lambda X: model.sample()):
        with pytest.raises(ValueError, match=f"fitted with {parameter}=.*changed to"):
            use(X)
    assert np.array_equal(model.set_params(**kept).predict_proba(X), before)
    assert model.set_params(**changed).fit(X).predict_proba(X).shape[1] == model.n_components


def test_threads_of_blas_change_no_bit():
    rng = np.random.default_rng(0)
    y, X = np.split(rng.normal(size=(3000, 30)), [1], axis=1)
    wide, counts = rng.normal(size=(150, 4000)), rng.poisson(3.0, size=(2000, 100))

    def bits(n_threads):
        with threadpool_limits(n_threads, user_api="blas"):
            lines = RegressionMixture(4, max_iter=2, tempering=None, random_state=0)
            lines.fit(X, y.ravel())
            gaussians = BayesianGaussianMixture(10, max_iter=2, init_params="random")
            shares = gaussians.set_params(random_state=0).fit(X).predict_proba(X)
            features = FactorialMixture(8, max_iter=2)
            features.set_params(random_state=0).fit(wide)
            chain = GaussianHMM(4, n_iter=2, covariance_type="full", random_state=0).fit(X)
            topics = LatentDirichletAllocation(4, max_iter=1, random_state=0).fit(counts)
            scores = [topics.completion_score(counts, inference=way) for way in ("vi", "gibbs")]
            drawn = gaussians.sample(100)[0], chain.sample(100)[0]
        found = lines.coef_, lines.predict_proba(X, y.ravel()), shares, features.features_
        return *found, chain.score_samples(X)[1], scores, *drawn

    for one, two in zip(bits(1), bits(2), strict=True):
        np.testing.assert_array_equal(one, two)


class Held(TemperaturePolicy):
    """T = 2 throughout."""

    def begin(self, model, n_data, rng):
        return Heat(0.5)


@pytest.mark.parametrize("tempering", ["adaptive", "annealing", "variational", "local"])
@pytest.mark.parametrize("total_samples", [None, 600])
def test_a_stream_after_a_tempered_fit_is_at_temperature_one(tempering, total_samples):
    X = np.random.default_rng(0).normal(size=(60, 3))
    options = {"tempering": tempering, "total_samples": total_samples, "random_state": 0}
    mixture = BernoulliMixture(2, max_iter=60, **options).fit(X)
    cold = pickle.loads(pickle.dumps(mixture)).set_params(tempering=None)
    for each in (mixture, cold):
        each.partial_fit(X[:20]).partial_fit(X[20:])
        assert each._state.heat.finished
    np.testing.assert_array_equal(mixture.probabilities_, cold.probabilities_)


@pytest.mark.parametrize("tempering", ["adaptive", "annealing", "variational", "local"])
@pytest.mark.parametrize(
    "changed", [{"tempering": None}, {"tempering": Held()}, {"total_samples": None}]
)
def test_a_stream_goes_on_at_temperature_one_where_its_policy_is_changed(tempering, changed):
    X = np.random.default_rng(0).normal(size=(60, 3))
    stream = BernoulliMixture(2, tempering=tempering, total_samples=600, random_state=0)
    stream.partial_fit(X).partial_fit(X)
    assert np.all(stream._state.heat.inverse_temperature < 1.0)
    stream.set_params(**changed).partial_fit(X)
    assert np.all(stream._state.heat.inverse_temperature == 1.0)
