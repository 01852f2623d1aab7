"""Scores of documents: energy and entropy of phi, and the log probability of the words."""

import numpy as np
from numba import njit

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
from tempering.models.lda.sweeps import ZERO

# A score this far above those of the topics left out: a thousand times exp(-23) is 1e-7.
ENOUGH = np.float32(FLUSHED + 23.0)
LOWEST = np.float32(-1e30)


@njit(**ENTRY)
def fill_energies(
    start,
    stop,
    batch,
    log_rows,
    maxima,
    gamma,
    inverse_temperatures,
    collapsed,
    room,
    kept,
    energy,
    entropy,
):
    """Set energy and entropy of the documents from `start` to `stop`.

    A word looks at the topics that are not negligible in its document, and at all of them
    if these explain it badly.
    """
    n_topics = gamma.shape[1]
    every, log_theta, scores = room.index, room.log_theta, room.share
    for d in range(start, stop):
        s = inverse_temperatures[d]
        largest = fill_log_proportions(gamma[d], collapsed, log_theta)
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
def fill_log_proportions(gamma, collapsed, log_theta):
    """Set E log theta, or log(gamma / sum(gamma)) where collapsed; return its largest value."""
    total = ZERO
    for k in range(gamma.size):
        total += gamma[k]
    log_total = log(total) if collapsed else digamma(total)
    largest = f32(-np.inf)
    for k in range(gamma.size):
        log_theta[k] = (log(gamma[k]) if collapsed else digamma(gamma[k])) - log_total
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
