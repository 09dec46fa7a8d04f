"""Least and greatest values over frames, of any type that has an order, and the truth of all or any row.

Numbers are compared as 64-bit integers, doubles in an order of theirs; text and wide integers by the ranks of their values, which
are taken out of the column again.
"""

from __future__ import annotations

from typing import Literal

from gquery.columns.table import ColumnData
from gquery.expression.types import PhysicalType
from gquery.expression.windows import WindowCall
from gquery.kernels.builtin.elements import are_positive, clear_others
from gquery.operators.base import make_column
from gquery.operators.value_ranks import rank
from gquery.operators.window.aggregates import difference
from gquery.operators.window.combine import combined
from gquery.operators.window.frames import frame_ranges, without_excluded
from gquery.operators.window.positions import Work, prefix, present_by_position, values_by_position
from gquery.operators.window.results import Form, column_of, plain_type, result_column
from gquery.operators.window.running import is_running, running_column
from gquery.operators.window.segment_scans import identity
from gquery.operators.window.sliding import slides, sliding_column
from gquery.operators.window.taking import take_or_null
from gquery.planner.physical import Stored
from gquery.runtime.records import replace


def extreme_column(stored: Stored, call: WindowCall, op: Literal["min", "max"], work: Work) -> ColumnData:
    """The least or greatest value of each frame; NULL where it has none."""
    column, device = work.column(call.args[0]), work.device
    keep = None if call.filter is None else work.column(call.filter)
    present = present_by_position(column, keep, work)
    form: Literal["ordered", "i64"] = "ordered" if column.dtype.is_float else "i64"
    is_ranked = column.physical_type.is_string or column.physical_type is PhysicalType.I128
    in_turn = sliding_column if slides(call.frame, work) else running_column if is_running(call.frame, work) else None
    if not is_ranked and in_turn is not None:
        values = values_by_position(column, form, present, identity(op, "i64"), work)
        how: Form = "ordered" if column.dtype.is_float else "integer"
        return in_turn(stored, values, present, call.frame, (op, how, 1.0), work)
    ranges = without_excluded(call.frame, frame_ranges(call.frame, work), work)
    is_plain = not (column.dtype.is_float or is_ranked)
    if is_plain and not call.nullable:  # each frame has a value: nothing has to be counted
        values = values_by_position(column, "i64", present, identity(op, "i64"), work)
        return column_of(stored, combined(values, op, call.frame, ranges, work, plain_type(stored)), None, work)
    counts = difference(None if present is None else prefix(present, device), ranges, work)
    compared, ranked = column, None
    if is_ranked:
        codes, ranked = rank(column, device)
        compared = make_column(stored.properties, PhysicalType.I64, codes, None, column.length, device)
    values = values_by_position(compared, form, present, identity(op, "i64"), work)
    found = combined(values, op, call.frame, ranges, work)
    if ranked is not None:
        validity = are_positive(counts)
        clear_others(found, validity)
        return take_or_null(replace(ranked, validity=None), found, validity, stored, work)
    return result_column(stored, found, counts, "ordered" if form == "ordered" else "integer", work)
