"""Trees of arrays and plain values on disk: arrays as safetensors, the rest as JSON.

A tree is made of None, booleans, integers (of 64 bits), floats, strings, NumPy arrays and scalars,
and of lists, tuples, sets and dictionaries (with strings as keys) of these. It comes back with the
same types and the same bits. What JSON lacks stands there as an object with one key that begins
with ``$``:

    {"$array": {"name": "state.posterior.weights", "dtype": "float64", "shape": [3], …}}

Reading runs no code. Every array is held against the type, the shape and the checksum that the JSON
part tells of it, and whatever is wrong with a file is a :class:`StorageError` that names it.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tempering.storage.atomic import atomic_file

#: The key of a safetensors file's metadata that holds the JSON part of its tree.
METADATA_KEY = "tempering"

#: Kinds of arrays that are stored: booleans, integers, floats.
NUMERIC = "biuf"

#: Types of NumPy scalars that are stored.
SCALARS = ("bool", "int32", "int64", "float32", "float64")

Arrays = dict[str, NDArray[Any]]


class StorageError(ValueError):
    """A file is missing, damaged, too new or not what it should be; or a value cannot be stored.

    Examples
    --------
    >>> import tempering
    >>> try:
    ...     tempering.load("no such model")
    ... except tempering.StorageError as error:
    ...     print(type(error).__name__)
    StorageError
    """


def flatten(tree: Any) -> tuple[Any, Arrays]:
    """A tree as JSON values, and its arrays under the names by which these refer to them."""
    arrays: Arrays = {}
    return _to_json(tree, "", arrays), arrays


def unflatten(value: Any, arrays: Arrays) -> Any:
    """The tree that :func:`flatten` was given; arrays are checked against what is told of them.

    They are taken out of ``arrays``.
    """
    if isinstance(value, list):
        return [unflatten(entry, arrays) for entry in value]
    if isinstance(value, int) and not _is_integer(value):
        raise StorageError(f"a number is damaged: {_short(value)}.")
    if not isinstance(value, dict):
        return value
    if not any(key.startswith("$") for key in value):
        return {key: unflatten(entry, arrays) for key, entry in value.items()}
    ((key, entry),) = value.items() if len(value) == 1 else [("", None)]
    if key == "$array" and isinstance(entry, dict):
        return _checked_array(entry, arrays)
    if key == "$tuple" and isinstance(entry, list):
        return tuple(unflatten(part, arrays) for part in entry)
    if key == "$set" and isinstance(entry, list) and all(isinstance(part, str) for part in entry):
        return set(entry)
    if key == "$float" and entry in ("nan", "inf", "-inf"):
        return float(entry)
    if key == "$scalar" and isinstance(entry, list) and len(entry) == 2:
        return _scalar(entry[0], unflatten(entry[1], arrays))
    raise StorageError(f"an entry is damaged: {_short(value)}.")


def _is_integer(value: Any) -> bool:
    """Whether it is an integer that the kernels, too, can hold."""
    return isinstance(value, int) and -(2**63) <= value < 2**63


def _to_json(tree: Any, name: str, arrays: Arrays) -> Any:
    if tree is None or isinstance(tree, bool | str) or _is_integer(tree):
        return tree
    if isinstance(tree, float) and not isinstance(tree, np.generic):
        return tree if math.isfinite(tree) else {"$float": str(tree)}
    if isinstance(tree, np.generic) and tree.dtype.name in SCALARS:
        return {"$scalar": [tree.dtype.name, _to_json(tree.item(), name, arrays)]}
    if isinstance(tree, np.ndarray):
        return _stored_array(tree, name, arrays)
    if isinstance(tree, list | tuple):
        parts = [_to_json(part, f"{name}.{i}", arrays) for i, part in enumerate(tree)]
        return parts if isinstance(tree, list) else {"$tuple": parts}
    if isinstance(tree, set | frozenset) and all(isinstance(part, str) for part in tree):
        return {"$set": sorted(tree)}
    if isinstance(tree, dict) and not any(
        not isinstance(key, str) or key.startswith("$") for key in tree
    ):
        return {key: _to_json(part, f"{name}.{key}", arrays) for key, part in tree.items()}
    raise StorageError(f"{name.lstrip('.') or 'the value'} cannot be stored: {_short(tree)}.")


def _stored_array(array: Any, name: str, arrays: Arrays) -> dict[str, Any]:
    """What the JSON part tells of an array. Its order of memory counts: sums depend on it."""
    if array.dtype.kind not in NUMERIC or array.dtype.itemsize > 8:
        raise StorageError(f"{name.lstrip('.')} cannot be stored: an array of {array.dtype}.")
    name = name.lstrip(".") or "value"
    by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
    stored = np.asarray(array.T if by_columns else array, order="C")
    arrays[name] = stored
    told: dict[str, Any] = {
        "name": name,
        "dtype": stored.dtype.name,
        "shape": list(array.shape),
        "crc32": _checksum(stored),
    }
    if by_columns:
        told["by_columns"] = True
    return {"$array": told}


def _checked_array(told: dict[str, Any], arrays: Arrays) -> Any:
    name = told.get("name")
    if not isinstance(name, str) or name not in arrays:
        raise StorageError(f"the array {name!r} is missing.")
    array = arrays[name]
    by_columns = told.get("by_columns") is True
    shape = list(array.shape[::-1] if by_columns else array.shape)
    found = [array.dtype.name, shape, _checksum(array)]
    expected = [told.get("dtype"), told.get("shape"), told.get("crc32")]
    for what, here, there in zip(("type", "shape", "checksum"), found, expected):
        if here != there:
            raise StorageError(
                f"the array {name!r} is damaged: its {what} is {here}, and should be {there}."
            )
    # Each is told of once; a file that tells of a large one again and again would take for ever.
    del arrays[name]
    return array.T if by_columns else array


def _scalar(kind: Any, value: Any) -> Any:
    """A NumPy scalar; it is no plain number, for with arrays of float32 its type counts."""
    right = kind in SCALARS and isinstance(value, bool | int | float)
    try:
        scalar = np.dtype(kind).type(value) if right else None
    except (OverflowError, ValueError):
        scalar = None
    if scalar is None:
        raise StorageError(f"a number is damaged: {_short(value)} as {kind!r:.20}.")
    return scalar


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(array.reshape(-1).view(np.uint8).data)


def write_arrays(path: Path, arrays: Arrays, note: str = "") -> None:
    """Write a safetensors file, with a note in its header; not atomic by itself."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(arrays, path, metadata={METADATA_KEY: note} if note else None)
        # The library makes files that only their owner may read.
        path.chmod(mode)
    except SafetensorError as error:
        # The library tells the system's error only in words; a full disk is to be known by number.
        number = re.search(r"(?:os error|Os { code:) (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), str(error)) from error


def read_arrays(path: Path) -> tuple[Arrays, str]:
    """The arrays of a safetensors file, writable, and the note."""
    from safetensors import SafetensorError, safe_open

    with naming(path):
        if not path.is_file():
            raise StorageError("it is missing.")
        try:
            with safe_open(path, framework="numpy") as file:
                note = (file.metadata() or {}).get(METADATA_KEY, "")
                arrays = {name: _owned(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise StorageError(f"it is damaged, or no safetensors file: {error}") from None
    return arrays, note


def _owned(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.flags.writeable and array.flags.aligned else array.copy()


def write_tree(path: str | os.PathLike[str], tree: Any) -> None:
    """Write a tree to one file, atomically: a safetensors file with the JSON part in its header."""
    value, arrays = flatten(tree)
    text = json.dumps(value, allow_nan=False)
    with atomic_file(path) as aside:
        write_arrays(aside, arrays, f"{zlib.crc32(text.encode()):08x} {text}")


def read_tree(path: str | os.PathLike[str]) -> Any:
    """Read what :func:`write_tree` wrote."""
    path = Path(path)
    arrays, note = read_arrays(path)
    checksum, _, text = note.partition(" ")
    with naming(path):
        if f"{zlib.crc32(text.encode()):08x}" != checksum:
            raise StorageError("it is damaged: its header has not the content that was written.")
        return unflatten(parse_json(text), arrays)


def parse_json(text: str | bytes) -> Any:
    """JSON as values; nothing but :class:`StorageError` for anything else."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"it is not JSON: {error}") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON.")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the name of a file before the message of a storage error."""
    try:
        yield
    except StorageError as error:
        raise type(error)(f"{path}: {error}") from None
    except RecursionError:
        raise StorageError(f"{path}: it is damaged: nested too deep.") from None


@contextmanager
def damage() -> Iterator[None]:
    """What goes wrong with content that should be otherwise is a storage error."""
    try:
        yield
    except StorageError:
        raise
    except (
        TypeError,
        ValueError,
        KeyError,
        IndexError,
        AttributeError,
        ArithmeticError,
        OSError,
    ) as error:
        raise StorageError(f"it is damaged: {error}") from None


def _short(value: Any) -> str:
    text = f"{type(value).__name__} {value!r}"
    return text if len(text) <= 80 else text[:77] + "..."
