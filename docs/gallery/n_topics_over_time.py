"""Topics over time, with intervals.

600 drawn documents from thirty years, in which one topic becomes more common and another less. The
bars are 95% intervals of the shares, from draws of topics and proportions.
"""

import sys

import numpy as np

from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda
from tempering.workbench import topics_over_time

drawn = make_lda(1500, n_topics=5, n_words=300, document_length=60, seed=0)
rising, falling = drawn.proportions[:, 0], drawn.proportions[:, 1]
kept = np.random.default_rng(0).permutation(1500)[:600]
order = kept[np.argsort((rising - falling)[kept] + 0.5 * np.random.default_rng(1).normal(size=600))]
X, years = drawn.counts[order], np.linspace(1990, 2020, 600).astype(int)

lda = LatentDirichletAllocation(5, random_state=0).fit(X)
shares = topics_over_time(lda, X, years, bins=8)
change = shares.mean()[-1] - shares.mean()[0]
figure = shares.plot([int(change.argmax()), int(change.argmin()), int(abs(change).argmin())])
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "time.png", dpi=100, bbox_inches="tight")
