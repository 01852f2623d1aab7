"""Merge-split moves: they repair what coordinate ascent cannot, and never do harm."""

import numpy as np
import pytest
from sklearn.base import clone

from tempering import BayesianGaussianMixture, fit
from tempering.estimators.merge_split import (
    _moved_counts,
    _weights_evidence,
    choose_moves,
    look_over,
    merge_and_split,
    merge_candidates,
    split_candidates,
)
from tempering.estimators.moves import fit_with_moves
from tempering.estimators.starts import column_metric
from tempering.families import (
    Bernoulli,
    Dirichlet,
    FullGaussian,
    Poisson,
    StickBreaking,
    TiedGaussian,
)
from tempering.inference import ArraySource, engine, evaluate_elbo
from tempering.inference.executors import Serial
from tempering.models import Mixture

CENTRES = np.array([[0.0, 0.0], [0.0, 8.0], [8.0, 0.0], [8.0, 8.0]])
MOVES = {"merge_split": merge_and_split}


def squares(n=800, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(4), n // 4)
    return CENTRES[labels] - 4.0 + rng.normal(size=(n, 2)), labels


def gaussian_mixture(weights="dirichlet", n_components=4):
    likelihood, k = FullGaussian(2), n_components
    component = likelihood.conjugate.natural(np.zeros(2), 1.0, 2.0, 16 * np.eye(2))
    if weights == "tied":
        likelihood = TiedGaussian(2, k)
        component = likelihood.conjugate.natural(np.zeros((k, 2)), 1.0, 2.0, 16 * np.eye(2))
    if weights != "sticks":
        return Mixture(likelihood, Dirichlet(k), np.full(k, 1 / k), component)
    return Mixture(likelihood, StickBreaking(k), np.repeat([1.0, 1 / k], k), component)


def posterior_of(model, X, labels):
    return model.prior() + model.statistics(X, np.eye(model.n_components)[labels])


def bad_labels(X, labels):
    """Components 0 and 1 share cluster 0, component 2 covers clusters 1 and 2."""
    left = X[:, 0] < X[labels == 0, 0].mean()
    return np.choose(labels, [left.astype(int), 2, 2, 3])


@pytest.mark.parametrize("weights", ["dirichlet", "sticks", "tied"])
def test_a_bad_start_is_repaired(weights, monkeypatch):
    # By moves alone, without the push that every fit is given at its end.
    monkeypatch.setattr(engine, "leave_saddle", lambda *arguments, **options: iter(()))
    X, labels = squares()
    model = gaussian_mixture(weights)
    start = posterior_of(model, X, bad_labels(X, labels))
    stuck = fit(model, X, initial=start, tolerance=1e-6, progress=False)
    moved = fit_with_moves(model, X, moves=MOVES, initial=start, max_passes=100, tolerance=1e-6)
    best = fit(model, X, initial=posterior_of(model, X, labels), tolerance=1e-6, progress=False)
    assert stuck.elbo < best.elbo - 100, "coordinate ascent alone should be stuck here"
    assert moved.elbo == pytest.approx(best.elbo, abs=3.0)
    assert moved.accepted == {"merge_split": 1}
    assert moved.converged
    # The history is one path: consecutive steps, and it ends with the best ELBO.
    assert list(moved.history["step"]) == list(range(len(moved.history)))
    assert np.all(np.diff(moved.history["seconds"]) > 0)
    assert moved.history["elbo"].max() == moved.history[-1].elbo
    assert moved.elbo >= moved.history[-1].elbo - 1e-6


@pytest.mark.parametrize("weights", ["dirichlet", "sticks"])
@pytest.mark.parametrize("seed", range(2))
def test_moves_never_lower_the_elbo(weights, seed):
    X, _ = squares(seed=seed)
    model = gaussian_mixture(weights, n_components=7)
    rng = np.random.default_rng(seed)
    start = posterior_of(model, X, rng.integers(0, 7, size=len(X)))
    plain = fit(model, X, initial=start, max_passes=15, progress=False)
    moved = fit_with_moves(model, X, moves=MOVES, initial=start, max_passes=300)
    assert moved.elbo >= plain.elbo


@pytest.mark.parametrize("weights", ["dirichlet", "sticks", "tied"])
def test_the_scores_are_differences_of_the_elbo(weights):
    """A merge and a split of clusters far apart: what was promised is what comes."""
    X, labels = squares()
    model = gaussian_mixture(weights)
    source = ArraySource(X)
    posterior = posterior_of(model, X, bad_labels(X, labels))
    expected = model.expectations(posterior)
    overview = look_over(model, X, expected, Serial())
    posterior = posterior_of(model, X, overview.labels)
    merges = merge_candidates(model, X, expected, overview, Serial())
    splits = split_candidates(model, X, overview.labels, [column_metric(X)], Serial())
    assert (merges[0].first, merges[0].second) == (0, 1)
    assert splits[0].component == 2
    ((merge, split),) = choose_moves(model, overview.counts, merges, splits)
    before = evaluate_elbo(model, posterior, source)
    after = evaluate_elbo(model, merge_and_split(model, X, posterior, Serial()), source)
    counts = _moved_counts(overview.counts, merge, split)
    weights_gain = _weights_evidence(model, counts) - _weights_evidence(model, overview.counts)
    promised = merge.gain + split.gain + weights_gain
    assert after - before == pytest.approx(promised, rel=0.02)
    # What they are ranked by counts the weights roughly.
    assert after - before == pytest.approx(merge.score + split.score, rel=0.05)


def test_a_free_slot_is_filled():
    """Two clusters in one component, and a component that holds nothing."""
    X, labels = squares()
    model = gaussian_mixture()
    start = posterior_of(model, X, np.choose(labels, [0, 1, 2, 2]))
    overview = look_over(model, X, model.expectations(start), Serial())
    assert overview.counts[3] < 1.0
    merges = merge_candidates(model, X, model.expectations(start), overview, Serial())
    assert [merge.first for merge in merges if merge.free] == [3]
    moved = fit_with_moves(model, X, moves=MOVES, initial=start, max_passes=100)
    assert moved.accepted == {"merge_split": 1}
    counts = look_over(model, X, model.expectations(moved.posterior), Serial()).counts
    np.testing.assert_allclose(counts, 200, atol=2)


def test_two_components_have_no_third_to_split():
    X, labels = squares()
    model = gaussian_mixture(n_components=2)
    start = posterior_of(model, X, labels % 2)
    assert merge_and_split(model, X, start, Serial()) is None
    everything_in_one = posterior_of(model, X, np.zeros_like(labels))
    assert merge_and_split(model, X, everything_in_one, Serial()) is not None


def test_spare_components_stay_free():
    """One Gaussian cluster is not cut in pieces because there is room."""
    X = np.random.default_rng(0).normal(size=(500, 2))
    model = gaussian_mixture(n_components=5)
    start = posterior_of(model, X, np.zeros(500, int))
    assert merge_and_split(model, X, start, Serial()) is None


def test_points_on_one_spot_cannot_be_split():
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 20, axis=0)
    model = gaussian_mixture(n_components=3)
    start = posterior_of(model, X, np.repeat([0, 1], 20))
    assert merge_and_split(model, X, start, Serial()) is None


