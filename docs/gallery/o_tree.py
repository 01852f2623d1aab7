"""A tree of topics.

Twenty topics of the docstrings of NumPy and SciPy, joined by their distance. Topics that share many
words meet on the left.
"""

import sys

from tempering import LatentDirichletAllocation
from tempering.datasets import load_docstrings
from tempering.workbench import hierarchy

lda = LatentDirichletAllocation(20, random_state=0).fit(load_docstrings(["numpy", "scipy"]))
figure = hierarchy(lda).plot()
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "tree.png", dpi=100, bbox_inches="tight")
