"""Factorised activations q(z_n) = Π_k Bern(z_nk), a point at a time.

Given the features, the log joint of a point is that of a small Boltzmann machine,

    E_n(z) = Σ_k b_nk z_k − ½ Σ_{j≠k} J_jk z_j z_k,

and coordinate ascent on s E + H(z) sets logit z_k = s (b_k − Σ_{j≠k} J_jk z_j). Points never meet,
so the result of one depends neither on the others nor on the number of threads.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tempering.models.base import Array
from tempering.models.lda.fastmath import exp_or_zero

COMPILED: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}

#: Points that the kernel sweeps side by side, for the sake of vector instructions.
LANES = 16

#: Sweeps in which a hot restart takes s from 0 to its value.
WARMING_SWEEPS = 8

#: A restart that has come so near to what is known already is not followed to its end.
SAME = 0.05


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
    activations = np.array(np.broadcast_to(start, (n, k)), dtype=float, order="C")
    energies, entropies = np.empty(n), np.empty(n)
    # Which feature moves first decides which of several explanations wins.
    forward = np.arange(k)
    orders = [np.roll(forward[:: 1 - 2 * (r % 2)], r * k // 3) for r in range(n_restarts + 1)]
    _settle(
        np.ascontiguousarray(fields),
        np.ascontiguousarray(couplings),
        np.ascontiguousarray(np.broadcast_to(np.asarray(inverse_temperature, float), n)),
        activations,
        energies,
        entropies,
        np.array(orders),
        tolerance,
        max_sweeps,
    )
    return Settled(activations, energies, entropies)


@njit(**COMPILED, cache=True)
def _settle(
    fields, couplings, temperatures, activations, energies, entropies, orders, tolerance, max_sweeps
):
    n, k = fields.shape
    b, z, trial, pull = np.zeros((4, k, LANES))
    s, active, energy, entropy = np.zeros((4, LANES))
    for first in range(0, n, LANES):
        count = min(LANES, n - first)
        active[:] = 0.0
        for lane in range(count):
            active[lane] = 1.0
            s[lane] = temperatures[first + lane]
            for j in range(k):
                b[j, lane] = fields[first + lane, j]
                z[j, lane] = activations[first + lane, j]
        _find_pulls(couplings, z, pull)
        _ascend(b, couplings, s, z, pull, orders[0], active, tolerance, max_sweeps)
        for lane in range(count):
            energy[lane], entropy[lane] = _energy(b, z, pull, lane), _entropy(z, lane)
        for restart in range(1, len(orders)):
            trial[:] = 0.5
            active[:count] = 1.0
            _find_pulls(couplings, trial, pull)
            for sweep in range(WARMING_SWEEPS):
                share = (sweep + 1) / WARMING_SWEEPS
                _sweep(b, couplings, share * s, trial, pull, orders[restart], active)
            for lane in range(count):
                active[lane] = 1.0 if _differs(trial, z, lane) else 0.0
            follow = active.copy()
            _ascend(b, couplings, s, trial, pull, orders[0], active, tolerance, max_sweeps)
            for lane in range(count):
                if follow[lane] == 0.0:
                    continue
                found, spread = _energy(b, trial, pull, lane), _entropy(trial, lane)
                if s[lane] * found + spread > s[lane] * energy[lane] + entropy[lane]:
                    energy[lane], entropy[lane] = found, spread
                    z[:, lane] = trial[:, lane]
        for lane in range(count):
            energies[first + lane], entropies[first + lane] = energy[lane], entropy[lane]
            for j in range(k):
                activations[first + lane, j] = z[j, lane]


@njit(**COMPILED)
def _ascend(b, couplings, s, z, pull, order, active, tolerance, max_sweeps):
    """Sweep until each point has come to rest; one that has takes no further part."""
    for _ in range(max_sweeps):
        largest = _sweep(b, couplings, s, z, pull, order, active)
        moving = False
        for lane in range(LANES):
            if largest[lane] < tolerance:
                active[lane] = 0.0
            moving |= active[lane] > 0.0
        if not moving:
            break


@njit(**COMPILED)
def _sweep(b, couplings, s, z, pull, order, active):
    """Each activation once, in turn; the largest change of each point."""
    largest, change = np.zeros(LANES), np.empty(LANES)
    for k in order:
        for lane in range(LANES):
            u = s[lane] * (b[k, lane] - pull[k, lane])
            # The exponential may be inexact: where z is optimal, the ELBO is flat.
            small = np.float64(exp_or_zero(np.float32(-abs(u))))
            near = 1.0 / (1.0 + small)
            new = near if u >= 0.0 else small * near
            change[lane] = active[lane] * (new - z[k, lane])
            z[k, lane] = active[lane] * new + (1.0 - active[lane]) * z[k, lane]
            size = abs(change[lane])
            largest[lane] = size if size > largest[lane] else largest[lane]
        for j in range(len(b)):
            coupling = couplings[k, j]
            for lane in range(LANES):
                pull[j, lane] += coupling * change[lane]
    return largest


@njit(**COMPILED)
def _find_pulls(couplings, z, pull):
    """Σ_j J_jk z_j of each feature."""
    pull[:] = 0.0
    for j in range(len(z)):
        for k in range(len(z)):
            coupling = couplings[j, k]
            for lane in range(LANES):
                pull[k, lane] += coupling * z[j, lane]


@njit(**COMPILED)
def _differs(trial, z, lane):
    largest = 0.0
    for k in range(len(z)):
        largest = max(largest, abs(trial[k, lane] - z[k, lane]))
    return largest > SAME


@njit(**COMPILED)
def _energy(b, z, pull, lane):
    total = 0.0
    for k in range(len(z)):
        total += z[k, lane] * (b[k, lane] - 0.5 * pull[k, lane])
    return total


@njit(**COMPILED)
def _entropy(z, lane):
    total = 0.0
    for k in range(len(z)):
        p = min(z[k, lane], 1.0 - z[k, lane])
        if p > 1e-5:
            total -= p * math.log(p) + (1.0 - p) * math.log(1.0 - p)
        elif p > 0.0:  # most activations are nearly certain: one logarithm less for them
            total += p * (1.0 - 0.5 * p - math.log(p))
    return total
