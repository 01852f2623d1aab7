"""A model and its counterpart on a device are one object with two sets of methods."""

from __future__ import annotations

from typing import Any, TypeVar

Kind = TypeVar("Kind")


def recast(model: Any, kind: type[Kind], **more: Any) -> Kind:
    """The model as one of another class of its family, with all that it has learned.

    Its attributes are shared, not copied; ``more`` are those that only the new class has.

    >>> class Plain:
    ...     size = 1
    >>> class Fast(Plain):
    ...     pass
    >>> plain = Plain()
    >>> plain.size = 3
    >>> recast(plain, Fast).size
    3
    """
    made = kind.__new__(kind)
    vars(made).update(vars(model), **more)
    return made
