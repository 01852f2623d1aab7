"""How good topics are: the same functions for all programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from arena.corpora import Corpus
from tempering import evaluation as judge

#: Weights of a topic in the prior of the proportions. No program is favoured by one of them: its
#: topics are scored with all, and count by the best.
PRIORS = (0.03, 0.1, 0.3, 1.0)

#: Words of a topic that are looked at, where the vocabulary has as many.
TOP_WORDS = 10

#: Measures, the first being what a speed is told beside; and whether more of it is better.
NATS = ("nats", *(f"nats {prior:g}" for prior in PRIORS))
GOOD = (*NATS, "npmi", "c_npmi", "c_v", "diversity", "purity", "label nmi", "stability", "recovery")
BETTER = {**dict.fromkeys(GOOD, 1), **dict.fromkeys(("cpu s", "wall s", "peak MB"), -1)}


def predict(corpus: Corpus, topics: np.ndarray) -> dict[str, float]:
    """Held-out nats a word by document completion, θ exact up to Monte Carlo error."""
    found = [
        judge.completion_score(*corpus.split, normalised(topics), prior, n_threads=1)
        for prior in PRIORS
    ]
    return dict(zip(NATS, [max(found), *found]))


def normalised(topics: np.ndarray) -> np.ndarray:
    """Rows that sum to 1; in float32, as they are kept, they do not quite."""
    return topics / topics.sum(axis=1, keepdims=True, dtype=np.float64)


def measure(corpus: Corpus, topics: np.ndarray, others: list[np.ndarray]) -> dict[str, float]:
    """All measures that the corpus allows; ``others`` are the topics of other seeds."""
    found = predict(corpus, topics)
    n_words = min(TOP_WORDS, topics.shape[1])
    found["npmi"] = float(judge.npmi(topics, corpus.train, n_words).mean())
    found["diversity"] = float(judge.topic_diversity(topics, n_words))
    if corpus.texts is not None:
        found["c_npmi"] = float(judge.c_npmi(topics, corpus.texts, n_words=n_words).mean())
        found["c_v"] = float(judge.c_v(topics, corpus.texts, n_words=n_words).mean())
    if corpus.labels is not None:
        theta = judge.gibbs_proportions(corpus.test, normalised(topics), 0.1, n_threads=1)
        found["purity"] = judge.purity(theta, corpus.labels)
        found["label nmi"] = judge.label_nmi(theta, corpus.labels)
    if corpus.truth is not None and corpus.truth.shape == topics.shape:
        found["recovery"] = judge.topic_stability(corpus.truth, topics)
    if others:
        found["stability"] = float(np.mean([judge.topic_stability(own, topics) for own in others]))
    return found


def levels(corpus: Corpus) -> Iterator[dict[str, Any]]:
    """Scores of the frequencies of words, and of the true topics where they are known."""
    frequencies = np.asarray(corpus.train.sum(axis=0)).reshape(1, -1) + 0.05
    yield {"program": "unigram", "K": 1, **predict(corpus, frequencies)}
    if corpus.truth is not None:
        yield {"program": "truth", "K": len(corpus.truth), **measure(corpus, corpus.truth, [])}
