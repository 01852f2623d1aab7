"""Documents that stream, by `fit` and by `partial_fit`.

30,000 documents are drawn from 20 known topics, and each is read once, 64 at a time. The lines show
how far the topics agree with the true ones (mean cosine, matched one to one). `fit` may look at a
file before it starts, and starts from words. `partial_fit` cannot look ahead: it starts at random,
and misses some topics.
"""

import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure

from tempering import LatentDirichletAllocation
from tempering.corpus import open_source, write
from tempering.datasets import LDAStream
from tempering.evaluation import match_topics

stream = LDAStream(n_documents=30_000, n_topics=20, n_words=2_000, document_length=60)


def agreement(topics):
    topics = topics / topics.sum(axis=1, keepdims=True)
    return match_topics(stream.topics, topics).similarities.mean()


by_fit, by_parts = [], []


def note(report):
    if report.record.step % 20 == 0:
        by_fit.append((report.record.data_seen, agreement(report.posterior.parameters().T)))


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "corpus.parquet"
    write(path, stream)
    lda = LatentDirichletAllocation(20, max_iter=1, random_state=0)
    lda.fit(open_source(path, batch_size=64), callbacks=[note])

lda = LatentDirichletAllocation(20, total_samples=30_000, random_state=0)
batches = (block[i : i + 64] for block in stream.blocks() for i in range(0, block.shape[0], 64))
for number, batch in enumerate(batches):
    lda.partial_fit(batch)
    if number % 20 == 0:
        by_parts.append((64 * (number + 1), agreement(lda.components_)))

figure = Figure(figsize=(7.5, 2.8), layout="constrained")
axis = figure.subplots()
axis.plot(*zip(*by_fit), color="#c1571e", lw=2.5, label="fit, from a file")
axis.plot(*zip(*by_parts), color="0.5", lw=2.5, label="partial_fit, batch by batch")
axis.set(xlabel="documents read", ylabel="cosine to the true topics", ylim=(0, 1.05))
axis.xaxis.set_major_formatter("{x:,.0f}")
axis.legend(frameon=False, loc="lower right")
axis.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "from-disk.png", dpi=110)
