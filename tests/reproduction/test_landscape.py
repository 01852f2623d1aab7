"""Figure 1 in small: the shape of the landscape, and what annealing does on it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reproduction import landscape
from reproduction.__main__ import main


def test_the_surface_is_the_annealed_elbo_of_the_model():
    """The vectorised surface equals the engine's own bound at single points."""
    model, data = landscape.two_gaussians(), landscape.draw_data(50, np.random.default_rng(0))
    grid, temperature = np.array([-3.0, 0.5, 2.0]), 8.5
    surface = landscape.annealed_elbo(model, data, temperature, grid)
    s = 1 / temperature
    variances = 1 / (1 / landscape.PRIOR_VARIANCE + s * 50 * np.asarray(landscape.WEIGHTS))
    for i, first in enumerate(grid):
        for j, second in enumerate(grid):
            posterior = landscape.posterior_at(model, np.array([first, second]), variances)
            local = model.local_step(data, model.expectations(posterior), s)
            oracle = local.tempered_energy + local.entropy - model.divergence(posterior)
            assert surface[i, j] == pytest.approx(oracle, rel=1e-9)


def test_it_has_one_optimum_hot_and_two_cold():
    model, data = landscape.two_gaussians(), landscape.draw_data(300, np.random.default_rng(0))
    counts = [
        len(landscape.local_optima(landscape.annealed_elbo(model, data, T)))
        for T in landscape.TEMPERATURES
    ]
    assert counts == [1, 1, 2, 2]


@pytest.mark.slow
def test_slow_cooling_finds_the_optimum_and_plain_ascent_not_always():
    model, data, rng = landscape.problem(0)
    starts = rng.normal(scale=5.0, size=(20, 2))
    found = {
        name: landscape.reached_optimum(model, data, starts, name)
        for name in (landscape.PLAIN, landscape.LINEAR, landscape.SEARCH)
    }
    assert all(found[landscape.LINEAR][0])
    assert all(found[landscape.SEARCH][0])
    right, elbos, passes = found[landscape.PLAIN]
    assert 0 < sum(right) < 20
    # The two optima differ in their ELBO, so it tells them apart as the means do.
    assert min(e for e, good in zip(elbos, right) if good) > max(
        e for e, good in zip(elbos, right) if not good
    )
    assert min(passes) > 1
    assert min(found[landscape.SEARCH][2]) >= landscape.BUDGET * min(passes)


@pytest.mark.slow
def test_the_optimum_splits_where_the_number_of_optima_changes():
    model, data, _ = landscape.problem(0)
    split = landscape.splitting_temperature(model, data)
    counts = [
        len(landscape.local_optima(landscape.annealed_elbo(model, data, T)))
        for T in (split - 0.2, split + 0.2)
    ]
    assert counts == [2, 1]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The command, with fewer starts than it has by itself."""
    out = tmp_path_factory.mktemp("landscape")
    few = lambda setting: [  # noqa: E731
        {**case, **({"n_starts": 10} if "n_starts" in case else {})}
        for case in landscape.cases(setting)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landscape, "EXPERIMENT", replace(landscape.EXPERIMENT, cases=few))
        assert main(["landscape", "--out", str(out)]) == 0
    return out


@pytest.mark.slow
def test_the_command_draws_and_writes(written):
    numbers = json.loads((written / "landscape.json").read_text())
    success = {row["method"]: row.get("global_optimum") for row in numbers["rows"]}
    assert success["linear in T, 20 to 1 in 50 iterations"] == 10
    assert success["plain VI"] < 10
    assert success[landscape.SEARCH] == 10
    assert [claim["verdict"] for claim in numbers["claims"]][:2] == ["holds", "holds"]
    assert "from 10 of 10 starts" in numbers["claims"][-1]["sentence"]
    assert numbers["claims"][-1]["verdict"] == "holds"


@pytest.mark.slow
def test_nothing_is_run_where_only_what_is_finished_is_asked_for(written, tmp_path, capsys):
    before = (written / "landscape.jsonl").read_bytes()
    # With other starts than those of the file, its cases are others too.
    for out in (tmp_path, written):
        assert main(["landscape", "--finished-only", "--out", str(out)]) == 1
        assert "no finished seed of landscape" in capsys.readouterr().err
    assert (written / "landscape.jsonl").read_bytes() == before


@pytest.mark.slow
def test_the_figure_is_the_one_in_the_readme(written):
    """Drawn anew it has the same pixels, as far as drawing is the same everywhere."""
    from PIL import Image

    documented = Path(__file__).parents[2] / "docs" / "landscape.png"
    if not documented.exists():
        pytest.skip("no documentation beside these tests")
    drawn, shown = (
        np.asarray(Image.open(path).convert("RGB"), float)
        for path in (written / "landscape.png", documented)
    )
    assert drawn.shape == shown.shape
    assert np.abs(drawn - shown).mean() < 5


@pytest.mark.slow
def test_the_whole_table():
    """From 200 starts: linear cooling finds the global optimum, plain VI in about half of them."""
    model, data, rng = landscape.problem(0)
    starts = rng.normal(scale=5.0, size=(200, 2))
    success = {
        name: sum(landscape.reached_optimum(model, data, starts, name)[0])
        for name in (landscape.PLAIN, landscape.LINEAR)
    }
    assert success[landscape.LINEAR] >= 195
    assert success[landscape.PLAIN] < 130
