"""A GPU beside 16 cores.

Seconds of a whole fit of topics to 290,000 abstracts, two passes, on one NVIDIA H200 and on 16 CPU
cores of the same machine. The figures are those of runs that are kept in `lab/results`.
"""

import json
import sys
from pathlib import Path

from matplotlib.figure import Figure

runs = Path(__file__).parents[2] / "lab" / "results" / "gpu.jsonl"
fits = [json.loads(line) for line in runs.read_text(encoding="utf-8").splitlines()]

figure = Figure(figsize=(7.5, 2.3), layout="constrained")
axis = figure.subplots()
for row, fit in enumerate(reversed(fits)):
    color = "#c1571e" if fit["where"] == "H200" else "0.6"
    axis.barh(row, fit["seconds"], color=color)
    label = f"{fit['seconds']} s, {fit['documents a second']} documents a second"
    inside = fit["seconds"] > 5
    axis.text(
        fit["seconds"] + (-0.2 if inside else 0.2),
        row,
        label,
        va="center",
        ha="right" if inside else "left",
    )
axis.set_yticks(range(4), [f"{fit['topics']} topics, {fit['where']}" for fit in reversed(fits)])
axis.set_xlabel("seconds of a fit")
axis.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "gpu.png", dpi=110)
