"""Primitives on doubles: rounding, an order that integers carry, conversion to integers, hashing.

Everything follows IEEE: a division by zero is infinite, the logarithm of a negative number NaN. NaN equals NaN and is
greater than any number.
"""

from __future__ import annotations

import math

from gquery.kernels.primitives.checked import fail
from gquery.kernels.primitives.python.floats import (
    abs_f64,
    add_f64,
    bits_f64,
    eq_f64,
    f64,
    f64_from_bits,
    f64_is_nan,
    fmod_f64,
    ge_f64,
    gt_f64,
    le_f64,
    lt_f64,
    neg_f64,
    sub_f64,
)
from gquery.kernels.primitives.python.integers import and_i64, hash_i64, i64, lt_i64, shr_i64, truncate_f64, xor_i64
from gquery.kernels.primitives.python.values import Pointer

_NAN = 0x7FF8000000000000
_MAGNITUDE = 0x7FFFFFFFFFFFFFFF


def floor_f64(x: float) -> float:
    """The greatest integer that is not above x, as a double; NaN and infinities stay."""
    if lt_f64(abs_f64(x), 4503599627370496.0):  # from 2^52 on every double is an integer; NaN is greater, too
        whole = float(truncate_f64(x))
        if gt_f64(whole, x):
            whole = sub_f64(whole, 1.0)
        return math.copysign(whole, x)
    return x


def ceil_f64(x: float) -> float:
    """The least integer that is not below x, as a double; NaN and infinities stay."""
    return neg_f64(floor_f64(neg_f64(x)))


def trunc_f64(x: float) -> float:
    """x without its fraction, as a double; the sign of zero stays."""
    if lt_f64(abs_f64(x), 4503599627370496.0):
        return math.copysign(float(truncate_f64(x)), x)
    return x


def round_f64(x: float) -> float:
    """To the nearest integer, halves away from zero."""
    whole = trunc_f64(x)
    if lt_f64(abs_f64(x), 4503599627370496.0) and ge_f64(abs_f64(sub_f64(x, whole)), 0.5):
        return add_f64(whole, math.copysign(1.0, x))
    return whole


def round_even_f64(x: float) -> float:
    """To the nearest integer, halves to the even one, as a CAST to an integer does."""
    if lt_f64(abs_f64(x), 4503599627370496.0):
        shift = math.copysign(4503599627370496.0, x)
        return math.copysign(sub_f64(add_f64(x, shift), shift), x)
    return x


def sign_f64(x: float) -> float:
    """-1, 0 or 1; 0 for NaN."""
    if gt_f64(x, 0.0) and not f64_is_nan(x):
        return 1.0
    if lt_f64(x, 0.0):
        return -1.0
    return 0.0


def f64_order(x: float) -> int:
    """An integer that sorts as the double does: -0.0 with 0.0, NaN last."""
    if f64_is_nan(x):
        return i64(_NAN)
    bits = bits_f64(add_f64(x, 0.0))  # -0.0 + 0.0 is 0.0
    return xor_i64(bits, and_i64(shr_i64(bits, 63), _MAGNITUDE))


def f64_unorder(order: int) -> float:
    """The double of an `f64_order`."""
    return f64_from_bits(xor_i64(order, and_i64(shr_i64(order, 63), _MAGNITUDE)))


def hash_f64(x: float) -> int:
    """A hash of 64 bits; equal doubles, -0 and 0 among them, hash equally."""
    return hash_i64(f64_order(x))


def i64_from_f64(x: float) -> int:
    """The nearest integer, halves to even; the caller knows that it fits."""
    return truncate_f64(round_even_f64(x))


def i64_from_f64_checked(x: float, low: int, high: int, status: Pointer, site: int) -> int:
    """The nearest integer, halves to even, which has to lie in low..high; the number itself may not be below low."""
    rounded = round_even_f64(x)
    if ge_f64(x, f64(low)) and lt_f64(rounded, 9223372036854775808.0):
        value = truncate_f64(rounded)
        if not (lt_i64(value, low) or lt_i64(high, value)):
            return value
    fail(status, site)
    return i64(0)


def mod_f64(x: float, y: float) -> float:
    """The remainder with the dividend's sign; NaN for a divisor of 0."""
    if eq_f64(y, 0.0) or eq_f64(abs_f64(x), math.inf):
        return math.nan
    return fmod_f64(x, y)


def sqrt_f64(x: float) -> float:
    """The square root; NaN for negative numbers."""
    if lt_f64(x, 0.0):
        return math.nan
    return math.sqrt(x)


