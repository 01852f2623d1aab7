"""Imports point one way: a room may use those that stand before it, and no others."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tempering

SOURCE = Path(tempering.__file__).parent

#: Each room with the rooms it may import from, in the order of the architecture.
ALLOWED = {
    "storage": set(),
    "families": set(),
    "models": {"storage", "families"},
    "temperature": {"storage", "models"},
    "inference": {"storage", "families", "models", "temperature"},
    "corpus": {"storage", "families", "inference"},
    "datasets": {"storage", "corpus"},
    "evaluation": {"families", "models"},
    "gpu": {"storage", "families", "models", "temperature", "inference"},
    "cluster": {"storage", "families", "models", "temperature", "inference"},
    "estimators": {
        "storage",
        "families",
        "models",
        "temperature",
        "inference",
        "evaluation",
        "gpu",
    },
    "plots": {"inference", "evaluation", "estimators"},
    "report": {"storage", "inference", "evaluation", "estimators"},
    "cli": {
        "storage",
        "inference",
        "corpus",
        "datasets",
        "evaluation",
        "cluster",
        "estimators",
        "plots",
        "report",
    },
}

#: Heavy or optional packages that must load only when they are used.
LAZY = {"matplotlib", "jax", "dask", "distributed", "pyarrow", "pooch", "arviz", "pyLDAvis"}


def walk_outside_functions(node):
    """Every node that runs when the file is loaded."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from walk_outside_functions(child)


def imported_modules(path):
    """(module, whether it loads with the file) of every import in a file."""
    tree = ast.parse(path.read_text())
    top_level = set(walk_outside_functions(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in top_level) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports out in full"
            yield node.module, node in top_level


FILES = sorted(SOURCE.rglob("*.py"))


def test_every_room_is_known():
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(ALLOWED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    parts = path.relative_to(SOURCE).parts
    if len(parts) == 1:
        return
    room = parts[0]
    for module, _ in imported_modules(path):
        if module.startswith("tempering."):
            other = module.split(".")[1]
            assert other == room or other in ALLOWED[room], f"{room} may not import {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_optional_packages_load_on_use(path):
    for module, with_file in imported_modules(path):
        assert not (with_file and module.split(".")[0] in LAZY), f"{path} imports {module} at once"


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, tempering; "
        "heavy = {'numpy', 'scipy', 'numba', 'sklearn', 'matplotlib', 'rich', 'typer'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_every_public_name_exists():
    for name in tempering.__all__:
        assert getattr(tempering, name) is not None
    assert "fit" in dir(tempering)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tempering.nothing
