"""Sweeps of the LDA E-step: one update of one document's topic masses, in several forms.

A document has `n_words` distinct words with counts n_u. Its topics carry *weights*
t_k = exp(s E log theta_k), scaled to a largest weight of 1, and its words carry *rows*
B_uk = exp(s E log beta_ku), scaled to a largest entry of 1. Both scales cancel in
phi_uk = t_k B_uk / z_u, with the *normalizer* z_u = sum_k t_k B_uk, so phi is never stored.
A sweep computes the *mass* of each topic, m_k = sum_u n_u phi_uk.

A word whose normalizer is below `SMALLEST_NORMALIZER` has lost its entries to the range of
float32. Sweeps leave such a word out and say so by the normalizer they return; the caller then adds
it by `add_word_in_logs`.
"""

import numpy as np
from numba import njit

from tempering.models.fastmath import (
    KERNEL,
    digamma,
    exp_or_zero,
    f32,
    larger,
    log,
    smaller,
)
from tempering.models.prefetch import LINE, prefetch

# Entries that `exp_or_zero` flushed are below 2e-19. Above this limit they are less than 1e-6 of a
# normalizer, for up to ten thousand topics.
SMALLEST_NORMALIZER = np.float32(1e-9)
ZERO = np.float32(0.0)
ONE = np.float32(1.0)
# Lines of a row that are asked for before its turn; the processor then sees where it goes on.
LINES_AHEAD = 2


@njit(**KERNEL)
def fill_log_theta(topics, n_topics, s, collapsed):
    """Set log theta_k, up to a constant; return its largest value.

    It is digamma(gamma_k) or, collapsed, log(gamma_k), with gamma_k = alpha_k + s m_k.
    """
    alpha, mass, log_theta = topics.alpha, topics.mass, topics.log_theta
    if collapsed:
        for k in range(n_topics):
            log_theta[k] = log(alpha[k] + s * mass[k])
    else:
        for k in range(n_topics):
            log_theta[k] = digamma(alpha[k] + s * mass[k])
    largest = f32(-np.inf)
    for k in range(n_topics):
        largest = larger(largest, log_theta[k])
    return largest


@njit(**KERNEL)
def fill_weights(topics, n_topics, largest, s):
    """Set the topic weights t_k = exp(s log theta_k), scaled to a largest weight of 1."""
    log_theta, weights = topics.log_theta, topics.weights
    for k in range(n_topics):
        weights[k] = exp_or_zero(s * (log_theta[k] - largest))


@njit(**KERNEL)
def replace_mass(topics, n_topics, threshold):
    """Accept the new masses; return the total change, the active topics and those that came back.

    A topic is active above the threshold. It came back if it was not and is now clearly above.
    """
    mass, new_mass = topics.mass, topics.new_mass
    change = ZERO
    n_active = ZERO  # counted in float32: an integer is twice as wide, and halves the speed
    n_returned = ZERO
    clearly = threshold + threshold
    for k in range(n_topics):
        before = mass[k]
        after = new_mass[k]
        change += abs(after - before)
        n_active += ONE if after > threshold else ZERO
        n_returned += ONE if (before <= threshold) & (after > clearly) else ZERO
        mass[k] = after
    return change, int(n_active), int(n_returned)


@njit(**KERNEL)
def ask_for_rows(rows, index, start, n_topics):
    """Ask for the beginnings of four rows."""
    for u in range(start, min(start + 4, index.size)):
        for k in range(0, min(n_topics, LINES_AHEAD * LINE), LINE):
            prefetch(rows, index[u], k)


@njit(**KERNEL)
def first_sweep(document, mass):
    """Mass under equal topic weights: z_u is then the sum of a row, which is known."""
    rows, index, counts = document.rows, document.index, document.counts
    row_sums = document.row_sums
    n_words = index.size
    n_topics = mass.size
    for k in range(n_topics):
        mass[k] = ZERO
    in_fours = n_words - n_words % 4
    for u in range(0, in_fours, 4):
        row0, row1, row2, row3 = (
            rows[index[u]],
            rows[index[u + 1]],
            rows[index[u + 2]],
            rows[index[u + 3]],
        )
        ask_for_rows(rows, index, u + 4, n_topics)
        share0 = counts[u] / row_sums[u]
        share1 = counts[u + 1] / row_sums[u + 1]
        share2 = counts[u + 2] / row_sums[u + 2]
        share3 = counts[u + 3] / row_sums[u + 3]
        for k in range(n_topics):
            mass[k] += share0 * row0[k] + share1 * row1[k] + share2 * row2[k] + share3 * row3[k]
    for u in range(in_fours, n_words):
        row = rows[index[u]]
        share = counts[u] / row_sums[u]
        for k in range(n_topics):
            mass[k] += share * row[k]


@njit(**KERNEL)
def _share(count, normalizer):
    """n_u / z_u, or nothing for a word that needs logs."""
    return count / normalizer if normalizer > SMALLEST_NORMALIZER else ZERO


