"""Integer primitives with control flow: overflow checks, division, conversions between doubles and integers.

Each sets its bit in the status block where a value does not fit, so that the loop runs on and the host raises once, with the
result. What it returns then may be used as an index before that, so it always lies within the bounds that the planner knows
of the result: `range_i64` returns ``low``, the others 0, which lies within every type's.
"""

from __future__ import annotations

from gquery.kernels.primitives.python.atomics import atomic_or_u32
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    ge_i64,
    i64,
    lt_i64,
    neg_i64,
    quotient_i64,
    remainder_i64,
    shl_i64,
    shr_i64,
    sub_i64,
    xor_i64,
)
from gquery.kernels.primitives.python.values import Pointer
from gquery.kernels.primitives.python.wide import fits_i64_i128, i64_from_i128, mul_i64_i128


def fail(status: Pointer, site: int) -> None:
    """Set the bit of ``site`` in the status block."""
    atomic_or_u32(status, shr_i64(site, 5), shl_i64(1, and_i64(site, 31)))


def add_i64_checked(a: int, b: int, status: Pointer, site: int) -> int:
    """a + b; sets the error ``site`` where that does not fit 64 bits, and gives 0."""
    result = add_i64(a, b)
    if lt_i64(and_i64(xor_i64(a, result), xor_i64(b, result)), 0):
        fail(status, site)
        return i64(0)
    return result


def sub_i64_checked(a: int, b: int, status: Pointer, site: int) -> int:
    """a - b; sets the error ``site`` where that does not fit 64 bits, and gives 0."""
    result = sub_i64(a, b)
    if lt_i64(and_i64(xor_i64(a, b), xor_i64(a, result)), 0):
        fail(status, site)
        return i64(0)
    return result


def mul_i64_checked(a: int, b: int, status: Pointer, site: int) -> int:
    """a * b; sets the error ``site`` where that does not fit 64 bits, and gives 0."""
    product = mul_i64_i128(a, b)
    if fits_i64_i128(product):
        return i64_from_i128(product)
    fail(status, site)
    return i64(0)


def neg_i64_checked(a: int, status: Pointer, site: int) -> int:
    """-a; sets the error ``site`` for the least integer."""
    return sub_i64_checked(i64(0), a, status, site)


def abs_i64_checked(a: int, status: Pointer, site: int) -> int:
    """The magnitude of a; sets the error ``site`` for the least integer."""
    if lt_i64(a, 0):
        return sub_i64_checked(i64(0), a, status, site)
    return i64(a)


def range_i64(v: int, low: int, high: int, status: Pointer, site: int) -> int:
    """``v``, which has to lie in low..high; ``low`` where it does not."""
    if lt_i64(v, low) or lt_i64(high, v):
        fail(status, site)
        return i64(low)
    return i64(v)


def div_i64(a: int, b: int) -> int:
    """Division that truncates, as SQL's does. ``b`` is not 0; -2^63 / -1 wraps (the machine would trap)."""
    if eq_i64(b, -1):
        return neg_i64(a)
    return quotient_i64(a, b)


def mod_i64(a: int, b: int) -> int:
    """The remainder with the dividend's sign."""
    if eq_i64(b, -1):
        return i64(0)
    return remainder_i64(a, b)


def div_round_i64(a: int, b: int) -> int:
    """a / b for b > 0, halves away from zero: a decimal that loses digits."""
    quotient = quotient_i64(a, b)
    rest = remainder_i64(a, b)
    if lt_i64(a, 0):
        if ge_i64(neg_i64(rest), sub_i64(b, neg_i64(rest))):
            return sub_i64(quotient, 1)
        return quotient
    if ge_i64(rest, sub_i64(b, rest)):
        return add_i64(quotient, 1)
    return quotient


def floor_div_i64(a: int, b: int) -> int:
    """a / b for b > 0, rounded down: days of a timestamp before 1970."""
    quotient = quotient_i64(a, b)
    if lt_i64(remainder_i64(a, b), 0):
        return sub_i64(quotient, 1)
    return quotient


def floor_mod_i64(a: int, b: int) -> int:
    """The remainder of `floor_div_i64`: never negative."""
    rest = remainder_i64(a, b)
    if lt_i64(rest, 0):
        return add_i64(rest, b)
    return rest
