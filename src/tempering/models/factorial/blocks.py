"""What mean field does to a block of points, side by side for the sake of vector instructions.

One short loop for each thing to do, over rows that have names, and a sigmoid, an exponential and a
logarithm without branches and calls: so LLVM vectorises them.
"""

from typing import Any, NamedTuple

import numpy as np

from tempering.models.compilation import ELEMENTWISE, njit
from tempering.models.fastmath import bit_operation, exp_or_zero

_MANTISSA_BITS, _BITS_OF_ONE, _BITS_OF_SQRT_HALF = 52, 0x3FF0000000000000, 0x3FE6A09E667F3BCD
# A float64 of this size has no digits after the point: adding and subtracting it rounds.
_ROUNDING = 1.5 * 2.0**52
#: Below this, exp is taken to be what it is here: nothing, and yet no denormal number.
_LOWEST = -700.0


@bit_operation("float64")
def _power_of_two(builder, bits, integer, floating):
    """2**n from n + `_ROUNDING`: the low bits of that sum are n, and become the exponent."""
    bits = builder.shl(bits, integer(_MANTISSA_BITS))
    return builder.bitcast(builder.add(bits, integer(_BITS_OF_ONE)), floating)


@njit(**ELEMENTWISE)
def exp_of_negative(x):
    """exp(x) for x <= 0, to a relative 2e-13; down to −100, to 4e-14.

    With x / log 2 = n + r and |r| <= 1/2, 2**n is made of its bits and 2**r by a polynomial of
    degree 9 (minimax, relative 2e-14; Estrin's scheme: short chains of dependent operations).
    """
    x = _LOWEST if x < _LOWEST else x
    t = x * 1.4426950408889634
    shifted = t + _ROUNDING
    r = t - (shifted - _ROUNDING)
    square = r * r
    fourth = square * square
    low = 1.0 + r * 0.693147180559885108
    low += square * (0.240226506957227257 + r * 0.0555041086684182932)
    high = 0.0096181291811832777 + r * 0.00133335576251416887
    high += square * (0.000154034408723500457 + r * 0.0000152529901764939217)
    high += fourth * (1.32583377609137238e-6 + r * 1.01483138690734433e-7)
    return (low + fourth * high) * _power_of_two(shifted)


@bit_operation("float64")
def _binary_exponent(builder, bits, integer, floating):
    """The integer e with x = m 2**e and m in [sqrt(1/2), sqrt(2)), as a float64."""
    bits = builder.sub(bits, integer(_BITS_OF_SQRT_HALF))
    return builder.sitofp(builder.ashr(bits, integer(_MANTISSA_BITS)), floating)


@njit(**ELEMENTWISE)
def log_of_product(x):
    """log(x) for 1 <= x < 2**1000, to 1e-14 (relative where the value is above 1).

    With x = m 2**e and f = (m − 1) / (m + 1), log m is 2 atanh f, a short series.
    """
    e = _binary_exponent(x)
    m = x * _power_of_two(_ROUNDING - e)
    f = (m - 1.0) / (m + 1.0)
    square = f * f
    fourth = square * square
    low = 1 / 3 + square * (1 / 5) + fourth * (1 / 7 + square * (1 / 9))
    high = 1 / 11 + square * (1 / 13) + fourth * (1 / 15 + square * (1 / 17))
    series = square * (low + fourth * fourth * high)
    return e * 0.6931471805599453 + 2.0 * (f + f * series)


@njit(**ELEMENTWISE)
def both_sides(u):
    """σ(|u|), σ(−|u|) and their common denominator 1 + exp(−|u|), with σ(u) = 1 / (1 + exp(−u))."""
    small = exp_of_negative(-abs(u))
    total = 1.0 + small
    # A division in single precision and a step of Newton's are as good as one in double precision,
    # and faster.
    near = np.float64(np.float32(1.0) / np.float32(total))
    near = near * (2.0 - total * near)
    return near, small * near, total


@njit(**ELEMENTWISE)
def rough_sigmoid(u):
    """σ(u) of a float32, to a relative 2e-6; below −43 as there: no denormal number."""
    u = np.float32(-43.0) if u < np.float32(-43.0) else u
    return np.float32(1.0) / (np.float32(1.0) + exp_or_zero(-u))


f32 = np.float32

#: Points that the kernel sweeps side by side, for the sake of vector instructions.
LANES = 128

#: A quarter of them: loops that are unrolled four times use each constant that they load for all.
QUARTER = LANES // 4

#: Features whose pull on another is added up at a time; with fewer, sums wait for their memory.
TOGETHER = 4

#: Numbers between 1 and 2 whose product is well inside the range of float64.
FACTORS = 512


class Rough(NamedTuple):
    """The state of a block of points, in single precision; K' is K rounded up, with zeros."""

    b: Any  # [K, LANES]
    couplings: Any  # [K, K']
    s: Any  # [LANES]
    z: Any  # [K', LANES]
    logits: Any  # of z, [K, LANES]
    odds: Any  # b_k − Σ_j J_jk z_j of one feature, [LANES]
    active: Any  # 1 for a point that moves, 0 for one at rest, [LANES]
    largest: Any  # change in a sweep, [LANES]


class Precise(NamedTuple):
    """The same, and what follows from it, in double precision."""

    b: Any  # [K, LANES]
    couplings: Any  # [K, K'], each pair once
    z: Any  # [K', LANES]
    odds: Any  # of one feature, from those before it, [LANES]
    product: Any  # Π_k 1 / (1 − p_k), [LANES]
    energy: Any  # E(z), [LANES]
    entropy: Any  # H(z), [LANES]


