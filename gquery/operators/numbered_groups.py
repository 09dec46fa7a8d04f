"""Groups of rows numbered without a sort: by the addresses of their keys, or on a CPU by a hash table.

For integers that lie close together an array has a place for each value that the key may have. Rows count themselves there, and
leave the number of one of them. The places in use, numbered in their order, are the groups. Groups that a hash table tells apart
are numbered in the order of their first rows, so that they always come in the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.facts import MOST_ROW_IDS
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin import gathers, scans
from gquery.kernels.builtin.define import builtin_kernel, launch
from gquery.kernels.builtin.group_columns import numbers_of_slots
from gquery.kernels.builtin.key_groups import firsts_of, group_rows, tells_apart
from gquery.kernels.builtin.order_bits import bounds_of
from gquery.kernels.builtin.prefix_sums import group_numbers, offsets_of
from gquery.operators.leading_rows import mixed_radix, slots_of
from gquery.runtime.tuples import NamedTuple

_NO_ADDRESSES = (PhysicalType.F32, PhysicalType.F64, PhysicalType.I128)
_COUNT = builtin_kernel(
    "slots:*u32 counts:*u32 some:*u32",
    "slot = i64(slots[i])",
    "accumulate_add_u32(counts, slot, 1)",
    "store_u32(some, slot, i64(i))",
)


class Numbered(NamedTuple):
    """The group of each row (``of_rows``, uint32), where each group's rows would begin if they lay one after another, with the
    end of the last (``starts``, int64), and a row of each (``some_rows``, uint32)."""

    of_rows: Array
    starts: Array
    some_rows: Array


def numbered(columns: Sequence[ColumnData], rows: int, device: Device, workers: int = 1) -> Numbered | None:
    """The groups by keys that have rows; None where they have to be sorted. Several keys are numbered on a CPU alone."""
    found = (
        _slot_numbers(columns[0], device) if len(columns) == 1 else _slots_of_several(columns, rows, device, workers)
    )
    if found is None:
        is_hashed = tells_apart(device, rows, tuning.sorting.hashed_rows)
        return _by_first_rows(columns, rows, device, workers) if is_hashed else None
    slots, size = found
    counts, some = device.zeros(size, np.uint32), device.empty(size, np.uint32)
    launch(_COUNT, slots.size, slots, slots, counts, some)
    used = scans.compact(counts)
    if used.size == size:
        return Numbered(slots, offsets_of(counts), some)
    number = group_numbers(counts > 0, np.uint32) if device.is_cpu else numbers_of_slots(used, size)
    starts = offsets_of(gathers.gather(counts, used))
    return Numbered(gathers.gather(number, slots), starts, gathers.gather(some, used))


def _by_first_rows(columns: Sequence[ColumnData], rows: int, device: Device, workers: int) -> Numbered:
    numbers, some = group_rows(columns, rows, device, workers, device.task)
    firsts = firsts_of(numbers, int(some.size))
    are_first = device.zeros(rows, np.bool_)
    are_first[firsts] = True
    number = np.cumsum(are_first, dtype=np.uint32) - np.uint32(1)
    numbers = number[firsts][numbers]
    counts = np.bincount(numbers, minlength=int(some.size))
    return Numbered(numbers, offsets_of(counts), scans.compact(are_first))


def _slot_numbers(column: ColumnData, device: Device) -> tuple[Array, int] | None:
    """The slot of each row (uint32) by one key, and how many there are."""
    physical_type = column.physical_type
    if column.validity is not None or physical_type.is_string or physical_type in _NO_ADDRESSES:
        return None
    data = column.data.on(device)
    bounds = bounds_of(data)
    size = bounds.high - bounds.low + 1
    if size > min(tuning.sorting.addressed_slots * column.length, MOST_ROW_IDS):
        return None
    if device.is_cpu:
        return (data.astype(np.int64) - bounds.low).astype(np.uint32), size
    return mixed_radix([(column, bounds)], column.length, device), size


def _slots_of_several(
    columns: Sequence[ColumnData], rows: int, device: Device, workers: int
) -> tuple[Array, int] | None:
    slots = slots_of(columns, rows, 1, device, workers) if device.is_cpu else None
    return None if slots is None or slots.array is None else (slots.array, slots.count)
