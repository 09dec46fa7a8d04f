"""Arrow types for logical types and back, and columns to Arrow arrays.

A result leaves gquery here: physical types widen to the logical type, codes become strings, validity bytes become a
bitmap. Only the host side is needed: a column on a GPU is copied when its buffers are asked for on the CPU.
"""

from __future__ import annotations

import ctypes
from array import array as int32s
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow_buffers import arrow_buffer
from gquery.columns.arrow_intervals import AS_DECIMALS, as_decimals, export_interval, is_interval
from gquery.columns.arrow_names import sql_name
from gquery.columns.opaque import Opaque
from gquery.columns.plain_nested import is_encoded, plain_type
from gquery.columns.table import ColumnData, Dictionary, Table
from gquery.device.buffer import InPieces
from gquery.expression.nested_types import from_outside, known_type, list_of, map_of, struct_of
from gquery.expression.types import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NULL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TINYINT,
    UBIGINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
    VARCHAR,
    DType,
    Field,
    Kind,
    PhysicalType,
    Schema,
    decimal,
)
from gquery.runtime.arrow_compute import cast, take

_FROM_ARROW: dict[Any, DType] = {
    pa.null(): NULL, pa.bool_(): BOOLEAN, pa.int8(): TINYINT, pa.int16(): SMALLINT, pa.int32(): INTEGER,
    pa.int64(): BIGINT, pa.uint8(): UTINYINT, pa.uint16(): USMALLINT, pa.uint32(): UINTEGER, pa.uint64(): UBIGINT,
    pa.float16(): REAL, pa.float32(): REAL, pa.float64(): DOUBLE, pa.date32(): DATE, pa.date64(): DATE,
    pa.string(): VARCHAR, pa.large_string(): VARCHAR, pa.string_view(): VARCHAR,
}  # fmt: skip
_TO_ARROW: dict[Kind, Any] = {
    Kind.NULL: pa.null(), Kind.BOOLEAN: pa.bool_(), Kind.TINYINT: pa.int8(), Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(), Kind.BIGINT: pa.int64(), Kind.UTINYINT: pa.uint8(), Kind.USMALLINT: pa.uint16(),
    Kind.UINTEGER: pa.uint32(), Kind.UBIGINT: pa.uint64(), Kind.REAL: pa.float32(), Kind.DOUBLE: pa.float64(),
    Kind.DATE: pa.date32(), Kind.TIMESTAMP: pa.timestamp("us"), Kind.VARCHAR: pa.string(),
    Kind.INTERVAL: pa.month_day_nano_interval(), Kind.TIME: pa.time64("us"),
    Kind.BLOB: pa.binary(),
}  # fmt: skip

_CODES = {
    np.dtype(str(t)): t for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.int8(), pa.int16(), pa.int32(), pa.int64())
}
_WORDS: dict[Kind, Any] = {  # what Arrow has numbers, dates and times in
    Kind.TINYINT: np.dtype("int8"), Kind.SMALLINT: np.dtype("int16"), Kind.INTEGER: np.dtype("int32"),
    Kind.BIGINT: np.dtype("int64"), Kind.UTINYINT: np.dtype("uint8"), Kind.USMALLINT: np.dtype("uint16"),
    Kind.UINTEGER: np.dtype("uint32"), Kind.REAL: np.dtype("float32"), Kind.DOUBLE: np.dtype("float64"),
    Kind.DATE: np.dtype("int32"), Kind.TIMESTAMP: np.dtype("int64"), Kind.TIMESTAMPTZ: np.dtype("int64"),
    Kind.TIME: np.dtype("int64"),
}  # fmt: skip


