"""Three NumPyro models, plain and tempered.

The ELBO of twenty seeds for a small neural net, a horseshoe regression, and growth curves with a
bad start. Heat helps the first. The figures are those of runs that are kept in `lab/results`.
"""

import json
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

runs = Path(__file__).parents[2] / "lab" / "results" / "black-box.jsonl"
elbos = {}
for line in runs.read_text(encoding="utf-8").splitlines():
    run = json.loads(line)
    elbos[run["target"], run["method"]] = np.array(run["elbos"], float)
models = {"a neural net": "network", "a horseshoe": "horseshoe", "growth curves": "growth curves"}
methods = {"tempered": "adaptive", "two plain runs": "2 x steps", "plain": "plain"}

figure = Figure(figsize=(9.0, 2.4), layout="constrained")
axes = figure.subplots(1, 3, sharey=True)
for axis, (title, target) in zip(axes, models.items()):
    for row, method in enumerate(methods.values()):
        values = elbos[target, method]
        color = "#c1571e" if method == "adaptive" else "0.5"
        spread = np.linspace(-0.2, 0.2, len(values))
        axis.plot(values, row + spread, "o", color=color, alpha=0.5, markersize=5, mew=0)
        axis.plot(values.mean(), row, "k|", markersize=16, mew=2)
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("ELBO")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_yticks(range(3), methods)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "three-models.png", dpi=110)
