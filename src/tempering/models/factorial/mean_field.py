"""Factorised activations q(z_n) = Π_k Bern(z_nk), a point at a time.

Given the features, the log joint of a point is that of a small Boltzmann machine,

    E_n(z) = Σ_k b_nk z_k − ½ Σ_{j≠k} J_jk z_j z_k,

and coordinate ascent on s E + H(z) sets logit z_k = s (b_k − Σ_{j≠k} J_jk z_j). Points never meet,
so the result of one depends neither on the others nor on the number of threads.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tempering.models.base import Array
from tempering.models.factorial.blocks import (
    LANES,
    TOGETHER,
    Best,
    Precise,
    Rough,
    ascend,
    choose,
    f32,
    leave_those_that_differ,
    read_block,
    remember,
    warm_up,
    weigh_block,
    write_block,
)
from tempering.models.fastmath import ENTRY

# The one entry allocates its workspace; the kernels that it calls allocate nothing.
ALLOCATING: dict[str, Any] = {"nogil": True, "error_model": "numpy", "cache": ENTRY["cache"]}

#: Sweeps in which a hot restart takes s from 0 to its value.
WARMING_SWEEPS = 8

#: A restart that has come so near to what is known already is not followed to its end.
SAME = 0.05


class SettledActivations(NamedTuple):
    """q(z) of some points."""

    activations: Array  # z_nk, [n, K]
    energies: Array  # E_n(z), [n]
    entropies: Array  # H(q(z_n)), [n]


def settle_activations(
    fields: Array,
    couplings: Array,
    inverse_temperature: float | Array,
    start: Array,
    *,
    n_restarts: int = 0,
    tolerance: float = 1e-3,
    max_sweeps: int = 10,
) -> SettledActivations:
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
    return SettledActivations(activations.T, energies, entropies)


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

    The sweeps are made in single precision: an error in a logit that is near its optimum changes
    the ELBO by the square of it. What the logits stand for that they end in, z, E and H, is
    computed in double precision. Each array is allocated by itself: so LLVM knows that they do not
    overlap.
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
