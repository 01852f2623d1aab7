"""Topics and documents as the page shows them.

Of topics: their words, how near they are, their shares of the corpus. Stored of a topic is every
word that comes to its top for some relevance (Sievert and Shirley, 2014), λ log p(w | k) +
(1 − λ) log p(w | k) / p(w), which the page computes. Of documents: examples of a topic,
temperatures, the hottest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.words import counts_over_words
from tempering.evaluation.checks import normalised
from tempering.inference import ArraySource, BlockSource
from tempering.workbench import TopicShares
from tempering.workbench.shares import called

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

#: Words that a topic shows.
TOP_WORDS = 30
#: The values of λ that the page's slider can take.
RELEVANCE_STEPS = np.linspace(0.0, 1.0, 21)
#: The frequent words that can be searched, beside those that a topic shows.
SEARCHED_WORDS = 5_000
#: The least part of a word's uses for which a topic is stored with it.
LEAST_SHARE = 0.01
#: Shares are stored in parts of this, as whole numbers: half the room of fractions.
WHOLE = 10_000
#: Example documents of a topic, and how much of a document must be about a topic to count as such.
EXAMPLES, ABOUT = 5, 0.1
#: Characters of a document's beginning.
SNIPPET = 280
#: Bars of the histogram of temperatures.
BINS = 40


def short(value: Any, digits: int = 5) -> float:
    """A number with that many significant digits: a page of full doubles is three times as big."""
    return float(f"{value:.{digits}g}")


def shorts(values: ArrayLike) -> list[float]:
    """Each number of a row, shortened."""
    return [short(value) for value in np.asarray(values, float)]


@dataclass(frozen=True)
class TopicWords:
    """Topics p(w | k) [K, V], and what follows from them and their sizes p(k) [K]."""

    topics: Floats
    prevalence: Floats
    marginal: Floats
    n_tokens: float

    @classmethod
    def from_parameters(cls, parameters: Any, prior: float | Floats) -> TopicWords:
        """From the Dirichlet parameters of the topics, (K, V), and η, which is in each of them."""
        parameters = np.asarray(parameters, float)
        totals = parameters.sum(axis=1)
        priors = np.broadcast_to(prior, parameters.shape).sum(axis=1)
        counts = np.maximum(totals - priors, 0.0)
        # Topics that nothing was assigned to share alike, as their prior says.
        weights = counts if counts.sum() > 0 else np.ones_like(counts)
        topics = normalised(parameters)
        prevalence = weights / weights.sum()
        return cls(topics, prevalence, prevalence @ topics, float(counts.sum()))

    def relevant(self, topic: int, n_words: int = TOP_WORDS) -> Places:
        """Words among the topic's ``n_words`` most relevant for one of the slider's λ at least."""
        n_words = min(n_words, self.marginal.size)
        log_topic, log_marginal = np.log(self.topics[topic]), np.log(self.marginal)
        tops = [
            np.argpartition((1.0 - weight) * log_marginal - log_topic, n_words - 1)[:n_words]
            for weight in RELEVANCE_STEPS
        ]
        return np.unique(tops)

    def shares(self, words: Places) -> Floats:
        """p(k | w): how the uses of each word are divided among the topics, [K, len(words)]."""
        return self.prevalence[:, None] * self.topics[:, words] / self.marginal[words]

    def frequent(self, n_words: int) -> Places:
        """The most frequent words, most frequent first."""
        return np.argsort(-self.marginal, kind="stable")[:n_words]

    def positions(self) -> Floats:
        """The topics in a plane, [K, 2], near where alike: scaled Jensen-Shannon distances."""
        kept = self.topics[:, self.frequent(SEARCHED_WORDS)]
        rest = np.maximum(1.0 - kept.sum(axis=1, keepdims=True), 0.0)
        return classical_scaling(squareform(pdist(np.hstack([kept, rest]), "jensenshannon")))


def classical_scaling(distances: Floats) -> Floats:
    """Points of a plane, [K, 2], with nearly these distances [K, K]; always on the same sides."""
    squares = np.square(distances)
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    values, vectors = np.linalg.eigh(-0.5 * centred)
    points = np.zeros((len(distances), 2))
    largest = slice(None, -3, -1)
    found = vectors[:, largest] * np.sqrt(np.maximum(values[largest], 0.0))
    points[:, : found.shape[1]] = found
    extremes = points[np.abs(points).argmax(axis=0), [0, 1]]
    return points * np.where(extremes < 0, -1.0, 1.0)


def word_table(words: TopicWords, relevant: list[Places], vocabulary: Any) -> dict[str, Any]:
    """The words that the page knows: text, probability, and the topics that use it most."""
    known = known_words(words, relevant)
    shares = words.shares(known)
    return {
        "text": [str(vocabulary[v]) for v in known],
        "probability": shorts(words.marginal[known]),
        "topics": [_main_topics(column) for column in shares.T],
    }


def known_words(words: TopicWords, relevant: list[Places]) -> Places:
    """The words of the table: what topics show, and the frequent ones; in the table's order."""
    return np.unique(np.concatenate([*relevant, words.frequent(SEARCHED_WORDS)]))


