"""Held-out scores of four topic fits, one change at a time.

40 topics from the docstrings of NumPy, SciPy and scikit-learn, ten passes, the same minibatches and
step sizes. The lines show how well each fit predicts documents that it has not seen. One thing
changes from each fit to the next: the start, the update of documents, and heat (the last fit is at
T > 1 in the shaded part). `tempering demo` makes the same fits and prints them as a table.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from tempering import LatentDirichletAllocation
from tempering.cli.corpora import drawn
from tempering.cli.demo import N_TOPICS, PACKAGES, ladder
from tempering.datasets import load_docstrings
from tempering.evaluation import completion_score, split_documents

corpus = load_docstrings(PACKAGES)
n_documents = corpus.shape[0]
test = drawn(n_documents, int(0.1 * n_documents), seed=0)
training = np.setdiff1d(np.arange(n_documents), test)
split = split_documents(corpus.counts[test], seed=0)


class Scores:
    """A callback that scores the topics of a fit twice a pass."""

    def __init__(self):
        self.passes, self.values = [], []

    def __call__(self, report):
        if report.record.passes >= (len(self.passes) + 1) / 2 - 1e-9:
            topics = report.posterior.parameters().T
            topics = topics / topics.sum(axis=1, keepdims=True)
            self.passes.append(report.record.passes)
            self.values.append(completion_score(*split, topics, alpha=5 / N_TOPICS))


# Colour, line, and how far the label is above the line.
looks = [("#777777", "-", 9), ("#3f7fb5", "-", 11), ("#2c7a4b", "-", -30), ("#c0561f", "--", 9)]
figure = Figure(figsize=(7.0, 4.0), layout="constrained")
axes = figure.subplots()
before = None
for (name, options), (colour, line, above) in zip(ladder().items(), looks):
    scores = Scores()
    lda = LatentDirichletAllocation(N_TOPICS, random_state=0, **options)
    lda.fit(corpus.counts[training], callbacks=[scores])
    last = scores.values[-1]
    label = f"{name}: {last:.2f}" + ("" if before is None else f" ({last - before:+.2f})")
    label = label.replace("-", "−")
    axes.plot(scores.passes, scores.values, line, color=colour, lw=2)
    place = {"xytext": (0, above), "textcoords": "offset points", "ha": "right", "va": "center"}
    axes.annotate(label, (scores.passes[-1], last), color=colour, fontsize=9, **place)
    before = last
hot = lda.history_["passes"][lda.history_["temperature"] > 1.0]
axes.axvspan(0, hot.max(), color="#c0561f", alpha=0.08, lw=0)
axes.text(0.1, -6.45, "T > 1 in the last fit", va="top", fontsize=8, color="#c0561f")
axes.set(xlabel="passes over the documents", ylabel="held-out score (nats a word)")
axes.set(xlim=(0, 10.1), ylim=(None, -6.44))
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "tempered-and-plain.png", dpi=120)
