"""Priors of words that differ from topic to topic: words that lead a topic, and words kept out.

    η_vk = η + counts_vk,     so that  λ̂_vk = η + counts_vk + statistics_vk.

The counts are those of documents that were never seen, as many as the prior is to be worth. A topic
with a count below 0 for a word never has it: there λ_vk is held at a small part of η, whatever the
documents say. Else, where words are sampled or posterior means enter, what leaks in at a high
temperature would grow again at T = 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from tempering.models.lda.layout import Float32
from tempering.storage.classes import stored

#: η_vk of a word that a topic never has, as a part of η: small, and no less than float32 can tell.
KEPT_OUT = 1e-4


@stored("guide")
class Guide:
    """What the prior has beside η: η_vk − η, [U, K], of rising words; below 0 to keep one out."""

    def __init__(self, words: NDArray[np.int64], counts: Float32):
        self.words = np.asarray(words, np.int64)
        self.counts = np.ascontiguousarray(counts, np.float32)
        rows, self._topics = np.nonzero(self.counts < 0)
        self._kept_out = self.words[rows]
        self._smallest = self.counts[rows, self._topics].astype(np.float64)

    def __mul__(self, factor: float) -> Guide:
        return self if factor == 1.0 else Guide(self.words, factor * self.counts)

    def check(self, n_words: int, n_topics: int, eta: float) -> None:
        """Raise ``ValueError`` if this cannot lead so many topics of so many words."""
        words, counts = self.words, self.counts
        right = words.ndim == 1 and counts.shape == (words.size, n_topics)
        right = right and (not words.size or (words[0] >= 0 and words[-1] < n_words))
        if not right or np.any(np.diff(words) <= 0):
            raise ValueError(
                f"the guide must have rising places of words below {n_words}, and counts of "
                f"{n_topics} topics for each."
            )
        if not np.all(np.isfinite(counts) & (eta + counts > 0)):
            raise ValueError(f"the guide's counts and η = {eta} must add up to positive numbers.")

    def hold(self, parameters: Any, eta: float) -> None:
        """Set λ [V, K] to its prior for words that are kept out."""
        parameters[self._kept_out, self._topics] = eta + self._smallest

    def hold_lazily(
        self, values: Float32, sums: NDArray[np.float64], eta: float, offset: float, factor: float
    ) -> None:
        """The same, of λ = offset + factor · values, and of the sums of the values over words."""
        held = ((eta + self._smallest - offset) / factor).astype(np.float32)
        change = held - values[self._kept_out, self._topics].astype(np.float64)
        values[self._kept_out, self._topics] = held
        sums += np.bincount(self._topics, change, minlength=sums.size)

    def totals(self) -> NDArray[np.float64]:
        """The counts of words that lead each topic, [K]."""
        return np.maximum(self.counts, 0.0).sum(axis=0, dtype=np.float64)

    def matrix(self, eta: float, n_words: int) -> NDArray[np.float64]:
        """η_vk as the estimator has it, [K, V]; 0 for words that are kept out."""
        matrix = np.full((self.counts.shape[1], n_words), eta)
        matrix[:, self.words] += self.counts.T
        matrix[self._topics, self._kept_out] = 0.0
        return matrix

    def leads(self, eta: float, n_words: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The topics that some words are to lead beyond η, and their counts of these, [V, L]."""
        counts = np.maximum(self.counts, 0.0).astype(np.float64)
        counts -= counts.min(axis=1, keepdims=True)
        counts[counts <= eta] = 0.0
        topics = np.flatnonzero(counts.any(axis=0))
        led = np.zeros((n_words, topics.size))
        led[self.words] = counts[:, topics]
        return topics, led

    def divergence(self, topics: Any, eta: float, prior_weight: float) -> float:
        """What Σ_k KL(Dir(λ_k) ‖ Dir(η_k)) has beside that to the same η for all words."""
        expected = digamma(topics.rows(self.words).astype(np.float64)) - digamma(topics.totals())
        prior = eta + self.counts.astype(np.float64)
        words = np.sum(gammaln(prior) - gammaln(eta)) - np.sum((prior - eta) * expected)
        total = topics.shape[0] * eta
        normalizers = np.sum(gammaln(total + (prior - eta).sum(axis=0)) - gammaln(total))
        return prior_weight * float(words - normalizers)


def split_prior(matrix: NDArray[np.float64]) -> tuple[float, Guide | None]:
    """η and a guide that make up a prior matrix [K, V]: η is its smallest entry above 0."""
    eta = float(matrix[matrix > 0].min())
    counts = np.where(matrix > 0, matrix - eta, (KEPT_OUT - 1.0) * eta).T
    words = np.flatnonzero(counts.any(axis=1))
    return eta, Guide(words, counts[words].astype(np.float32)) if words.size else None
