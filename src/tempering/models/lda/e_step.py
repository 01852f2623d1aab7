"""The E-step of tempered latent Dirichlet allocation on the CPU.

For document d with inverse temperature s_d, at the fixed point,

    phi_dvk  proportional to  exp{ s_d (E log theta_dk + E log beta_kv) }
    gamma_dk = alpha_k + s_d sum_v n_dv phi_dvk
    statistics_kv = sum_d s_d n_dv phi_dvk

phi factorises over words and topics and is never stored. `e_step` is the entry; `documents` finds
the fixed point of each document, in float32. A word's row of statistics is then the sum over the
documents that hold it, in their order: no two threads write to the same place, and the result has
the same bits for any number of threads.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from tempering.models.fastmath import (
    ENTRY,
    FLUSHED,
    KERNEL,
    digamma,
    exp_or_zero,
    f32,
    larger,
    log,
)
from tempering.models.lda.documents import IN_LOGS, fit_documents
from tempering.models.lda.layout import (
    Float32,
    Float64,
    Int32,
    Int64,
    LocalResult,
    SweepSettings,
    WordCounts,
    WordRows,
    as_batch,
    check_finite,
    new_document_topics,
    new_room,
    new_solved_documents,
    spread_inverse_temperature,
    sweep_settings,
)
from tempering.models.lda.sweeps import (
    ZERO,
    add_word_in_logs,
    fill_log_theta,
    fill_maxima,
    fill_rows,
)
from tempering.models.threads import WORDS_PER_BLOCK, in_blocks

# A score this far above those of the topics left out: a thousand times exp(-23) is 1e-7.
ENOUGH = np.float32(FLUSHED + 23.0)
LOWEST = np.float32(-1e30)


def e_step(
    indptr: ArrayLike,
    columns: ArrayLike,
    counts: ArrayLike,
    log_rows: ArrayLike,
    alpha: ArrayLike,
    inverse_temperature: float | ArrayLike = 1.0,
    *,
    tolerance: float = 1e-3,
    min_iterations: int = 5,
    max_iterations: int = 100,
    n_threads: int = 1,
    gamma: ArrayLike | None = None,
    return_statistics: bool = True,
) -> LocalResult:
    """Fit the local variables of a batch of documents, a compressed matrix over the batch's words.

    ``log_rows`` [U, K] are E log beta of these words, or another log weight of the topics,
    untempered; an entry may be minus infinity, a row may not. With an inverse temperature for each
    document, every one needs its own exponentials of its rows, about half as much work again. A
    document is done when a sweep moves less than the part ``tolerance`` of its words between
    topics: in a hot phase, where documents move slowly, 1e-2 may stop them before topics can
    separate. By default ``gamma`` starts at alpha + s_d N_d / K.
    """
    batch, log_rows = as_batch(indptr, columns, counts, log_rows)
    n_documents = batch.indptr.size - 1
    n_topics = log_rows.shape[1]
    settings, shared = sweep_settings(
        n_documents, n_topics, alpha, inverse_temperature, tolerance, min_iterations, max_iterations
    )
    word_rows = temper_rows(log_rows, settings, shared, n_threads)
    fit = new_solved_documents(n_documents, n_topics, batch.columns.size)
    if gamma is not None:
        fit.gamma[:] = gamma
        settings = settings._replace(equal_start=False)
    elif not settings.equal_start:
        running = np.append(0.0, np.cumsum(batch.counts, dtype=np.float64))
        lengths = settings.inverse_temperatures * np.diff(running[batch.indptr])
        fit.gamma[:] = settings.alpha[:n_topics] + lengths[:, None] / n_topics

    def fit_block(start: int, stop: int) -> None:
        longest = int(np.diff(batch.indptr[start : stop + 1]).max())
        room = new_room(longest, settings.alpha, word_rows.shared)
        fit_documents(start, stop, batch, word_rows, settings, room, fit)

    in_blocks(fit_block, n_documents, n_threads)
    if not return_statistics:
        return LocalResult(fit.gamma, None, fit.sweeps)
    statistics = np.empty(log_rows.shape, np.float32)
    occurrences = find_occurrences(batch, log_rows.shape[0])

    def fill_block(start: int, stop: int) -> None:
        room = new_document_topics(settings.alpha.size)
        room.alpha[:] = settings.alpha
        fill_statistics(start, stop, occurrences, batch, word_rows, settings, room, fit, statistics)

    in_blocks(fill_block, log_rows.shape[0], n_threads, WORDS_PER_BLOCK)
    return LocalResult(fit.gamma, statistics, fit.sweeps)


def document_energy(
    indptr: ArrayLike,
    columns: ArrayLike,
    counts: ArrayLike,
    log_rows: ArrayLike,
    gamma: ArrayLike,
    inverse_temperature: float | ArrayLike = 1.0,
    *,
    n_threads: int = 1,
) -> tuple[Float64, Float64]:
    """Energy and entropy of each document under the phi that belongs to a given gamma, [D].

    They are Σ_v n_dv Σ_k φ_dvk (E log θ_dk + E log β_kv) and −Σ_v n_dv Σ_k φ_dvk log φ_dvk.
    """
    batch, log_rows = as_batch(indptr, columns, counts, log_rows)
    n_documents = batch.indptr.size - 1
    inverse_temperatures, _ = spread_inverse_temperature(inverse_temperature, n_documents)
    gamma = np.ascontiguousarray(gamma, np.float32)
    maxima = _row_maxima(log_rows, n_threads)
    energy = np.zeros(n_documents)
    entropy = np.zeros(n_documents)

    def fill_block(start: int, stop: int) -> None:
        room, kept = new_document_topics(log_rows.shape[1]), np.empty(log_rows.shape[1], np.int32)
        fill_energies(
            start, stop, batch, log_rows, maxima, gamma, inverse_temperatures, room, kept, energy,
            entropy,
        )  # fmt: skip

    in_blocks(fill_block, n_documents, n_threads)
    return energy, entropy


def log_predictive(
    indptr: ArrayLike,
    columns: ArrayLike,
    counts: ArrayLike,
    topic_rows: ArrayLike,
    proportions: ArrayLike,
    *,
    n_threads: int = 1,
) -> Float64:
    """Log probability of each document's words, sum_v n_dv log sum_k theta_dk beta_kv, [D]."""
    batch, topic_rows = as_batch(indptr, columns, counts, topic_rows)
    n_documents = batch.indptr.size - 1
    proportions = np.ascontiguousarray(proportions, dtype=np.float32)
    scores = np.zeros(n_documents)
    arguments = (batch, topic_rows, proportions, scores)
    in_blocks(fill_log_predictive, n_documents, n_threads, arguments=arguments)
    return scores


