"""What is done with a shard: plain objects, so that they can be sent to another process."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tempering.inference.sources import read
from tempering.models.base import LocalStep, Model
from tempering.temperature import Heat, LocalTempering, TemperaturePolicy

#: A shard with its place in the batch, and how the step before left it.
Part = tuple[tuple[slice, Any], LocalStep | None]


@dataclass(frozen=True)
class SolveShard:
    """Line 4 of Algorithm 1 for a shard: its local variables."""

    temperature: TemperaturePolicy
    heat: Heat
    model: Model
    expected: Any  # E_q[t(β)]
    terms: bool = True  # whether somebody will ask for energies
    #: Whether a step gives up what only its own process needs, so that it can be added to others.
    detach: bool = False

    def __call__(self, part: Part) -> Any:
        (rows, data), before = part
        local: Any = self.temperature.solve(
            self.heat, self.model, read(data), self.expected, rows, before
        )
        if self.detach and hasattr(local, "detached"):
            return local.detached(self.expected, self.terms)
        return local

    def for_workers(self) -> Self:
        """The task as it is sent: what each process would compute alike is computed before."""
        if hasattr(self.expected, "prepare") and isinstance(self.temperature, LocalTempering):
            self.expected.prepare(np.asarray(self.temperature.inverse_temperatures))
        return replace(self, model=self.model.for_workers(), detach=True)

    def on_threads(self, n_threads: int) -> Self:
        """The task for a process that has so many threads to itself."""
        model, expected = self.model, self.expected
        if hasattr(model, "n_threads"):
            model = copy(model)
            model.n_threads = n_threads  # pyright: ignore[reportAttributeAccessIssue]
        if hasattr(expected, "n_threads"):
            expected = expected._replace(n_threads=n_threads)
        return replace(self, model=model, expected=expected)


@dataclass(frozen=True)
class BoundOfShard(SolveShard):
    """What a shard adds to the ELBO of the original model, and nothing else."""

    def __call__(self, part: Part) -> float:
        local = super().__call__(part)
        return local.energy + local.entropy
