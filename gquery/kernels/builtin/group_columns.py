"""Columns of groups on a GPU: their keys, taken apart or out of a hash table, and keys that differ.

Functions take arrays of a GPU, and those of the host for tests, and give arrays of the same kind.
"""

from __future__ import annotations

import numpy as np

from gquery.device.array import Array
from gquery.kernels.builtin import order, scans
from gquery.kernels.builtin.define import builtin_kernel, fill, launch, namespace
from gquery.kernels.builtin.elements import converted, put, row_numbers
from gquery.kernels.builtin.gathers import gather
from gquery.kernels.builtin.prefix_sums import group_numbers

_PLACE = ("place = floor_div_i64(i64(keys[i]), stride)", "if ne_i64(width, 0):", "    place = floor_mod_i64(place, width)")
KEY_VALUES = builtin_kernel(
    "keys:*i64 stride:i64 width:i64 base:i64 made:*i64",
    *_PLACE,
    "store_i64(made, i64(i), add_i64(place, base))",
)
NULLABLE_KEY_VALUES = builtin_kernel(
    "keys:*i64 stride:i64 width:i64 base:i64 null:i64 made:*i64 valid:*u8",
    *_PLACE,
    "value = i64(0)",
    "if ne_i64(place, null):",
    "    value = add_i64(place, base)",
    "store_i64(made, i64(i), value)",
    "store_bool(valid, i64(i), ne_i64(place, null))",
)
SLOT_WORDS = builtin_kernel(  # the key of the slot ``zero`` is 0, whatever stands there
    "slots:*i64 at:*u32 stride:i64 word:i64 zero:i64 made:*i64",
    "slot = i64(at[i])",
    "value = i64(0)",
    "if ne_i64(slot, zero):",
    "    value = i64(slots[row_index(add_i64(mul_i64(slot, stride), word))])",
    "store_i64(made, i64(i), value)",
)
MARKED = builtin_kernel("keys:*i64 flags:*u8", "store_u8(flags, i64(keys[i]), 1)")
MARKED_ROWS = builtin_kernel("rows:*u32 flags:*u8", "store_u8(flags, i64(rows[i]), 1)")


def key_values(keys: Array, stride: int, width: int | None, base: int) -> Array:
    """One of the numbers (int64) that keys (int64) hold in mixed radix: ``base`` more than ``keys // stride % width``. None is
    the ``width`` of the last number."""
    made: Array = namespace(keys).empty(keys.size, np.int64)
    launch(KEY_VALUES, keys.size, keys, keys, stride, width or 0, base, made)
    return made


def nullable_key_values(keys: Array, stride: int, width: int | None, base: int, null: int) -> tuple[Array, Array]:
    """The same, with their validity (uint8): where ``null`` stands in the place, the value is NULL, under which is 0."""
    made, valid = (namespace(keys).empty(keys.size, t) for t in (np.int64, np.uint8))
    launch(NULLABLE_KEY_VALUES, keys.size, keys, keys, stride, width or 0, base, null, made, valid)
    return made, valid


def slot_columns(slots: Array, stride: int, words: int, capacity: int) -> tuple[Array, list[Array]]:
    """Of the slots of a hash table, of ``stride`` words (int64) each, those that hold a key, their first word: the keys, and for
    each of the ``words`` behind it an array. Slot ``capacity`` is that of the key 0, where another number stands for it."""
    at = scans.rows_of_bits(scans.bits_of_every(slots, stride))
    xp, columns = namespace(slots), []
    for word in range(words + 1):
        made: Array = xp.empty(at.size, np.int64)
        launch(SLOT_WORDS, at.size, slots, slots, at, stride, word, -1 if word else capacity, made)
        columns.append(made)
    return columns[0], columns[1:]


def marked(rows: Array, size: int) -> Array:
    """Flags (uint8) of so many slots, or rows, that are among some (int64 or uint32)."""
    flags: Array = namespace(rows).zeros(size, np.uint8)
    mark(flags, rows)
    return flags


def mark(flags: Array, rows: Array) -> None:
    """Set the flags (uint8) of rows (int64 or uint32)."""
    launch(MARKED_ROWS if rows.dtype == np.uint32 else MARKED, rows.size, flags, rows, flags)


def distinct_slots(keys: Array, size: int) -> tuple[Array, Array]:
    """The distinct ones among keys (int64) from 0 to less than ``size``, ascending, and the number of each key among them: both
    int64. Every key that there may be has a place."""
    flags = marked(keys, size)
    numbers = group_numbers(flags, np.int64)
    return converted(scans.compact(flags), np.int64), gather(numbers, keys)


def distinct_sorted(keys: Array) -> tuple[Array, Array]:
    """The same of any keys (int64), which are sorted."""
    rows, starts = order.sort_starts([order.Integers(keys)])
    numbers: Array = namespace(keys).empty(keys.size, np.int64)
    put(numbers, rows, group_numbers(starts, np.int64))
    return gather(keys, gather(rows, scans.compact(starts))), numbers


def numbers_of_slots(used: Array, size: int) -> Array:
    """Of each of ``size`` slots its place among those ``used`` (uint32), which ascend; of others any number (uint32)."""
    xp = namespace(used)
    made: Array = xp.empty(size, np.uint32)
    put(made, used, row_numbers(xp, int(used.size)))
    return made


def full_of(like: Array, size: int, value: float, dtype: object) -> Array:
    """So many numbers of 64 bits, all the same, where an array lies."""
    made: Array = namespace(like).empty(size, dtype)
    fill(made.view(np.int64), int(np.array(value, made.dtype).view(np.int64)))
    return made
