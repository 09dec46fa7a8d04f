"""Integers of 128 bits: Python's own, of which few operations need more than those of 64 bits."""

from __future__ import annotations

import operator

from gquery.kernels.primitives.python.checked import checked, checked_unary, fail
from gquery.kernels.primitives.python.integers import (
    abs_i64,
    add_i64,
    div_i64,
    div_round_i64,
    eq_i64,
    ge_i64,
    gt_i64,
    hash_i64,
    le_i64,
    lt_i64,
    max_i64,
    min_i64,
    mod_i64,
    mul_i64,
    ne_i64,
    neg_i64,
    sub_i64,
)
from gquery.kernels.primitives.python.values import MASK, TOP, Pointer, signed

_LIMIT = 1 << 127
_MASK_128 = (1 << 128) - 1
_WORD = 2.0**64
add_i128, sub_i128, mul_i128, mul_i64_i128 = add_i64, sub_i64, mul_i64, mul_i64
neg_i128, abs_i128, min_i128, max_i128 = neg_i64, abs_i64, min_i64, max_i64
eq_i128, ne_i128, lt_i128, le_i128, gt_i128, ge_i128 = eq_i64, ne_i64, lt_i64, le_i64, gt_i64, ge_i64
div_i128, mod_i128, div_round_i128 = div_i64, mod_i64, div_round_i64
i128_from_i64 = i64_from_i128 = int
add_i128_checked = checked(operator.add, _LIMIT)
sub_i128_checked = checked(operator.sub, _LIMIT)
mul_i128_checked = checked(operator.mul, _LIMIT)
neg_i128_checked = checked_unary(operator.neg, _LIMIT)
abs_i128_checked = checked_unary(abs, _LIMIT)


def range_i128(v: int, low_high: int, low_low: int, high_high: int, high_low: int, status: Pointer, site: int) -> int:
    """``v``; where it is not within bounds that come as words, sets the error ``site`` and gives the lower
    one."""
    low = make_i128(low_high, low_low)
    if low <= v <= make_i128(high_high, high_low):
        return v
    fail(status, site)
    return low


def low_i128(v: int) -> int:
    """The low 64 bits, as a signed integer."""
    return signed(v)


def sum_word_i128(v: int, k: int) -> int:
    """Word ``k`` of 32 bits of a 128-bit integer: 0 to 2 are unsigned, 3 carries the sign."""
    return v >> 96 if k == 3 else (v >> (32 * k)) & 0xFFFFFFFF


def high_i128(v: int) -> int:
    """The high 64 bits, with the sign."""
    return v >> 64


def make_i128(high: int, low: int) -> int:
    """The 128-bit integer of two words; the low one's bits are taken as unsigned."""
    return (high << 64) | (low & MASK)


def fits_i64_i128(v: int) -> bool:
    """Whether a 128-bit integer fits 64 bits."""
    return -TOP <= v < TOP


def f64_from_i128(v: int) -> float:
    """The double of each word, added, as DuckDB does: not always the nearest one. From -1 to -(2**64) it counts from -1."""
    high = v >> 64
    if high == -1:
        return -float(-1 - v) - 1.0
    return float(v & MASK) + float(high) * _WORD


def mul_u64_i128(x: int, y: int) -> int:
    """The product of two unsigned 64-bit numbers."""
    return (x & MASK) * (y & MASK)


def lt_u128(x: int, y: int) -> bool:
    """x < y as unsigned 128-bit numbers."""
    return (x & _MASK_128) < (y & _MASK_128)


def shl_i128(x: int, n: int) -> int:
    """x << n, wrapped to 128 bits."""
    return ((x << n) + _LIMIT & _MASK_128) - _LIMIT


def shr_u128(x: int, n: int) -> int:
    """x >> n of the bits as an unsigned number; zeros come in."""
    return (x & _MASK_128) >> n if n else x


def i128_from_f64(x: float) -> int:
    """The integer nearest to a double, halves to even. It fits 128 bits."""
    return round(x)


def load_i128(pointer: Pointer, i: int) -> int:
    """Element ``i`` of an array of 128-bit integers, two int64 words each, the low one first."""
    high, low = int(pointer[2 * i + 1]), int(pointer[2 * i])
    return high << 64 | low & MASK


def store_i128(pointer: Pointer, i: int, v: int) -> None:
    """Sets element ``i`` of an array of 128-bit integers, two int64 words each, the low one first."""
    pointer[2 * i], pointer[2 * i + 1] = signed(v), v >> 64


def hash_i128(x: int) -> int:
    """A hash of 64 bits; an integer that fits 64 bits hashes as it does there."""
    low = low_i128(x)
    beyond = high_i128(x) ^ (low >> 63)
    return hash_i64(low ^ signed(beyond * 0x5851F42D4C957F2D))
