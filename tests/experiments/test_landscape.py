"""Figure 1 in small: the shape of the landscape, and what annealing does on it."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tempering.cli.app import app, main
from tempering.experiments import landscape


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


def test_the_command_draws_writes_and_tells(tmp_path):
    result = CliRunner().invoke(
        app, ["reproduce", "landscape", "--out", str(tmp_path), "--starts", "10"]
    )
    assert result.exit_code == 0, result.output
    assert "10 of 10" in result.output
    numbers = json.loads((tmp_path / "landscape.json").read_text())
    success = {row["schedule"]: row["global_optimum"] for row in numbers["success"]}
    assert success["linear in T, 20 to 1 in 50 iterations"] == 10
    assert success["plain VI"] < 10
    assert (tmp_path / "landscape.png").stat().st_size > 10_000
    assert (tmp_path / "landscape.csv").read_text().startswith("schedule,")


@pytest.mark.slow
def test_the_whole_table():
    """From 200 starts: linear cooling finds the global optimum, plain VI in about half of them."""
    rng = np.random.default_rng(0)
    model, data = landscape.two_gaussians(), landscape.draw_data(300, rng)
    table = landscape.success_table(model, data, 200, rng)
    success = {row.schedule: row.global_optimum for row in table}
    assert success["linear in T, 20 to 1 in 50 iterations"] >= 195
    assert success["plain VI"] < 130


def test_the_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.output.startswith("tempering 0.")


def test_without_matplotlib_the_command_says_so_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tempering.plots.canvas.find_spec", lambda name: None)
    monkeypatch.setattr(
        "sys.argv", ["tempering", "reproduce", "landscape", "--out", str(tmp_path / "out")]
    )
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    assert "pip install 'tempering[plot]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
