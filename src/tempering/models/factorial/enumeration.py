"""The exact q(z_n) over all 2^K activations, for few features.

    q(z_n = S) ∝ exp{ s_n ( Σ_k b_nk S_k − ½ Σ_{j≠k} J_jk S_j S_k ) }.

Its second moments, which the features need, follow from the mean of q over the points alone.

Where all points have one temperature, two halves of the features are tabled by themselves,

    q(z_n = (S, S')) ∝ exp{s A_n(S)} · exp{s C(S, S')} · exp{s B_n(S')},

and what couples them is one matrix for all points: sums over 2^K states become matrix products with
2^(K/2) columns, and 2^(K/2 + 1) exponentials a point take the place of 2^K.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from tempering.models.base import Array
from tempering.models.factorial.blocks import exp_of_negative
from tempering.models.fastmath import ENTRY

#: Features whose activations can be enumerated in reasonable time and memory.
MAX_ENUMERATED = 12

#: Entries of a table of points × states that is made at a time: it should stay in the cache.
TABLE_SIZE = 2**18
HALF_TABLE_SIZE = 2**15

#: A sum of products of numbers up to 1 that is above this has lost nothing to underflow.
SAFE = 1e-280


class Enumerated(NamedTuple):
    """q(z) of some points, as far as anybody asks for it."""

    activations: Array  # E z_nk, [n, K]
    second_moments: Array  # Σ_n s_n E[z_n z_n'], [K, K]
    energies: Array  # E_q of the exponent at s = 1, [n]
    entropies: Array  # H(q(z_n)), [n]


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
) -> Enumerated:
    """The exact q(z_n); arguments as of :func:`~.mean_field.settle_activations`."""
    if np.ndim(inverse_temperature):
        return _all_at_once(fields, couplings, np.array(inverse_temperature, float))
    return _by_halves(fields, couplings, float(inverse_temperature))


def _all_at_once(fields: Array, couplings: Array, s: Array) -> Enumerated:
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
    return Enumerated(activations, (states.T * mean) @ states, energies, entropies)


def _by_halves(fields: Array, couplings: Array, s: float) -> Enumerated:
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
    return Enumerated(activations, moments, energies, entropies)


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