@njit(**KERNEL)
def full_sweep(document, weights, mass):
    """Mass of all topics; return the smallest normalizer.

    Four rows at a time: each weight and each mass is loaded and stored once for four words.
    """
    rows, index, counts = document.rows, document.index, document.counts
    normalizers = document.normalizers
    n_words = index.size
    n_topics = mass.size
    for k in range(n_topics):
        mass[k] = ZERO
    smallest = f32(np.inf)
    in_fours = n_words - n_words % 4
    for u in range(0, in_fours, 4):
        row0, row1, row2, row3 = (
            rows[index[u]],
            rows[index[u + 1]],
            rows[index[u + 2]],
            rows[index[u + 3]],
        )
        z0, z1, z2, z3 = ZERO, ZERO, ZERO, ZERO
        for k in range(n_topics):
            weight = weights[k]
            z0 += weight * row0[k]
            z1 += weight * row1[k]
            z2 += weight * row2[k]
            z3 += weight * row3[k]
        normalizers[u], normalizers[u + 1], normalizers[u + 2], normalizers[u + 3] = z0, z1, z2, z3
        smallest = smaller(smallest, smaller(smaller(z0, z1), smaller(z2, z3)))
        share0 = _share(counts[u], z0)
        share1 = _share(counts[u + 1], z1)
        share2 = _share(counts[u + 2], z2)
        share3 = _share(counts[u + 3], z3)
        for k in range(n_topics):
            mass[k] += share0 * row0[k] + share1 * row1[k] + share2 * row2[k] + share3 * row3[k]
    for u in range(in_fours, n_words):
        row = rows[index[u]]
        z = ZERO
        for k in range(n_topics):
            z += weights[k] * row[k]
        normalizers[u] = z
        smallest = smaller(smallest, z)
        share = _share(counts[u], z)
        for k in range(n_topics):
            mass[k] += share * row[k]
    for k in range(n_topics):
        mass[k] *= weights[k]
    return smallest


@njit(**KERNEL)
def row_normalizers(document, weights):
    """Set z_u of every word, over all topics."""
    for u in range(document.index.size):
        row = document.rows[document.index[u]]
        z = ZERO
        for k in range(weights.size):
            z += weights[k] * row[k]
        document.normalizers[u] = z


@njit(**KERNEL)
def block_normalizers(document, weights, n_topics):
    """Set z_u of every word, over the topics of the block, a multiple of 4; return the smallest."""
    block, n_words, normalizers = document.block, document.n_words, document.normalizers
    for u in range(n_words):
        normalizers[u] = ZERO
    for j in range(0, n_topics, 4):
        row0, row1, row2, row3 = block[j], block[j + 1], block[j + 2], block[j + 3]
        weight0, weight1 = weights[j], weights[j + 1]
        weight2, weight3 = weights[j + 2], weights[j + 3]
        for u in range(n_words):
            normalizers[u] += (
                weight0 * row0[u] + weight1 * row1[u] + weight2 * row2[u] + weight3 * row3[u]
            )
    smallest = f32(np.inf)
    for u in range(n_words):
        smallest = smaller(smallest, normalizers[u])
    return smallest


@njit(**KERNEL)
def compact_sweep(document, active, n_topics):
    """Mass of the active topics alone, from the block; return the smallest normalizer."""
    block, n_words, counts = document.block, document.n_words, document.counts
    normalizers, shares = document.normalizers, document.shares
    weights, mass = active.weights, active.new_mass
    smallest = block_normalizers(document, weights, n_topics)
    for u in range(n_words):
        shares[u] = _share(counts[u], normalizers[u])
    for j in range(0, n_topics, 4):
        row0, row1, row2, row3 = block[j], block[j + 1], block[j + 2], block[j + 3]
        mass0, mass1, mass2, mass3 = ZERO, ZERO, ZERO, ZERO
        for u in range(n_words):
            share = shares[u]
            mass0 += share * row0[u]
            mass1 += share * row1[u]
            mass2 += share * row2[u]
            mass3 += share * row3[u]
        mass[j] = weights[j] * mass0
        mass[j + 1] = weights[j + 1] * mass1
        mass[j + 2] = weights[j + 2] * mass2
        mass[j + 3] = weights[j + 3] * mass3
    return smallest


@njit(**KERNEL)
def add_word_in_logs(log_row, count, topics, n_topics, s, mass):
    """Add n_u phi_uk of one word to the masses, in log space; return log z_u."""
    index, log_theta, share = topics.index, topics.log_theta, topics.share
    top = f32(-np.inf)
    for j in range(n_topics):
        share[j] = s * (log_theta[j] + log_row[index[j]])
        top = larger(top, share[j])
    total = ZERO
    for j in range(n_topics):
        share[j] = exp_or_zero(share[j] - top)
        total += share[j]
    for j in range(n_topics):
        mass[j] += count / total * share[j]
    return top + log(total)


@njit(**KERNEL)
def round_up(n, multiple):
    """The smallest multiple that is not below n."""
    return (n + multiple - 1) // multiple * multiple
