"""Columns of some row groups of Parquet files: statistics from footers, loading, and the cache that keeps what was loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.domain import Domain
from gquery.columns.encode import import_column
from gquery.columns.table import ColumnData, ColumnStatistics, Table
from gquery.device.device import Device
from gquery.device.host import trim_freed_memory
from gquery.errors import FileError
from gquery.expression.types import Bounds, Schema
from gquery.io.chunks import Chunks
from gquery.io.column_cache import ColumnCache, count_column
from gquery.io.parquet_files import ParquetFiles, RowGroup
from gquery.io.parquet_reader import Cut, ParquetReader, Spent, Wanted, cut_groups
from gquery.io.selected_rows import SelectedRows, Selection
from gquery.io.watched import Asked
from gquery.runtime import interrupt
from gquery.runtime.records import replace
from gquery.runtime.threads import Phases, run_phases

_READING = "reading columns"


class ParquetRows(ABC):
    """The rows of the row groups ``_groups`` of the files ``_contents``; a `TableSource` but for its version.

    What is loaded is kept under this object's name, with the statistics of exactly these rows: columns of other row groups of
    the same files are other columns."""

    name: str
    schema: Schema
    asked: Asked
    _contents: ParquetFiles
    _groups: tuple[RowGroup, ...]
    _selection: Selection | None = None

    def __init__(self, cache: ColumnCache, narrow: bool) -> None:
        self._cache, self._narrow = cache, narrow
        self._lock = interrupt.Lock()
        self._statistics: dict[int, ColumnStatistics] = {}
        self.spent = Spent()

    @property
    @abstractmethod
    def row_groups(self) -> tuple[int, int]:
        """How many row groups it reads of how many."""

    @property
    def rows(self) -> int:
        return sum(g.rows for g in self._groups)

    def statistics(self, field: int) -> ColumnStatistics:
        """Exact once the column was loaded; before, what complete footers tell."""
        known = self._statistics.get(field)
        if known is None:
            known = self._statistics[field] = self._footer_statistics(field)
        return known

    def has_nulls(self, field: int) -> bool:
        """Whether there may be NULLs, without a look at more of the footers than that takes. Of many row groups they are not
        asked: a plan over all of them is made again once they are read, and one over few is about their NULLs no faster."""
        known = self._statistics.get(field)
        if known is not None:
            return known.null_count != 0
        return len(self._groups) > tuning.reading.null_groups or bool(
            (self._contents.nulls(field, self._groups) != 0).any()
        )

    def is_unique(self, field: int) -> bool:
        """Whether no value comes twice and none is NULL, which is known of columns that were loaded."""
        known = self._statistics.get(field)
        return known is not None and known.is_unique

    def load(self, fields: Sequence[int]) -> Table:
        """The columns in the order that is asked for, those not in the cache read now, together."""
        return self._held(fields) or ParquetRows.load_many([(self, fields)])[0]

    @staticmethod
    def load_many(requests: Sequence[tuple[ParquetRows, Sequence[int]]]) -> list[Table]:
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
            device = requests[0][0]._cache.device
            task = sum(loading.cost(w) for loading, _, w in wanted) // (tuning.reading.thread_tasks * workers)
            scratch = min(max((w.size for _, _, w in wanted), default=0), tuning.reading.thread_bytes)
            try:
                with reading_room(device, scratch, workers) as hands:
                    made = run_phases([loading.column(w, task) for loading, _, w in wanted], hands)
            finally:
                for loading in loadings:
                    loading.close()
            for (loading, field, _), column in zip(wanted, made, strict=True):
                loading.found[field] = column
            return [loading.table() for loading in loadings]

    def rows_with(self, groups: Sequence[RowGroup], field: int, domain: Domain) -> list[SelectedRows] | None:
        """Which rows of row groups have values of a domain in a column; None where nobody can look before it is read whole."""
        wanted, cache = self._wanted(field), self._cache
        codes = list(wanted.leaves) if wanted.as_codes else []
        reader = ParquetReader(self._contents, cache.reading_device, self._narrow, codes)
        workers = cache.workers if sum(g.rows for g in groups) > tuning.reading.one_thread else 1
        try:
            with reading_room(cache.device, min(wanted.size, tuning.reading.thread_bytes), workers) as hands:
                return run_phases([reader.selected(replace(wanted, cut=cut_groups(groups, 0)), domain)], hands)[0]
        finally:
            reader.close()

    def is_held(self, field: int) -> bool:
        """Whether a column is loaded and kept."""
        return self._cache.get(id(self), field) is not None

    def held(self) -> list[tuple[int, ColumnData]]:
        """The columns that are loaded and kept, with the numbers of their fields."""
        return self._cache.held(id(self))

    def _held(self, fields: Sequence[int]) -> Table | None:
        """The columns, if all are in the cache."""
        columns = self._cache.find(id(self), fields)
        if columns is None:
            return None
        return Table(Schema(tuple(self.schema.fields[f] for f in fields)), columns, self.rows)

    def __del__(self) -> None:
        cache = getattr(self, "_cache", None)
        if cache is not None:
            cache.forget(id(self))

    # ---- footers ---------------------------------------------------------------------------------------------------

    def _chunks(self, field: int) -> tuple[Chunks, ...]:
        """What footers tell of a field's leaves in every row group."""
        return self._contents.chunks(field, self._groups)

    def bytes_of(self, field: int) -> int:
        """Uncompressed bytes of a field in the files; 0 for one that the paths give."""
        return 0 if field in self._contents.path_columns else sum(int(c.unpacked.sum()) for c in self._chunks(field))

    def _wanted(self, field: int) -> Wanted:
        type_ = self._contents.arrow_schema.field(field).type
        as_codes = self.rows >= tuning.reading.coded_rows and self._has_small_dictionary(field)
        if as_codes:
            type_ = pa.dictionary(pa.int32(), type_)
        leaves, bounds = self._contents.leaves(field), self.statistics(field).bounds
        return Wanted(self.schema.fields[field], leaves, type_, as_codes, bounds, self.bytes_of(field), Cut((), ()), field)

    def _has_small_dictionary(self, field: int) -> bool:
        """Whether a string column takes so few bytes a value that it must be codes into small dictionaries."""
        if not self.schema.fields[field].dtype.is_string or pa.types.is_dictionary(
            self._contents.arrow_schema.field(field).type
        ):
            return False
        (chunks,) = self._chunks(field)
        values = int(chunks.values.sum())
        return bool(chunks.has_dictionary.all()) and values > 0 and int(chunks.unpacked.sum()) <= 3 * values

    def _footer_statistics(self, field: int) -> ColumnStatistics:
        dtype = self.schema.fields[field].dtype
        if dtype.is_opaque:  # the leaves of a nested column count NULLs of their own
            return ColumnStatistics()
        if field in self._contents.path_columns:
            values = self._contents.path_columns[field].values
            return ColumnStatistics(distinct=len({values[g.file] for g in self._groups}))
        by_group = self._contents.nulls(field, self._groups)
        whole = np.fromiter((g.whole for g in self._groups), np.bool_, len(self._groups))
        is_counted = not ((by_group < 0) | ((by_group > 0) & ~whole)).any()
        nulls = int(by_group.sum()) if is_counted else None
        if not dtype.is_exact:
            return ColumnStatistics(null_count=nulls)
        extents = self._contents.extents(field, self._groups)
        known, low, high = extents.known, extents.low[extents.known], extents.high[extents.known]
        if not len(low) or not (known | (extents.rows == 0) | (extents.nulls == extents.rows)).all():
            return ColumnStatistics(null_count=nulls)
        bounds = Bounds(int(low.min()), int(high.max()))
        if nulls != 0:
            bounds = bounds | Bounds(0, 0)  # payloads under NULL are zero
        return ColumnStatistics(bounds, nulls, min(self.rows, bounds.width))

    @property
    def _rows_by_file(self) -> list[int]:
        rows = [0] * len(self._contents.files)
        for group in self._groups:
            rows[group.file] += group.rows
        return rows