def dtype_of(type_: pa.DataType) -> DType:
    """The logical type of an Arrow type: LIST, STRUCT and MAP of types that gquery computes with, an opaque one for types with
    which it does not."""
    if isinstance(type_, pa.BaseExtensionType):  # those that are written in Python have no hash
        return BOOLEAN if isinstance(type_, pa.Bool8Type) else DType(Kind.OPAQUE, name=sql_name(type_), arrow=type_)
    known = _FROM_ARROW.get(type_)
    if known is not None:
        return known
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        values = dtype_of(type_.value_type)
        if not values.is_opaque or values.kind is Kind.BLOB:
            return values
    if pa.types.is_decimal(type_) and type_.precision <= 38 and 0 <= type_.scale <= type_.precision:
        return decimal(type_.precision, type_.scale)
    if is_interval(type_):
        return INTERVAL
    if pa.types.is_time(type_):
        return TIME
    if pa.types.is_timestamp(type_):
        return TIMESTAMP if type_.tz is None else DType(Kind.TIMESTAMPTZ, zone=type_.tz)
    if _is_blob(type_):
        return from_outside(BLOB, type_)
    return _nested(type_) or DType(
        Kind.OPAQUE, name=sql_name(type_), arrow=plain_type(type_) if is_encoded(type_) else type_
    )


def _is_blob(type_: pa.DataType) -> bool:
    is_ = pa.types
    has_length = is_.is_binary(type_) or is_.is_large_binary(type_) or is_.is_binary_view(type_)
    return bool(has_length or is_.is_fixed_size_binary(type_))


def _nested(type_: pa.DataType) -> DType | None:
    """The type of lists, structs and maps that functions look into; None for any other type."""
    is_, type_ = pa.types, plain_type(type_)
    if is_.is_list(type_) or is_.is_large_list(type_):
        element = _inner(type_.value_type)
        return None if element is None else from_outside(list_of(element), type_)
    if is_.is_map(type_):
        key, value = _inner(type_.key_type), _inner(type_.item_type)
        return None if key is None or value is None else from_outside(map_of(key, value), type_)
    if not is_.is_struct(type_):
        return None
    names = [f.name for f in type_]
    types = [_inner(f.type) for f in type_]
    known = [t for t in types if t is not None]
    if not names or len(known) < len(types) or (any(names) and len({n.lower() for n in names}) < len(names)):
        return None
    return from_outside(struct_of(list(zip(names, known, strict=True))), type_)


def _inner(type_: pa.DataType) -> DType | None:
    """The type of values within others that functions look at; None for any other."""
    found = dtype_of(type_)
    is_known = (not isinstance(type_, pa.BaseExtensionType) and type_ in _FROM_ARROW) or pa.types.is_decimal128(type_)
    is_known |= pa.types.is_timestamp(type_) and type_.unit == "us"
    return found if (found.is_nested or is_known) and found.kind is not Kind.BLOB else None


def arrow_type(dtype: DType) -> pa.DataType:
    """The Arrow type of a result column."""
    if dtype.is_opaque and dtype.arrow is not None:
        return dtype.arrow
    if dtype.element is not None:
        return pa.list_(arrow_type(dtype.element))
    if dtype.is_struct:
        return pa.struct([pa.field(name, arrow_type(t)) for name, t in dtype.fields])
    if dtype.kind is Kind.MAP:
        key, value = (t for _, t in dtype.fields)
        return pa.map_(arrow_type(known_type(key)), arrow_type(value))  # no key is NULL, so that there is no such type
    if dtype.kind is Kind.TIMESTAMPTZ:
        return pa.timestamp("us", dtype.zone)
    return pa.decimal128(dtype.precision, dtype.scale) if dtype.is_decimal else _TO_ARROW[dtype.kind]


def carried_type(dtype: DType) -> pa.DataType:
    """The Arrow type of values that calls over arrays take and make: a result's, but for intervals, which may not fit it."""
    return AS_DECIMALS if dtype.kind is Kind.INTERVAL else arrow_type(dtype)


def carried(column: ColumnData) -> pa.Array | pa.ChunkedArray:
    """A column as such calls take it."""
    return export_column(as_decimals(column) if column.dtype.kind is Kind.INTERVAL else column)


def import_schema(schema: pa.Schema) -> Schema:
    """The fields of an Arrow schema."""
    return Schema(tuple(Field(f.name, dtype_of(f.type), f.nullable) for f in schema))


