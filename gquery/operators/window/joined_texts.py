"""Joined texts of frames: all texts are joined once, in order, so that the text of a frame is a part of that.

Before each text stands the separator. A frame of one range is what lies from its first text on up to the end of its last one; of
several ranges, each but the first that has a text keeps the separator before it.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.expression.expr import Literal
from gquery.expression.types import PhysicalType
from gquery.expression.windows import WindowCall
from gquery.kernels.builtin import gathers, scans
from gquery.kernels.builtin.define import address
from gquery.kernels.builtin.elements import every
from gquery.kernels.builtin.group_texts import separated
from gquery.operators.window.distinct import counted_once
from gquery.operators.window.frames import frame_ranges, without_excluded
from gquery.operators.window.positions import PositionKernel, Work, position_kernel, prefix, repeated
from gquery.planner.physical import Stored


def joined_column(stored: Stored, call: WindowCall, work: Work) -> ColumnData:
    """The texts of each frame one behind another, with a separator between them; NULL where it has none."""
    argument, separator = call.args
    assert isinstance(separator, Literal)
    column, device, rows = work.column(argument), work.device, work.ordered.count
    present = counted_once(column, call, work)
    ranges = without_excluded(call.frame, frame_ranges(call.frame, work), work)
    counts, taken = None, work.ordered.rows
    if present is not None:
        counts, positions = prefix(present, device), scans.compact(present)
        taken = positions if taken is None else gathers.gather(taken, positions)
    own = gathers.string_views(column, device, taken)
    between = repeated(separator, 1, device)
    one = gathers.string_views(between, device)
    if device.is_cpu:
        pairs = np.zeros((own.size // 2, 2, 2), np.int64)
        pairs[:, 0, :], pairs[:, 1, :] = one.reshape(1, 2), own.reshape(-1, 2)
        pieces = pairs.reshape(-1)
    else:
        pieces = separated(one, own)
    starts, text = gathers.gather_strings(pieces, device=device)
    starts = every(starts, 2)
    views, there = device.empty(2 * rows * len(ranges), np.int64), device.empty(rows, np.uint8)
    size = len(separator.value.encode())
    ends = [end for r in ranges for end in r]
    kernel = _viewing(len(ranges), counts is not None)
    kernel.run(work.ordered, work.workers, counts, starts, address(text), size, views, there, *ends)
    offsets, characters = gathers.gather_strings(views, device=device)
    return ColumnData(
        stored.properties.dtype, PhysicalType.STRING64, rows, Buffer(every(offsets, len(ranges)), device),
        Buffer(there, device), Buffer(characters, device),
    )  # fmt: skip


@cache
def _viewing(ranges: int, counted: bool) -> PositionKernel:
    """The kernel that finds where the text of each range lies, and how long it is; and whether the frame has any."""
    lines = ["left = size", "ok = False"]
    for n in range(ranges):
        low, high = f"i64(low{n}[i])", f"i64(high{n}[i])"
        if counted:
            low, high = f"i64(counts[row_index({low})])", f"i64(counts[row_index({high})])"
        lines += [
            f"low = {low}",
            f"high = {high}",
            "begin = i64(0)",
            "length = i64(0)",
            "if lt_i64(low, high):",
            "    begin = add_i64(i64(starts[row_index(low)]), left)",
            "    length = sub_i64(i64(starts[row_index(high)]), begin)",
            "    left = i64(0)",
            "    ok = True",
            f"at = mul_i64(add_i64(mul_i64(row, {ranges}), {n}), 2)",
            "store_i64(views, at, add_i64(text, begin))",
            "store_i64(views, add_i64(at, 1), length)",
        ]
    ends = " ".join(f"low{n}:*u32 high{n}:*u32" for n in range(ranges))
    parameters = f"counts:*u32 starts:*i64 text:i64 size:i64 views:*i64 there:*u8 {ends}"
    return position_kernel(parameters, *lines, "store_bool(there, row, ok)")
