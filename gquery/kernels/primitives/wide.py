"""128-bit primitives with control flow, for the targets that hold an i128 as two words (Python has its own integers).

Division is written out: LLVM would call a runtime function that a just-in-time compiled module does not have.
"""

from __future__ import annotations

from gquery.kernels.primitives.checked import fail
from gquery.kernels.primitives.floats import round_even_f64
from gquery.kernels.primitives.python.floats import (
    abs_f64,
    add_f64,
    bits_f64,
    f64,
    f64_from_u64,
    lt_f64,
    mul_f64,
    neg_f64,
    sub_f64,
)
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    div_u64,
    eq_i64,
    ge_i64,
    hash_i64,
    i64,
    lt_i64,
    mod_u64,
    mul_i64,
    ne_i64,
    or_i64,
    shl_i64,
    shr_i64,
    shr_u64,
    sub_i64,
    truncate_f64,
    xor_i64,
)
from gquery.kernels.primitives.python.values import Pointer
from gquery.kernels.primitives.python.wide import (
    abs_i128,
    add_i128,
    eq_i128,
    fits_i64_i128,
    ge_i128,
    high_i128,
    i128_from_i64,
    low_i128,
    lt_i128,
    lt_u128,
    make_i128,
    mul_i128,
    mul_u64_i128,
    neg_i128,
    shl_i128,
    shr_u128,
    sub_i128,
)


def add_i128_checked(a: int, b: int, status: Pointer, site: int) -> int:
    """a + b; sets the error ``site`` where that does not fit 128 bits."""
    result = add_i128(a, b)
    sign = high_i128(result)
    if lt_i64(and_i64(xor_i64(high_i128(a), sign), xor_i64(high_i128(b), sign)), 0):
        fail(status, site)
        return i128_from_i64(0)
    return result


def sub_i128_checked(a: int, b: int, status: Pointer, site: int) -> int:
    """a - b; sets the error ``site`` where that does not fit 128 bits."""
    result = sub_i128(a, b)
    sign = high_i128(a)
    if lt_i64(and_i64(xor_i64(sign, high_i128(b)), xor_i64(sign, high_i128(result))), 0):
        fail(status, site)
        return i128_from_i64(0)
    return result


def neg_i128_checked(a: int, status: Pointer, site: int) -> int:
    """-a; sets the error ``site`` for the least integer."""
    return sub_i128_checked(i128_from_i64(0), a, status, site)


def abs_i128_checked(a: int, status: Pointer, site: int) -> int:
    """The magnitude of a; sets the error ``site`` for the least integer."""
    if lt_i64(high_i128(a), 0):
        return neg_i128_checked(a, status, site)
    return a


def mul_i128_checked(a: int, b: int, status: Pointer, site: int) -> int:
    """a * b; sets the error ``site`` where that does not fit 128 bits."""
    result = mul_i128(a, b)
    if fits_i64_i128(a) and fits_i64_i128(b):
        return result
    left, right = abs_i128(a), abs_i128(b)
    if ne_i64(high_i128(left), 0) and ne_i64(high_i128(right), 0):
        fail(status, site)
        return i128_from_i64(0)
    cross = add_i128(
        mul_u64_i128(high_i128(left), low_i128(right)), mul_u64_i128(low_i128(left), high_i128(right))
    )  # one of the two is 0
    lower = mul_u64_i128(low_i128(left), low_i128(right))
    magnitude = add_i128(lower, shl_i128(cross, 64))
    negative = lt_i64(xor_i64(high_i128(a), high_i128(b)), 0)
    if ne_i64(high_i128(cross), 0) or lt_u128(magnitude, lower) or lt_i64(high_i128(magnitude), 0):
        # -2^127 has a magnitude that is one more than the largest
        if not (negative and eq_i64(high_i128(cross), 0) and eq_i128(magnitude, shl_i128(i128_from_i64(1), 127))):
            fail(status, site)
            return i128_from_i64(0)
    return result


def range_i128(v: int, low_high: int, low_low: int, high_high: int, high_low: int, status: Pointer, site: int) -> int:
    """``v``, which has to lie between two 128-bit numbers that come as words; the lower one where it does not."""
    low = make_i128(low_high, low_low)
    if lt_i128(v, low) or lt_i128(make_i128(high_high, high_low), v):
        fail(status, site)
        return low
    return v


