"""DISTINCT over frames: of equal values in a frame the first one counts, or the last.

Where all frames of a partition begin with it, a row counts in every frame that it is in if no row before it has its value; where
all end with it, if none behind it has. Then other rows are left out as if FILTER did it, whatever is computed. For any other
frame the row before with the same value says whether a row is the first of its frame: that is looked at for each row of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.types import Bounds
from gquery.expression.windows import WindowCall, WindowFrame
from gquery.kernels.builtin import gathers, order
from gquery.kernels.builtin.define import builtin_kernel, fill, launch
from gquery.operators.sort_keys import key_parts
from gquery.operators.window.frames import Ranges
from gquery.operators.window.positions import PositionKernel, Work, position_kernel, present_by_position
from gquery.operators.window.rank_tree import count_below, rank_tree
from gquery.runtime.records import replace

_BEFORE = builtin_kernel(
    "found:*u32 starts:*u8 before:*u32",
    "last = i64(0)",
    "if eq_i64(i64(starts[i]), 0):",
    "    last = add_i64(i64(found[row_index(sub_i64(i64(i), 1))]), 1)",
    "store_u32(before, i64(found[i]), last)",
)
_LASTS = builtin_kernel(
    "found:*u32 starts:*u8 rows_in_all:i64 present:*u8 made:*u8",
    "behind = add_i64(i64(i), 1)",
    "is_last = True",
    "if lt_i64(behind, rows_in_all):",
    "    is_last = ne_i64(i64(starts[row_index(behind)]), 0)",
    "at = i64(found[i])",
    "store_bool(made, at, is_last and ne_i64(i64(present[row_index(at)]), 0))",
)
_FIRSTS = builtin_kernel(
    "found:*u32 starts:*u8 present:*u8 made:*u8",
    "at = i64(found[i])",
    "store_bool(made, at, ne_i64(i64(starts[i]), 0) and ne_i64(i64(present[row_index(at)]), 0))",
)


def distinct_mask(
    columns: Sequence[ColumnData], present: Array | None, frame: WindowFrame, work: Work
) -> Array | None:
    """For each position whether its row counts in each frame that it is in (uint8); None where that differs from frame to
    frame. A value is one column's, or a row of several."""
    if frame.exclude != "no others":
        return None
    o, device = work.ordered, work.device
    present = _all_set(o.count, device) if present is None else present
    made = device.empty(o.count, np.uint8)
    if frame.start.kind == "unbounded preceding":
        found, starts = by_value(columns, present, work)
        launch(_FIRSTS, o.count, made, found, starts, present, made, workers=work.workers)
    elif frame.end.kind == "unbounded following":
        found, starts = by_value(columns, present, work)
        launch(_LASTS, o.count, made, found, starts, o.count, present, made, workers=work.workers)
    else:
        return None
    return made


def _all_set(count: int, device: Device) -> Array:
    flags: Array = device.empty(count, np.uint8)
    fill(flags, 1)
    return flags


def counted_once(column: ColumnData, call: WindowCall, work: Work) -> Array | None:
    """For each position whether its row counts in the frames of a call (uint8): it is not NULL, FILTER keeps it and, of DISTINCT,
    no other row of a frame has its value; None: all do. Frames of a DISTINCT begin or end with their partition."""
    keep = None if call.filter is None else work.column(call.filter)
    present = present_by_position(column, keep, work)
    if not call.distinct:
        return present
    found = distinct_mask([column], present, call.frame, work)
    assert found is not None
    return found


def by_value(columns: Sequence[ColumnData], present: Array | None, work: Work) -> tuple[Array, Array]:
    """The positions in the order of partitions, of the values in each, and then of the positions; and flags (uint8) of those with
    which a value begins. Rows that do not count are apart. NULL is a value within a row of several columns."""
    o, device = work.ordered, work.device
    keys: list[order.OrderKey] = []
    if o.partition_flags is not None:
        keys.append(order.Integers(o.partitions.numbers, Bounds(0, o.partitions.count)))
    if present is not None:
        keys.append(order.Integers(present, Bounds(0, 1)))
    for column in columns:
        taken = column if o.rows is None else gathers.take(column, o.rows, device)
        if len(columns) > 1 and taken.validity is not None:
            keys.append(order.Integers(taken.validity.on(device), Bounds(0, 1)))
        keys += key_parts(replace(taken, validity=None), device)
    found, starts = order.sort_starts(keys)
    return found, starts.view(np.uint8)


