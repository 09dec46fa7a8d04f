"""Rows by the slot that they belong to: ranges of rows for join tables, the rows of groups, accumulation into slots.

Functions take NumPy or CuPy arrays and give arrays of the same kind. Row numbers are uint32.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.expression.facts import NOT_IN, ROW_ID_BITS
from gquery.kernels.builtin.define import (
    BuiltinKernel,
    builtin_kernel,
    element_word,
    fill,
    launch,
    namespace,
    plain_word,
)
from gquery.kernels.builtin.elements import contiguous, converted, put, row_numbers
from gquery.kernels.builtin.gathers import gather
from gquery.kernels.builtin.order_bits import places_of
from gquery.kernels.builtin.prefix_sums import running_sums
from gquery.kernels.builtin.scans import bits_of, check_rows, compact, count_others, counted_rows_of_bits, pad
from gquery.kernels.builtin.sort_room import room_to_sort, sorted_words
from gquery.kernels.readback import Count, read_count, read_scalar
from gquery.kernels.targets.morsels import run_parts

_COUNT = builtin_kernel("slots:*u32 counts:*u32", f"if ne_i64(i64(slots[i]), {NOT_IN}):",
                 "    accumulate_add_u32(counts, add_i64(i64(slots[i]), 1), 1)")  # fmt: skip
_SCATTER = builtin_kernel(
    "slots:*u32 places:*u32 rows:*u32",
    f"if ne_i64(i64(slots[i]), {NOT_IN}):",
    "    place = row_index(places[row_index(slots[i])])",
    "    store_u32(rows, place, i64(i))",
    "    accumulate_add_u32(places, i64(slots[i]), 1)",
)
_PAIRS = builtin_kernel("slots:*u32 pairs:*i64",
                     "store_i64(pairs, i64(i), or_i64(shl_i64(i64(slots[i]), 32), i64(i)))")  # fmt: skip
_RUNS = builtin_kernel(  # of equal slots: where one starts is taken from its count, where it ends is added
    "slots:*u32 stride:i64 first:i64 rows:i64 counts:*u32",
    "here = add_i64(mul_i64(i64(i), stride), first)",
    "slot = i64(slots[row_index(here)])",
    f"if ne_i64(slot, {NOT_IN}):",
    "    if eq_i64(i64(i), 0) or ne_i64(slot, i64(slots[row_index(sub_i64(here, stride))])):",
    "        accumulate_add_u32(counts, add_i64(slot, 1), sub_i64(0, i64(i)))",
    "    if eq_i64(add_i64(i64(i), 1), rows) or ne_i64(slot, i64(slots[row_index(add_i64(here, stride))])):",
    "        accumulate_add_u32(counts, add_i64(slot, 1), add_i64(i64(i), 1))",
)


@cache
def _starts(element: str) -> BuiltinKernel:
    """Each row says where the slots begin that come behind the last row's, up to its own."""
    return builtin_kernel(
        f"keys:*{element} base:i64 starts:*u32",
        "key = i64(keys[i])",
        "before = sub_i64(base, 1)",
        "if gt_i64(i64(i), 0):",
        "    before = i64(keys[row_index(sub_i64(i64(i), 1))])",
        "if ne_i64(key, before):",
        "    slot = sub_i64(before, base)",
        "    last = sub_i64(key, base)",
        "    while lt_i64(slot, last):",
        "        slot = add_i64(slot, 1)",
        "        store_u32(starts, slot, i64(i))",
    )


def _near_starts(element: str) -> BuiltinKernel:
    """The same for GPUs, for so many slots before a row's own: one thread would take long for all of a wide gap."""
    return builtin_kernel(
        f"keys:*{element} base:i64 most:i64 starts:*u32",
        "key = i64(keys[i])",
        "before = sub_i64(base, 1)",
        "if gt_i64(i64(i), 0):",
        "    before = i64(keys[row_index(sub_i64(i64(i), 1))])",
        "if ne_i64(key, before):",
        "    last = sub_i64(key, base)",
        "    slot = max_i64(sub_i64(before, base), sub_i64(last, most))",
        "    while lt_i64(slot, last):",
        "        slot = add_i64(slot, 1)",
        "        store_u32(starts, slot, i64(i))",
    )


def _far_starts(element: str) -> BuiltinKernel:
    """The others: a slot that is left looks for the first row with its key or a greater one."""
    return builtin_kernel(
        f"starts:*u32 keys:*{element} base:i64 rows:i64",
        f"if eq_i64(i64(starts[i]), {NOT_IN}):",
        "    wanted = add_i64(i64(i), base)",
        "    low = i64(0)",
        "    high = rows",
        "    while lt_i64(low, high):",
        "        middle = shr_i64(add_i64(low, high), 1)",
        "        if lt_i64(i64(keys[row_index(middle)]), wanted):",
        "            low = add_i64(middle, 1)",
        "        else:",
        "            high = middle",
        "    store_u32(starts, i64(i), low)",
    )


