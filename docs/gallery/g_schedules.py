"""Cooling schedules, side by side.

A schedule is a plain function from progress, 0 to 1, to a temperature. The best shape spends its
time where clusters or topics separate.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from tempering import schedules

hold_then_cool = schedules.join([schedules.constant(8.0), schedules.linear(8.0)], [0.4])
shapes = {
    "linear(8)": schedules.linear(8.0),
    "linear_inverse(8)": schedules.linear_inverse(8.0),
    "geometric(8)": schedules.geometric(8.0),
    "join(constant(8), linear(8))": hold_then_cool,
    "lambda u: 1 + 7 * (1 - u)**3": lambda u: 1 + 7 * (1 - u) ** 3,
}
figure = Figure(figsize=(6.0, 3.4), layout="constrained")
axis = figure.subplots()
progress = np.linspace(0, 1, 200)
for name, schedule in shapes.items():
    axis.plot(progress, [schedule(u) for u in progress], lw=2, label=name)
axis.set(xlabel="progress through the tempered part", ylabel="temperature")
axis.legend(frameon=False, fontsize=8)
axis.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "schedules.png", dpi=120)
