"""Arrow to columns: the narrowest physical type, a sorted dictionary where strings repeat, statistics on the way.

What a column holds is looked at once, here, and everything later rests on it: bounds choose physical types and leave
out overflow checks, a strictly sorted column is proved unique, a dictionary turns string work into integer work. Chunks
are read where they lie and written once, into the final array; a column that already has its narrowest layout is
viewed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.arrow import dtype_of
from gquery.columns.arrow_buffers import (
    bits_of,
    buffer_of,
    concatenate,
    numpy_name,
    validity_of,
    values_of,
    zero_nulls,
)
from gquery.columns.arrow_intervals import is_interval, normalised
from gquery.columns.encode_strings import import_strings, null_strings
from gquery.columns.opaque import Opaque
from gquery.columns.plain_nested import is_wrapped, plain_array, plain_type, unrolled
from gquery.columns.statistics import (
    Order,
    SampleOfParts,
    all_differ,
    estimate_distinct,
    may_all_differ,
    minimum_and_maximum,
    order_of,
    sampled,
)
from gquery.columns.table import ColumnData, ColumnStatistics, Frequent
from gquery.columns.zones import ValueRange, value_range
from gquery.device.buffer import Buffer
from gquery.errors import ConversionError
from gquery.expression.types import (
    BOOLEAN,
    INT64,
    INTERVAL,
    NULL,
    Bounds,
    DType,
    Field,
    Kind,
    PhysicalType,
    physical_type_for,
    type_bounds,
)
from gquery.runtime.arrow_compute import cast
from gquery.runtime.records import dataclass


def import_column(array: pa.ChunkedArray | pa.Array, field: Field, narrow: bool = True) -> ColumnData:
    """One Arrow column as a Column of the field's logical type. ``narrow=False`` keeps integers at Arrow's width, which
    views them where Arrow holds them without NULLs in one chunk."""
    if isinstance(array, pa.Array):
        array = pa.chunked_array([array])
    dtype = INTERVAL if field.dtype == INTERVAL else dtype_of(array.type)  # of calls they come as decimals
    if dtype.is_opaque:
        return _import_opaque(_plain(array, dtype, field), dtype, narrow)
    array = _unrolled(array)
    if dtype.is_string:
        return import_strings(array)
    if pa.types.is_dictionary(array.type):
        array = cast(array, array.type.value_type)
    if dtype.kind is Kind.NULL:
        return null_column(len(array))
    array = normalise(array, field)
    nulls = array.null_count
    validity = validity_of(array) if nulls else None
    if dtype.is_float:
        return _import_floats(array, dtype, validity, nulls)
    if dtype.kind is Kind.BOOLEAN:
        bits = zero_nulls(concatenate([bits_of(c, 1) for c in array.chunks], np.uint8), validity)
        low, high = (int(bits.min()), int(bits.max())) if len(bits) else (0, 0)
        return boolean_column(Buffer(bits), Bounds(low, high), buffer_of(validity), nulls, order_of(bits, nulls))
    return _import_integers(array, dtype, validity, nulls, narrow)


def null_column(rows: int, dtype: DType = NULL) -> ColumnData:
    """A column of NULLs."""
    if dtype.is_string:
        return null_strings(rows)
    zeros = Buffer(np.zeros(rows, np.uint8))
    physical_type = {
        Kind.NULL: PhysicalType.BOOL,
        Kind.BOOLEAN: PhysicalType.BOOL,
        Kind.REAL: PhysicalType.F32,
        Kind.DOUBLE: PhysicalType.F64,
    }
    chosen = physical_type.get(dtype.kind, PhysicalType.U8)
    data = zeros if chosen.bytes == 1 else Buffer(np.zeros(rows, chosen.numpy))
    bounds = Bounds(0, 0) if dtype.is_exact else None
    return ColumnData(dtype, chosen, rows, data, zeros, statistics=ColumnStatistics(bounds, rows, 0))


def _import_opaque(array: pa.ChunkedArray, dtype: DType, narrow: bool) -> ColumnData:
    """Numbers of rows, which stand for Arrow's values; where one is NULL is known."""
    rows = len(array)
    bounds = Bounds(0, max(rows - 1, 0))
    physical_type = physical_type_for(bounds) if narrow else PhysicalType.I64
    has_nulls = array.null_count > 0 or pa.types.is_run_end_encoded(array.type) or pa.types.is_dictionary(array.type)
    ok = concatenate([bits_of(c, 1) for c in array.is_valid().chunks], np.uint8) if has_nulls else np.ones(0, np.uint8)
    validity = None if ok.all() else ok
    data = zero_nulls(np.arange(rows, dtype=physical_type.numpy), validity)
    stats = ColumnStatistics(bounds, 0 if validity is None else rows - int(ok.sum()))
    return ColumnData(
        dtype, physical_type, rows, Buffer(data), buffer_of(validity), dictionary=Opaque(array), statistics=stats
    )


