"""Search operators: each proposes starts that lead elsewhere than the best solution so far.

An operator has one method that matters, ``propose``, and no state. Give ``search`` a list with one
of your own, or register it in :data:`OPERATORS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tempering.search import moves
from tempering.search.runs import Candidate, as_arrays
from tempering.search.situation import Situation

#: Inverse temperatures that the best solution is heated to, from the hottest to the coldest.
REHEATED = (0.2, 0.7)


@dataclass(frozen=True)
class Operator:
    """A way to leave an optimum.

    Examples
    --------
    >>> from tempering.search import Candidate, Operator
    >>> class Again(Operator):
    ...     name = "again"
    ...     def propose(self, situation, rng):
    ...         return Candidate(situation.runs.fresh_start(rng))
    >>> Again()
    Again()
    """

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
    >>> Restart()
    Restart()
    """

    name: ClassVar[str] = "restart"

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate:
        return Candidate(situation.runs.fresh_start(rng))


@dataclass(frozen=True)
class Reheat(Operator):
    """The best solution, heated part of the way and cooled again.

    >>> from tempering.search import Reheat
    >>> Reheat()
    Reheat()
    """

    name: ClassVar[str] = "reheat"

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate:
        s = float(rng.uniform(*REHEATED))
        return Candidate(situation.best.posterior, inverse_temperature=s)


def combined(
    situation: Situation,
    emptied: list[moves.Move],
    fills: list[moves.Move],
    others: list[moves.Move],
) -> Candidate | None:
    """Return a start with all moves that promise a gain together; None without any."""
    assert situation.components is not None
    least = 0.5 * situation.runs.margin
    changes = moves.combine(situation.components, emptied, fills, others, least)
    if not changes and not fills:  # what is best after a few steps may gain in a run
        promising = max(others, key=lambda move: move.gain, default=None)
        changes = [promising.change] if promising and promising.gain > -np.inf else []
    statistics = as_arrays(situation.best.statistics)
    for change in changes:
        for name, part in change.items():
            statistics[name] += part
    return situation.candidate(statistics) if changes else None


@dataclass(frozen=True)
class Swap(Operator):
    """Some components emptied, and their places filled: by halves of others that are split, or by
    components of another solution that the best lacks.

    What each part loses or gains is found alone, by steps on its own data; all pairs that promise
    a gain together, and concern different components, are made at once.

    >>> from tempering.search import Swap
    >>> Swap()
    Swap()
    """

    name: ClassVar[str] = "swap"

    def applies(self, situation: Situation) -> bool:
        # The two halves of a component differ by the data that are drawn for them.
        several = situation.table is not None or situation.runs.batch.size > 1
        return situation.components is not None and situation.runs.in_memory and several

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate | None:
        runs, masses = situation.runs, situation.masses
        most = runs.spent + situation.most
        emptied = moves.emptied(situation, rng)
        order = np.argsort(rng.exponential(size=len(masses)) / (masses + 1e-9), kind="stable")
        fills = []
        for place in order[: moves.TRIED]:
            free = emptied[int(emptied[0].places[0] == place)].places[0]
            fills.append(moves.split(situation, int(place), free, rng))
            if runs.spent > most:
                break
        if situation.others and runs.spent < most:
            other = situation.others[rng.integers(len(situation.others))]
            fills += moves.donated(situation, other, emptied[0].places[0])
        (free, place), others = emptied[rng.integers(len(emptied))].places, []
        if place != free and runs.spent < most:
            others.append(moves.split(situation, place, free, rng, joined=True))
        return combined(situation, emptied, fills, others)


@dataclass(frozen=True)
class Cross(Operator):
    """Neighbouring components replaced by the matching ones of another solution.

    Where the two solutions differ in several places, each place is tried alone, and all that
    promise a gain are taken over at once.

    >>> from tempering.search import Cross
    >>> Cross()
    Cross()
    """

    name: ClassVar[str] = "cross"

    def applies(self, situation: Situation) -> bool:
        return situation.components is not None and bool(situation.others)

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate | None:
        other = situation.others[rng.integers(len(situation.others))]
        return combined(situation, [], [], moves.crossed(situation, other, rng))


#: The operators of a search by default.
OPERATORS: tuple[Operator, ...] = (Restart(), Reheat(), Swap(), Cross())
