"""Whole arrays of numbers that no element type has: 128-bit integers as pairs of words, and doubles as integers of their order.

Functions take NumPy or CuPy arrays and give arrays of the same kind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery.device.array import Array
from gquery.kernels.builtin.define import builtin_kernel, launch, namespace
from gquery.kernels.builtin.elements import converted
from gquery.kernels.builtin.scans import is_any

# ---- doubles as integers ------------------------------------------------------------------------------------------


def f64_order(values: Array) -> Array:
    """Doubles as int64 of the same order: -0.0 with 0.0, NaN last."""
    xp = namespace(values)
    bits = (values + 0.0).view(np.int64)
    ordered = bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)
    words: Array = xp.where(xp.isnan(values), np.int64(0x7FF8000000000000), ordered)
    return words


def f64_unorder(order: Array) -> Array:
    """The doubles of an `f64_order`."""
    words: Array = order ^ ((order >> 63) & 0x7FFFFFFFFFFFFFFF)
    return words.view(np.float64)


WIDENED = builtin_kernel(
    "c0:*i64 made:*i64",
    "v0 = i64(c0[i])",
    "store_i64(made, shl_i64(i64(i), 1), v0)",
    "store_i64(made, add_i64(shl_i64(i64(i), 1), 1), shr_i64(v0, 63))",
)


# ---- 128-bit integers: (n, 2) arrays of int64, low word first ----------------------------------------------------


def i128_from_i64(values: Array) -> Array:
    """Integers as 128-bit ones: int64 of shape (n, 2), the low word first, in memory of their own."""
    xp = namespace(values)
    values = converted(values, np.int64)
    if xp is np:
        return np.stack((values, values >> 63), axis=1)
    wide: Array = xp.empty((values.size, 2), np.int64)
    launch(WIDENED, values.size, wide, values, wide)
    return wide


def multiword_to_i128(sum_words: Sequence[Array], bits: int = 32) -> Array:
    """Multiword sums, in words of 32 or 16 bits (int64, low first, carries not yet passed on) as 128-bit integers.

    A sum beyond 128 bits becomes the largest or the least one, which no DECIMAL holds.
    """
    xp = namespace(sum_words[0])
    carry = xp.zeros_like(sum_words[0])
    low, high = carry.copy(), carry.copy()
    mask, top = (1 << bits) - 1, 1 << (bits - 1)
    for k in range(128 // bits):
        total = carry + sum_words[k] if k < len(sum_words) else carry
        carry = total >> bits
        shift = k * bits % 64
        if k * bits < 64:
            low |= (total & mask) << shift
        else:
            high |= (total & mask) << shift
    over = total != ((total & mask) ^ top) - top  # the top word has more bits than its own
    high = xp.where(over, (total >> 63) ^ 0x7FFFFFFFFFFFFFFF, high)
    low = xp.where(over, ~(total >> 63), low)
    wide: Array = xp.stack((low, high), axis=1)
    return wide


def f64_from_i128(wide: Array) -> Array:
    """The doubles nearest to 128-bit integers, up to one unit in the last place."""
    xp = namespace(wide)
    low, high = wide[:, 0], wide[:, 1]
    negative = high < 0
    high = xp.where(negative, ~high + (low == 0), high)
    low = xp.where(negative, -low, low)
    magnitude = high.view(np.uint64).astype(np.float64) * 2.0**64 + low.view(np.uint64).astype(np.float64)
    values: Array = xp.where(negative, -magnitude, magnitude)
    return values


def i128_from_f64(values: Array) -> Array:
    """Whole doubles as 128-bit integers, which have to hold them.

    The magnitude is cut in two words, which is exact. Of a negative double it is not: -12 + 2**64 is no double.
    """
    xp = namespace(values)
    magnitude = xp.abs(values)
    upper = xp.floor(magnitude / 2.0**64)
    low = (magnitude - upper * 2.0**64).astype(np.uint64).view(np.int64)
    high = upper.astype(np.int64)
    negative = values < 0
    high = xp.where(negative, ~high + (low == 0), high)
    wide: Array = xp.stack((xp.where(negative, -low, low), high), axis=1)
    return wide


def i128_within(wide: Array, low: int, high: int) -> bool:
    """Whether every 128-bit integer lies in low..high: for what is only checked (see `scans.is_any`)."""
    return not is_any(_less(wide, low) | _greater(wide, high))


def _words(value: int) -> tuple[np.int64, np.uint64]:
    return np.int64(value >> 64), np.uint64(value & (2**64 - 1))


def _less(wide: Array, value: int) -> Array:
    high, low = _words(value)
    unsigned: Array = namespace(wide).ascontiguousarray(wide[:, 0]).view(np.uint64)
    less: Array = (wide[:, 1] < high) | ((wide[:, 1] == high) & (unsigned < low))
    return less


def _greater(wide: Array, value: int) -> Array:
    high, low = _words(value)
    unsigned: Array = namespace(wide).ascontiguousarray(wide[:, 0]).view(np.uint64)
    greater: Array = (wide[:, 1] > high) | ((wide[:, 1] == high) & (unsigned > low))
    return greater
