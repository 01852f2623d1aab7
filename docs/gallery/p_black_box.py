"""What heat gains in ten models.

For ten NumPyro models, the ELBO of a tempered run above that of plain SVI, in each of twenty seeds.
Heat helps clusters, a neural net and Brownian motion, and hardly matters elsewhere. The figures are
those of runs that are kept in `lab/results`.
"""

import json
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

names = {
    "mixture, 2-D": "clusters in 2-D",
    "mixture, 10-D": "clusters in 10-D",
    "network": "neural net",
    "logistic": "logistic regression",
}
runs = Path(__file__).parents[2] / "lab" / "results" / "black-box.jsonl"
elbos = {}
for line in runs.read_text(encoding="utf-8").splitlines():
    run = json.loads(line)
    elbos[run["target"], run["method"]] = run["elbos"]
targets = sorted({target for target, _ in elbos})
gains = {
    target: np.subtract(elbos[target, "adaptive"], elbos[target, "plain"]) for target in targets
}
targets.sort(key=lambda target: gains[target].mean())

figure = Figure(figsize=(7.5, 3.4), layout="constrained")
axis = figure.subplots()
axis.axvline(0, color="0.6", lw=1)
for row, target in enumerate(targets):
    heights = row + np.linspace(-0.25, 0.25, len(gains[target]))
    axis.plot(gains[target], heights, "o", color="#c1571e", alpha=0.5, markersize=4, mew=0)
    axis.plot(gains[target].mean(), row, "k|", markersize=14, mew=2)
axis.set_xscale("symlog", linthresh=1)
axis.set_yticks(range(len(targets)), [names.get(target, target) for target in targets])
axis.set_xlabel("ELBO of tempered SVI above plain SVI, in nats (bars: means)")
axis.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "black-box.png", dpi=110)