def export_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a result: names, types and nullability of its fields."""
    return pa.schema([pa.field(f.name, arrow_type(f.dtype), f.nullable) for f in schema])


def export_table(table: Table) -> pa.Table:
    """A table with the Arrow types of its logical types, column names as they are (a result may repeat one)."""
    arrays = [_in_chunks(c) for c in table.columns]
    if not arrays:
        return pa.table({"": pa.nulls(table.rows)}).select([])
    return pa.Table.from_arrays(arrays, schema=_schema_of(table.schema, arrays))


def _in_chunks(column: ColumnData) -> pa.Array | pa.ChunkedArray:
    """A column as `export_column` gives it; one whose values lie in pieces in as many chunks, so that none is copied."""
    data = column.data
    if not isinstance(data, InPieces) or column.physical_type.is_string or column.physical_type is PhysicalType.I128:
        return export_column(column)
    ends = [0, *accumulate(data.lengths)]
    if len(ends) <= 2 or column.dtype.is_opaque or column.dtype.is_nested:
        return export_column(column)
    return pa.chunked_array([export_column(column.slice(low, high)) for low, high in pairwise(ends)])


def _schema_of(schema: Schema, arrays: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Schema:
    """The Arrow schema of a result with these columns. A query that comes again has the one that it had."""
    found = [(a.type, a.null_count > 0) for a in arrays]
    known = schema.exported.get("result")
    if known is None or known[0] != found:
        fields = [pa.field(f.name, t, f.nullable or nulls) for f, (t, nulls) in zip(schema, found, strict=True)]
        known = schema.exported["result"] = found, pa.schema(fields)
    return known[1]


def export_column(column: ColumnData) -> pa.Array | pa.ChunkedArray:
    """A column as an Arrow array of its logical type's Arrow type, in chunks where it is opaque."""
    rows = column.length
    ok = None if column.validity is None else column.validity.host[:rows].view(np.bool_)
    if ok is not None and ok.all():
        ok = None
    data = column.data.host
    match column.dtype.kind:
        case Kind.NULL:
            return pa.nulls(rows)
        case Kind.OPAQUE | Kind.LIST | Kind.STRUCT | Kind.MAP | Kind.BLOB:
            return _export_opaque(column, data, ok)
        case Kind.VARCHAR:
            return _export_strings(column, data, ok)
        case Kind.BOOLEAN:
            return _array(pa.bool_(), rows, arrow_buffer(np.packbits(data[:rows] != 0, bitorder="little")), ok)
        case Kind.DECIMAL:
            return _array(arrow_type(column.dtype), rows, arrow_buffer(_words128(column, data)), ok)
        case Kind.UBIGINT:
            words = data[: 2 * rows : 2].view(np.uint64) if column.physical_type is PhysicalType.I128 else data[:rows]
            return _array(pa.uint64(), rows, arrow_buffer(words.astype(np.uint64, copy=False)), ok)
        case Kind.INTERVAL:
            return _array(arrow_type(column.dtype), rows, export_interval(column, data, ok), ok)
        case (
            Kind.TINYINT | Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT | Kind.UTINYINT | Kind.USMALLINT | Kind.UINTEGER
            | Kind.REAL | Kind.DOUBLE | Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ
            | Kind.TIME
        ):  # fmt: skip
            if column.physical_type is PhysicalType.I128:
                data = data[::2]
            words = data[:rows].astype(_WORDS[column.dtype.kind], copy=False)
            return _array(arrow_type(column.dtype), rows, arrow_buffer(words), ok)
        case _:
            assert_never(column.dtype.kind)


def _export_opaque(column: ColumnData, data: Any, ok: Any) -> pa.Array | pa.ChunkedArray:
    if not isinstance(column.dictionary, Opaque):  # NULLs alone
        return pa.nulls(column.length, arrow_type(column.dtype))
    return column.dictionary.take(code_array(data[: column.length], ok))


def _array(type_: Any, rows: int, data: Any, ok: Any) -> pa.Array:
    return pa.Array.from_buffers(type_, rows, [_bitmap(ok), data], -1 if ok is not None else 0)


def _bitmap(ok: Any) -> Any:
    return None if ok is None else arrow_buffer(np.packbits(ok, bitorder="little"))


