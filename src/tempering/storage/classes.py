"""The classes whose objects can be stored: ``@stored("name")`` before a class is all that it takes.

Stored are the arguments of its constructor, from the attributes of the same names. Of a file they
are held against the types that the constructor declares, and it is called with them, so that its
checks are those of the file. Objects of no other classes are ever made.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempering.storage.errors import WRONG, StorageError, expect, short

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class Form:
    """How the objects of one class are stored."""

    name: str
    take: Callable[[Any], dict[str, Any]]
    make: Callable[[dict[str, Any]], Any]


FORMS: dict[type, Form] = {}
_BY_NAME: dict[str, Form] = {}


def stored(
    name: str,
    *,
    attributes: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
    constructed: bool = True,
    take: Callable[[Any], dict[str, Any]] | None = None,
    make: Callable[[dict[str, Any]], Any] | None = None,
) -> Callable[[Class], Class]:
    """Let objects of a class be stored in checkpoints and models; subclasses are not included.

    Parameters
    ----------
    name : str
        What the class is called in a file.
    attributes : mapping, optional
        Attributes that are stored besides, with their types; they are set as they are.
    without : sequence of str
        Arguments of the constructor that are not stored, and have defaults.
    constructed : bool
        Whether the constructor is called; if not, an object is made of its ``attributes`` alone.
    take, make : callable, optional
        From an object to a dictionary of what is to be stored, and back, where these rules do not
        do.

    Examples
    --------
    >>> from tempering.inference import stored
    >>> @stored("example.Rates")
    ... class Rates:
    ...     def __init__(self, values):
    ...         self.values = values
    """
    more = dict(attributes or {})

    def register(cls: Class) -> Class:
        @lru_cache
        def arguments() -> dict[str, Any]:
            known = declared(cls) if constructed else {}
            return {field: hint for field, hint in known.items() if field not in without}

        def take_fields(value: Any) -> dict[str, Any]:
            try:
                return {field: getattr(value, field) for field in (*arguments(), *more)}
            except AttributeError as error:
                problem = f"{cls.__name__} has no attribute {error.name!r}, which its constructor"
                raise StorageError(f"{problem} takes: pass take and make to `stored`.") from error

        def make_object(parts: dict[str, Any]) -> Any:
            check_types(parts, {**arguments(), **more})
            given = {field: parts[field] for field in arguments()}
            made: Any = cls(**given) if constructed else object.__new__(cls)
            if not isinstance(made, tuple):
                # What the constructor has normalised once it would normalise again.
                exact = {f: v for f, v in given.items() if isinstance(v, np.ndarray | np.generic)}
                for field in (*exact, *more):
                    object.__setattr__(made, field, parts[field])
            return made

        FORMS[cls] = _BY_NAME[name] = Form(name, take or take_fields, make or make_object)
        return cls

    return register


def make_object(name: str, parts: Any) -> Any:
    """The object of a file, by the name of its class and what was stored of it."""
    expect(name in _BY_NAME and isinstance(parts, dict), f"an object {name!r:.40} is not known.")
    try:
        return _BY_NAME[name].make(parts)
    except WRONG as error:
        raise StorageError(f"an object {name!r} is damaged: {error}") from None


def declared(cls: Any) -> dict[str, Any]:
    """The arguments of a constructor, with their types."""
    by_fields = hasattr(cls, "__dataclass_fields__") or issubclass(cls, tuple)
    hints = get_type_hints(cls if by_fields else cls.__init__)
    return {name: hints.get(name, Any) for name in signature(cls).parameters}


def check_types(parts: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Raise unless there are values of these names and types, and no others."""
    other = sorted(parts.keys() ^ hints.keys())
    expect(not other, f"{', '.join(other)!r:.60} is missing, or too much.")
    for name, hint in hints.items():
        told = getattr(hint, "__name__", hint)
        expect(fits(parts[name], hint), f"{name} must be of {told!s:.80}; got {short(parts[name])}")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; arrays of numbers must hold finite ones besides."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if hint == ArrayLike or kind in (np.ndarray, NDArray):
        # Whatever a constructor takes for an array, it keeps as one. NDArray is a type of its own
        # in newer versions of NumPy.
        scalar: Any = np.number
        if inner:
            scalar = inner[0] if kind is NDArray else get_args(inner[1])[0]
        known = isinstance(scalar, type) and isinstance(value, np.ndarray)
        numbers = isinstance(value, np.ndarray) and value.dtype.kind in "iuf"
        right = not known or issubclass(value.dtype.type, scalar)
        return bool(numbers and right and np.isfinite(value).all())
    if kind in (Union, UnionType):
        return any(fits(value, part) for part in inner)
    if kind is Literal:
        return isinstance(value, str | None) and value in inner
    if kind is tuple and inner and inner[-1] is not Ellipsis:
        right = isinstance(value, tuple) and len(value) == len(inner)
        return right and all(map(fits, value, inner))
    if inner and isinstance(kind, type) and issubclass(kind, Collection):
        return isinstance(value, kind) and all(fits(part, inner[0]) for part in value)
    if kind is Callable:
        return callable(value)
    if kind in (int, float):
        number = (int, np.integer) if kind is int else (int, float, np.integer, np.floating)
        return isinstance(value, number) and not isinstance(value, bool)
    return isinstance(value, kind)
