"""A ramp for minibatches: how long to stay at each temperature, told by some data.

A fit in minibatches is too noisy to be held where optima split. But some data that are cooled on
their own show where energy is gained, and a ramp that spends its time there, √(ΔE Δs) on each step
of s, keeps the same distance from rest throughout (constant thermodynamic speed).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tempering.models.base import Array, Model
from tempering.temperature.push import Few, pushed

#: Temperatures at which the data are looked at, and updates at each.
NODES, UPDATES = 40, 3
#: Push of each update: share and data.
SHARE, ROWS = 0.02, 20
#: Part of the time that is spread evenly over the temperatures.
EVEN = 0.1


def find_ramp(model: Model, rows: Any, first: float, rng: np.random.Generator) -> Array:
    """s and the part of the time after which it is reached, [n, 2], from ``first`` to 1."""
    places = np.minimum(np.geomspace(first, 1.0, NODES), 1.0)
    posterior = model.initialize(Few(rows, rows.shape[0]), rng)
    energies = np.empty(NODES)
    for place, s in enumerate(places):
        for _ in range(UPDATES):
            local = model.local_step(rows, model.expectations(posterior), float(s))
            energies[place] = local.energy
            local = pushed(local, model, rows, SHARE, ROWS, rng)
            posterior = model.global_step(posterior, model.prior() + local.statistics, 1.0)
    gains = np.diff(np.maximum.accumulate(energies))
    lengths = np.sqrt(gains * np.diff(places))
    lengths = (1.0 - EVEN) * lengths + EVEN * max(lengths.mean(), 1e-300)
    return np.stack([places, np.r_[0.0, np.cumsum(lengths) / lengths.sum()]], axis=1)