NEAR_STARTS = {element: _near_starts(element) for element in ("i32",)}
FAR_STARTS = {element: _far_starts(element) for element in NEAR_STARTS}
"""By the keys that GPUs have such kernels for."""


def group_rows(slots: Array, size: int, is_sorted: bool = False, workers: int = 1) -> tuple[Array, Array | None]:
    """Rows by slot: ``rows[starts[s]:starts[s + 1]]`` are those of slot s, ascending. `NOT_IN` rows are left out.

    ``is_sorted``: the slots of the rows that take part never decrease, so that the rows are in their order as they stand. Where
    all take part, too, ``rows`` is None: each place is its row. ``workers`` threads of a CPU work at it then.
    """
    xp = namespace(slots)
    check_rows(slots.size)
    if is_sorted:
        rows = None
        if _count(slots, NOT_IN, workers):
            rows = compact(slots, NOT_IN)
            slots = gather(slots, rows)
        if xp is np:
            return starts_of_sorted(slots, 0, size, workers), rows
    counts = xp.zeros(size + 1, np.uint32)
    if is_sorted:
        launch(_RUNS, slots.size, slots, slots, 1, 0, slots.size, counts)
        return running_sums(counts, np.uint32), rows
    if xp is np:  # a counting sort: one thread, so that rows stay in order
        launch(_COUNT, slots.size, slots, slots, counts)
        starts = np.cumsum(counts, dtype=np.uint32)
        rows = np.empty(int(starts[-1]), np.uint32)
        launch(_SCATTER, slots.size, slots, slots, starts[:-1].copy(), rows)
        return starts, rows
    return rows_by_sorting(slots, counts)


_ROW_PAIRS = builtin_kernel(
    "places:*u32 slots:*u32 pairs:*i64",
    "place = i64(places[i])",
    "row = sub_i64(i64(slots[row_index(place)]), 1)",
    "store_i64(pairs, i64(i), or_i64(shl_i64(row, 32), place))",
)
_HALVES = builtin_kernel(
    "c0:*u64 high:*u32 low:*u32",
    "v0 = i64(c0[i])",
    "store_u32(high, i64(i), shr_u64(v0, 32))",
    "store_u32(low, i64(i), v0)",
    hoisted=("v0",),
)


def rows_in_order(slots: Array, frame_rows: int) -> tuple[Array, Array, Count]:
    """The row numbers in a table whose slots have a number more than their row, or 0: ascending, the place of each, and how many
    there are: behind these stand zeros. They are below ``frame_rows``."""
    xp = namespace(slots)
    if xp is np:
        places = compact(slots)
        if frame_rows <= places.size * tuning.sorting.placed_rows:  # few rows have no group of their own
            placed = np.zeros(frame_rows, np.uint32)
            placed[slots[places] - np.uint32(1)] = places + np.uint32(1)
            rows = compact(placed)
            return rows, placed[rows] - np.uint32(1), Count(int(rows.size))
        pairs = slots[places].astype(np.uint64) - np.uint64(1) << np.uint64(32) | places.astype(np.uint64)
        pairs.sort()
        return (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32), Count(int(places.size))
    places, count = counted_rows_of_bits(bits_of(slots), int(slots.size))
    pairs = xp.empty(places.size, np.uint64)
    launch(_ROW_PAIRS, places.size, pairs, places, slots, pairs)
    pad(pairs, count)
    pairs = sorted_words(pairs)
    rows, places = xp.zeros(places.size, np.uint32), xp.zeros(places.size, np.uint32)
    launch(_HALVES, places.size, rows, pairs, rows, places, number=count.number)
    return rows, places, count


def _count(values: Array, wanted: int, workers: int) -> int:
    """How many values are ``wanted``."""
    if namespace(values) is not np:
        return int(values.size) - read_scalar(count_others(values, wanted)[0])
    return sum(
        run_parts(
            lambda lo, hi: int(np.count_nonzero(values[lo:hi] == wanted)),
            values.size,
            tuning.threads.morsel_rows,
            workers,
        )
    )


def starts_of_sorted(keys: Array, base: int, size: int, workers: int) -> Array:
    """Where each slot's rows start, and the last one's end. The slot of a row is its key less ``base``; ``keys`` are integers
    that never decrease, on a GPU int32."""
    if namespace(keys) is not np:
        return starts_by_search(keys, base, size)
    starts = np.empty(size + 1, np.uint32)
    starts[int(keys[-1]) - base + 1 if keys.size else 0 :] = keys.size
    launch(_starts(f"{keys.dtype.kind}{8 * keys.dtype.itemsize}"), keys.size, keys, keys, base, starts, workers=workers)
    return starts


def starts_by_search(keys: Array, base: int, size: int) -> Array:
    """`starts_of_sorted` for GPUs: where keys lie close together, each row says where those before it start; slots in gaps, and
    behind the last key, are looked for."""
    starts: Array = namespace(keys).empty(size + 1, np.uint32)
    fill(starts, NOT_IN)
    element, near = element_word(keys), tuning.join_layouts.near_slots
    launch(NEAR_STARTS[element], keys.size, keys, keys, base, near, starts)
    launch(FAR_STARTS[element], starts.size, starts, starts, keys, base, keys.size)
    return starts