def _divide_u128(n: int, d: int) -> int:
    """The quotient of magnitudes (up to 2^127)."""
    if eq_i64(high_i128(n), 0) and eq_i64(high_i128(d), 0):
        return make_i128(0, div_u64(low_i128(n), low_i128(d)))
    if eq_i64(high_i128(d), 0) and eq_i64(shr_u64(low_i128(d), 32), 0):
        return _divide_by_word(n, low_i128(d))
    quotient, rest = i128_from_i64(0), i128_from_i64(0)
    bit = i64(127)
    while ge_i64(bit, 0):
        rest = add_i128(shl_i128(rest, 1), i128_from_i64(and_i64(low_i128(shr_u128(n, bit)), 1)))
        quotient = shl_i128(quotient, 1)
        if not lt_u128(rest, d):
            rest = sub_i128(rest, d)
            quotient = add_i128(quotient, i128_from_i64(1))
        bit = sub_i64(bit, 1)
    return quotient


def _divide_by_word(n: int, d: int) -> int:
    """Long division by a number of 32 bits, a word of 32 bits at a time."""
    mask = sub_i64(shl_i64(1, 32), 1)
    high, low = high_i128(n), low_i128(n)
    q3 = div_u64(high, d)
    part = or_i64(shl_i64(mod_u64(high, d), 32), shr_u64(low, 32))
    q1 = div_u64(part, d)
    part = or_i64(shl_i64(mod_u64(part, d), 32), and_i64(low, mask))
    return make_i128(add_i64(q3, shr_u64(q1, 32)), or_i64(shl_i64(q1, 32), div_u64(part, d)))


def div_i128(a: int, b: int) -> int:
    """Division that truncates; ``b`` is not 0."""
    quotient = _divide_u128(abs_i128(a), abs_i128(b))
    if lt_i64(xor_i64(high_i128(a), high_i128(b)), 0):
        return neg_i128(quotient)
    return quotient


def mod_i128(a: int, b: int) -> int:
    """The remainder with the dividend's sign."""
    return sub_i128(a, mul_i128(div_i128(a, b), b))


def div_round_i128(a: int, b: int) -> int:
    """a / b for b > 0, halves away from zero."""
    magnitude = abs_i128(a)
    quotient = _divide_u128(magnitude, b)
    rest = sub_i128(magnitude, mul_i128(quotient, b))
    if ge_i128(rest, sub_i128(b, rest)):
        quotient = add_i128(quotient, i128_from_i64(1))
    if lt_i64(high_i128(a), 0):
        return neg_i128(quotient)
    return quotient


def hash_i128(x: int) -> int:
    """The hash of the same integer in 64 bits where it fits: a join's sides may hold a key in different widths."""
    low = low_i128(x)
    beyond = xor_i64(high_i128(x), shr_i64(low, 63))
    return hash_i64(xor_i64(low, mul_i64(beyond, 0x5851F42D4C957F2D)))


def f64_from_i128(v: int) -> float:
    """The double of each word, added, as DuckDB does: not always the nearest one. From -1 to -(2**64) it counts from -1."""
    high = high_i128(v)
    if eq_i64(high, -1):
        return sub_f64(neg_f64(f64_from_u64(sub_i64(-1, low_i128(v)))), 1.0)
    return add_f64(f64_from_u64(low_i128(v)), mul_f64(f64(high), 18446744073709551616.0))


def i128_from_f64(x: float) -> int:
    """The nearest integer, halves to even; the caller knows that it fits."""
    rounded = round_even_f64(x)
    if lt_f64(abs_f64(rounded), 9.0e18):
        return i128_from_i64(truncate_f64(rounded))
    bits = bits_f64(rounded)
    exponent = sub_i64(and_i64(shr_i64(bits, 52), 2047), 1075)
    mantissa = or_i64(and_i64(bits, sub_i64(shl_i64(1, 52), 1)), shl_i64(1, 52))
    magnitude = shl_i128(i128_from_i64(mantissa), exponent)
    if lt_i64(bits, 0):
        return neg_i128(magnitude)
    return magnitude
