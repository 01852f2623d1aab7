"""The fixed point of each document: sweeps over all topics, over the active ones, and a check.

Most topics soon hold next to nothing of a document. So a document takes a sweep or two over all
topics, then iterates on its *active* topics alone, gathered into a small block, until they are at
rest. Then it takes a full sweep again, unless a bound shows that none of the topics left out can
come back: the sweep must change little and bring none of them back. Otherwise the document goes
round again with the new active topics.
"""

import numpy as np

from tempering.models.compilation import ENTRY, KERNEL, PASTED, njit
from tempering.models.fastmath import digamma, digamma_floor, exp_or_zero, f32, larger, total_of
from tempering.models.lda.layout import OpenDocument
from tempering.models.lda.sweeps import (
    ONE,
    SMALLEST_NORMALIZER,
    ZERO,
    add_words_in_logs,
    block_normalizers,
    compact_sweep,
    exponentiate,
    fill_log_theta,
    fill_weights,
    first_sweep,
    full_sweep,
    gather_rows,
    replace_mass,
    round_up,
    row_normalizers,
    shrink,
    write_back,
)

# The topics that are left out hold together at most this part of the change that ends the sweeps.
NEGLIGIBLE = np.float32(0.1)
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
IN_LOGS = np.float32(-1.0)
"""The weight of a word whose normalizer is out of float32's range: its statistics need logs."""


@njit(**ENTRY)
def fit_documents(start, stop, batch, word_rows, settings, room, fit):
    """Fit the documents from `start` to `stop`, each by itself, into their places in `fit`."""
    for d in range(start, stop):
        document = open_document(d, batch, word_rows, settings, room)
        if document.total == ZERO:
            close_empty_document(d, batch, settings, fit)
            continue
        set_starting_mass(document, fit.gamma[d], settings, room.every)
        fit.sweeps[d], n_block = settle(document, word_rows.logs, settings, room)
        close_document(d, document, n_block, batch, settings, room, fit)


@njit(**PASTED)
def open_document(d, batch, word_rows, settings, room):
    """Lay out document d: its counts, padded, and its tempered rows."""
    first, last = batch.indptr[d], batch.indptr[d + 1]
    n_words = last - first
    columns = batch.columns[first:last]
    s = settings.inverse_temperatures[d]
    for u in range(n_words):
        room.counts[u] = batch.counts[first + u]
    for u in range(n_words, round_up(n_words, 16)):
        room.counts[u] = ZERO
    total = total_of(room.counts[:n_words])
    if word_rows.shared:
        for u in range(n_words):
            room.row_sums[u] = word_rows.sums[columns[u]]
    else:
        for u in range(n_words):
            v = columns[u]
            room.row_sums[u] = exponentiate(word_rows.logs[v], word_rows.maxima[v], s, room.rows[u])
    return OpenDocument(
        columns,
        columns if word_rows.shared else room.row_index[:n_words],
        word_rows.tempered if word_rows.shared else room.rows,
        room.row_sums,
        room.counts,
        total,
        s,
        room.normalizers,
        room.shares,
        room.block,
        round_up(n_words, 16),
    )


@njit(**PASTED)
def set_starting_mass(document, gamma, settings, every):
    """Share the words out equally, or as a given gamma has them."""
    for k in range(gamma.size):
        if settings.equal_start:
            every.mass[k] = document.total / f32(gamma.size)
        else:
            every.mass[k] = (gamma[k] - settings.alpha[k]) / document.inverse_temperature


@njit(**PASTED)
def settle(document, log_rows, settings, room):
    """Sweep until the fixed point; return the number of sweeps and of the topics in the block.

    The latter is 0 if the document ends without a block: then all its topics count. Masses are
    words, not words times s as in gamma, so s does not stand in the limit.
    """
    every, active = room.every, room.active
    n_topics = log_rows.shape[1]
    s = document.inverse_temperature
    limit = settings.tolerance * document.total
    threshold = NEGLIGIBLE * limit / f32(n_topics)
    n_block = 0
    sweeps = 0
    if not settings.equal_start:
        weigh_topics(every, every.weights.size, s)
    while True:
        if sweeps == 0 and settings.equal_start:
            first_sweep(document, every.new_mass)
        else:
            smallest = full_sweep(document, every.weights, every.new_mass)
            if not smallest > SMALLEST_NORMALIZER:
                add_words_in_logs(document, every, n_topics, log_rows)
        change, n_active, n_returned = replace_mass(every, n_topics, threshold)
        sweeps += 1
        settled = sweeps >= settings.min_sweeps and change <= limit and n_returned == 0
        if settled or sweeps >= settings.max_sweeps:
            break
        n_block = 0
        # One sweep of the allowance is kept for the full sweep that follows.
        left = settings.max_sweeps - sweeps - 1
        weightless = ZERO
        if sweeps == 1 and settings.equal_start:
            # Most topics hold a little of the words after the first sweep, and nothing after the
            # next one: their gamma already tells.
            weightless, n_active = weightless_gamma(every, n_topics, s)
        if n_active > WORTH_GATHERING * n_topics or left <= 0:
            weigh_topics(every, every.weights.size, s)
            continue
        n_block, highest = choose_active(every, n_topics, threshold, weightless, s, active)
        gather_rows(document, active, n_block)
        weigh_topics(active, round_up(n_block, 4), s)
        taken, n_block, at_rest, largest = iterate_active(
            document, every, active, n_block, log_rows, limit, threshold,
            settings.min_sweeps - sweeps, left,
        )  # fmt: skip
        sweeps += taken
        n_returned = 0
        highest = digamma(highest)
        if at_rest and none_can_return(document, every, n_topics, threshold, highest, largest):
            break
        complete_log_theta(every, s)
        fill_weights(every, every.weights.size, largest, s)
    return sweeps, n_block if n_returned == 0 else 0


