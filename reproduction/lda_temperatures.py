"""What the temperatures of single documents say, and predicting with learned temperatures."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from reproduction.lda_fits import Fitted, normalised
from tempering.evaluation import Split, completion_score
from tempering.models.base import Array
from tempering.temperature import LocalTempering

#: Alternations of q(z) and q(T_i) for documents with fixed topics.
ALTERNATIONS = 10
#: Words that a document is shown by, and documents shown.
SHOWN_WORDS, SHOWN_DOCUMENTS = 6, 3


def document_temperatures(fitted: Fitted, counts: Any) -> Array:
    """1 / E[1/T_i] of documents under local tempering, with the topics as they are."""
    return 1.0 / _inverse_temperatures(fitted, counts)


def predict_at(fitted: Fitted, split: Split, inverse_temperature: float | None) -> float:
    """Nats a held-out word with θ inferred at one 1/T; with None, at that of each document."""
    assert fitted.model is not None
    assert fitted.posterior is not None
    s = inverse_temperature
    observed = sparse.csr_matrix(split.observed)
    at = _inverse_temperatures(fitted, observed) if s is None else s
    local = fitted.model.local_step(observed, fitted.model.expectations(fitted.posterior), at)
    theta = normalised(local.gamma)
    return completion_score(*split, fitted.topics, inference=lambda observed: theta)


def _inverse_temperatures(fitted: Fitted, counts: Any) -> Array:
    assert fitted.model is not None
    assert fitted.posterior is not None
    policy = LocalTempering(max_alternations=ALTERNATIONS, fraction=None)
    heat = policy.begin(fitted.model, counts.shape[0], np.random.default_rng(0))
    expected = fitted.model.expectations(fitted.posterior)
    local = policy.solve(heat, fitted.model, counts, expected, slice(0, counts.shape[0]))
    return np.broadcast_to(local.inverse_temperature, local.n)


def foreign_documents(counts: Any, frequencies: Array, seed: int) -> sparse.csr_matrix:
    """Documents of the same lengths whose words are drawn one by one, as no topic would."""
    rng = np.random.default_rng(seed)
    lengths = np.asarray(counts.sum(axis=1, dtype=np.int64)).ravel()
    words = rng.choice(frequencies.size, size=int(lengths.sum()), p=frequencies)
    rows = np.repeat(np.arange(lengths.size), lengths)
    drawn = sparse.coo_matrix((np.ones(words.size), (rows, words)), shape=counts.shape).tocsr()
    drawn.sum_duplicates()
    return drawn


def separation(hot: Array, others: Array) -> float:
    """The chance that a document of the first kind is hotter than one of the second (AUC)."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([hot, others]))[: hot.size]
    return float((ranks.sum() - hot.size * (hot.size + 1) / 2) / (hot.size * others.size))


def traits(counts: Any, frequencies: Array) -> dict[str, Array]:
    """Length of each document, distinct words a word, and how rare its words are, in nats."""
    counts = sparse.csr_matrix(counts, dtype=np.float64)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    surprise = -np.log(np.maximum(frequencies, frequencies[frequencies > 0].min()))
    return {
        "length": lengths,
        "variety": np.diff(counts.indptr) / np.maximum(lengths, 1.0),
        "rarity": (counts @ surprise) / np.maximum(lengths, 1.0),
    }


def correlations(temperatures: Array, described: dict[str, Array]) -> dict[str, float]:
    """Spearman's rank correlation of temperature with each trait."""
    from scipy.stats import spearmanr

    return {
        f"rank_correlation_{name}": round(float(spearmanr(temperatures, values).statistic), 3)
        for name, values in described.items()
    }


def extremes(
    counts: Any, temperatures: Array, frequencies: Array, vocabulary: list[str] | None
) -> dict[str, list[str]]:
    """The hottest and the coldest documents, by their most telling words."""
    order = np.argsort(temperatures)
    counts = sparse.csr_matrix(counts)

    def shown(d: int) -> str:
        row = counts[d]
        weight = row.data * -np.log(np.maximum(frequencies[row.indices], 1e-12))
        words = row.indices[np.argsort(-weight, kind="stable")[:SHOWN_WORDS]]
        names = [vocabulary[v] if vocabulary else f"word {v}" for v in words]
        return f"T = {temperatures[d]:.2f}, {int(row.data.sum())} words: {', '.join(names)}"

    return {
        "hottest": [shown(int(d)) for d in order[::-1][:SHOWN_DOCUMENTS]],
        "coldest": [shown(int(d)) for d in order[:SHOWN_DOCUMENTS]],
    }
