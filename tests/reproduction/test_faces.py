"""The factorial mixture on images that are made here; what is said of other images."""

import numpy as np
import pytest

from pictures import drawn
from reproduction import faces
from reproduction.__main__ import main
from reproduction.experiment import Setting
from reproduction.faces_claims import DEFAULT, FAST, SLOW, claims
from reproduction.runner import run_experiment
from tempering.estimators import FactorialMixture
from tempering.models.factorial_mixture import FeatureExpectations, log_density


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out = tmp_path_factory.mktemp("faces")
    return out, run_experiment(faces.EXPERIMENT, Setting(seeds=2), out)


@pytest.mark.slow
def test_the_quick_form_runs_draws_and_judges(quick):
    out, rows = quick
    assert [row["method"] for row in rows] == [*faces.METHODS] * 2
    assert drawn(out / "faces.png")
    judged = claims(rows)
    assert len(judged) == 7
    assert all("nan" not in claim.numbers for claim in judged)
    for row in rows:
        assert len(row["steps"]) == len(row["scores"])
        assert row["steps"] == sorted(row["steps"])
        assert row["scores"][-1] == row["held_out"]
        assert row["temperatures"][-1] == 1.0
    hot = {row["method"]: row["first_temperature"] for row in rows}
    assert hot["VI"] == 1.0
    assert hot[FAST] == hot[SLOW] == 6.0


def watched(seed=0):
    """The default's fit of the quick form, and its held-out images."""
    train, held_out = faces.split(faces.generate_images(seed), 100, seed)
    mixture = FactorialMixture(
        6,
        noise_variance=0.5,
        feature_variance=0.5,
        activation_probability=0.3,
        max_iter=100,
        tol=1.0,
        random_state=seed,
    )
    return mixture.fit(train), held_out


def expectations(means, variances):
    return FeatureExpectations(means, variances, means @ means.T)


@pytest.mark.slow
def test_watching_changes_nothing(quick):
    _, rows = quick
    mixture, held_out = watched()
    row = next(row for row in rows if row["method"] == DEFAULT and row["seed"] == 0)
    assert row["elbo"] == mixture.elbo_
    # A bound of what the estimator sums exactly, with so few features.
    exact = mixture.score(held_out) / 120
    assert exact - 0.01 < row["held_out"] <= exact


def test_the_score_is_exact_where_features_do_not_meet():
    """Sure features without common pixels: the activations are independent, the bound is tight."""
    means = 3 * np.eye(5, 8)
    images = np.random.default_rng(0).normal(size=(20, 8)) + means[np.arange(20) % 5]
    scorer = faces.Scorer(images, 5)
    sure = expectations(means, np.full(5, 1e-12))
    np.testing.assert_allclose(
        scorer.bounds(sure), log_density(scorer.model, images, sure), rtol=1e-6
    )


def test_the_score_does_not_depend_on_the_order_of_the_features():
    mixture, held_out = watched(1)
    scorer = faces.Scorer(held_out, 6)
    order = np.random.default_rng(2).permutation(6)
    one, other = (
        scorer.score(expectations(mixture.features_[some], mixture.feature_variances_[some]))
        for some in (np.arange(6), order)
    )
    assert one == pytest.approx(other, abs=1e-4)


def test_the_split():
    images = faces.generate_images(3)
    train, held_out = faces.split(images, 100, 5)
    assert (len(train), len(held_out)) == (300, 100)
    both = np.concatenate([train, held_out])
    assert both.mean() == pytest.approx(0.0, abs=1e-12)
    assert both.std() == pytest.approx(1.0)
    standardised = (images - images.mean()) / images.std()
    np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(standardised, axis=0))
    assert not np.array_equal(held_out, faces.split(images, 100, 6)[1])


def archive(path, n=1200, **arrays):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, 6, 5), dtype=np.uint8)
    np.savez(path, **{"images": images, **arrays})
    return path


def test_images_of_an_archive(tmp_path):
    bad = np.arange(1200) < 7
    path = archive(tmp_path / "some.npz", bad=bad)
    images = faces.load_images(path)
    assert images.shape == (1193, 30)
    np.testing.assert_array_equal(images, np.load(path)["images"][7:].reshape(1193, 30))
    assert faces.load_images(archive(tmp_path / "all.npz")).shape == (1200, 30)
    setting = Setting("full", 2, faces=path)
    assert {case["n_features"] for case in faces.cases(setting)} == {30, 60}
    assert {case["data"] for case in faces.cases(setting)} == {"some.npz"}


@pytest.mark.parametrize(
    "arrays",
    [{"n": 10}, {"images": np.zeros((2000, 4))}, {"bad": np.zeros(3)}, {"images": np.array({})}],
    ids=["few", "flat", "other bad", "objects"],
)
def test_other_archives_are_refused(tmp_path, arrays):
    path = archive(tmp_path / "wrong.npz", **arrays)
    with pytest.raises(ValueError, match=r"--faces .*wrong\.npz"):
        faces.cases(Setting("full", faces=path))


@pytest.mark.parametrize("content", [None, b"", b"not an archive", b"PK\x03\x04"])
def test_the_command_says_what_is_wrong_before_any_work(tmp_path, content, capsys):
    path, out = tmp_path / "wrong.npz", tmp_path / "out"
    if content is not None:
        path.write_bytes(content)
    assert main(["faces", "--scale", "full", "--out", str(out), "--faces", str(path)]) == 1
    assert f"--faces {path}" in capsys.readouterr().err
    assert not out.exists()


def test_without_images_the_command_says_what_to_give(tmp_path, capsys):
    assert main(["faces", "--scale", "full", "--out", str(tmp_path / "out")]) == 1
    assert "give --faces PATH" in capsys.readouterr().err


def made_up(scores):
    """Rows of two seeds and two sizes in which each method reaches what it is told to."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in (0, 1):
        for k in (30, 60):
            for method in faces.METHODS:
                row = {"data": "x", "n_images": 9, "pixels": 4, "seed": seed, "n_features": k}
                row |= {"method": method, "cpu": 1.0}
                row |= {"temperatures": [2.0, 1.5, 1.0]}
                row |= {"first_temperature": 2.0, "tenth_temperature": 1.0}
                rows.append({**row, "held_out": scores.get(method, 0.0) + 1e-3 * rng.normal()})
    return rows


def test_verdicts_follow_the_numbers():
    def verdicts(scores):
        return [claim.verdict for claim in claims(made_up(scores))]

    good = verdicts({"VI": -2.0, FAST: -1.0, SLOW: -0.5, "VT": -0.55, "LVT": 0.0, DEFAULT: 0.0})
    assert good[:4] == ["holds"] * 4
    assert good[5:] == ["holds"] * 2
    assert verdicts({"VI": -2.0, FAST: -1.0, SLOW: -0.5, "VT": -1.0})[2] == "holds in part"
    assert verdicts({"VI": -2.0, FAST: -1.0, SLOW: -0.5, "VT": -1.9})[2] == "does not hold"
    bad = verdicts({"VI": 0.0, FAST: -1.0, SLOW: -0.5, "VT": -1.0, "LVT": -3.0, DEFAULT: -3.0})
    assert bad[:3] == ["does not hold"] * 3
    assert bad[5:] == ["does not hold"] * 2
