"""The exact q(z_n) over all 2^K activations, for few features.

    q(z_n = S) ∝ exp{ s_n ( Σ_k b_nk S_k − ½ Σ_{j≠k} J_jk S_j S_k ) }.

Its second moments, which the features need, follow from the mean of q over the points alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tempering.models.base import Array

#: Features whose activations can be enumerated in reasonable time and memory.
MAX_ENUMERATED = 12

#: Entries of a table of points × states that is made at a time: it should stay in the cache.
TABLE_SIZE = 2**18


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
    n, k = fields.shape
    states = all_states(k)
    interactions = -0.5 * np.einsum("sj,jk,sk->s", states, couplings, states, optimize=True)
    s = np.broadcast_to(np.asarray(inverse_temperature, float), n)
    activations, energies, entropies = np.empty((n, k)), np.empty(n), np.empty(n)
    mean = np.zeros(len(states))
    step = max(1, TABLE_SIZE // len(states))
    for rows in (slice(start, start + step) for start in range(0, n, step)):
        exponents = fields[rows] @ states.T + interactions
        probabilities = s[rows, None] * exponents
        largest = probabilities.max(axis=1, keepdims=True)
        probabilities -= largest
        np.exp(probabilities, out=probabilities)
        total = probabilities.sum(axis=1, keepdims=True)
        probabilities /= total
        activations[rows] = probabilities @ states
        energies[rows] = np.einsum("ns,ns->n", probabilities, exponents)
        # s · energy + entropy = log Σ_S exp{s exponent}
        entropies[rows] = (largest + np.log(total))[:, 0] - s[rows] * energies[rows]
        mean += s[rows] @ probabilities
    return Enumerated(activations, (states.T * mean) @ states, energies, entropies)
