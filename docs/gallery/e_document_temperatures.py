"""Documents that do not fit.

In two hundred documents, half of the words are replaced by words drawn from the whole corpus. The
fit does not see these documents. The temperature that would suit each document tells the spoiled
ones from the others.
"""

import sys

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda

rng = np.random.default_rng(0)
made = make_lda(n_documents=3000, n_topics=20, n_words=1000, document_length=80, seed=0)
frequencies = made.counts.sum(axis=0) / made.counts.sum()
counts = made.counts.toarray()
for i in range(200):
    half = rng.binomial(counts[i], 0.5)
    counts[i] = half + rng.multinomial(int((counts[i] - half).sum()), frequencies)

lda = LatentDirichletAllocation(20, random_state=0).fit(sparse.csr_array(counts[200:]))
temperatures = lda.document_temperatures(sparse.csr_array(counts))

figure = Figure(figsize=(6.0, 3.2), layout="constrained")
axis = figure.subplots()
bins = np.linspace(1, temperatures.max(), 50)
axis.hist(temperatures[200:], bins, density=True, alpha=0.7, color="#2e63c9", label="as drawn")
axis.hist(temperatures[:200], bins, density=True, alpha=0.7, color="#c0561f", label="spoiled")
axis.set(xlabel="temperature of the document", ylabel="density")
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "document-temperatures.png", dpi=120)
