"""State on disk: a directory with the arrays in ``model.safetensors``, all else in ``config.json``.

A tree is made of what JSON has, of integers of 64 bits, NumPy arrays and scalars, tuples, sets, and
objects of classes with ``@stored("name")`` before them; it comes back with the same types and the
same bits. What JSON lacks stands there as an object with one key that begins with ``$``:

    {"$array": "posterior.weights"}, {"$float32": 0.5}, {"$tuple": [1, 2]}, {"$heat": {…}}

Of an object the arguments of its constructor are stored. Those of a file are held against the types
that it declares, and it is called with them, so that its checks are those of the file. Objects of
no other classes are ever made: reading runs no code. Both files are held against their checksums.
"""

import json
import math
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from inspect import signature
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from tempering import __version__
from tempering.storage.atomic import atomic_directory

ARRAYS, CONFIG = "model.safetensors", "config.json"

FORMAT = 1

Arrays = dict[str, NDArray[Any]]

Class = TypeVar("Class", bound=type)

#: What content that should be otherwise may make Python raise.
WRONG = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


class StorageError(ValueError):
    """A file is missing, damaged, too new or not what it should be; or a value cannot be stored."""


def expect(condition: Any, message: str) -> None:
    """Raise :class:`StorageError` unless the condition holds."""
    if not condition:
        raise StorageError(message)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever goes wrong with the content of a file is a storage error that names it."""
    try:
        yield
    except StorageError as error:
        raise type(error)(f"{path}: {error}") from None
    except (*WRONG, OSError, RecursionError, SafetensorError) as error:
        raise StorageError(f"{path}: it is damaged: {error}") from None


def short(value: Any) -> str:
    """A value with its type, on one line."""
    text = f"{type(value).__name__} {value!r}"
    return text if len(text) <= 80 else text[:77] + "..."


#: NumPy scalars that are stored: with arrays of float32, say, the type of a number counts.
SCALARS = (np.bool_, np.int32, np.int64, np.float32, np.float64)

#: Types by what they are called in a file, and by what is taken of a value to be stored.
TAKEN: dict[type, tuple[str, Callable[[Any], Any]]] = {
    tuple: ("tuple", list),
    **{scalar: (scalar.__name__, scalar.item) for scalar in SCALARS},
}

#: Names in a file with the type of what stands under them, and what makes a value of that.
MADE: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "tuple": (list, tuple),
    "set": (list[str], set),
    "names": (list[str], partial(np.array, dtype=object)),
    "float": (Literal["nan", "inf", "-inf"], float),
    **{scalar.__name__: (bool | int | float, scalar) for scalar in SCALARS},
}


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

        TAKEN[cls], MADE[name] = (name, take or take_fields), (dict, make or make_object)
        return cls

    return register


def declared(cls: Any) -> dict[str, Any]:
    """The arguments of a constructor, with their types."""
    by_fields = hasattr(cls, "__dataclass_fields__") or issubclass(cls, tuple)
    hints = get_type_hints(cls if by_fields else cls.__init__)
    return {name: hints.get(name, Any) for name in signature(cls).parameters}


def check_types(parts: Mapping[str, Any], hints: Mapping[str, Any] | type) -> None:
    """Raise unless there are values of these names and types, or of a class, and no others."""
    hints = declared(hints) if isinstance(hints, type) else hints
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
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf":
            return False
        scalar: Any = np.number
        if inner:
            scalar = inner[0] if kind is NDArray else get_args(inner[1])[0]
        right = not isinstance(scalar, type) or issubclass(value.dtype.type, scalar)
        return right and bool(np.isfinite(value).all())
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


def write_tree(path: str | os.PathLike[str], kind: str, tree: Any) -> None:
    """Write a tree into a directory, which appears whole or not at all."""
    arrays: Arrays = {}
    content = to_json(tree, "", arrays)
    whole = {"format": FORMAT, "package": __version__, "kind": kind, "content": content}
    whole["arrays"] = checksum_of_arrays(arrays)
    whole["checksum"] = checksum(whole)
    with atomic_directory(path) as folder:
        (folder / CONFIG).write_text(json.dumps(whole, allow_nan=False, indent=1))
        write_arrays(folder / ARRAYS, arrays)


def read_tree(path: str | os.PathLike[str], kind: str) -> Any:
    """Read what :func:`write_tree` wrote."""
    config, file = Path(path, CONFIG), Path(path, ARRAYS)
    with reading(config):
        expect(config.is_file(), f"it is missing: is {path} a {kind} that was saved?")
        whole = _described(config.read_bytes(), kind)
    with reading(file):
        arrays = read_arrays(file)
        right = whole["arrays"] == checksum_of_arrays(arrays)
        expect(right, "it has not the arrays that were written: it is damaged.")
    with reading(config):
        return from_json(whole["content"], arrays)


def _described(text: str | bytes, kind: str) -> dict[str, Any]:
    """A JSON part, held against its checksum."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"it is damaged, and not JSON: {error}") from None
    expect(isinstance(whole, dict) and "format" in whole, f"it is no {kind}.")
    expect(
        whole["format"] == FORMAT,
        f"it has format {whole['format']!r:.20}, and this version of tempering, {__version__}, "
        f"reads format {FORMAT}: use the version that wrote it, {whole.get('package')!s:.20}.",
    )
    marks = {"format", "package", "kind", "content", "arrays", "checksum"}
    right = whole.keys() == marks and whole["kind"] == kind
    expect(right, f"it is no {kind}: entries are missing, or too many, or it is something else.")
    expect(
        whole.pop("checksum") == checksum(whole),
        "it has not the content that was written: it is damaged, or was edited. (Parameters of a "
        "model can be changed with set_params after loading.)",
    )
    return whole


