"""What tells one fit from another: values, functions and sources of data as JSON.

A checkpoint keeps it, and refuses to go on with a fit that is told otherwise.
"""

import hashlib
import sys
from functools import cached_property, partial
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from tempering.inference.sources import ArraySource, Source
from tempering.models.compilation import Lazy

#: What tells two objects of a kind apart, where that is not all of their attributes.
TOLD_APART_BY: dict[Any, tuple[str, ...]] = {
    (sparse.spmatrix, sparse.sparray): ("shape", "indptr", "indices", "data"),
    FunctionType: (
        *("__module__", "__qualname__", "__code__", "__closure__"),
        *("__defaults__", "__kwdefaults__"),
    ),
    CodeType: ("co_code", "co_names", "co_consts"),
    CellType: ("cell_contents",),
    Lazy: ("_make",),
    partial: ("func", "args", "keywords"),
}
#: What is told of the globals that a function names: in a notebook they are its settings.
TOLD_OF_GLOBALS = int | float | str | tuple | np.ndarray | FunctionType


def _told_apart_by() -> dict[Any, tuple[str, ...]]:
    """Return what tells two objects of a kind apart; of compiled functions, if there can be any."""
    if "numba" not in sys.modules:
        return TOLD_APART_BY
    from numba.core.dispatcher import Dispatcher

    # Else all of its compiler is told with it, which had not ended after nine minutes.
    return {**TOLD_APART_BY, Dispatcher: ("py_func", "targetoptions")}


def describe(value: Any, within: tuple[int, ...] = ()) -> Any:
    """A value as JSON: equal for two values only if a fit cannot tell them apart.

    ``within`` are those that it is a part of, which it may refer back to.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, bytes | memoryview):
        return hashlib.sha256(value).hexdigest()[:16]
    if id(value) in within:
        return "what this is a part of"
    within = (*within, id(value))
    if isinstance(value, np.ndarray | np.generic) and value.dtype.hasobject:
        return describe(value.tolist(), within)
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value).reshape(-1)
        content = array.tolist() if array.size <= 4 else describe(array.view(np.uint8).data)
        return [str(value.dtype), list(value.shape), str(content)]
    if isinstance(value, list | tuple):
        return [describe(part, within) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, dict):
        names = (name for name in value if name != "n_threads")  # which never changes a result
        return {str(name): describe(value[name], within) for name in names}
    if isinstance(value, type | ModuleType):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    if isinstance(value, np.random.Generator | np.random.RandomState):
        raise TypeError(
            f"{value!r} is a part of the model or of another argument, and has no fixed state by "
            "which a checkpoint can tell this fit from another: keep a seed there in its place."
        )
    name = f"{type(value).__qualname__} {getattr(value, '__name__', '')}".strip()
    for kind, names in _told_apart_by().items():
        if isinstance(value, kind):
            told = {part: getattr(value, part) for part in names}
            if isinstance(value, FunctionType):
                told |= _globals_of(value)
            return {"class": name, **describe(told, within)}
    state: Any = object.__getstate__(value)  # attributes, or both these and slots
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    kept = {**(attributes or {}), **(slots or {})}
    told = {part: kept[part] for part in kept if not follows(value, part)}
    if state is None:
        told = _made_of(value)
    return {"class": name, **describe(told, within)}


def _made_of(value: Any) -> dict[str, Any]:
    """What an object without attributes would be made of again, such as the ends of a range."""
    try:
        made = value.__reduce_ex__(2)
    except Exception:  # of a lock, say, each kind with an error of its own
        return {}
    if isinstance(made, str):  # a name, which is told
        return {}
    parts = [part for part in made[1] if part is not type(value)]
    parts += [list(items) for items in made[3:5] if items is not None]
    return {"made_of": parts} if parts else {}


def follows(value: Any, part: str) -> bool:
    """Whether a part is a cached property: it is there only if somebody asked for it."""
    return isinstance(getattr(type(value), part, None), cached_property)


def _globals_of(function: FunctionType) -> dict[str, Any]:
    """What a function, also within a loop or a function of its own, names of its module.

    Functions of other modules are told by their names: the settings of a library, and what it
    keeps for itself while it works, are not those of a fit.
    """
    names, codes = set[str](), [function.__code__]
    for code in codes:
        names.update(code.co_names)
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
    used = {name: function.__globals__.get(name) for name in names}
    return {
        name: it
        for name, it in used.items()
        if isinstance(it, TOLD_OF_GLOBALS)
        and not (isinstance(it, FunctionType) and it.__module__ != function.__module__)
    }


def describe_source(source: Source) -> dict[str, Any]:
    """A source of data: all that is in memory, or some rows; and how it cuts batches."""
    if isinstance(source, ArraySource):
        return {"batch_size": source.batch_size, "rows": describe(source.data)}
    sample = source.sample(256, np.random.default_rng(0))
    told = int | float | tuple | np.ndarray
    settings = {name: part for name, part in vars(source).items() if isinstance(part, told)}
    return describe({"size": source.size, **settings, "sample": sample})


def differences(stored: Any, current: Any, name: str = "") -> list[str]:
    """The places where two descriptions differ, in words."""
    if isinstance(stored, dict) and isinstance(current, dict):
        places: list[str] = []
        for part in sorted(stored.keys() | current.keys()):
            path = f"{name}.{part}".strip(".")
            places += differences(stored.get(part), current.get(part), path)
        return places
    return [] if stored == current else [f"{name} (it was {stored!s:.60}, and is {current!s:.60})"]