def temper_rows(
    log_rows: Float32, settings: SweepSettings, shared: bool, n_threads: int
) -> WordRows:
    """The rows with their maxima and, where all documents share a temperature, exponentiated."""
    if not shared or settings.inverse_temperatures.size == 0:
        none = np.empty((0, settings.alpha.size), np.float32)
        return WordRows(log_rows, _row_maxima(log_rows, n_threads), none, none[:, 0].copy(), shared)
    n_words = log_rows.shape[0]
    tempered = np.empty((n_words, settings.alpha.size), np.float32)
    maxima, sums = np.empty((2, n_words), np.float32)

    arguments = (log_rows, settings.inverse_temperatures[0], maxima, tempered, sums)
    in_blocks(fill_rows, n_words, n_threads, WORDS_PER_BLOCK, arguments)
    check_finite(maxima)
    return WordRows(log_rows, maxima, tempered, sums, shared)


def _row_maxima(log_rows: Float32, n_threads: int) -> Float32:
    """The largest entry of each row."""
    maxima = np.empty(log_rows.shape[0], np.float32)

    in_blocks(fill_maxima, maxima.size, n_threads, WORDS_PER_BLOCK, (log_rows, maxima))
    check_finite(maxima)
    return maxima


class Occurrences(NamedTuple):
    """The batch turned over: for each word, the documents that hold it."""

    indptr: Int64  # [n_words + 1]
    documents: Int32  # [nnz]
    positions: Int64  # [nnz], of the entry in the batch


def find_occurrences(batch: WordCounts, n_words: int) -> Occurrences:
    """Sort the entries of the batch by word, keeping the order of the documents."""
    occurrences = Occurrences(
        np.zeros(n_words + 1, np.int64),
        np.empty(batch.columns.size, np.int32),
        np.empty(batch.columns.size, np.int64),
    )
    sort_by_word(batch, occurrences, np.empty(n_words, np.int64))
    return occurrences


@njit(**ENTRY)
def sort_by_word(batch, occurrences, place):
    """Sort by counting; `place` is room for the next free place of each word."""
    indptr = occurrences.indptr
    for p in range(batch.columns.size):
        indptr[batch.columns[p] + 1] += 1
    for v in range(place.size):
        place[v] = indptr[v]
        indptr[v + 1] += indptr[v]
    for d in range(batch.indptr.size - 1):
        for p in range(batch.indptr[d], batch.indptr[d + 1]):
            v = batch.columns[p]
            occurrences.documents[place[v]] = d
            occurrences.positions[place[v]] = p
            place[v] += 1


