"""What solved documents amount to: statistics word by word, energies and scores by document.

A word's row of statistics is the sum over the documents that hold it, in their order. So no two
threads write to the same place, and the result has the same bits for any number of threads.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from tempering.models.compilation import ENTRY, KERNEL, njit
from tempering.models.fastmath import FLUSHED, digamma, exp_or_zero, f32, larger, log
from tempering.models.lda.documents import IN_LOGS
from tempering.models.lda.layout import Int32, Int64, WordCounts
from tempering.models.lda.sweeps import ZERO, add_word_in_logs, fill_log_theta

# A score this far above those of the topics left out: a thousand times exp(-23) is 1e-7.
ENOUGH = np.float32(FLUSHED + 23.0)
LOWEST = np.float32(-1e30)


class Occurrences(NamedTuple):
    """The batch turned over: for each word, the documents that hold it."""

    indptr: Int64  # [n_words + 1]
    documents: Int32  # [nnz]
    positions: Int64  # [nnz], of the entry in the batch


def find_occurrences(batch: WordCounts, n_words: int) -> Occurrences:
    """Sort the entries of the batch by word, keeping the order of the documents."""
    positions = np.arange(batch.columns.size, dtype=np.int64)
    shape = (batch.indptr.size - 1, n_words)
    by_word = sparse.csr_array((positions, batch.columns, batch.indptr), shape).tocsc()
    documents = by_word.indices.astype(np.int32, copy=False)
    return Occurrences(by_word.indptr.astype(np.int64), documents, by_word.data)


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
