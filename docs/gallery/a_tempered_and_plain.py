"""A tempered fit beside plain stochastic variational inference.

40 topics from the docstrings of NumPy, SciPy and scikit-learn, ten passes, the same batches. Above
is the temperature; below, how well each fit predicts documents that it has not seen. The dashed
line is a fit at T = 1 with posterior-mean topics instead of the paper's update.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from tempering import LatentDirichletAllocation
from tempering.datasets import load_docstrings
from tempering.evaluation import completion_score, split_documents

corpus = load_docstrings(["numpy", "scipy", "sklearn"])
rows = np.random.default_rng(0).permutation(corpus.shape[0])
held_out, training = corpus.counts[rows[:300]], corpus.counts[rows[300:]]
split = split_documents(held_out, seed=0)


class Scores:
    """A callback that scores the topics of a fit twice a pass."""

    def __init__(self):
        self.passes, self.values = [], []

    def __call__(self, report):
        if report.record.passes >= (len(self.passes) + 1) / 2 - 1e-9:
            topics = report.posterior.parameters().T
            topics = topics / topics.sum(axis=1, keepdims=True)
            self.passes.append(report.record.passes)
            self.values.append(completion_score(*split, topics, alpha=0.1))


settings = {
    "plain SVI": ({"tempering": None, "update": "variational"}, "#8a8a8a", "-"),
    "posterior-mean topics, T = 1": ({"tempering": None, "update": "mean"}, "#8a8a8a", "--"),
    "tempered (default)": ({}, "#c0561f", "-"),
}
figure = Figure(figsize=(7.0, 4.4), layout="constrained")
above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1, 2])
for name, (options, colour, line) in settings.items():
    scores = Scores()
    lda = LatentDirichletAllocation(40, random_state=0, **options)
    lda.fit(training, callbacks=[scores])
    above.plot(lda.history_["passes"], lda.history_["temperature"], line, color=colour, lw=2)
    below.plot(scores.passes, scores.values, line, color=colour, lw=2, label=name)
    below.annotate(
        f"{scores.values[-1]:.2f}".replace("-", "−"),
        (scores.passes[-1], scores.values[-1]),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        color=colour,
    )
above.set_ylabel("temperature")
below.set(xlabel="passes over the documents", ylabel="held-out nats a word")
below.legend(frameon=False, loc="center right", fontsize=9)
for axis in (above, below):
    axis.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "tempered-and-plain.png", dpi=120)