@njit(**ENTRY)
def fill_statistics(start, stop, occurrences, batch, word_rows, settings, room, fit, statistics):
    """Set sum_d s_d n_dv phi_dvk in the rows of the words from `start` to `stop`."""
    n_topics = word_rows.logs.shape[1]
    for v in range(start, stop):
        row = statistics[v]
        for k in range(n_topics):
            row[k] = ZERO
        for i in range(occurrences.indptr[v], occurrences.indptr[v + 1]):
            d = occurrences.documents[i]
            weight = fit.word_weights[occurrences.positions[i]]
            if weight == IN_LOGS:
                continue
            if word_rows.shared:
                add_shared(row, weight, fit, d, word_rows.tempered[v])
            else:
                s = settings.inverse_temperatures[d]
                maximum = word_rows.maxima[v]
                add_tempered(row, weight, fit, d, word_rows.logs[v], maximum, s, room.share)
        for i in range(occurrences.indptr[v], occurrences.indptr[v + 1]):
            d = occurrences.documents[i]
            p = occurrences.positions[i]
            if fit.word_weights[p] == IN_LOGS:
                s = settings.inverse_temperatures[d]
                for k in range(n_topics):
                    room.mass[k] = (fit.gamma[d, k] - settings.alpha[k]) / s
                fill_log_theta(room, n_topics, s)
                add_word_in_logs(word_rows.logs[v], s * batch.counts[p], room, n_topics, s, row)


@njit(**KERNEL)
def add_shared(row, weight, fit, d, tempered):
    """Add a document's s n phi, where all share the word's tempered row."""
    n_active = fit.n_active[d]
    weights = fit.weights[d]
    if n_active == row.size:
        for k in range(row.size):
            row[k] += weight * weights[k] * tempered[k]
    else:
        topics = fit.topics[d]
        for j in range(n_active):
            row[topics[j]] += weight * weights[j] * tempered[topics[j]]


@njit(**KERNEL)
def add_tempered(row, weight, fit, d, log_row, maximum, s, entries):
    """Add a document's n phi where each has its own inverse temperature."""
    n_active = fit.n_active[d]
    weights = fit.weights[d]
    if n_active == row.size:
        for k in range(row.size):
            row[k] += weight * weights[k] * exp_or_zero(s * (log_row[k] - maximum))
    else:
        topics = fit.topics[d]
        for j in range(n_active):
            entries[j] = log_row[topics[j]]
        for j in range(n_active):
            entries[j] = weight * weights[j] * exp_or_zero(s * (entries[j] - maximum))
        for j in range(n_active):
            row[topics[j]] += entries[j]


@njit(**ENTRY)
def fill_energies(
    start, stop, batch, log_rows, maxima, gamma, inverse_temperatures, room, kept, energy, entropy
):
    """Set energy and entropy of the documents from `start` to `stop`."""
    n_topics = gamma.shape[1]
    every, log_theta, scores = room.index, room.log_theta, room.share
    for d in range(start, stop):
        s = inverse_temperatures[d]
        largest = fill_log_proportions(gamma[d], log_theta)
        n_kept = 0
        for k in range(n_topics):
            if s * (log_theta[k] - largest) > FLUSHED:
                kept[n_kept] = k
                n_kept += 1
        total_energy = 0.0
        total_log_z = 0.0
        for p in range(batch.indptr[d], batch.indptr[d + 1]):
            v = batch.columns[p]
            mean, log_z, top = word_energy(log_rows[v], log_theta, kept, n_kept, s, scores)
            if n_kept < n_topics and top < s * (largest + maxima[v]) + ENOUGH:
                mean, log_z, top = word_energy(log_rows[v], log_theta, every, n_topics, s, scores)
            total_energy += np.float64(batch.counts[p]) * np.float64(mean)
            total_log_z += np.float64(batch.counts[p]) * np.float64(log_z)
        energy[d] = total_energy
        entropy[d] = total_log_z - np.float64(s) * total_energy


@njit(**KERNEL)
def fill_log_proportions(gamma, log_theta):
    """Set E log theta; return its largest value."""
    total = ZERO
    for k in range(gamma.size):
        total += gamma[k]
    log_total = digamma(total)
    largest = f32(-np.inf)
    for k in range(gamma.size):
        log_theta[k] = digamma(gamma[k]) - log_total
        largest = larger(largest, log_theta[k])
    return largest


@njit(**KERNEL)
def word_energy(log_row, log_theta, topics, n_topics, s, scores):
    """A word's expected score under its phi, its log normalizer, and its best tempered score."""
    top = f32(-np.inf)
    for j in range(n_topics):
        scores[j] = log_theta[topics[j]] + log_row[topics[j]]
        top = larger(top, scores[j])
    total = ZERO
    below = ZERO
    for j in range(n_topics):
        difference = larger(scores[j] - top, LOWEST)  # 0 times minus infinity is not a number
        weight = exp_or_zero(s * difference)
        total += weight
        below += weight * difference
    return top + below / total, s * top + log(total), s * top


@njit(**ENTRY)
def fill_log_predictive(start, stop, batch, topic_rows, proportions, scores):
    """Set sum_v n_dv log sum_k theta_dk beta_kv of the documents from `start` to `stop`."""
    for d in range(start, stop):
        own = proportions[d]
        score = 0.0
        for p in range(batch.indptr[d], batch.indptr[d + 1]):
            row = topic_rows[batch.columns[p]]
            probability = ZERO
            for k in range(own.size):
                probability += own[k] * row[k]
            score += np.float64(batch.counts[p]) * np.log(np.float64(probability))
        scores[d] = score
