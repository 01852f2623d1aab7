"""The posterior of the topics, stored lazily.

    λ_vk = e + c M_vk,     word by word,

with numbers e (the prior's part) and c. A step λ ← (1 − ρ) λ + ρ (η + t) changes these, and the
rows of M that belong to the batch's words. A :class:`Guide` makes the prior differ from topic to
topic, η_vk = η + counts_vk: words lead a topic, or are kept out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from tempering.models.compilation import ENTRY, njit
from tempering.models.fastmath import exp_or_zero, f32, larger, log, smaller
from tempering.models.lda.layout import Float32, Float64
from tempering.storage.state import stored

#: The sums of :meth:`Topics.log_power_sums` are computed again when this part of λ was replaced.
#: Much staler ones pretend that the topics fit better than they can, and end the tempering at once.
STALE = 0.05

#: From this parameter on steps of the recurrence of Γ are 1 but for rounding, and logs of Γ are so
#: large that hardly a digit of their differences is right.
LARGE = 2e6
LARGE32 = np.float32(LARGE)

#: Words whose log-gamma functions are computed at a time.
WORDS_AT_A_TIME = 1024

#: η_vk of a word that a topic never has, as a part of η: small, and no less than float32 can tell.
KEPT_OUT = 1e-4


@stored("guide")
class Guide:
    """What the prior has beside η: η_vk − η, [U, K], of rising words; below 0 to keep one out.

    There λ_vk is held at a small part of η, whatever the documents say; else, where words are
    sampled or posterior means enter, what leaks in at a high temperature would grow again at T = 1.
    """

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


@dataclass(frozen=True)
class WordStatistics:
    """Σ_d s_d n_dv φ_dvk for the words of a batch, times a number."""

    words: NDArray[np.int64]  # places in the vocabulary, rising, [U]
    values: Float32  # [U, K]
    factor: float = 1.0  # kept apart, so that scaling is free

    def __mul__(self, factor: float) -> WordStatistics:
        return WordStatistics(self.words, self.values, factor * self.factor)

    __rmul__ = __mul__

    def __add__(self, other: WordStatistics) -> WordStatistics:
        last = max((part.words[-1] for part in (self, other) if part.words.size), default=-1)
        used = np.zeros(last + 1, bool)
        used[self.words] = used[other.words] = True
        place = np.cumsum(used) - 1
        words = np.flatnonzero(used)
        values = np.zeros((words.size, self.values.shape[1]), np.float32)
        for part in (self, other):
            add_scaled_rows(values, place[part.words], part.values, np.float32(part.factor))
        return WordStatistics(words, values)


@dataclass(frozen=True)
class TopicPrior:
    """η, and what some words have beside it; it adds up with statistics to a target λ̂."""

    concentration: float
    guide: Guide | None = None

    def __mul__(self, factor: float) -> TopicPrior:
        guide = None if self.guide is None else self.guide * factor
        return TopicPrior(factor * self.concentration, guide)

    __rmul__ = __mul__

    def __add__(self, statistics: WordStatistics) -> TopicTarget:
        return TopicTarget(self, statistics)


@dataclass(frozen=True)
class TopicTarget:
    """λ̂ = η + statistics."""

    prior: TopicPrior
    statistics: WordStatistics


#: What is stored of topics.
STORED = {
    "offset": float,
    "factor": float,
    "_values": Float32,
    "_sums": Float64,
    "_power_sums": tuple[Float64, Float64] | None,
    "_replaced": float,
}


@stored("topics", constructed=False, attributes=STORED)
class Topics:
    """λ, the Dirichlet parameters of the topics, [V, K]; η, the prior, is in every entry."""

    def __init__(self, parameters: Any, prior: float):
        self.offset = float(prior)
        self.factor = 1.0
        self._values = np.subtract(parameters, prior, dtype=np.float32)
        self._sums = self._values.sum(axis=0, dtype=np.float64)
        self._power_sums: tuple[Float64, Float64] | None = None
        self._replaced = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """(V, K)."""
        return self._values.shape

    @property
    def host(self) -> Topics:
        """The topics in the memory of the host, where these are."""
        return self

    def totals(self) -> Float64:
        """Σ_v λ_vk, [K]."""
        return self.shape[0] * self.offset + self.factor * self._sums

    def rows(self, words: slice | NDArray[np.int64]) -> Float32:
        """λ for some words, [U, K]."""
        rows = self._values[words] * np.float32(self.factor)
        rows += np.float32(self.offset)
        return rows

    def parts(self) -> tuple[Float32, np.float32, np.float32]:
        """M, c and e as kernels take them, to compute λ where it is needed."""
        return self._values, np.float32(self.factor), np.float32(self.offset)

    def counts(self, words: slice | NDArray[np.int64] = slice(None)) -> Float32:
        """λ without the prior, of some words [U, K]: what the topics have of the documents."""
        counts = self.rows(words)
        counts -= np.float32(self.offset)
        return np.maximum(counts, 0.0, out=counts)

    def parameters(self) -> Float32:
        """λ, [V, K]."""
        return self.rows(slice(None))

    def project(self, weights: Float32) -> Float32:
        """λ · w for weights [K, n]: [V, n], without building λ."""
        product = self._values @ weights
        product *= np.float32(self.factor)
        product += np.float32(self.offset) * weights.sum(axis=0)
        return product

    def blend(self, target: TopicTarget, rate: float) -> Topics:
        """(1 − ρ) λ + ρ λ̂, in place: only the rows of the target's words are written."""
        keep = 1.0 - rate
        statistics = target.statistics
        self.offset = keep * self.offset + rate * target.prior.concentration
        self.factor *= keep
        if self.factor < 1e-9:  # so that M stays within the range of float32
            self._values *= np.float32(self.factor)
            self.factor = 1.0
            self._sums = self._values.sum(axis=0, dtype=np.float64)
        step = rate * statistics.factor / self.factor
        self._replaced += rate
        add_rows(self._values, statistics.words, statistics.values, step, self._sums)
        prior, guide = target.prior, target.prior.guide
        if guide is not None:
            add_rows(self._values, guide.words, guide.counts, rate / self.factor, self._sums)
            place = (prior.concentration, self.offset, self.factor)
            guide.hold_lazily(self._values, self._sums, *place)
        return self

    def log_power_sums(self, nodes: Float64) -> Float64:
        """log Z_k(s) = log Σ_v E[β_kv^s] at a few s, [K, nodes]; kept for some steps."""
        kept = self._power_sums
        if kept is None or self._replaced > STALE or not np.array_equal(kept[0], nodes):
            sums = np.zeros((nodes.size, self.shape[1]))
            room = np.empty((3, self.shape[1]), np.float32)
            part = np.empty((nodes.size, self.shape[1]), np.float32)
            offset, factor = np.float32(self.offset), np.float32(self.factor)
            # Few at a time are summed up in float32 before they go into a sum in float64.
            for start in range(0, self.shape[0], 64):
                rows = self._values[start : start + 64]
                power_sums(rows, offset, factor, nodes.astype(np.float32), room, part)
                sums += part
            totals = self.totals()[:, None]
            logs = np.log(sums).T
            exact = logs + gammaln(totals) - gammaln(totals + nodes)
            series = logs - nodes * (np.log(totals) + (nodes - 1.0) / (2.0 * totals))
            logs = np.where(totals < LARGE, exact, series)
            kept = self._power_sums = (np.array(nodes), logs)
            self._replaced = 0.0
        return kept[1]

    def mean_log(self) -> float:
        """The mean of E log β_kv over words and topics."""
        total = 0.0
        for start in range(0, self.shape[0], WORDS_AT_A_TIME):
            total += float(digamma(self.rows(slice(start, start + WORDS_AT_A_TIME))).sum())
        n_words, n_topics = self.shape
        return total / (n_words * n_topics) - float(digamma(self.totals()).mean())

    def divergence(
        self, prior: float, prior_weight: float = 1.0, guide: Guide | None = None
    ) -> float:
        """Σ_k KL(Dir(λ_k) ‖ Dir(η_k)), with η's density to the power ``prior_weight``."""
        n_words, n_topics = self.shape
        totals = self.totals()
        expected_total = digamma(totals)
        divergence = float(np.sum(gammaln(totals)))
        for start in range(0, n_words, WORDS_AT_A_TIME):
            rows = self.rows(slice(start, start + WORDS_AT_A_TIME)).astype(np.float64)
            expected = digamma(rows) - expected_total
            divergence += float(np.sum((rows - prior_weight * prior) * expected - gammaln(rows)))
        normalizer = n_words * gammaln(prior) - gammaln(n_words * prior)
        divergence += prior_weight * n_topics * float(normalizer)
        return divergence + (guide.divergence(self, prior, prior_weight) if guide else 0.0)


