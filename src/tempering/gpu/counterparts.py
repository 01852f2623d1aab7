"""A model and its counterpart on a device: the same attributes, with two sets of methods."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

Own = TypeVar("Own")
Other = TypeVar("Other")


def counterpart(model: Any, kind: type[Other], **more: Any) -> Other:
    """The model as one of another class of its family, with all that it has learned.

    Its attributes are shared, not copied; ``more`` are those that only the new class has.

    >>> class Plain:
    ...     size = 1
    >>> class Fast(Plain):
    ...     pass
    >>> plain = Plain()
    >>> plain.size = 3
    >>> counterpart(plain, Fast).size
    3
    """
    made = kind.__new__(kind)
    vars(made).update(vars(model), **more)
    return made


def with_attributes_of(other: Any, model: Own) -> Own:
    """A copy of the model, with all that its counterpart has learned since it was made of it."""
    made = copy(model)
    vars(made).update((name, getattr(other, name)) for name in vars(model))
    return made
