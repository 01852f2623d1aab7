"""One HTML file with all results: sortable tables, two pictures, light and dark."""

from __future__ import annotations

import html
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from arena.programs import OWN, PROGRAMS
from arena.scores import BETTER
from arena.tables import VERDICTS, Cell, Comparison, beside_published, cells, losses, tally
from tempering.storage.atomic import atomic_file

STYLE = """
:root { color-scheme: light dark; --line: #8884; --own: #c2410c; --other: #2563eb; }
@media (prefers-color-scheme: dark) { :root { --own: #fb923c; --other: #7dafff; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1rem; }
.wide { overflow-x: auto; max-height: 40rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
td, th { padding: .15rem .6rem; border-bottom: 1px solid var(--line); text-align: right; }
th { cursor: pointer; position: sticky; top: 0; background: Canvas; white-space: nowrap; }
.text { text-align: left; } .own td { font-weight: 600; }
svg { width: 100%; max-width: 60rem; } text { fill: CanvasText; font-size: 12px; }
circle { fill: var(--other); fill-opacity: .6; } circle.own { fill: var(--own); }
line { stroke: var(--line); }
"""

#: A click on a head sorts by that column, a second one the other way round.
SCRIPT = """
for (const head of document.querySelectorAll("th")) head.onclick = () => {
  const body = head.closest("table").tBodies[0], column = head.cellIndex;
  const down = head.dataset.down = head.dataset.down === "1" ? "0" : "1";
  const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const order = (a, b) => {
    const [x, y] = [value(a), value(b)], byNumber = x - y;
    return isNaN(byNumber) ? String(x).localeCompare(y) : byNumber;
  };
  body.append(...[...body.rows].sort((a, b) => (down === "1" ? -1 : 1) * order(a, b)));
};
"""

INTRODUCTION = """
<p>Topic programs on the same documents. Each fit ran in a process of its own, and is reduced to
its topics; these are scored by the same functions. <b>nats</b>: held-out log probability a word by
document completion, with exact proportions, at the best of four prior weights (and at each of
them); <b>npmi</b>: coherence of ten top words in whole documents; <b>c_npmi</b>, <b>c_v</b>: in
windows of the text, as gensim counts them; <b>stability</b>: mean cosine of the matched topics of
two seeds; <b>recovery</b>: the same with the true topics, where K is theirs; <b>cpu s</b> of all
threads, without imports, compilation and the reading of documents; <b>peak MB</b> with Python in
it. Of these, seconds and memory are better if lower. ± is the standard deviation between seeds.
An error is that of a difference of means; a lead of more than two errors is clear.</p>
"""

Row = dict[str, Any]


def write_page(rows: list[Row], path: Path) -> Path:
    """Write the page of all results."""
    every = cells(rows)
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>The arena</title>",
        "<meta name=viewport content='width=device-width'>",
        f"<style>{STYLE}</style><h1>The arena</h1>{INTRODUCTION}",
        "<h2>How far behind the best: nats a word</h2>",
        strip(behind_the_best(every), "nats a word behind the best program of the comparison"),
        "<h2>CPU seconds, beside this package</h2>",
        strip(
            times_as_slow(every), "CPU seconds, as a multiple of tempering's (logarithmic)", True
        ),
        f"<h2>Where another program is ahead</h2>{losses_table(losses(every))}",
        "<h2>Comparisons, counted</h2>",
        table(["program", "measure", *VERDICTS], map(tuple_of, tally(every))),
        f"<h2>All results</h2>{results_table(every)}",
        f"<h2>Levels: no topics, and the true ones</h2>{levels_table(rows)}",
        f"<h2>Beside published numbers</h2>{published_table(every)}",
        f"<h2>Programs</h2>{programs_table(rows)}",
        f"<script>{SCRIPT}</script></html>",
    ]
    with atomic_file(path) as aside:
        aside.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return path


