"""What some data tell of a model, by nothing but its own updates: pushes, and what becomes of them.

**A push.** Components that became equal stay equal: their updates are the same. A push mixes a
little of another solution into the statistics: a local step of a few data from a fresh start.
Statistics of data are mixed with statistics of data, so covariances stay positive and origins do
not matter, which noise on the numbers themselves does not promise.

**The critical temperature**, where the one optimum of a hot model splits first. Above it all
components are alike at rest, and a push dies out; below it a push grows. Near rest the bound that a
push costs changes by the square of the growth at each update, so two of them tell it.

**A ramp for minibatches.** A fit in minibatches is too noisy to be held where optima split. But
some data that are cooled on their own show where energy is gained, and a ramp that spends its time
there, √(ΔE Δs) on each step of s, keeps the same distance from rest throughout (constant
thermodynamic speed).
"""

import math
from copy import copy, deepcopy
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from tempering.models.base import Array, LocalStep, Model, some_rows, start_of

#: Data of a push, and its share in the statistics: one that is seen but does not leave the
#: neighbourhood of rest, and that of each update on the way of a ramp.
PUSHED_ROWS, PUSHED_SHARE, RAMP_SHARE = 20, 0.1, 0.02
#: The first trial of s, and one where that is too cold; and by how much log s rises from one to the
#: next: first roughly, then not.
HOTTEST, STRIDES = (1e-5, 1e-12), (2.0, 0.4)
#: Updates until the model is at rest at most, and after a push.
SETTLE, RELAX = 5, 4
#: A push that costs less than this part of what it did has died out: the rest may be rounding.
GONE = 1e-3
#: Updates at each temperature at which the data are looked at.
RAMP_UPDATES = 3
#: Part of the time that is spread evenly over the temperatures.
EVEN = 0.1


def new_start(model: Model, rows: Any, size: int, rng: np.random.Generator) -> Any:
    """λ of a fresh start from some rows, which stand for all ``size`` data."""
    source: Any = SimpleNamespace(size=size, sample=partial(some_rows, rows))
    return start_of(model, source, rng).posterior


def pushed(
    local: LocalStep, model: Model, data: Any, share: float, n_rows: int, rng: np.random.Generator
) -> LocalStep:
    """The step with ``share`` of its statistics from ``n_rows`` data and a fresh start."""
    n_data = local.n
    rows = some_rows(data, n_rows, rng)
    start = new_start(model, rows, n_data, rng)
    other = model.local_step(rows, model.expectations(start), 1.0)
    weight = share * local.mean_inverse_temperature * n_data / other.n
    changed = copy(local)
    changed.statistics = (1.0 - share) * local.statistics + weight * other.statistics
    return changed


def critical_inverse_temperature(
    model: Model, rows: Any, rng: np.random.Generator, most_updates: float = math.inf
) -> tuple[float | None, int]:
    """The largest trial of s, from hot to cold, at which a push of the model at rest dies out.

    None if it never does; and how many updates of the rows it took. After ``most_updates`` no other
    s is tried.
    """
    n_updates = 0
    for hottest in HOTTEST:
        rest = new_start(model, rows, rows.shape[0], rng)
        (rest, taken), s = _settled(model, rows, rest, hottest), hottest
        n_updates += taken
        for stride in STRIDES:
            # From hot to cold: so it is the one hot optimum that is tried, and none of the others.
            while s * math.exp(stride) < 1.0 and n_updates < most_updates:
                colder = s * math.exp(stride)
                settled, taken = _settled(model, rows, deepcopy(rest), colder)
                n_updates += taken + 1 + RELAX
                if _growth(model, rows, settled, colder, rng) >= 1.0:
                    break
                rest, s = settled, colder
        if s > hottest:
            return s, n_updates
    return None, n_updates


def _update(model: Model, rows: Any, posterior: Any, s: float) -> tuple[float, LocalStep]:
    """The bound at λ, and the local step there."""
    local = model.local_step(rows, model.expectations(posterior), s)
    return s * local.energy + local.entropy - model.divergence(posterior), local


def _settled(model: Model, rows: Any, posterior: Any, s: float) -> tuple[Any, int]:
    """λ at rest, and the updates until then."""
    before, taken = -math.inf, 0
    while taken < SETTLE:
        taken += 1
        bound, local = _update(model, rows, posterior, s)
        posterior = model.global_step(posterior, model.prior() + local.statistics, 1.0)
        if abs(bound - before) < 1e-6 * local.n:
            break
        before = bound
    return posterior, taken


def _growth(model: Model, rows: Any, rest: Any, s: float, rng: np.random.Generator) -> float:
    """By what factor a push grows in one update."""
    bound, local = _update(model, rows, rest, s)
    local = pushed(local, model, rows, PUSHED_SHARE, PUSHED_ROWS, rng)
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


def find_ramp(model: Model, rows: Any, first: float, n: int, rng: np.random.Generator) -> Array:
    """s and the part of the time after which it is reached, [n, 2], from ``first`` to 1."""
    places = np.minimum(np.geomspace(first, 1.0, n), 1.0)
    posterior = new_start(model, rows, rows.shape[0], rng)
    energies = np.empty(n)
    for place, s in enumerate(places):
        for _ in range(RAMP_UPDATES):
            local = model.local_step(rows, model.expectations(posterior), float(s))
            energies[place] = local.energy
            local = pushed(local, model, rows, RAMP_SHARE, PUSHED_ROWS, rng)
            posterior = model.global_step(posterior, model.prior() + local.statistics, 1.0)
    gains = np.diff(np.maximum.accumulate(energies))
    lengths = np.sqrt(gains * np.diff(places))
    lengths = (1.0 - EVEN) * lengths + EVEN * max(lengths.mean(), 1e-300)
    return np.stack([places, np.r_[0.0, np.cumsum(lengths) / lengths.sum()]], axis=1)
