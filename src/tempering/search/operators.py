"""Search operators: each proposes starts that lead elsewhere than the best solution so far.

An operator has one method that matters, ``propose``, and no state. Give ``search`` a list with one
of your own, or register it in :data:`OPERATORS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tempering.models.base import Array
from tempering.search.components import Components, Statistics
from tempering.search.runs import Candidate, Runs, Solution, as_arrays

#: How much data decide the direction of a split: rows of the component, where they are known;
#: otherwise rows of all data for each component.
SPLIT_ROWS, SPLIT_ROWS_EACH = 4, 1.5
#: Share of the swaps that split what they have just merged.
RESPLIT = 0.3
#: Inverse temperatures that the best solution is heated to.
REHEATED = (0.2, 0.35, 0.5, 0.7)


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

    @cached_property
    def masses(self) -> Array:
        """The share of each component, [K]."""
        assert self.components is not None
        if self.table is not None:
            return self.table.mean(axis=0)
        return self.components.masses(self.best.statistics)

    @cached_property
    def labels(self) -> NDArray[np.intp]:
        """The most probable component of each datum, [N]."""
        assert self.table is not None
        return self.table.argmax(axis=1)

    @cached_property
    def apart(self) -> Array:
        """Distances between the components of the best, [K, K], with an infinite diagonal."""
        apart = self.distances(self.best)
        np.fill_diagonal(apart, np.inf)
        return apart

    @cached_property
    def likeness(self) -> Array:
        """Overlap of the data of each pair of components, flattened [K * K], as probabilities."""
        assert self.table is not None
        overlap = self.table.T @ self.table
        size = np.sqrt(np.diag(overlap)) + 1e-12
        likeness = np.triu(overlap / size[:, None] / size + 1e-6, 1)
        return (likeness / likeness.sum()).ravel()

    def distances(self, other: Solution) -> Array:
        """Return how far the components of the best are from those of another solution."""
        assert self.components is not None
        return self.components.distances(self.runs.model, self.best, other)

    def any_other(self, rng: np.random.Generator) -> Solution:
        """Return another solution, drawn at random."""
        return self.others[rng.integers(len(self.others))]

    def candidate(self, statistics: Statistics, rows: NDArray[np.intp] | None = None) -> Candidate:
        """Return a start with these statistics of all data."""
        posterior = self.runs.posterior(self.best.posterior, statistics)
        return Candidate(posterior, rows)


@dataclass(frozen=True)
class Operator:
    """A way to leave an optimum.

    Attributes
    ----------
    tries : int
        Number of starts that are proposed at a time; the most promising one is run to its end.
    prior : float
        Number of successes that it is credited with before it has had any.

    Examples
    --------
    >>> from tempering.search import Candidate, Operator
    >>> class Again(Operator):
    ...     name = "again"
    ...     def propose(self, situation, rng):
    ...         return Candidate(situation.runs.fresh_start(rng))
    >>> Again(tries=2)
    Again(tries=2, prior=1.0)
    """

    tries: int = 3
    prior: float = 1.0
    name: ClassVar[str] = "operator"

    def applies(self, situation: Situation) -> bool:
        """Return whether the situation has what the operator needs."""
        return True

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate | None:
        """Return a start, or None without a proposal."""
        raise NotImplementedError


@dataclass(frozen=True)
class Restart(Operator):
    """A fresh start.

    >>> from tempering.search import Restart
    >>> Restart(tries=5)
    Restart(tries=5, prior=1.0)
    """

    tries: int = 2
    name: ClassVar[str] = "restart"

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate:
        return Candidate(situation.runs.fresh_start(rng))


@dataclass(frozen=True)
class Reheat(Operator):
    """The best solution, heated part of the way and cooled again.

    >>> from tempering.search import Reheat
    >>> Reheat(prior=2.0)
    Reheat(tries=1, prior=2.0)
    """

    tries: int = 1
    name: ClassVar[str] = "reheat"

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate:
        s = float(rng.choice(REHEATED))
        return Candidate(situation.best.posterior, inverse_temperature=s)


@dataclass(frozen=True)
class Swap(Operator):
    """One component emptied, and another one split in two.

    The component to empty is a small one, one of two that share their data, or any. With a table of
    responsibilities the first steps are made on the rows of these components alone, which is much
    cheaper than a pass, so a dozen swaps are tried.

    >>> from tempering.search import Swap
    >>> Swap(tries=20)
    Swap(tries=20, prior=3.0)
    """

    tries: int = 12
    prior: float = 3.0
    name: ClassVar[str] = "swap"

    def applies(self, situation: Situation) -> bool:
        # The two halves of a component differ by the data that are drawn for them.
        several = situation.table is not None or situation.runs.batch.size > 1
        return situation.components is not None and several

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate:
        components, masses = situation.components, situation.masses
        assert components is not None
        out, into = emptied(situation, rng)
        if into is not None and rng.random() < RESPLIT:
            split = into
        else:
            weights = masses + 1e-12 if rng.random() < 0.7 else np.ones(components.n)
            weights = np.where(np.arange(components.n) == out, 0.0, weights)
            split = int(rng.choice(components.n, p=weights / weights.sum()))
        rows = own = None
        if situation.table is not None:
            labels = situation.labels
            among = [out, split] if into is None else [out, split, into]
            rows = np.flatnonzero(np.isin(labels, among) | (situation.table[:, out] > 0.05))
            own = np.flatnonzero((labels == split) | ((labels == out) & (into == split)))
        statistics = as_arrays(situation.best.statistics)
        samples = [self._sample(situation, part, rng) for part in self._parts(situation, own, rng)]
        components.empty(statistics, out, into)
        components.halve(statistics, split, out)
        for place, sample in zip((split, out), samples):
            components.lean(statistics, place, sample, split)
        few = rows is not None and len(rows) < 0.7 * situation.runs.batch.size
        return situation.candidate(statistics, rows if few else None)

    @staticmethod
    def _parts(
        situation: Situation, own: NDArray[np.intp] | None, rng: np.random.Generator
    ) -> list[NDArray[np.intp]]:
        """Return two small sets of rows, of the component that is split where these are known."""
        components, n = situation.components, situation.runs.batch.size
        assert components is not None
        if own is not None and len(own) >= 2:
            size = max(1, min(SPLIT_ROWS, len(own) // 4))
            drawn = rng.permutation(own)[: 2 * size]
        else:
            size = int(min(max(1, n // 6), max(12, SPLIT_ROWS_EACH * components.n)))
            drawn = rng.permutation(n)[: 2 * size]
        return [np.sort(drawn[:size]), np.sort(drawn[size:])]

    @staticmethod
    def _sample(
        situation: Situation, rows: NDArray[np.intp], rng: np.random.Generator
    ) -> Statistics:
        """Return the statistics of some rows at the best solution."""
        runs = situation.runs
        if runs.in_memory:
            local = runs.local_step(situation.best.posterior, rows)
        else:
            data, model = runs.source.sample(len(rows), rng), runs.model
            local = model.local_step(data, model.expectations(situation.best.posterior), 1.0)
            runs.spent += len(rows) / runs.batch.size
        return runs.model.unpack_components(as_arrays(local.statistics))


def emptied(situation: Situation, rng: np.random.Generator) -> tuple[int, int | None]:
    """Return a component to empty, and the one that takes its data, or None for whichever may."""
    masses, kind = situation.masses, rng.integers(3)
    k = len(masses)
    if kind == 0:  # a small one
        weights = 1.0 / (masses + 1e-3)
        return int(rng.choice(k, p=weights / weights.sum())), None
    if kind == 1:
        return int(rng.integers(k)), None
    if situation.table is not None:
        first, second = divmod(int(rng.choice(k * k, p=situation.likeness)), k)
    else:
        first = int(rng.integers(k))
        second = int(situation.apart[first].argmin())
    return (first, second) if masses[first] < masses[second] else (second, first)


@dataclass(frozen=True)
class _Transplant(Operator):
    """An operator that takes components of another solution over."""

    prior: float = 2.0

    def applies(self, situation: Situation) -> bool:
        return situation.components is not None and bool(situation.others)


def _draw(sizes: Array, rng: np.random.Generator) -> int:
    """Return an index drawn in proportion to the sizes; each has a chance."""
    chances = sizes / max(sizes.max(), 1e-300) + 1e-9
    return int(rng.choice(len(chances), p=chances / chances.sum()))


@dataclass(frozen=True)
class Donor(_Transplant):
    """One component emptied, its place taken by one of another solution that the best lacks.

    >>> from tempering.search import Donor
    >>> Donor()
    Donor(tries=3, prior=2.0)
    """

    name: ClassVar[str] = "donor"

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate:
        components, other = situation.components, situation.any_other(rng)
        assert components is not None
        apart = situation.distances(other)
        given = _draw(apart.min(axis=0) * components.masses(other.statistics), rng)
        out, into = emptied(situation, rng)
        statistics = as_arrays(situation.best.statistics)
        components.empty(statistics, out, into)
        matched = components.match(apart)
        matched[out] = given
        components.take_over(statistics, np.array([out]), other.statistics, matched)
        return situation.candidate(statistics)


@dataclass(frozen=True)
class Cross(_Transplant):
    """Some neighbouring components replaced by the matching ones of another solution.

    >>> from tempering.search import Cross
    >>> Cross()
    Cross(tries=3, prior=2.0)
    """

    name: ClassVar[str] = "cross"

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate:
        components, other = situation.components, situation.any_other(rng)
        assert components is not None
        k, apart = components.n, situation.distances(other)
        matched = components.match(apart)
        first = _draw(apart[np.arange(k), matched], rng)
        near = situation.apart[first].copy()
        near[first] = -1.0
        places = np.argsort(near, kind="stable")[: int(rng.integers(1, max(2, k // 2) + 1))]
        statistics = as_arrays(situation.best.statistics)
        components.take_over(statistics, places, other.statistics, matched)
        return situation.candidate(statistics)


#: The operators of a search by default.
OPERATORS: tuple[Operator, ...] = (Restart(), Reheat(), Swap(), Donor(), Cross())