@pytest.mark.parametrize("kind", ["binary", "counts"])
def test_other_likelihoods_move_too(kind):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 200)
    high = np.repeat(np.eye(4, dtype=bool), 3, axis=1)[labels]
    if kind == "binary":
        X, likelihood = (rng.random(high.shape) < np.where(high, 0.95, 0.05)) * 1.0, Bernoulli(12)
    else:
        X, likelihood = rng.poisson(np.where(high, 20.0, 1.0)) * 1.0, Poisson(12)
    prior = np.ones(likelihood.conjugate.size)
    model = Mixture(likelihood, Dirichlet(4), np.full(4, 0.25), prior)
    split = rng.random(800) < 0.5
    start = posterior_of(model, X, np.choose(labels, [split.astype(int), 2, 2, 3]))
    moved = fit_with_moves(model, X, moves=MOVES, initial=start, max_passes=100)
    best = fit(model, X, initial=posterior_of(model, X, labels), progress=False)
    assert moved.elbo == pytest.approx(best.elbo, abs=3.0)


def test_the_estimator_counts_its_rounds_and_keeps_to_max_iter():
    X, _ = squares()
    X[:, 1] *= 3
    options = {"n_components": 8, "init_params": "random", "random_state": 0}
    plain = BayesianGaussianMixture(**options, merge_split=False, max_iter=15).fit(X)
    moved = BayesianGaussianMixture(**options).fit(X)
    assert plain.n_merge_split_ == 0
    assert moved.elbo_ >= plain.elbo_
    assert len(moved.history_) <= moved.n_iter_ <= 200
    short = BayesianGaussianMixture(**options, max_iter=20).fit(X)
    assert short.n_iter_ <= 20


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(17_000, 2)) + 4 * rng.integers(0, 3, size=(17_000, 2))
    one = BayesianGaussianMixture(9, n_jobs=1, max_iter=10).fit(X)
    two = clone(one).set_params(n_jobs=2).fit(X)
    assert one.elbo_ == two.elbo_
    np.testing.assert_array_equal(one.means_, two.means_)
    np.testing.assert_array_equal(one.covariances_, two.covariances_)
