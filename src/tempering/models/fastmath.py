"""Float32 exp, log, powers and digamma as branch-free polynomials, which LLVM vectorises.

Largest error against float64, relative where the value is above 1 and absolute below: `log` 1e-7,
`digamma` 8e-7; `exp_or_zero`, relative throughout, 3e-7 down to -3 and 2e-6 down to -43; `power`,
relative, 1e-5. NaN goes in, NaN comes out.
"""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

logger = logging.getLogger("tempering")


def _known_options(options: dict[str, Any]) -> dict[str, Any]:
    """Those of the options that this version of Numba has."""
    known = dir(njit(lambda: None).targetdescr.options)  # pyright: ignore
    return {name: value for name, value in options.items() if name in known}


def _can_be_kept() -> bool:
    """Whether there is a place on disk for compiled kernels."""
    try:
        njit(cache=True)(_known_options)
    except RuntimeError:  # so says Numba: neither beside this file nor in the user's directory
        logger.info("compiled kernels are not kept: set NUMBA_CACHE_DIR to where they can be.")
        return False
    return True


# Sums may be reordered (needed to vectorise a sum) and multiply-adds fused. Not "nnan" or "ninf":
# with these LLVM may assume that there are no NaNs, and remove every check for one.
# A loop that adds up stores nothing: LLVM asks before a loop with both whether its arrays lie well
# apart in memory, and where they do not it adds one number at a time, in another order. The bits
# would depend on where memory happens to be free.
# Without reference counts: the kernels allocate nothing and keep no arrays, so there is nothing to
# count, while an atomic increment for each view of a row would take up to half of the time.
# Numba does not document that option, so it is used only where it exists.
# Called from Python alone, so without the wrapper for calls from C.
# Compiled entries are kept on disk. Numba compiles one again when its own file has changed, not
# when a kernel in another file has: after such a change, delete the *.nbi in __pycache__.
ENTRY: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    "nogil": True,
    "cache": _can_be_kept(),
    **_known_options({"_nrt": False, "no_cfunc_wrapper": True}),
}
# Kernels that only other kernels call need no place of their own on disk (those that call them
# hold them) and no wrapper for calls from Python, which saves a quarter of the compilation: from
# Python they cannot be called. They are inlined always: a call to one would go to the kernel as
# compiled by itself in the process that compiles, and to the copy inside of its caller in one that
# loads it from disk. These round differently, and the same seed would not give the same bits.
KERNEL: dict[str, Any] = {
    **ENTRY,
    "cache": False,
    "forceinline": True,
    **_known_options({"no_cpython_wrapper": True}),
}
# Kernels that only order the calls of others are pasted into their one caller and compiled there.
# Else Numba compiles them by themselves first, with all that they call, and then once more within
# the caller: a third of the time of `fit_documents`. Not for a kernel that adds up: the order of
# its sums is settled where it is compiled by itself, so that a pasted one could give other bits.
PASTED: dict[str, Any] = {**KERNEL, "inline": "always"}
# Elementwise functions need fused multiply-adds alone; reordering would cost them accuracy.
ELEMENTWISE: dict[str, Any] = {**KERNEL, "fastmath": {"contract"}}

FLUSHED = np.float32(-43.5)
"""`exp_or_zero` is 0 below this: a product of two larger exponentials is a normal float32."""

f32 = np.float32
_INT32 = ir.IntType(32)
_FLOAT = ir.FloatType()
_MANTISSA_BITS = _INT32(23)
_BITS_OF_ONE = _INT32(0x3F800000)
_SQRT_HALF_BITS = _INT32(0x3F3504F3)
# A float32 of this size has no digits after the point: adding and subtracting it rounds.
_ROUNDING = np.float32(1.5 * 2**23)
# The sixth power of numbers up to this one, and its reciprocal, are normal float32.
_LARGEST_SIXTH_POWER = np.float32(2e6)


def _llvm_function(name: str) -> Callable[..., Any]:
    """Wrap the LLVM function `name` of two float32, which gives a float32."""
    function_type = ir.FunctionType(_FLOAT, [_FLOAT, _FLOAT])

    def generate(context, builder, signature, args):
        declared = builder.module.declare_intrinsic(name, [_FLOAT], function_type)
        return builder.call(declared, args)

    signature = types.float32(types.float32, types.float32)
    return intrinsic(lambda typingctx, x, y: (signature, generate))


def bit_operation(number: Any) -> Callable[..., Any]:
    """Make a function of one number, which gives another, of the LLVM code that it generates."""
    return lambda generate: intrinsic(lambda typingctx, x: (number(number), generate))


larger = _llvm_function("llvm.maximum")
"""The larger of two float32, NaN if one is NaN. Unlike a comparison, a loop over it vectorises."""
smaller = _llvm_function("llvm.minimum")
"""The smaller of two float32, NaN if one is NaN."""


@bit_operation(types.float32)
def _power_of_two(context, builder, signature, args):
    """2**n from n + `_ROUNDING`: the low bits of that sum are n, and become the exponent."""
    bits = builder.shl(builder.bitcast(args[0], _INT32), _MANTISSA_BITS)
    return builder.bitcast(builder.add(bits, _BITS_OF_ONE), _FLOAT)


def _exponent_of(builder, bits):
    """The integer e with x = m * 2**e and m in [sqrt(1/2), sqrt(2)), from the bits of x."""
    return builder.ashr(builder.sub(bits, _SQRT_HALF_BITS), _MANTISSA_BITS)