def compact_words(indices: NDArray, n_words: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The distinct words of a batch, rising, and the place of each entry among them."""
    used = np.zeros(n_words, bool)
    used[indices] = True
    words = np.flatnonzero(used)
    place = np.empty(n_words, np.int32)
    place[words] = np.arange(words.size, dtype=np.int32)
    return words, place[indices]


@njit(**ENTRY)
def add_rows(values, words, rows, step, sums):
    """values[words] += step · rows, and add what was added to the sums over words, [K]."""
    factor = np.float32(step)
    for u in range(words.size):
        row = values[words[u]]
        for k in range(row.size):
            change = factor * rows[u, k]
            row[k] += change
            sums[k] += change


@njit(**ENTRY)
def add_scaled_rows(values, places, rows, factor):
    """values[places] += factor · rows."""
    for u in range(places.size):
        row = values[places[u]]
        for k in range(row.size):
            row[k] += factor * rows[u, k]


@njit(**ENTRY)
def power_sums(values, offset, factor, nodes, room, sums):
    """Set sums[j, k] = Σ_v Γ(λ_vk + s_j)/Γ(λ_vk), a topic's power sum but for its normaliser.

    Four steps of the recurrence Γ(x + 1) = x Γ(x) lead to where Stirling's series is short:
    log Γ(w + s)/Γ(w) ≈ s log w + Σ_k (−1)^k (B_k(s) − B_k)/(k (k − 1) w^{k−1}), k = 2, 3, 4.
    """
    n_topics = values.shape[1]
    parameters, logs, inverses = room[0], room[1], room[2]
    sums[:] = f32(0.0)
    for v in range(values.shape[0]):
        for k in range(n_topics):
            x = larger(offset + factor * values[v, k], f32(1e-8))
            parameters[k] = x
            logs[k] = log(x + f32(4.0))
            inverses[k] = f32(1.0) / (x + f32(4.0))
        for j in range(nodes.size):
            s = nodes[j]
            second = s * (s - f32(1.0)) * f32(0.5)
            third = second * (s - f32(0.5)) * f32(1 / 3)
            fourth = second * second * f32(1 / 3)
            total = sums[j]
            for k in range(n_topics):
                x, y = smaller(parameters[k], LARGE32), inverses[k]
                series = y * (second - y * (third - y * fourth))
                outer, shifted = x * (x + f32(3.0)), (x + s) * (x + s + f32(3.0))
                steps = outer * (outer + f32(2.0)) / (shifted * (shifted + f32(2.0)))
                total[k] += steps * exp_or_zero(s * logs[k] + series)
