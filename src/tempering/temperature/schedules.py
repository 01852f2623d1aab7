"""Cooling schedules: plain functions of progress.

A schedule maps progress u in [0, 1] through the annealed part of a run to a temperature T >= 1. Any
callable will do, an optax schedule among them (with ``transition_steps=1``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

Schedule = Callable[[float], float]


def constant(temperature: float) -> Schedule:
    """T(u) = T0.

    >>> constant(5.0)(0.3)
    5.0
    """
    return lambda progress: temperature


def linear(start: float, end: float = 1.0) -> Schedule:
    """Linear in T, the schedule of the paper: T(u) = T0 + (T1 − T0) u.

    >>> linear(20.0)(0.5)
    10.5
    """
    return lambda progress: start + (end - start) * progress


def linear_inverse(start: float, end: float = 1.0) -> Schedule:
    """Linear in 1/T: 1/T(u) = 1/T0 + (1/T1 − 1/T0) u. Spends more of the run near T = 1.

    >>> linear_inverse(2.0)(0.5)
    1.3333333333333333
    """
    return lambda progress: 1.0 / (1.0 / start + (1.0 / end - 1.0 / start) * progress)


def geometric(start: float, end: float = 1.0) -> Schedule:
    """Linear in log T: T(u) = T0 (T1/T0)^u.

    >>> geometric(100.0)(0.5)
    10.0
    """
    return lambda progress: start * (end / start) ** progress


def piecewise(points: Sequence[tuple[float, float]]) -> Schedule:
    """Straight lines in T through points (progress, temperature).

    >>> piecewise([(0.0, 10.0), (0.5, 4.0), (1.0, 1.0)])(0.75)
    2.5
    """
    positions, temperatures = np.asarray(points, float).T
    if positions.size > 1 and np.any(np.diff(positions) <= 0):
        raise ValueError(f"points must have rising progress; got {positions.tolist()}.")
    return lambda progress: float(np.interp(progress, positions, temperatures))


def join(schedules: Sequence[Schedule], boundaries: Sequence[float]) -> Schedule:
    """Schedules one after the other; each sees its own part of the run as progress 0 to 1.

    >>> hold_then_cool = join([constant(8.0), linear(8.0)], [0.5])
    >>> hold_then_cool(0.25), hold_then_cool(0.75)
    (8.0, 4.5)
    """
    edges = [0.0, *boundaries, 1.0]
    if len(schedules) != len(edges) - 1 or any(a >= b for a, b in pairwise(edges)):
        raise ValueError(
            f"{len(schedules)} schedules need {len(schedules) - 1} rising boundaries between 0 and "
            f"1; got {list(boundaries)}."
        )

    def schedule(progress: float) -> float:
        part = min(int(np.searchsorted(edges, progress, side="right")), len(schedules)) - 1
        start, end = edges[part], edges[part + 1]
        return schedules[part]((progress - start) / (end - start))

    return schedule