_LONGEST = builtin_kernel(
    "starts:*u32 longest:*i64",
    "n = max_i64(n, sub_i64(i64(starts[next_index(i)]), i64(starts[i])))",
    prologue=("n = i64(0)",),
    epilogue=("reduce_max_i64(longest, 0, n)",),
)


def longest_range(starts: Array) -> int:
    """The most rows of a slot at most, of those whose rows begin at ``starts`` (uint32); the last one is the end of all."""
    xp, slots = namespace(starts), starts.size - 1
    if slots < 1:
        return 0
    if xp is np:
        return int((starts[1:] - starts[:-1]).max())
    longest = xp.zeros(1, np.int64)
    launch(_LONGEST, slots, starts, starts, longest)
    return read_count(longest).bound


def rows_by_sorting(slots: Array, counts: Array) -> tuple[Array, Array]:
    """`group_rows` for GPUs: sorting is contiguous work, where counting goes to memory anew for each row. (slot, row) pairs are
    sorted faster than slots with a permutation beside them. ``counts`` are zeros, one more than there are slots."""
    xp = namespace(slots)
    pairs = xp.empty(slots.size, np.uint64)
    launch(_PAIRS, slots.size, slots, slots, pairs)
    room_to_sort(pairs).sort()
    halves = pairs.view(np.uint32)
    launch(_RUNS, slots.size, slots, halves, 2, 1, slots.size, counts)
    starts = running_sums(counts, np.uint32)
    return starts, places_of(pairs[: read_count(starts[-1:], slots.size).bound], ROW_ID_BITS)


_ENTER = builtin_kernel(
    "keys:*i64 capacity:i64 table:*i64 slots:*u32",
    "store_u32(slots, i64(i), key_insert(table, capacity, i64(keys[i])))",
)


def numbered_keys(keys: Array) -> tuple[Array, Array]:
    """The different ones among keys (int64), in any order, and the number of each key among them (int64). A hash table tells
    them apart, whose slots in use are numbered."""
    xp, rows = namespace(keys), int(keys.size)
    capacity = max(2 * rows, tuning.join_layouts.least_hash_slots)
    check_rows(capacity + 1)
    table, slots = xp.zeros(capacity + 1, np.int64), xp.empty(rows, np.uint32)
    launch(_ENTER, rows, keys, keys, capacity, table, slots)
    used = compact(table)
    fill(table[capacity:], 0)  # where a 1 said that the key 0 is there
    numbers = xp.empty(capacity + 1, np.uint32)
    put(numbers, used, row_numbers(xp, int(used.size)))
    return gather(table, used), converted(gather(numbers, slots), np.int64)


def accumulate_at(total: Array, slots: Array, values: Array, op: Literal["add", "min", "max"]) -> None:
    """Accumulate each value into its slot of ``total`` (both int64, or both float64 and added)."""
    if namespace(total) is np:
        with np.errstate(invalid="ignore", over="ignore"):  # infinities of both signs are NaN
            {"add": np.add, "min": np.minimum, "max": np.maximum}[op].at(total, slots, values)
        return
    word = "f64" if total.dtype == np.float64 else "i64"  # CuPy has no such minimum of 64-bit integers
    given = slots if slots.dtype == np.int64 else converted(slots, np.int64)
    launch(ACCUMULATED[op, word], values.size, total, contiguous(given), contiguous(values), total)


ACCUMULATED = {
    (op, word): builtin_kernel(
        f"slots:*i64 values:*{word} total:*{word}", f"accumulate_{op}_{word}(total, i64(slots[i]), {word}(values[i]))"
    )
    for op, word in (("add", "i64"), ("min", "i64"), ("max", "i64"), ("add", "f64"))
}


@cache
def _combining(op: str, word: str) -> BuiltinKernel:
    taken = word if word == "f64" else "i64"
    return builtin_kernel(
        f"total:*{word} others:*{word}",
        f"store_{word}(total, i64(i), {op}_{taken}({taken}(total[i]), {taken}(others[i])))",
    )


COMBINED = {
    f"{op} {word}": _combining(op, word)
    for op, words in (("add", ("i64", "f64")), ("min", ("i64",)), ("max", ("u8", "i64")), ("or", ("u8", "u32", "i64")))
    for word in words
}
"""Those that are compiled before anybody asks for them."""
_UFUNCS = {"add": np.add, "min": np.minimum, "max": np.maximum, "or": np.bitwise_or}


def combine_into(total: Array, other: Array, op: str) -> None:
    """Combine two arrays slot by slot, into the first: integers or booleans, whose extremes are found of what int64 holds, or
    doubles that are added."""
    if namespace(total) is np:
        _UFUNCS[op](total, other, out=total)
        return
    word = plain_word(total) if op == "or" else element_word(total)
    launch(_combining(op, word), total.size, total, total, contiguous(other))