@bit_operation(types.float32)
def _binary_exponent(context, builder, signature, args):
    """The exponent e of x = m * 2**e, m in [sqrt(1/2), sqrt(2)), as a float32."""
    return builder.sitofp(_exponent_of(builder, builder.bitcast(args[0], _INT32)), _FLOAT)


@bit_operation(types.float32)
def _mantissa(context, builder, signature, args):
    """The mantissa m of x = m * 2**e, m in [sqrt(1/2), sqrt(2))."""
    bits = builder.bitcast(args[0], _INT32)
    exponent = builder.shl(_exponent_of(builder, bits), _MANTISSA_BITS)
    return builder.bitcast(builder.sub(bits, exponent), _FLOAT)


@njit(**KERNEL)
def total_of(values):
    """The sum of an array, apart from the loop that fills it."""
    total = values.dtype.type(0)
    for k in range(values.size):
        total += values[k]
    return total


@njit(**ELEMENTWISE)
def exp_or_zero(x):
    """exp(x) for a float32 x < 88, and exactly 0 below `FLUSHED`.

    So no product of two results is denormal, which is slow on x86. With t = x / log 2 = n + r and
    |r| <= 1/2, 2**n is made of its bits and 2**r by a polynomial (minimax, relative 1e-7);
    the rounding of t adds 6e-8 |x|: it grows only as the result vanishes.
    """
    t = x * f32(1.44269504088896341)
    shifted = t + _ROUNDING
    r = t - (shifted - _ROUNDING)
    square = r * r
    low = f32(1.0) + r * f32(6.9314697760e-01)
    middle = f32(2.4022242083e-01) + r * f32(5.5507337445e-02)
    high = f32(9.6715127858e-03) + r * f32(1.3264727253e-03)
    value = (low + square * (middle + square * high)) * _power_of_two(shifted)
    return f32(0.0) if x < FLUSHED else value


@njit(**ELEMENTWISE)
def log(x):
    """log(x) for a normal positive float32 (Cephes, without its branches), NaN for any other."""
    exponent = _binary_exponent(x)
    m = _mantissa(x) - f32(1.0)
    square = m * m
    fourth = square * square
    # Estrin's scheme: short chains of dependent operations, where Horner's is one long chain.
    p = f32(3.3333331174e-1) + m * f32(-2.4999993993e-1)
    p += square * (f32(2.0000714765e-1) + m * f32(-1.6668057665e-1))
    q = f32(1.4249322787e-1) + m * f32(-1.2420140846e-1)
    q += square * (f32(1.1676998740e-1) + m * f32(-1.1514610310e-1))
    q += fourth * f32(7.0376836292e-2)
    p += fourth * q
    p = p * m * square + exponent * f32(-2.12194440e-4) - f32(0.5) * square
    value = m + p + exponent * f32(0.693359375)
    return value if x > f32(0.0) else f32(np.nan)


@njit(**ELEMENTWISE)
def power(x, exponent):
    """x**exponent for a normal positive float32 and an exponent from 1/2 to 1.

    It is x times 2**(-(1 - exponent) log2(x)), where the factor before log2 makes its error small,
    so that polynomials of low degree (Chebyshev) do, in 0.6 of the time of `exp_or_zero` and `log`.
    """
    m = _mantissa(x) - f32(1.0)
    square = m * m
    low = f32(-7.8605672e-06) + m * f32(1.4425322)
    middle = f32(-7.2006375e-01) + m * f32(4.8763892e-01)
    high = f32(-3.9541313e-01) + m * f32(2.4849784e-01)
    log2 = _binary_exponent(x) + (low + square * (middle + square * high))
    t = (exponent - f32(1.0)) * log2
    shifted = t + _ROUNDING
    r = t - (shifted - _ROUNDING)
    square = r * r
    low = f32(1.0) + r * f32(6.9312100e-01)
    middle = f32(2.4022107e-01) + r * f32(5.5922040e-02)
    return x * ((low + square * (middle + square * f32(9.6760400e-03))) * _power_of_two(shifted))


@njit(**ELEMENTWISE)
def digamma(x):
    """digamma(x) for a float32 x from 1e-30 to 1e38.

    Four steps of the recurrence, then the asymptotic series about w = x + 3.5,
    digamma(w + 1/2) = log(w) + 1/(24 w^2) - 7/(960 w^4) + 31/(8064 w^6). Reciprocals come from a
    single division, the slow operation, and stay as at `_LARGEST_SIXTH_POWER` beyond it, where the
    product under it would overflow.
    """
    logarithm = log(x + f32(3.5))
    x = x if x < _LARGEST_SIXTH_POWER else _LARGEST_SIXTH_POWER
    outer = x * (x + f32(3.0))
    inner = outer + f32(2.0)  # (x+1)(x+2)
    w = x + f32(3.5)
    product = outer * inner
    reciprocal = f32(1.0) / (product * (w * w))
    recurrence = (f32(2.0) * x + f32(3.0)) * (outer + inner) * (w * w) * reciprocal
    inverse = product * reciprocal
    series = inverse * (f32(1 / 24) - inverse * (f32(7 / 960) - inverse * f32(31 / 8064)))
    return logarithm + (series - recurrence)


@njit(**ELEMENTWISE)
def digamma_floor(y):
    """An x with digamma(x) <= y, for float32: almost the largest one if y < -2, and 0 if not.

    x = 1 / (digamma(1 + x) - y) at the solution. Each round of this goes to the other side of it
    and brings it nearer, by a factor of about 1/y^2; so after an even number x is below, as at 0.
    """
    x = f32(0.0)
    if y < f32(-2.0):
        for _ in range(4):
            x = f32(1.0) / (digamma(f32(1.0) + x) - y)
    return x
