"""Share of searches at the best optimum, by their CPU time.

The share of fits that end within half a nat of the best ELBO that is known, on 43 test problems
with three seeds each. Time is counted in plain fits. Restarts of plain inference have the same CPU
time. The figures are those of runs that are kept in `lab/results`.
"""

import json
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

runs = Path(__file__).parents[2] / "lab" / "results" / "search-curve.jsonl"
rows = [json.loads(line) for line in runs.read_text(encoding="utf-8").splitlines()]
times = np.geomspace(1, 20, 60)
figure = Figure(figsize=(7.5, 3.6), layout="constrained")
axis = figure.subplots()
for method, color in (("search", "#c1571e"), ("restarts", "0.5")):
    levels = [
        [min([gap for spent, gap in row["gaps"] if spent <= time]) < 0.5 for time in times]
        for row in rows
        if row["method"] == method
    ]
    share = np.mean(levels, axis=0)
    axis.plot(times, share, color=color, lw=2)
    name = {"search": "tempering.search", "restarts": "restarts of plain inference"}[method]
    side = 0.03 if method == "search" else -0.08
    axis.annotate(name, (times[-1], share[-1] + side), color=color, ha="right")
axis.set_xscale("log")
axis.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
axis.minorticks_off()
axis.set_ylim(0, 1)
axis.set_xlabel("CPU time, in plain fits")
axis.set_ylabel("share of fits at the best known ELBO")
axis.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "search-curve.png", dpi=110)
