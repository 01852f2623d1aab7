"""How good topics are: the same functions for all programs."""

from __future__ import annotations

import numpy as np

from arena.corpora import Corpus
from tempering.evaluation import (
    c_npmi,
    c_v,
    completion_score,
    gibbs_proportions,
    label_nmi,
    npmi,
    purity,
    topic_diversity,
    topic_stability,
)

#: Weights of a topic in the prior of the proportions. No program is favoured by one of them: its
#: topics are scored with all, and count by the best.
PRIORS = (0.03, 0.1, 0.3, 1.0)

#: Measures, and whether more of it is better. The first is what a speed is told beside.
BETTER = {
    "nats": 1,
    **{f"nats {prior:g}": 1 for prior in PRIORS},
    "npmi": 1,
    "c_npmi": 1,
    "c_v": 1,
    "diversity": 1,
    "purity": 1,
    "label nmi": 1,
    "stability": 1,
    "recovery": 1,
    "cpu s": -1,
    "wall s": -1,
    "peak MB": -1,
}


def predict(corpus: Corpus, topics: np.ndarray) -> dict[str, float]:
    """Held-out nats a word by document completion, θ exact up to Monte Carlo error."""
    topics = np.asarray(topics, np.float64)
    topics = topics / topics.sum(axis=1, keepdims=True)
    found = {
        f"nats {prior:g}": completion_score(*corpus.split, topics, prior, n_threads=1)
        for prior in PRIORS
    }
    return {"nats": max(found.values()), **found}


def measure(corpus: Corpus, topics: np.ndarray, others: list[np.ndarray]) -> dict[str, float]:
    """All measures that the corpus allows; ``others`` are the topics of other seeds."""
    found = predict(corpus, topics)
    found["npmi"] = float(npmi(topics, corpus.train).mean())
    found["diversity"] = float(topic_diversity(topics, 10))
    if corpus.texts is not None:
        found["c_npmi"] = float(c_npmi(topics, corpus.texts).mean())
        found["c_v"] = float(c_v(topics, corpus.texts).mean())
    if corpus.labels is not None:
        normalised = topics / topics.sum(axis=1, keepdims=True, dtype=np.float64)
        theta = gibbs_proportions(corpus.test, normalised, 0.1, n_threads=1)
        found["purity"] = purity(theta, corpus.labels)
        found["label nmi"] = label_nmi(theta, corpus.labels)
    if corpus.truth is not None and corpus.truth.shape == topics.shape:
        found["recovery"] = topic_stability(corpus.truth, topics)
    if others:
        found["stability"] = float(np.mean([topic_stability(own, topics) for own in others]))
    return found


def levels(corpus: Corpus) -> dict[str, dict[str, float]]:
    """Scores of no topics at all, the words' frequencies, and of the true ones where known."""
    frequencies = np.asarray(corpus.train.sum(axis=0)).reshape(1, -1) + 0.05
    found = {"unigram": predict(corpus, frequencies)}
    if corpus.truth is not None:
        found["truth"] = predict(corpus, corpus.truth)
        found["truth"]["npmi"] = float(npmi(corpus.truth, corpus.train).mean())
        found["truth"]["diversity"] = float(topic_diversity(corpus.truth, 10))
    return found