def _plain(array: pa.ChunkedArray, dtype: DType, field: Field) -> pa.ChunkedArray:
    """Nested values without the encodings of Arrow's that functions do not take."""
    if dtype.arrow is None or dtype.arrow == array.type:
        return array
    try:
        return pa.chunked_array([plain_array(c, dtype.arrow) for c in array.chunks], dtype.arrow)
    except pa.ArrowInvalid as error:
        raise _inexact(array.type, field, error) from None


def _unrolled(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Run-end encoded values one a row, Arrow's bool8 as booleans, dictionaries of both as such; any other array as it is."""
    if pa.types.is_run_end_encoded(array.type):
        chunks = [unrolled(c) for c in array.chunks]
        array = pa.chunked_array(chunks, chunks[0].type if chunks else array.type.value_type)
    if pa.types.is_dictionary(array.type) and is_wrapped(array.type):
        type_ = plain_type(array.type)
        array = pa.chunked_array([plain_array(c, type_) for c in array.chunks], type_)
    if isinstance(array.type, pa.Bool8Type):
        return pa.chunked_array([c.storage for c in array.chunks], pa.int8()).cast(pa.bool_())
    return array


# ---- numbers -----------------------------------------------------------------------------------------------------


def normalise(array: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    """Units and widths that Arrow alone has become ours: timestamps and times in microseconds (UTC where there was a zone), dates
    in days, decimals in 128 bits, half floats as floats, intervals as their
    physical values."""
    type_ = array.type
    try:
        if pa.types.is_timestamp(type_) and type_.unit != "us":
            return cast(array, pa.timestamp("us", type_.tz))
        if pa.types.is_time(type_) and type_.unit != "us":
            return cast(array, pa.time64("us"))
        if is_interval(type_):
            return normalised(array)
        if pa.types.is_date64(type_):
            return cast(array, pa.date32())
        if pa.types.is_decimal256(type_):
            return cast(array, pa.decimal128(type_.precision, type_.scale))
        if pa.types.is_float16(type_):
            return cast(array, pa.float32())
    except pa.ArrowInvalid as error:
        raise _inexact(type_, field, error) from None
    return array


def _inexact(type_: pa.DataType, field: Field, error: Exception) -> ConversionError:
    return ConversionError(
        f'Column "{field.name}" ({type_}) cannot be held exactly: {error}. SELECT * EXCLUDE ({field.name}) leaves it out'
    )


def _import_floats(array: pa.ChunkedArray, dtype: DType, validity: Any, nulls: int) -> ColumnData:
    physical_type = PhysicalType.F32 if dtype.kind is Kind.REAL else PhysicalType.F64
    parts = [values_of(c, physical_type.numpy) for c in array.chunks]
    values = zero_nulls(concatenate(parts, np.dtype(physical_type.numpy)), validity)
    return float_column(Buffer(values), dtype, physical_type, buffer_of(validity), nulls)


def float_column(
    data: Buffer,
    dtype: DType,
    physical_type: PhysicalType,
    validity: Buffer | None,
    nulls: int,
    sample: SampleOfParts | None = None,
) -> ColumnData:
    """A column around an array of floats, with an estimate of how many are distinct: by a sample, if there is one."""
    rows = data.length - nulls
    distinct = estimate_distinct(data.host, rows) if sample is None else sample.estimate(rows).distinct
    return ColumnData(
        dtype, physical_type, data.length, data, validity, statistics=ColumnStatistics(None, nulls, distinct)
    )


def boolean_column(data: Buffer, bounds: Bounds, validity: Buffer | None, nulls: int, order: Order) -> ColumnData:
    """A column around bytes of 0 and 1."""
    unique = order.is_sorted and order.runs == data.length
    stats = ColumnStatistics(bounds, nulls, bounds.width, order.is_sorted, unique, longest_run=order.longest_run)
    return ColumnData(BOOLEAN, PhysicalType.BOOL, data.length, data, validity, statistics=stats)


def _import_integers(array: pa.ChunkedArray, dtype: DType, validity: Any, nulls: int, narrow: bool) -> ColumnData:
    rows = len(array)
    parts, high_words = _integer_words(array)
    if validity is not None:  # Arrow leaves anything under a NULL
        ok, at, cleared = validity.view(np.bool_), 0, []
        for part in parts:
            cleared.append(np.where(ok[at : at + len(part)], part, part.dtype.type(0)))
            at += len(part)
        parts = cleared
        if high_words is not None:
            high_words = zero_nulls(np.array(high_words), validity)
    if high_words is not None:
        return wide_column(concatenate(parts, np.int64), high_words, dtype, validity, nulls)
    low, high = minimum_and_maximum(parts)
    bounds = Bounds(low, high)
    if not bounds.within(INT64):  # UBIGINT in its upper half
        words = concatenate(parts, np.uint64)
        return wide_column(words.view(np.int64), np.zeros(rows, np.int64), dtype, validity, nulls)
    physical_type = physical_type_for(bounds if narrow else type_bounds(dtype) or bounds)
    if physical_type is PhysicalType.I128:
        physical_type = PhysicalType.I64
    values = concatenate(parts, np.dtype(physical_type.numpy))
    return _integer_column(values, dtype, physical_type, bounds, validity, nulls)


@dataclass(frozen=True)
class Integers:
    """An array of integers, 0 under NULL, whose bounds and order are known."""

    data: Buffer
    physical_type: PhysicalType
    bounds: Bounds
    order: Order
    found: ValueRange | None = None  # where it is known already
    sample: SampleOfParts | None = None  # likewise


def integer_column(dtype: DType, integers: Integers, validity: Buffer | None, nulls: int) -> ColumnData:
    """A column around integers, with the rest of its statistics."""
    data, bounds, order = integers.data, integers.bounds, integers.order
    unique = order.is_sorted and order.runs == data.length
    rows, sample = data.length, integers.sample
    frequent: Frequent = ()
    if not unique:
        seen = sampled(data.host, rows - nulls, nulls) if sample is None else sample.estimate(rows - nulls, nulls)
        distinct, frequent = min(seen.distinct, bounds.width), seen.frequent
    if order.is_sorted:  # equal values lie together
        distinct = order.runs
    else:
        unique = distinct == rows and nulls == 0 and may_all_differ(rows, bounds) and all_differ(data.host, bounds)
    found = integers.found
    if found is None:
        found = value_range(data.host, validity.host if validity is not None and nulls else None)
    stats = ColumnStatistics(
        bounds, nulls, distinct, order.is_sorted, unique, found.bounds, found.zones, order.longest_run, frequent
    )
    return ColumnData(dtype, integers.physical_type, data.length, data, validity, statistics=stats)


def _integer_column(
    values: Any, dtype: DType, physical_type: PhysicalType, bounds: Bounds, validity: Any, nulls: int
) -> ColumnData:
    integers = Integers(Buffer(values), physical_type, bounds, order_of(values, nulls))
    return integer_column(dtype, integers, buffer_of(validity), nulls)


def wide_column(low_words: Any, high_words: Any, dtype: DType, validity: Any, nulls: int) -> ColumnData:
    """128-bit integers: narrowed where every high word only repeats the sign, else two words a row."""
    rows = len(low_words)
    if rows == 0 or bool(np.array_equal(high_words, low_words >> 63)):
        low, high = minimum_and_maximum([low_words])
        physical_type = physical_type_for(Bounds(low, high))
        return _integer_column(
            low_words.astype(physical_type.numpy), dtype, physical_type, Bounds(low, high), validity, nulls
        )
    bounds = Bounds(_extreme(high_words, low_words, np.min), _extreme(high_words, low_words, np.max))
    words = np.empty((rows, 2), np.int64)
    words[:, 0] = low_words
    words[:, 1] = high_words
    distinct = estimate_distinct(low_words, rows - nulls)
    stats = ColumnStatistics(bounds, nulls, distinct)
    return ColumnData(dtype, PhysicalType.I128, rows, Buffer(words.reshape(-1)), buffer_of(validity), statistics=stats)


def _extreme(high_words: Any, low_words: Any, pick: Callable[[Any], Any]) -> int:
    top = pick(high_words)
    return (int(top) << 64) + int(pick(low_words[high_words == top].view(np.uint64)))


def _integer_words(array: pa.ChunkedArray) -> tuple[list[Any], Any]:
    """The chunks' integers as views, and for decimals that need more than 64 bits all high words."""
    type_ = array.type
    if not pa.types.is_decimal128(type_):
        return [values_of(c, numpy_name(type_)) for c in array.chunks], None
    pairs = [values_of(c, "i8", 2).reshape(-1, 2) for c in array.chunks]
    lows = [p[:, 0] for p in pairs]
    if type_.precision <= 18:
        return lows, None
    return lows, concatenate([p[:, 1] for p in pairs], np.int64)
