"""One hill becomes two: the landscape as it cools.

Two Gaussians at −3.2 and 3.2, with weights 0.3 and 0.7. Each panel shows the tempered bound as a
function of the two means to be learned: lighter is higher. At a high temperature there is one hill,
where both means are equal. As the fit cools the hill splits in two, and leads to the higher one. If
the name of the picture ends in `.gif`, the script draws an animation.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.figure import Figure

rng = np.random.default_rng(0)
weights, truth = np.array([0.3, 0.7]), np.array([-3.2, 3.2])
x = np.repeat(truth, (90, 210)) + rng.normal(size=300)
grid = np.linspace(-6, 6, 81)
fit = [np.log(w) - 0.5 * (x[:, None] - grid) ** 2 for w in weights]  # [data, means]


def bound(temperature):
    """T Σ_n log Σ_k exp{log p(x_n, z_n = k) / T}, by both means, and less a weak prior's part."""
    first, second = (each / temperature for each in fit)
    total = np.logaddexp(first[:, :, None], second[:, None, :]).sum(axis=0)
    return temperature * total - (grid[:, None] ** 2 + grid**2) / 50


def cooled(temperatures):
    """Where coordinate ascent stands after each temperature, from a start in the wrong basin."""
    means, path = np.array([4.0, 1.0]), []
    for temperature in temperatures:
        logits = (np.log(weights) - 0.5 * (x[:, None] - means) ** 2) / temperature
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        means = (shares * x[:, None]).sum(axis=0) / (shares.sum(axis=0) + temperature / 25)
        path.append(means)
    return np.array(path)


temperatures = np.linspace(20, 1, 60)
path = cooled(temperatures)
out = Path(sys.argv[1] if len(sys.argv) > 1 else "landscape.png")


def draw(axis, step):
    axis.clear()
    values = bound(temperatures[step])
    low, high = np.quantile(values, 0.3), values.max()
    axis.contourf(grid, grid, values.T, levels=np.linspace(low, high, 16), extend="min")
    axis.plot(*path[: step + 1].T, color="white", lw=1.5)
    axis.plot(*path[step], "o", color="#c0561f", ms=9, mec="white")
    axis.set(title=f"T = {temperatures[step]:.1f}", xlabel="first mean", ylabel="second mean")
    axis.set_aspect("equal")


if out.suffix == ".gif":
    figure = Figure(figsize=(4.4, 4.4), layout="constrained")
    axis = figure.subplots()
    steps = [*range(len(path)), *[len(path) - 1] * 15]
    FuncAnimation(figure, lambda step: draw(axis, step), steps).save(out, PillowWriter(12), dpi=75)
else:
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    for axis, step in zip(figure.subplots(1, 4), (2, 25, 40, 59)):
        draw(axis, step)
    figure.savefig(out, dpi=100)
