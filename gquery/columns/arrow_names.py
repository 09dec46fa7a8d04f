"""DuckDB's names of Arrow types: what DESCRIBE and error messages call a column that gquery carries alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from gquery.expression.nested_types import quoted

_NAMES: dict[Any, str] = {
    pa.null(): "INTEGER", pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INTEGER",
    pa.int64(): "BIGINT", pa.uint8(): "UTINYINT", pa.uint16(): "USMALLINT", pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT", pa.float16(): "FLOAT", pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.date32(): "DATE",
    pa.date64(): "DATE", pa.string(): "VARCHAR", pa.large_string(): "VARCHAR", pa.string_view(): "VARCHAR",
    pa.binary(): "BLOB", pa.large_binary(): "BLOB", pa.binary_view(): "BLOB", pa.time32("s"): "TIME",
    pa.time32("ms"): "TIME", pa.time64("us"): "TIME", pa.time64("ns"): "TIME_NS",
    pa.month_day_nano_interval(): "INTERVAL", pa.timestamp("s"): "TIMESTAMP_S", pa.timestamp("ms"): "TIMESTAMP_MS",
    pa.timestamp("us"): "TIMESTAMP", pa.timestamp("ns"): "TIMESTAMP_NS",
}  # fmt: skip
_EXTENSIONS = {"arrow.uuid": "UUID", "arrow.json": "JSON", "arrow.bool8": "BOOLEAN"}


def sql_name(type_: pa.DataType) -> str:
    """DuckDB's name of an Arrow type.

    >>> sql_name(pa.list_(pa.struct([("a", pa.int32()), ("b c", pa.string())])))
    'STRUCT(a INTEGER, "b c" VARCHAR)[]'
    """
    if isinstance(type_, pa.BaseExtensionType):  # those that are written in Python have no hash
        return _EXTENSIONS.get(type_.extension_name) or f"{sql_name(type_.storage_type)} ({type_.extension_name})"
    known = _NAMES.get(type_)
    if known is not None:
        return known
    is_ = pa.types
    if is_.is_fixed_size_list(type_):
        return f"{sql_name(type_.value_type)}[{type_.list_size}]"
    if is_.is_map(type_):
        return f"MAP({sql_name(type_.key_type)}, {sql_name(type_.item_type)})"
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_list_view(type_) or is_.is_large_list_view(type_):
        return f"{sql_name(type_.value_type)}[]"
    if is_.is_struct(type_) or is_.is_union(type_):
        members = (type_.field(i) for i in range(type_.num_fields))
        inside = ", ".join(f"{quoted(f.name)} {sql_name(f.type)}" for f in members)
        return f"{'STRUCT' if is_.is_struct(type_) else 'UNION'}({inside})"
    if is_.is_dictionary(type_) or is_.is_run_end_encoded(type_):
        return sql_name(type_.value_type)
    if is_.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    if is_.is_timestamp(type_):
        return "TIMESTAMP WITH TIME ZONE"
    if is_.is_duration(type_):
        return "INTERVAL"
    return "BLOB" if is_.is_fixed_size_binary(type_) else str(type_).upper()
