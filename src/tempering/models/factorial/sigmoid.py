"""A float64 sigmoid that vectorises.

A call into the C library for each element would stop LLVM from vectorising the loop around it, so
the exponential is a branch-free polynomial in plain arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from tempering.models.lda.fastmath import ELEMENTWISE, exp_or_zero

_INT64, _DOUBLE = ir.IntType(64), ir.DoubleType()
_MANTISSA_BITS, _BITS_OF_ONE = _INT64(52), _INT64(0x3FF0000000000000)
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
    """exp(x) for x <= 0, to a relative 1e-13.

    With x / log 2 = n + r and |r| <= 1/2, 2**n is made of its bits and 2**r by Taylor's polynomial
    in r log 2, of degree 11 (Estrin's scheme: short chains of dependent operations).
    """
    x = _LOWEST if x < _LOWEST else x
    t = x * 1.4426950408889634
    shifted = t + _ROUNDING
    r = (t - (shifted - _ROUNDING)) * 0.6931471805599453
    square = r * r
    fourth = square * square
    low = 1.0 + r + square * (0.5 + r * (1 / 6))
    middle = 1 / 24 + r * (1 / 120) + square * (1 / 720 + r * (1 / 5040))
    high = 1 / 40320 + r * (1 / 362880) + square * (1 / 3628800 + r * (1 / 39916800))
    return (low + fourth * (middle + fourth * high)) * _power_of_two(shifted)


@njit(**ELEMENTWISE)
def sigmoid(u):
    """1 / (1 + exp(−u)), without overflow."""
    small = exp_of_negative(-abs(u))
    near = 1.0 / (1.0 + small)
    return near if u >= 0.0 else small * near


@njit(**ELEMENTWISE)
def rough_sigmoid(u):
    """The same for a float32, to a relative 1e-6; 0 below −43."""
    small = exp_or_zero(-abs(u))
    near = np.float32(1.0) / (np.float32(1.0) + small)
    return near if u >= np.float32(0.0) else small * near
