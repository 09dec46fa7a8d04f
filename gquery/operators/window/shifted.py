"""`lag` and `lead` by a constant over rows that stand in order as one partition: on a CPU no value is moved.

The result is the column itself, so many rows on, in front of or behind so many NULLs or defaults: pieces, which become one array
when somebody asks for that (`device.buffer.InPieces`). Of text the offsets are shifted, and the characters are the column's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gquery.columns.table import ColumnData, ColumnStatistics
from gquery.device.array import Array
from gquery.device.buffer import Buffer, InPieces
from gquery.device.device import Device
from gquery.expression.types import PhysicalType
from gquery.expression.windows import WindowCall
from gquery.operators.base import words_a_row
from gquery.operators.window.positions import Work, constant_of
from gquery.operators.window.taking import constant_column
from gquery.planner.physical import Stored
from gquery.runtime.records import dataclass


@dataclass(frozen=True)
class _Shift:
    """So many ``rows`` that have a value of another row, from the row ``first`` of the column on; ``before`` and ``behind`` them
    rows that have none."""

    first: int
    rows: int
    before: int
    behind: int


def shifted_column(stored: Stored, call: WindowCall, column: ColumnData, work: Work) -> ColumnData | None:
    """The column of a `lag` or `lead` in pieces; None where the rows' order, the offset or the types ask for more than that."""
    shift = _shift_of(call, work)
    device, has_nulls = work.device, column.validity is not None
    if shift is None or (call.ignore_nulls and has_nulls) or column.length == 0:
        return None
    default = call.args[2] if len(call.args) > 2 else None
    constant = None if default is None else constant_of(default)
    if default is not None and constant is None:
        return None
    other = None if constant is None or constant.value is None else constant_column(constant, stored, device)
    is_text = column.physical_type in (PhysicalType.STRING32, PhysicalType.STRING64)
    if (is_text and other is not None) or not all(_is_as(stored, c) for c in (column, other) if c is not None):
        return None
    physical_type = PhysicalType.STRING64 if is_text else column.physical_type
    if is_text:
        data: Buffer = _offsets(column, shift, device)
    else:
        words = words_a_row(column.physical_type)
        filled = np.zeros(words, column.data.dtype) if other is None else other.data.on(device)[:words]
        data = _around(column.data.on(device), filled, shift, words, device)
    validity: Buffer | None = None
    if has_nulls or stored.properties.nullable:
        one, lies = np.ones(1, np.uint8), column.validity
        valid = np.broadcast_to(one, column.length) if lies is None else lies.on(device)
        validity = _around(valid, np.zeros(1, np.uint8) if other is None else one, shift, 1, device)
    statistics = ColumnStatistics(bounds=stored.properties.bounds)
    dtype = stored.properties.dtype
    return replace(
        column, dtype=dtype, physical_type=physical_type, data=data, validity=validity, statistics=statistics
    )


def _shift_of(call: WindowCall, work: Work) -> _Shift | None:
    """Which rows a call takes; None where that is not the same for all rows, or they lie in another order."""
    o, device = work.ordered, work.device
    if call.function not in ("lag", "lead") or call.order or call.filter is not None:
        return None
    if o.rows is not None or o.partition_flags is not None or not device.is_cpu or device.is_counted:
        return None
    amount: int | None = 1
    if len(call.args) > 1:
        offset = constant_of(call.args[1])
        if offset is None:
            return None
        amount = offset.value
    if amount is None:
        return None
    away = max(min(-amount if call.function == "lag" else amount, o.count), -o.count)
    rows = o.count - abs(away)
    return _Shift(max(away, 0), rows, max(-away, 0), max(away, 0))


def _is_as(stored: Stored, column: ColumnData) -> bool:
    """Whether the values lie as those of the result are to lie; of text offsets may be wider there."""
    if column.dictionary is not stored.properties.dictionary:
        return False
    if column.physical_type in (PhysicalType.STRING32, PhysicalType.STRING64):
        return stored.physical_type.is_string
    return column.physical_type is stored.physical_type and column.physical_type is not PhysicalType.VIEW


def _around(values: Array, filled: Array, shift: _Shift, words: int, device: Device) -> InPieces:
    """Rows of ``words`` values each, with rows that have ``filled`` before and behind them."""

    def repeated(rows: int) -> Array:
        return np.broadcast_to(filled, rows) if words == 1 else np.tile(filled, rows)

    taken = values[words * shift.first : words * (shift.first + shift.rows)]
    pieces = [repeated(shift.before), taken, repeated(shift.behind)]
    return InPieces([p for p in pieces if p.size] or [taken], device)


def _offsets(column: ColumnData, shift: _Shift, device: Device) -> InPieces:
    """Offsets of texts with empty ones before and behind them."""
    offsets = column.data.on(device).astype(np.int64, copy=False)  # as kernels expect them of a frame
    taken = offsets[shift.first : shift.first + shift.rows + 1]
    pieces = [np.broadcast_to(taken[:1], shift.before), taken, np.broadcast_to(taken[-1:], shift.behind)]
    return InPieces([p for p in pieces if p.size], device)
