"""Reductions that no accumulator makes, over the rows of groups in order: bits and products.

A thread reduces the rows of a piece of a group one after another, then one those pieces, so that a group of many rows is the
work of many threads. Every piece begins with the value that changes no other.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.types import PhysicalType
from gquery.functions.aggregate_record import Reduced
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.kernels.builtin.prefix_sums import running_sums
from gquery.kernels.readback import read_scalar
from gquery.operators.base import narrow
from gquery.planner.stored import Stored
from gquery.runtime.records import dataclass


@cache
def _kernel(by: Reduced, in_order: bool) -> BuiltinKernel:
    """The kernel that reduces ranges of values, of rows that stand in an order, or of values as they lie."""
    word = by.word
    value = "values[row_index(i64(rows[row_index(at)]))]" if in_order else "values[row_index(at)]"
    return builtin_kernel(
        f"begins:*i64 ends:*i64 {'rows:*u32 ' * in_order}values:*{word} made:*{word}",
        "at = i64(begins[i])",
        "end = i64(ends[i])",
        f"total = {word}({by.identity})",
        "while lt_i64(at, end):",
        f"    total = {by.operation}_{word}(total, {word}({value}))",
        "    at = add_i64(at, 1)",
        f"store_{word}(made, i64(i), total)",
    )


@dataclass(frozen=True, eq=False)
class Ranges:
    """Of each group the rows that are reduced: so many of ``rows`` (uint32) from ``begins`` on (both int64)."""

    rows: Array
    begins: Array
    sizes: Array


def reduced(by: Reduced, column: ColumnData, ranges: Ranges, stored: Stored, device: Device) -> ColumnData:
    """The reduction of the values of each group; NULL where it has none."""
    xp, sizes = device.xp, ranges.sizes
    there = (sizes > 0).astype(np.uint8)
    word = np.float64 if by.word == "f64" else np.int64
    data = column.data.on(device)
    words = data.reshape(-1, 2) if column.physical_type is PhysicalType.I128 else data.reshape(-1, 1)
    made = [
        _in_pieces(by, xp.ascontiguousarray(words[:, n]).astype(word), ranges, device) for n in range(words.shape[1])
    ]
    values = xp.stack(made, axis=1).reshape(-1) if len(made) > 1 else made[0]
    kept = there if len(made) == 1 else xp.repeat(there, len(made))
    values = narrow(xp.where(kept > 0, values, xp.zeros_like(values)), stored.physical_type)
    return ColumnData(
        stored.properties.dtype, stored.physical_type, int(there.size), Buffer(values, device), Buffer(there, device)
    )


def _in_pieces(by: Reduced, values: Array, ranges: Ranges, device: Device) -> Array:
    begins, sizes = ranges.begins, ranges.sizes
    xp, most = device.xp, tuning.sorting.reduced_rows
    pieces = (sizes + (most - 1)) // most
    last = running_sums(pieces, np.int64)
    first = last - pieces
    count = read_scalar(last[-1]) if last.size else 0
    group = (
        xp.repeat(xp.arange(sizes.size), pieces) if device.is_cpu else xp.searchsorted(last, xp.arange(count), "right")
    )
    low = begins[group] + (xp.arange(count) - first[group]) * most
    high = xp.minimum(low + most, begins[group] + sizes[group])
    partial = xp.empty(count, values.dtype)
    launch(_kernel(by, True), count, partial, low, high, ranges.rows, values, partial, unit=most)
    made: Array = xp.empty(sizes.size, values.dtype)
    launch(_kernel(by, False), sizes.size, made, first, last, partial, made)
    return made
