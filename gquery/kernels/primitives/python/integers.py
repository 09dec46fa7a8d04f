"""Integers of 64 bits and their hashes.

Proved arithmetic does not wrap here, as its result is proved to fit; hashes and bit patterns are cut to 64 bits, signed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from gquery.kernels.primitives.python.values import MASK, TOP, Binary, Comparison, signed

i64 = u64 = row_index = from_bool = int
truth = bool
truncate_f64 = int


def next_index(i: int) -> int:
    """The index behind ``i``."""
    return i + 1


add_i64: Binary = operator.add
sub_i64: Binary = operator.sub
mul_i64: Binary = operator.mul
neg_i64: Callable[[int], int] = operator.neg
abs_i64: Callable[[int], int] = abs
min_i64: Binary = min
max_i64: Binary = max
eq_i64: Comparison = operator.eq
ne_i64: Comparison = operator.ne
lt_i64: Comparison = operator.lt
le_i64: Comparison = operator.le
gt_i64: Comparison = operator.gt
ge_i64: Comparison = operator.ge
and_i64: Binary = operator.and_
or_i64: Binary = operator.or_
xor_i64: Binary = operator.xor


def shl_i64(x: int, n: int) -> int:
    """x << n for the last six bits of n, wrapped to 64 bits."""
    return signed(x << (n & 63))


def shr_i64(x: int, n: int) -> int:
    """x >> n for the last six bits of n; the sign is kept."""
    return x >> (n & 63)


def shr_u64(x: int, n: int) -> int:
    """x >> n of the bits as an unsigned number; zeros come in."""
    return signed((x & MASK) >> (n & 63))


def eq_u32(x: int, y: int) -> bool:
    """Whether the last 32 bits are equal."""
    return (x ^ y) & 0xFFFFFFFF == 0


def lt_u64(x: int, y: int) -> bool:
    """x < y as unsigned numbers."""
    return (x & MASK) < (y & MASK)


def div_i64(a: int, b: int) -> int:
    """a / b towards zero. b is not 0."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def mod_i64(a: int, b: int) -> int:
    """The remainder of a / b, with the sign of a. b is not 0."""
    return a % abs(b) if a >= 0 else -(-a % abs(b))


def div_round_i64(a: int, b: int) -> int:
    """a / b for b > 0, halves away from zero."""
    return (2 * a + b) // (2 * b) if a >= 0 else -((b - 2 * a) // (2 * b))


def quotient_i64(a: int, b: int) -> int:
    """a / b towards zero, wrapped to 64 bits. b is not 0."""
    return signed(div_i64(a, b))


remainder_i64 = mod_i64


def div_u64(x: int, y: int) -> int:
    """x / y as unsigned numbers. y is not 0."""
    return signed((x & MASK) // (y & MASK))


def mod_u64(x: int, y: int) -> int:
    """The remainder of x / y as unsigned numbers. y is not 0."""
    return signed((x & MASK) % (y & MASK))


def sum_word_i64(v: int, k: int) -> int:
    """Word ``k`` of 32 bits of an integer: 0 is unsigned, 1 carries the sign."""
    return v >> 32 if k else v & 0xFFFFFFFF


_WORD = 1 << 64  # hashes are the same numbers as those of `targets.intrinsics`


def _mix(x: int) -> int:
    x &= MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    x ^= x >> 31
    return x if x < TOP else x - _WORD


def hash_i64(x: int) -> int:
    """A hash of 64 bits, the same on every target."""
    return _mix(x + 0x9E3779B97F4A7C15)


def hash_combine(h: int, x: int) -> int:
    """A hash of a hash and one more."""
    return _mix(h * 0xBF58476D1CE4E5B9 + x)


def hash_words(h: int, words: Sequence[int]) -> int:
    """`hash_combine` of ``h`` with one word after another, which have 64 bits each, signed or not."""
    for x in words:
        h = (h * 0xBF58476D1CE4E5B9 + x) & MASK
        h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & MASK
        h ^= h >> 31
    return h if h < TOP else h - _WORD
