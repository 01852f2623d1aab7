"""Topics, with their words.

Twelve topics of SciPy's documentation. One scale for all panels: a topic with a few strong
words looks like one.
"""

import sys

from tempering import LatentDirichletAllocation
from tempering.datasets import load_docstrings
from tempering.plots import plot_topics

corpus = load_docstrings(["scipy"])
lda = LatentDirichletAllocation(12, random_state=0).fit(corpus.counts)
figure = plot_topics(lda, corpus.vocabulary, n_words=7, columns=4)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "topics.png", dpi=120)
