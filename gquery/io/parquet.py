"""Parquet files as a table: footers first, columns when a query needs them.

Opening reads footers alone. The first query on columns reads them from every file (`gquery.io.parquet_reader` does, on all
cores) and keeps them in the connection's cache. A string column that the footers show to be small is read with its
dictionary, which skips making the strings. The files' sizes and times are looked at before each query, so a file that
has changed is read again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gquery import tuning
from gquery.columns.arrow import dtype_of, import_schema
from gquery.columns.encode import import_column
from gquery.columns.store import check_names
from gquery.columns.table import ColumnData, ColumnStatistics, Table
from gquery.errors import FileError
from gquery.expression.types import Bounds, DType, Kind, Schema
from gquery.io.column_cache import ColumnCache
from gquery.io.files import File, PathColumn, Paths, readable, reading
from gquery.io.footers import check_footer, chunks_of
from gquery.io.parquet_reader import ParquetReader, Spent, Wanted
from gquery.io.watched import Asked, WatchedFiles
from gquery.runtime.interrupt import check
from gquery.runtime.threads import run_phases


class ParquetSource(WatchedFiles):
    """A file, several files of one schema, a glob pattern or a directory; local, or in an object store by its URI or a
    ``filesystem``. FileError names the file that is at fault. Keys of hive partitions are further columns (``hive`` None:
    where every file has the same keys), and the file's name is one where ``filename`` asks for it."""

    def __init__(
        self,
        paths: Paths,
        cache: ColumnCache | None = None,
        narrow: bool = True,
        *,
        hive: bool | None = None,
        filename: str | None = None,
        filesystem: Any = None,
    ) -> None:
        super().__init__(Asked(paths, "parquet", hive, filename, filesystem))
        self._narrow = narrow
        self._cache = cache or ColumnCache()
        self.spent = Spent()
        files = self.asked.find()
        self.name = os.path.splitext(os.path.basename(files[0].name))[0]
        self._open(files)

    # ---- what a query plans with -----------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return self._rows

    def statistics(self, field: int) -> ColumnStatistics:
        """Exact once the column was loaded; before, what complete footers tell."""
        known = self._statistics.get(field)
        if known is None:
            known = self._statistics[field] = self._footer_statistics(field)
        return known

    def load(self, fields: Sequence[int]) -> Table:
        """The columns in the order that is asked for, those not in the cache read now, together."""
        return self.load_many([(self, fields)])[0]

    @staticmethod
    def load_many(requests: Sequence[tuple[ParquetSource, Sequence[int]]]) -> list[Table]:
        """Columns of several sources, those that are not in the cache read side by side."""
        held = [source._held(fields) for source, fields in requests]
        if all(table is not None for table in held):
            return [table for table in held if table is not None]
        with ExitStack() as stack:
            for source in sorted({s for s, _ in requests}, key=id):  # in one order, so that no two wait for each other
                stack.enter_context(source._lock)
            loadings = [_Loading(source, fields) for source, fields in requests]
            wanted = [(loading, f, w) for loading in loadings for f, w in loading.wanted.items()]
            wanted.sort(key=lambda each: -each[2].size)  # what takes long shall not come last
            values = sum(loading.source.rows for loading, _, _ in wanted)
            workers = max(source._cache.workers for source, _ in requests) if values > tuning.reading.one_thread else 1
            try:
                made = run_phases([loading.reader.column(w) for loading, _, w in wanted], workers)
            finally:
                for loading in loadings:
                    loading.close()
            for (loading, field, _), column in zip(wanted, made, strict=True):
                loading.found[field] = column
            return [loading.table() for loading in loadings]

    def _held(self, fields: Sequence[int]) -> Table | None:
        """The columns, if all are in the cache."""
        found = [self._cache.get(id(self), f) for f in fields]
        columns = tuple(c for c in found if c is not None)
        if len(columns) < len(found):
            return None
        return Table(Schema(tuple(self.schema.fields[f] for f in fields)), columns, self.rows)

    def __del__(self) -> None:
        cache = getattr(self, "_cache", None)
        if cache is not None:
            cache.forget(id(self))

    # ---- files -----------------------------------------------------------------------------------------------------

    def _open(self, files: list[File]) -> None:
        self._cache.forget(id(self))
        footers: list[Any] = []
        schema: pa.Schema | None = None
        first = f'"{files[0].name}"'
        for file in files:
            check()
            with reading(file.name, "Parquet file"), pq.ParquetFile(file.path, filesystem=file.filesystem) as opened:
                check_footer(opened.metadata, file.size)
                footers.append(opened.metadata)
                arrow_schema = readable(opened.schema_arrow)
                file.check_unchanged()
            if schema is None:
                schema = arrow_schema
            elif not _same(schema, arrow_schema):
                raise FileError(
                    f'"{file.name}" has other columns than {first}: {_words(arrow_schema)} against {_words(schema)}'
                )
        assert schema is not None
        self._path_columns: dict[int, PathColumn] = {}
        for column in self.asked.columns(files, schema.names):
            self._path_columns[len(schema)] = column
            schema = schema.append(pa.field(column.name, column.type, None in column.values))
        self._footers = footers
        self._arrow_schema = schema
        self.schema = import_schema(schema)
        check_names(self.schema, first)
        self._rows: int = sum(f.num_rows for f in footers)
        self._statistics: dict[int, ColumnStatistics] = {}
        self._files = files

    def _wanted(self, field: int) -> Wanted:
        type_ = self._arrow_schema.field(field).type
        as_codes = self._has_small_dictionary(field)
        if as_codes:
            type_ = pa.dictionary(pa.int32(), type_)
        size = sum(chunk.total_uncompressed_size for chunk in self._chunks(field))
        return Wanted(self.schema.fields[field], type_, as_codes, self.statistics(field).bounds, size)

    # ---- footers ---------------------------------------------------------------------------------------------------

    @property
    def row_groups(self) -> int:
        """How many row groups a query reads: all, as columns are kept whole, for the queries that follow."""
        return sum(footer.num_row_groups for footer in self._footers)

    def _chunks(self, field: int) -> Iterator[Any]:
        """The metadata of a column in every row group of every file: one for a flat column, several for a nested one."""
        types = self._arrow_schema.types
        first = sum(map(_leaves, types[:field]))
        for footer in self._footers:
            yield from chunks_of(footer, range(first, first + _leaves(types[field])), self.name)

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
        if dtype.is_opaque:  # the leaves of a nested column count NULLs of their own
            return ColumnStatistics()
        if field in self._path_columns:
            return ColumnStatistics(distinct=len(set(self._path_columns[field].values)))
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
                    try:
                        low, high = _physical(stats.min, dtype), _physical(stats.max, dtype)
                    except (OverflowError, ValueError):  # Python has no such date
                        low = high = None
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


