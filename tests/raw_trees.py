"""Stored trees as they stand in their files, to be changed there and signed as if written so."""

import json
import shutil

import numpy as np

from tempering.storage.state import (
    ARRAYS,
    CONFIG,
    checksum,
    checksum_of_arrays,
    from_json,
    read_arrays,
    to_json,
    write_arrays,
)


def sign(whole):
    """A JSON part with the checksum that belongs to it."""
    whole = {key: part for key, part in whole.items() if key != "checksum"}
    return {**whole, "checksum": checksum(whole)}


def put_config(folder, whole, signed=True):
    """Write a JSON part, or what stands in its place."""
    (folder / CONFIG).write_text(json.dumps(sign(whole) if signed else whole))


def read_raw(folder):
    """The JSON part with arrays and numbers in their places, and objects by their kinds."""
    arrays = read_arrays(folder / ARRAYS)

    def filled(node):
        if isinstance(node, list):
            return [filled(part) for part in node]
        if not isinstance(node, dict):
            return node
        if node.keys() in ({"$array"}, {"$array_by_columns"}, {"$float"}):
            return from_json(node, arrays)
        return {key: filled(part) for key, part in node.items()}

    return filled(json.loads((folder / CONFIG).read_text()))


def write_raw(folder, tree):
    """What :func:`read_raw` gave, or something else; as if it had been written so."""
    arrays = {}

    def told(node, name):
        if isinstance(node, list):
            return [told(part, f"{name}.{number}") for number, part in enumerate(node)]
        if isinstance(node, dict):
            return {key: told(part, f"{name}.{key}") for key, part in node.items()}
        if isinstance(node, np.ndarray):
            return to_json(node, name, arrays)
        return to_json(node, name, {})

    value = told(tree, "")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    put_config(folder, {**value, "arrays": checksum_of_arrays(arrays)})
    write_arrays(folder / ARRAYS, arrays)


def contents_of(folder):
    """The bytes of its files."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def put_contents(folder, contents):
    """A folder with these files."""
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
