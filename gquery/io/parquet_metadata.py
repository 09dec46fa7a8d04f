"""What Parquet files say of themselves, as tables: ``parquet_metadata``, a row for each column of each row group,
``parquet_file_metadata``, a row a file, and ``parquet_kv_metadata``, the keys and values that writers leave in the footer.

Names and order of columns are DuckDB's. What PyArrow does not tell of a footer (page indexes, bloom filters, exactness of bounds,
boxes of geometries) has no column.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from gquery.columns.table import TableSource
from gquery.errors import NotSupportedError
from gquery.io.files import items_of, reading, resolve
from gquery.io.memory import kept_source
from gquery.io.parquet_opened import OpenedParquet, random_access
from gquery.runtime.value_arrays import value_array

_COLUMNS = pa.schema([
    ("file_name", pa.string()), ("row_group_id", pa.int64()), ("row_group_num_rows", pa.int64()),
    ("row_group_num_columns", pa.int64()), ("row_group_bytes", pa.int64()), ("column_id", pa.int64()),
    ("file_offset", pa.int64()), ("num_values", pa.int64()), ("path_in_schema", pa.string()), ("type", pa.string()),
    ("stats_min", pa.string()), ("stats_max", pa.string()), ("stats_null_count", pa.int64()),
    ("stats_distinct_count", pa.int64()), ("stats_min_value", pa.string()), ("stats_max_value", pa.string()),
    ("compression", pa.string()), ("encodings", pa.string()),
    ("dictionary_page_offset", pa.int64()), ("data_page_offset", pa.int64()), ("total_compressed_size", pa.int64()),
    ("total_uncompressed_size", pa.int64()), ("row_group_compressed_bytes", pa.int64()),
])  # fmt: skip
_FILES = pa.schema([
    ("file_name", pa.string()), ("created_by", pa.string()), ("num_rows", pa.int64()), ("num_row_groups", pa.int64()),
    ("format_version", pa.int64()), ("file_size_bytes", pa.uint64()), ("footer_size", pa.uint64()),
])  # fmt: skip
_PAIRS = pa.schema([("file_name", pa.string()), ("key", pa.large_binary()), ("value", pa.large_binary())])
_VERSIONS = {"1.0": 1, "2.4": 2, "2.6": 2}  # of the format, as PyArrow names them
Row = tuple[Any, ...]


def parquet_metadata(paths: Sequence[str], kind: str, narrow: bool) -> TableSource:
    """A table of what the footers of files tell, which are read now. ``kind``: "parquet_metadata", "parquet_file_metadata" or
    "parquet_kv_metadata". FileError where a file is not there or is no Parquet file."""
    schema, rows_of = _KINDS[kind]
    items = items_of(paths)
    if other := next((i.name for i in items if i.path is None), None):
        raise NotSupportedError(f'not supported: "{other}", which is not on this machine')
    rows: list[Row] = []
    for file in resolve(items):
        with reading(file.path), OpenedParquet(random_access(file)) as opened:
            rows += rows_of(file.path, opened.metadata)
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [value_array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    return kept_source(kind, pa.table(arrays, schema=schema), narrow)


def _columns(name: str, footer: Any) -> Iterator[Row]:
    fields = footer.schema.to_arrow_schema().names
    for g in range(footer.num_row_groups):
        group = footer.row_group(g)
        chunks = [group.column(c) for c in range(group.num_columns)]
        compressed = sum(c.total_compressed_size for c in chunks)
        for n, c in enumerate(chunks):
            found = c.statistics
            least, most = (None, None) if found is None or not found.has_min_max else (_shown(found.min), _shown(found.max))
            nulls = found.null_count if found is not None and found.has_null_count else None
            distinct = found.distinct_count if found is not None and found.has_distinct_count else None
            yield (
                name, g, group.num_rows, group.num_columns, group.total_byte_size, n, c.file_offset, c.num_values,
                _path(c.path_in_schema, fields), c.physical_type, least, most, nulls, distinct, least, most, c.compression,
                ", ".join(c.encodings), c.dictionary_page_offset, c.data_page_offset,
                c.total_compressed_size, c.total_uncompressed_size, compressed,
            )  # fmt: skip


def _path(path: str, fields: Sequence[str]) -> str:
    """A leaf's names, which PyArrow joins by dots: that of a field may have some itself."""
    first = max((f for f in fields if path == f or path.startswith(f"{f}.")), key=len, default=path)
    return ", ".join([first, *path[len(first) + 1 :].split(".")] if len(path) > len(first) else [first])


def _files(name: str, footer: Any) -> Iterator[Row]:
    version = _VERSIONS.get(footer.format_version)
    size = os.path.getsize(name)
    yield name, footer.created_by, footer.num_rows, footer.num_row_groups, version, size, footer.serialized_size


def _pairs(name: str, footer: Any) -> Iterator[Row]:
    for key, value in (footer.metadata or {}).items():
        yield name, key, value


def _shown(value: Any) -> str:
    """A bound as a text."""
    match value:
        case bool():
            return str(value).lower()
        case bytes():
            return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in value)
        case datetime.datetime():
            return value.replace(tzinfo=None).isoformat(" ") + ("+00" if value.tzinfo is not None else "")
    return str(value)


_KINDS: dict[str, tuple[pa.Schema, Callable[[str, Any], Iterator[Row]]]] = {
    "parquet_metadata": (_COLUMNS, _columns),
    "parquet_file_metadata": (_FILES, _files),
    "parquet_kv_metadata": (_PAIRS, _pairs),
}
