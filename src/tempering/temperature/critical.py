"""The critical temperature: where the one optimum of a hot model splits first.

Above it all components are alike at rest, and a push dies out; below it a push grows. Near rest the
bound that a push costs changes by the square of the growth at each update, so two of them tell it,
from nothing but a model's own updates.
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import numpy as np

from tempering.models.base import LocalStep, Model
from tempering.temperature.push import Few, pushed

#: The first trial of s, and by how much log s rises from one to the next: first roughly, then not.
HOTTEST, STRIDES = 1e-5, (2.0, 0.4)
#: Updates until the model is at rest at most, and after a push.
SETTLE, RELAX = 10, 4
#: A push that is seen, but does not leave the neighbourhood of rest.
SHARE, ROWS = 0.1, 20
#: A push that costs less than this part of what it did has died out: the rest may be rounding.
GONE = 1e-3


def critical_inverse_temperature(model: Model, rows: Any, rng: np.random.Generator) -> float:
    """The largest trial of s, from hot to cold, at which a push of the model at rest dies out."""
    rest = model.initialize(Few(rows, rows.shape[0]), rng)
    rest, s = _settled(model, rows, rest, HOTTEST), HOTTEST
    for stride in STRIDES:
        # From hot to cold, so that it is the one hot optimum that is tried, and none of the others.
        while s * math.exp(stride) < 1.0:
            colder = s * math.exp(stride)
            settled = _settled(model, rows, deepcopy(rest), colder)
            if _growth(model, rows, settled, colder, rng) >= 1.0:
                break
            rest, s = settled, colder
    return s


def _update(model: Model, rows: Any, posterior: Any, s: float) -> tuple[float, LocalStep]:
    """The bound at λ, and the local step there."""
    local = model.local_step(rows, model.expectations(posterior), s)
    return s * local.energy + local.entropy - model.divergence(posterior), local


def _settled(model: Model, rows: Any, posterior: Any, s: float) -> Any:
    before = -math.inf
    for _ in range(SETTLE):
        bound, local = _update(model, rows, posterior, s)
        posterior = model.global_step(posterior, model.prior() + local.statistics, 1.0)
        if abs(bound - before) < 1e-6 * local.n:
            break
        before = bound
    return posterior


def _growth(model: Model, rows: Any, rest: Any, s: float, rng: np.random.Generator) -> float:
    """By what factor a push grows in one update."""
    bound, local = _update(model, rows, rest, s)
    local = pushed(local, model, rows, SHARE, ROWS, rng)
    posterior = deepcopy(rest)
    costs = []
    for _ in range(RELAX):
        posterior = model.global_step(posterior, model.prior() + local.statistics, 1.0)
        pushed_bound, local = _update(model, rows, posterior, s)
        costs.append(bound - pushed_bound)
    if abs(costs[-1]) <= GONE * abs(costs[0]):
        return 0.0
    if costs[-1] <= 0.0:
        return math.inf
    return math.sqrt(costs[-1] / costs[-2]) if costs[-2] > 0.0 else math.inf
