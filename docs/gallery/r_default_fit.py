"""What the default does with topics, from start to end.

The step sizes of a default fit to SciPy's documentation. The topics start from words, and those of
each word are sampled; over the last fifth of the run the topics are averaged.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from tempering import LatentDirichletAllocation
from tempering.datasets import load_docstrings

lda = LatentDirichletAllocation(20, random_state=0).fit(load_docstrings(["scipy"]))
rates = np.asarray(lda.history_["learning_rate"])
passes = 10 * np.arange(1, len(rates) + 1) / len(rates)

figure = Figure(figsize=(7.5, 2.6), layout="constrained")
axis = figure.subplots()
parts = {
    "starts from words, and samples the topic of each word (T = 1)": (0, 8),
    "samples and\naverages": (8, 10),
}
for color, (name, (left, right)) in zip(("#dbe6f3", "#b9cfe8"), parts.items()):
    axis.axvspan(left, right, color=color, lw=0)
    axis.text(
        (left + right) / 2, 0.93, name, ha="center", va="top", transform=axis.get_xaxis_transform()
    )
axis.plot(passes, rates, color="#c1571e", lw=2.5)
axis.set(xlabel="passes over the documents", ylabel="step size", xlim=(0, 10))
axis.set_ylim(0, 1.35 * rates.max())
axis.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "default-fit.png", dpi=110)
