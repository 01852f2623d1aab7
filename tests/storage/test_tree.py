"""Trees of arrays and plain values come back with the same types and bits; damage is told."""

import json
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tempering.storage.tensors import (
    METADATA_KEY,
    StorageError,
    flatten,
    read_arrays,
    read_tree,
    unflatten,
    write_arrays,
    write_tree,
)

from mutations import mutate

names = st.text("abcxyz_.ü ", min_size=1, max_size=6)
numbers = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=5)
)
scalars = st.one_of(
    st.floats().map(np.float64),
    st.floats(width=32).map(np.float32),
    st.integers(-(2**62), 2**62).map(np.int64),
    st.booleans().map(np.bool_),
)
arrays = hnp.arrays(
    st.sampled_from(["f4", "f8", "i4", "i8", "u1", "?", "f2"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
leaves = st.one_of(
    numbers, scalars, arrays, arrays.map(np.asfortranarray), st.sets(st.text(max_size=3))
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(names, inner, max_size=3),
    ),
    max_leaves=8,
)


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            assert_same(a, b)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()
        assert one.flags.f_contiguous == other.flags.f_contiguous
        assert other.flags.writeable
    elif isinstance(one, float):
        assert one == other or (np.isnan(one) and np.isnan(other))
    else:
        assert np.array_equal(one, other, equal_nan=isinstance(one, np.floating))


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(tree=trees)
def test_trees_come_back_as_they_were(tmp_path, tree):
    path = tmp_path / "tree.safetensors"
    write_tree(path, tree)
    assert_same(tree, read_tree(path))


def test_what_cannot_be_stored_is_named():
    for value, message in (
        ({"a": [1, object()]}, "a.1 cannot be stored: object"),
        ({"f": lambda x: x}, "f cannot be stored: function"),
        ({"a": np.array(["x"], dtype=object)}, "a cannot be stored: an array of object"),
        (np.array([1j]), "an array of complex128"),
        ({"$array": 1}, "cannot be stored"),
        ({1: 2}, "cannot be stored"),
        ({"n": 2**63}, "n cannot be stored: int"),
    ):
        with pytest.raises(StorageError, match=message):
            flatten(value)


def example():
    rng = np.random.default_rng(0)
    return {
        "numbers": [1, 2.5, None, True, "text", float("nan"), np.float32(3)],
        "arrays": (rng.normal(size=(3, 4)), np.arange(5), np.asfortranarray(np.eye(3)[:2])),
        "names": {"a", "b"},
    }


def fuzz(tmp_path, n):
    path = tmp_path / "tree.safetensors"
    write_tree(path, example())
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = []
    for _ in range(n):
        path.write_bytes(mutate(content, rng))
        try:
            tree = read_tree(path)
        except StorageError as error:
            refused.append(str(error))
        else:
            assert_same(example(), tree)
    assert len(refused) > 0.9 * n
    assert all(str(path) in message for message in refused)


def test_damaged_files_are_told_by_name(tmp_path):
    fuzz(tmp_path, 100)


@pytest.mark.slow
def test_many_damaged_files_are_told_by_name(tmp_path):
    fuzz(tmp_path, 3000)


def test_arrays_are_held_against_what_is_told_of_them():
    value, found = flatten({"a": np.arange(6.0).reshape(2, 3)})
    for change, message in (
        ({"shape": [3, 2]}, "its shape is"),
        ({"dtype": "int64"}, "its type is"),
        ({"crc32": 1}, "its checksum is"),
        ({"name": "b"}, "'b' is missing"),
        ({"name": ["a"]}, "is missing"),
    ):
        told = {**value["a"]["$array"], **change}
        with pytest.raises(StorageError, match=message):
            unflatten({"$array": told}, found)
    for wrong in ({"$array": 3}, {"$tuple": 1}, {"$set": [1]}, {"$float": "1"}, {"$x": 1}, 2**63):
        with pytest.raises(StorageError, match="damaged"):
            unflatten(wrong, found)
    for wrong in (["float64", "1"], ["object", 1], ["int32", 2**40], ["int32"], [["float64"], 1]):
        with pytest.raises(StorageError, match="damaged"):
            unflatten({"$scalar": wrong}, found)


def test_deep_nesting_is_an_error_of_its_own(tmp_path):
    path = tmp_path / "tree.safetensors"
    text = "[" * 100_000 + "]" * 100_000
    write_arrays(path, {}, f"{zlib.crc32(text.encode()):08x} {text}")
    with pytest.raises(StorageError, match="not JSON"):
        read_tree(path)


def test_another_s_safetensors_file_is_refused(tmp_path):
    path = tmp_path / "other.safetensors"
    write_arrays(path, {"a": np.ones(3)})
    assert read_arrays(path)[0]["a"].tolist() == [1, 1, 1]
    with pytest.raises(StorageError, match="has not the content that was written"):
        read_tree(path)
    with pytest.raises(StorageError, match=r"missing\.safetensors: it is missing"):
        read_tree(tmp_path / "missing.safetensors")


def test_the_header_is_readable_json(tmp_path):
    """What people see with any safetensors tool."""
    path = tmp_path / "tree.safetensors"
    write_tree(path, example())
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    _, _, text = header["__metadata__"][METADATA_KEY].partition(" ")
    assert json.loads(text)["numbers"][:5] == [1, 2.5, None, True, "text"]
