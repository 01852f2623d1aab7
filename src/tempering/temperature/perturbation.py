"""Perturbation of a step: it keeps components apart that would otherwise become equal.

Components that became equal stay equal: their updates are the same. A perturbation mixes a little
of another solution into the statistics: a local step of a few data from a fresh start. Statistics
of data are mixed with statistics of data, so covariances stay positive and origins do not matter,
which noise on the numbers themselves does not promise.
"""

from copy import copy
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from tempering.models.base import LocalStep, Model, some_rows, start_of
from tempering.temperature.policy import Perturbation


def fresh_start(model: Model, rows: Any, size: int, rng: np.random.Generator) -> Any:
    """Return λ of a fresh start from some rows, which stand for all ``size`` data."""
    source: Any = SimpleNamespace(size=size, sample=partial(some_rows, rows))
    return start_of(model, source, rng).posterior


def perturbed(
    local: LocalStep, model: Model, data: Any, by: Perturbation, rng: np.random.Generator
) -> LocalStep:
    """Return the step with a share of its statistics from a few data and a fresh start."""
    rows = some_rows(data, by.n_rows, rng)
    start = fresh_start(model, rows, local.n, rng)
    other = model.local_step(rows, model.expectations(start), 1.0)
    weight = by.share * local.mean_inverse_temperature * local.n / other.n
    changed = copy(local)
    changed.statistics = (1.0 - by.share) * local.statistics + weight * other.statistics
    return changed