def ln_f64(x: float) -> float:
    """The natural logarithm; -infinity for 0, NaN for negative numbers."""
    if le_f64(x, 0.0):
        return -math.inf if eq_f64(x, 0.0) else math.nan
    return math.log(x)


def log10_f64(x: float) -> float:
    """The logarithm to base 10; -infinity for 0, NaN for negative numbers."""
    if le_f64(x, 0.0):
        return -math.inf if eq_f64(x, 0.0) else math.nan
    return math.log10(x)


def log2_f64(x: float) -> float:
    """The logarithm to base 2; -infinity for 0, NaN for negative numbers."""
    if le_f64(x, 0.0):
        return -math.inf if eq_f64(x, 0.0) else math.nan
    return math.log2(x)


def exp_f64(x: float) -> float:
    """e to the power of x; infinite where that is beyond doubles."""
    if gt_f64(x, 709.782712893384) and not f64_is_nan(x):  # Python raises where IEEE says infinite
        return math.inf
    return math.exp(x)


def pow_f64(x: float, y: float) -> float:
    """x to the power of y, as IEEE has it: infinite or NaN instead of an error."""
    return math.pow(x, y)


def sin_f64(x: float) -> float:
    """The sine of an angle in radians; NaN for infinities."""
    if eq_f64(abs_f64(x), math.inf):
        return math.nan
    return math.sin(x)


def cos_f64(x: float) -> float:
    """The cosine of an angle in radians; NaN for infinities."""
    if eq_f64(abs_f64(x), math.inf):
        return math.nan
    return math.cos(x)


def tan_f64(x: float) -> float:
    """The tangent of an angle in radians; NaN for infinities."""
    if eq_f64(abs_f64(x), math.inf):
        return math.nan
    return math.tan(x)


def asin_f64(x: float) -> float:
    """The angle in radians whose sine is x; NaN outside of -1 to 1."""
    if gt_f64(abs_f64(x), 1.0):
        return math.nan
    return math.asin(x)


def acos_f64(x: float) -> float:
    """The angle in radians whose cosine is x; NaN outside of -1 to 1."""
    if gt_f64(abs_f64(x), 1.0):
        return math.nan
    return math.acos(x)


def atan_f64(x: float) -> float:
    """The angle in radians whose tangent is x."""
    return math.atan(x)


def atan2_f64(y: float, x: float) -> float:
    """The angle in radians of the point (x, y)."""
    return math.atan2(y, x)


def sinh_f64(x: float) -> float:
    """The hyperbolic sine; infinite beyond doubles."""
    if gt_f64(abs_f64(x), 710.4758600739439) and not f64_is_nan(x):  # Python raises where IEEE says infinite
        return math.copysign(math.inf, x)
    return math.sinh(x)


def cosh_f64(x: float) -> float:
    """The hyperbolic cosine; infinite beyond doubles."""
    if gt_f64(abs_f64(x), 710.4758600739439) and not f64_is_nan(x):
        return math.inf
    return math.cosh(x)


def tanh_f64(x: float) -> float:
    """The hyperbolic tangent."""
    return math.tanh(x)


def asinh_f64(x: float) -> float:
    """The number whose hyperbolic sine is x."""
    return math.asinh(x)


def acosh_f64(x: float) -> float:
    """The number whose hyperbolic cosine is x; NaN below 1."""
    if lt_f64(x, 1.0):
        return math.nan
    return math.acosh(x)


def atanh_f64(x: float) -> float:
    """The number whose hyperbolic tangent is x; infinite for -1 and 1, NaN beyond."""
    if ge_f64(abs_f64(x), 1.0):
        return math.copysign(math.inf, x) if eq_f64(abs_f64(x), 1.0) else math.nan
    return math.atanh(x)


def _is_pole(x: float) -> bool:
    """Whether x is 0, -1, -2, ..., where gamma is infinite."""
    return le_f64(x, 0.0) and eq_f64(floor_f64(x), x)


def gamma_f64(x: float) -> float:
    """The gamma function; infinite beyond doubles, NaN for whole numbers below 1."""
    if _is_pole(x):
        return math.nan
    if gt_f64(x, 171.62437695630272):
        return x if f64_is_nan(x) else math.inf
    if lt_f64(abs_f64(x), 5.56e-309):
        return math.copysign(math.inf, x)
    return math.gamma(x)


def lgamma_f64(x: float) -> float:
    """The logarithm of the magnitude of gamma; infinite where that is 0 or infinite."""
    if _is_pole(x) or (gt_f64(x, 2.55e305) and not f64_is_nan(x)):
        return math.inf
    return math.lgamma(x)
