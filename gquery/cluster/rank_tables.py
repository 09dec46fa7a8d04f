"""Tables of files on a worker: those that it has opened, and a rank's rows of them in the form that all agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from gquery.cluster.tables import Agreed, Described, FileTable
from gquery.columns.arrow import code_array
from gquery.columns.dictionary_codes import codes_among
from gquery.columns.table import ColumnData, ColumnStatistics, Dictionary, Table
from gquery.columns.zones import value_range
from gquery.device.buffer import Buffer
from gquery.device.device import cpu_device
from gquery.distributed.column_pieces import one_column, recoded
from gquery.errors import FileError
from gquery.expression.expr import new_column
from gquery.expression.types import Bounds, Field, PhysicalType, Schema
from gquery.io.column_cache import ColumnCache
from gquery.io.parquet import ParquetPart, ParquetSource
from gquery.io.parquet_files import RowGroup
from gquery.kernels.values import ValueProperties
from gquery.planner.physical import Stored
from gquery.runtime import interrupt
from gquery.runtime.arrow_compute import cast, take


class OpenedTables:
    """The files that a worker has opened for a connection, and what it has read of them."""

    def __init__(self) -> None:
        self.lock = interrupt.Lock()
        self.cache = ColumnCache(None, cpu_device())
        self._sources: dict[str, ParquetSource] = {}
        self._parts: dict[tuple[str, tuple[RowGroup, ...]], ParquetPart] = {}
        self._tables: dict[tuple[str, int, int], RankTable] = {}

    def opened(self, table: FileTable) -> ParquetSource:
        """A table of files, opened. FileError where they are others than the connection has found."""
        with self.lock:
            source = self._sources.get(table.key)
            if source is None:
                asked = table.asked
                source = ParquetSource(
                    asked.paths, self.cache, table.narrow, hive=asked.hive, filename=asked.filename,
                    filesystem=asked.filesystem,
                )  # fmt: skip
                if source.files != table.files:
                    raise FileError(
                        f"The files of {source.name} are not the same on the worker as on the connection's machine"
                    )
                self._forget_before(table)
                self._sources[table.key] = source
            return source

    def _forget_before(self, table: FileTable) -> None:
        """Let go of the same table as its files were before: nobody can open it any more."""
        before = {k for k, s in self._sources.items() if s.asked == table.asked and s.files != table.files}
        for key in before:
            del self._sources[key]
        for part in [p for p in self._parts if p[0] in before]:
            del self._parts[part]
        for rows in [t for t in self._tables if t[0] in before]:
            del self._tables[rows]

    def rank_table(self, table: FileTable, low: int, high: int) -> RankTable:
        """A rank's rows of a table."""
        with self.lock:
            found = self._tables.get((table.key, low, high))
            if found is None:
                found = self._tables[table.key, low, high] = RankTable(self, table, low, high)
            return found

    def part(
        self, table: FileTable, source: ParquetSource, groups: tuple[RowGroup, ...]
    ) -> ParquetSource | ParquetPart:
        """The table of some row groups of a table of files; of all of them that table itself."""
        if len(groups) == source.row_groups[1]:
            return source
        with self.lock:
            return self._parts.setdefault((table.key, groups), ParquetPart(source, groups))

    def holding(
        self, table: FileTable, source: ParquetSource, groups: tuple[RowGroup, ...], field: int
    ) -> tuple[ColumnData, int] | None:
        """A column that was read of these row groups, and maybe of others around them, with the number of its first row."""
        if not groups:
            return None
        with self.lock:
            parts = [(g, p) for (key, g), p in self._parts.items() if key == table.key and g]
        for around, part in [*parts, (source.all_groups, source)]:
            if around[0].position <= groups[0].position and groups[-1].position <= around[-1].position:
                if part.is_held(field):
                    first = sum([g.rows for g in source.all_groups[: around[0].position]])
                    return part.load([field]).columns[0], first
        return None


class RankTable:
    """The rows of a rank of a table of files, or all of them, as a `TableSource`."""

    def __init__(self, opened: OpenedTables, table: FileTable, low: int, high: int) -> None:
        self._opened, self._table = opened, table
        self._low, self.rows = low, high - low
        self._lock = interrupt.Lock()
        self._columns: dict[int, ColumnData] = {}
        self.agreed: dict[int, Agreed] = {}
        self.source = opened.opened(table)
        self.name, self.schema, self.version = self.source.name, self.source.schema, 0

    def statistics(self, field: int) -> ColumnStatistics:
        """See `TableSource`."""
        return self.agreed[field].statistics

    def has_nulls(self, field: int) -> bool:
        """See `TableSource`."""
        return self.agreed[field].nullable

    def is_unique(self, field: int) -> bool:
        """See `TableSource`."""
        return self.agreed[field].statistics.is_unique

    def load(self, fields: Sequence[int]) -> Table:
        """The columns in the form that all ranks have them in."""
        with self._lock:
            missing = [f for f in fields if f not in self._columns]
            for f, column in zip(missing, self.own(missing, zones=True), strict=True):
                self._columns[f] = _in_form(column, self.schema.fields[f], self.agreed[f])
            columns = tuple([self._columns[f] for f in fields])
        return Table(Schema(tuple([self.schema.fields[f] for f in fields])), columns, self.rows)

    def own(self, fields: Sequence[int], zones: bool = False) -> list[ColumnData]:
        """The columns as this worker reads them: a part of more rows where another cut of the table has had them read, with
        ``zones`` of its own if they are asked for."""
        if not fields:
            return []
        groups, first = _holding(self.source, self._low, self._low + self.rows)
        held = {f: self._opened.holding(self._table, self.source, groups, f) for f in fields}
        missing = [f for f in fields if held[f] is None]
        part = self._opened.part(self._table, self.source, groups)
        columns = dict(zip(missing, part.load(missing).columns, strict=True)) if missing else {}
        made = []
        for f in fields:
            found, at = held[f] or (columns[f], first)
            low = self._low - at
            if (low, self.rows) != (0, found.length):
                found = _part(found, low, low + self.rows)
                found = _with_own_zones(found) if zones else found
            made.append(found)
        return made


