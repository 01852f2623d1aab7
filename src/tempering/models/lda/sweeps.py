"""Sweeps of the LDA E-step: one update of one document's topic masses, over all topics or some.

A document has `n_words` distinct words with counts n_u. Its topics carry *weights*
t_k = exp(s E log theta_k), and its words *rows* B_uk = exp(s E log beta_ku), both scaled to a
largest entry of 1, which cancels in phi_uk = t_k B_uk / z_u, with the *normalizer*
z_u = sum_k t_k B_uk. A sweep computes the *mass* of each topic, m_k = sum_u n_u phi_uk.

A word whose normalizer is below `SMALLEST_NORMALIZER` has left the range of float32: sweeps leave
it out and say so; the caller adds it by `add_word_in_logs`. The rows of the active topics, which
are few, are gathered into a *block*, with the words innermost.
"""

import numpy as np

from tempering.models.compilation import ENTRY, KERNEL, PASTED, njit
from tempering.models.fastmath import digamma, exp_or_zero, f32, larger, log, smaller, total_of

# Entries that `exp_or_zero` flushed are below 2e-19. Above this limit they are less than 1e-6 of a
# normalizer, for up to ten thousand topics.
SMALLEST_NORMALIZER = np.float32(1e-9)
ZERO = np.float32(0.0)
ONE = np.float32(1.0)


@njit(**ENTRY)
def fill_rows(start, stop, log_rows, s, maxima, rows, row_sums):
    """Set maxima, tempered rows and their sums, from `start` to `stop`, at one temperature."""
    for v in range(start, stop):
        maxima[v] = row_maximum(log_rows[v])
        row_sums[v] = exponentiate(log_rows[v], maxima[v], s, rows[v])


@njit(**ENTRY)
def fill_maxima(start, stop, log_rows, maxima):
    """Set the maxima of the rows from `start` to `stop`."""
    for v in range(start, stop):
        maxima[v] = row_maximum(log_rows[v])


@njit(**KERNEL)
def row_maximum(log_row):
    """The largest entry of a row, NaN if any entry is."""
    top = f32(-np.inf)
    for k in range(log_row.size):
        top = larger(top, log_row[k])
    return top


@njit(**KERNEL)
def exponentiate(log_row, maximum, s, row):
    """Set row = exp(s (log_row - maximum)), zero in the padding; return its sum, at least 1."""
    n_topics = log_row.size
    for k in range(n_topics):
        row[k] = exp_or_zero(s * (log_row[k] - maximum))
    for k in range(n_topics, row.size):
        row[k] = f32(0.0)
    return total_of(row)  # the padding adds nothing


@njit(**KERNEL)
def fill_log_theta(topics, n_topics, s):
    """Set log theta_k = digamma(alpha_k + s m_k), up to a constant; return its largest value."""
    alpha, mass, log_theta = topics.alpha, topics.mass, topics.log_theta
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
    """Accept the new masses: the total change, the active topics and those that came back."""
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
    for k in range(n_topics):
        mass[k] = new_mass[k]
    return change, int(n_active), int(n_returned)


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
    """Mass of all topics; return the smallest normalizer."""
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
    for j in range(n_topics):
        share[j] = exp_or_zero(share[j] - top)
    total = total_of(share[:n_topics])
    for j in range(n_topics):
        mass[j] += count / total * share[j]
    return top + log(total)


@njit(**KERNEL)
def add_words_in_logs(document, topics, n_topics, log_rows):
    """Complete a sweep: add the words that it left out because their normalizer is out of range."""
    s = document.inverse_temperature
    for u in range(document.columns.size):
        if not document.normalizers[u] > SMALLEST_NORMALIZER:
            log_row = log_rows[document.columns[u]]
            add_word_in_logs(log_row, document.counts[u], topics, n_topics, s, topics.new_mass)


@njit(**PASTED)
def gather_rows(document, active, n_active):
    """Gather the rows of the active topics into the block."""
    n_real = document.columns.size
    rows, index, block = document.rows, document.index, document.block
    in_fours = n_real - n_real % 4
    for u in range(0, in_fours, 4):  # four words share the look-up of a topic and one wide store
        row0, row1 = rows[index[u]], rows[index[u + 1]]
        row2, row3 = rows[index[u + 2]], rows[index[u + 3]]
        for j in range(n_active):
            k = active.index[j]
            to = block[j]
            to[u], to[u + 1], to[u + 2], to[u + 3] = row0[k], row1[k], row2[k], row3[k]
    for u in range(in_fours, n_real):
        row = rows[index[u]]
        for j in range(n_active):
            block[j, u] = row[active.index[j]]
    for j in range(n_active):
        for u in range(n_real, document.n_words):
            document.block[j, u] = np.float32(1.0)
    pad_block(document, active, n_active)


@njit(**KERNEL)
def pad_block(document, active, n_active):
    """Fill the block up to a multiple of 4 topics with some that hold nothing."""
    for j in range(n_active, round_up(n_active, 4)):
        active.alpha[j] = active.alpha[0]  # not above the largest gamma
        active.mass[j] = ZERO
        for u in range(document.n_words):
            document.block[j, u] = ZERO


@njit(**PASTED)
def shrink(document, every, active, n_active, threshold):
    """Drop the topics that fell below the threshold from the block; return how many are left."""
    n_kept = 0
    for j in range(n_active):
        if active.mass[j] > threshold:
            if n_kept < j:
                copy_topic(active, j, active, n_kept)
                for u in range(document.n_words):
                    document.block[n_kept, u] = document.block[j, u]
            n_kept += 1
        else:
            write_back(active, j, every)
    pad_block(document, active, n_kept)
    return n_kept


@njit(**PASTED)
def copy_topic(source, j, target, i):
    """Put topic j of `source` at place i of `target`."""
    target.index[i] = source.index[j]
    target.alpha[i] = source.alpha[j]
    target.mass[i] = source.mass[j]
    target.log_theta[i] = source.log_theta[j]
    target.weights[i] = source.weights[j]


@njit(**KERNEL)
def write_back(active, j, every):
    """Put topic j of the active ones back in its place among all."""
    k = active.index[j]
    every.mass[k] = active.mass[j]
    every.log_theta[k] = active.log_theta[j]


@njit(**KERNEL)
def round_up(n, multiple):
    """The smallest multiple that is not below n."""
    return (n + multiple - 1) // multiple * multiple
