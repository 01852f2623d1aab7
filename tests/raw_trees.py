"""Stored trees as they stand in a file, to be changed there and signed as if written so."""

import json

import numpy as np

from tempering.storage.tree import checksum, from_json, read_arrays, to_json, write_arrays


def sign(whole):
    """A JSON part with the checksum that belongs to it."""
    whole = {key: part for key, part in whole.items() if key != "checksum"}
    return {**whole, "checksum": checksum(whole)}


def read_raw(path):
    """The JSON part with arrays and numbers in their places, and objects by their kinds."""
    arrays, text = read_arrays(path)

    def filled(node):
        if isinstance(node, list):
            return [filled(part) for part in node]
        if not isinstance(node, dict):
            return node
        if node.keys() in ({"$array"}, {"$float"}):
            return from_json(node, arrays)
        return {key: filled(part) for key, part in node.items()}

    return filled(json.loads(text))


def write_raw(path, tree):
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
    write_arrays(path, arrays, json.dumps(sign(value) if isinstance(value, dict) else value))