@njit(**KERNEL)
def weigh_topics(topics, n_topics, s):
    """Set log theta and the weights of the topics."""
    largest = fill_log_theta(topics, n_topics, s)
    fill_weights(topics, n_topics, largest, s)


@njit(**PASTED)
def weightless_gamma(topics, n_topics, s):
    """The gamma up to which topics have next to no weight, and how many are above it."""
    alpha, mass = topics.alpha, topics.mass
    largest = ZERO
    for k in range(n_topics):
        largest = larger(largest, alpha[k] + s * mass[k])
    gamma = digamma_floor(digamma(largest) + LOG_WEIGHTLESS / s)
    n_above = ZERO
    for k in range(n_topics):
        n_above += ONE if alpha[k] + s * mass[k] > gamma else ZERO
    return gamma, int(n_above)


@njit(**PASTED)
def choose_active(every, n_topics, threshold, weightless, s, active):
    """Take the topics of some weight above the threshold: how many; the others' largest gamma."""
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


@njit(**PASTED)
def iterate_active(
    document, every, active, n_active, log_rows, limit, threshold, at_least, at_most
):
    """Sweep over the active topics until they change by `limit` or less; write them back."""
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
        largest = fill_log_theta(active, padded, s)
        fill_weights(active, padded, largest, s)
        sweeps += 1
        at_rest = sweeps >= at_least and change <= limit
        n_above = empty_weightless(active, n_active)
        if not at_rest and n_above <= WORTH_SHRINKING * n_active and n_active > 8:
            n_active = shrink(document, every, active, n_active, threshold)
    for j in range(n_active):
        write_back(active, j, every)
    return sweeps, n_active, at_rest, largest


@njit(**PASTED)
def empty_weightless(topics, n_topics):
    """Take their mass from the topics of next to no weight; return how many others there are."""
    mass, weights = topics.mass, topics.weights
    n_left = ZERO  # in float32, as in `replace_mass`
    for k in range(n_topics):
        weighty = weights[k] > WEIGHTLESS
        mass[k] = mass[k] if weighty else ZERO
        n_left += ONE if weighty else ZERO
    return int(n_left)


@njit(**KERNEL)
def none_can_return(document, every, n_topics, threshold, highest, largest):
    """Whether no topic that was left out can rise above the threshold in the next full sweep.

    Entries of a row are at most 1, so a mass is at most t_k sum_u n_u / z_u. `highest` is the
    largest log theta of the topics that never were in the block.
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


@njit(**PASTED)
def complete_log_theta(every, s):
    """Compute the log theta that was not, with the mass that the last full sweep found."""
    alpha, mass, log_theta = every.alpha, every.new_mass, every.log_theta
    for k in range(log_theta.size):
        computed = digamma(alpha[k] + s * mass[k])
        log_theta[k] = computed if log_theta[k] == NOT_COMPUTED else log_theta[k]


@njit(**PASTED)
def close_empty_document(d, batch, settings, fit):
    """A document without words keeps its prior."""
    for k in range(fit.gamma.shape[1]):
        fit.gamma[d, k] = settings.alpha[k]
    for p in range(batch.indptr[d], batch.indptr[d + 1]):
        fit.word_weights[p] = ZERO
    fit.n_active[d] = 0
    fit.sweeps[d] = 0


@njit(**PASTED)
def close_document(d, document, n_block, batch, settings, room, fit):
    """Store gamma and what rebuilds the phi that belongs to it."""
    every, active = room.every, room.active
    s = document.inverse_temperature
    gamma = fit.gamma[d]
    for k in range(gamma.size):
        gamma[k] = settings.alpha[k] + s * every.mass[k]
    if n_block > 0:
        for j in range(n_block):
            active.mass[j] = every.mass[active.index[j]]
        padded = round_up(n_block, 4)
        weigh_topics(active, padded, s)
        block_normalizers(document, active.weights, padded)
        for j in range(n_block):
            fit.topics[d, j] = active.index[j]
            fit.weights[d, j] = active.weights[j]
        fit.n_active[d] = n_block
    else:
        weigh_topics(every, every.weights.size, s)
        row_normalizers(document, every.weights)
        for k in range(gamma.size):
            fit.weights[d, k] = every.weights[k]
        fit.n_active[d] = gamma.size
    word_weights = fit.word_weights[batch.indptr[d] : batch.indptr[d + 1]]
    for u in range(word_weights.size):
        z = document.normalizers[u]
        weight = s * document.counts[u] / z
        word_weights[u] = weight if z > SMALLEST_NORMALIZER else IN_LOGS
