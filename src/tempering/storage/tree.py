"""State on disk: arrays as safetensors, all else as JSON, in its header or in a file beside it.

A tree is made of what JSON has, of integers of 64 bits, NumPy arrays and scalars, objects of the
classes in :mod:`tempering.storage.classes`, tuples and sets; it comes back with the same types and
the same bits. What JSON lacks stands there as an object with one key that begins with ``$``:

    {"$array": {"name": "posterior.weights", "dtype": "float64", "shape": [3], "crc32": …}}

Reading runs no code. Arrays are held against their checksums, and the JSON part against its own;
whatever is wrong with a file is a :class:`StorageError` that names it.
"""

import json
import math
import os
import re
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tempering import __version__
from tempering.storage.atomic import atomic_file
from tempering.storage.classes import FORMS, make_object
from tempering.storage.errors import StorageError, expect, reading, short

FORMAT = 1

#: The key of a safetensors file's metadata that holds the JSON part of its tree.
METADATA_KEY = "tempering"

#: Types of NumPy scalars that are stored.
SCALARS = ("bool", "int32", "int64", "float32", "float64")

#: What to do about an object of another class.
STORED = ' Put @tempering.inference.stored("a name") before its class.'

Arrays = dict[str, NDArray[Any]]


def write_tree(
    path: str | os.PathLike[str], kind: str, tree: Any, config: Path | None = None
) -> None:
    """Write a tree to a safetensors file; its JSON part to ``config``, if there is one."""
    arrays: Arrays = {}
    content = to_json(tree, "", arrays)
    whole = {"format": FORMAT, "package": __version__, "kind": kind, "content": content}
    whole["checksum"] = checksum(whole)
    if config is not None:
        config.write_text(json.dumps(whole, allow_nan=False, indent=1))
    with atomic_file(path) as aside:
        write_arrays(aside, arrays, "" if config else json.dumps(whole, allow_nan=False))


def read_tree(path: str | os.PathLike[str], kind: str, config: Path | None = None) -> Any:
    """Read what :func:`write_tree` wrote."""
    path = Path(path)
    with reading(config or path):
        if config is not None:
            expect(config.is_file(), f"it is missing: is {config.parent} a {kind} that was saved?")
        arrays, text = read_arrays(path) if config is None else ({}, config.read_bytes())
        content = _content(text, kind)
    if config is not None:
        with reading(path):
            arrays, _ = read_arrays(path)
    with reading(path if config is None else config.parent):
        return from_json(content, arrays)


