"""The lists of mistakes fit the package and its tests, and a mistake that lives is told."""

import ast
import os
import subprocess
import sys
from functools import cache

import pytest

from mutants.run import HERE, PACKAGE, TESTS, read_changes

LISTS = sorted(HERE.glob("*.toml"))
ALIVE = """
[[change]]
what = "nothing but a word"
file = "temperature/schedules.py"
old = "Cooling schedules: plain functions of progress."
new = "Cooling schedules: functions of progress."
tests = ["temperature/test_schedules.py"]
"""
KILLED = """
[[change]]
what = "it runs backwards"
file = "temperature/schedules.py"
old = "return start + (end - start) * progress"
new = "return end + (start - end) * progress"
tests = ["temperature/test_schedules.py"]
"""


@cache
def names_in(file):
    """The tests of a file, as pytest names them but for parameters."""
    names = set()
    for node in ast.parse((TESTS / file).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{part.name}" for part in node.body if hasattr(part, "name")}
    return names


def test_each_change_has_its_place_and_its_tests():
    changes = read_changes(LISTS)
    assert len(changes) >= 100
    assert len({change.what for change in changes}) == len(changes)
    rooms = {change.file.partition("/")[0] for change in changes}
    assert rooms >= {"inference", "temperature", "families", "models", "evaluation", "estimators"}
    for change in changes:
        for test in change.tests:
            file, _, name = test.partition("[")[0].partition("::")
            assert not name or name in names_in(file), test
        ast.parse(change.applied((PACKAGE / change.file).read_text("utf-8")))


def test_a_list_that_no_longer_fits_is_told(tmp_path):
    path = tmp_path / "old.toml"
    path.write_text(ALIVE.replace("plain functions", "plane functions"))
    with pytest.raises(SystemExit, match="'nothing but a word': the old text must occur once"):
        read_changes([path])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each change is tried in a fork")
def test_a_change_that_no_test_notices_is_told(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(ALIVE + KILLED)
    command = [sys.executable, str(HERE / "run.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "1 of 2 changes killed" in done.stdout
    assert "alive: nothing but a word" in done.stdout
    assert "alive: it runs backwards" not in done.stdout
