"""Figure 1 of the paper: contours of the annealed ELBO over two means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tempering.plots.canvas import new_figure


def draw_landscape(
    path: Path,
    grid: np.ndarray,
    surfaces: Mapping[float, np.ndarray],
    optima: Mapping[float, Sequence[tuple[float, float]]],
    annealed_path: Sequence[tuple[float, float, float]],
) -> None:
    """One panel a temperature, its optima marked, and the annealed run as far as it has cooled.

    Rows of a surface are μ0, drawn upwards; an optimum is (μ0, μ1); the path is (T, μ0, μ1).
    """
    figure = new_figure(figsize=(3.2 * len(surfaces), 3.6))
    axes = figure.subplots(1, len(surfaces), sharey=True)
    walked = np.asarray(annealed_path)
    for axis, (temperature, values) in zip(axes, surfaces.items()):
        depth = values.max() - values
        # Levels crowd towards the top, where the optima are.
        levels = -depth.max() * np.linspace(1.0, 0.0, 30) ** 4
        axis.contourf(grid, grid, -depth, levels=levels, cmap="viridis")
        axis.contour(grid, grid, -depth, levels=levels[:-1], colors="black", linewidths=0.25)
        ranked = sorted(optima[temperature], key=lambda at: _height(values, grid, at))
        for at in ranked[:-1]:
            axis.plot(at[1], at[0], "o", color="red", fillstyle="none", markersize=8)
        best = ranked[-1]
        axis.plot(best[1], best[0], "o", color="red", markersize=8, label="global optimum")
        so_far = walked[walked[:, 0] >= temperature - 1e-9]
        axis.plot(so_far[0, 2], so_far[0, 1], "s", color="white", markersize=5)
        axis.plot(so_far[:, 2], so_far[:, 1], "-", color="white", linewidth=2)
        axis.plot(
            so_far[:, 2], so_far[:, 1], ".-", color="black", lw=0.8, ms=3, label="annealed run"
        )
        axis.set_title(
            f"T = {temperature:g}  ({len(ranked)} optim{'um' if len(ranked) == 1 else 'a'})"
        )
        axis.set_xlabel("$\\mu_1$")
    axes[0].set_ylabel("$\\mu_0$")
    axes[0].legend(loc="lower left", fontsize=8)
    figure.savefig(path, dpi=120)


def _height(values: np.ndarray, grid: np.ndarray, at: tuple[float, float]) -> float:
    i, j = (int(np.argmin(np.abs(grid - coordinate))) for coordinate in at)
    return float(values[i, j])
