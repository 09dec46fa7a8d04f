"""Values of Arrow arrays as Python objects: what `Relation.fetchall` hands out."""

from __future__ import annotations

import datetime
import decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.arrow_buffers import numpy_name, values_of
from gquery.columns.arrow_intervals import python_intervals

_EXACT = decimal.Context(prec=76)  # more digits than any decimal has: nothing is rounded
_FIRST_DAY = datetime.date(1970, 1, 1).toordinal()
_LEAST_DAY, _GREATEST_DAY = (d.toordinal() - _FIRST_DAY for d in (datetime.date.min, datetime.date.max))
_DAY = 86_400_000_000  # microseconds


def python_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """An array's values as Python objects; maps as dicts, as in DuckDB, and as lists of pairs where a key comes twice.
    OverflowError for dates that Python does not have.

    Arrow makes a scalar of each decimal, date and timestamp, which takes it 0.5 to 1 us; here these and numbers are read from the
    array's buffer. Told how maps are made, it does so for all other types as well, so it is told only where there may be maps.
    """
    kinds = pa.types
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in python_values(chunk)]
    if kinds.is_decimal128(array.type) and len(array) > 0:
        return _with_nulls(array, _decimals(array))
    if array.type == pa.month_day_nano_interval() and len(array) > 0:
        return _with_nulls(array, python_intervals(array))
    if kinds.is_date32(array.type) and len(array) > 0:
        return _with_nulls(array, _days(array, np.int32, "D", _LEAST_DAY, _GREATEST_DAY))
    if array.type == pa.timestamp("us") and len(array) > 0:
        return _with_nulls(array, _days(array, np.int64, "us", _LEAST_DAY * _DAY, (_GREATEST_DAY + 1) * _DAY - 1))
    if kinds.is_integer(array.type) or array.type in (pa.float32(), pa.float64()):
        return _with_nulls(array, values_of(array, numpy_name(array.type)).tolist()) if len(array) else []
    if not kinds.is_nested(array.type):
        return list(array.to_pylist())
    if _has_rows(array.type):
        return _nested(array)
    try:
        return list(array.to_pylist(maps_as_pydicts="strict"))
    except KeyError:
        return list(array.to_pylist())
    except TypeError:  # a key that Python cannot hash
        return _nested(array)


def _has_rows(type_: pa.DataType) -> bool:
    """Whether values hold structs without names, which are tuples."""
    is_row = pa.types.is_struct(type_) and type_.num_fields > 0 and not any(f.name for f in type_)
    return is_row or any(_has_rows(type_.field(n).type) for n in range(type_.num_fields))


def _nested(array: pa.Array) -> list[Any]:
    """Values in which there are structs without names; Arrow makes dictionaries alone, which have each name once."""
    kinds = pa.types
    there = array.is_valid().to_pylist()
    if kinds.is_struct(array.type):
        names = [f.name for f in array.type]
        values = list(zip(*(python_values(f) for f in array.flatten()), strict=True))
        made: list[Any] = values if not any(names) else [dict(zip(names, v, strict=True)) for v in values]
    else:
        inner, ends = python_values(array.values), array.offsets.to_pylist()
        made = [inner[a:b] for a, b in pairwise(ends)]
        if kinds.is_map(array.type):
            pairs = [
                [tuple(e.values()) for e in entries] if ok else [] for entries, ok in zip(made, there, strict=True)
            ]
            made = [_mapping(p) for p in pairs]
    return [v if ok else None for v, ok in zip(made, there, strict=True)]


def _mapping(pairs: list[tuple[Any, Any]]) -> Any:
    """A dictionary, or as DuckDB has it where Python cannot hash a key; a list of pairs where a key comes twice."""
    try:
        made = dict(pairs)
    except TypeError:
        return {"key": [k for k, _ in pairs], "value": [v for _, v in pairs]}
    return made if len(made) == len(pairs) else pairs


def _with_nulls(array: pa.Array, values: list[Any]) -> list[Any]:
    if array.null_count:
        first, last = array.offset, array.offset + len(array)
        bits = np.unpackbits(np.frombuffer(array.buffers()[0], np.uint8), count=last, bitorder="little")
        for n in np.flatnonzero(bits[first:] == 0).tolist():
            values[n] = None
    return values


def _decimals(array: pa.Array) -> list[Any]:
    words = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[::2], words[1::2]
    if np.array_equal(high, low >> 63):
        whole = low.tolist()
    else:
        whole = [(h << 64) + (n & 0xFFFF_FFFF_FFFF_FFFF) for h, n in zip(high.tolist(), low.tolist(), strict=True)]
    scaled, make, shift = _EXACT.scaleb, decimal.Decimal, -array.type.scale
    return [scaled(make(n), shift) for n in whole]


def _days(array: pa.Array, word: Any, unit: str, least: int, greatest: int) -> list[Any]:
    """Dates or timestamps from days or microseconds; by Arrow where one is not among Python's, which may be of a NULL alone."""
    numbers: Any = values_of(array, word)
    if numbers.min() < least or numbers.max() > greatest:
        return list(array.to_pylist())
    return list(numbers.astype(np.int64).view(f"datetime64[{unit}]").tolist())
