"""All experiments together: their names, their commands, and the page of the whole."""

import json
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from tempering.cli.app import app
from tempering.experiments import EXPERIMENTS, SUMMARIES, landscape
from tempering.experiments.experiment import Setting
from tempering.experiments.runner import case_key


@pytest.mark.parametrize("name", SUMMARIES)
def test_each_experiment_lists_its_cases(name):
    experiment = EXPERIMENTS[name]
    assert experiment.name == name
    setting = Setting("quick", experiment.default_seeds["quick"])
    keys = [case_key(case, setting) for case in experiment.cases(setting)]
    assert len(set(keys)) == len(keys) > 0
    # More seeds only add cases: what was run stays of use.
    more = [
        case_key(case, setting) for case in experiment.cases(Setting("quick", setting.seeds + 1))
    ]
    assert set(keys) <= set(more)


@pytest.mark.parametrize("name", [*SUMMARIES, "all"])
def test_each_command_has_its_help(name):
    result = CliRunner().invoke(app, ["reproduce", name, "--help"])
    assert result.exit_code == 0
    assert f"    tempering reproduce {name}" in result.output
    for option in ("--out", "--scale", "--seeds", "--corpus", "--faces", "--json"):
        assert option in result.output


def test_names_load_nothing_heavy():
    code = "import sys, tempering.experiments; print({'numpy', 'numba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_an_unknown_experiment():
    with pytest.raises(KeyError):
        EXPERIMENTS["nothing"]
    result = CliRunner().invoke(app, ["reproduce", "nothing"])
    assert result.exit_code == 2


def test_all_at_full_scale_needs_data_before_any_work(tmp_path):
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["reproduce", "all", "--scale", "full", "--out", str(out)])
    assert result.exit_code == 1
    assert "--corpus" in result.output
    assert not out.exists()


def test_an_interrupted_command_says_how_to_go_on(tmp_path, monkeypatch):
    def stop(case, setting):
        raise KeyboardInterrupt

    monkeypatch.setattr(landscape, "EXPERIMENT", replace(landscape.EXPERIMENT, run=stop))
    result = CliRunner().invoke(app, ["reproduce", "landscape", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert f"kept in {tmp_path}, and the same command goes on" in result.output


@pytest.mark.slow
def test_all_of_them_in_a_quarter_of_an_hour(tmp_path):
    began = time.monotonic()
    result = CliRunner().invoke(app, ["reproduce", "all", "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    assert time.monotonic() - began < 15 * 60
    told = json.loads(result.stdout)
    assert {claim["experiment"] for claim in told["claims"]} == set(SUMMARIES)
    page = (tmp_path / "reproduction.html").read_text()
    for name in SUMMARIES:
        assert f"<h2 id='{name}'>" in page
        assert (tmp_path / f"{name}.csv").exists()
    assert page.count("<img ") >= len(SUMMARIES)
    # Again: everything is there, so it takes seconds, and says the same.
    again = CliRunner().invoke(app, ["reproduce", "all", "--out", str(tmp_path), "--json"])
    assert json.loads(again.stdout) == told
