"""The pages of the reference, made from the lists of public names, so that none is forgotten."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import getdoc, isclass, isfunction, ismodule
from types import ModuleType

MARK = re.compile(r"<!-- reference: (?P<package>[\w.]+)(?P<inherited> inherited)? -->")
SUMMARY = "<!-- summary -->"


def public_names(package: ModuleType) -> list[str]:
    """Functions, classes and modules that a package offers."""
    return [
        name
        for name in package.__all__
        if isclass(value := getattr(package, name)) or isfunction(value) or ismodule(value)
    ]


def expand(markdown: str) -> str:
    """A page with the marks replaced by what stands for each public name."""
    if SUMMARY in markdown:
        markdown = markdown.replace(SUMMARY, summary())
    return MARK.sub(lambda mark: directives(mark["package"], bool(mark["inherited"])), markdown)


def directives(package: str, inherited: bool) -> str:
    """What mkdocstrings is to show."""
    options = "    options:\n      inherited_members: true\n" if inherited else ""
    names = public_names(import_module(package))
    return "\n".join(f"::: {package}.{name}\n{options}" for name in names)


def summary() -> str:
    """A table of what ``import tempering`` offers."""
    tempering = import_module("tempering")
    rows = ["| name | what it is |", "|---|---|"]
    for name in public_names(tempering):
        value = getattr(tempering, name)
        first = (getdoc(value) or "").splitlines()[0].replace("|", "\\|")
        rows.append(f"| [`{name}`][{home(name)}] | {re.sub(r':[a-z]+:', '', first)} |")
    return "\n".join(rows)


def home(name: str) -> str:
    """The full name under which a public name of the package is documented."""
    homes = import_module("tempering")._HOMES
    return f"{homes[name]}.{name}"