class _Loading:
    """What a query asks of a source: the columns in the cache, and the reading of the others."""

    def __init__(self, source: ParquetSource, fields: Sequence[int]) -> None:
        self.source = source
        self._fields = fields
        self.found: dict[int, ColumnData] = {}
        self.wanted: dict[int, Wanted] = {}  # what is to be read
        rows = [footer.num_rows for footer in source._footers]
        for f in set(fields):
            column = source._cache.get(id(source), f)
            if column is not None:
                self.found[f] = column
            elif f in source._path_columns:
                array = source._path_columns[f].array(rows)
                self.found[f] = import_column(array, source.schema.fields[f], source._narrow)
            else:
                self.wanted[f] = source._wanted(f)
        codes = [w.field.name for w in self.wanted.values() if w.as_codes]
        device, narrow = source._cache.device, source._narrow
        self.reader = ParquetReader(source._files, source._footers, device, narrow, codes)

    def close(self) -> None:
        if self.wanted:
            self.source.spent = self.reader.close()

    def table(self) -> Table:
        """The columns in the order that was asked for, now in the cache. FileError where a file has changed meanwhile: the
        footers that were read before tell where its pages lie."""
        source, found = self.source, self.found
        if self.wanted and source.asked.find() != source._files:
            raise FileError(f"The files of {source.name} have changed while they were read")
        source._statistics |= {f: column.statistics for f, column in found.items()}
        source._cache.put(id(source), found, source.name)
        columns = tuple(found[f] for f in self._fields)
        return Table(Schema(tuple(source.schema.fields[f] for f in self._fields)), columns, source.rows)


def _leaves(type_: pa.DataType) -> int:
    """How many columns of a Parquet file hold a value of an Arrow type."""
    if isinstance(type_, pa.BaseExtensionType):
        return _leaves(type_.storage_type)
    if pa.types.is_nested(type_) and not pa.types.is_run_end_encoded(type_):
        return sum(_leaves(type_.field(i).type) for i in range(type_.num_fields))
    return 1


def _physical(value: Any, dtype: DType) -> int | None:
    """A footer's minimum or maximum as the physical integer; None where the footer's unit is not certain."""
    import datetime
    from decimal import Decimal

    match value:
        case bool() | int():
            return int(value) if not dtype.is_decimal else None
        case Decimal() if dtype.is_decimal:
            return int(value.scaleb(dtype.scale))
        case datetime.datetime() if dtype.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            start = datetime.datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else datetime.UTC)
            return (value - start) // datetime.timedelta(microseconds=1)
        case datetime.date() if dtype.kind is Kind.DATE:
            return (value - datetime.date(1970, 1, 1)).days
        case _:
            return None


def _same(a: pa.Schema, b: pa.Schema) -> bool:
    """Equal names and logical types; strings may be laid out in different ways, opaque values are of one Arrow type."""
    return a.names == b.names and all(
        x == y or (dtype_of(x) == dtype_of(y) and not dtype_of(x).is_opaque)
        for x, y in zip(a.types, b.types, strict=True)
    )


def _words(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {dtype_of(f.type)}" for f in schema)
