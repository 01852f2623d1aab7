"""Iteration on a document's active topics alone, gathered into a small block."""

import numpy as np
from numba import njit

from tempering.models.fastmath import KERNEL, digamma, digamma_floor, exp_or_zero, larger, log
from tempering.models.lda.sweeps import (
    ONE,
    SMALLEST_NORMALIZER,
    ZERO,
    add_word_in_logs,
    compact_sweep,
    fill_log_theta,
    fill_weights,
    replace_mass,
    round_up,
)

# Gathering a block costs about as much as a full sweep, so it must be of half the topics or fewer.
WORTH_GATHERING = np.float32(0.5)
# Moving topics inside the block is cheap: it is done for a quarter of them.
WORTH_SHRINKING = np.float32(0.75)
# A topic with less than this part of the largest weight gets next to nothing of any word.
WEIGHTLESS = np.float32(1e-7)
LOG_WEIGHTLESS = np.float32(np.log(WEIGHTLESS))
# In place of the log theta of a topic that was left out before it was computed. Not -inf: LLVM
# knows that a maximum ignores it, turns it into a branch, and does not vectorise that.
NOT_COMPUTED = np.finfo(np.float32).min


@njit(**KERNEL)
def add_words_in_logs(document, topics, n_topics, log_rows):
    """Complete a sweep: add the words that it left out because their normalizer is out of range."""
    s = document.inverse_temperature
    for u in range(document.columns.size):
        if not document.normalizers[u] > SMALLEST_NORMALIZER:
            log_row = log_rows[document.columns[u]]
            add_word_in_logs(log_row, document.counts[u], topics, n_topics, s, topics.new_mass)


@njit(**KERNEL)
def copy_topic(source, j, target, i):
    """Put topic j of `source` at place i of `target`."""
    target.index[i] = source.index[j]
    target.alpha[i] = source.alpha[j]
    target.mass[i] = source.mass[j]
    target.log_theta[i] = source.log_theta[j]
    target.weights[i] = source.weights[j]


@njit(**KERNEL)
def pad_block(document, active, n_active):
    """Fill the block up to a multiple of 4 topics with some that hold nothing."""
    for j in range(n_active, round_up(n_active, 4)):
        active.alpha[j] = active.alpha[0]  # not above the largest gamma
        active.mass[j] = ZERO
        for u in range(document.n_words):
            document.block[j, u] = ZERO


@njit(**KERNEL)
def empty_weightless(topics, n_topics):
    """Take their mass from the topics of next to no weight; return how many others there are.

    They keep their log theta: should a word turn out to have no other topic, a full sweep finds
    them there.
    """
    mass, weights = topics.mass, topics.weights
    n_left = ZERO  # in float32, as in `replace_mass`
    for k in range(n_topics):
        weighty = weights[k] > WEIGHTLESS
        mass[k] = mass[k] if weighty else ZERO
        n_left += ONE if weighty else ZERO
    return int(n_left)


@njit(**KERNEL)
def weightless_gamma(topics, n_topics, s, collapsed):
    """The gamma up to which topics have next to no weight, and how many are above it.

    So that the log theta of all the others need not be computed.
    """
    alpha, mass = topics.alpha, topics.mass
    largest = ZERO
    for k in range(n_topics):
        largest = larger(largest, alpha[k] + s * mass[k])
    if collapsed:
        gamma = largest * exp_or_zero(LOG_WEIGHTLESS / s)
    else:
        gamma = digamma_floor(digamma(largest) + LOG_WEIGHTLESS / s)
    n_above = ZERO
    for k in range(n_topics):
        n_above += ONE if alpha[k] + s * mass[k] > gamma else ZERO
    return gamma, int(n_above)


