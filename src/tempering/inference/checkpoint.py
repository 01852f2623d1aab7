"""Checkpoints: where, how often and by whom a run is kept, to go on and end in the same bits; and
whether one belongs to a fit: what its result depends on, described and compared.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from tempering.inference.sources import ArraySource, Source
from tempering.models.arguments import check_number
from tempering.models.base import Model
from tempering.storage.atomic import alone_in, as_path, atomic_file
from tempering.storage.state import reading

Method = TypeVar("Method", bound=Callable[..., Any])


class CheckpointWarning(UserWarning):
    """A checkpoint could not be used as it stands."""


@dataclass(frozen=True)
class Checkpoint:
    """Where, and how often, a fit saves its state.

    Parameters
    ----------
    path : path
        A directory for this one fit.
    every_minutes : float, optional
        Time between two checkpoints; they are written after a step.
    every_steps : int, optional
        Steps between two checkpoints. Whichever comes first counts.

    Examples
    --------
    >>> Checkpoint("fit-of-monday", every_minutes=5)
    Checkpoint(path='fit-of-monday', every_minutes=5, every_steps=None)
    """

    path: str | os.PathLike[str]
    every_minutes: float | None = 10.0
    every_steps: int | None = None

    def __post_init__(self) -> None:
        if self.every_minutes is not None:
            check_number(self.every_minutes, "every_minutes", "0 or more", least=0)
        if self.every_steps is not None:
            check_number(self.every_steps, "every_steps", "at least 1", least=1)
        as_path(self.path)
        if Path(self.path).exists() and not Path(self.path).is_dir():
            raise ValueError(f"checkpoint must be a directory, or not exist yet; got {self.path}.")


#: What stands for a checkpoint: the object, or its path alone.
CheckpointLike = Checkpoint | str | os.PathLike[str] | None


def as_checkpoint(checkpoint: CheckpointLike) -> Checkpoint | None:
    """A path as a checkpoint with the default intervals."""
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    return Checkpoint(checkpoint)


def remembered_seed(random_state: Any, checkpoint: CheckpointLike, resume: bool) -> Any:
    """A random state as given; for None, with a checkpoint, the seed that its first run drew."""
    checkpoint = as_checkpoint(checkpoint)
    if random_state is not None or checkpoint is None:
        return random_state
    file = Path(checkpoint.path) / "seed.txt"
    if resume and file.exists():
        with reading(file):
            return int(file.read_text())
    with atomic_file(file) as aside:
        aside.write_text(str(seed := secrets.randbelow(2**31)))
    return seed


def part_of(checkpoint: CheckpointLike, part: str) -> Checkpoint | None:
    """The checkpoint of one of several calls of ``fit``: a directory in that of all."""
    checkpoint = as_checkpoint(checkpoint)
    return checkpoint and replace(checkpoint, path=Path(checkpoint.path) / part)


def alone_with_checkpoint(fit: Method) -> Method:
    """Have the ``fit`` of an estimator, all of it, refuse a checkpoint that another one uses."""

    @wraps(fit)
    def run(self: Any, *arguments: Any, checkpoint: CheckpointLike = None, **options: Any) -> Any:
        kept = as_checkpoint(checkpoint)
        with alone_in(kept.path) if kept else nullcontext():
            return fit(self, *arguments, checkpoint=checkpoint, **options)

    return run  # pyright: ignore[reportReturnType]


def check_posterior(model: Model, posterior: Any) -> None:
    """Raise ``ValueError`` unless a model of this package, all of which is known, can have it."""
    if type(model).__module__.startswith("tempering."):
        model.check_posterior(posterior)


#: What tells two objects of a kind apart, where that is not all of their attributes.
TOLD_APART_BY: dict[Any, tuple[str, ...]] = {
    (sparse.spmatrix, sparse.sparray): ("shape", "indptr", "indices", "data"),
    FunctionType: ("__module__", "__qualname__", "__code__", "__closure__", "__defaults__"),
    CodeType: ("co_code", "co_names", "co_consts"),
    CellType: ("cell_contents",),
    partial: ("func", "args", "keywords"),
}


def describe(value: Any) -> Any:
    """A value as JSON: equal for two values only if a fit cannot tell them apart."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, bytes | memoryview):
        return hashlib.sha256(value).hexdigest()[:16]
    if isinstance(value, np.ndarray | np.generic) and value.dtype.hasobject:
        return describe(value.tolist())
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value).reshape(-1)
        content = array.tolist() if array.size <= 4 else describe(array.view(np.uint8).data)
        return [str(value.dtype), list(value.shape), str(content)]
    if isinstance(value, list | tuple):
        return [describe(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, dict):
        names = (name for name in value if name != "n_threads")  # which never changes a result
        return {str(name): describe(value[name]) for name in names}
    if isinstance(value, type | ModuleType):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    if isinstance(value, np.random.Generator | np.random.RandomState):
        raise TypeError(f"{value!r} has no fixed state to tell.")
    name = f"{type(value).__qualname__} {getattr(value, '__name__', '')}".strip()
    for kind, names in TOLD_APART_BY.items():
        if isinstance(value, kind):
            return {"class": name, **describe({part: getattr(value, part) for part in names})}
    state: Any = object.__getstate__(value)  # attributes, or both these and slots
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    return {"class": name, **describe({**(attributes or {}), **(slots or {})})}


def describe_source(source: Source) -> dict[str, Any]:
    """A source of data: all that is in memory, or some rows; and how it cuts batches."""
    if isinstance(source, ArraySource):
        return {"batch_size": source.batch_size, "rows": describe(source.data)}
    sample = source.sample(256, np.random.default_rng(0))
    settings = {
        name: value
        for name, value in vars(source).items()
        if isinstance(value, int | float | tuple | np.ndarray)
    }
    return describe({"size": source.size, **settings, "sample": sample})


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
