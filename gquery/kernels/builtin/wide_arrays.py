"""Whole arrays of numbers that no element type has: 128-bit integers as pairs of words, and doubles as integers of their order.

Functions take NumPy or CuPy arrays and give arrays of the same kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from gquery.device.array import Array
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, element_word, launch, namespace
from gquery.kernels.builtin.elements import contiguous, converted
from gquery.kernels.builtin.scans import is_any

# ---- doubles as integers ------------------------------------------------------------------------------------------


ORDERED = {
    word: builtin_kernel(f"values:*{word} made:*i64", "store_i64(made, i64(i), f64_order(f64(values[i])))")
    for word in ("f32", "f64")
}
UNORDERED = builtin_kernel("order:*i64 made:*f64", "store_f64(made, i64(i), f64_unorder(i64(order[i])))")


def f64_order(values: Array) -> Array:
    """Doubles, or floats as doubles, as int64 of the same order: -0.0 with 0.0, NaN last."""
    xp = namespace(values)
    if xp is not np:
        made: Array = xp.empty(values.size, np.int64)
        launch(ORDERED[element_word(values)], values.size, made, contiguous(values), made)
        return made
    bits = (values.astype(np.float64, copy=False) + 0.0).view(np.int64)
    ordered = bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)
    words: Array = np.where(np.isnan(values), np.int64(0x7FF8000000000000), ordered)
    return words


def f64_unorder(order: Array) -> Array:
    """The doubles of an `f64_order`."""
    xp = namespace(order)
    if xp is not np:
        made: Array = xp.empty(order.size, np.float64)
        launch(UNORDERED, order.size, made, contiguous(order), made)
        return made
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


def widen(values: Array, made: Array) -> None:
    """Write integers as 128-bit ones, of two words each (int64), the low one first."""
    if namespace(made) is np:
        made[::2] = values
        made[1::2] = made[::2] >> 63  # the sign
    else:
        given = values if values.dtype == np.int64 else converted(values, np.int64)
        launch(WIDENED, given.size, made, contiguous(given), made)


UNSIGNED = builtin_kernel(
    "c0:*i64 made:*i64",
    "store_i64(made, shl_i64(i64(i), 1), i64(c0[i]))",
    "store_i64(made, add_i64(shl_i64(i64(i), 1), 1), 0)",
)


def unsigned_pairs(values: Array) -> Array:
    """Words without a sign (uint64) as integers of 128 bits: two words each (int64), the low one first."""
    xp, words = namespace(values), values.view(np.int64)
    made: Array = xp.empty(2 * values.size, np.int64)
    if xp is np:
        made[::2], made[1::2] = words, 0
    else:
        launch(UNSIGNED, words.size, made, contiguous(words), made)
    return made


def split_words(values: Array, bits: int) -> list[Array]:
    """The ``bits`` lower bits of int64, and what stands above them with the sign: int64."""
    xp = namespace(values)
    if xp is np:
        return [values & ((1 << bits) - 1), values >> bits]
    low, high = xp.empty(values.size, np.int64), xp.empty(values.size, np.int64)
    launch(SPLIT, values.size, low, values, bits, low, high)
    return [low, high]


SPLIT = builtin_kernel(
    "c0:*i64 bits:i64 low:*i64 high:*i64",
    "v0 = i64(c0[i])",
    "store_i64(low, i64(i), and_i64(v0, sub_i64(shl_i64(1, bits), 1)))",
    "store_i64(high, i64(i), shr_i64(v0, bits))",
)


@cache
def _joining(count: int, bits: int) -> BuiltinKernel:
    """`multiword_to_i128` of so many words."""
    mask, top = (1 << bits) - 1, 1 << (bits - 1)
    lines = ["carry = i64(0)", "low = i64(0)", "high = i64(0)"]
    for k in range(128 // bits):
        lines.append(f"total = add_i64(carry, i64(w{k}[i]))" if k < count else "total = carry")
        lines.append(f"carry = shr_i64(total, {bits})")
        half, shift = "low" if k * bits < 64 else "high", k * bits % 64
        lines.append(f"{half} = or_i64({half}, shl_i64(and_i64(total, {mask}), {shift}))")
    return builtin_kernel(
        " ".join([f"w{k}:*i64" for k in range(count)]) + " made:*i64",
        *lines,
        f"if ne_i64(total, sub_i64(xor_i64(and_i64(total, {mask}), {top}), {top})):",  # it has more bits than its own
        f"    high = xor_i64(shr_i64(total, 63), {2**63 - 1})",
        "    low = xor_i64(shr_i64(total, 63), -1)",
        "store_i64(made, shl_i64(i64(i), 1), low)",
        "store_i64(made, add_i64(shl_i64(i64(i), 1), 1), high)",
    )


JOINED = {words: _joining(words, 32) for words in (2, 4)}
"""Those that are compiled before anybody asks for them."""


def multiword_to_i128(sum_words: Sequence[Array], bits: int = 32) -> Array:
    """Multiword sums, in words of 32 or 16 bits (int64, low first, carries not yet passed on) as 128-bit integers.

    A sum beyond 128 bits becomes the largest or the least one, which no DECIMAL holds.
    """
    xp = namespace(sum_words[0])
    if xp is not np:
        made: Array = xp.empty((sum_words[0].size, 2), np.int64)
        launch(_joining(len(sum_words), bits), sum_words[0].size, made, *map(contiguous, sum_words), made)
        return made
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
    if xp is not np:
        made: Array = xp.empty(len(wide), np.float64)
        launch(DOUBLES, len(wide), made, wide, made.view(np.int64))
        return made
    low, high = wide[:, 0], wide[:, 1]
    negative = high < 0
    high = xp.where(negative, ~high + (low == 0), high)
    low = xp.where(negative, -low, low)
    magnitude = high.view(np.uint64).astype(np.float64) * 2.0**64 + low.view(np.uint64).astype(np.float64)
    values: Array = xp.where(negative, -magnitude, magnitude)
    return values


DECIMALS = builtin_kernel(
    "c0:*i64 scale:f64 made:*f64", "v0 = i64(c0[i])", "store_f64(made, i64(i), div_f64(f64(v0), scale))"
)
WIDE_DECIMALS = builtin_kernel(
    "wide:*i64 scale:f64 made:*f64",
    "low = f64_from_u64(i64(wide[row_index(shl_i64(i64(i), 1))]))",
    "high = f64(i64(wide[row_index(add_i64(shl_i64(i64(i), 1), 1))]))",
    "store_f64(made, i64(i), div_f64(add_f64(mul_f64(high, 18446744073709551616.0), low), scale))",
)


def f64_from_decimals(values: Array, scale: float) -> Array:
    """Integers divided by a number (float64)."""
    xp = namespace(values)
    if xp is np:
        quotients: Array = values / scale
        return quotients
    made: Array = xp.empty(values.size, np.float64)
    given = contiguous(values) if values.dtype == np.int64 else converted(values, np.int64)
    launch(DECIMALS, values.size, made, given, scale, made)
    return made


def f64_from_wide_decimals(words: Array, scale: float) -> Array:
    """Integers of 128 bits, of two words each (int64), the low one first, divided by a number (float64)."""
    xp = namespace(words)
    if xp is np:
        quotients: Array = (words[1::2] * 2.0**64 + words[::2].view(np.uint64)) / scale
        return quotients
    made: Array = xp.empty(words.size // 2, np.float64)
    launch(WIDE_DECIMALS, made.size, made, contiguous(words), scale, made)
    return made


def i128_from_f64(values: Array) -> Array:
    """Whole doubles as 128-bit integers, which have to hold them.

    The magnitude is cut in two words, which is exact. Of a negative double it is not: -12 + 2**64 is no double.
    """
    xp = namespace(values)
    if xp is not np:
        made: Array = xp.empty((values.size, 2), np.int64)
        launch(WHOLE, values.size, made, contiguous(values), made)
        return made
    magnitude = xp.abs(values)
    upper = xp.floor(magnitude / 2.0**64)
    low = (magnitude - upper * 2.0**64).astype(np.uint64).view(np.int64)
    high = upper.astype(np.int64)
    negative = values < 0
    high = xp.where(negative, ~high + (low == 0), high)
    wide: Array = xp.stack((xp.where(negative, -low, low), high), axis=1)
    return wide


WHOLE = builtin_kernel("values:*f64 made:*i64", "store_i128(made, i64(i), i128_from_f64(f64(values[i])))")
DOUBLES = builtin_kernel(
    "wide:*i64 made:*i64", "store_i64(made, i64(i), bits_f64(f64_from_i128(load_i128(wide, i64(i)))))"
)
BEYOND = builtin_kernel(
    "wide:*i64 low1:i64 low0:i64 high1:i64 high0:i64 flags:*u8",
    "value = load_i128(wide, i64(i))",
    "is_beyond = lt_i128(value, make_i128(low1, low0)) or gt_i128(value, make_i128(high1, high0))",
    "store_bool(flags, i64(i), is_beyond)",
)


def i128_within(wide: Array, low: int, high: int) -> bool:
    """Whether every 128-bit integer lies in low..high: for what is only checked (see `scans.is_any`)."""
    xp = namespace(wide)
    if xp is not np:
        flags = xp.empty(len(wide), np.uint8)
        ends = [word for value in (low, high) for word in (value >> 64, (value + 2**63) % 2**64 - 2**63)]
        launch(BEYOND, len(wide), flags, wide, *ends, flags)
        return not is_any(flags)
    return not is_any(_less(wide, low) | _greater(wide, high))


def _words(value: int) -> tuple[np.int64, np.uint64]:
    return np.int64(value >> 64), np.uint64(value & (2**64 - 1))


def _less(wide: Array, value: int) -> Array:
    high, low = _words(value)
    unsigned: Array = np.ascontiguousarray(wide[:, 0]).view(np.uint64)
    less: Array = (wide[:, 1] < high) | ((wide[:, 1] == high) & (unsigned < low))
    return less


def _greater(wide: Array, value: int) -> Array:
    high, low = _words(value)
    unsigned: Array = np.ascontiguousarray(wide[:, 0]).view(np.uint64)
    greater: Array = (wide[:, 1] > high) | ((wide[:, 1] == high) & (unsigned > low))
    return greater
