"""Means over seeds; other programs beside this one, and where they are ahead."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from arena.programs import OWN
from arena.scores import BETTER

Row = dict[str, Any]

VERDICTS = ("ahead", "level", "behind")


class Mean(NamedTuple):
    """Of a measure over seeds."""

    value: float
    deviation: float  # between seeds; nan of a single one
    n: int

    @property
    def error(self) -> float:
        """Of the mean."""
        return self.deviation / math.sqrt(self.n)


class Cell(NamedTuple):
    """A program on a corpus with a number of topics."""

    corpus: str
    documents: int
    n_topics: int
    threads: int
    program: str
    means: dict[str, Mean]
    seeds: int

    @property
    def task(self) -> tuple:
        """What all programs of a comparison share."""
        return self[:4]


class Comparison(NamedTuple):
    """Another program beside this package, in one measure."""

    cell: Cell
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
        if "error" not in row and "seed" in row:
            task = (row["corpus"], row["documents"], row["K"], row["threads"], row["program"])
            groups[task].append(row)
    return [Cell(*task, means(own), len(own)) for task, own in groups.items()]


def means(rows: list[Row]) -> dict[str, Mean]:
    """Of each measure that some seed has."""
    found = {}
    for name in BETTER:
        values = [row[name] for row in rows if row.get(name) is not None]
        if values:
            deviation = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
            found[name] = Mean(float(np.mean(values)), deviation, len(values))
    return found


def comparisons(every: list[Cell]) -> Iterator[Comparison]:
    """All other programs beside this one, in all measures that both have."""
    owns = {cell.task: cell for cell in every if cell.program == OWN}
    for cell in every:
        if cell.program == OWN or cell.task not in owns:
            continue
        own = owns[cell.task]
        for name in [name for name in BETTER if name in cell.means and name in own.means]:
            theirs, mine = cell.means[name], own.means[name]
            margin = BETTER[name] * (theirs.value - mine.value)
            yield Comparison(cell, own, name, margin, math.hypot(theirs.error, mine.error))


def losses(every: list[Cell]) -> list[Comparison]:
    """Each of them in which the other program is ahead; the largest margin of a measure first."""
    found = [one for one in comparisons(every) if one.margin > 0]
    return sorted(found, key=lambda one: (list(BETTER).index(one.measure), -one.margin))


def tally(every: list[Cell]) -> list[Row]:
    """In how many comparisons each program is clearly ahead, level and clearly behind."""
    counts: dict[tuple[str, str], Counter] = defaultdict(Counter)
    for one in comparisons(every):
        verdict = "level" if not one.is_clear else "ahead" if one.margin > 0 else "behind"
        counts[one.cell.program, one.measure][verdict] += 1
    return [
        {"program": program, "measure": name, **{own: count[own] for own in VERDICTS}}
        for (program, name), count in counts.items()
    ]


def published() -> list[Row]:
    """Numbers that others have printed; none of them was measured here."""
    return json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))


def beside_published(every: list[Cell]) -> list[Row]:
    """The published numbers, and the means of the same measure here over the same range of K."""
    rows = []
    for own in published():
        rows.append({**own, "program": own["model"], "whose": "published"})
    for corpus, measure, least, most in dict.fromkeys(
        (own["corpus"], own["measure"], own["least K"], own["most K"]) for own in published()
    ):
        here: dict[str, dict[int, float]] = defaultdict(dict)
        for cell in every:
            if cell.corpus == corpus and least <= cell.n_topics <= most and measure in cell.means:
                here[cell.program][cell.n_topics] = cell.means[measure].value
        for program, values in here.items():
            whose = f"measured, K = {', '.join(map(str, sorted(values)))}"
            value = float(np.mean(list(values.values())))
            found = {"corpus": corpus, "measure": measure, "program": program}
            rows.append({**found, "value": value, "whose": whose})
    return rows
