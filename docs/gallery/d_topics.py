"""Topics, with their words.

Twelve topics of SciPy's documentation, with their most probable words. All panels have the same
scale, so you can see which topics have a few strong words.
"""

import sys

from tempering import LatentDirichletAllocation
from tempering.datasets import load_docstrings
from tempering.plots import plot_topics

corpus = load_docstrings(["scipy"])
lda = LatentDirichletAllocation(12, random_state=0).fit(corpus.counts)
figure = plot_topics(lda, corpus.vocabulary, n_words=7, columns=4)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "topics.png", dpi=120)
