"""Parquet files as a table: footers first, columns when a query needs them.

Opening reads footers alone. The first query on a column reads it from every file, encodes it and keeps it in the
connection's cache. A string column that the footers show to be small is read with its dictionary, which skips making
the strings. The files' sizes and times are looked at before each query, so a file that has changed is read again.
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gquery.arrow import dtype_of, import_schema, unsupported
from gquery.dtypes import Bounds, DType, Kind, Schema
from gquery.encode import import_columns
from gquery.errors import FileError, NotSupportedError
from gquery.sources import ColumnCache, check_names
from gquery.table import Column, ColumnStatistics, Table

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_COLUMNS_AT_ONCE = 4  # or one a core; read and encoded together: Arrow's wide columns reuse the same memory
Stamp = tuple[tuple[str, int, int], ...]  # path, size and time of each file


class ParquetSource:
    """A file, several files of one schema, a glob pattern or a directory. FileError names the file that is at fault."""

    def __init__(self, paths: Paths, name: str = "", cache: ColumnCache | None = None, narrow: bool = True) -> None:
        self._asked = paths
        self._narrow = narrow
        self._cache = cache or ColumnCache()
        self._lock = threading.RLock()
        self._stamp: Stamp = _stamp(_resolve(paths))
        self._open()
        self.name = name or os.path.splitext(os.path.basename(self._stamp[0][0]))[0]

    # ---- what a query plans with -----------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def version(self) -> int:
        """Changes with the files; looks at them, and reads their footers again where they changed."""
        with self._lock:
            if _stamp(_resolve(self._asked)) != self._stamp:
                self._cache.forget(id(self))
                self._open()
            return hash(self._stamp)

    def statistics(self, field: int) -> ColumnStatistics:
        """Exact once the column was loaded; before, what complete footers tell. NotSupportedError for a type without
        a counterpart."""
        self._check([field])
        known = self._statistics.get(field)
        if known is None:
            known = self._statistics[field] = self._footer_statistics(field)
        return known

    def load(self, fields: Sequence[int]) -> Table:
        """The columns in the order that is asked for, those not in the cache read now."""
        self._check(fields)
        with self._lock:
            found: dict[int, Column] = {}
            for f in set(fields):
                column = self._cache.get(id(self), f)
                if column is not None:
                    found[f] = column
            missing = sorted(set(fields) - set(found))
            step = max(_COLUMNS_AT_ONCE, pa.cpu_count())
            for at in range(0, len(missing), step):
                part = missing[at : at + step]
                made = import_columns(self._read(part), [self.schema.fields[f] for f in part], self._narrow)
                for f, column in zip(part, made, strict=True):
                    found[f] = column
                    self._statistics[f] = column.statistics
            if missing:
                self._cache.put(id(self), found, self.name)
        return Table(Schema(tuple(self.schema.fields[f] for f in fields)), tuple(found[f] for f in fields), self._rows)

    def __del__(self) -> None:
        cache = getattr(self, "_cache", None)
        if cache is not None:
            cache.forget(id(self))

    # ---- files -----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        paths = _resolve(self._asked)
        stamp = _stamp(paths)
        footers: list[Any] = []
        schema: pa.Schema | None = None
        for path in paths:
            with _reading(path), pq.ParquetFile(path) as file:
                footers.append(file.metadata)
                arrow_schema = file.schema_arrow
            if schema is None:
                schema = arrow_schema
            elif not _same(schema, arrow_schema):
                raise FileError(
                    f'"{path}" has other columns than "{paths[0]}": {_words(arrow_schema)} against {_words(schema)}'
                )
        assert schema is not None
        self._footers = footers
        self._arrow_schema = schema
        self.schema = import_schema(schema)
        check_names(self.schema, f'"{paths[0]}"')
        self._rows: int = sum(f.num_rows for f in footers)
        self._reasons = {i: r for i, f in enumerate(schema) if (r := unsupported(f, f'"{paths[0]}"'))}
        self._statistics: dict[int, ColumnStatistics] = {}
        self._stamp = stamp

    def _check(self, fields: Sequence[int]) -> None:
        reasons = [self._reasons[f] for f in fields if f in self._reasons]
        if reasons:
            raise NotSupportedError("; ".join(reasons))

    def _read(self, fields: Sequence[int]) -> list[pa.ChunkedArray]:
        names = [self.schema.fields[f].name for f in fields]
        small = [n for f, n in zip(fields, names, strict=True) if self._has_small_dictionary(f)]
        tables = []
        for path, _, _ in self._stamp:
            with _reading(path), pq.ParquetFile(path, read_dictionary=small, memory_map=True) as file:
                tables.append(file.read(columns=names))
        columns = []
        for name in names:
            chunks = [c for t in tables for c in t.column(name).chunks]
            columns.append(pa.chunked_array(chunks, type=tables[0].column(name).type))
        return columns

    # ---- footers ---------------------------------------------------------------------------------------------------

    def _chunks(self, field: int) -> Iterator[Any]:
        """The metadata of a flat column in every row group of every file."""
        name = self.schema.fields[field].name
        for footer in self._footers:
            position = next(i for i in range(footer.num_columns) if footer.schema.column(i).path == name)
            for group in range(footer.num_row_groups):
                yield footer.row_group(group).column(position)

    def _has_small_dictionary(self, field: int) -> bool:
        """Whether a string column takes so few bytes a value that it must be codes into small dictionaries."""
        if not self.schema.fields[field].dtype.is_string or pa.types.is_dictionary(
            self._arrow_schema.field(field).type
        ):
            return False
        values = size = 0
        for chunk in self._chunks(field):
            if not chunk.has_dictionary_page:
                return False
            values += chunk.num_values
            size += chunk.total_uncompressed_size
        return values > 0 and size <= 3 * values

    def _footer_statistics(self, field: int) -> ColumnStatistics:
        dtype = self.schema.fields[field].dtype
        nulls: int | None = 0
        lows: list[int] = []
        highs: list[int] = []
        complete = dtype.is_exact
        for chunk in self._chunks(field):
            stats = chunk.statistics if chunk.is_stats_set else None
            if stats is None or not stats.has_null_count:
                nulls = None
            elif nulls is not None:
                nulls += stats.null_count
            if complete and chunk.num_values:
                if stats is None or not stats.has_min_max:
                    complete = stats is not None and stats.has_null_count and stats.null_count == chunk.num_values
                else:
                    low, high = _physical(stats.min, dtype), _physical(stats.max, dtype)
                    if low is None or high is None:
                        complete = False
                    else:
                        lows.append(low)
                        highs.append(high)
        if not complete or not lows:
            return ColumnStatistics(null_count=nulls)
        bounds = Bounds(min(lows), max(highs))
        if nulls != 0:
            bounds = bounds | Bounds(0, 0)  # payloads under NULL are zero
        return ColumnStatistics(bounds, nulls, min(self._rows, bounds.width))


def _physical(value: Any, dtype: DType) -> int | None:
    """A footer's minimum or maximum as the physical integer; None where the footer's unit is not certain."""
    import datetime
    from decimal import Decimal

    match value:
        case bool() | int():
            return int(value) if not dtype.is_decimal else None
        case Decimal() if dtype.is_decimal:
            return int(value.scaleb(dtype.scale))
        case datetime.datetime() if dtype.kind is Kind.TIMESTAMP:
            moment = value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
            return moment // datetime.timedelta(microseconds=1)
        case datetime.date() if dtype.kind is Kind.DATE:
            return (value - datetime.date(1970, 1, 1)).days
        case _:
            return None


def _resolve(asked: Paths) -> list[str]:
    """The files that are meant, in the order of their names within a pattern or directory."""
    items = [asked] if isinstance(asked, (str, os.PathLike)) else list(asked)
    paths: list[str] = []
    for item in items:
        path = os.path.expanduser(os.fspath(item))
        if os.path.isdir(path):
            found = sorted(glob.glob(os.path.join(glob.escape(path), "**", "*.parquet"), recursive=True))
            if not found:
                raise FileError(f'There is no .parquet file in the directory "{path}"')
            paths += found
        elif os.path.exists(path):
            paths.append(path)
        elif glob.has_magic(path):
            found = sorted(glob.glob(path, recursive=True))
            if not found:
                raise FileError(f'No file matches "{path}"')
            paths += found
        else:
            raise FileError(f'There is no file "{path}"')
    if not paths:
        raise FileError("No Parquet file was named")
    return paths


def _stamp(paths: Sequence[str]) -> Stamp:
    stamps = []
    for path in paths:
        with _reading(path):
            status = os.stat(path)
        stamps.append((path, status.st_size, status.st_mtime_ns))
    return tuple(stamps)


def _same(a: pa.Schema, b: pa.Schema) -> bool:
    """Equal names and logical types; strings may be laid out in different ways."""
    return a.names == b.names and all(
        x == y or (dtype_of(x) is not None and dtype_of(x) == dtype_of(y))
        for x, y in zip(a.types, b.types, strict=True)
    )


def _words(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {dtype_of(f.type) or f.type}" for f in schema)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turns what the file system and Arrow raise about a file into FileError."""
    try:
        yield
    except FileNotFoundError:
        raise FileError(f'There is no file "{path}"') from None
    except (OSError, pa.ArrowException, ValueError) as error:
        cause = str(error).split("\n")[0]
        raise FileError(f'Cannot read the Parquet file "{path}": {cause}') from error
