"""Tables of files on a cluster: what the connection knows of them, and what all workers agree on.

A small table is read by every worker as a whole. Of others each rank has a range of rows (`cluster.divisions`), and reads the
row groups in which they lie. When a query first uses a column, the ranks tell what theirs is like: bounds, order, physical
type, dictionary. The connection makes one description of that, by which programs are lowered; each rank brings its rows into
that form.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Protocol, cast

import numpy as np

from gquery import tuning
from gquery.cluster.sorted_rows import ValueCut
from gquery.columns.dictionary_union import Codes, union_in_phases
from gquery.columns.table import ColumnData, ColumnStatistics, Dictionary, Table
from gquery.device.buffer import Buffer
from gquery.distributed.column_pieces import statistics_together, widest_type
from gquery.errors import NotSupportedError
from gquery.expression.frozen import frozen_open
from gquery.expression.types import Bounds, DType, Field, PhysicalType, Schema, physical_type_for
from gquery.io.files import File
from gquery.io.parquet import ParquetSource
from gquery.io.watched import Asked
from gquery.runtime import interrupt
from gquery.runtime.threads import run_phases
from gquery.runtime.tuples import NamedTuple


@frozen_open
class FileTable:
    """A table of Parquet files, for workers to open: ``files`` as the connection has found them."""

    key: str
    asked: Asked
    files: tuple[File, ...]
    narrow: bool


@frozen_open
class Described:
    """A rank's rows of a column, without the values; ``ends`` are the first and the last one where they are sorted integers."""

    physical_type: PhysicalType
    rows: int
    nullable: bool
    statistics: ColumnStatistics
    dictionary: Dictionary | None
    ends: tuple[int, int] | None


@frozen_open
class Agreed:
    """The form that all ranks have a column in."""

    dtype: DType
    physical_type: PhysicalType
    nullable: bool
    statistics: ColumnStatistics
    dictionary: Dictionary | None

    def column(self, rows: int) -> ColumnData:
        """The column of all rows, without the values."""
        empty = Buffer(np.empty(0, self.physical_type.numpy))
        validity = Buffer(np.empty(0, np.uint8)) if self.nullable else None
        return ColumnData(self.dtype, self.physical_type, rows, empty, validity, None, self.dictionary, self.statistics)


class Describes(Protocol):
    """Asks the ranks of a cluster."""

    def starts(self, table: ClusterTable) -> tuple[int, ...]:
        """The rows at which each rank begins, and their number."""
        ...

    def describe(self, table: FileTable, starts: Sequence[int], fields: Sequence[int]) -> list[Sequence[Described]]:
        """For each field what each rank says of its rows, which are all where there are no ``starts``."""
        ...


class KnownCuts:
    """What `cluster.divisions` has found out of a table as its files are now."""

    def __init__(self) -> None:
        self.has_first = False
        self.first: ValueCut | None = None
        self.even: dict[int, ValueCut | None] = {}  # by field
        self.below: dict[tuple[int, tuple[int, ...]], tuple[int, ...] | None] = {}  # by field and values


class ClusterTable:
    """A `TableSource` whose columns are on the workers: `load` gives them without values."""

    def __init__(self, source: ParquetSource, cluster: Describes) -> None:
        self.name, self.source, self._cluster = source.name, source, cluster
        self._lock = interrupt.Lock()
        self._begin()

    def _begin(self) -> None:
        """Take the files as they are now; workers will open them under another key."""
        source = self.source
        self.file_table = FileTable(uuid.uuid4().hex, source.asked, source.files, source.narrow)
        self.cuts = KnownCuts()
        self.schema, self.rows = source.schema, source.rows
        self.agreed: dict[int, Agreed] = {}

    @property
    def version(self) -> int:
        """See `TableSource`; looks at the files."""
        version = self.source.version
        with self._lock:
            if self.source.files != self.file_table.files:
                self._begin()
        return version

    def statistics(self, field: int) -> ColumnStatistics:
        """See `TableSource`."""
        known = self.agreed.get(field)
        return self.source.statistics(field) if known is None else known.statistics

    def has_nulls(self, field: int) -> bool:
        """See `TableSource`."""
        known = self.agreed.get(field)
        return self.source.has_nulls(field) if known is None else known.nullable

    def is_unique(self, field: int) -> bool:
        """See `TableSource`."""
        known = self.agreed.get(field)
        return known is not None and known.statistics.is_unique

    def bytes_of(self, fields: Sequence[int]) -> int:
        """About how many bytes columns take once they are read, as the footers tell."""
        return sum(map(self._bytes_of, fields))

    def _bytes_of(self, field: int) -> int:
        bounds, dtype = self.source.statistics(field).bounds, self.schema.fields[field].dtype
        if bounds is None or not dtype.is_exact:
            return self.source.bytes_of(field)
        return self.rows * physical_type_for(bounds).bytes

    def load(self, fields: Sequence[int]) -> Table:
        """The columns without their values. NotSupportedError for those of types that are only carried."""
        own = tuple([self.schema.fields[f] for f in fields])
        for field in own:
            if field.dtype.is_opaque:
                raise not_on_a_cluster(self.name, field)
        with self._lock:
            missing = [f for f in dict.fromkeys(fields) if f not in self.agreed]
            if missing:
                is_whole = self.bytes_of(fields) < tuning.cluster.whole_bytes
                starts = () if is_whole else self._cluster.starts(self)
                described = self._cluster.describe(self.file_table, starts, missing)
                for f, parts in zip(missing, described, strict=True):
                    self.agreed[f] = agreed(self.schema.fields[f].dtype, parts)
        columns = tuple([self.agreed[f].column(self.rows) for f in fields])
        return Table(Schema(own), columns, self.rows)