def _main_topics(shares: Floats) -> list[int]:
    largest = np.argsort(-shares, kind="stable")[:6]
    kept = [k for k in largest if shares[k] >= LEAST_SHARE] or [largest[0]]
    return [number for k in kept for number in (int(k), round(1000 * float(shares[k])))]


def topic_table(words: TopicWords, relevant: list[Places]) -> list[dict[str, Any]]:
    """The topics, largest first, each with its number in the model."""
    known = known_words(words, relevant)
    positions = words.positions()
    return [
        {
            "id": int(k),
            "prevalence": short(words.prevalence[k]),
            "x": short(positions[k, 0], 4),
            "y": short(positions[k, 1], 4),
            "words": np.searchsorted(known, relevant[k]).tolist(),
            "probabilities": shorts(words.topics[k, relevant[k]]),
        }
        for k in np.argsort(-words.prevalence, kind="stable")
    ]


def share_table(shares: Any, argument: str, n_topics: int, *, in_order: bool) -> dict[str, Any]:
    """Names, sizes, and for each topic its shares, their intervals and its clearest contrast."""
    if not isinstance(shares, TopicShares):
        wanted = "topics_over_time" if in_order else "topics_by_group"
        raise ValueError(
            f"{argument} must be what tempering.workbench.{wanted} gives; got {shares!r:.80}."
        )
    if shares.draws.shape[2] != n_topics:
        raise ValueError(
            f"{argument} has shares of {shares.draws.shape[2]} topics, but the model has "
            f"{n_topics}: compute them of this model."
        )
    means, ends = shares.mean(), shares.interval()
    last, topics = len(shares.names) - 1, np.arange(n_topics)
    if in_order or last < 2:
        one, other = np.full(n_topics, last), np.zeros(n_topics, int)
        ratios = shares.ratio(shares.names[last], shares.names[0])
    else:
        one, other = means.argmax(axis=0), means.argmin(axis=0)
        low, high = _all_held(shares.draws)
        ratios = np.stack(
            [low[one, topics] / high[other, topics], high[one, topics] / low[other, topics]], axis=1
        )
    told = zip(one.tolist(), other.tolist(), ratios[:, 0], ratios[:, 1])
    contrasts = [(a, b, short(low, 3), short(high, 3)) for a, b, low, high in told]
    return {
        "names": [called(name) for name in shares.names],
        "documents": np.asarray(shares.n_documents).tolist(),
        "whole": WHOLE,
        "mean": _parts(means.T),
        "low": _parts(ends[:, :, 0].T),
        "high": _parts(ends[:, :, 1].T),
        "contrasts": contrasts,
    }


def _all_held(draws: Floats) -> tuple[Floats, Floats]:
    """Ends of intervals, [G, K], that hold the shares of all groups at once in 95% of the draws.

    Of many groups those that differ most are told, which they do by chance too.
    """
    means, errors = draws.mean(axis=0), draws.std(axis=0) + 1e-300
    reach = np.quantile((np.abs(draws - means) / errors).max(axis=1), 0.95, axis=0) * errors
    return np.maximum(means - reach, 1e-300), np.maximum(means + reach, 1e-300)


def _parts(shares: Any) -> list[list[int]]:
    return np.rint(WHOLE * shares).astype(int).tolist()


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
        source = X if isinstance(X, BlockSource) else ArraySource(X)
        # Every source draws the same places.
        both = source, ArraySource(np.arange(source.size))
        counts, numbers = (each.sample(limit, np.random.default_rng(0)) for each in both)
        counts = sparse.csr_array(counts)
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
        """The 50 documents that the topics explain worst, worst first."""
        return np.argsort(-self.temperatures, kind="stable")[:50]

    def searched(self, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
        """Those chosen, and others evenly over the corpus, 800 at least, in its order."""
        others = np.setdiff1d(np.arange(len(self.numbers)), chosen)
        n_more = min(max(800 - chosen.size, 0), others.size)
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
    topics = np.argsort(-proportions, kind="stable")[:4]
    if texts is None:
        weights = counts.data * -np.log(marginal[counts.indices])
        best = counts.indices[np.argsort(-weights, kind="stable")[:18]]
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
