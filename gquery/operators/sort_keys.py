"""The keys of an order as what `kernels.builtin.order` sorts by: for each column of a frame its words, most significant first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.expr import Column, SortKey
from gquery.expression.types import INT64, Bounds, PhysicalType
from gquery.kernels.builtin import order, wide_arrays
from gquery.kernels.builtin.define import builtin_kernel, launch
from gquery.operators.base import Frame


def sort_keys(keys: Sequence[SortKey], frame: Frame, device: Device, workers: int = 1) -> list[order.OrderKey]:
    """What the rows of a frame are sorted by."""
    found: list[order.OrderKey] = []
    for key in keys:
        assert isinstance(key.expr, Column)
        column = frame.columns[key.expr.id]
        if column.validity is not None:
            found.append(order.Integers(column.validity.on(device), Bounds(0, 1), not key.nulls_first))
        found += key_parts(column, device, key.descending, workers)
    return found


def key_parts(column: ColumnData, device: Device, descending: bool = False, workers: int = 1) -> list[order.OrderKey]:
    """A column's values as sort keys, most significant first; all NULLs are the same value."""
    if column.physical_type.is_string:
        return [order.Text(column, device, descending)]
    data = column.data.on(device)
    match column.physical_type:
        case PhysicalType.F32 | PhysicalType.F64:
            return [order.Integers(_order_words(data, device, workers), None, descending)]
        case PhysicalType.I128:
            high, low = _wide_words(data, device)
            return [order.Integers(high, None, descending), order.Integers(low, None, descending)]
        case PhysicalType.BOOL:
            return [order.Integers(data, Bounds(0, 1), descending)]
        case _:
            known = column.statistics.bounds
            if column.validity is not None and known is not None:
                known = known | Bounds(0, 0)  # what lies under a NULL
            return [order.Integers(data, known, descending)]


_ORDER_WORDS = {
    dtype: builtin_kernel(f"values:*{element} words:*i64", "store_i64(words, i64(i), f64_order(f64(values[i])))")
    for dtype, element in ((np.dtype(np.float32), "f32"), (np.dtype(np.float64), "f64"))
}


WIDE_WORDS = builtin_kernel(
    "words:*i64 turn:i64 high:*i64 low:*i64",
    "word = shl_i64(i64(i), 1)",
    "store_i64(high, i64(i), i64(words[row_index(add_i64(word, 1))]))",
    "store_i64(low, i64(i), xor_i64(i64(words[row_index(word)]), turn))",
)


def _wide_words(data: Array, device: Device) -> tuple[Array, Array]:
    """The upper and the lower words of 128-bit integers, the lower as signed numbers of the same order."""
    if device.is_cpu:
        words = data.reshape(-1, 2)
        return words[:, 1].copy(), words[:, 0] ^ np.int64(INT64.low)
    high, low = device.empty(data.size // 2, np.int64), device.empty(data.size // 2, np.int64)
    launch(WIDE_WORDS, high.size, high, data, INT64.low, high, low)
    return high, low


def _order_words(values: Array, device: Device, workers: int) -> Array:
    """Floats as int64 of the same order; many in one pass. Not where memory is counted: the room for a sort is for its rows, and
    its numbers are scratch of array functions."""
    if device.is_cpu and (values.size < tuning.sorting.fused_rows or device.is_counted):
        return wide_arrays.f64_order(values.astype(np.float64))
    words = device.empty(values.size, np.int64)
    launch(_ORDER_WORDS[values.dtype], values.size, words, values, words, workers=workers)
    return words
