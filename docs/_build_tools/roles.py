"""Roles of docstrings, such as ``:class:`Model```, as links of Markdown."""

from __future__ import annotations

import inspect
import re

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?(?P<name>[^`]+)`")


class Roles(griffe.Extension):
    """Rewrites the docstrings of all objects before they are shown."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: object) -> None:
        if obj.docstring is None and obj.is_class and obj.is_public:
            # Some classes put theirs together from parts, which only Python itself can read.
            made = inspect.getdoc(griffe.dynamic_import(obj.path))
            obj.docstring = griffe.Docstring(made, parent=obj) if made else None
        if obj.docstring:
            obj.docstring.value = ROLE.sub(as_code, obj.docstring.value)


def as_code(role: re.Match[str]) -> str:
    """The name as code; the last part alone where it is a full name."""
    name = role["name"]
    return f"`{name.rsplit('.', 1)[-1] if name.startswith(('tempering.', 'sklearn.')) else name}`"
