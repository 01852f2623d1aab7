"""One HTML file with all results: sortable tables, two pictures, light and dark."""

from __future__ import annotations

import html
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from arena.programs import OWN, PROGRAMS
from arena.scores import BETTER
from arena.tables import TASK, Cell, Comparison, Mean, Row, beside_published, cells, losses, tally
from tempering.storage.atomic import atomic_file


def write_page(rows: list[Row], path: Path) -> Path:
    """Write the page of all results."""
    every = cells(rows)
    best: dict[tuple, float] = defaultdict(lambda: -math.inf)
    for cell in every:
        if cell.program in PROGRAMS:
            best[cell.task] = max(best[cell.task], cell.means["nats"].value)
    own = {cell.task: cell.means["cpu s"].value for cell in every if cell.program == OWN}
    timed = [cell for cell in every if cell.task in own and cell.program in PROGRAMS]
    parts = {
        "BEHIND": strip(every, lambda cell: best[cell.task] - cell.means["nats"].value),
        "SECONDS": strip(
            timed, lambda cell: math.log10(cell.means["cpu s"].value / own[cell.task]), True
        ),
        "LOSSES": losses_table(losses(every)),
        "TALLY": table(["program", "measure", "ahead", "level", "behind"], tally(every)),
        "RESULTS": table(
            [*TASK, "program", *BETTER],
            ([*cell.task, cell.program, *map(cell.means.get, BETTER)] for cell in every),
        ),
        "PUBLISHED": table(
            ["corpus", "measure", "program", "value", "whose"], beside_published(every)
        ),
        "PROGRAMS": programs_table(rows),
    }
    page = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        page = page.replace(f"<!-- {name} -->", part)
    with atomic_file(path) as aside:
        aside.write_text(page, encoding="utf-8")
    return path


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table that can be sorted; rows of this package stand out."""
    lines = ["<div class=wide><table><thead><tr>", *(f"<th>{head}</th>" for head in heads)]
    lines.append("</tr></thead><tbody>")
    for row in rows:
        mark = " class=own" if OWN in row else ""
        lines.append(f"<tr{mark}>{''.join(map(_entry, row))}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def _entry(value: Any) -> str:
    """A cell of a table, with the number that it is sorted by."""
    if isinstance(value, str):
        return f"<td class=text>{html.escape(value)}</td>"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "<td data-value=-Infinity>–</td>"
    if isinstance(value, Mean):
        return f"<td data-value={value.value}>{_mean(value)}</td>"
    return f"<td data-value={value}>{f'{value:.4g}' if isinstance(value, float) else value}</td>"


def _mean(mean: Mean) -> str:
    text = f"{mean.value:.1f}" if abs(mean.value) >= 20 else f"{mean.value:.3f}"
    return text if math.isnan(mean.deviation) else f"{text} ± {mean.deviation:.2g}"


def losses_table(found: list[Comparison]) -> str:
    """Every comparison in which another program is ahead; scores and seconds stand beside it."""
    heads = ["measure", *TASK, "program", "theirs", "ours", "lead", "error", "verdict"]
    beside = ("nats", "cpu s")
    heads += [f"{name}, {whose}" for name in beside for whose in ("theirs", "ours")]
    rows = []
    for one in found:
        sides = one.other.means, one.own.means
        verdict = "clear" if one.is_clear else "one seed" if math.isnan(one.error) else "level"
        values = [*(side[one.measure].value for side in sides), one.margin, one.error, verdict]
        values += [side[name].value for name in beside for side in sides]
        rows.append([one.measure, *one.other.task, one.other.program, *values])
    return table(heads, rows)


def programs_table(rows: list[Row]) -> str:
    """Settings, versions, and fits that failed."""
    found = []
    for name, program in PROGRAMS.items():
        own = [row for row in rows if row["program"] == name]
        versions = ", ".join(sorted({row["version"] for row in own}))
        errors = [row["error"] for row in own if "error" in row]
        failed = "; ".join([str(len(errors)), *sorted(set(errors))])
        found.append([name, versions or "not run", program.settings, failed])
    return table(["program", "version", "settings", "failed fits"], found)


def strip(every: list[Cell], value: Callable[[Cell], float], logarithmic: bool = False) -> str:
    """A line of dots for each program; a dot is a comparison, and says which."""
    shown = [cell for cell in every if cell.program in PROGRAMS and math.isfinite(value(cell))]
    if not shown:
        return "<p>No results yet.</p>"
    text = (lambda x: f"{10**x:.2g} times") if logarithmic else "{:.3f}".format
    values = [value(cell) for cell in shown]
    low, high = min(0.0, *values), max(0.1, *values)
    names = [name for name in PROGRAMS if any(cell.program == name for cell in shown)]
    left, width, step = 150, 720, 26
    drawn = [f"<svg viewBox='0 0 {left + width + 50} {step * len(names) + 25}' role=img>"]
    for part in range(5):
        x, y = left + width * part / 4, step * len(names)
        drawn += [f"<line x1={x} x2={x} y1=0 y2={y} />"]
        tick = text(low + (high - low) * part / 4)
        drawn += [f"<text x={x} y={y + 16} text-anchor=middle>{tick}</text>"]
    for i, name in enumerate(names):
        drawn += [f"<text x={left - 12} y={step * i + 17} text-anchor=end>{name}</text>"]
    for cell, own in zip(shown, values):
        x, y = left + width * (own - low) / (high - low), step * names.index(cell.program) + 13
        mark = " class=own" if cell.program == OWN else ""
        told = html.escape(f"{cell.program}, {cell.task}: {text(own)}")
        drawn += [f"<circle{mark} cx={x:.1f} cy={y} r=5><title>{told}</title></circle>"]
    return "\n".join([*drawn, "</svg>"])
