"""Integers and decimals as doubles and FLOATs, to the last digit as DuckDB has them."""

from __future__ import annotations

from gquery.kernels.primitives.python.floats import add_f64, div_f64, f64, mul_f64, round_f32
from gquery.kernels.primitives.python.integers import (
    abs_i64,
    add_i64,
    and_i64,
    le_i64,
    lt_i64,
    ne_i64,
    or_i64,
    quotient_i64,
    remainder_i64,
    shr_u64,
    sub_i64,
)
from gquery.kernels.primitives.python.wide import (
    abs_i128,
    div_i128,
    f64_from_i128,
    i128_from_i64,
    lt_i128,
    mul_i128,
    sub_i128,
)


def f32_from_i64(v: int) -> float:
    """The nearest FLOAT to an integer. What a double does not hold is rounded once: a bit stands for those that are cut off."""
    low = and_i64(v, 2047)
    if lt_i64(9007199254740992, abs_i64(v)) and ne_i64(low, 0):
        return round_f32(f64(add_i64(sub_i64(v, low), 1024)))
    return round_f32(f64(v))


def f32_from_u64(v: int) -> float:
    """The same of the bits of an unsigned integer: half of a large one is an integer, where a bit stands for the one cut off."""
    if lt_i64(v, 0):
        return mul_f64(f32_from_i64(or_i64(shr_u64(v, 1), and_i64(v, 1))), 2.0)
    return f32_from_i64(v)


def f64_from_decimal_i64(v: int, power: int) -> float:
    """A decimal as a double: v / power where a double holds v, else its whole part and its fraction apart."""
    if le_i64(abs_i64(v), 9007199254740992):
        return div_f64(f64(v), f64(power))
    return add_f64(f64(quotient_i64(v, power)), div_f64(f64(remainder_i64(v, power)), f64(power)))


def f32_from_decimal_i64(v: int, power: int) -> float:
    """The same in the digits of a FLOAT."""
    divisor = round_f32(f64(power))
    if le_i64(abs_i64(v), 16777216):
        return round_f32(div_f64(f64(v), divisor))
    fraction = round_f32(div_f64(f32_from_i64(remainder_i64(v, power)), divisor))
    return round_f32(add_f64(f32_from_i64(quotient_i64(v, power)), fraction))


def f64_from_decimal_i128(v: int, power: int) -> float:
    """As `f64_from_decimal_i64`, of more digits."""
    divisor = f64_from_i128(power)
    if lt_i128(i128_from_i64(9007199254740992), abs_i128(v)):
        whole = div_i128(v, power)
        fraction = div_f64(f64_from_i128(sub_i128(v, mul_i128(whole, power))), divisor)
        return add_f64(f64_from_i128(whole), fraction)
    return div_f64(f64_from_i128(v), divisor)


def f32_from_decimal_i128(v: int, power: int) -> float:
    """As `f32_from_decimal_i64`, of more digits, which become doubles first."""
    divisor = round_f32(f64_from_i128(power))
    if lt_i128(i128_from_i64(16777216), abs_i128(v)):
        whole = div_i128(v, power)
        rest = round_f32(f64_from_i128(sub_i128(v, mul_i128(whole, power))))
        return round_f32(add_f64(round_f32(f64_from_i128(whole)), round_f32(div_f64(rest, divisor))))
    return round_f32(div_f64(f64_from_i128(v), divisor))
