"""Bits and products over frames: what combines as sums do, and is no difference."""

from __future__ import annotations

from typing import Literal

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.expression.types import PhysicalType
from gquery.expression.windows import WindowCall
from gquery.kernels.builtin.choosing import put_number
from gquery.kernels.builtin.elements import are_positive, every
from gquery.kernels.builtin.group_ranges import pairs_of
from gquery.operators.base import with_flags
from gquery.operators.window.aggregates import difference
from gquery.operators.window.combine import combined
from gquery.operators.window.distinct import counted_once
from gquery.operators.window.frames import frame_ranges, without_excluded
from gquery.operators.window.positions import Work, prefix, values_by_position
from gquery.operators.window.results import column_of, result_column
from gquery.operators.window.segment_scans import Op, identity
from gquery.planner.physical import Stored


def reduction_column(stored: Stored, call: WindowCall, op: Op, work: Work) -> ColumnData:
    """The values of each frame reduced to one; NULL where it has none."""
    column, device = work.column(call.args[0]), work.device
    present = counted_once(column, call, work)
    ranges = without_excluded(call.frame, frame_ranges(call.frame, work), work)
    counts = difference(None if present is None else prefix(present, device), ranges, work)
    form: Literal["f64", "i64"] = "f64" if op == "mul" else "i64"
    if column.physical_type is not PhysicalType.I128:
        values = values_by_position(column, form, present, identity(op, form), work)
        found = combined(values, op, call.frame, ranges, work)
        if stored.physical_type is not PhysicalType.I128:
            return result_column(stored, found, counts, "double" if op == "mul" else "integer", work)
        return with_flags(column_of(stored, found, None, work), are_positive(counts), device)
    pairs = work.ordered.take(column.data.on(device), 2)
    words = [_masked(every(pairs[n:], 2), present, op) for n in (0, 1)]
    low, high = (combined(word, op, call.frame, ranges, work) for word in words)
    both = np.stack((low, high), axis=1) if device.is_cpu else pairs_of(low, high).reshape(-1, 2)
    return with_flags(column_of(stored, both, None, work), are_positive(counts), device)


def _masked(word: Array, present: Array | None, op: Op) -> Array:
    """A word of its own with the identity where a row does not count."""
    if present is None:
        return word
    if isinstance(word, np.ndarray):
        return np.where(present > 0, word, np.int64(identity(op, "i64")))
    put_number(word, int(identity(op, "i64")), present)
    return word
