"""Whether a checkpoint belongs to the fit that is to go on with it: what it depends on, its parts.

Classes have checked their own objects when these were read, but kernels trust the shapes that they
are given. Of models of one's own only the attributes are known.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any, get_type_hints

import numpy as np
from scipy import sparse

from tempering.inference.run import History, Result, Run
from tempering.inference.sources import ArraySource, Source
from tempering.models.base import Model
from tempering.models.factorial_mixture import ActivationStep, FactorialModel
from tempering.storage.classes import check_types, declared, fits
from tempering.storage.errors import StorageError, expect, short
from tempering.temperature import Heat, LocalTempering, TemperaturePolicy, VariationalTempering


@dataclass(frozen=True)
class Fit:
    """What a checkpoint is held against."""

    model: Model
    source: Source
    temperature: TemperaturePolicy
    n_init: int

    def restarts(self, content: Mapping[str, Any]) -> tuple[list[float], Result | None, Any]:
        """The ELBOs of the restarts that are over, the best one, and the one under way.

        Raise ``ValueError`` unless this fit can go on from there.
        """
        elbos, best, run = content["elbos"], content["best"], content["run"]
        expect(fits(elbos, list[float]), "elbos must be a list of numbers.")
        expect(len(elbos) + (run is not None) <= self.n_init, "there are too many restarts.")
        right = (best is None) == (not elbos) and (run is not None or elbos)
        expect(right, "the best restart must be there when one is over, and only then.")
        if best is not None:
            model = with_learned(self.model, best["model"])
            best = _made(Result, {"local": None, **best, "model": model})
            self._check(model, best.posterior, best.heat, best.history)
        if run is not None:
            run = dict(run)
            model = with_learned(self.model, run.pop("model"))
            self._check_run(model, _made(Run, run))
            run = model, Run(**run)
        return elbos, best, run

    def check_step(self, model: Model, run: Run) -> None:
        """The first step from there: some numbers show only in it that they are too large."""
        self._check(model, run.state.posterior, run.state.heat, run.history)

    def _check_run(self, model: Model, run: Run) -> None:
        state, history = run.state, run.history
        self._check(model, state.posterior, state.heat, history)
        self._check_heat(run.tempered_heat)
        if run.kept is not None:
            self._check(model, run.kept.posterior, run.kept.heat, history)
        right = state.step == len(history) and state.data_seen == history[-1].data_seen
        expect(right, "the steps are not those of the history.")
        if state.solved:
            n, size = self.source.size, model.shard_size
            expect(self.source.whole and model.continues_steps, "no step begins from another here.")
            expect(len(state.solved) == -(-n // size), "the local steps must be those of shards.")
            for number, step in enumerate(state.solved):
                if isinstance(model, FactorialModel):
                    _check_activations(step, min(size, n - number * size), model.n_features)

    def _check(self, model: Model, posterior: Any, heat: Heat, history: History) -> None:
        if is_ours(model):
            model.check_posterior(posterior)
        self._check_heat(heat)
        expect(len(history) > 0, "the history is missing.")
        n, seen = self.source.size, history["data_seen"]
        made = np.diff(seen, prepend=0)
        right = np.all((made > 0) & (made <= n)) and np.array_equal(history["passes"], seen / n)
        expect(right, "data_seen of the history is not that of the data.")
        expect(np.isfinite(history["temperature"]).all(), "temperatures must be finite.")

    def _check_heat(self, heat: Heat) -> None:
        """The state of a policy: of its class, or at T = 1."""
        s, policy = heat.inverse_temperature, self.temperature
        kind = get_type_hints(type(policy).begin).get("return", Heat)
        right = not isinstance(kind, type) or isinstance(heat, kind) or heat.finished
        expect(right, f"the state is not one of {type(policy).__name__}.")
        each = self.source.whole and np.shape(s) == (self.source.size,)
        expect(np.ndim(s) == 0 or each, "there must be one temperature for all data, or for each.")
        if isinstance(policy, VariationalTempering | LocalTempering):
            grid = np.shape(policy.inverse_temperatures)
            for part in (heat.weights, getattr(heat, "log_partition", None)):
                expect(part is None or np.shape(part) == grid, f"there must be {grid} weights.")


def is_ours(model: Model) -> bool:
    """Whether a model is of this package, so that all of it is known."""
    return type(model).__module__.startswith("tempering.")


def with_learned(given: Model, attributes: Any) -> Model:
    """A copy of the model with what a run had learned; all of it is checked."""
    expect(isinstance(attributes, dict), "what the model has learned is missing.")
    model = deepcopy(given)
    for name, value in attributes.items():
        if is_ours(given):
            known = given.learned is None or name in given.learned
        else:
            free = name.isidentifier() and not hasattr(type(given), name)
            known = name in vars(given) or free
        expect(known and _is_like(value, vars(given).get(name)), f"{name!r:.40} is not learned so.")
        setattr(model, name, value)
    if is_ours(model):
        model.check_parameters()
    return model


def _is_like(value: Any, given: Any) -> bool:
    """Whether an attribute is of the kind, and of the shape, that it was given with."""
    if isinstance(given, np.ndarray):
        right = fits(value, np.ndarray) and value.dtype == given.dtype
        return right and value.shape == given.shape
    if isinstance(given, float) and not isinstance(value, np.ndarray):
        return isinstance(value, float) and math.isfinite(value)
    # An object is used up, or as it was given.
    return value is None or given is None or isinstance(given, float | int)


def _made(cls: type, parts: dict[str, Any]) -> Any:
    check_types(parts, declared(cls))
    return cls(**parts)


def _check_activations(step: Any, n: int, n_features: int) -> None:
    """The activations of a shard; those from a device have rows that fill up."""
    if not isinstance(step, ActivationStep):
        raise StorageError(f"the activations are missing; got {short(step)}.")
    z = step.activations
    rows = len(z) >= n if type(step) is not ActivationStep else len(z) == n
    right = z.ndim == 2 and rows and z.shape[1] == n_features
    expect(right and np.all((z >= 0) & (z <= 1)), "activations must be from 0 to 1, one a datum.")


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
