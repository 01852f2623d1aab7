"""How each class of this package is stored; see ``portable``.

The names here are those of the file, and stay as they are: files that were written once are to be
readable for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from itertools import pairwise
from types import FunctionType
from typing import Any

import numpy as np

from tempering.inference.history import History, Record
from tempering.inference.portable import (
    Codec,
    expect,
    expect_count,
    expect_numbers,
    make_portable,
    pack,
    unpack,
)
from tempering.inference.run import State
from tempering.models.base import LocalStep, LocalTerms, Natural
from tempering.models.factorial_mixture import ActivationStep, FactorialModel, FeatureExpectations
from tempering.models.lda.model import LatentDirichlet, Settled
from tempering.models.lda.topics import Topics
from tempering.storage.tensors import StorageError
from tempering.temperature import (
    Annealing,
    AnnealingHeat,
    Heat,
    LocalHeat,
    LocalTempering,
    TemperingHeat,
    Untempered,
    VariationalTempering,
    schedules,
)

__all__ = ["pack", "unpack"]

#: The columns of a history that are numbers, and their types.
COLUMNS = {
    name: "i8" if name in ("step", "data_seen") else "f8"
    for name in Record._fields
    if name not in ("phase", "weights")
}

#: The functions that make schedules; with no other function can a policy be stored.
SCHEDULE_MAKERS = {
    name: getattr(schedules, name)
    for name in ("constant", "linear", "linear_inverse", "geometric", "piecewise", "join")
}


def pack_topics(topics: Topics) -> dict[str, Any]:
    return {
        "offset": topics.offset,
        "factor": topics.factor,
        "values": topics._values,
        "sums": topics._sums,
        "power_sums": topics._power_sums,
        "replaced": topics._replaced,
    }


def unpack_topics(parts: dict[str, Any]) -> Topics:
    values, power_sums = parts["values"], parts["power_sums"]
    expect(isinstance(values, np.ndarray) and values.ndim == 2, "topics must be a table.")
    n_topics = values.shape[1]
    expect_numbers("topics", values, values.shape, "float32")
    expect(values.flags.c_contiguous, "topics must be stored word by word.")
    expect_numbers("the sums of topics", parts["sums"], (n_topics,))
    numbers = np.array([parts["offset"], parts["factor"], parts["replaced"]], float)
    expect_numbers("the factors of topics", numbers, (3,))
    if power_sums is not None:
        nodes, sums = power_sums
        expect_numbers("the nodes of power sums", nodes, np.shape(nodes)[:1])
        expect_numbers("power sums", sums, (n_topics, len(nodes)))
    topics = Topics.__new__(Topics)
    topics.offset, topics.factor = float(numbers[0]), float(numbers[1])
    topics._values, topics._sums = values, parts["sums"]
    topics._power_sums, topics._replaced = power_sums, float(numbers[2])
    return topics


def unpack_natural(parts: dict[str, Any]) -> Natural:
    for name, part in parts.items():
        expect_numbers(name, part, np.shape(part))
    return Natural(**parts)


def unpack_heat(cls: type[Heat], parts: dict[str, Any]) -> Heat:
    heat = cls(**parts)
    s = heat.inverse_temperature
    # A mean over a grid that ends in 1 may be a little above it, by rounding.
    right = isinstance(s, float | int | np.ndarray) and np.all((np.asarray(s) > 0) & (s < 1.000001))
    expect(right, "inverse temperatures must be above 0 and at most 1.")
    for name in ("weights", "log_partition"):
        part = parts.get(name)
        expect(part is None or isinstance(part, np.ndarray), f"{name} must be an array or null.")
    return heat


def heat_codec(cls: type[Heat]) -> Codec:
    names = [part.name for part in fields(cls)]
    return Codec(
        lambda heat: {name: getattr(heat, name) for name in names}, partial(unpack_heat, cls)
    )


#: The states of temperature policies, by their names in a file.
HEATS: dict[str, type[Heat]] = {
    "heat": Heat,
    "annealing_heat": AnnealingHeat,
    "tempering_heat": TemperingHeat,
    "local_heat": LocalHeat,
}


def unpack_state(parts: dict[str, Any]) -> State:
    state = State(**parts)
    expect_count("step", state.step)
    expect_count("data_seen", state.data_seen)
    expect(isinstance(state.heat, Heat), "heat must be the state of a temperature policy.")
    solved = isinstance(state.solved, tuple) and all(isinstance(s, LocalStep) for s in state.solved)
    expect(solved, "solved must hold local steps.")
    return state


def pack_history(history: History) -> dict[str, Any]:
    """Column by column; the weights one after the other, with their lengths."""
    columns = {
        name: np.array([getattr(record, name) for record in history], np.dtype(kind))
        for name, kind in COLUMNS.items()
    }
    weights = [np.empty(0) if r.weights is None else np.asarray(r.weights, float) for r in history]
    return {
        **columns,
        "final": np.array([record.phase == "final" for record in history], bool),
        "weights": np.concatenate([np.empty(0), *weights]),
        "n_weights": np.array([part.size for part in weights], np.int64),
    }


def unpack_history(parts: dict[str, Any]) -> History:
    n = len(parts["n_weights"])
    edges = np.append(0, np.cumsum(parts["n_weights"]))
    whole = edges[-1] == parts["weights"].size and np.all(np.diff(edges) >= 0)
    expect(whole, "the weights of the history are not as many as its steps tell.")
    for name, kind in {**COLUMNS, "final": "?"}.items():
        right = parts[name].shape == (n,) and parts[name].dtype == np.dtype(kind)
        expect(right, f"the column {name} of the history has not {n} entries of its type.")
    columns = {name: parts[name].tolist() for name in COLUMNS}
    columns["phase"] = ["final" if final else "tempered" for final in parts["final"]]
    columns["weights"] = [
        parts["weights"][start:stop] if stop > start else None for start, stop in pairwise(edges)
    ]
    return History([Record(**dict(zip(columns, row))) for row in zip(*columns.values())])


def unpack_factorial(parts: dict[str, Any]) -> FactorialModel:
    # The constructor would make one of this length out of a single number.
    probabilities = parts["activation_probability"]
    expect_numbers("activation_probability", probabilities, (parts["n_features"],))
    return FACTORIAL.unpack(parts)


def constructed(
    cls: Any,
    arguments: Sequence[str],
    others: Sequence[str] = (),
) -> Codec:
    """A class whose constructor takes what its attributes of the same names hold."""

    def take(value: Any) -> dict[str, Any]:
        return {name: getattr(value, name) for name in (*arguments, *others)}

    def construct(parts: dict[str, Any]) -> Any:
        made = cls(**{name: parts[name] for name in arguments})
        # The constructor has checked them; but what it normalised once is not normalised again.
        for name in (*arguments, *others):
            if isinstance(parts[name], np.ndarray | np.generic) or name in others:
                object.__setattr__(made, name, parts[name])
        return made

    return Codec(take, construct)


def dataclass_codec(cls: Any) -> Codec:
    return constructed(cls, [part.name for part in fields(cls)])


def tuple_codec(cls: Any) -> Codec:
    return Codec(lambda value: value._asdict(), lambda parts: cls(**parts))


def pack_schedule(schedule: Any) -> dict[str, Any]:
    """A schedule by the function that made it, and what that was given."""
    name = schedule.func.__name__.lstrip("_")
    if schedule.func.__module__ != schedules.__name__ or name not in SCHEDULE_MAKERS:
        raise StorageError(f"a schedule that is not of tempering.schedules: {schedule!r}.")
    return {"maker": name, "settings": dict(schedule.keywords)}


def pack_maker(maker: Any) -> dict[str, Any]:
    for name, known in SCHEDULE_MAKERS.items():
        if maker is known:
            return {"maker": name}
    raise StorageError(f"a function that is not of tempering.schedules: {maker!r}.")


LDA_ARGUMENTS = (
    "n_topics",
    "n_words",
    "doc_topic_prior",
    "topic_word_prior",
    "update",
    "tolerance",
    "min_iterations",
    "max_iterations",
    "word_power",
    "settled",
    "start",
    "mean_length",
    "learn_doc_topic_prior",
    "learn_topic_word_prior",
    "adapted_part",
)
LDA_LEARNED = ("_mean_prior_statistics", "_steps_at_temperature_one")

FACTORIAL_ARGUMENTS = (
    "n_features",
    "dimension",
    "noise_variance",
    "feature_variance",
    "activation_probability",
    "local",
    "local_restarts",
    "start",
    "learn",
    "tolerance",
    "max_sweeps",
)
FACTORIAL = constructed(FactorialModel, FACTORIAL_ARGUMENTS, ("_shared_probability",))

for _cls, _name, _codec in (
    (Natural, "natural", Codec(dict, unpack_natural)),
    (Topics, "topics", Codec(pack_topics, unpack_topics)),
    *((cls, name, heat_codec(cls)) for name, cls in HEATS.items()),
    (State, "state", Codec(lambda state: state._asdict(), unpack_state)),
    (History, "history", Codec(pack_history, unpack_history)),
    (LocalTerms, "local_terms", tuple_codec(LocalTerms)),
    (Settled, "settled", tuple_codec(Settled)),
    (FeatureExpectations, "feature_expectations", tuple_codec(FeatureExpectations)),
    (Untempered, "untempered", dataclass_codec(Untempered)),
    (Annealing, "annealing", dataclass_codec(Annealing)),
    (VariationalTempering, "variational_tempering", dataclass_codec(VariationalTempering)),
    (LocalTempering, "local_tempering", dataclass_codec(LocalTempering)),
    (
        partial,
        "schedule",
        Codec(pack_schedule, lambda parts: SCHEDULE_MAKERS[parts["maker"]](**parts["settings"])),
    ),
    (
        FunctionType,
        "schedule_maker",
        Codec(pack_maker, lambda parts: SCHEDULE_MAKERS[parts["maker"]]),
    ),
    (
        LatentDirichlet,
        "latent_dirichlet",
        constructed(LatentDirichlet, LDA_ARGUMENTS, LDA_LEARNED),
    ),
    (
        FactorialModel,
        "factorial_model",
        Codec(FACTORIAL.pack, unpack_factorial),
    ),
):
    make_portable(_cls, _name, *_codec)

make_portable(ActivationStep, "activation_step")
