"""Moves of the factorial mixture: they repair what coordinate ascent cannot, and never do harm."""

from itertools import combinations

import numpy as np
import pytest

from tempering import FactorialMixture, fit
from tempering.estimators.moves import (
    candidate_features,
    dependent_pairs,
    fit_with_moves,
    move_features,
)
from tempering.inference import engine
from tempering.inference.executors import Serial
from tempering.models.factorial_mixture import FactorialModel

TRUE = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]])
MOVES = {"features": move_features}


def clear_images(seed=0, true=TRUE, n=1000, noise=0.1):
    """So little noise that coordinate ascent stays where it begins."""
    rng = np.random.default_rng(seed)
    return (rng.random((n, len(true))) < 0.3) @ true + noise * rng.standard_normal((n, 4))


def sharing(true=TRUE):
    """Two features that share the work of the true ones: three of four sums are nearly right."""
    a, b = true
    return np.array([a + b / 3, 2 * b / 3 - a])


def model_and_starts(local="exact", true=TRUE):
    model = FactorialModel(2, 4, 0.01, 1.0, 0.3, local=local)
    return model, *(model.features_at(means, 300.0) for means in (sharing(true), true))


@pytest.mark.parametrize("local", ["exact", "mean-field"])
def test_features_that_share_their_work_are_told_apart(local):
    X = clear_images()
    model, bad, good = model_and_starts(local)
    stuck = fit(model, X, initial=bad, tolerance=1e-6, progress=False)
    best = fit(model, X, initial=good, tolerance=1e-6, progress=False)
    assert stuck.elbo < best.elbo - 1000, "coordinate ascent alone should be stuck here"
    moved = fit_with_moves(model, X, moves=MOVES, initial=bad, max_passes=100, tolerance=1e-6)
    assert moved.accepted["features"] >= 1
    assert moved.elbo == pytest.approx(best.elbo, abs=1e-3)
    assert moved.converged
    passes = moved.history["passes"]
    assert np.all(np.diff(passes) >= 1)


def test_where_all_is_well_nothing_is_tried():
    X = clear_images()
    model, _, good = model_and_starts()
    best = fit(model, X, initial=good, progress=False)
    assert not list(candidate_features(model, X, best.posterior))
    assert move_features(model, X, best.posterior, Serial()) is None


@pytest.mark.parametrize("dead", [[0], [1], [0, 1]])
def test_features_that_explain_nothing_are_revived(dead, monkeypatch):
    # By moves alone, without the push that every fit is given at its end.
    monkeypatch.setattr(engine, "leave_saddle", lambda *arguments, **options: iter(()))
    X = clear_images()
    model, _, good = model_and_starts()
    best = fit(model, X, initial=good, tolerance=1e-6, progress=False)
    means = TRUE.copy()
    means[dead] = 1e-9
    counts = np.full(2, 300.0)
    counts[dead] = 1e-6  # so unsure of itself that it is never switched on
    start = model.features_at(means, counts)
    stuck = fit(model, X, initial=start, tolerance=1e-6, progress=False)
    assert stuck.elbo < best.elbo - 1000
    moved = fit_with_moves(model, X, moves=MOVES, initial=start, max_passes=200, tolerance=1e-6)
    assert moved.elbo == pytest.approx(best.elbo, abs=1e-3)


@pytest.mark.parametrize(
    ("seed", "size"), [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 2.0), (5, 2.0)]
)
def test_the_default_finds_features_in_data_with_little_noise(seed, size):
    true = size * TRUE
    X = clear_images(seed, true)
    found = FactorialMixture(2, random_state=seed).fit(X)
    variances = {
        "noise_variance": found.noise_variance_,
        "feature_variance": found.feature_variance_,
    }
    best = FactorialMixture(2, init=true, tempering=None, moves=False, **variances).fit(X)
    assert found.elbo_ > best.elbo_ - 0.1
    still = FactorialMixture(2, random_state=seed, moves=False).fit(X)
    assert found.elbo_ >= still.elbo_ - 1e-6
    assert still.n_moves_ == 0


def test_without_heat_and_moves_some_of_these_fits_fail():
    """So that the test above tests something."""
    gaps = []
    for seed in range(6):
        X = clear_images(seed)
        options = {"random_state": seed, "tempering": None}
        fits = [FactorialMixture(2, moves=moves, **options).fit(X) for moves in (False, True)]
        gaps.append(fits[1].elbo_ - fits[0].elbo_)
        assert (gaps[-1] > 1) == (fits[1].n_moves_ > 0)
    assert sum(gap > 1000 for gap in gaps) >= 2


def test_the_default_ends_alike_where_moves_alone_do_not():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(5, 12))
    X = (rng.random((300, 5)) < 0.4) @ features * 2 + 0.5 * rng.normal(size=(300, 12))

    def elbos(**options):
        return [FactorialMixture(5, random_state=seed, **options).fit(X).elbo_ for seed in (0, 1)]

    default = elbos()
    assert default[0] == pytest.approx(default[1], abs=0.1)
    assert min(elbos(tempering=None)) < min(default) - 1000


def test_learned_hyperparameters_are_those_of_the_path_that_was_kept():
    X = clear_images(1)
    options = {"learn": ("noise_variance", "activation_probability"), "random_state": 1}
    moved = FactorialMixture(2, noise_variance=0.05, **options).fit(X)
    assert moved.noise_variance_ == pytest.approx(0.01, rel=0.1)
    assert moved.activation_probability_[0] == pytest.approx(0.3, abs=0.03)


def test_threads_never_change_a_bit():
    X = clear_images(1)
    options = {"random_state": 1, "tempering": None}
    one, two = (FactorialMixture(2, n_jobs=jobs, **options).fit(X) for jobs in (1, 2))
    assert one.n_moves_ == two.n_moves_ > 0
    assert one.features_.tobytes() == two.features_.tobytes()


def test_dependence_is_mutual_information():
    """Against the table of each pair, written out."""
    rng = np.random.default_rng(0)
    n = 4000
    z = (rng.random((n, 5)) < 0.4).astype(float)
    z[:, 3] = np.where(rng.random(n) < 0.3, z[:, 1], z[:, 3])
    z[:, 4] = np.where(rng.random(n) < 0.7, 1 - z[:, 2], z[:, 4])
    found = dependent_pairs(z.T @ z / n, n)
    information = {}
    for j, k in combinations(range(5), 2):
        total = 0.0
        for a in (0, 1):
            for b in (0, 1):
                joint = np.mean((z[:, j] == a) & (z[:, k] == b))
                total += joint * np.log(joint / np.mean(z[:, j] == a) / np.mean(z[:, k] == b))
        information[j, k] = n * total
    assert found == [(2, 4), (1, 3)]
    assert {pair for pair, value in information.items() if value > 10} == set(found)
    always, never = np.ones(n), np.zeros(n)
    constant = np.stack([always, never, z[:, 0]])
    assert dependent_pairs(constant @ constant.T / n, n) == []


@pytest.mark.parametrize("max_iter", [2, 3, 5])
def test_a_short_fit_ends_at_temperature_one_within_the_passes_asked_for(max_iter):
    X = np.full((20, 4), 3.4e38, np.float32)
    mixture = FactorialMixture(3, max_iter=max_iter, random_state=0).fit(X)
    assert mixture.history_[-1].passes <= max_iter
    assert mixture.history_[-1].temperature == 1.0
