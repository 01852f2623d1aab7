"""Markov chains over hidden states, and what emissions tell of them: forward-backward and Viterbi
over sequences of unequal lengths, one after the other in memory.

The tempered chain of a sequence has the weights exp{ s · log joint }. Its forward pass is scaled,
so that a step costs K² multiplications and no exponential; see :func:`_solve_scaled` for when that
is exact. Where it would not be, the sequence is solved again in logarithms.

Little data are solved by LAPACK (:func:`_solve_banded`): before the kernel were compiled, the fit
would be over.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtbtrs
from scipy.optimize import quadratic_assignment

from tempering.models.base import Array
from tempering.models.compilation import ENTRY, KERNEL, PASTED, njit
from tempering.models.fastmath import total_of

#: What underflows is below 1e-307; times a weight below this it is far below a rounding error.
LARGEST_WEIGHT = 1e280
#: A forward pass is divided by its sum where that leaves this range, not at each step: a step would
#: wait for the division, and each division is a logarithm of the normaliser.
SMALLEST_SCALE, LARGEST_SCALE = 1e-30, 1e30

#: Rows times squared states of data that LAPACK solves; rows that it solves at a time, and the sums
#: of their weights, and the largest backward weight, within which nothing is lost by underflow.
LITTLE, ROWS_AT_A_TIME, SMALLEST_TOTAL, LARGEST_BELIEF = 2**14, 64, 1e-200, 1e40


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
    n_rows: int | None = None,
) -> Paths:
    """Return q(z) ∝ exp{s log joint} of sequences whose rows lie between ``bounds``.

    ``n_rows`` are the rows of all data of a fit, by default those given: they choose between
    compiled code and LAPACK, which must not depend on how data are cut. With ``logs_only`` every
    sequence is solved in logarithms, which takes longer. Of ``inner``, if given (bounds of rows
    [n, 2], and whether a sequence begins with them), are counts, energies and normalisers: the
    latter given the rows before. A sequence that does not begin there has the start that is folded
    into its first emissions.
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
        rows_s = np.repeat(s, np.diff(bounds))
        largest = log_emissions.max(axis=1)
        largest[largest == -np.inf] = 0.0
        np.multiply(rows_s, largest, out=offsets)
        np.subtract(log_emissions, largest[:, None], out=emissions)
        emissions *= rows_s[:, None]
        np.exp(emissions, out=emissions)
        if (rows if n_rows is None else n_rows) * k**2 <= LITTLE:
            paths = _solve_banded(chain, log_emissions, emissions, offsets, bounds, *inner, s)
            if paths is not None:
                return paths
    paths = Paths(np.empty((rows, k)), np.zeros(k), np.zeros((k, k)), np.empty(n), np.empty(n))
    log_chain = [np.ascontiguousarray(logs, dtype=float) for logs in chain]
    filtered, pairs, vectors = np.empty((rows, k)), np.empty((k, k)), np.empty((2, k))
    if not logs_only:
        forward_backward(
            *log_chain, log_emissions, emissions, offsets, bounds, *inner, s, filtered, pairs,
            np.empty(rows), vectors, np.empty((2, k, k)), paths,
        )  # fmt: skip
    which = np.flatnonzero(np.isnan(paths.log_normalizers) | logs_only)
    if which.size:  # compiled only where it is needed
        solve_in_logs(
            which, *log_chain, log_emissions, bounds, *inner, s, filtered, emissions, pairs,
            vectors[0], paths,
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
    arrays = (np.ascontiguousarray(part, dtype=float) for part in (*chain, log_emissions))
    longest = int(np.diff(bounds).max())
    came_from = np.empty((longest, k), np.int32)
    if rows * k**2 > LITTLE:
        viterbi(*arrays, bounds, np.empty((2, k)), came_from, states, log_joints)
        return log_joints, states
    log_start, log_transitions, log_emissions = arrays
    for sequence, (first, last) in enumerate(pairwise(bounds)):
        score = log_start + log_emissions[first]
        for t in range(first + 1, last):
            reached = score[:, None] + log_transitions
            came_from[t - first] = reached.argmax(axis=0)
            score = reached.max(axis=0) + log_emissions[t]
        states[last - 1] = score.argmax()
        log_joints[sequence] = score.max()
        for t in range(last - 1, first, -1):
            states[t - 1] = came_from[t - first, states[t]]
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


def _solve_banded(
    chain: Chain,
    log_emissions: Array,
    emissions: Array,
    offsets: Array,
    bounds: NDArray[np.int64],
    inner: NDArray[np.int64],
    begins: NDArray[np.bool_],
    s: Array,
) -> Paths | None:
    """Solve the chains as triangular systems, or return None where their numbers could underflow.

    Forward weights f_t = e_t ∘ (A' f_{t−1}), one row after the other, are the solution of a lower
    triangular system whose band is as wide as two rows; the backward ones solve the transposed
    system. A few rows are solved at a time, and what they begin from is normalised.
    """
    rows, k = emissions.shape
    sequence = np.repeat(np.arange(len(s)), np.diff(bounds))
    one_each = bool(np.ptp(s))
    powers = s[:, None] if one_each else s[:1, None]
    starts = np.exp(powers * chain.log_start)
    moves = np.exp(powers[:, :, None] * chain.log_transitions)
    of_row = moves[sequence] if one_each else moves  # [rows or 1, K, K]
    first = np.zeros(rows, bool)
    first[bounds[:-1]] = True

    # Into each row from the one before, as columns of LAPACK: entry [i, j] at the offset i − j.
    band = np.zeros((rows, k, 2 * k))
    into = np.where(first[1:, None], 0.0, emissions[1:])
    for j in range(k):
        band[:-1, j, k - j : 2 * k - j] = -of_row[1 - len(of_row) :, j] * into
    forward, backward = np.zeros((rows, k)), np.zeros((rows, k))
    forward[first] = starts * emissions[first]
    backward[bounds[1:] - 1] = 1.0
    logs = np.zeros(rows)  # of what the weights of a row were divided by before it
    pieces = [slice(start, start + ROWS_AT_A_TIME) for start in range(0, rows, ROWS_AT_A_TIME)]
    for piece in pieces:
        t = piece.start
        if t and not first[t]:
            total = forward[t - 1].sum()
            if not total > SMALLEST_TOTAL:
                return None
            forward[t] = emissions[t] * (forward[t - 1] / total @ of_row[t % len(of_row)])
            logs[piece][sequence[piece] == sequence[t]] = logs[t - 1] + math.log(total)
        _solve_piece(band[piece], forward[piece], transposed=False)
    for piece in reversed(pieces):
        t = piece.stop
        if t < rows and not first[t]:
            largest = backward[t].max()
            if not largest > SMALLEST_TOTAL:
                return None
            backward[t - 1] = of_row[t % len(of_row)] @ (emissions[t] * (backward[t] / largest))
        _solve_piece(band[piece], backward[piece], transposed=True)

    totals = forward.sum(axis=1)
    marginals = forward * backward
    normalizers = marginals.sum(axis=1)
    if not (totals.min() > SMALLEST_TOTAL and normalizers.min() > SMALLEST_TOTAL):
        return None
    # What underflowed in the forward weights could count where backward weights are large.
    if not np.all(backward.max(axis=1) * totals < LARGEST_BELIEF * normalizers):
        return None
    marginals /= normalizers[:, None]
    rows_that_count = np.arange(rows)
    counts = (rows_that_count >= inner[sequence, 0]) & (rows_that_count < inner[sequence, 1])
    energies = _products(marginals, log_emissions).sum(axis=1) * counts
    opens = bounds[:-1][inner[:, 0] == bounds[:-1]]
    energies[opens] += _products(marginals[opens], chain.log_start).sum(axis=1)
    # Pairs are f_{t−1} ⊗ (e_t b_t) ∘ A over their sum, of rows that count and have one before.
    moved = np.flatnonzero(counts & ~first)
    before, after = forward[moved - 1], (emissions * backward)[moved]
    own = of_row[moved] if one_each else moves
    pairs = before[:, :, None] * own * after[:, None, :]
    pairs /= pairs.sum(axis=(1, 2), keepdims=True)
    energies[moved] += _products(pairs, chain.log_transitions).sum(axis=(1, 2))
    logs += np.log(totals)
    log_normalizers = np.add.reduceat(offsets * counts, bounds[:-1]) + logs[inner[:, 1] - 1]
    later = inner[:, 0] > bounds[:-1]
    log_normalizers[later] -= logs[inner[later, 0] - 1]
    marginals *= s[sequence, None]
    return Paths(
        marginals,
        marginals[bounds[:-1][begins]].sum(axis=0),
        np.einsum("t,tij->ij", s[sequence[moved]], pairs),
        np.add.reduceat(energies, bounds[:-1]),
        log_normalizers,
    )


def _products(weights: Array, logs: Array) -> Array:
    """Multiply; a weight of 0 counts for nothing, also where the logarithm is infinite."""
    return np.multiply(weights, logs, out=np.zeros(weights.shape), where=weights > 0.0)


def _solve_piece(band: Array, weights: Array, *, transposed: bool) -> None:
    """Solve (1 − B) x = w or its transpose for the rows of a piece, in place."""
    n, k, width = band.shape
    found, _ = dtbtrs(
        band.reshape(n * k, width).T, weights.reshape(-1, 1), uplo="L", diag="U",
        trans="T" if transposed else "N",
    )  # fmt: skip
    weights[:] = found.reshape(n, k)


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


@njit(**PASTED)
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


@njit(**PASTED)
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


@njit(**PASTED)
def _add_up(
    sequence, total, log_start, log_matrix, log_emissions, bounds, inner, begins, power, pairs,
    paths,
):  # fmt: skip
    """Add what a solved sequence contributes, and weight its marginals with s."""
    n_states = len(log_start)
    marginals, first, last = paths.marginals, bounds[sequence], bounds[sequence + 1]
    opens, closes = inner[sequence, 0], inner[sequence, 1]
    # A weight of 0 counts for nothing, also where the logarithm is infinite.
    energy = 0.0
    for k in range(n_states):
        if opens == first and marginals[first, k] > 0.0:
            energy += marginals[first, k] * log_start[k]
        if begins[sequence]:
            paths.start_counts[k] += power * marginals[first, k]
        for j in range(n_states):
            if pairs[k, j] > 0.0:
                energy += pairs[k, j] * log_matrix[k, j]
        for j in range(n_states):
            paths.transition_counts[k, j] += power * pairs[k, j]
    for t in range(first, last):
        for k in range(n_states):
            if opens <= t < closes and marginals[t, k] > 0.0:
                energy += marginals[t, k] * log_emissions[t, k]
        for k in range(n_states):
            marginals[t, k] *= power
    paths.energies[sequence] = energy
    paths.log_normalizers[sequence] = total


@njit(**ENTRY)
def forward_backward(
    log_start, log_matrix, log_emissions, emissions, offsets, bounds, inner, begins, s, filtered,
    pairs, scales, vectors, matrices, paths,
):  # fmt: skip
    """Set and add up :class:`Paths` of the tempered chains; NaN is the normaliser of a sequence
    that has to be solved in logarithms.

    ``emissions`` are exp{s log p} of each row over the largest of the row, whose logarithms are the
    ``offsets``; they are used up. The arrays after s are room to work in.
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
        total = _solve_scaled(
            first, last, opens, closes, start, matrix, transposed, emissions, filtered,
            paths.marginals, pairs, scales, beliefs,
        )  # fmt: skip
        if total != total:
            paths.log_normalizers[sequence] = total
            continue
        for t in range(opens, closes):
            total += offsets[t]
        _add_up(
            sequence, total, log_start, log_matrix, log_emissions, bounds, inner, begins, power,
            pairs, paths,
        )  # fmt: skip


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


@njit(**PASTED)
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
def solve_in_logs(
    which, log_start, log_matrix, log_emissions, bounds, inner, begins, s, forward, backward, pairs,
    values, paths,
):  # fmt: skip
    """The same as :func:`forward_backward` of some sequences, of any weights."""
    for sequence in which:
        total = _solve_in_logs(
            bounds[sequence], bounds[sequence + 1], inner[sequence, 0], inner[sequence, 1],
            s[sequence], log_start, log_matrix, log_emissions, forward, backward, paths.marginals,
            pairs, values,
        )  # fmt: skip
        _add_up(
            sequence, total, log_start, log_matrix, log_emissions, bounds, inner, begins,
            s[sequence], pairs, paths,
        )  # fmt: skip


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