@contextmanager
def reading_room(device: Device | None, size: int, workers: int) -> Iterator[int]:
    """Within it, room for decoding is taken, ``size`` bytes a thread: for as many of them as it is given."""
    if device is None or not device.keeps_columns:
        yield workers
        return
    while workers > 1 and size * workers > device.free_bytes:
        workers -= 1
    with device.scratch(size * workers, _READING):
        yield workers
    trim_freed_memory()
    if device.spill is not None:
        device.spill.rest()


class _Loading:
    """What a query asks of a source: the columns in the cache, and the reading of the others."""

    def __init__(self, source: ParquetRows, fields: Sequence[int]) -> None:
        self.source = source
        self._fields = fields
        self.found: dict[int, ColumnData] = {}
        self.wanted: dict[int, Wanted] = {}  # what is to be read
        files = source._contents
        for f in set(fields):
            column = source._cache.get(id(source), f)
            if column is not None:
                self.found[f] = column
            elif f in files.path_columns:
                array = files.path_columns[f].array(source._rows_by_file)
                self.found[f] = import_column(array, source.schema.fields[f], source._narrow)
            else:
                self.wanted[f] = source._wanted(f)
        codes = [leaf for w in self.wanted.values() if w.as_codes for leaf in w.leaves]
        device = source._cache.reading_device
        self._is_cut = source._selection is None and (device is None or not device.keeps_columns)
        self.reader = ParquetReader(files, device, source._narrow, codes, source._selection)

    def cost(self, wanted: Wanted) -> int:
        """What it takes to read a column, in about nanoseconds."""
        return wanted.size + tuning.reading.value_cost * self.source.rows

    def column(self, wanted: Wanted, task: int) -> Phases[ColumnData]:
        """Read a column in tasks that cost about so much each: fewer would leave threads without work, and for more they would
        wait at the interpreter. Not where a run's bits are those of a row group, or memory is limited."""
        rows = self.source.rows
        most = min(tuning.reading.run_rows, rows * task // max(self.cost(wanted), 1)) if self._is_cut else 0
        return self.reader.column(replace(wanted, cut=cut_groups(self.source._groups, most)))

    def close(self) -> None:
        if self.wanted:
            self.source.spent = self.reader.close()

    def table(self) -> Table:
        """The columns in the order that was asked for, now in the cache. FileError where a file has changed meanwhile: the
        footers that were read before tell where its pages lie."""
        source, found = self.source, self.found
        if self.wanted and tuple(source.asked.find()) != source._contents.files:
            raise FileError(f"The files of {source.name} have changed while they were read")
        device = source._cache.device
        if device is not None and device.keeps_columns:
            for column in found.values():
                count_column(device, column, _READING)
        source._statistics |= {f: column.statistics for f, column in found.items()}
        source._cache.put(id(source), found, source.name)
        columns = tuple(found[f] for f in self._fields)
        return Table(Schema(tuple(source.schema.fields[f] for f in self._fields)), columns, source.rows)
