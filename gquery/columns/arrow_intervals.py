"""Intervals in Arrow: months, days and nanoseconds as its own type has them, or durations.

Arrow counts nanoseconds in 64 bits, which is 292 years: what gquery holds in microseconds may not fit and is refused. So calls
over arrays, which casts to text are, take intervals as they lie here: their physical values, as decimals (`as_decimals`).
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.arrow_buffers import arrow_buffer, bits_of, values_of
from gquery.columns.table import ColumnData
from gquery.errors import ConversionError
from gquery.expression.facts import DAYS_PER_MONTH, MICROS_PER_DAY
from gquery.expression.interval import split_words
from gquery.expression.types import PhysicalType, decimal
from gquery.runtime.arrow_compute import cast
from gquery.runtime.records import replace

AS_DECIMALS = pa.decimal128(38, 0)
_PARTS = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
_MOST_MICROS = (2**63 - 1) // 1000


def is_interval(type_: pa.DataType) -> bool:
    """Whether an Arrow type holds what is an INTERVAL here."""
    return bool(type_ == pa.month_day_nano_interval() or pa.types.is_duration(type_))


def normalised(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Physical values: microseconds alone of durations, else decimals. ArrowInvalid where seconds do not fit."""
    type_ = array.type
    is_cut = pa.types.is_duration(type_) and type_.unit == "ns"
    if pa.types.is_duration(type_) and not is_cut:
        return cast(array, pa.duration("us"))
    convert = _without_nanoseconds if is_cut else packed
    if isinstance(array, pa.Array):
        return convert(array)
    return pa.chunked_array([convert(c) for c in array.chunks], pa.duration("us") if is_cut else AS_DECIMALS)


def _without_nanoseconds(array: pa.Array) -> pa.Array:
    nanos = values_of(array, "i8")
    return _array(pa.duration("us"), np.where(nanos < 0, -(-nanos // 1000), nanos // 1000), array)


def packed(array: pa.Array) -> pa.Array:
    """Months, days and nanoseconds as physical values, which are decimals."""
    found = values_of(array, "u1", 16).view(_PARTS)
    nanos = found["nanos"]
    micros = np.where(nanos < 0, -(-nanos // 1000), nanos // 1000)
    words = np.empty((len(found), 2), np.int64)
    words[:, 0] = micros
    words[:, 1] = (found["months"].astype(np.int64) << 32) + found["days"] + (micros >> 63)
    return _array(AS_DECIMALS, words.reshape(-1), array)


def of_physical(values: Sequence[int | None]) -> pa.Array:
    """Physical values in Python as decimals; not checked, as more months than have 38 digits are intervals too."""
    words = b"".join([(v or 0).to_bytes(16, "little", signed=True) for v in values])
    ok = pa.array([v is not None for v in values], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(AS_DECIMALS, len(values), [ok, pa.py_buffer(words)])


def _array(type_: pa.DataType, words: Any, like: pa.Array) -> pa.Array:
    """Words as an array that is NULL where another one is."""
    ok = pa.py_buffer(np.packbits(bits_of(like, 0), bitorder="little")) if like.null_count else None
    return pa.Array.from_buffers(type_, len(like), [ok, arrow_buffer(words)], -1 if like.null_count else 0)


def as_decimals(column: ColumnData) -> ColumnData:
    """A column as one of whole numbers: what `export_column` makes of it is what calls over arrays take."""
    return replace(column, dtype=decimal(38, 0))


def parts_of(column: ColumnData, data: Any) -> tuple[Any, Any, Any]:
    """Months, days and microseconds of a column whose data is given."""
    rows = column.length
    if column.physical_type is not PhysicalType.I128:
        zeros = np.zeros(rows, np.int64)
        return zeros, zeros, data[:rows].astype(np.int64)
    return split_words(data[: 2 * rows].reshape(-1, 2))


def export_interval(column: ColumnData, data: Any, ok: Any) -> Any:
    """The buffer of Arrow's months, days and nanoseconds; ConversionError where these do not fit."""
    months, days, micros = parts_of(column, data)
    if ok is not None:
        micros = np.where(ok, micros, 0)
    if bool((np.abs(micros) > _MOST_MICROS).any()):
        raise ConversionError(
            "an INTERVAL has more than 292 years of time beside its days, which Arrow's nanoseconds do not hold: "
            "CAST it to VARCHAR, or split it with to_days"
        )
    made = np.zeros(column.length, _PARTS)
    made["months"], made["days"], made["nanos"] = months, days, micros * 1000
    return arrow_buffer(made)


def total_micros(months: Any, days: Any, micros: Any) -> Any:
    """Microseconds, a month being 30 days; OverflowError where they do not fit 64 bits."""
    whole = months.astype(np.int64) * DAYS_PER_MONTH + days
    total = whole * MICROS_PER_DAY + micros
    if bool((np.abs(whole * float(MICROS_PER_DAY) + micros) > 2.0**63 - 1025).any()):
        raise OverflowError("an INTERVAL does not fit 64 bits of microseconds")
    return total


def durations(array: pa.Array) -> pa.Array:
    """Months, days and nanoseconds as durations; ConversionError where one does not fit."""
    found = values_of(array, "u1", 16).view(_PARTS)
    try:
        total = total_micros(found["months"], found["days"], found["nanos"] // 1000)
    except OverflowError as error:
        raise ConversionError(str(error)) from None
    return _array(pa.duration("us"), total, array)


def python_intervals(array: pa.Array) -> list[datetime.timedelta]:
    """Intervals as Python has durations, anything for a NULL: a month is 30 days."""
    found = values_of(array, "u1", 16).view(_PARTS)
    days = found["months"].astype(np.int64) * DAYS_PER_MONTH + found["days"]
    micros = found["nanos"] // 1000
    make = datetime.timedelta
    return [make(d, 0, m) for d, m in zip(days.tolist(), micros.tolist(), strict=True)]
