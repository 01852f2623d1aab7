"""Activations q(z_n) of the factorial mixture: factorised, or exact where features are few.

Given the features, the log joint of a point is that of a small Boltzmann machine,

    E_n(z) = Σ_k b_nk z_k − ½ Σ_{j≠k} J_jk z_j z_k,

and factorised, q(z_n) = Π_k Bern(z_nk), coordinate ascent on s E + H(z) sets
logit z_k = s (b_k − Σ_{j≠k} J_jk z_j). The exact q(z_n = S) ∝ exp{s_n E_n(S)} is over all 2^K
activations. Where all points have one temperature, two halves of the features have tables,

    q(z_n = (S, S')) ∝ exp{s A_n(S)} · exp{s C(S, S')} · exp{s B_n(S')},

and one matrix C for all points couples them: sums over 2^K states become matrix products with
2^(K/2) columns.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tempering.models.base import Array
from tempering.models.compilation import ENTRY, njit
from tempering.models.factorial.blocks import (
    LANES,
    TOGETHER,
    Best,
    Precise,
    Rough,
    ascend,
    choose,
    exp_of_negative,
    f32,
    leave_those_that_differ,
    read_block,
    remember,
    warm_up,
    weigh_block,
    write_block,
)

# The one entry allocates its workspace; the kernels that it calls allocate nothing.
ALLOCATING: dict[str, Any] = {"nogil": True, "error_model": "numpy", "cache": True}

#: Sweeps in which a hot restart takes s from 0 to its value.
WARMING_SWEEPS = 8

#: A restart that has come so near to what is known already is not followed to its end.
SAME = 0.05

#: Features whose activations can be enumerated in reasonable time and memory.
MAX_ENUMERATED = 12

#: Entries of a table of points × states that is made at a time: it should stay in the cache.
TABLE_SIZE = 2**18
HALF_TABLE_SIZE = 2**15

#: A sum of products of numbers up to 1 that is above this has lost nothing to underflow.
SAFE = 1e-280


class Activations(NamedTuple):
    """q(z) of some points."""

    activations: Any  # E z_nk, [n, K]
    energies: Any  # E_q[E_n(z)], [n]
    entropies: Any  # H(q(z_n)), [n]
    second_moments: Any = None  # Σ_n s_n E[z_n z_n'], [K, K], where q(z_n) is not factorised


def settle_activations(
    fields: Array,
    couplings: Array,
    inverse_temperature: float | Array,
    start: Array,
    *,
    n_restarts: int = 0,
    tolerance: float = 1e-3,
    max_sweeps: int = 10,
) -> Activations:
    """Coordinate ascent from ``start`` [n, K] or [K], and from hot starts where they lead higher.

    ``fields`` [n, K] are b, the log odds of an activation alone, ``couplings`` [K, K] are J,
    symmetric with a diagonal of zeros. A hot start begins with z = ½, the solution at s = 0, and
    takes s to its value while it sweeps, in an order of its own; what it ends in is kept if
    s E + H is higher there. An ascent ends when no activation changes by ``tolerance`` in a sweep.
    """
    n, k = fields.shape
    # Features first: then the points of a block lie side by side.
    activations, energies, entropies = np.empty((k, n)), np.empty(n), np.empty(n)
    temperatures = np.empty(n)
    temperatures[:] = inverse_temperature
    _settle(
        _contiguous(fields.T), _contiguous(couplings), temperatures,
        _contiguous(np.broadcast_to(start, (n, k)).T), activations, energies, entropies,
        sweep_orders(k, n_restarts), tolerance, max_sweeps,
    )  # fmt: skip
    return Activations(activations.T, energies, entropies)


def _contiguous(array: Array) -> Array:
    """Writable too: for what is not, the kernel would be compiled once more."""
    return np.require(array, float, ["C", "W"])


@lru_cache(maxsize=16)
def sweep_orders(k: int, n_restarts: int) -> np.ndarray:
    """The order of the features in the first ascent and in each restart.

    Which feature moves first decides which of several explanations wins.
    """
    forward = np.arange(k)
    orders = [np.roll(forward[:: 1 - 2 * (r % 2)], r * k // 3) for r in range(n_restarts + 1)]
    return np.array(orders)


@njit(**ALLOCATING)
def _settle(
    fields, couplings, temperatures, start, activations, energies, entropies, orders, tolerance,
    max_sweeps,
):  # fmt: skip
    """Blocks of points, one after the other; arrays have features first.

    Sweeps are in single precision, what they end in, z, E and H, in double. Each array is allocated
    by itself, so that LLVM knows that they do not overlap.
    """
    k, n = fields.shape
    padded = -(-k // TOGETHER) * TOGETHER
    couplings_once = np.zeros((k, padded))
    rough_couplings = np.zeros((k, padded), f32)
    for i in range(k):
        for j in range(k):
            couplings_once[i, j] = couplings[i, j] if j < i else 0.0
            rough_couplings[i, j] = couplings[i, j]
    rough = Rough(
        np.zeros((k, LANES), f32),
        rough_couplings,
        np.zeros(LANES, f32),
        np.zeros((padded, LANES), f32),
        np.zeros((k, LANES), f32),
        np.zeros(LANES, f32),
        np.zeros(LANES, f32),
        np.zeros(LANES, f32),
    )
    precise = Precise(
        np.zeros((k, LANES)),
        couplings_once,
        np.zeros((padded, LANES)),
        np.zeros(LANES),
        np.zeros(LANES),
        np.zeros(LANES),
        np.zeros(LANES),
    )
    best = Best(np.zeros((k, LANES), f32), np.zeros(LANES), np.zeros(LANES), np.zeros(LANES, f32))
    s = np.zeros(LANES)
    for first in range(0, n, LANES):
        count = min(LANES, n - first)
        # The lanes beyond the last point keep what they had: numbers that nobody reads.
        read_block(fields, start, temperatures, first, count, precise, rough, s)
        for attempt in range(len(orders)):
            for lane in range(LANES):
                rough.active[lane] = lane < count
            if attempt:
                warm_up(rough, s, orders[attempt], WARMING_SWEEPS)
                if not leave_those_that_differ(rough, best.z, SAME):
                    continue
            for lane in range(LANES):
                rough.s[lane] = s[lane]
                best.taken[lane] = rough.active[lane]
            ascend(rough, orders[0], f32(tolerance), max_sweeps)
            weigh_block(precise, rough.logits)
            choose(precise, best, s, attempt)
            if attempt + 1 < len(orders):
                remember(rough.z, best)
            write_block(precise.z, best.taken, activations, first, count)
        for lane in range(count):
            energies[first + lane] = best.energy[lane]
            entropies[first + lane] = best.entropy[lane]


@lru_cache(maxsize=16)
def all_states(n_features: int) -> Array:
    """Every vector of activations, [2^K, K]."""
    if n_features > MAX_ENUMERATED:
        raise ValueError(
            f"the activations of {n_features} features are too many to enumerate; at most "
            f"{MAX_ENUMERATED} features can be."
        )
    states = (np.arange(2**n_features)[:, None] >> np.arange(n_features)) & 1
    states = states.astype(float)
    states.setflags(write=False)
    return states


def enumerate_activations(
    fields: Array, couplings: Array, inverse_temperature: float | Array
) -> Activations:
    """The exact q(z_n); arguments as of :func:`settle_activations`."""
    if np.ndim(inverse_temperature):
        return _all_at_once(fields, couplings, np.array(inverse_temperature, float))
    return _by_halves(fields, couplings, float(inverse_temperature))


def _all_at_once(fields: Array, couplings: Array, s: Array) -> Activations:
    """A table of all points and all states."""
    n, k = fields.shape
    states = all_states(k)
    interactions = _interactions(states, couplings)
    activations, energies, entropies = np.empty((n, k)), np.empty(n), np.empty(n)
    mean = np.zeros(len(states))
    for rows in _parts(n, TABLE_SIZE // len(states)):
        exponents = fields[rows] @ states.T + interactions
        weights, largest = _exponentials(exponents, s[rows])
        total = weights.sum(axis=1)
        activations[rows] = weights @ states / total[:, None]
        energies[rows] = np.einsum("ns,ns->n", weights, exponents) / total
        # s · energy + entropy = log Σ_S exp{s exponent}
        entropies[rows] = s[rows] * (largest - energies[rows]) + np.log(total)
        mean += (s[rows] / total) @ weights
    return Activations(activations, energies, entropies, (states.T * mean) @ states)


def _by_halves(fields: Array, couplings: Array, s: float) -> Activations:
    """Tables of the states of each half of the features, where all points have one temperature."""
    n, k = fields.shape
    half = k // 2
    left, right = all_states(half), all_states(k - half)
    inside_left = _interactions(left, couplings[:half, :half])
    inside_right = _interactions(right, couplings[half:, half:])
    between = -left @ couplings[:half, half:] @ right.T
    top = between.max()
    coupled = np.exp(s * (between - top))
    coupled_energy = coupled * between
    activations, energies, entropies = np.empty((n, k)), np.empty(n), np.empty(n)
    joint, lost, alike = np.zeros(between.shape), np.empty(n, bool), np.full(n, s)
    for rows in _parts(n, HALF_TABLE_SIZE // len(right)):
        a = fields[rows, :half] @ left.T + inside_left
        b = fields[rows, half:] @ right.T + inside_right
        p, largest_a = _exponentials(a, alike[rows])
        q, largest_b = _exponentials(b, alike[rows])
        weights_right = (p @ coupled) * q
        total = weights_right.sum(axis=1)
        lost[rows] = total < SAFE
        p[lost[rows]], total[lost[rows]] = 0.0, 1.0
        scale = 1.0 / total[:, None]
        p *= scale
        weights_right *= scale
        weights_left = (q @ coupled.T) * p
        activations[rows, :half] = weights_left @ left
        activations[rows, half:] = weights_right @ right
        energies[rows] = np.einsum("ns,ns->n", p @ coupled_energy, q)
        energies[rows] += np.einsum("ns,ns->n", weights_left, a)
        energies[rows] += np.einsum("ns,ns->n", weights_right, b)
        entropies[rows] = s * (largest_a + largest_b + top - energies[rows]) + np.log(total)
        joint += p.T @ q
    joint *= s * coupled
    across = left.T @ joint @ right
    moments = np.block(
        [
            [(left.T * joint.sum(axis=1)) @ left, across],
            [across.T, (right.T * joint.sum(axis=0)) @ right],
        ]
    )
    if lost.any():
        others = _all_at_once(fields[lost], couplings, alike[lost])
        activations[lost], energies[lost] = others.activations, others.energies
        entropies[lost] = others.entropies
        moments += others.second_moments
    return Activations(activations, energies, entropies, moments)


def _interactions(states: Array, couplings: Array) -> Array:
    """−½ Σ_{j≠k} J_jk S_j S_k of each state."""
    return -0.5 * np.einsum("sj,sj->s", states @ couplings, states)


def _exponentials(exponents: Array, s: Array) -> tuple[Array, Array]:
    """exp{s (e − max e)} of each row, and max e."""
    result, largest = np.empty_like(exponents), np.empty(len(exponents))
    _fill_exponentials(exponents, s, result, largest)
    return result, largest


@njit(**ENTRY)
def _fill_exponentials(exponents, s, result, largest):
    n, width = exponents.shape
    for i in range(n):
        row, target = exponents[i], result[i]
        top = row[0]
        for j in range(1, width):
            top = row[j] if row[j] > top else top
        for j in range(width):
            target[j] = exp_of_negative(s[i] * (row[j] - top))
        largest[i] = top


def _parts(n: int, size: int) -> Iterator[slice]:
    size = max(1, size)
    return (slice(start, start + size) for start in range(0, n, size))
