"""Docstrings out of the source files of a package, without importing it."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from tempering.corpus import Document

WORD = re.compile(r"[A-Za-z]{2,}")
#: Directories that hold tests, or other projects' code.
PASSED_OVER = {"tests", "test", "_tests", "testing", "_vendor", "vendored", "externals"}
#: A file without any of these holds no docstring, and need not be parsed.
QUOTES = (b'"""', b"'''")
#: numpy and scipy give docstrings to compiled functions in calls of this.
ADD_DOCSTRING = "add_newdoc"
#: Statements that may hold definitions, besides classes.
BRANCHES = (ast.If, ast.Try, ast.With, ast.ExceptHandler)


def package_directory(package: str) -> Path | None:
    """Where a package is installed; None if it is not, or is a single file."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def docstrings(package: str, directory: Path, least_words: int) -> Iterator[Document]:
    """The docstrings of modules, classes and functions, in the order of the source.

    Parameters
    ----------
    package : str
        Its name, with which the names of documents begin.
    directory : Path
        Where its source files are.
    least_words : int
        Shorter docstrings are left out.
    """
    for path in sorted(directory.rglob("*.py")):
        parts = path.relative_to(directory).with_suffix("").parts
        if PASSED_OVER.intersection(parts) or any(part.startswith("test_") for part in parts):
            continue
        source = path.read_bytes()
        if not any(quotes in source for quotes in QUOTES):
            continue
        try:
            tree = ast.parse(source)
        # Templates and files for other versions of Python.
        except (SyntaxError, ValueError):
            continue
        module = ".".join([package, *(part for part in parts if part != "__init__")])
        for document in _in_scope(tree, module):
            if len(WORD.findall(document.text)) >= least_words:
                yield document


def _in_scope(node: ast.AST, name: str) -> Iterator[Document]:
    """The docstring of a module, class or function, and of those defined in it."""
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        text = ast.get_docstring(node)
        if text:
            yield Document(name, text)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _in_scope(child, f"{name}.{child.name}")
        elif isinstance(child, BRANCHES):
            yield from _in_scope(child, name)
        elif isinstance(child, ast.Expr) and isinstance(child.value, ast.Call):
            yield from _added(child.value, name)


def _added(call: ast.Call, module: str) -> Iterator[Document]:
    """The docstring that a call gives to a compiled function."""
    function = getattr(call.func, "id", getattr(call.func, "attr", None))
    if function != ADD_DOCSTRING:
        return
    texts = [
        part.value
        for argument in call.args
        for part in ast.walk(argument)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    if len(texts) >= 2:
        names = [part for part in texts[:-1] if part.replace(".", "").isidentifier()]
        if texts[0].split(".")[0] != module.split(".")[0]:
            names = [module.rpartition(".")[0], *names[:1]]
        yield Document(".".join(names), max(texts, key=len))
