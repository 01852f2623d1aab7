"""The factorial mixture on toy images, in small; what its verdicts depend on."""

import json
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pictures import drawn
from reproduction import toy
from reproduction.experiment import Setting
from reproduction.factorial import MEAN_FIELD, agreement, mean_curve
from reproduction.runner import plain, run_experiment
from reproduction.toy_claims import CHECK, FAST, SLOW, claims
from tempering.datasets import make_toy_images
from tempering.estimators import FactorialMixture


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out = tmp_path_factory.mktemp("toy")
    return out, run_experiment(toy.EXPERIMENT, Setting(seeds=1), out)


@pytest.mark.slow
def test_the_quick_form_runs_draws_and_judges(quick):
    out, rows = quick
    assert {row["method"] for row in rows} == {CHECK, *toy.METHODS, *toy.TRUTHS}
    assert drawn(out / "toy.png")
    assert drawn(out / "toy_features.png")
    judged = json.loads((out / "toy.json").read_text())["claims"]
    assert len(judged) == len(claims(rows)) >= 10
    assert all("nan" not in claim["numbers"] for claim in judged)
    default = next(row for row in rows if row["method"] == "default")
    assert default["found"] == 8
    assert 100 < len(default["elbos"]) <= default["iterations"]  # passes count samples, too


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers(quick):
    _, rows = quick
    case = {"method": "VT", "seed": 0, "n_images": 1000}
    row = next(row for row in rows if row["method"] == "VT")
    again = plain(toy.run_case(case, Setting()))
    assert {name: row[name] for name in again} == again


def test_log_partition_is_that_of_quadrature_and_the_printed_one_is_not():
    check = toy.check_log_partition()
    assert check["corrected_error"] < 1e-9
    assert check["log_c_quadrature"][-1] == pytest.approx(0.0, abs=1e-12)  # C(1) = 1
    missing = 0.5 * (1 - np.array(toy.CHECKED)) * np.log(2 * np.pi * toy.NOISE)
    np.testing.assert_allclose(
        check["log_c_quadrature"] - check["log_c_printed"], missing, atol=1e-9
    )


@given(st.integers(0, 1000))
def test_agreement_is_the_best_of_all_matchings(seed):
    rng = np.random.default_rng(seed)
    true, found = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    distances = np.square(true[:, None] - found).sum(axis=-1)
    best = min(permutations(range(4)), key=lambda order: distances[range(4), order].sum())
    near = distances[range(4), best] < 0.25 * np.square(true).sum(axis=1)
    found_features, error = agreement(true, found)
    assert found_features == near.sum()
    assert error == pytest.approx(distances[range(4), best].sum() / np.square(true).sum())


def test_agreement_with_the_truth_in_another_order():
    true = make_toy_images(1, seed=3).features
    assert agreement(true, true[::-1]) == (8, 0.0)
    assert agreement(true, 0 * true) == (0, 1.0)


def test_misfit_is_the_expected_squared_error():
    """Against the sum over all activations of each image."""
    data = make_toy_images(60, seed=0)
    mixture = FactorialMixture(
        4, noise_variance=0.1, feature_variance=0.35, random_state=0, **MEAN_FIELD
    ).fit(data.X)
    active = mixture.transform(data.X)
    total = 0.0
    for x, probabilities in zip(data.X, active):
        for z in product((0, 1), repeat=4):
            weight = np.prod(np.where(z, probabilities, 1 - probabilities))
            error = np.square(x - np.dot(z, mixture.features_)).sum()
            total += weight * (error + 16 * np.dot(z, mixture.feature_variances_))
    assert toy.misfit(mixture, data.X) == pytest.approx(total / data.X.size / 0.1)


def test_curves_that_have_converged_stay():
    np.testing.assert_allclose(mean_curve([[1.0, 3.0], [2.0, 4.0, 6.0]]), [1.5, 3.5, 4.5])


def made_up(elbos, found):
    """Rows of 12 seeds in which each method reaches what it is told to, up to noise."""
    rng = np.random.default_rng(0)
    rows = [{**plain(toy.check_log_partition()), "method": CHECK, "seed": 0, "n_images": 10}]
    for method in (*toy.METHODS, *toy.TRUTHS, *toy.DEVIATIONS):
        for seed in range(12):
            elbo = elbos.get(method, 0.0) + rng.normal()
            row = {"method": method, "seed": seed, "n_images": 10, "elbo": elbo, "misfit": -elbo}
            row |= {"found": found.get(method, 8)}
            row |= {"error": 1 - row["found"] / 8 + 1e-3 * rng.random()}
            row |= {"temperatures": [3.0, 2.0, 1.0], "first_temperature": 3.0, "cpu": 1.0}
            rows.append({**row, "last_temperature": 1.0, "iterations": 50})
    return rows


def verdicts(rows):
    return [claim.verdict for claim in claims(rows)]


def test_verdicts_follow_the_numbers():
    good = made_up({"VI": -100.0, FAST: -20.0, SLOW: -10.0, "VT": 5.0}, {"VI": 5})
    assert verdicts(good)[:5] == ["holds"] * 5
    bad = made_up({"VI": 0.0, FAST: -20.0, SLOW: -40.0, "VT": -60.0}, {"VT": 5})
    assert verdicts(bad)[:4] == ["does not hold"] * 4
    mixed = made_up({"VI": -30.0, FAST: -20.0, SLOW: -10.0, "VT": -40.0}, {"VI": 5})
    assert verdicts(mixed)[:3] == ["holds in part", "holds", "does not hold"]


def test_the_default_must_find_everything():
    numbers = claims(made_up({}, {"default": 7}))
    judged = next(claim for claim in numbers if "package's default" in claim.sentence)
    assert judged.verdict == "does not hold"
    assert "default 0/12" in judged.numbers
    assert judged.added
