"""Markov chains over hidden states, and what emissions tell of them: forward-backward and Viterbi
over sequences of unequal lengths, one after the other in memory.

The tempered chain of a sequence has the weights exp{ s · log joint }. Its forward pass is scaled,
so that a step costs K² multiplications and no exponential; see :func:`_solve_scaled` for when that
is exact. Where it would not be, the sequence is solved again in logarithms.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import quadratic_assignment

from tempering.models.base import Array
from tempering.models.compilation import ENTRY, KERNEL, njit
from tempering.models.fastmath import total_of

#: What underflows is below 1e-307; times a weight below this it is far below a rounding error.
LARGEST_WEIGHT = 1e280
#: A forward pass is divided by its sum where that leaves this range, not at each step: a step would
#: wait for the division, and each division is a logarithm of the normaliser.
SMALLEST_SCALE, LARGEST_SCALE = 1e-30, 1e30


class Chain(NamedTuple):
    """The weights of a chain, in logarithms; they need not sum to 1."""

    log_start: Array  # [K]
    log_transitions: Array  # [K, K], from row to column


class Paths(NamedTuple):
    """q(z) of some sequences, and the parts of their contribution to the ELBO."""

    marginals: Array  # s q(z_t = k), [rows, K]
    start_counts: Array  # Σ s q(z_1 = k), [K]
    transition_counts: Array  # Σ s q(z_{t−1} = i, z_t = j), [K, K]
    energies: Array  # E_q[log joint] of each sequence, [n]
    log_normalizers: Array  # log Σ_z exp{s log joint} of each, [n]


def solve_paths(
    chain: Chain,
    log_emissions: Array,
    bounds: NDArray[np.int64],
    inverse_temperature: float | Array = 1.0,
    logs_only: bool = False,
    inner: tuple[NDArray[np.int64], NDArray[np.bool_]] | None = None,
) -> Paths:
    """q(z) ∝ exp{s log joint} of sequences whose rows lie between ``bounds``.

    With ``logs_only`` every sequence is solved in logarithms, which takes longer. Of ``inner``, if
    given (bounds of rows [n, 2], and whether a sequence begins with them), are counts, energies and
    normalisers: the latter given the rows before. A sequence that does not begin there has the
    start that is folded into its first emissions.
    """
    rows, k = log_emissions.shape
    n = len(bounds) - 1
    if inner is None:
        inner = np.column_stack([bounds[:-1], bounds[1:]]), np.ones(n, bool)
    # Memory of its own, as kernels would be compiled once more for what cannot be written to.
    s = np.array(np.broadcast_to(inverse_temperature, n), dtype=float, order="C")
    log_emissions = np.ascontiguousarray(log_emissions, dtype=float)
    emissions, offsets = np.empty((rows, k)), np.empty(rows)
    if not logs_only:
        scale_emissions(log_emissions, bounds, s, emissions, offsets)
        np.exp(emissions, out=emissions)
    paths = Paths(np.empty((rows, k)), np.zeros(k), np.zeros((k, k)), np.empty(n), np.empty(n))
    forward_backward(
        np.ascontiguousarray(chain.log_start, dtype=float),
        np.ascontiguousarray(chain.log_transitions, dtype=float), log_emissions, emissions, offsets,
        bounds, *inner, s, logs_only, np.empty((rows, k)), paths.marginals, np.empty((k, k)),
        np.empty(rows), np.empty((2, k)), np.empty((2, k, k)), paths.start_counts,
        paths.transition_counts, paths.energies, paths.log_normalizers,
    )  # fmt: skip
    return paths


def stationary(transitions: Array) -> Array:
    """The share of each state in the long run, [K], of probabilities to go from row to column."""
    values, vectors = np.linalg.eig(transitions.T)
    weights = np.abs(np.real(vectors[:, np.argmax(np.real(values))]))
    return weights / weights.sum()


def arranged(
    counts: tuple[Array, Array], allowed: tuple[NDArray[np.bool_], NDArray[np.bool_]]
) -> NDArray[np.int64]:
    """The order of states, [K], in which most first states [K] and moves [K, K] are allowed.

    A chain with forbidden moves has an order of its own, which clusters do not know. The order
    that is found is near the best of all.
    """
    k = len(counts[0])
    tables = np.zeros((2, k + 1, k + 1))  # a state before all others moves to the first
    for table, (start, moves) in zip(tables, (allowed, counts), strict=True):
        table[0, 1:], table[1:, 1:] = start, moves
    if allowed[1].diagonal().all():  # stays are most of the counts, and fit any order
        np.fill_diagonal(tables[1], 0.0)
    options = {"maximize": True, "partial_match": np.zeros((1, 2), int)}
    order = quadratic_assignment(*tables, options=options).col_ind
    options["partial_guess"] = np.column_stack([np.arange(1, k + 1), order[1:]])
    return quadratic_assignment(*tables, method="2opt", options=options).col_ind[1:] - 1


def best_paths(
    chain: Chain, log_emissions: Array, bounds: NDArray[np.int64]
) -> tuple[Array, NDArray[np.int64]]:
    """The log joint of the most probable path of each sequence [n], and the states on it [rows]."""
    rows, k = log_emissions.shape
    states, log_joints = np.empty(rows, np.int64), np.empty(len(bounds) - 1)
    viterbi(
        np.ascontiguousarray(chain.log_start, dtype=float),
        np.ascontiguousarray(chain.log_transitions, dtype=float),
        np.ascontiguousarray(log_emissions, dtype=float), bounds, np.empty((2, k)),
        np.empty((int(np.diff(bounds).max()), k), np.int32), states, log_joints,
    )  # fmt: skip
    return log_joints, states


def draw_paths(
    start: Array, transitions: Array, bounds: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """The states of sequences whose rows lie between ``bounds``, drawn from a chain [rows]."""
    first, moves = np.cumsum(start, axis=-1), np.cumsum(transitions, axis=-1)
    # A last sum below 1 would let a state be drawn that has the probability 0.
    first, moves = first / first[-1], moves / moves[:, -1:]
    states = np.empty(bounds[-1], np.int64)
    begins = np.zeros(bounds[-1], bool)
    begins[bounds[:-1]] = True
    for t, height in enumerate(rng.random(bounds[-1])):
        row = first if begins[t] else moves[states[t - 1]]
        states[t] = min(int(np.searchsorted(row, height, side="right")), len(row) - 1)
    return states


@njit(**ENTRY)
def scale_emissions(log_emissions, bounds, s, scaled, offsets):
    """s log p of each row, less the largest of the row, which goes into ``offsets``."""
    n_states = log_emissions.shape[1]
    for sequence in range(len(s)):
        power = s[sequence]
        for t in range(bounds[sequence], bounds[sequence + 1]):
            largest = -np.inf
            for k in range(n_states):
                largest = max(largest, log_emissions[t, k])
            if largest == -np.inf:
                largest = 0.0
            offsets[t] = power * largest
            for k in range(n_states):
                scaled[t, k] = power * (log_emissions[t, k] - largest)


@njit(**KERNEL)
def _add_product(vector, matrix, out):
    """out = vector · matrix, four rows at a time, so that it is read and written less often."""
    n, m = matrix.shape
    for j in range(m):
        out[j] = 0.0
    whole = n - n % 4
    for i in range(0, whole, 4):
        a, b, c, d = vector[i], vector[i + 1], vector[i + 2], vector[i + 3]
        for j in range(m):
            left = a * matrix[i, j] + b * matrix[i + 1, j]
            out[j] += left + (c * matrix[i + 2, j] + d * matrix[i + 3, j])
    for i in range(whole, n):
        a = vector[i]
        for j in range(m):
            out[j] += a * matrix[i, j]


@njit(**KERNEL)
def _count_pairs(first, last, filtered, weights, pairs):
    """Σ_t filtered[t − 1] ⊗ weights[t], a few steps at a time."""
    n_states = filtered.shape[1]
    for i in range(n_states):
        for j in range(n_states):
            pairs[i, j] = 0.0
    whole = last - (last - first - 1) % 4
    for t in range(first + 1, whole, 4):
        for i in range(n_states):
            a, b = filtered[t - 1, i], filtered[t, i]
            c, d = filtered[t + 1, i], filtered[t + 2, i]
            for j in range(n_states):
                left = a * weights[t, j] + b * weights[t + 1, j]
                pairs[i, j] += left + (c * weights[t + 2, j] + d * weights[t + 3, j])
    for t in range(whole, last):
        for i in range(n_states):
            a = filtered[t - 1, i]
            for j in range(n_states):
                pairs[i, j] += a * weights[t, j]


@njit(**KERNEL)
def _solve_scaled(
    first, last, opens, closes, start, matrix, transposed, emissions, filtered, marginals, pairs,
    scales, beliefs,
):  # fmt: skip
    """Marginals, pair counts and log normaliser (less the offsets) of a sequence; NaN if in doubt.

    Counts and normaliser are of the rows from ``opens`` to ``closes`` given those before. The
    forward pass is divided by c_t at step t, its sum or 1, the backward pass b_t by the same. What
    underflows was below 1e-307, and enters the normaliser times b_t / c_t at most: where that is
    never large, nothing is lost.
    """
    n_states = len(start)
    total = 0.0
    for t in range(first, last):
        if t == first:
            for k in range(n_states):
                filtered[t, k] = start[k]
        else:
            _add_product(filtered[t - 1], matrix, filtered[t])
        for k in range(n_states):
            filtered[t, k] *= emissions[t, k]
        scale = total_of(filtered[t])
        if not scale > 0.0:
            return np.nan
        scales[t] = 1.0
        ends = t == opens - 1 or t == closes - 1 or t == last - 1
        if ends or scale < SMALLEST_SCALE or scale > LARGEST_SCALE:
            scales[t] = scale
            for k in range(n_states):
                filtered[t, k] /= scale
            if opens <= t < closes:
                total += math.log(scale)

    for k in range(n_states):
        beliefs[k] = 1.0
    largest = 0.0
    for step in range(last - first):
        t = last - 1 - step
        inverse, highest = 1.0 / scales[t], 0.0
        for k in range(n_states):
            highest = max(highest, beliefs[k])
            marginals[t, k] = filtered[t, k] * beliefs[k]
            emissions[t, k] *= beliefs[k] * inverse
        largest = max(largest, highest * inverse)
        _add_product(emissions[t], transposed, beliefs)
    if not largest < LARGEST_WEIGHT:
        return np.nan
    _count_pairs(max(first, opens - 1), closes, filtered, emissions, pairs)
    for i in range(n_states):
        for j in range(n_states):
            pairs[i, j] *= matrix[i, j]
    return total


@njit(**KERNEL)
def _log_sum(values):
    largest = -np.inf
    for k in range(len(values)):
        largest = max(largest, values[k])
    if largest == -np.inf:
        return largest
    total = 0.0
    for k in range(len(values)):
        total += math.exp(values[k] - largest)
    return largest + math.log(total)


@njit(**KERNEL)
def _solve_in_logs(
    first, last, opens, closes, power, log_start, log_matrix, log_emissions, forward, backward,
    marginals, pairs, values,
):  # fmt: skip
    """The same as :func:`_solve_scaled` for any weights, with K² exponentials a step."""
    n_states = len(log_start)
    for t in range(first, last):
        for k in range(n_states):
            before = power * log_start[k]
            if t > first:
                for i in range(n_states):
                    values[i] = forward[t - 1, i] + power * log_matrix[i, k]
                before = _log_sum(values)
            forward[t, k] = before + power * log_emissions[t, k]
    total = _log_sum(forward[last - 1])
    for i in range(n_states):
        for j in range(n_states):
            pairs[i, j] = 0.0
    if total == -np.inf:  # no path explains the sequence
        for t in range(first, last):
            for k in range(n_states):
                marginals[t, k] = 1.0 / n_states
        return total
    for step in range(last - first):
        t = last - 1 - step
        for i in range(n_states):
            backward[t, i] = 0.0
            if t < last - 1:
                for j in range(n_states):
                    here = power * (log_matrix[i, j] + log_emissions[t + 1, j])
                    values[j] = here + backward[t + 1, j]
                    if opens <= t + 1 < closes:
                        pairs[i, j] += math.exp(forward[t, i] + values[j] - total)
                backward[t, i] = _log_sum(values)
            marginals[t, i] = math.exp(forward[t, i] + backward[t, i] - total)
    before = _log_sum(forward[opens - 1]) if opens > first else 0.0
    return _log_sum(forward[closes - 1]) - before


@njit(**ENTRY)
def forward_backward(
    log_start, log_matrix, log_emissions, emissions, offsets, bounds, inner, begins, s, logs_only,
    filtered, marginals, pairs, scales, vectors, matrices,
    start_counts, pair_counts, energies, log_normalizers,
):  # fmt: skip
    """q of the tempered chains: marginals, and what they add to counts, energies and normalisers.

    ``emissions`` and ``offsets`` are those of :func:`scale_emissions`, exponentiated, and are used
    up. Marginals and counts are weighted with s. Sums are over the rows between ``inner``, and the
    first state where a sequence ``begins``. The other arrays are room to work in.
    """
    n_states = len(log_start)
    start, beliefs = vectors[0], vectors[1]
    matrix, transposed = matrices[0], matrices[1]
    for sequence in range(len(s)):
        first, last, power = bounds[sequence], bounds[sequence + 1], s[sequence]
        opens, closes = inner[sequence, 0], inner[sequence, 1]
        if sequence == 0 or power != s[sequence - 1]:
            for i in range(n_states):
                start[i] = math.exp(power * log_start[i])
                for j in range(n_states):
                    matrix[i, j] = math.exp(power * log_matrix[i, j])
                    transposed[j, i] = matrix[i, j]
        total = np.nan
        if not logs_only:
            total = _solve_scaled(
                first, last, opens, closes, start, matrix, transposed, emissions, filtered,
                marginals, pairs, scales, beliefs,
            )  # fmt: skip
        if total == total:
            for t in range(opens, closes):
                total += offsets[t]
        else:
            total = _solve_in_logs(
                first, last, opens, closes, power, log_start, log_matrix, log_emissions, filtered,
                emissions, marginals, pairs, beliefs,
            )  # fmt: skip
        # A weight of 0 counts for nothing, also where the logarithm is infinite.
        energy = 0.0
        for k in range(n_states):
            if opens == first and marginals[first, k] > 0.0:
                energy += marginals[first, k] * log_start[k]
            if begins[sequence]:
                start_counts[k] += power * marginals[first, k]
            for j in range(n_states):
                if pairs[k, j] > 0.0:
                    energy += pairs[k, j] * log_matrix[k, j]
            for j in range(n_states):
                pair_counts[k, j] += power * pairs[k, j]
        for t in range(first, last):
            for k in range(n_states):
                if opens <= t < closes and marginals[t, k] > 0.0:
                    energy += marginals[t, k] * log_emissions[t, k]
            for k in range(n_states):
                marginals[t, k] *= power
        energies[sequence] = energy
        log_normalizers[sequence] = total


@njit(**ENTRY)
def viterbi(log_start, log_matrix, log_emissions, bounds, score, came_from, paths, log_joints):
    """The most probable path of each sequence, and its log joint; of equal ones the first."""
    n_states = len(log_start)
    for sequence in range(len(log_joints)):
        first, last = bounds[sequence], bounds[sequence + 1]
        for t in range(first, last):
            new, old = score[t % 2], score[(t + 1) % 2]
            for k in range(n_states):
                best, chosen = log_start[k], 0
                if t > first:
                    best = old[0] + log_matrix[0, k]
                    for i in range(1, n_states):
                        here = old[i] + log_matrix[i, k]
                        if here > best:
                            best, chosen = here, i
                new[k] = best + log_emissions[t, k]
                came_from[t - first, k] = chosen
        final = score[(last - 1) % 2]
        state = 0
        for k in range(1, n_states):
            if final[k] > final[state]:
                state = k
        log_joints[sequence] = final[state]
        for step in range(last - first):
            t = last - 1 - step
            paths[t] = state
            state = came_from[t - first, state]
