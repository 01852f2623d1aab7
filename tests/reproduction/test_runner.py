"""Experiments run each case once, go on where they were stopped, and say the same twice."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduction.experiment import Claim, Experiment, Setting
from reproduction.machine import describe_machine, processor
from reproduction.runner import (
    MEASURED,
    finished_setting,
    plain,
    read_lines,
    run_experiment,
)


class Stopped(Exception):
    """What stops a run in the middle."""


def throws(made, stop_before=None):
    """An experiment that throws dice, and writes down which cases it has made."""

    def run(case, setting):
        if case["seed"] == stop_before:
            raise Stopped
        made.append(case["seed"])
        rng = np.random.default_rng(case["seed"])
        return {"mean": rng.random(), "throws": rng.integers(1, 7, 5), "scale_was": setting.scale}

    return Experiment(
        name="dice",
        title="Dice",
        claims_of="They are fair.",
        cases=lambda setting: [{"die": "red", "seed": seed} for seed in range(setting.seeds)],
        run=run,
        draw=lambda rows, out: (out / "dice.png").write_bytes(b"picture"),
        claims=lambda rows: [Claim("dice", "fair", "", f"{len(rows)}", "holds", "they are")],
    )


def numbers(rows):
    return [{name: row[name] for name in row if name not in MEASURED} for row in rows]


def test_rows_hold_case_result_and_cost(tmp_path):
    steps = []
    rows = run_experiment(throws([]), Setting(seeds=3), tmp_path, steps.append)
    assert [row["seed"] for row in rows] == [0, 1, 2]
    assert all(len(row["throws"]) == 5 and row["cpu"] >= 0 for row in rows)
    assert {row["machine"] for row in rows} == {describe_machine()}
    assert [step.finished for step in steps] == [0, 1, 2, 3]
    assert steps[-1].case is None
    written = json.loads((tmp_path / "dice.json").read_text())
    assert written["rows"] == rows
    assert written["claims"][0]["verdict"] == "holds"
    assert (tmp_path / "dice.png").exists()


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    made = []
    with pytest.raises(Stopped):
        run_experiment(throws(made, stop_before=2), Setting(seeds=4), tmp_path / "a")
    rows = run_experiment(throws(made), Setting(seeds=4), tmp_path / "a")
    assert made == [0, 1, 2, 3]
    assert numbers(rows) == numbers(run_experiment(throws([]), Setting(seeds=4), tmp_path / "b"))


def test_more_seeds_run_only_what_is_new_and_scales_are_apart(tmp_path):
    made = []
    run_experiment(throws(made), Setting(seeds=2), tmp_path)
    run_experiment(throws(made), Setting(seeds=3), tmp_path)
    assert made == [0, 1, 2]
    fewer = run_experiment(throws(made), Setting(seeds=1), tmp_path)
    assert made == [0, 1, 2]
    assert len(fewer) == 1
    full = run_experiment(throws(made), Setting("full", seeds=1), tmp_path)
    assert made == [0, 1, 2, 0]
    assert full[0]["scale_was"] == "full"


@pytest.mark.parametrize("kept", [1, 20, 60])
def test_a_line_that_was_cut_off_is_run_again(tmp_path, kept):
    whole = run_experiment(throws([]), Setting(seeds=3), tmp_path)
    path = tmp_path / "dice.jsonl"
    first, second, third = path.read_text().splitlines()
    path.write_text("\n".join([first, second, third[:kept]]))
    made = []
    assert numbers(run_experiment(throws(made), Setting(seeds=3), tmp_path)) == numbers(whole)
    assert made == [2]
    assert len(read_lines(path)) == 3


@pytest.mark.parametrize("damage", ["nonsense", "[]", "{}", '{"case": {}}'])
def test_a_damaged_line_is_named(tmp_path, damage):
    path = tmp_path / "dice.jsonl"
    path.write_text(f"{damage}\n")
    with pytest.raises(ValueError, match=r"dice\.jsonl, line 1 .* Remove that line"):
        run_experiment(throws([]), Setting(seeds=1), tmp_path)


SLOW = """
import sys, time
from pathlib import Path
sys.path.insert(0, {folder!r})
from test_runner import throws
from dataclasses import replace
from reproduction.experiment import Setting
from reproduction.runner import run_experiment

experiment = throws([])
run = lambda case, setting: (time.sleep(0.15), experiment.run(case, setting))[1]
run_experiment(replace(experiment, run=run), Setting(seeds=6), Path({out!r}))
"""


def test_a_killed_process_loses_one_case_at_most(tmp_path):
    code = SLOW.format(folder=str(Path(__file__).parent), out=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code])
    path, deadline = tmp_path / "dice.jsonl", time.monotonic() + 60
    while not (path.exists() and path.read_text().count("\n") >= 2):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    n_kept = len(read_lines(path))
    made = []
    rows = run_experiment(throws(made), Setting(seeds=6), tmp_path)
    assert made == list(range(n_kept, 6))
    assert numbers(rows) == numbers(run_experiment(throws([]), Setting(seeds=6), tmp_path / "b"))


def test_seeds_that_are_finished(tmp_path):
    experiment = throws([])
    assert finished_setting(experiment, Setting(seeds=3), tmp_path) is None
    with pytest.raises(Stopped):
        run_experiment(throws([], stop_before=2), Setting(seeds=4), tmp_path)
    assert finished_setting(experiment, Setting(seeds=4), tmp_path) == Setting(seeds=2)
    assert finished_setting(experiment, Setting("full", seeds=4), tmp_path) is None


def test_reading_changes_nothing(tmp_path):
    """Another process may be writing."""
    run_experiment(throws([]), Setting(seeds=2), tmp_path)
    path = tmp_path / "dice.jsonl"
    path.write_text(path.read_text()[:-5])
    before = path.read_bytes()
    assert len(read_lines(path)) == 1
    assert path.read_bytes() == before


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_every_result_can_be_written(value):
    written = json.dumps(plain({"value": value, "array": np.array([1.5, np.inf])}), allow_nan=False)
    read = json.loads(written)
    assert read["array"] == [1.5, None]
    if isinstance(value, float):
        assert read["value"] == (value if math.isfinite(value) else None)
    assert plain(read) == read


def test_the_processor_is_named(tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n")
    assert processor(path) == "Some CPU @ 2 GHz"
    path.write_text("processor\t: 0\nCPU part\t: 0xd0c\n")
    assert processor(path) == "Neoverse N1"
    path.write_text("CPU part\t: 0x123\n")
    assert "0x123" in processor(path)
    assert processor(tmp_path / "missing")
