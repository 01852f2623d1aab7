"""The objects of a fit as trees of arrays and plain values, and back.

``pack`` knows a fixed list of classes, by a name of their own in the file; ``unpack`` makes objects
of these and of no others, and checks what it is given. A model of one's own with a posterior, or a
local step, of a new class adds it with :func:`make_portable`; the classes of this package are added
in ``portable_classes``, whence these functions are to be imported.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tempering.storage.tensors import StorageError, damage


class Codec(NamedTuple):
    """How one class is stored."""

    pack: Callable[[Any], dict[str, Any]]
    unpack: Callable[[dict[str, Any]], Any]


_NAMES: dict[type, str] = {}
_CODECS: dict[str, Codec] = {}


def make_portable(
    cls: type,
    name: str,
    pack: Callable[[Any], dict[str, Any]] = lambda value: dict(vars(value)),
    unpack: Callable[[dict[str, Any]], Any] | None = None,
) -> None:
    """Let objects of a class be stored in checkpoints and models.

    Parameters
    ----------
    cls : type
        The class; subclasses are not included.
    name : str
        What it is called in the file.
    pack : callable
        From an object to a dictionary of arrays, plain values and storable objects; by default its
        attributes.
    unpack : callable, optional
        From that dictionary to the object; by default the attributes are set as they are.

    Examples
    --------
    >>> from tempering.inference import make_portable
    >>> class Rates:
    ...     def __init__(self, values):
    ...         self.values = values
    >>> make_portable(Rates, "example.Rates")
    """
    _NAMES[cls] = name
    _CODECS[name] = Codec(pack, unpack or partial(_with_attributes, cls))


def pack(value: Any) -> Any:
    """A tree for :mod:`tempering.storage.tensors`, with objects as ``{"kind", "fields"}``."""
    if type(value) in _NAMES:
        kind = _NAMES[type(value)]
        return {"kind": kind, "fields": pack(_CODECS[kind].pack(value))}
    if type(value) in (list, tuple):
        return type(value)(pack(part) for part in value)
    if type(value) is dict:
        return {key: pack(part) for key, part in value.items()}
    return value


def unpack(tree: Any) -> Any:
    """What :func:`pack` was given."""
    if isinstance(tree, list | tuple):
        return type(tree)(unpack(part) for part in tree)
    if not isinstance(tree, dict):
        return tree
    if tree.keys() != {"kind", "fields"}:
        return {key: unpack(part) for key, part in tree.items()}
    kind, parts = tree["kind"], unpack(tree["fields"])
    if not isinstance(kind, str) or kind not in _CODECS or not isinstance(parts, dict):
        raise StorageError(f"an object of the kind {kind!r} is not known here.")
    try:
        with damage():
            return _CODECS[kind].unpack(parts)
    except StorageError as error:
        raise StorageError(f"an object of the kind {kind!r}: {error}") from None


def expect(condition: Any, message: str) -> None:
    """Raise :class:`StorageError` unless the condition holds."""
    if not condition:
        raise StorageError(message)


def expect_numbers(name: str, array: Any, shape: tuple[int, ...], dtype: str = "float64") -> None:
    """Raise unless it is an array of finite numbers of this shape and type."""
    right = isinstance(array, np.ndarray) and array.dtype == dtype and array.shape == shape
    told = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else repr(array)[:60]
    expect(right, f"{name} must be an array of {dtype} of shape {shape}; got {told}.")
    expect(np.isfinite(array).all(), f"{name} must be finite.")


def expect_count(name: str, value: Any, least: int = 0) -> None:
    """Raise unless it is an integer, and large enough."""
    right = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
    expect(right, f"{name} must be a number, {least} or more; got {value!r:.60}.")


def _with_attributes(cls: Any, attributes: dict[str, Any]) -> Any:
    made = cls.__new__(cls)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made