@cache
def _summing(word: str, ranges: int) -> PositionKernel:
    """The kernel that looks at every row of a frame: it counts if those before it with its value are left out, or not in it."""
    lines = ["count = i64(0)", f"total = {word}({'0.0' if word == 'f64' else '0'})"]
    for n in range(ranges):
        inside = " or ".join(f"(ge_i64(last, i64(low{k}[i])) and lt_i64(last, i64(high{k}[i])))" for k in range(n + 1))
        lines += [
            f"at = i64(low{n}[i])",
            f"while lt_i64(at, i64(high{n}[i])):",
            "    if ne_i64(i64(present[row_index(at)]), 0):",
            "        last = sub_i64(i64(before[row_index(at)]), 1)",
            f"        while ge_i64(last, i64(low0[i])) and not ({inside}):",
            "            last = sub_i64(i64(before[row_index(last)]), 1)",
            "        if lt_i64(last, i64(low0[i])):",
            "            count = add_i64(count, 1)",
            f"            total = add_{word}(total, {word}(values[row_index(at)]))",
            "    at = add_i64(at, 1)",
        ]
    lines += ["store_i64(counts, row, count)", f"store_{word}(made, row, total)"]
    ends = " ".join(f"low{n}:*u32 high{n}:*u32" for n in range(ranges))
    return position_kernel(f"before:*u32 present:*u8 values:*{word} counts:*i64 made:*{word} {ends}", *lines)


_LIMITS = builtin_kernel("lows:*u32 limits:*u32", "store_u32(limits, i64(i), add_i64(i64(lows[i]), 1))")
_HIDDEN = builtin_kernel(
    "present:*u8 most:i64 before:*u32", "if eq_i64(i64(present[i]), 0):", "    store_u32(before, i64(i), most)"
)


def distinct_counts(columns: Sequence[ColumnData], present: Array | None, frame: Ranges, work: Work) -> Array:
    """By row how many different values its frame has: so many rows of it have none with their value between its first row and
    them."""
    o, device = work.ordered, work.device
    before, limits = _rows_before(columns, present, work), device.empty(o.count, np.uint32)
    if present is not None:
        launch(_HIDDEN, o.count, before, present, o.count + 1, before, workers=work.workers)
    launch(_LIMITS, o.count, limits, frame.low, limits, workers=work.workers)
    return count_below(rank_tree(before, o.count + 1, work), limits, [frame], work)


def _rows_before(columns: Sequence[ColumnData], present: Array | None, work: Work) -> Array:
    """For each position a number more than that of the last one before it in its partition with its value; 0: none has."""
    found, starts = by_value(columns, present, work)
    before = work.device.empty(work.ordered.count, np.uint32)
    launch(_BEFORE, work.ordered.count, before, found, starts, before, workers=work.workers)
    return before


def distinct_sums(
    columns: Sequence[ColumnData], values: Sequence[Array], present: Array | None, ranges: Sequence[Ranges], work: Work
) -> tuple[Array, list[Array]]:
    """By row how many different values its ranges have, and for each array of ``values`` (by position) the sum of theirs."""
    o, device = work.ordered, work.device
    present = _all_set(o.count, device) if present is None else present
    before, counts = _rows_before(columns, present, work), device.empty(o.count, np.int64)
    sums = []
    ends = [end for r in ranges for end in r]
    for own in values or [device.zeros(o.count, np.int64)]:
        made: Array = device.empty(o.count, own.dtype)
        kernel = _summing("f64" if own.dtype == np.float64 else "i64", len(ranges))
        kernel.run(o, work.workers, before, present, own, counts, made, *ends)
        sums.append(made)
    return counts, sums
