"""Factorised activations q(z_n) = Π_k Bern(z_nk), a point at a time.

Given the features, the log joint of a point is that of a small Boltzmann machine,

    E_n(z) = Σ_k b_nk z_k − ½ Σ_{j≠k} J_jk z_j z_k,

and coordinate ascent on s E + H(z) sets logit z_k = s (b_k − Σ_{j≠k} J_jk z_j). Points never meet,
so the result of one depends neither on the others nor on the number of threads.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tempering.models.base import Array
from tempering.models.factorial.sigmoid import exp_of_negative, rough_sigmoid
from tempering.models.lda.fastmath import ELEMENTWISE

#: Points that the kernel sweeps side by side, for the sake of vector instructions.
LANES = 64

f32 = np.float32

# The one entry allocates its workspace; the kernels that it calls allocate nothing.
ALLOCATING: dict[str, Any] = {"nogil": True, "error_model": "numpy", "cache": True}

#: Numbers of at least ½ whose product is no denormal number.
FACTORS = 512

#: Sweeps in which a hot restart takes s from 0 to its value.
WARMING_SWEEPS = 8

#: A restart that has come so near to what is known already is not followed to its end.
SAME = 0.05


class Rough(NamedTuple):
    """The state of a block of points, in single precision."""

    b: Any  # [K, LANES]
    couplings: Any  # [K, K]
    s: Any  # [LANES]
    z: Any  # [K, LANES]
    logits: Any  # of z, [K, LANES]
    pull: Any  # Σ_j J_jk z_j, [K, LANES]
    active: Any  # 1 for a point that moves, 0 for one at rest, [LANES]
    change: Any  # of one feature, [LANES]
    largest: Any  # change in a sweep, [LANES]


class Settled(NamedTuple):
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
) -> Settled:
    """Coordinate ascent from ``start``, and from hot starts where they lead higher.

    Parameters
    ----------
    fields : array [n, K]
        b_nk, the log odds of an activation alone.
    couplings : array [K, K]
        J_jk, symmetric with a diagonal of zeros.
    inverse_temperature : float or array [n]
        s_n.
    start : array [n, K] or [K]
        Activations to begin with.
    n_restarts : int
        Hot starts: each begins with z = ½, the solution at s = 0, and takes s to its value while it
        sweeps, in an order of its own. What it ends in is kept if s E + H is higher there.
    tolerance : float
        Largest change of an activation in a sweep that ends the ascent of a point.
    max_sweeps : int
        Sweeps at most, a point and a start.
    """
    n, k = fields.shape
    # Features first: then the points of a block lie side by side.
    activations = np.array(np.broadcast_to(start, (n, k)).T, dtype=float, order="C")
    energies, entropies, temperatures = np.empty(n), np.empty(n), np.empty(n)
    # A copy: a view may be read-only, for which the kernel would be compiled once more.
    temperatures[:] = inverse_temperature
    _settle(
        np.ascontiguousarray(fields.T),
        np.ascontiguousarray(couplings),
        temperatures,
        activations,
        energies,
        entropies,
        _orders(k, n_restarts),
        tolerance,
        max_sweeps,
    )
    return Settled(activations.T, energies, entropies)


@lru_cache(maxsize=16)
def _orders(k: int, n_restarts: int) -> np.ndarray:
    """The order of the features in the first ascent and in each restart.

    Which feature moves first decides which of several explanations wins.
    """
    forward = np.arange(k)
    orders = [np.roll(forward[:: 1 - 2 * (r % 2)], r * k // 3) for r in range(n_restarts + 1)]
    return np.array(orders)


@njit(**ALLOCATING)
def _settle(
    fields, couplings, temperatures, activations, energies, entropies, orders, tolerance, max_sweeps
):
    """Blocks of points, one after the other; arrays have features first.

    The sweeps are made in single precision: an error in a logit that is near its optimum changes
    the ELBO by the square of it. What the logits stand for that they end in, z, E and H, is
    computed in double precision. Each array is allocated by itself: so LLVM knows that they do not
    overlap.
    """
    k, n = fields.shape
    b = np.zeros((k, LANES))
    pull = np.zeros((k, LANES))
    found = np.zeros((k, LANES))
    energy, entropy = np.zeros(LANES), np.zeros(LANES)
    found_energy, found_entropy = np.zeros(LANES), np.zeros(LANES)
    rough = Rough(
        np.zeros((k, LANES), f32),
        couplings.astype(f32),
        np.zeros(LANES, f32),
        np.zeros((k, LANES), f32),
        np.zeros((k, LANES), f32),
        np.zeros((k, LANES), f32),
        np.zeros(LANES, f32),
        np.zeros(LANES, f32),
        np.zeros(LANES, f32),
    )
    known = np.zeros((k, LANES), f32)
    s, taken = np.zeros(LANES, f32), np.zeros(LANES, f32)
    product = np.zeros(LANES)
    for first in range(0, n, LANES):
        count = min(LANES, n - first)
        # The lanes beyond the last point keep what they had: numbers that nobody reads.
        for j in range(k):
            for lane in range(count):
                b[j, lane] = fields[j, first + lane]
                rough.b[j, lane] = fields[j, first + lane]
                rough.z[j, lane] = activations[j, first + lane]
        for lane in range(count):
            s[lane] = temperatures[first + lane]
        for attempt in range(len(orders)):
            for lane in range(LANES):
                rough.active[lane] = lane < count
            if attempt:
                rough.z[:] = 0.5
            _find_pulls(rough.couplings, rough.z, rough.pull)
            for sweep in range(1, WARMING_SWEEPS + 1 if attempt else 1):
                rough.s[:] = s * f32(sweep / WARMING_SWEEPS)
                _sweep(rough, orders[attempt])
            if attempt and not _leave_those_that_differ(rough, known):
                continue
            taken[:] = rough.active
            rough.s[:] = s
            _ascend(rough, orders[0], f32(tolerance), max_sweeps)
            _weigh(b, couplings, rough.logits, found, pull, found_energy, found_entropy, product)
            for lane in range(count):
                rise = temperatures[first + lane] * (found_energy[lane] - energy[lane])
                if attempt and not rise + found_entropy[lane] > entropy[lane]:
                    taken[lane] = 0.0
                if taken[lane]:
                    energy[lane], entropy[lane] = found_energy[lane], found_entropy[lane]
            for j in range(k):
                kept, new = activations[j, first : first + count], found[j]
                for lane in range(count):
                    kept[lane] = new[lane] if taken[lane] else kept[lane]
                for lane in range(LANES if attempt + 1 < len(orders) else 0):
                    known[j, lane] = rough.z[j, lane] if taken[lane] else known[j, lane]
        for lane in range(count):
            energies[first + lane], entropies[first + lane] = energy[lane], entropy[lane]


@njit(**ELEMENTWISE)
def _ascend(rough, order, tolerance, max_sweeps):
    """Sweep until each point has come to rest; one that has takes no further part."""
    for _ in range(max_sweeps):
        _sweep(rough, order)
        moving = False
        for lane in range(LANES):
            if rough.largest[lane] < tolerance:
                rough.active[lane] = 0.0
            moving |= rough.active[lane] > 0.0
        if not moving:
            break


@njit(**ELEMENTWISE)
def _sweep(rough, order):
    """Each activation once, in turn; the largest change of each point.

    One short loop for each thing to do, over rows that have names: so LLVM vectorises them.
    """
    s, active, change, largest = rough.s, rough.active, rough.change, rough.largest
    largest[:] = 0.0
    for k in order:
        field, pulled, logit = rough.b[k], rough.pull[k], rough.logits[k]
        activation, coupled = rough.z[k], rough.couplings[k]
        for lane in range(LANES):
            logit[lane] = s[lane] * (field[lane] - pulled[lane]) if active[lane] else logit[lane]
        for lane in range(LANES):
            new = rough_sigmoid(logit[lane])
            change[lane] = new - activation[lane]
            activation[lane] = new
        for lane in range(LANES):
            size = abs(change[lane])
            largest[lane] = size if size > largest[lane] else largest[lane]
        for j in range(len(coupled)):
            coupling, other = coupled[j], rough.pull[j]
            for lane in range(LANES):
                other[lane] += coupling * change[lane]


@njit(**ELEMENTWISE)
def _find_pulls(couplings, z, pull):
    """Σ_j J_jk z_j of each feature."""
    pull[:] = 0.0
    for j in range(len(z)):
        for k in range(len(z)):
            coupling, mine, other = couplings[j, k], z[j], pull[k]
            for lane in range(LANES):
                other[lane] += coupling * mine[lane]


@njit(**ELEMENTWISE)
def _leave_those_that_differ(rough, known):
    """Mark as active the points that have come to something new; whether there are any."""
    largest = rough.largest
    largest[:] = 0.0
    for k in range(len(known)):
        for lane in range(LANES):
            size = abs(rough.z[k, lane] - known[k, lane])
            largest[lane] = size if size > largest[lane] else largest[lane]
    some = False
    for lane in range(LANES):
        rough.active[lane] = rough.active[lane] if largest[lane] > SAME else 0.0
        some |= rough.active[lane] > 0.0
    return some


@njit(**ELEMENTWISE)
def _weigh(b, couplings, logits, z, pull, energy, entropy, product):
    """z, E(z) and H(z) of each point; with p = min(z, 1 − z), H = Σ_k p_k |logit_k| − log(1 − p_k).

    The logarithm of a product is one logarithm for all features of a point.
    """
    entropy[:] = 0.0
    for first in range(0, len(z), FACTORS):
        product[:] = 1.0
        for k in range(first, min(first + FACTORS, len(z))):
            logit, activation = logits[k], z[k]
            for lane in range(LANES):
                u = np.float64(logit[lane])
                small = exp_of_negative(-abs(u))
                near = 1.0 / (1.0 + small)
                activation[lane] = near if u >= 0.0 else small * near
                entropy[lane] += small * near * abs(u)
                product[lane] *= near
        for lane in range(LANES):
            entropy[lane] -= math.log(product[lane])
    _find_pulls(couplings, z, pull)
    energy[:] = 0.0
    for k in range(len(z)):
        field, pulled, activation = b[k], pull[k], z[k]
        for lane in range(LANES):
            energy[lane] += activation[lane] * (field[lane] - 0.5 * pulled[lane])
