"""Figures of the topic-model experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction.experiment import Row
from reproduction.lda_claims import AVI, groups, ran
from reproduction.lda_fits import (
    DAMPED_LVT,
    DAMPED_VT,
    DEFAULT,
    PRINTED_LVT,
    PRINTED_VT,
)

#: Colour and line of each method; the same in all figures.
STYLES: dict[str, tuple[str, str]] = {
    "SVI": ("black", "-"),
    AVI[0]: ("#9ecae1", "-"),
    AVI[1]: ("#4292c6", "-"),
    AVI[2]: ("#08519c", "-"),
    "VT": ("#d62728", "-"),
    PRINTED_VT: ("#d62728", ":"),
    DAMPED_VT: ("#d62728", "--"),
    "LVT": ("#2ca02c", "-"),
    PRINTED_LVT: ("#2ca02c", ":"),
    DAMPED_LVT: ("#2ca02c", "--"),
    DEFAULT: ("#9467bd", "-."),
}


def draw_curves(rows: list[Row], path: Path) -> None:
    """Like Figure 2: scores by documents visited, and the temperature schedules beside them."""
    from tempering.plots.canvas import new_figure

    each = groups(rows)
    figure = new_figure(figsize=(11.0, 3.6 * len(each) + 0.8))
    grid = figure.subplots(len(each), 2, squeeze=False, width_ratios=(1.35, 1.0))
    for (left, right), group in zip(grid, each):
        for method, (colour, line) in STYLES.items():
            own = [row for row in group if row["method"] == method]
            if own:
                style = {"color": colour, "ls": line, "lw": 1.6, "label": method}
                _draw_mean(left, own, "visits", "scores", style)
                _draw_mean(right, own, "heat_visits", "temperatures", style)
        left.set_title(ran(group), fontsize=10, loc="left")
        left.set_ylabel("held-out nats a word")
        left.set_ylim(_interesting(group))
        right.set_ylabel("temperature, 1 / E[1/T]")
        right.set_yscale("log")
        right.set_yticks([1, 1.5, 2, 3, 5, 10], ["1", "1.5", "2", "3", "5", "10"])
        right.minorticks_off()
        for axis in (left, right):
            tidy(axis)
            axis.set_xlabel("documents visited")
            axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
            axis.tick_params(axis="x", labelsize=8)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)


def _draw_mean(axis: Any, rows: list[Row], x: str, y: str, style: dict[str, Any]) -> None:
    """The mean over seeds, and their range as a band."""
    curves = np.array([row[y] for row in rows], float)
    axis.plot(rows[0][x], curves.mean(axis=0), **style)
    if len(rows) > 1:
        low, high = curves.min(axis=0), curves.max(axis=0)
        axis.fill_between(rows[0][x], low, high, color=style["color"], alpha=0.15, lw=0)


def _interesting(rows: list[Row]) -> tuple[float, float]:
    """From a little below where SVI is after a tenth of the run to a little above the best."""
    early = [np.interp(0.1 * row["visits"][-1], row["visits"], row["scores"]) for row in rows]
    early = [value for value, row in zip(early, rows) if row["method"] == "SVI"]
    top = max(max(row["scores"]) for row in rows)
    bottom = min([*early, *(row["scores"][-1] for row in rows)])
    return bottom - 0.05 * (top - bottom), top + 0.05 * (top - bottom)


def tidy(axis: Any) -> None:
    """Two spines and a light grid."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25, lw=0.5)
