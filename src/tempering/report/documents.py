"""Documents as the page shows them: examples of a topic, temperatures, the hottest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.words import counts_over_words
from tempering.inference import ArraySource, BlockSource
from tempering.report.topics import short, shorts

#: Example documents of a topic, and how much of a document must be about a topic to count as such.
EXAMPLES, ABOUT = 5, 0.1
#: The hottest documents that are listed.
HOTTEST = 50
#: Documents that can be searched, at least: examples and the hottest, and others of the corpus.
SEARCHED = 800
#: Characters of a document's beginning; its words where there is no text; its topics.
SNIPPET, WORDS, TOPICS = 280, 18, 4
#: Bars of the histogram of temperatures.
BINS = 40


@dataclass(frozen=True)
class ReportedDocuments:
    """Documents with words, where they stand in the corpus, and what the model says of them."""

    counts: Any
    numbers: NDArray[np.intp]
    proportions: NDArray[np.float64]
    temperatures: NDArray[np.float64]
    corpus_size: int
    corpus_tokens: float

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Words of each document, [D]."""
        return self.counts.sum(axis=1).astype(float)

    @classmethod
    def read(cls, model: LatentDirichletAllocation, X: Any, limit: int) -> ReportedDocuments:
        """At most ``limit`` documents of X, drawn evenly; those without a word are left out."""
        X = X if isinstance(X, BlockSource) else counts_over_words(model, X)
        counts, numbers = _draw(X, limit)
        filled = np.flatnonzero(counts.sum(axis=1) > 0)
        if filled.size == 0:
            raise ValueError("X must hold at least one word; every document is empty.")
        counts = counts[filled]
        return cls(
            counts,
            numbers[filled],
            model.transform(counts),
            model.document_temperatures(counts),
            X.shape[0],
            float(X.n_tokens if isinstance(X, BlockSource) else X.sum()),
        )

    def examples(self, topic: int) -> NDArray[np.intp]:
        """The documents that are most about a topic, if any is about it at all."""
        share = self.proportions[:, topic]
        # A few words are soon all of one topic, and show little of it.
        telling = share * self.lengths / (self.lengths + np.median(self.lengths))
        best = np.argsort(-telling, kind="stable")[:EXAMPLES]
        return best[share[best] >= ABOUT]

    def hottest(self) -> NDArray[np.intp]:
        """The documents that the topics explain worst, worst first."""
        return np.argsort(-self.temperatures, kind="stable")[:HOTTEST]

    def searched(self, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
        """Those chosen, and others evenly over the corpus, in its order."""
        others = np.setdiff1d(np.arange(len(self.numbers)), chosen)
        n_more = min(max(SEARCHED - chosen.size, 0), others.size)
        even = np.linspace(0, others.size - 1, n_more).round().astype(int)
        return np.union1d(chosen, others[even])

    def spread(self) -> NDArray[np.float64]:
        """The part of the documents that are about each topic, [K]."""
        return (self.proportions >= ABOUT).mean(axis=0)

    def histogram(self) -> dict[str, list[float]]:
        """Numbers of documents by temperature."""
        counts, edges = np.histogram(self.temperatures, bins=BINS)
        return {"edges": shorts(edges), "counts": counts.tolist()}


def describe(
    documents: ReportedDocuments,
    row: int,
    names: Sequence[str] | None,
    texts: Sequence[str] | None,
    vocabulary: Sequence[str],
    marginal: NDArray[np.float64],
) -> dict[str, Any]:
    """One document: name, beginning of its text (or its rarest words), length, topics."""
    number, counts = documents.numbers[row], documents.counts[[row]]
    proportions = documents.proportions[row]
    topics = np.argsort(-proportions, kind="stable")[:TOPICS]
    if texts is None:
        weights = counts.data * -np.log(marginal[counts.indices])
        best = counts.indices[np.argsort(-weights, kind="stable")[:WORDS]]
        text = " · ".join(str(vocabulary[v]) for v in best)
    else:
        # Only so much is looked at: a document may be a book.
        text = " ".join(str(texts[number])[: 20 * SNIPPET].split())
        text = text if len(text) <= SNIPPET else text[:SNIPPET].rsplit(" ", 1)[0] + " …"
    return {
        "name": f"Document {number}" if names is None else str(names[number]),
        "text": text,
        "length": short(counts.sum()),
        "temperature": short(documents.temperatures[row], 4),
        "topics": [(int(k), short(proportions[k], 3)) for k in topics],
    }


def _draw(X: Any, limit: int) -> tuple[Any, NDArray[np.intp]]:
    """Documents as CSR, and their places in the corpus; always the same ones."""
    source = X if isinstance(X, BlockSource) else ArraySource(X)
    # Every source draws the same places.
    places = ArraySource(np.arange(source.size))
    counts, numbers = (each.sample(limit, np.random.default_rng(0)) for each in (source, places))
    return sparse.csr_array(counts), numbers
