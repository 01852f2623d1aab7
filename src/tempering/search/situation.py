"""The state of a search as its operators see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempering.models.base import Array
from tempering.search.components import Components, Statistics
from tempering.search.runs import Candidate, Runs, Solution


@dataclass(frozen=True)
class Situation:
    """The state of a search as an operator sees it: solutions, and runs of the model.

    Attributes
    ----------
    runs : Runs
        Makes runs of the model, and λ from statistics.
    best : Solution
        The best solution so far: its ``bound``, ``posterior`` and ``statistics``.
    others : tuple of Solution
        Solutions of other runs.
    components : Components or None
        The exchangeable components that the model declares.
    table : array [N, K] or None
        q(z) at the best solution, where the model has such a table.

    Examples
    --------
    An operator that proposes the best solution with two components merged:

    >>> from tempering.search import Operator
    >>> class Merge(Operator):
    ...     name = "merge"
    ...     def applies(self, situation):
    ...         return situation.components is not None
    ...     def propose(self, situation, rng):
    ...         statistics = {name: part.copy() for name, part in situation.best.statistics.items()}
    ...         out, into = rng.choice(situation.components.n, size=2, replace=False)
    ...         situation.components.empty(statistics, out, into)
    ...         return situation.candidate(statistics)
    """

    runs: Runs
    best: Solution
    others: tuple[Solution, ...]
    components: Components | None
    table: Array | None  # q(z) [N, K] at the best, where the model has one
    #: Passes after which an operator proposes no more.
    most: float = 10.0

    @cached_property
    def masses(self) -> Array:
        """The share of each component, [K]."""
        assert self.components is not None
        if self.table is not None:
            return self.table.mean(axis=0)
        return self.components.masses(self.best.statistics)

    @cached_property
    def whole(self) -> Any:
        """The local step of all data at the best."""
        return self.runs.local_step(self.best.posterior, None)

    @cached_property
    def apart(self) -> Array:
        """Distances between the components of the best, [K, K], with an infinite diagonal."""
        apart = self.distances(self.best)
        np.fill_diagonal(apart, np.inf)
        return apart

    def distances(self, other: Solution) -> Array:
        """Return how far the components of the best are from those of another solution."""
        assert self.components is not None
        return self.components.distances(self.runs.model, self.best, other)

    def refine(
        self,
        rows: NDArray[np.intp] | None,
        start: Statistics,
        free: int | None = None,
    ) -> tuple[float, Statistics]:
        """Return the gain of a move, by steps on its rows; minus infinity if it cannot be made."""
        assert self.components is not None
        try:
            before = self.whole if rows is None else self.runs.local_step(self.best.posterior, rows)
            gain, change = self.runs.refine(self.best, rows, start, self.components, before, free)
        except (ValueError, FloatingPointError, np.linalg.LinAlgError):
            return -np.inf, start
        return (gain if np.isfinite(gain) else -np.inf), change

    def candidate(self, statistics: Statistics) -> Candidate:
        """Return a start with these statistics of all data."""
        return Candidate(self.runs.posterior(self.best.posterior, statistics))