def tuple_of(row: Row) -> tuple:
    """The values of a row."""
    return tuple(row.values())


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], own: int | None = None) -> str:
    """A table; a value that is a pair is shown as its second part and sorted by its first."""
    lines = ["<div class=wide><table><thead><tr>"]
    rows = [list(row) for row in rows]
    texts = [all(isinstance(row[i], str) for row in rows) for i in range(len(heads))]
    kinds = [" class=text" if text else "" for text in texts]
    lines += [f"<th{kind}>{html.escape(head)}</th>" for head, kind in zip(heads, kinds)]
    lines.append("</tr></thead><tbody>")
    for row in rows:
        mark = " class=own" if own is not None and row[own] == OWN else ""
        lines.append(f"<tr{mark}>{''.join(_entry(v, kind) for v, kind in zip(row, kinds))}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def _entry(value: Any, kind: str) -> str:
    number, text = value if isinstance(value, tuple) else (value, _text(value))
    sort = f' data-value="{number}"' if isinstance(number, int | float) else ""
    return f"<td{kind}{sort}>{html.escape(text)}</td>"


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def losses_table(found: list[Comparison]) -> str:
    """Every comparison in which another program is ahead, its score beside ours."""
    heads = ["measure", "corpus", "documents", "K", "threads", "program", "theirs", "ours", "lead"]
    heads += ["error", "verdict", "nats, theirs", "nats, ours", "cpu s, theirs", "cpu s, ours"]
    rows = []
    for one in found:
        theirs, ours = one.cell.means, one.own.means
        beside = [side[name].value for name in ("nats", "cpu s") for side in (theirs, ours)]
        verdict = "clear" if one.is_clear else "one seed" if math.isnan(one.error) else "level"
        values = theirs[one.measure].value, ours[one.measure].value, one.margin, one.error, verdict
        rows.append([one.measure, *one.cell[:5], *values, *beside])
    return table(heads, rows) if rows else "<p>Nowhere.</p>"


def results_table(every: list[Cell]) -> str:
    """All means, with the deviation between seeds."""
    rows = []
    for cell in sorted(every, key=lambda cell: cell.task):
        found = [cell.means.get(name) for name in BETTER]
        shown = [(one.value, _with_deviation(one)) if one else None for one in found]
        rows.append([*cell[:5], cell.seeds, *shown])
    return table(["corpus", "documents", "K", "threads", "program", "seeds", *BETTER], rows, own=4)


def _with_deviation(one: Any) -> str:
    text = f"{one.value:.1f}" if abs(one.value) >= 20 else f"{one.value:.3f}"
    return text if math.isnan(one.deviation) else f"{text} ± {one.deviation:.2g}"


def levels_table(rows: list[Row]) -> str:
    """What no topics at all reach, and what the true ones do."""
    names = [name for name in BETTER if name.startswith(("nats", "npmi", "diversity"))]
    own = [row for row in rows if "K" not in row]
    shown = [[row["corpus"], row["documents"], row["program"], *map(row.get, names)] for row in own]
    return table(["corpus", "documents", "level", *names], shown)


def published_table(every: list[Cell]) -> str:
    """Numbers printed by others, beside ours on the same corpus."""
    names = ("corpus", "measure", "program", "value", "whose", "note")
    rows = [[row.get(name, "") for name in names] for row in beside_published(every)]
    return table(names, rows, own=2)


def programs_table(rows: list[Row]) -> str:
    """Settings, versions, and fits that failed."""
    found = []
    for name, program in PROGRAMS.items():
        own = [row for row in rows if row["program"] == name]
        versions = ", ".join(sorted({row["version"] for row in own if row.get("version")}))
        errors = sorted({row["error"] for row in own if "error" in row})
        failed = f"{sum('error' in row for row in own)}: {'; '.join(errors)}" if errors else "none"
        found.append([name, versions or "not run", program.settings, failed])
    return table(["program", "version", "settings", "failed fits"], found, own=0)


Points = dict[str, list[tuple[float, str]]]


def behind_the_best(every: list[Cell]) -> Points:
    """Of each program in each comparison: how far it is behind the best one."""
    best: dict[tuple, float] = defaultdict(lambda: -math.inf)
    for cell in every:
        best[cell.task] = max(best[cell.task], cell.means["nats"].value)
    return _points(every, lambda cell: best[cell.task] - cell.means["nats"].value)


def times_as_slow(every: list[Cell]) -> Points:
    """CPU seconds of each program in each comparison, as a multiple of this package's."""
    own = {cell.task: cell.means["cpu s"].value for cell in every if cell.program == OWN}
    known = [cell for cell in every if cell.task in own]
    return _points(known, lambda cell: math.log10(cell.means["cpu s"].value / own[cell.task]))


def _points(every: list[Cell], value: Any) -> Points:
    points: Points = defaultdict(list)
    for cell in every:
        label = f"{cell.program}, {cell.corpus}, {cell.documents} documents, K = {cell.n_topics}"
        points[cell.program].append((value(cell), label))
    return points


def strip(points: Points, label: str, logarithmic: bool = False) -> str:
    """A line of dots for each program; a dot is a comparison, and says which."""
    values = [value for own in points.values() for value, _ in own if math.isfinite(value)]
    if not values:
        return "<p>No results yet.</p>"
    low, high = min(0.0, *values), max(0.1, *values)
    left, width, step = 150, 720, 26
    height = step * len(points)

    def place(value: float) -> float:
        return left + width * (min(value, high) - low) / (high - low)

    drawn = [f"<svg viewBox='0 0 {left + width + 40} {height + 45}' role=img>"]
    for tick in [low + (high - low) * i / 4 for i in range(5)]:
        text = f"{10**tick:.2g}" if logarithmic else f"{tick:.2f}"
        drawn += [f"<line x1={place(tick):.1f} x2={place(tick):.1f} y1=0 y2={height} />"]
        drawn += [f"<text x={place(tick):.1f} y={height + 16} text-anchor=middle>{text}</text>"]
    drawn.append(f"<text x={left} y={height + 36}>{html.escape(label)}</text>")
    for i, name in enumerate(name for name in PROGRAMS if name in points):
        y = step * i + step // 2
        drawn.append(f"<text x={left - 12} y={y + 4} text-anchor=end>{html.escape(name)}</text>")
        mark = " class=own" if name == OWN else ""
        drawn += [
            f"<circle{mark} cx={place(value):.1f} cy={y} r=5><title>{html.escape(text)}: "
            f"{10**value if logarithmic else value:.3g}</title></circle>"
            for value, text in points[name]
        ]
    return "\n".join([*drawn, "</svg>"])