def _words128(column: ColumnData, data: Any) -> Any:
    """Decimals as Arrow has them: two 64-bit words a row, the low one first."""
    if column.physical_type is PhysicalType.I128:
        return np.ascontiguousarray(data[: 2 * column.length])
    words = np.empty((column.length, 2), dtype=np.int64)
    words[:, 0] = data[: column.length]
    np.right_shift(words[:, 0], 63, out=words[:, 1])
    return words.reshape(-1)


def _export_strings(column: ColumnData, data: Any, ok: Any) -> pa.Array:
    rows = column.length
    if isinstance(column.dictionary, Dictionary):
        if ok is None and rows <= tuning.memory.listed_rows and (listed := column.dictionary.listed) is not None:
            return _few_strings([listed[code] for code in data[:rows].tolist()])
        return cast(take(column.dictionary.result_values, code_array(data[:rows], ok)), pa.string())
    if column.physical_type is PhysicalType.VIEW:
        return _export_views(data[: 2 * rows].reshape(-1, 2), ok)
    assert column.characters is not None
    characters = arrow_buffer(column.characters.host)
    offsets = data[: rows + 1]
    if column.physical_type is PhysicalType.STRING32:
        return pa.StringArray.from_buffers(
            rows, arrow_buffer(offsets), characters, _bitmap(ok), -1 if ok is not None else 0
        )
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    if last - first < 2**31:
        narrow = np.empty(len(offsets), np.int32)
        np.subtract(offsets, first, out=narrow, casting="unsafe")  # no array of 64 bits is made on the way
        part = characters.slice(first, last - first)
        return pa.StringArray.from_buffers(rows, arrow_buffer(narrow), part, _bitmap(ok), -1 if ok is not None else 0)
    nulls = -1 if ok is not None else 0
    return pa.LargeStringArray.from_buffers(rows, arrow_buffer(offsets), characters, _bitmap(ok), nulls)


def _few_strings(items: Sequence[bytes]) -> pa.Array:
    """A string array of few texts in UTF-8: without Arrow's functions, whose call takes longer."""
    offsets = int32s("i", accumulate(map(len, items), initial=0))
    return pa.StringArray.from_buffers(len(items), pa.py_buffer(offsets), pa.py_buffer(b"".join(items)), None, 0)


def _export_views(views: Any, ok: Any) -> pa.Array:
    """Strings from (address, length) pairs of host memory that the column's owners keep alive."""
    read = ctypes.string_at
    if ok is None:
        items: list[bytes | None] = [
            read(a, n) for a, n in zip(views[:, 0].tolist(), views[:, 1].tolist(), strict=True)
        ]
    else:
        items = [
            read(a, n) if valid else None
            for a, n, valid in zip(views[:, 0].tolist(), views[:, 1].tolist(), ok.tolist(), strict=True)
        ]
    array = string_array(items)
    return cast(array, pa.string()) if sum(b.size for b in array.buffers() if b is not None) < 2**31 else array


def string_array(values: Sequence[str | bytes | None]) -> pa.Array:
    """Strings or UTF-8 bytes as a large_string array. (Arrow's own way from Python lists imports pandas where that is
    installed, which takes longer than many queries.)"""
    items = [v.encode() if isinstance(v, str) else v for v in values]
    offsets = np.zeros(len(items) + 1, np.int64)
    np.cumsum([0 if v is None else len(v) for v in items], out=offsets[1:])
    characters = pa.py_buffer(b"".join(v for v in items if v is not None))
    ok = np.array([v is not None for v in items], np.bool_)
    bitmap = None if ok.all() else _bitmap(ok)
    return pa.LargeStringArray.from_buffers(len(items), arrow_buffer(offsets), characters, bitmap)


def code_array(codes: Any, ok: Any) -> pa.Array:
    """A NumPy array of integers as an Arrow array, NULL where ``ok`` (None: nowhere) is False."""
    return _array(_CODES[codes.dtype], len(codes), arrow_buffer(codes), ok)


def integer_array(values: Sequence[int]) -> pa.Array:
    """Integers as an int64 array, without pandas as well."""
    return _array(pa.int64(), len(values), arrow_buffer(np.array(values, np.int64)), None)
