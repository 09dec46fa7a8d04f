"""Rows that may be the first of their partition, found without a sort: what is behind them has few rows left to put in order.

A partition's slot is its key, where keys are integers that lie close together; several keys are one number of several places.
Where they are not, the rows are sorted by their keys if that is still a gain (`numbered`), or no row is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.expr import Column, SortKey
from gquery.expression.types import INT64, Bounds, PhysicalType
from gquery.kernels.bindings import Argument
from gquery.kernels.builtin import order, scans
from gquery.kernels.builtin.best_rows import flags_until
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, element_word, launch
from gquery.kernels.builtin.elements import put
from gquery.kernels.builtin.extremes import extremes
from gquery.kernels.builtin.gathers import gather, take
from gquery.kernels.builtin.leading import Slots, Values, bounds_of, flags_within
from gquery.kernels.builtin.prefix_sums import group_numbers
from gquery.kernels.readback import read_scalar
from gquery.operators.base import Frame
from gquery.operators.sort_keys import sort_keys

_NOT_ADDRESSED = (PhysicalType.F32, PhysicalType.F64, PhysicalType.I128)


def leading_rows(
    frame: Frame, partition: Sequence[Column], key: SortKey, first: int, device: Device, workers: int = 1
) -> Array | None:
    """Rows (uint32, ascending) among which all are whose rank within their partition is at most ``first``; None where it is no
    gain to look for them, or not known how."""
    assert isinstance(key.expr, Column)
    if frame.rows < tuning.sorting.leading_least:
        return None
    slots = slots_of([frame.columns[c.id] for c in partition], frame.rows, first, device, workers)
    if slots is None:
        return None
    null = INT64.low if key.nulls_first else INT64.high
    values = Values(frame.columns[key.expr.id], device, key.descending, null)
    found = _within(values, slots, first, workers)
    return None if found.size > tuning.sorting.leading_selectivity * frame.rows else found


def first_rows(frame: Frame, key: SortKey, wanted: int, device: Device, workers: int) -> Array | None:
    """The same of one partition that has all rows, on a CPU: the bound is that of a sample, which so many rows do not exceed."""
    limits = tuning.sorting
    sample = max(limits.leading_sample, limits.candidate_rows * wanted)
    if wanted == 0 or frame.rows < limits.candidate_rows * sample:
        return None
    assert isinstance(key.expr, Column)
    some = np.arange(0, frame.rows, frame.rows // sample, dtype=np.uint32)
    if frame.columns[key.expr.id].physical_type.is_string:
        return _first_texts(frame, key, some, wanted, device, workers)
    null = INT64.low if key.nulls_first else INT64.high
    values = Values(frame.columns[key.expr.id], device, key.descending, null)
    bound = np.partition(values.integers(some), wanted - 1)[wanted - 1 : wanted]
    found = scans.compact(flags_within(values, Slots(None, 0, 1), 1, np.ascontiguousarray(bound), workers))
    return None if found.size > limits.leading_selectivity * frame.rows else found


def _first_texts(frame: Frame, key: SortKey, some: Array, wanted: int, device: Device, workers: int) -> Array | None:
    """The same of texts, which may begin alike: they are compared with the last of the first ones of the sample."""
    assert isinstance(key.expr, Column)
    column = frame.columns[key.expr.id]
    sample = Frame({key.expr.id: take(column, some, device)}, int(some.size))
    row = int(some[order.top_k(sort_keys([key], sample, device), wanted)[-1]])
    if column.validity is not None and not column.validity.on(device)[row]:
        return None
    found = scans.compact(flags_until(column, row, key.descending, key.nulls_first, device, workers))
    return None if found.size > tuning.sorting.leading_selectivity * frame.rows else found


def least_texts(values: Values, slots: Slots, workers: int) -> Array:
    """Rows (uint32, ascending) among which the first of each slot are, and few others, of texts or 128-bit integers; of slots
    without a value all rows."""
    found = _within(values, slots, 1, workers)
    word, few = 1, tuning.sorting.leading_ties * slots.count
    while values.column.physical_type.is_string and found.size > few and word < tuning.sorting.text_words:
        words, own = values.integers(found, word), slots.of(found)
        column = ColumnData(values.column.dtype, PhysicalType.I64, int(found.size), Buffer(words, values.device))
        found = gather(found, _within(Values(column, values.device), own, 1, workers))
        word += 1
    return found


def _within(values: Values, slots: Slots, first: int, workers: int) -> Array:
    bounds = bounds_of(values, slots, first, workers)
    return scans.compact(flags_within(values, slots, first, bounds, workers))


def slots_of(columns: Sequence[ColumnData], rows: int, first: int, device: Device, workers: int = 1) -> Slots | None:
    """The slots of the rows by key columns; None where they are no integers, or lie too far apart for so many rows."""
    most = rows // (first * tuning.sorting.leading_rows)
    parts: list[tuple[ColumnData, Bounds]] = []
    count = 1
    for column in columns:
        if column.physical_type.is_string or column.physical_type in _NOT_ADDRESSED:
            return None
        bounds = _bounds(column, most, device)
        count *= bounds.width + (column.validity is not None)
        if count > most:
            return None
        parts.append((column, bounds))
    if not parts:
        return Slots(None, 0, 1)
    if len(parts) == 1 and parts[0][0].validity is None:
        return Slots(parts[0][0].data.on(device), parts[0][1].low, count)
    return Slots(mixed_radix(parts, rows, device, workers), 0, count)


def mixed_radix(parts: Sequence[tuple[ColumnData, Bounds]], rows: int, device: Device, workers: int = 1) -> Array:
    """The keys of each row as one number (uint32): a place for each key, and the last of its values for NULL."""
    made: Array = device.empty(rows, np.uint32)
    given: list[Argument] = []
    for column, bounds in parts:
        valid = None if column.validity is None else column.validity.on(device)
        given += [column.data.on(device), valid, bounds.low, bounds.width, bounds.width + (valid is not None)]
    kernel = _numbering(tuple([(element_word(c.data.on(device)), c.validity is not None) for c, _ in parts]))
    launch(kernel, rows, made, *given, made, workers=workers)
    return made


@cache
def _numbering(keys: tuple[tuple[str, bool], ...]) -> BuiltinKernel:
    parameters, lines = [], ["number = i64(0)"]
    for n, (element, nullable) in enumerate(keys):
        parameters.append(f"c{n}:*{element} valid{n}:*u8 low{n}:i64 null{n}:i64 width{n}:i64")
        lines.append(f"digit = sub_i64(i64(c{n}[i]), low{n})")
        if nullable:
            lines += [f"if eq_i64(i64(valid{n}[i]), 0):", f"    digit = null{n}"]
        lines.append(f"number = add_i64(mul_i64(number, width{n}), digit)")
    return builtin_kernel(" ".join([*parameters, "made:*u32"]), *lines, "store_u32(made, i64(i), number)")


def numbered(frame: Frame, keys: Sequence[Column], device: Device) -> Slots:
    """The slots of the rows by keys of any type: their groups in order."""
    rows, starts = order.sort_starts(sort_keys([SortKey(c) for c in keys], frame, device))
    numbers = device.xp.empty(frame.rows, np.uint32)
    found = group_numbers(starts, np.uint32)
    put(numbers, rows, found)
    return Slots(numbers, 0, read_scalar(found[-1]) + 1)


def _bounds(column: ColumnData, most: int, device: Device) -> Bounds:
    """Within what the values lie, those under NULLs among them; looked up where what is known is not close enough."""
    known = Bounds(0, 1) if column.physical_type is PhysicalType.BOOL else column.statistics.bounds
    if known is not None and known.width <= most:
        return known if column.validity is None else known | Bounds(0, 0)
    data = column.data.on(device)
    low, high = extremes(data)
    return Bounds(read_scalar(low), read_scalar(high))