@njit(**KERNEL)
def choose_active(every, n_topics, threshold, weightless, s, active):
    """Take the topics above the threshold that have some weight; return how many they are.

    And return the largest gamma of the others. They wait without their log theta, and those of
    next to no weight without their mass.
    """
    alpha, mass = every.alpha, every.mass
    highest = ZERO
    for k in range(n_topics):
        held = mass[k]
        gamma = alpha[k] + s * held
        held = held if gamma > weightless else ZERO
        mass[k] = held
        highest = larger(highest, ZERO if held > threshold else gamma)
    for k in range(every.log_theta.size):
        every.log_theta[k] = NOT_COMPUTED
    n_active = 0
    for k in range(n_topics):  # without a branch, which nobody could foresee
        active.index[n_active] = k
        n_active += 1 if mass[k] > threshold else 0
    for j in range(n_active):
        active.alpha[j] = alpha[active.index[j]]
        active.mass[j] = mass[active.index[j]]
    return n_active, highest


@njit(**KERNEL)
def gather_rows(document, active, n_active):
    """Gather the rows of the active topics into the block.

    The block has the words innermost: the active topics are few, the words are many. Words are
    filled up to a multiple of 16, with entries of 1 (they have count 0).
    """
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
def write_back(active, j, every):
    """Put topic j of the active ones back in its place among all."""
    k = active.index[j]
    every.mass[k] = active.mass[j]
    every.log_theta[k] = active.log_theta[j]


@njit(**KERNEL)
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


@njit(**KERNEL)
def iterate_active(
    document, every, active, n_active, log_rows, collapsed, limit, threshold, at_least, at_most
):
    """Sweep over the active topics until they change by no more than `limit`, and write them back.

    Returns the number of sweeps, that of the topics still active, whether they came to rest, and
    the largest log theta.
    """
    s = document.inverse_temperature
    largest = ZERO
    sweeps = 0
    at_rest = False
    while sweeps < at_most and not at_rest:
        padded = round_up(n_active, 4)
        smallest = compact_sweep(document, active, padded)
        if not smallest > SMALLEST_NORMALIZER:
            add_words_in_logs(document, active, n_active, log_rows)
        change, _, _ = replace_mass(active, n_active, threshold)
        largest = fill_log_theta(active, padded, s, collapsed)
        fill_weights(active, padded, largest, s)
        sweeps += 1
        at_rest = sweeps >= at_least and change <= limit
        n_above = empty_weightless(active, n_active)
        if not at_rest and n_above <= WORTH_SHRINKING * n_active and n_active > 8:
            n_active = shrink(document, every, active, n_active, threshold)
    for j in range(n_active):
        write_back(active, j, every)
    return sweeps, n_active, at_rest, largest


@njit(**KERNEL)
def none_can_return(document, every, n_topics, threshold, highest, largest):
    """Whether no topic that was left out can rise above the threshold in the next full sweep.

    Entries of a row are at most 1, so a mass is at most t_k sum_u n_u / z_u. With a small alpha the
    weight t_k of a topic that is left out is nothing at all, and the sweep can be spared. `highest`
    is the largest log theta of those that never were in the block.
    """
    total = ZERO
    for u in range(document.n_words):
        if not document.normalizers[u] > SMALLEST_NORMALIZER:
            return False
        total += document.shares[u]
    for k in range(n_topics):
        log_theta = every.log_theta[k]  # outside of the condition, or the loop does not vectorise
        highest = larger(highest, log_theta if every.mass[k] <= threshold else NOT_COMPUTED)
    heaviest = exp_or_zero(document.inverse_temperature * (highest - largest))
    return heaviest * total <= threshold


@njit(**KERNEL)
def complete_log_theta(every, s, collapsed):
    """Compute the log theta that was not, with the mass that the last full sweep found."""
    alpha, mass, log_theta = every.alpha, every.new_mass, every.log_theta
    for k in range(log_theta.size):
        gamma = alpha[k] + s * mass[k]
        computed = log(gamma) if collapsed else digamma(gamma)
        log_theta[k] = computed if log_theta[k] == NOT_COMPUTED else log_theta[k]