def checksum(whole: dict[str, Any]) -> int:
    """The checksum of a JSON part without it."""
    return zlib.crc32(json.dumps(whole, sort_keys=True).encode())


def checksum_of_arrays(arrays: Arrays) -> int:
    """The checksum of arrays with their names, types and shapes."""
    total = 0
    for name, array in sorted(arrays.items()):
        total = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), total)
        total = zlib.crc32(array.reshape(-1).view(np.uint8).data, total)
    return total


def to_json(tree: Any, name: str, arrays: Arrays) -> Any:
    """A tree as JSON values; its arrays are put under the names by which these refer to them."""
    if tree is None or isinstance(tree, bool | str) or _is_integer(tree):
        return tree
    if type(tree) in TAKEN:
        kind, take = TAKEN[type(tree)]
        return {f"${kind}": to_json(take(tree), name, arrays)}
    if isinstance(tree, float):
        return tree if math.isfinite(tree) else {"$float": str(tree)}
    if hasattr(type(tree), "__array__"):  # that of a device comes to the host
        return _array_to_json(np.asarray(tree), name.lstrip(".") or "value", arrays)
    if type(tree) is list:
        return [to_json(part, f"{name}.{i}", arrays) for i, part in enumerate(tree)]
    if isinstance(tree, set | frozenset) and all(isinstance(part, str) for part in tree):
        return {"$set": sorted(tree)}
    if type(tree) is dict and all(isinstance(k, str) and not k.startswith("$") for k in tree):
        return {key: to_json(part, f"{name}.{key}", arrays) for key, part in tree.items()}
    problem = f"{name.lstrip('.') or 'the value'} cannot be stored: {short(tree)}."
    if type(tree).__module__ != "builtins":
        problem += ' Put @tempering.inference.stored("a name") before its class.'
    raise StorageError(problem)


def _array_to_json(array: NDArray[Any], name: str, arrays: Arrays) -> dict[str, Any]:
    """What stands for an array. Its order of memory counts: sums depend on it."""
    if array.dtype == object and array.ndim == 1 and all(isinstance(n, str) for n in array):
        return {"$names": [str(word) for word in array]}
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise StorageError(f"{name} cannot be stored: an array of {array.dtype}.")
    by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
    arrays[name] = np.asarray(array.T if by_columns else array, order="C")
    return {"$array_by_columns" if by_columns else "$array": name}


def from_json(value: Any, arrays: Arrays) -> Any:
    """The tree that :func:`to_json` was given; arrays are taken out of ``arrays``."""
    if isinstance(value, list):
        return [from_json(entry, arrays) for entry in value]
    if isinstance(value, int) and not _is_integer(value):
        raise StorageError(f"a number is damaged: {short(value)}.")
    if not isinstance(value, dict):
        return value
    if not any(key.startswith("$") for key in value):
        return {key: from_json(entry, arrays) for key, entry in value.items()}
    expect(len(value) == 1, f"an entry is damaged: {short(value)}.")
    ((key, entry),) = value.items()
    if key in ("$array", "$array_by_columns") and isinstance(entry, str):
        expect(entry in arrays, f"the array {entry!r} is missing.")
        # Each stands once; a file that names a large one again and again would take for ever.
        return arrays.pop(entry) if key == "$array" else arrays.pop(entry).T
    name, content = key[1:], from_json(entry, arrays)
    expect(name in MADE, f"an object {name!r:.40} is not known, or damaged.")
    kind, make = MADE[name]
    try:
        expect(fits(content, kind), f"got {short(content)}.")
        return make(content)
    except WRONG as error:
        raise StorageError(f"an object {name!r} is damaged: {error}") from None


def _is_integer(value: Any) -> bool:
    """Whether it is an integer that the kernels, too, can hold."""
    return isinstance(value, int) and -(2**63) <= value < 2**63


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write a safetensors file; not atomic by itself."""
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(arrays, path)
        # The library makes files that only their owner may read.
        path.chmod(mode)
    except SafetensorError as error:
        # The library tells the system's error only in words; a full disk is to be known by number.
        number = re.search(r"(?:os error|Os { code:) (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), str(error)) from error


def read_arrays(path: Path) -> Arrays:
    """The arrays of a safetensors file, writable."""
    expect(path.is_file(), "it is missing.")
    arrays = load_file(path)
    return {name: np.require(array, requirements=["A", "W"]) for name, array in arrays.items()}
