"""What the default does with topics, from start to end.

The temperature of a default fit to SciPy's documentation. It starts hot and cools; then the topics
of words are sampled; over the last fifth of the run the topics are averaged.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from tempering import LatentDirichletAllocation
from tempering.datasets import load_docstrings

lda = LatentDirichletAllocation(20, random_state=0).fit(load_docstrings(["scipy"]))
history = lda.history_
temperature = np.asarray(history["temperature"])
passes = 10 * np.arange(1, len(temperature) + 1) / len(temperature)
cooled = passes[history.final_phase_start]

figure = Figure(figsize=(7.5, 2.6), layout="constrained")
axis = figure.subplots()
parts = {
    "is hot, and cools": (0, cooled),
    "T = 1: samples": (cooled, 8),
    "samples and\naverages": (8, 10),
}
for color, (name, (left, right)) in zip(("#f6d9c6", "#dbe6f3", "#b9cfe8"), parts.items()):
    axis.axvspan(left, right, color=color, lw=0)
    axis.text(
        (left + right) / 2, 0.93, name, ha="center", va="top", transform=axis.get_xaxis_transform()
    )
axis.plot(passes, temperature, color="#c1571e", lw=2.5)
axis.set(xlabel="passes over the documents", ylabel="temperature", xlim=(0, 10))
axis.set_ylim(0.9, 1 + 1.35 * (temperature.max() - 1))
axis.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "default-fit.png", dpi=110)
