"""Values of other rows: of those some positions before or behind, and of the first, the last and the n-th of a frame.

Kernels find the row, values of any type are taken from there. IGNORE NULLS counts the rows that have a value: their positions lie
one behind another in a list, and how many there are before each position says where in it to look.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.expression.facts import UNBOUNDED
from gquery.expression.windows import WindowCall
from gquery.functions import AGGREGATES
from gquery.kernels.builtin import gathers, scans
from gquery.kernels.builtin.elements import clear_others, converted
from gquery.kernels.builtin.group_columns import full_of
from gquery.operators.base import null_column
from gquery.operators.window.frames import Ranges, frame_ranges, without_excluded
from gquery.operators.window.own_order import first_by_order, nth_by_order, takes_last
from gquery.operators.window.own_ranks import shifted_by_order
from gquery.operators.window.positions import (
    PARTITION,
    PositionKernel,
    Work,
    constant_of,
    position_kernel,
    prefix,
    present_by_position,
)
from gquery.operators.window.shifted import shifted_column
from gquery.operators.window.taking import Otherwise, constant_column, take_or_other
from gquery.planner.physical import Stored
from gquery.runtime.records import replace

_FOUND = (
    "if ok:",
    "    store_u32(found, row, i64({row}))",
    "else:",
    "    store_u32(found, row, 0)",
    "store_bool(there, row, ok)",
)


def value_column(stored: Stored, call: WindowCall, work: Work) -> ColumnData:
    """The values of a call that takes them from other rows."""
    argument = constant_of(call.args[0])
    if argument is not None:
        column, device = constant_column(argument, stored, work.device), work.device
        if argument.value is None:
            return null_column(stored, work.ordered.count, device)
        rows, there, other = _sources(stored, call, None, work)
        return take_or_other(column, device.zeros(rows.size, np.uint32), there, other, stored, work)
    column = work.column(call.args[0])
    if (shifted := shifted_column(stored, call, column, work)) is not None:
        return shifted
    rows, there, other = _sources(stored, call, column, work)
    return take_or_other(column, rows, there, other, stored, work)


def _sources(
    stored: Stored, call: WindowCall, column: ColumnData | None, work: Work
) -> tuple[Array, Array | None, Otherwise | None]:
    """For each row the row that its value stands in, whether there is one, and what is taken where there is none."""
    ignores = call.ignore_nulls or (call.function in AGGREGATES and AGGREGATES[call.function].skips_null)
    keep = None if call.filter is None else work.column(call.filter)
    present = present_by_position(column if ignores else None, keep, work)
    listed = None if present is None else (prefix(present, work.device), scans.compact(present))
    found, there = work.device.empty(work.ordered.count, np.uint32), work.device.empty(work.ordered.count, np.uint8)
    if call.function in ("lag", "lead"):
        _shifted(call, listed, present, (found, there), work)
        return found, there, _otherwise(stored, call, work)
    ranges = without_excluded(call.frame, frame_ranges(call.frame, work), work)
    if call.order:
        if call.function != "nth_value":
            return *first_by_order(call, ranges, present, work), None
        amount, amounts = _amount(call, work)
        if amounts is None:
            amounts = full_of(found, work.ordered.count, amount, np.int64)
        return *nth_by_order(call, amounts, ranges, present, work), None
    _nth(call, ranges, listed, (found, there), work)
    return found, there, None


Listed = tuple[Array, Array] | None
"""How many rows count before each position, and the positions of those that do; None: all count."""


# ---- lag and lead -----------------------------------------------------------------------------------------------------


@cache
def _shift(ordered: bool, listed: bool, by_row: bool) -> PositionKernel:
    amount = "i64(amounts[row_index(row)])" if by_row else "amount"
    lines = [*PARTITION, f"away = mul_i64(max_i64(min_i64({amount}, {UNBOUNDED}), {-UNBOUNDED}), sign)"]
    if listed:  # so many before the first row that counts from the position on, or behind the last one up to it
        lines += [
            "position = i64(i)",
            "if ne_i64(away, 0):",
            "    before = i64(counts[row_index(add_i64(i64(i), from_bool(gt_i64(away, 0))))])",
            "    number = sub_i64(add_i64(before, away), from_bool(gt_i64(away, 0)))",
            "    position = i64(-1)",
            "    if ge_i64(number, 0) and lt_i64(number, i64(counts[row_index(rows_in_all)])):",
            "        position = i64(positions[row_index(number)])",
        ]
    else:
        lines.append("position = add_i64(i64(i), away)")
    lines.append("ok = ge_i64(position, begin) and lt_i64(position, end)")
    taken = "rows[row_index(position)]" if ordered else "position"
    lines += [line.format(row=taken) for line in _FOUND]
    names = "partitions:*u32 begins:*u32 counts:*u32 positions:*u32 rows_in_all:i64 sign:i64 amount:i64 amounts:*i64"
    return position_kernel(f"{names} found:*u32 there:*u8", *lines)


def _shifted(call: WindowCall, listed: Listed, present: Array | None, made: tuple[Array, Array], work: Work) -> None:
    found, there = made
    amount, amounts, valid = 1, None, None
    if len(call.args) > 1:
        constant = constant_of(call.args[1])
        if constant is None:
            column = work.column(call.args[1])
            amounts = converted(column.data.on(work.device), np.int64)
            valid = column.validity
        else:
            amount = UNBOUNDED if constant.value is None else constant.value
    if call.order:
        sources = shifted_by_order(call, max(min(amount, UNBOUNDED), -UNBOUNDED), amounts, present, work)
        for to, source in zip((found, there), sources, strict=True):
            work.device.xp.copyto(to, source)
    else:
        _by_position(call, (amount, amounts), listed, (found, there), work)
    if valid is not None:
        clear_others(there, valid.on(work.device))


def _by_position(
    call: WindowCall, offset: tuple[int, Array | None], listed: Listed, made: tuple[Array, Array], work: Work
) -> None:
    o, (amount, amounts), (found, there) = work.ordered, offset, made
    kernel = _shift(o.rows is not None, listed is not None, amounts is not None)
    counts, positions = listed or (None, None)
    numbers = (o.partitions.numbers, o.partitions.starts, counts, positions, o.count)
    amount = max(min(amount, UNBOUNDED), -UNBOUNDED)
    kernel.run(o, work.workers, *numbers, -1 if call.function == "lag" else 1, amount, amounts, found, there)


def _otherwise(stored: Stored, call: WindowCall, work: Work) -> Otherwise | None:
    """The default of a lag or lead; of a row whose offset is NULL, it is NULL."""
    if len(call.args) <= 2:
        return None
    offset, default = constant_of(call.args[1]), constant_of(call.args[2])
    if (offset is not None and offset.value is None) or (default is not None and default.value is None):
        return None
    column = work.column(call.args[2]) if default is None else constant_column(default, stored, work.device)
    valid = None if offset is not None else work.column(call.args[1]).validity
    if valid is None:
        return Otherwise(column, default is not None)
    flags = valid.on(work.device)
    if default is not None:
        column = gathers.take(column, work.device.zeros(flags.size, np.uint32), work.device)
    elif column.validity is not None:
        flags = flags * column.validity.on(work.device)
    return Otherwise(replace(column, validity=Buffer(flags, work.device)), False)


# ---- the n-th of a frame ----------------------------------------------------------------------------------------------


@cache
def _choosing(ordered: bool, listed: bool, by_row: bool, backward: bool, ranges: int) -> PositionKernel:
    lines = [f"left = sub_i64({'i64(amounts[row_index(row)])' if by_row else 'amount'}, 1)", "position = i64(-1)"]
    for n in reversed(range(ranges)) if backward else range(ranges):
        low, high = f"i64(low{n}[i])", f"i64(high{n}[i])"
        if listed:
            low, high = f"i64(counts[row_index({low})])", f"i64(counts[row_index({high})])"
        number = "sub_i64(sub_i64(high, 1), left)" if backward else "add_i64(low, left)"
        lines += [
            f"low = {low}",
            f"high = {high}",
            "if ge_i64(left, 0):",
            "    if lt_i64(left, sub_i64(high, low)):",
            f"        position = {f'i64(positions[row_index({number})])' if listed else number}",
            "        left = i64(-1)",
            "    else:",
            "        left = sub_i64(left, sub_i64(high, low))",
        ]
    lines.append("ok = ge_i64(position, 0)")
    taken = "rows[row_index(position)]" if ordered else "position"
    lines += [line.format(row=taken) for line in _FOUND]
    ends = " ".join(f"low{n}:*u32 high{n}:*u32" for n in range(ranges))
    return position_kernel(f"counts:*u32 positions:*u32 amount:i64 amounts:*i64 found:*u32 there:*u8 {ends}", *lines)


def _amount(call: WindowCall, work: Work) -> tuple[int, Array | None]:
    """Which value of a frame is asked for, or, if that differs, by row; there is none where it is 0."""
    if call.function != "nth_value":
        return 1, None
    constant = constant_of(call.args[1])
    if constant is None:
        return 0, converted(work.column(call.args[1]).data.on(work.device), np.int64)  # 0 where it is NULL
    return constant.value or 0, None


def _nth(call: WindowCall, ranges: Sequence[Ranges], listed: Listed, made: tuple[Array, Array], work: Work) -> None:
    o = work.ordered
    amount, amounts = _amount(call, work)
    counts, positions = listed or (None, None)
    kernel = _choosing(
        o.rows is not None,
        listed is not None,
        amounts is not None,
        takes_last(call),
        len(ranges),
    )
    ends = [end for r in ranges for end in r]
    kernel.run(o, work.workers, counts, positions, amount, amounts, *made, *ends)