def not_on_a_cluster(table: str, field: Field) -> NotSupportedError:
    """The error for a column of a type that is only carried."""
    return NotSupportedError(f'A cluster reads no {field.dtype} yet: column "{field.name}" of {table}')


class SentTable:
    """Columns of a table in memory that were sent to a worker, by field, as a `TableSource`."""

    def __init__(self, name: str, schema: Schema, rows: int, columns: Mapping[int, ColumnData]) -> None:
        self.name, self.schema, self.rows, self.version = name, schema, rows, 0
        self._columns = columns

    def statistics(self, field: int) -> ColumnStatistics:
        """See `TableSource`."""
        return self._columns[field].statistics

    def has_nulls(self, field: int) -> bool:
        """See `TableSource`."""
        return self._columns[field].validity is not None

    def is_unique(self, field: int) -> bool:
        """See `TableSource`."""
        return self._columns[field].statistics.is_unique

    def load(self, fields: Sequence[int]) -> Table:
        """The columns."""
        own = Schema(tuple([self.schema.fields[f] for f in fields]))
        return Table(own, tuple([self._columns[f] for f in fields]), self.rows)


def agreed(dtype: DType, parts: Sequence[Described]) -> Agreed:
    """The form for the rows of all ranks."""
    filled = [p for p in parts if p.rows] or list(parts[:1])
    nullable = any(p.nullable for p in filled)
    dictionaries = [p.dictionary for p in filled if p.dictionary is not None]
    pieces = [ColumnData(dtype, p.physical_type, p.rows, _NOTHING, statistics=p.statistics) for p in filled]
    known = statistics_together(pieces, None)
    rising = _rising(filled)
    rows = sum(p.rows for p in filled)
    distinct = [p.statistics.distinct for p in filled]
    runs = [p.statistics.longest_run for p in filled]
    known = replace(
        known,
        is_sorted=rising is not None,
        is_unique=rising is True and all(p.statistics.is_unique for p in filled),
        distinct=None if None in distinct else min(rows, sum(d for d in distinct if d is not None)),
        longest_run=None if rising is not True or None in runs else max(r for r in runs if r is not None),
    )
    if len(filled) == 1:
        known = replace(filled[0].statistics, zones=None)
    if not dictionaries:
        if known.bounds is not None and known.distinct is not None:
            known = replace(known, distinct=min(known.distinct, known.bounds.width))
        return Agreed(dtype, widest_type(pieces), nullable, known, None)
    if len(dictionaries) < len(filled):  # some have so many values that they are text
        return Agreed(dtype, PhysicalType.STRING64, nullable, ColumnStatistics(null_count=known.null_count), None)
    if len({d.digest for d in dictionaries}) == 1:
        one = dictionaries[0]
        known = replace(known, distinct=len(one))  # the same values on each rank
    else:
        one = _union(dictionaries)
        codes = Bounds(0, len(one) - 1)
        known = ColumnStatistics(codes, known.null_count, len(one), values=codes)
    return Agreed(dtype, physical_type_for(Bounds(0, len(one) - 1)), nullable, known, one)


_NOTHING = Buffer(np.empty(0, np.uint8))


def _union(dictionaries: Sequence[Dictionary]) -> Dictionary:
    different = list({d.digest: d for d in dictionaries}.values())
    codes = [Codes(d.values, np.arange(len(d)), None) for d in different]
    (union,) = run_phases([union_in_phases(codes)], 1)
    return Dictionary(union.values)


def _rising(parts: Sequence[Described]) -> bool | None:
    """Whether each rank's sorted rows begin above the end of those before (True), or not below it (False); None otherwise."""
    if not all(p.statistics.is_sorted and p.ends is not None for p in parts):
        return None
    ends = [cast("tuple[int, int]", p.ends) for p in parts]
    if any(a[1] > b[0] for a, b in pairwise(ends)):
        return None
    return all(a[1] < b[0] for a, b in pairwise(ends))


class Sent(NamedTuple):
    """A table of files as a program reads it, and the columns that all have agreed on. Rank r has the rows ``starts[r]`` to
    ``starts[r + 1]``; every rank has all of them where there are no starts, and reads all of them where a stage does."""

    table: FileTable
    agreed: Mapping[int, Agreed]
    starts: tuple[int, ...]
    is_read_whole: bool


Tables = Mapping[str, Sent]
"""By key the tables of files that a program reads."""
