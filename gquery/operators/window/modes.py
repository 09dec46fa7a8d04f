"""Modes of frames: the most frequent value, of several such the one whose first row in the frame comes first.

Rows are put in the order of partitions and values, so that those of a value are a list of positions, ascending. How often a value
is there up to a position is its slot in its list: where frames begin with their partition, the greatest such number so far says
which value leads, and a scan finds it; where they end with it, a scan from behind. Any other frame is gone through row by row: a
value leads if its list has another position within the frame so many slots on as the leader is frequent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.expression.facts import ROW_ID_BITS
from gquery.expression.types import INT64
from gquery.expression.windows import WindowCall
from gquery.kernels.builtin.choosing import all_set, complements_of
from gquery.kernels.builtin.define import builtin_kernel, launch
from gquery.kernels.builtin.elements import are_positive, row_numbers
from gquery.operators.ordered import groups_of
from gquery.operators.window.aggregates import difference
from gquery.operators.window.combine import combined
from gquery.operators.window.distinct import by_value, counted_once
from gquery.operators.window.frames import Ranges, frame_ranges, without_excluded
from gquery.operators.window.own_order import rows_of_ranks
from gquery.operators.window.positions import PositionKernel, Work, position_kernel, prefix
from gquery.operators.window.taking import take_or_null
from gquery.planner.physical import Stored

_MASK = (1 << ROW_ID_BITS) - 1
_SCORES = {  # how often a value is there up to its row, or from it on; and that the value's first row comes early
    is_backward: builtin_kernel(
        "found:*u32 numbers:*u32 begins:*u32 present:*u8 scores:*i64",
        "at = i64(found[i])",
        "number = i64(numbers[i])",
        "begin = i64(begins[row_index(number)])",
        "end = i64(begins[row_index(add_i64(number, 1))])",
        f"count = {'sub_i64(end, i64(i))' if is_backward else 'add_i64(sub_i64(i64(i), begin), 1)'}",
        f"first = {'at' if is_backward else 'i64(found[row_index(begin)])'}",
        f"score = or_i64(shl_i64(count, {ROW_ID_BITS}), sub_i64({_MASK}, first))",
        "if eq_i64(i64(present[row_index(at)]), 0):",
        f"    score = i64({INT64.low})",
        "store_i64(scores, at, score)",
    )
    for is_backward in (False, True)
}
_SLOTS = builtin_kernel("found:*u32 slots:*u32", "store_u32(slots, i64(found[i]), i64(i))")


def mode_column(stored: Stored, call: WindowCall, work: Work) -> ColumnData:
    """The mode of each frame; NULL where it has no value."""
    column, device, rows = work.column(call.args[0]), work.device, work.ordered.count
    values = work.column(call.args[-1])  # by which equal values are found, where they need not be the same
    present = counted_once(values, call, work)
    ranges = without_excluded(call.frame, frame_ranges(call.frame, work), work)
    there = are_positive(difference(None if present is None else prefix(present, device), ranges, work))
    found, starts = by_value([values], present, work)
    lists = groups_of(starts, rows, device, work.workers)
    counts = all_set(found, rows) if present is None else present
    begins = call.frame.start.kind == "unbounded preceding"
    if call.frame.exclude == "no others" and (begins or call.frame.end.kind == "unbounded following"):
        scores = device.empty(rows, np.int64)
        of_lists = (found, lists.numbers, lists.starts, counts)
        launch(_SCORES[not begins], rows, scores, *of_lists, scores, workers=work.workers)
        best = combined(scores, "max", call.frame, ranges, work)
        positions = _MASK - (best & _MASK) if device.is_cpu else complements_of(best, _MASK)
    else:
        slots, positions = device.empty(rows, np.uint32), device.empty(rows, np.int64)
        launch(_SLOTS, rows, slots, found, slots, workers=work.workers)
        _searched(ranges, (found, lists.numbers, lists.starts, slots, counts), positions, work)
    taken, _ = rows_of_ranks(positions, row_numbers(device.xp, rows), work)
    return take_or_null(column, taken, there, stored, work)


def _searched(ranges: Sequence[Ranges], lists: tuple[Array, ...], positions: Array, work: Work) -> None:
    _searching(len(ranges)).run(work.ordered, work.workers, *lists, positions, *[end for r in ranges for end in r])


@cache
def _searching(ranges: int) -> PositionKernel:
    """The kernel that goes through each position's ranges, row by row."""
    lines = ["best = i64(-1)", "most = i64(0)"]
    inside = " or ".join(f"(ge_i64(other, i64(low{k}[i])) and lt_i64(other, i64(high{k}[i])))" for k in range(ranges))
    step = [  # of one range all positions of a list from the row's slot on are in it, up to where it ends
        "    while lt_i64(add_i64(slot, most), end) and "
        "lt_i64(i64(found[row_index(add_i64(slot, most))]), i64(high0[i])):",
        "        most = add_i64(most, 1)",
        "        best = at",
    ]
    if ranges > 1:
        step = [
            "    count = i64(0)",
            "    while lt_i64(slot, end):",
            "        other = i64(found[row_index(slot)])",
            f"        if {inside}:",
            "            count = add_i64(count, 1)",
            "        slot = add_i64(slot, 1)",
            "    if gt_i64(count, most):",
            "        most = count",
            "        best = at",
        ]
    for n in range(ranges):
        lines += [
            f"at = i64(low{n}[i])",
            f"behind = i64(high{n}[i])",
            "while lt_i64(at, behind):",
            "    if ne_i64(i64(present[row_index(at)]), 0):",
            "        slot = i64(slots[row_index(at)])",
            "        end = i64(begins[row_index(add_i64(i64(numbers[row_index(slot)]), 1))])",
            *("    " + line for line in step),
            "    at = add_i64(at, 1)",
        ]
    ends = " ".join(f"low{n}:*u32 high{n}:*u32" for n in range(ranges))
    parameters = f"found:*u32 numbers:*u32 begins:*u32 slots:*u32 present:*u8 made:*i64 {ends}"
    return position_kernel(parameters, *lines, "store_i64(made, row, best)")