def _content(text: str | bytes, kind: str) -> Any:
    """The tree of a JSON part, held against its checksum."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is no number of JSON.")

    try:
        whole = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"it is damaged, and not JSON: {error}") from None
    expect(isinstance(whole, dict) and "format" in whole, f"it is no {kind}.")
    expect(
        whole["format"] == FORMAT,
        f"it has format {whole['format']!r:.20}, and this version of tempering, {__version__}, "
        f"reads format {FORMAT}: use the version that wrote it, {whole.get('package')!s:.20}.",
    )
    marks = {"format", "package", "kind", "content", "checksum"}
    right = whole.keys() == marks and whole["kind"] == kind
    expect(right, f"it is no {kind}: entries are missing, or too many, or it is something else.")
    expect(
        whole.pop("checksum") == checksum(whole),
        "it has not the content that was written: it is damaged, or was edited. (Parameters of a "
        "model can be changed with set_params after loading.)",
    )
    return whole["content"]


def checksum(whole: dict[str, Any]) -> int:
    """The checksum of a JSON part without it."""
    return zlib.crc32(json.dumps(whole, sort_keys=True).encode())


def to_json(tree: Any, name: str, arrays: Arrays) -> Any:
    """A tree as JSON values; its arrays are put under the names by which these refer to them."""
    if tree is None or isinstance(tree, bool | str) or _is_integer(tree):
        return tree
    if type(tree) in FORMS:
        form = FORMS[type(tree)]
        return {f"${form.name}": to_json(form.take(tree), name, arrays)}
    if isinstance(tree, float) and not isinstance(tree, np.generic):
        return tree if math.isfinite(tree) else {"$float": str(tree)}
    if isinstance(tree, np.generic) and tree.dtype.name in SCALARS:
        return {"$scalar": [tree.dtype.name, to_json(tree.item(), name, arrays)]}
    if hasattr(type(tree), "__array__"):  # that of a device comes to the host
        return _array_to_json(np.asarray(tree), name, arrays)
    if type(tree) is tuple:
        return {"$tuple": to_json(list(tree), name, arrays)}
    if type(tree) is list:
        return [to_json(part, f"{name}.{i}", arrays) for i, part in enumerate(tree)]
    if isinstance(tree, set | frozenset) and all(isinstance(part, str) for part in tree):
        return {"$set": sorted(tree)}
    if type(tree) is dict and all(isinstance(k, str) and not k.startswith("$") for k in tree):
        return {key: to_json(part, f"{name}.{key}", arrays) for key, part in tree.items()}
    remedy = "" if type(tree).__module__ == "builtins" else STORED
    raise StorageError(
        f"{name.lstrip('.') or 'the value'} cannot be stored: {short(tree)}.{remedy}"
    )


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
    pairs: Any = value.items() if len(value) == 1 else [("", None)]
    ((key, entry),) = pairs
    names = isinstance(entry, list) and all(isinstance(part, str) for part in entry)
    if key == "$array" and isinstance(entry, dict):
        return _array_from_json(entry, arrays)
    if key == "$tuple" and isinstance(entry, list):
        return tuple(from_json(part, arrays) for part in entry)
    if key == "$set" and names:
        return set(entry)
    if key == "$names" and names:
        return np.array(entry, dtype=object)
    if key == "$float" and entry in ("nan", "inf", "-inf"):
        return float(entry)
    if key == "$scalar" and isinstance(entry, list) and len(entry) == 2:
        # No plain number, for with arrays of float32 its type counts.
        kind, number = entry[0], from_json(entry[1], arrays)
        right = kind in SCALARS and isinstance(number, bool | int | float)
        expect(right, f"a number is damaged: {short(number)} as {kind!r:.20}.")
        return np.dtype(kind).type(number)
    if isinstance(entry, dict):
        return make_object(key[1:], from_json(entry, arrays))
    raise StorageError(f"an entry is damaged: {short(value)}.")


def _is_integer(value: Any) -> bool:
    """Whether it is an integer that the kernels, too, can hold."""
    return isinstance(value, int) and -(2**63) <= value < 2**63


def _array_to_json(array: NDArray[Any], name: str, arrays: Arrays) -> dict[str, Any]:
    """What the JSON part tells of an array. Its order of memory counts: sums depend on it."""
    name = name.lstrip(".") or "value"
    if array.dtype == object and array.ndim == 1 and all(isinstance(n, str) for n in array):
        return {"$names": [str(word) for word in array]}
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise StorageError(f"{name} cannot be stored: an array of {array.dtype}.")
    by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
    stored = arrays[name] = np.asarray(array.T if by_columns else array, order="C")
    told = {"dtype": stored.dtype.name, "shape": list(array.shape), "crc32": _crc32(stored)}
    return {"$array": {"name": name, **told, **({"by_columns": True} if by_columns else {})}}


def _array_from_json(told: dict[str, Any], arrays: Arrays) -> NDArray[Any]:
    name = told.get("name")
    # Each is told of once; a file that tells of a large one again and again would take for ever.
    array = arrays.pop(name, None) if isinstance(name, str) else None
    if array is None:
        raise StorageError(f"the array {name!r} is missing.")
    crc32, array = _crc32(array), array.T if told.get("by_columns") is True else array
    found = {"dtype": array.dtype.name, "shape": list(array.shape), "crc32": crc32}
    for what, here in found.items():
        there = told.get(what)
        expect(here == there, f"the {what} of the array {name!r} is {here}, and should be {there}.")
    return array


def _crc32(array: NDArray[Any]) -> int:
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

    expect(path.is_file(), "it is missing.")
    try:
        with safe_open(path, framework="numpy") as file:
            note = (file.metadata() or {}).get(METADATA_KEY, "")
            arrays = {name: _owned(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise StorageError(f"it is damaged, or no safetensors file: {error}") from None
    return arrays, note


def _owned(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.flags.writeable and array.flags.aligned else array.copy()
