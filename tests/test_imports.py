"""Imports point one way: a room may use those that stand before it, and no others."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
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
    "search": {"storage", "models", "temperature", "inference"},
    "corpus": {"storage", "families", "models", "inference"},
    "datasets": {"storage", "models", "corpus"},
    "evaluation": {"families", "models"},
    "blackbox": {"models", "temperature"},
    "gpu": {"storage", "families", "models", "temperature", "inference"},
    "cluster": {"storage", "families", "models", "temperature", "inference"},
    "estimators": {
        "storage",
        "families",
        "models",
        "temperature",
        "inference",
        "search",
        "evaluation",
        "gpu",
    },
    "plots": {"families", "models", "inference", "search", "evaluation", "estimators"},
    "workbench": {"models", "inference", "evaluation", "estimators", "plots"},
    "report": {"storage", "models", "inference", "evaluation", "estimators", "workbench"},
    "cli": {
        "storage",
        "models",
        "temperature",
        "inference",
        "corpus",
        "datasets",
        "evaluation",
        "cluster",
        "estimators",
        "plots",
        "report",
        "workbench",
    },
}

#: Heavy or optional packages that must load only when they are used.
LAZY = {
    *("matplotlib", "jax", "numpyro", "optax", "dask", "distributed"),
    *("pyarrow", "pooch", "arviz"),
    *("numba", "llvmlite"),
}

#: A room whose files are all of an optional package: its ``__init__`` loads without it, or says
#: what to install.
LOADED_ON_USE = {"blackbox": {"jax", "numpyro", "optax"}, "cluster": {"dask", "distributed"}}


@cache
def parsed(path):
    return ast.parse(path.read_text())


def walk_outside_functions(node):
    """Every node that runs when the file is loaded."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from walk_outside_functions(child)


@cache
def imported_modules(path):
    """(module, whether it loads with the file) of every import in a file."""
    tree = parsed(path)
    top_level = set(walk_outside_functions(tree))
    modules = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [(alias.name, node in top_level) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports out in full"
            modules.append((node.module, node in top_level))
    return modules


FILES = sorted(SOURCE.rglob("*.py"))


def test_every_room_is_known():
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(ALLOWED)


def test_imports_point_one_way():
    wrong = [
        f"{path.relative_to(SOURCE)} may not import {module}"
        for path in FILES
        if path.parent != SOURCE
        for module, _ in imported_modules(path)
        if module.startswith("tempering.")
        if module.split(".")[1] not in {room_of(path), *ALLOWED[room_of(path)]}
    ]
    assert wrong == []


def room_of(path):
    return path.relative_to(SOURCE).parts[0]


def test_optional_packages_load_on_use():
    at_once = [
        f"{path.relative_to(SOURCE)} imports {module}"
        for path in FILES
        for module, with_file in imported_modules(path)
        if with_file and module.split(".")[0] in lazy_in(path)
    ]
    assert at_once == []


def lazy_in(path):
    """What a file must not load at once."""
    if path.name == "__init__.py":
        return LAZY
    return LAZY - LOADED_ON_USE.get(path.parent.name, set())


def module_name(path, source):
    """The name under which a file is imported; of a package's ``__init__``, that of the package."""
    parts = [source.name, *path.relative_to(source).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_nodes(node, for_types=False):
    """(import, whether it is for the type checker alone) of a tree, in functions too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, for_types
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            yield from import_nodes(ast.Module(child.body, []), for_types=True)
            yield from import_nodes(ast.Module(child.orelse, []), for_types)
        else:
            yield from import_nodes(child, for_types)


def import_graph(source, with_types):
    """Each file of a package with those that it imports, wherever in it that is.

    With types, also what it imports for the type checker; but for files that are the lists of a
    package's names, which load on use.
    """
    files = {module_name(path, source): path for path in source.rglob("*.py")}
    graph = {name: set() for name in files}
    for name, path in files.items():
        for node, for_types in import_nodes(parsed(path)):
            if for_types and (not with_types or path.name == "__init__.py"):
                continue
            for alias in node.names:
                parent = getattr(node, "module", None)
                full = f"{parent}.{alias.name}" if parent else alias.name
                graph[name] |= {full if full in files else parent} & (files.keys() - {name})
    return graph


def find_cycle(graph):
    """The files of one cycle, or None."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


@pytest.mark.parametrize("with_types", [False, True])
def test_no_file_imports_itself_by_way_of_others(with_types):
    assert find_cycle(import_graph(SOURCE, with_types)) is None


@pytest.mark.parametrize(
    ("first", "runtime"),
    [
        ("from package.second import name", True),
        ("def use():\n    from package import second", True),
        ("if TYPE_CHECKING:\n    from package.second import name", False),
    ],
)
def test_a_cycle_of_files_is_found(tmp_path, first, runtime):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text(first)
    (package / "second.py").write_text("import package.first")
    assert bool(find_cycle(import_graph(package, with_types=False))) == runtime
    cycle = find_cycle(import_graph(package, with_types=True))
    assert cycle is not None
    assert set(cycle) == {"package.first", "package.second"}


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


def test_classes_load_what_they_need():
    """Numba with the first kernel that runs, and nothing that only other classes need."""
    code = (
        "import sys; from tempering import BayesianGaussianMixture, LatentDirichletAllocation; "
        "BayesianGaussianMixture(2).fit([[0.0], [0.1], [5.0], [5.1]]); "
        "heavy = {'numba', 'llvmlite', 'jax', 'matplotlib', 'typer', 'dask', "
        "'tempering.gpu.device_lda', 'tempering.estimators.hmms', 'tempering.workbench'}; "
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


def test_rooms_are_there_without_an_import_of_their_own():
    code = "import tempering; print(tempering.models.Start.__name__)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "Start\n"
    assert {*ALLOWED} - {"cli"} <= {*tempering._ROOMS}
