"""The code in the documentation runs."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import tempering

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md"])


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), namespace)


def test_the_own_model_is_short_and_right():
    blocks = python_blocks(ROOT / "docs" / "own-model.md")
    lines = [
        line for line in blocks[0].splitlines() if line.strip() and not line.strip().startswith("#")
    ]
    assert len(lines) < 60
    namespace = {}
    exec("\n".join(blocks[:2]), namespace)
    for name, result in namespace["results"].items():
        means = np.sort(result.posterior.rates[:, 1] / result.posterior.rates[:, 0])
        np.testing.assert_allclose(means, [0.05, 1.0, 20.0], rtol=0.2, err_msg=name)
        assert result.history[-1].temperature == 1.0


MODULES = [
    module.name
    for module in pkgutil.walk_packages(tempering.__path__, "tempering.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
