"""A small push away from where a fit stands, made of nothing but a model's own methods.

Components that became equal stay equal: their updates are the same. A push mixes a little of
another solution into the statistics: a local step of a few data from a fresh start. Statistics of
data are mixed with statistics of data, so covariances stay positive and origins do not matter,
which noise on the numbers themselves does not promise.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from tempering.models.base import LocalStep, Model


class Few:
    """Some rows that stand for all ``size`` data: what ``Model.initialize`` asks of a source."""

    def __init__(self, data: Any, size: int):
        self.data, self.size = data, size

    def sample(self, n: int, rng: np.random.Generator) -> Any:
        """At most n of the rows."""
        n_rows = self.data.shape[0]
        if n >= n_rows:
            return self.data
        return self.data[np.sort(rng.choice(n_rows, n, replace=False))]


def pushed(
    local: LocalStep, model: Model, data: Any, share: float, n_rows: int, rng: np.random.Generator
) -> LocalStep:
    """The step with ``share`` of its statistics from ``n_rows`` data and a fresh start."""
    n_data = local.n
    rows = Few(data, n_data).sample(n_rows, rng)
    start = model.initialize(Few(rows, n_data), rng)
    other = model.local_step(rows, model.expectations(start), 1.0)
    weight = share * local.mean_inverse_temperature * n_data / other.n
    changed = copy(local)
    changed.statistics = (1.0 - share) * local.statistics + weight * other.statistics
    return changed
