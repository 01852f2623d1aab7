"""Whether a checkpoint belongs to a fit: what its result depends on, described and compared."""

from __future__ import annotations

import hashlib
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from tempering.inference.sources import ArraySource, Source
from tempering.models.base import Model


def check_posterior(model: Model, posterior: Any) -> None:
    """Raise ``ValueError`` unless a model of this package, all of which is known, can have it."""
    if type(model).__module__.startswith("tempering."):
        model.check_posterior(posterior)


#: Attributes that never change a result.
WITHOUT_EFFECT = {"n_threads"}

#: Rows of a source that is not in memory that are looked at.
SAMPLED_ROWS = 256


def describe(value: Any) -> Any:
    """A value as JSON: equal for two values only if a fit cannot tell them apart."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, np.ndarray | np.generic):
        return _array(np.asarray(value))
    if sparse.issparse(value):
        parts = (value.indptr, value.indices, value.data)
        return {"shape": list(value.shape), "parts": [_array(part) for part in parts]}
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()[:16]
    if isinstance(value, list | tuple):
        return [describe(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, dict):
        return {str(key): describe(part) for key, part in value.items()}
    return _object(value)


def describe_source(source: Source) -> dict[str, Any]:
    """A source of data: all that is in memory, or a sample; and how it cuts batches."""
    if isinstance(source, ArraySource):
        return {"batch_size": source.batch_size, "rows": describe(source.data)}
    sample = source.sample(SAMPLED_ROWS, np.random.default_rng(0))
    settings = {
        name: describe(value)
        for name, value in vars(source).items()
        if isinstance(value, int | float | tuple | np.ndarray)
    }
    return {"size": source.size, **settings, "sample": describe(sample)}


def differences(stored: Any, current: Any, name: str = "") -> list[str]:
    """The places where two descriptions differ, in words."""
    if isinstance(stored, dict) and isinstance(current, dict):
        names = sorted(stored.keys() | current.keys())
        parts = (
            differences(stored.get(n), current.get(n), f"{name}.{n}".strip(".")) for n in names
        )
        return [place for part in parts for place in part]
    if stored == current:
        return []
    return [f"{name} (it was {stored!s:.60}, and is {current!s:.60})"]


def _array(array: np.ndarray) -> Any:
    if array.size <= 4 and array.dtype.kind in "biuf":
        return [str(array.dtype), str(array.tolist())]
    if array.dtype.hasobject:
        return describe(array.tolist())
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return [str(array.dtype), list(array.shape), hashlib.sha256(content.data).hexdigest()[:16]]


def _object(value: Any) -> Any:
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return {
            "function": f"{value.__module__}.{value.__qualname__}",
            "code": describe(value.__code__),
            "given": describe([cells, value.__defaults__]),
        }
    if isinstance(value, CodeType):
        return describe([value.co_code, value.co_names, value.co_consts])
    if isinstance(value, partial):
        return describe({"of": value.func, "given": [value.args, value.keywords]})
    if isinstance(value, type | ModuleType):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    if isinstance(value, np.random.Generator | np.random.RandomState):
        raise TypeError(f"{value!r} has no fixed state to tell.")
    state: Any = object.__getstate__(value)  # attributes, or both these and slots
    return {
        "class": f"{type(value).__qualname__} {getattr(value, '__name__', '')}".strip(),
        **{
            name: describe(part)
            for parts in (state if isinstance(state, tuple) else (state,))
            for name, part in sorted((parts or {}).items())
            if name not in WITHOUT_EFFECT
        },
    }
