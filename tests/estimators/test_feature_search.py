"""Fits of the factorial mixture that are searches: features that coordinate ascent cannot find."""

import contextlib
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tempering import Checkpoint, FactorialMixture, fit, search
from tempering.estimators.feature_operators import FEATURE_OPERATORS, Features, dependent_pairs
from tempering.inference import checkpoint as checkpoints
from tempering.models.factorial_mixture import FactorialModel
from tempering.search import journal

TRUE = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]])


def clear_images(seed=0, true=TRUE, n=1000, noise=0.1):
    """So little noise that coordinate ascent stays where it begins."""
    rng = np.random.default_rng(seed)
    return (rng.random((n, len(true))) < 0.3) @ true + noise * rng.standard_normal((n, 4))


def sharing(true=TRUE):
    """Two features that share the work of the true ones: three of four sums are nearly right."""
    a, b = true
    return np.array([a + b / 3, 2 * b / 3 - a])


def model_and_starts(local: Any = "exact", true=TRUE):
    model = FactorialModel(2, 4, 0.01, 1.0, np.full(2, 0.3), local=local)
    return model, *(model.features_at(means, 300.0) for means in (sharing(true), true))


@pytest.mark.parametrize("local", ["exact", "mean-field"])
def test_features_that_share_their_work_are_told_apart_by_other_generators_alone(local):
    X = clear_images()
    model, bad, good = model_and_starts(local)
    stuck = fit(model, X, initial=bad, tolerance=1e-6, progress=False)
    best = fit(model, X, initial=good, tolerance=1e-6, progress=False)
    assert stuck.elbo < best.elbo - 1000, "coordinate ascent alone should be stuck here"
    options = {"initial": bad, "tolerance": 1e-6, "progress": False, "budget": 10}
    found = search(model, X, operators=[Features()], **options)
    assert any(trial.operator == "features" and trial.accepted for trial in found.trail)
    assert found.elbo == pytest.approx(best.elbo, abs=1e-2)
    assert found.converged


@pytest.mark.parametrize("dead", [[0], [1], [0, 1]])
def test_features_that_explain_nothing_are_replaced_by_what_is_left_over(dead):
    X = clear_images()
    model, _, good = model_and_starts()
    best = fit(model, X, initial=good, tolerance=1e-6, progress=False)
    means = TRUE.copy()
    means[dead] = 1e-9
    counts = np.full(2, 300.0)
    counts[dead] = 1e-6  # so unsure of itself that it is never switched on
    start = model.features_at(means, counts)
    options = {"initial": start, "tolerance": 1e-4, "progress": False, "budget": 20}
    found = search(model, X, operators=[Features()], max_passes=5, **options)
    assert found.elbo == pytest.approx(best.elbo, abs=1e-2)


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
    best = FactorialMixture(2, init=true, n_init=1, **variances).fit(X)
    assert found.elbo_ > best.elbo_ - 0.1
    assert found.trail_[0].operator == "plain"
    assert best.trail_ == []


def test_one_start_ends_elsewhere():
    """So that the test above tests something."""
    gaps = []
    for seed in range(6):
        X = clear_images(seed)
        fits = [FactorialMixture(2, random_state=seed, n_init=n).fit(X) for n in (1, "auto")]
        gaps.append(fits[1].elbo_ - fits[0].elbo_)
    assert min(gaps) > -0.1
    assert sum(gap > 1000 for gap in gaps) >= 2


def test_the_default_ends_alike_from_every_start():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(5, 12))
    X = (rng.random((300, 5)) < 0.4) @ features * 2 + 0.5 * rng.normal(size=(300, 12))

    def elbos(**options):
        return [FactorialMixture(5, random_state=seed, **options).fit(X).elbo_ for seed in (0, 1)]

    default = elbos()
    assert default[0] == pytest.approx(default[1], abs=0.1)
    assert min(elbos(n_init=1)) < min(default) - 1000


def test_features_that_are_given_are_where_the_first_run_starts():
    X = clear_images()
    options = {"noise_variance": 0.01, "feature_variance": 1.0, "random_state": 0}
    one, found = (FactorialMixture(2, init=sharing(), n_init=n, **options).fit(X) for n in (1, 10))
    assert found.history_["elbo"][0] == one.history_["elbo"][0]
    assert found.elbo_ > one.elbo_ + 1000


def test_learned_hyperparameters_are_those_of_the_solution():
    X = clear_images(1)
    options = {"learn": ("noise_variance", "activation_probability"), "random_state": 1}
    found = FactorialMixture(2, noise_variance=0.05, **options).fit(X)
    assert found.noise_variance_ == pytest.approx(0.01, rel=0.1)
    assert found.activation_probability_[0] == pytest.approx(0.3, abs=0.03)


def test_threads_never_change_a_bit():
    X = clear_images(1)
    one, two = (FactorialMixture(2, n_jobs=jobs, random_state=1).fit(X) for jobs in (1, 2))
    assert [trial[:3] for trial in one.trail_] == [trial[:3] for trial in two.trail_]
    assert one.features_.tobytes() == two.features_.tobytes()


class Killed(Exception):
    """The end of a fit in these tests."""


def test_a_search_that_is_killed_ends_in_the_same_bits(tmp_path, monkeypatch):
    X = clear_images(2)
    whole = FactorialMixture(2, random_state=1).fit(X)
    written, checkpoint = [], Checkpoint(tmp_path, every_steps=1)

    def write(*arguments):
        written.append(arguments[0].parent.name)
        if len(written) % 20 == 0:
            raise Killed
        original(*arguments)

    original = checkpoints.write_tree
    monkeypatch.setattr(checkpoints, "write_tree", write)
    monkeypatch.setattr(journal, "write_tree", write)
    for _ in range(3):
        with contextlib.suppress(Killed):
            FactorialMixture(2, random_state=1).fit(X, checkpoint=checkpoint)
    assert "rounds" in written
    monkeypatch.undo()
    resumed = FactorialMixture(2, random_state=1).fit(X, checkpoint=tmp_path)
    assert resumed.features_.tobytes() == whole.features_.tobytes()
    assert [trial[:3] for trial in resumed.trail_] == [trial[:3] for trial in whole.trail_]


def test_nothing_is_split():
    assert "swap" not in {operator.name for operator in FEATURE_OPERATORS}


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
def test_huge_numbers_and_few_passes(max_iter):
    X = np.full((20, 4), 3.4e38, np.float32)
    mixture = FactorialMixture(3, max_iter=max_iter, random_state=0).fit(X)
    assert len(mixture.history_) <= 2 * max_iter
    assert mixture.history_[-1].temperature == 1.0
