"""All experiments together: their names, their commands, and the page of the whole."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reproduction import EXPERIMENTS, SUMMARIES, landscape
from reproduction.__main__ import main
from reproduction.experiment import Setting
from reproduction.runner import case_key

ROOT = Path(__file__).parents[2]


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


def test_names_load_nothing_heavy():
    code = "import sys, reproduction; print({'numpy', 'numba'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "set()"


def test_all_at_full_scale_needs_data_before_any_work(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["all", "--scale", "full", "--out", str(out)]) == 1
    assert "--corpus" in capsys.readouterr().err
    assert not out.exists()


def test_an_interrupted_command_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def stop(case, setting):
        raise KeyboardInterrupt

    monkeypatch.setattr(landscape, "EXPERIMENT", replace(landscape.EXPERIMENT, run=stop))
    assert main(["landscape", "--out", str(tmp_path)]) == 130
    assert f"kept in {tmp_path}, and the same command goes on" in capsys.readouterr().err


@pytest.mark.slow
def test_all_of_them(tmp_path):
    assert main(["all", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "reproduction.md").read_text()
    for name in SUMMARIES:
        assert f"\n## {name}\n" in page
    assert page.count("![") >= len(SUMMARIES)
    # Again: everything is there, so it says the same.
    assert main(["all", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "reproduction.md").read_text() == page
