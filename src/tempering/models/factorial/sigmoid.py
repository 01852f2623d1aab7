"""A sigmoid, an exponential and a logarithm without branches and calls: so LLVM vectorises them."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from tempering.models.fastmath import ELEMENTWISE, exp_or_zero

_INT64, _DOUBLE = ir.IntType(64), ir.DoubleType()
_MANTISSA_BITS, _BITS_OF_ONE = _INT64(52), _INT64(0x3FF0000000000000)
_BITS_OF_SQRT_HALF = _INT64(0x3FE6A09E667F3BCD)
# A float64 of this size has no digits after the point: adding and subtracting it rounds.
_ROUNDING = 1.5 * 2.0**52
#: Below this, exp is taken to be what it is here: nothing, and yet no denormal number.
_LOWEST = -700.0


def _generate_power(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    bits = builder.shl(builder.bitcast(args[0], _INT64), _MANTISSA_BITS)
    return builder.bitcast(builder.add(bits, _BITS_OF_ONE), _DOUBLE)


_power_of_two: Any = intrinsic(
    lambda typingctx, shifted: (types.float64(types.float64), _generate_power)
)
"""2**n from n + `_ROUNDING`: the low bits of that sum are n, and become the exponent."""


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


def _generate_exponent(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    bits = builder.sub(builder.bitcast(args[0], _INT64), _BITS_OF_SQRT_HALF)
    return builder.sitofp(builder.ashr(bits, _MANTISSA_BITS), _DOUBLE)


_binary_exponent: Any = intrinsic(
    lambda typingctx, x: (types.float64(types.float64), _generate_exponent)
)
"""The integer e with x = m 2**e and m in [sqrt(1/2), sqrt(2)), as a float64."""


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
