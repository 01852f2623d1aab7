"""Trees of arrays and plain values come back with the same types and bits; damage is told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mutations import mutate
from raw_trees import contents_of, put_config, put_contents
from tempering.storage.state import (
    ARRAYS,
    CONFIG,
    StorageError,
    from_json,
    read_arrays,
    read_tree,
    stored,
    to_json,
    write_arrays,
    write_tree,
)

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
        same = one.tolist() == other.tolist() if one.dtype == object else False
        assert same or one.tobytes() == other.tobytes()
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
@example(tree={"by columns": np.asfortranarray(np.eye(3)[:2])})
def test_trees_come_back_as_they_were(tmp_path, tree):
    path = tmp_path / "tree"
    write_tree(path, "example", tree)
    assert_same(tree, read_tree(path, "example"))


def test_what_cannot_be_stored_is_named():
    for value, message in (
        ({"a": [1, object()]}, "a.1 cannot be stored: object"),
        ({"f": print}, "f cannot be stored: builtin_function"),
        ({"a": np.array([None], dtype=object)}, "a cannot be stored: an array of object"),
        (np.array([1j]), "an array of complex128"),
        ({"$array": 1}, "cannot be stored"),
        ({1: 2}, "cannot be stored"),
        ({"n": 2**63}, "n cannot be stored: int"),
    ):
        with pytest.raises(StorageError, match=message):
            to_json(value, "", {})


def example_tree():
    rng = np.random.default_rng(0)
    return {
        "numbers": [1, 2.5, None, True, "text", float("nan"), np.float32(3)],
        "arrays": (rng.normal(size=(3, 4)), np.arange(5), np.asfortranarray(np.eye(3)[:2])),
        "names": {"a", "b"},
        "words": np.array(["sun", "sea"], dtype=object),
    }


def fuzz(tmp_path, n):
    path = tmp_path / "tree"
    write_tree(path, "example", example_tree())
    contents = contents_of(path)
    rng = np.random.default_rng(0)
    refused = []
    for number in range(n):
        name = (ARRAYS, CONFIG)[number % 2]
        put_contents(path, {**contents, name: mutate(contents[name], rng)})
        try:
            tree = read_tree(path, "example")
        except StorageError as error:
            refused.append(str(error))
        else:
            assert_same(example_tree(), tree)
    assert len(refused) > 0.9 * n
    assert all(
        message.startswith((f"{path / ARRAYS}: ", f"{path / CONFIG}: ")) for message in refused
    )


def test_damaged_files_are_told_by_name(tmp_path):
    fuzz(tmp_path, 100)


@pytest.mark.slow
def test_many_damaged_files_are_told_by_name(tmp_path):
    fuzz(tmp_path, 3000)


def test_arrays_are_held_against_what_was_written(tmp_path):
    array = np.arange(6.0).reshape(2, 3)
    write_tree(tmp_path / "tree", "example", {"a": array})
    for other in (
        {"a": array.reshape(3, 2)},
        {"a": array.view(np.int64)},
        {"a": array + 1},
        {"b": array},
        {"a": array, "b": array},
        {},
    ):
        write_arrays(tmp_path / "tree" / ARRAYS, other)
        with pytest.raises(StorageError, match=rf"{ARRAYS}: it has not the arrays that were"):
            read_tree(tmp_path / "tree", "example")
    write_arrays(tmp_path / "tree" / ARRAYS, {"a": array})
    assert_same({"a": array}, read_tree(tmp_path / "tree", "example"))


def test_what_stands_for_nothing_is_refused():
    for wrong in (
        *({"$array": 3}, {"$array": ["a"]}, {"$tuple": 1}, {"$set": [1]}, {"$float": "1"}),
        *({"$x": 1}, {"$tuple": [], "$set": []}, 2**63),
        *({"$float64": "1"}, {"$object": 1}, {"$int32": [1]}, {"$float64": {}}),
    ):
        with pytest.raises(StorageError, match="damaged"):
            from_json(wrong, {"a": np.ones(2)})
    with pytest.raises(StorageError, match="'b' is missing"):
        from_json({"$array": "b"}, {"a": np.ones(2)})
    with pytest.raises(StorageError, match=r"'int32' is damaged: .*bounds"):
        from_json({"$int32": 2**40}, {})


def test_deep_nesting_is_an_error_of_its_own(tmp_path):
    path = tmp_path / "tree"
    write_tree(path, "example", [])
    (path / CONFIG).write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(StorageError, match="not JSON"):
        read_tree(path, "example")


def test_another_s_files_are_refused(tmp_path):
    write_arrays(tmp_path / ARRAYS, {"a": np.ones(3)})
    assert read_arrays(tmp_path / ARRAYS)["a"].tolist() == [1, 1, 1]
    with pytest.raises(StorageError, match=r"config\.json: it is missing: is .* an? example that"):
        read_tree(tmp_path, "example")
    for text, message in (("a: 1", "not JSON"), ("{}", "no example"), ("[1]", "no example")):
        (tmp_path / CONFIG).write_text(text)
        with pytest.raises(StorageError, match=message):
            read_tree(tmp_path, "example")
    with pytest.raises(StorageError, match=r"config\.json: it is missing"):
        read_tree(tmp_path / "nowhere", "example")


def test_what_people_see_with_any_tool(tmp_path):
    from safetensors.numpy import load_file

    write_tree(tmp_path / "tree", "example", example_tree())
    whole = json.loads((tmp_path / "tree" / CONFIG).read_text())
    assert whole["content"]["numbers"][:5] == [1, 2.5, None, True, "text"]
    assert sorted(load_file(tmp_path / "tree" / ARRAYS)) == ["arrays.0", "arrays.1", "arrays.2"]


def test_another_kind_or_a_forged_header_is_refused(tmp_path):
    path = tmp_path / "tree"
    write_tree(path, "example", [1, 2])
    with pytest.raises(StorageError, match=r"config\.json: it is no model: .*something else"):
        read_tree(path, "model")
    whole = json.loads((path / CONFIG).read_text())
    for change, message in (
        ({"format": 2, "package": "9.0"}, r"format 2, .*use the version that wrote it, 9\.0"),
        ({"content": [1, 3]}, "has not the content that was written"),
        ({"more": 1}, "entries are missing, or too many"),
    ):
        put_config(path, {**whole, **change}, signed=False)
        with pytest.raises(StorageError, match=message):
            read_tree(path, "example")
    put_config(path, {**whole, "content": [1, 3]})
    assert read_tree(path, "example") == [1, 3]


# Objects of known classes.


@stored("test.Point", attributes={"seen": int})
@dataclass
class Point:
    place: np.ndarray
    weight: float
    side: Literal["left", "right"] = "left"
    near: tuple[int, ...] = ()
    friend: Point | None = None

    def __post_init__(self):
        self.seen = 0
        if not self.weight > 0:
            raise ValueError("weight must be positive.")
        self.place = self.place / self.place.sum()


def there_and_back(value):
    arrays = {}
    return from_json(json.loads(json.dumps(to_json(value, "", arrays))), arrays)


def test_objects_come_back_as_they_were():
    """To the bit: what the constructor has normalised is not normalised again."""
    point = Point(np.arange(1.0, 7.0), 2.0, near=(1, 2), friend=Point(np.ones(3), 1.0))
    point.seen = 7
    again = there_and_back(point)
    assert type(again) is Point
    assert again.place.tobytes() == point.place.tobytes()
    assert (again.seen, again.near, again.friend.weight) == (7, (1, 2), 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": -1.0}, "weight must be positive"),
        ({"weight": "1"}, "weight must be of float; got str"),
        ({"weight": True}, "weight must be of float"),
        ({"place": [0.5, 0.5]}, "place must be of ndarray"),
        ({"place": None}, "place must be of ndarray"),
        ({"side": "top"}, "side must be of Literal"),
        ({"side": []}, "side must be of Literal"),
        ({"near": {"$tuple": [1, 2.5]}}, "near must be of tuple"),
        ({"near": [1]}, "near must be of tuple"),
        ({"friend": {"$tuple": []}}, "friend must be of"),
        ({"seen": None}, "seen must be of int"),
        ({"more": 1}, "'more' is missing, or too much"),
    ],
)
def test_objects_of_other_content_are_refused(change, message):
    arrays = {}
    value = to_json(Point(np.ones(2), 1.0), "", arrays)
    value["$test.Point"] |= change
    with pytest.raises(StorageError, match=f"'test.Point' is damaged: .*{message}"):
        from_json(value, arrays)


def test_a_constructor_s_arguments_must_be_attributes():
    @stored("test.Closed")
    class Closed:
        def __init__(self, width):
            self._width = width

    with pytest.raises(StorageError, match=r"Closed has no attribute 'width'.*take and make"):
        there_and_back(Closed(3))


def test_objects_with_numbers_that_are_none_are_refused():
    point = Point(np.ones(2), 1.0)
    point.place = np.array([1.0, np.nan])
    with pytest.raises(StorageError, match="place must be of ndarray"):
        there_and_back(point)


def test_objects_of_unknown_classes_are_not_made():
    for name in ("os.system", "", "test.Points"):
        with pytest.raises(StorageError, match=r"is not known|damaged"):
            from_json({f"${name}": {}}, {})

    class Heir(Point):
        pass

    with pytest.raises(StorageError, match="cannot be stored: Heir"):
        there_and_back(Heir(np.ones(2), 1.0))