class Best(NamedTuple):
    """The best that is known about a block of points."""

    z: Any  # [K, LANES]
    energy: Any  # [LANES]
    entropy: Any  # [LANES]
    taken: Any  # 1 where the last attempt is the best, [LANES]


@njit(**ELEMENTWISE)
def read_block(fields, start, temperatures, first, count, precise, rough, s):
    """A block of points."""
    for k in range(len(fields)):
        field, b, rough_b = fields[k], precise.b[k], rough.b[k]
        for lane in range(count):
            b[lane] = field[first + lane]
        for lane in range(count):
            rough_b[lane] = b[lane]
        known, z = start[k], rough.z[k]
        for lane in range(count):
            z[lane] = known[first + lane]
    for lane in range(count):
        s[lane] = temperatures[first + lane]


@njit(**ELEMENTWISE)
def write_block(z, taken, activations, first, count):
    """The activations of the points for which these are the best so far."""
    for k in range(len(activations)):
        new, kept = z[k], activations[k]
        for lane in range(count):
            kept[first + lane] = new[lane] if taken[lane] else kept[first + lane]


@njit(**ELEMENTWISE)
def warm_up(rough, s, order, n_sweeps):
    """A hot start: from z = ½, with an s that grows to its value."""
    for k in order:
        for lane in range(LANES):
            rough.z[k, lane] = f32(0.5)
    for sweep in range(1, n_sweeps + 1):
        for lane in range(LANES):
            rough.s[lane] = s[lane] * (sweep / n_sweeps)
        _sweep(rough, order)


@njit(**ELEMENTWISE)
def choose(found, best, s, attempt):
    """Take what was found where s E + H is higher than before."""
    for lane in range(LANES):
        rise = s[lane] * (found.energy[lane] - best.energy[lane])
        if attempt and not rise + found.entropy[lane] > best.entropy[lane]:
            best.taken[lane] = 0.0
        if best.taken[lane]:
            best.energy[lane], best.entropy[lane] = found.energy[lane], found.entropy[lane]


@njit(**ELEMENTWISE)
def remember(z, best):
    for k in range(len(best.z)):
        known, new = best.z[k], z[k]
        for lane in range(LANES):
            known[lane] = new[lane] if best.taken[lane] else known[lane]


@njit(**ELEMENTWISE)
def ascend(rough, order, tolerance, max_sweeps):
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
    """Each activation once, in turn; the largest change of each point."""
    s, odds, active, largest = rough.s, rough.odds, rough.active, rough.largest
    largest[:] = 0.0
    for k in order:
        _find_odds(rough.b[k], rough.couplings[k], rough.z, len(rough.z), odds)
        logit, activation = rough.logits[k], rough.z[k]
        for lane in range(LANES):
            logit[lane] = s[lane] * odds[lane] if active[lane] else logit[lane]
        for lane in range(QUARTER):
            for i in range(4):
                place = lane + i * QUARTER
                new = rough_sigmoid(logit[place])
                size = abs(new - activation[place])
                activation[place] = new
                largest[place] = size if size > largest[place] else largest[place]


@njit(**ELEMENTWISE)
def _find_odds(field, couplings, z, count, odds):
    """b_k − Σ_j J_jk z_j of one feature, over the first features."""
    for lane in range(LANES):
        odds[lane] = field[lane]
    for j in range(0, count, TOGETHER):
        c0, c1, c2, c3 = couplings[j], couplings[j + 1], couplings[j + 2], couplings[j + 3]
        z0, z1, z2, z3 = z[j], z[j + 1], z[j + 2], z[j + 3]
        for lane in range(LANES):
            near = odds[lane] - c0 * z0[lane] - c1 * z1[lane]
            odds[lane] = near - c2 * z2[lane] - c3 * z3[lane]


@njit(**ELEMENTWISE)
def leave_those_that_differ(rough, known, same):
    """Mark as active the points that have come to something new; whether there are any."""
    largest = rough.largest
    largest[:] = 0.0
    for k in range(len(known)):
        for lane in range(LANES):
            size = abs(rough.z[k, lane] - known[k, lane])
            largest[lane] = size if size > largest[lane] else largest[lane]
    some = False
    for lane in range(LANES):
        rough.active[lane] = rough.active[lane] if largest[lane] > same else 0.0
        some |= rough.active[lane] > 0.0
    return some


@njit(**ELEMENTWISE)
def weigh_block(precise, logits):
    """z, E and H of each point; with p = min(z, 1 − z), H = Σ_k p_k |logit_k| − log(1 − p_k)."""
    b, couplings, z, odds, product, energy, entropy = precise
    for lane in range(LANES):
        energy[lane] = entropy[lane] = 0.0
    for first in range(0, len(b), FACTORS):
        for lane in range(LANES):
            product[lane] = 1.0
        for k in range(first, min(first + FACTORS, len(b))):
            logit, activation = logits[k], z[k]
            for lane in range(QUARTER):
                for i in range(4):
                    place = lane + i * QUARTER
                    u = np.float64(logit[place])
                    near, far, total = both_sides(u)
                    activation[place] = near if u >= 0.0 else far
                    entropy[place] += far * abs(u)
                    product[place] *= total
        for lane in range(LANES):
            entropy[lane] += log_of_product(product[lane])
    for k in range(len(b)):
        _find_odds(b[k], couplings[k], z, k, odds)
        activation = z[k]
        for lane in range(LANES):
            energy[lane] += activation[lane] * odds[lane]
