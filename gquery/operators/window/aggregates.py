"""Counts, sums and averages over frames.

Exact sums are differences of prefix sums, in one word where all values together fit 64 bits, else in words of 32 bits, whose sums
cannot overflow: whether a frame's sum fits its type is looked at once it is known. Sums of doubles are never differences: a
value of 1e17, an infinity or a NaN would spoil every frame behind it. They are added up by `combine`, over scans of segments
and trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.errors import OutOfRangeError
from gquery.expression.facts import BYTE_BITS, SUM_WORD_BITS, power_of_ten
from gquery.expression.types import INT64, INT128, Bounds, PhysicalType, type_bounds
from gquery.expression.windows import WindowCall
from gquery.functions.aggregate_record import Accumulated, Count, Extreme, Mean, Total
from gquery.functions.windows import accumulated_by
from gquery.kernels.builtin import wide_arrays
from gquery.kernels.builtin.choosing import parts_of_pairs
from gquery.kernels.builtin.define import element_word
from gquery.kernels.builtin.elements import are_positive
from gquery.operators.window.combine import combined
from gquery.operators.window.distinct import distinct_counts, distinct_mask, distinct_sums
from gquery.operators.window.frames import Ranges, frame_ranges, without_excluded
from gquery.operators.window.positions import (
    PositionKernel,
    Work,
    position_kernel,
    prefix,
    present_by_position,
    values_by_position,
)
from gquery.operators.window.results import Form, column_of, plain_type, result_column
from gquery.operators.window.running import is_running, running_column
from gquery.operators.window.sliding import slides, sliding_column
from gquery.planner.physical import Stored


def running_op(call: WindowCall) -> Literal["add", "min", "max"] | None:
    """What makes the value for some rows of that for the rows before and that for the others; None: nothing does."""
    match accumulated_by(call):
        case Count() | Total():
            return "add"
        case Extreme(op):
            return op
        case _:
            return None


def aggregate_column(stored: Stored, call: WindowCall, by: Accumulated, work: Work) -> ColumnData:
    """A count, sum or average of each frame; of no values a count is 0, and the others are NULL. Rows of several values are
    counted, and none of them is NULL."""
    columns = [work.column(a) for a in call.args]
    column = columns[0] if columns else None
    keep = None if call.filter is None else work.column(call.filter)
    present = present_by_position(column if len(columns) == 1 else None, keep, work)
    adds = not isinstance(by.only, Count)
    if adds and column is not None and not call.distinct:
        made = _in_turn(stored, call, isinstance(by.finalize, Mean), column, present, work)
        if made is not None:
            return made
    ranges = without_excluded(call.frame, frame_ranges(call.frame, work), work)
    if call.distinct and column is not None:
        mask = distinct_mask(columns, present, call.frame, work)
        if mask is None and not adds and len(ranges) == 1:
            return column_of(stored, distinct_counts(columns, present, ranges[0], work), None, work)
        if mask is None:
            words = _words(column, present, work) if adds else []
            counts, sums = distinct_sums(columns, words, present, ranges, work)
            return _result(stored, by, column, counts, sums, work) if adds else column_of(stored, counts, None, work)
        present = mask
    if isinstance(by.only, Total) and not call.nullable and column is not None and not column.dtype.is_float:
        words = _words(column, present, work)
        whole = plain_type(stored) if len(words) == 1 else None
        sums = [difference(prefix(word, work.device), ranges, work, whole) for word in words]
        return _total(stored, sums, None, work)  # each frame has a value: nothing has to be counted
    counts = difference(None if present is None else prefix(present, work.device), ranges, work)
    if not adds:
        return column_of(stored, counts, None, work)
    assert column is not None
    words = _words(column, present, work)
    if column.dtype.is_float:
        sums = [combined(words[0], "add", call.frame, ranges, work)]
    else:
        sums = [difference(prefix(word, work.device), ranges, work) for word in words]
    return _result(stored, by, column, counts, sums, work)


def _in_turn(
    stored: Stored, call: WindowCall, is_mean: bool, column: ColumnData, present: Array | None, work: Work
) -> ColumnData | None:
    """A sum or average of frames that threads go through one after another; None where frames or values are not like that."""
    if column.dtype.is_float:
        form: Form = "mean of doubles" if is_mean else "double"
        if slides(call.frame, work) or is_running(call.frame, work):
            in_turn = sliding_column if slides(call.frame, work) else running_column
            return in_turn(stored, _doubles(column, present, work), present, call.frame, ("add", form, 1.0), work)
        return None
    is_plain = is_mean or plain_type(stored) is not None
    if not is_plain or not _fits_word(column, work) or not is_running(call.frame, work):
        return None
    (values,) = _words(column, present, work)
    power = float(power_of_ten(column.dtype.scale)) if column.dtype.is_decimal else 1.0
    how: Form = "mean of integers" if is_mean else "integer"
    return running_column(stored, values, present, call.frame, ("add", how, power), work)


def _fits_word(column: ColumnData, work: Work) -> bool:
    """Whether the sum of all integers of a column fits 64 bits."""
    narrow = column.physical_type is not PhysicalType.I128
    return narrow and work.ordered.count * _magnitude(column) <= INT64.high


def _result(
    stored: Stored, by: Accumulated, column: ColumnData, counts: Array, sums: list[Array], work: Work
) -> ColumnData:
    """Sums or averages by row from the sums of each word of the values."""
    if isinstance(by.finalize, Mean):
        power = float(power_of_ten(column.dtype.scale)) if column.dtype.is_decimal else 1.0
        if column.dtype.is_float or len(sums) > 1:
            total = (
                sums[0] if column.dtype.is_float else wide_arrays.f64_from_i128(_exact(sums, _TOTAL, _AVERAGE_OVERFLOW))
            )
            return result_column(stored, total, counts, "mean of doubles", work, power)
        return result_column(stored, sums[0], counts, "mean of integers", work, power)
    if column.dtype.is_float:
        return result_column(stored, sums[0], counts, "double", work)
    if len(sums) == 1 and stored.physical_type is not PhysicalType.I128:
        return result_column(stored, sums[0], counts, "integer", work)
    return _total(stored, sums, are_positive(counts), work)


def _total(stored: Stored, sums: list[Array], validity: Array | None, work: Work) -> ColumnData:
    """Sums of integers by row."""
    limit = type_bounds(stored.properties.dtype)
    assert limit is not None
    overflow = f"Overflow in sum: the result does not fit {stored.properties.dtype}. Cast its argument to a wider type."
    total = sums[0] if len(sums) == 1 else _exact(sums, limit, overflow)
    return column_of(stored, total, validity, work)


_TOTAL = Bounds(INT128.low + 1, INT128.high - 1)  # of a sum that is divided: the ends stand for what is beyond 128 bits
_AVERAGE_OVERFLOW = "Overflow in avg: the sum of its values has more than 128 bits. Cast its argument to DOUBLE."


def _exact(words: Sequence[Array], limit: Bounds, overflow: str) -> Array:
    """Sums of integers by row from those of their words: 128 bits as two words. OutOfRangeError where one is beyond the limit."""
    wide = wide_arrays.multiword_to_i128(words, SUM_WORD_BITS)
    if wide.size and not wide_arrays.i128_within(wide, limit.low, limit.high):
        raise OutOfRangeError(overflow)
    return wide


@cache
def _difference(ranges: int, element: str, result: str) -> PositionKernel:
    lines = ["total = i64(0)"]
    for n in range(ranges):
        low, high = f"i64(low{n}[i])", f"i64(high{n}[i])"
        if element:
            low, high = f"i64(sums[row_index({low})])", f"i64(sums[row_index({high})])"
        lines.append(f"total = add_i64(total, sub_i64({high}, {low}))")
    ends = " ".join(f"low{n}:*u32 high{n}:*u32" for n in range(ranges))
    return position_kernel(
        f"sums:*{element or 'u32'} made:*{result} {ends}", *lines, f"store_{result}(made, row, total)"
    )


def difference(
    sums: Array | None, ranges: Sequence[Ranges], work: Work, physical_type: PhysicalType | None = None
) -> Array:
    """By row the sum over its ranges, from sums of all that stands before a position; None: how many rows they have. As int64, or
    as a ``physical_type`` that all results fit."""
    made: Array = work.device.empty(
        work.ordered.count, np.int64 if physical_type is None else np.dtype(physical_type.numpy)
    )
    kernel = _difference(len(ranges), "" if sums is None else element_word(sums), element_word(made))
    kernel.run(work.ordered, work.workers, sums, made, *[end for r in ranges for end in r])
    return made


def _magnitude(column: ColumnData) -> int:
    """What no value of a column of integers exceeds."""
    if column.statistics.bounds is not None:
        return column.statistics.bounds.magnitude
    if column.physical_type is PhysicalType.I128:
        return INT128.high
    return 1 if column.physical_type is PhysicalType.BOOL else 2 ** (BYTE_BITS * column.physical_type.bytes)


def _doubles(column: ColumnData, present: Array | None, work: Work) -> Array:
    """A column of doubles by position, 0 where a row does not count: itself where its rows stand so."""
    if work.ordered.rows is None and present is None and column.physical_type is PhysicalType.F64:
        return column.data.on(work.device)
    return values_by_position(column, "f64", present, 0.0, work)


def _words(column: ColumnData, present: Array | None, work: Work) -> list[Array]:
    """What is added up by position: doubles, integers where all together fit 64 bits, else words of 32 bits of them (int64), low
    first; the last one carries the sign. 0 where a row does not count."""
    if column.dtype.is_float:
        return [_doubles(column, present, work)]
    if column.physical_type is not PhysicalType.I128:
        values = values_by_position(column, "i64", present, 0, work)
        return [values] if _fits_word(column, work) else wide_arrays.split_words(values, SUM_WORD_BITS)
    data = work.ordered.take(column.data.on(work.device), 2)
    if not work.device.is_cpu:
        return parts_of_pairs(data, present, SUM_WORD_BITS)
    pairs = data.reshape(-1, 2)
    if present is not None:
        pairs = pairs * present[:, None].astype(np.int64)
    mask, (low, high) = 2**SUM_WORD_BITS - 1, (pairs[:, 0], pairs[:, 1])
    return [low & mask, low >> SUM_WORD_BITS & mask, high & mask, high >> SUM_WORD_BITS]
