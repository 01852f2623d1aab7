"""The walk through the code in CONTRIBUTING.md names what is there, in the order of the calls."""

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import tempering
from tempering import LatentDirichletAllocation

ROOT = Path(__file__).parents[2]
PACKAGE = Path(tempering.__file__).parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
NAMES = re.findall(r"`([\w-]+/[\w/.-]+\.(?:py|md))(?:::([\w.]+))?`", PAGE)
#: The calls from `fit` down to the kernels.
STEPS = re.search(r"^Down:$(.*?)^Back:", PAGE, re.MULTILINE | re.DOTALL)[1]


def defined(file):
    """Functions, classes, their methods, and constants of a file."""
    names = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{part.name}" for part in node.body if hasattr(part, "name")}
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMES)))
def test_the_names_are_there(file, name):
    path = next((p for p in (PACKAGE / file, ROOT / file, ROOT / "src" / file) if p.exists()), None)
    assert path is not None, f"there is no {file}"
    assert not name or name in defined(path), f"{file} has no {name}"


def calls_down_to(last, options):
    """The calls within the package that a fit is in when it first calls ``last`` by the kernel."""
    found = []

    def watch(frame, event, _):
        if event != "call" or frame.f_code.co_qualname != last:
            return
        calls = []
        while frame is not None:
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(PACKAGE):
                calls.append((file.relative_to(PACKAGE).as_posix(), frame.f_code.co_qualname))
            frame = frame.f_back
        found.append(calls[::-1])

    X = np.random.default_rng(0).poisson(0.5, size=(40, 20))
    lda = LatentDirichletAllocation(2, max_iter=1, n_jobs=1, random_state=0, **options)
    sys.setprofile(watch)
    try:
        lda.fit(X)
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize(
    ("options", "solver", "other"),
    [({}, "sample_topics", "e_step"), ({"update": "mean"}, "e_step", "sample_topics")],
    ids=["default", "mean"],
)
def test_the_walk_is_that_of_a_fit(options, solver, other):
    # Each step of the walk, but for what it only mentions: classes, and compiled code.
    aside = {"Recipe", "LatentDirichlet", "ArraySource", "sample_documents", "fit_documents", other}
    named = re.findall(r"`([\w/]+\.py)::([\w.]+)`", STEPS)
    walk = [step for step in named if step[1] not in aside]
    calls = next(c for c in calls_down_to("in_blocks", options) if solver in {n for _, n in c})
    assert [call for call in calls if call in walk] == walk
