"""Float32 exp, log, powers and digamma as branch-free polynomials, which LLVM vectorises.

Largest error against float64, relative where the value is above 1 and absolute below: `log` 1e-7,
`digamma` 8e-7; `exp_or_zero`, relative throughout, 3e-7 down to -3 and 2e-6 down to -43; `power`,
relative, 1e-5. NaN goes in, NaN comes out.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tempering.models.compilation import ELEMENTWISE, KERNEL, Lazy, njit

FLUSHED = np.float32(-43.5)
"""`exp_or_zero` is 0 below this: a product of two larger exponentials is a normal float32."""

f32 = np.float32
_MANTISSA_BITS, _BITS_OF_ONE, _SQRT_HALF_BITS = 23, 0x3F800000, 0x3F3504F3
# A float32 of this size has no digits after the point: adding and subtracting it rounds.
_ROUNDING = np.float32(1.5 * 2**23)
# The sixth power of numbers up to this one, and its reciprocal, are normal float32.
_LARGEST_SIXTH_POWER = np.float32(2e6)


def _llvm_function(name: str) -> Any:
    """Wrap the LLVM function `name` of two float32, which gives a float32."""

    def make() -> Any:
        from llvmlite import ir
        from numba import types
        from numba.extending import intrinsic

        number = ir.FloatType()

        def generate(context, builder, signature, args):
            function_type = ir.FunctionType(number, [number, number])
            declared = builder.module.declare_intrinsic(name, [number], function_type)
            return builder.call(declared, args)

        signature = types.float32(types.float32, types.float32)
        return intrinsic(lambda typingctx, x, y: (signature, generate))

    return Lazy(make)


def bit_operation(number: str) -> Callable[..., Any]:
    """Make a function of one number of this type, which gives another, from a generator of code.

    The generator gets LLVM's builder, the number, and its bits as an integer with the type of these
    and of the number: `(builder, bits, integer, floating)`.
    """

    def decorate(generate: Callable[..., Any]) -> Any:
        def make() -> Any:
            from llvmlite import ir
            from numba import types
            from numba.extending import intrinsic

            kind = getattr(types, number)
            integer = ir.IntType(kind.bitwidth)
            floating = ir.FloatType() if kind.bitwidth == 32 else ir.DoubleType()

            def code(context, builder, signature, args):
                return generate(builder, builder.bitcast(args[0], integer), integer, floating)

            return intrinsic(lambda typingctx, x: (kind(kind), code))

        return Lazy(make)

    return decorate


larger = _llvm_function("llvm.maximum")
"""The larger of two float32, NaN if one is NaN. Unlike a comparison, a loop over it vectorises."""
smaller = _llvm_function("llvm.minimum")
"""The smaller of two float32, NaN if one is NaN."""


@bit_operation("float32")
def _power_of_two(builder, bits, integer, floating):
    """2**n from n + `_ROUNDING`: the low bits of that sum are n, and become the exponent."""
    bits = builder.shl(bits, integer(_MANTISSA_BITS))
    return builder.bitcast(builder.add(bits, integer(_BITS_OF_ONE)), floating)


def _exponent_of(builder, bits, integer):
    """The integer e with x = m * 2**e and m in [sqrt(1/2), sqrt(2)), from the bits of x."""
    return builder.ashr(builder.sub(bits, integer(_SQRT_HALF_BITS)), integer(_MANTISSA_BITS))


@bit_operation("float32")
def _binary_exponent(builder, bits, integer, floating):
    """The exponent e of x = m * 2**e, m in [sqrt(1/2), sqrt(2)), as a float32."""
    return builder.sitofp(_exponent_of(builder, bits, integer), floating)


@bit_operation("float32")
def _mantissa(builder, bits, integer, floating):
    """The mantissa m of x = m * 2**e, m in [sqrt(1/2), sqrt(2))."""
    exponent = builder.shl(_exponent_of(builder, bits, integer), integer(_MANTISSA_BITS))
    return builder.bitcast(builder.sub(bits, exponent), floating)


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
