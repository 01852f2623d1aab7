"""Moves of single components, and what the bound gains by each.

What is lost by emptying a component and what is gained by splitting one are found separately, by
steps on the data of this component alone. So K gains and K losses score all K² pairs, and pairs
that concern different components are applied at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from tempering.models.base import Array
from tempering.models.natural import permuted
from tempering.search.components import Components, Statistics
from tempering.search.runs import Solution, as_arrays
from tempering.search.situation import Situation

#: Components that are emptied, split, or taken over in a round, at most.
TRIED = 4
#: How much data decide the direction of a split; where those of a component are not known, half as
#: many of all data for each component.
SPLIT_ROWS = 4
#: A datum belongs to the components that have this part of it.
PART = 0.05


class Move(NamedTuple):
    """A change of the statistics of all data."""

    gain: float
    change: Statistics
    places: tuple[int, ...]  # the components that it concerns: first the one it is of


def rows_of(situation: Situation, *places: int) -> NDArray[np.intp] | None:
    """Return the data of some components; None for all data."""
    if situation.table is None or not situation.runs.scores_rows:
        return None
    return rows_in(situation.table, *places)


def rows_in(table: Array, *places: int) -> NDArray[np.intp] | None:
    """Return the rows of a table that have a part in some components; None for most rows."""
    rows = np.flatnonzero(table[:, places].max(axis=1) > PART)
    return rows if len(rows) < 0.7 * len(table) else None


def empty(situation: Situation, out: int) -> Move:
    """Empty a component, and give its data to whichever components take them."""
    components = situation.components
    assert components is not None
    start = as_arrays(situation.best.statistics)
    if situation.masses[out] * situation.runs.batch.size < 1.0:
        nothing = {name: np.zeros_like(part) for name, part in start.items()}
        return Move(0.0, nothing, (out, out))
    components.empty(start, out)
    gain, change = situation.refine(rows_of(situation, out), start)
    shares = components.masses(change)
    shares[out] = -1.0
    return Move(gain, change, (out, int(shares.argmax())))


def emptied(situation: Situation, rng: np.random.Generator) -> list[Move]:
    """Return moves that empty those components whose data others explain nearly as well."""
    masses = situation.masses
    if situation.table is not None:
        # What the data lose where only this component is missing.
        left = situation.table.sum(axis=1, keepdims=True) - situation.table
        masses = -np.log(np.maximum(left, 1e-300)).sum(axis=0)
    order = np.argsort(masses * rng.uniform(0.5, 1.5, size=len(masses)), kind="stable")
    most, moves = situation.runs.spent + 0.5 * situation.most, []
    for out in order[:TRIED]:
        moves.append(empty(situation, int(out)))
        if len(moves) > 1 and situation.runs.spent > most:
            break
    return sorted(moves, key=lambda move: -move.gain)


def donated(situation: Situation, other: Solution, free: int) -> list[Move]:
    """Put the components of another solution that the best lacks into an empty place."""
    components, runs, mine = situation.components, situation.runs, situation.table
    assert components is not None
    table = None if mine is None else runs.responsibilities(other.posterior, components)
    if table is None or mine is None:
        lacks = situation.distances(other).min(axis=0) * components.masses(other.statistics)
    else:
        sizes = table.sum(axis=0)
        lacks = sizes - ((mine.T @ table) ** 2).sum(axis=0) / (sizes + 1e-9)
    moves = []
    for place in np.argsort(-lacks, kind="stable")[: TRIED // 2]:
        start = as_arrays(situation.best.statistics)
        matched = np.arange(components.n)
        matched[free] = place
        components.take_over(start, np.array([free]), other.statistics, matched)
        rows = None
        if table is not None and runs.scores_rows:
            rows = rows_in(table, int(place))
        gain, change = situation.refine(rows, start, free)
        moves.append(Move(gain, change, (free, free)))
    return moves


def split(
    situation: Situation, place: int, free: int, rng: np.random.Generator, joined: bool = False
) -> Move:
    """Split a component in two, as if another one were empty; or both of them, ``joined``."""
    components = situation.components
    assert components is not None
    rows = rows_of(situation, *((place, free) if joined else (place,)))
    start = as_arrays(situation.best.statistics)
    components.empty(start, free, place if joined else None)
    samples = [sample(situation, part) for part in two_parts(situation, rows, rng)]
    components.halve(start, place, free)
    for target, part in zip((place, free), samples):
        components.lean(start, target, part, place)
    slot = None if joined else free
    gain, change = situation.refine(rows, start, slot)
    return Move(gain, change, (place, free))


def crossed(situation: Situation, other: Solution, rng: np.random.Generator) -> list[Move]:
    """Replace groups of components by the matching ones of another solution."""
    components, mine = situation.components, situation.table
    assert components is not None
    table = None
    if mine is not None and situation.runs.scores_rows:
        table = situation.runs.responsibilities(other.posterior, components)
    if mine is None or table is None:
        apart = situation.distances(other)
        matched = components.match(apart)
        groups = [neighbours(situation, apart, matched, rng) for _ in range(TRIED)]
    else:
        shared = mine.T @ table
        matched = components.match(-shared)
        groups = differing(shared[:, matched], rng)
    moves = []
    most = situation.runs.spent + situation.most
    for places in groups:
        rows = None
        if mine is not None and table is not None:
            both = np.concatenate([mine[:, places], table[:, matched[places]]], axis=1)
            rows = rows_in(both, *range(both.shape[1]))
        start = as_arrays(situation.best.statistics)
        components.take_over(start, places, other.statistics, matched)
        gain, change = situation.refine(rows, start)
        moves.append(Move(gain, change, tuple(int(place) for place in places)))
        if situation.runs.spent > most:
            break
    return moves


def neighbours(
    situation: Situation, apart: Array, matched: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return some neighbouring components, about one that differs much from its match."""
    k = len(matched)
    sizes = apart[np.arange(k), matched]
    chances = sizes / max(sizes.max(), 1e-300) + 1e-9
    near = situation.apart[rng.choice(k, p=chances / chances.sum())].copy()
    near[near == np.inf] = -1.0
    return np.argsort(near, kind="stable")[: int(rng.integers(1, max(2, k // 2) + 1))]


def differing(shared: Array, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Return groups of components, in random order, that share no data with the other groups.

    ``shared`` are the data that components of one solution have in common with the matching ones of
    another, [K, K]. Links below a share that is drawn do not count.
    """
    sizes = np.maximum(np.minimum.outer(shared.sum(axis=1), shared.sum(axis=0)), 1.0)
    links = shared / sizes > rng.uniform(0.02, 0.3)
    groups = connected_components(links | links.T, directed=False)[1]
    own, lost = np.diag(shared), shared.sum(axis=1) + shared.sum(axis=0) - 2 * np.diag(shared)
    differs = lost > 2 * PART * (own + 1.0)
    found = [np.flatnonzero(groups == group) for group in rng.permutation(groups.max() + 1)]
    return [group for group in found if differs[group].any()]


def two_parts(
    situation: Situation, rows: NDArray[np.intp] | None, rng: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Return two small sets of rows."""
    components, n = situation.components, situation.runs.batch.size
    assert components is not None
    if rows is not None and len(rows) >= 2:
        size = max(1, min(SPLIT_ROWS, len(rows) // 4))
    else:
        rows = np.arange(n)
        size = min(max(1, n // 6), max(3, components.n // 2) * SPLIT_ROWS)
    drawn = rng.permutation(rows)[: 2 * size]
    return [np.sort(drawn[:size]), np.sort(drawn[size:])]


def sample(situation: Situation, rows: NDArray[np.intp]) -> Statistics:
    """Return the statistics of some rows at the best solution."""
    runs = situation.runs
    local = runs.local_step(situation.best.posterior, rows)
    return runs.model.unpack_components(as_arrays(local.statistics))


def combine(
    components: Components,
    emptied: Sequence[Move],
    splits: Sequence[Move],
    others: Sequence[Move],
    least: float,
) -> list[Statistics]:
    """Return the changes of moves that promise a gain together and concern other components."""
    changes: list[Statistics] = []
    used: set[int] = set()

    def pairs() -> Iterator[tuple[float, list[Statistics], set[int]]]:
        for one in splits:
            for out in emptied:
                place, free = one.places
                if place == free or place not in out.places:
                    order = np.arange(components.n)
                    order[[free, out.places[0]]] = out.places[0], free
                    change = permuted(one.change, components.axes, order)
                    touched = {*out.places} if place == free else {place, *out.places}
                    yield one.gain + out.gain, [change, out.change], touched
        for move in others:
            yield move.gain, [move.change], set(move.places)

    for gain, parts, touched in sorted(pairs(), key=lambda pair: -pair[0]):
        if gain > least and not touched & used:
            changes += parts
            used |= touched
    return changes
