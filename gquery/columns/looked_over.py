"""Statistics of columns that are made already, where they lie: what `encode` finds out while it writes a column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gquery import tuning
from gquery.columns.arrow import export_column
from gquery.columns.encode import Integers, boolean_column, float_column, import_column, integer_column, wide_column
from gquery.columns.encode_strings import dictionary_limit
from gquery.columns.loops import InOrder, loops, on_gpus
from gquery.columns.statistics import Order, Sampled, minimum_and_maximum, order_of, sampled
from gquery.columns.table import ColumnData, ColumnStatistics, Dictionary
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.expression.types import Bounds, Field, Kind, PhysicalType, physical_type_for
from gquery.runtime.tuples import NamedTuple


class Rising(NamedTuple):
    """Whether the values of an array never fall, and whether each is greater than the one before."""

    never_falls: bool
    rises: bool


def looked_over(column: ColumnData, field: Field, narrow: bool) -> ColumnData:
    """The column with exact statistics, and without a validity where there is no NULL; integers in the narrowest type. What is
    not of numbers or codes of a small dictionary is encoded anew, from Arrow."""
    if _is_encoded_anew(column):
        return import_column(export_column(column), field, narrow)
    device, is_wide = column.data.devices[0], column.physical_type is PhysicalType.I128
    if device.is_cuda and not is_wide:
        with device.activate():
            return _where_it_lies(column)
    rows, nulls = column.length, 0
    if column.validity is not None:
        nulls = rows - int(np.count_nonzero(column.validity.host[:rows]))
    validity = column.validity if nulls else None
    if is_wide:
        low, high = column.data.host[: 2 * rows].reshape(-1, 2).T
        return wide_column(low, high, column.dtype, None if validity is None else validity.host[:rows], nulls)
    data = column.data.host[:rows]
    if column.dtype.is_float:
        return float_column(Buffer(data), column.dtype, column.physical_type, validity, nulls)
    bounds, order = Bounds(*minimum_and_maximum([data])), order_of(data, nulls)
    if column.dtype.kind is Kind.BOOLEAN:
        return boolean_column(Buffer(data), bounds, validity, nulls, order)
    if isinstance(column.dictionary, Dictionary):
        return replace(column, validity=validity, statistics=_of_codes(bounds, order, column, nulls))
    physical_type = column.physical_type
    if narrow and (narrowest := physical_type_for(bounds)).bytes < physical_type.bytes:
        data, physical_type = data.astype(narrowest.numpy), narrowest
    return integer_column(column.dtype, Integers(Buffer(data), physical_type, bounds, order), validity, nulls)


def bounds_and_order(array: Array) -> tuple[Bounds, Rising]:
    """The extremes of integers, of NumPy or CuPy, and their order; (0, 0) for none."""
    rows = tuning.ownership.reduced_rows
    parts = [array[at : at + rows + 1] for at in range(0, len(array), rows)]  # one row more, to compare across the border
    found = [_of_host(part) if isinstance(part, np.ndarray) else on_gpus().in_order(part) for part in parts]
    never_falls = all(f.falls == 0 for f in found)
    rises = never_falls and all(f.repeats == 0 for f in found)
    bounds = Bounds(min((f.least for f in found), default=0), max((f.most for f in found), default=0))
    return bounds, Rising(never_falls, rises)


def _of_host(values: np.ndarray) -> InOrder:
    """The same of an array on the host."""
    ahead, behind = values[1:], values[:-1]
    falls = int(np.count_nonzero(ahead < behind))
    repeats = int(np.count_nonzero(ahead == behind)) if falls == 0 else 0
    return InOrder(int(values.min()), int(values.max()), falls, repeats)


def sample_of(array: Array) -> Array:
    """Some values of an array, on the host."""
    stride = max(-(-len(array) // tuning.encoding.sample), 1)
    if isinstance(array, np.ndarray):
        return array[::stride]
    sample: Array = on_gpus().every(array, stride).get()
    return sample


def contiguous(array: Array) -> Array:
    """An array whose elements lie one after another: that one, if they do."""
    if array.flags.c_contiguous:
        return array
    found = loops()
    return array.copy() if found is None or isinstance(array, np.ndarray) else found.contiguous(array)


def unsigned_pairs(array: Array) -> Array:
    """Integers of 64 bits without a sign (uint64) as integers of 128 bits: two words each (int64), the low one first."""
    if not isinstance(array, np.ndarray):
        return on_gpus().pairs(array)
    words = array.view(np.int64).repeat(2)
    words[1::2] = 0
    return words


def _is_encoded_anew(column: ColumnData) -> bool:
    if column.dtype.is_string:
        known = column.dictionary
        return not isinstance(known, Dictionary) or len(known) > dictionary_limit(column.length)
    return column.dtype.is_opaque or column.dtype.kind is Kind.NULL


def _of_codes(bounds: Bounds, order: Order, column: ColumnData, nulls: int) -> ColumnStatistics:
    unique = order.is_sorted and order.runs == column.length
    distinct = order.runs if order.is_sorted else min(bounds.width, column.length - nulls)
    return ColumnStatistics(bounds, nulls, distinct, order.is_sorted, unique, longest_run=order.longest_run)


def _where_it_lies(column: ColumnData) -> ColumnData:
    """The same of a column on the current device, a GPU, by array functions there."""
    nulls = 0
    if column.validity is not None:
        validity = column.validity.on(column.validity.devices[0])
        nulls = column.length - on_gpus().count(validity[: column.length])
    if column.dtype.is_float:
        known = ColumnStatistics(column.statistics.bounds, nulls)
    else:
        array = column.data.on(column.data.devices[0])[: column.length]
        bounds, order = bounds_and_order(array)
        values = column.length - nulls
        seen = Sampled(values) if order.rises else sampled(sample_of(array), values, nulls)
        in_order = order if not nulls else Rising(False, False)
        known = ColumnStatistics(
            bounds, nulls, min(seen.distinct, bounds.width), in_order.never_falls, in_order.rises, frequent=seen.frequent
        )
    return replace(column, validity=column.validity if nulls else None, statistics=known)
