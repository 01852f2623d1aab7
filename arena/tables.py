"""Means over seeds; other programs beside this one, and where they are ahead."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from arena.programs import OWN, PROGRAMS
from arena.scores import BETTER

Row = dict[str, Any]

#: What tells comparisons apart.
TASK = ("corpus", "documents", "K", "threads")


class Mean(NamedTuple):
    """Of a measure over seeds."""

    value: float
    deviation: float  # between seeds; nan of a single one
    n: int


class Cell(NamedTuple):
    """A program on a corpus with a number of topics."""

    task: tuple  # the values of TASK
    program: str
    means: dict[str, Mean]


class Comparison(NamedTuple):
    """Another program beside this package, in one measure."""

    other: Cell
    own: Cell
    measure: str
    margin: float  # by which the other one is ahead
    error: float  # of that; nan where one of them has a single seed

    @property
    def is_clear(self) -> bool:
        """Whether it is more than two errors."""
        return abs(self.margin) > 2 * self.error


def cells(rows: list[Row]) -> list[Cell]:
    """A cell for each program, corpus and number of topics that has a result."""
    groups: dict[tuple, list[Row]] = defaultdict(list)
    for row in rows:
        if "error" not in row:
            groups[tuple(row[name] for name in TASK), row["program"]].append(row)
    return [Cell(*named, means(own)) for named, own in sorted(groups.items())]


def means(rows: list[Row]) -> dict[str, Mean]:
    """Of each measure that some seed has."""
    found = {}
    for name in BETTER:
        if values := [row[name] for row in rows if name in row]:
            deviation = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
            found[name] = Mean(float(np.mean(values)), deviation, len(values))
    return found


def comparisons(every: list[Cell]) -> Iterator[Comparison]:
    """All other programs beside this one, in all measures that both have."""
    owns = {cell.task: cell for cell in every if cell.program == OWN}
    for other in every:
        if other.program == OWN or other.program not in PROGRAMS or other.task not in owns:
            continue
        own = owns[other.task]
        for name in [name for name in BETTER if name in other.means and name in own.means]:
            theirs, ours = other.means[name], own.means[name]
            error = math.sqrt(sum(one.deviation**2 / one.n for one in (theirs, ours)))
            yield Comparison(other, own, name, BETTER[name] * (theirs.value - ours.value), error)


def losses(every: list[Cell]) -> list[Comparison]:
    """Each of them in which the other program is ahead; the largest margin of a measure first."""
    found = [one for one in comparisons(every) if one.margin > 0]
    return sorted(found, key=lambda one: (list(BETTER).index(one.measure), -one.margin))


def tally(every: list[Cell]) -> list[tuple]:
    """Program, measure: comparisons in which it is clearly ahead, level and clearly behind."""
    counts: dict[tuple[str, str], Counter] = defaultdict(Counter)
    for one in comparisons(every):
        verdict = "level" if not one.is_clear else "ahead" if one.margin > 0 else "behind"
        counts[one.other.program, one.measure][verdict] += 1
    verdicts = ("ahead", "level", "behind")
    return [(*named, *map(count.get, verdicts, (0, 0, 0))) for named, count in counts.items()]


def beside_published(every: list[Cell]) -> Iterator[tuple]:
    """Corpus, measure, program, value, whose: numbers that others have printed, and then the means
    of the same measure here, over the numbers of topics in the same range."""
    path = Path(__file__).with_name("published.json")
    for given in json.loads(path.read_text(encoding="utf-8")):
        corpus, measure, (least, most) = given["corpus"], given["measure"], given["K"]
        for model, value in given["values"].items():
            yield corpus, measure, model, value, f"published: {given['how']}"
        here: dict[str, dict[int, float]] = defaultdict(dict)
        for (name, _, k, _), program, found in every:
            if name == corpus and least <= k <= most and measure in found:
                here[program][k] = found[measure].value
        for program, values in here.items():
            mean = float(np.mean(list(values.values())))
            yield corpus, measure, program, mean, f"measured, K = {sorted(values)}"