def _part(column: ColumnData, low: int, high: int) -> ColumnData:
    """Some rows of a column. Of a sorted one they have values of their own, which are counted: ranks that share row groups would
    have those of each twice."""
    made, known = column.slice(low, high), column.statistics
    if not known.is_sorted or known.distinct is None or column.physical_type not in _INTEGERS:
        return made
    values = made.data.host
    distinct = int(np.count_nonzero(values[1:] != values[:-1])) + min(made.length, 1)
    return replace(made, statistics=replace(made.statistics, distinct=distinct))


def _with_own_zones(column: ColumnData) -> ColumnData:
    """A slice with the extremes of its own blocks, if it has any: as it begins within a block of what it was cut of, it has those
    of two blocks for each, and twice as many rows would be scanned."""
    if column.statistics.zones is None:
        return column
    found = value_range(column.data.host, None if column.validity is None else column.validity.host)
    return replace(column, statistics=replace(column.statistics, zones=found.zones))


def _holding(source: ParquetSource, low: int, high: int) -> tuple[tuple[RowGroup, ...], int]:
    """The row groups that have these rows, and the number of their first row."""
    if low == high:
        return (), low
    found: list[RowGroup] = []
    at, first = 0, low
    for group in source.all_groups:
        if at < high and at + group.rows > low:
            first = first if found else at
            found.append(group)
        at += group.rows
    return tuple(found), first


def described(column: ColumnData) -> Described:
    """What a column is like, without its values."""
    known = column.statistics
    dictionary = column.dictionary if isinstance(column.dictionary, Dictionary) else None
    nulls = 0 if column.validity is None else column.length - int(np.count_nonzero(column.validity.host))
    ends = None
    if known.is_sorted and dictionary is None and column.length and column.physical_type in _INTEGERS:
        values = column.data.host
        ends = int(values[0]), int(values[-1])
    known = replace(known, null_count=nulls, zones=None)
    return Described(column.physical_type, column.length, nulls > 0, known, dictionary, ends)


_INTEGERS = frozenset({PhysicalType.I8, PhysicalType.I16, PhysicalType.I32, PhysicalType.I64, PhysicalType.U8,
                       PhysicalType.U16, PhysicalType.U32})  # fmt: skip


def _in_form(column: ColumnData, field: Field, form: Agreed) -> ColumnData:
    """A column in the form that all have agreed on."""
    device = cpu_device()
    own = column.dictionary
    if form.dictionary is not None:
        if isinstance(own, Dictionary) and own.digest != form.dictionary.digest:
            codes = np.maximum(codes_among(own, form.dictionary), 0)  # who has no rows has a value that nobody else has
            column = recoded(column, codes, Bounds(0, len(form.dictionary) - 1), device)
        column = replace(column, dictionary=form.dictionary)
    elif isinstance(own, Dictionary):
        column = _as_text(column, own)
    properties = ValueProperties(form.dtype, form.statistics.bounds, form.nullable, form.dictionary)
    planned = Stored(new_column(field.name, form.dtype, form.nullable), properties, form.physical_type)
    if column.physical_type is form.physical_type and (column.validity is not None) is form.nullable:
        made = column
    else:
        made = one_column([column], planned, device)
    known = replace(form.statistics.of_some_rows(), zones=column.statistics.zones if column is made else None)
    return replace(made, statistics=known)


def _as_text(column: ColumnData, dictionary: Dictionary) -> ColumnData:
    """Codes as the text that they stand for."""
    codes = column.data.host.astype(np.int64)
    ok = None if column.validity is None else column.validity.host != 0
    text = cast(take(dictionary.values, code_array(codes, ok)), pa.large_string())
    text = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    _, offsets, characters = text.buffers()
    made = np.frombuffer(offsets, np.int64)[: column.length + 1] if column.length else np.zeros(1, np.int64)
    bytes_ = np.frombuffer(characters, np.uint8) if characters is not None else np.empty(0, np.uint8)
    return replace(
        column, physical_type=PhysicalType.STRING64, data=Buffer(made.copy()), characters=Buffer(bytes_.copy()), dictionary=None
    )  # fmt: skip
