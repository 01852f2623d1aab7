"""Cooling schedules: plain functions of progress.

A schedule maps progress u in [0, 1] through the annealed part of a run to a temperature T >= 1. Any
callable will do, an optax schedule among them (with ``transition_steps=1``).
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from types import FunctionType
from typing import Any

import numpy as np

from tempering.models.arguments import as_numbers, check_number, takes
from tempering.storage.state import StorageError, stored

# Each schedule is its formula with the settings filled in, by keyword: so it can be pickled, and
# stored in a model by the name of the function that made it.
Schedule = Callable[[float], float]


def _filled_in(formula: Callable[..., float], **temperatures: float) -> Schedule:
    """The formula with these temperatures: what cannot be one is told where it was given."""
    for name, value in temperatures.items():
        # Hotter than that, 1/T is 0 to any computation with it.
        check_number(value, name, ">= 1 and finite, as a temperature", least=1, most=1e100)
    return partial(formula, **temperatures)


def constant(temperature: float) -> Schedule:
    """T(u) = T0.

    >>> constant(5.0)(0.3)
    5.0
    """
    return _filled_in(_constant, temperature=temperature)


def _constant(progress: float, *, temperature: float) -> float:
    return temperature


def linear(start: float, end: float = 1.0) -> Schedule:
    """Linear in T, the schedule of the paper: T(u) = T0 + (T1 − T0) u.

    >>> linear(20.0)(0.5)
    10.5
    """
    return _filled_in(_linear, start=start, end=end)


def _linear(progress: float, *, start: float, end: float) -> float:
    return start + (end - start) * progress


def linear_inverse(start: float, end: float = 1.0) -> Schedule:
    """Linear in 1/T: 1/T(u) = 1/T0 + (1/T1 − 1/T0) u. Spends more of the run near T = 1.

    >>> linear_inverse(2.0)(0.5)
    1.3333333333333333
    """
    return _filled_in(_linear_inverse, start=start, end=end)


def _linear_inverse(progress: float, *, start: float, end: float) -> float:
    return 1.0 / (1.0 / start + (1.0 / end - 1.0 / start) * progress)


def geometric(start: float, end: float = 1.0) -> Schedule:
    """Linear in log T: T(u) = T0 (T1/T0)^u.

    >>> geometric(100.0)(0.5)
    10.0
    """
    return _filled_in(_geometric, start=start, end=end)


def _geometric(progress: float, *, start: float, end: float) -> float:
    return start * (end / start) ** progress


def join(schedules: Sequence[Schedule], boundaries: Sequence[float]) -> Schedule:
    """Schedules one after the other; each sees its own part of the run as progress 0 to 1.

    >>> hold_then_cool = join([constant(8.0), linear(8.0)], [0.5])
    >>> hold_then_cool(0.25), hold_then_cool(0.75)
    (8.0, 4.5)
    """
    if not isinstance(schedules, Sequence) or not all(takes(each, 0.0) for each in schedules):
        raise ValueError(f"schedules must be functions of progress, in a list; got {schedules!r}.")
    between = as_numbers(boundaries, "boundaries", "numbers between 0 and 1").ravel().tolist()
    edges = [0.0, *between, 1.0]
    if len(schedules) != len(edges) - 1 or any(not a < b for a, b in pairwise(edges)):
        raise ValueError(
            f"{len(schedules)} schedules need {len(schedules) - 1} rising boundaries between 0 and "
            f"1; got {boundaries}."
        )
    return partial(_join, schedules=tuple(schedules), boundaries=tuple(between))


def _join(progress: float, *, schedules: Sequence[Schedule], boundaries: Sequence[float]) -> float:
    edges = [0.0, *boundaries, 1.0]
    part = min(int(np.searchsorted(edges, progress, side="right")), len(schedules)) - 1
    start, end = edges[part], edges[part + 1]
    return schedules[part]((progress - start) / (end - start))


#: The functions that make schedules; with no other function can a policy be stored.
MAKERS = {
    made_by.__name__: made_by for made_by in (constant, linear, linear_inverse, geometric, join)
}


def _take_schedule(schedule: Any) -> dict[str, Any]:
    """A schedule by the function that made it and what that was given, or that function alone."""
    made_by = schedule.func if isinstance(schedule, partial) else schedule
    name = made_by.__name__.lstrip("_")
    if made_by.__module__ != __name__ or name not in MAKERS:
        raise StorageError(f"a function that is not of tempering.schedules: {schedule!r}.")
    return {name: dict(schedule.keywords) if isinstance(schedule, partial) else None}


def _make_schedule(parts: dict[str, Any]) -> Any:
    ((name, settings),) = parts.items()
    return MAKERS[name] if settings is None else MAKERS[name](**settings)


for _function in (partial, FunctionType):
    stored("schedule", take=_take_schedule, make=_make_schedule)(_function)
