"""Parquet files as a table: footers first, columns when a query needs them.

Opening reads footers alone. The first query on columns reads them from every file (`gquery.io.parquet_reader` does, on all
cores) and keeps them in the connection's cache. A string column that the footers show to be small is read with its
dictionary, which skips making the strings. The files' sizes and times are looked at before each query, so a file that
has changed is read again.

A query that needs few row groups reads those alone, as a `ParquetPart`: a table of its own, so that nothing that holds for
a part is taken for the whole. Its columns are kept as long as somebody holds the part (a plan that is kept does), and
found again by the numbers of its row groups. Parts that come to as many rows as the table has show that reading it would
have been cheaper: from then on columns are read whole.

Under a memory limit, where columns would take much of it, a part may have some rows of its row groups alone: those that a filter
on one column may keep (`gquery.io.selected_rows`). Each costs as much as reading the whole, so that columns are read so once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

from gquery import tuning
from gquery.columns.domain import Domain, Restriction, ScanUse
from gquery.io.column_cache import ColumnCache
from gquery.io.extents import Extent
from gquery.io.files import File, Paths
from gquery.io.parquet_files import RowGroup, open_files
from gquery.io.parquet_rows import ParquetRows
from gquery.io.row_groups import narrowest, needed
from gquery.io.selected_rows import Selection
from gquery.io.watched import Asked, WatchedFiles


class ParquetSource(WatchedFiles, ParquetRows):
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
        WatchedFiles.__init__(self, Asked(paths, "parquet", hive, filename, filesystem))
        ParquetRows.__init__(self, cache or ColumnCache(), narrow)
        files = self.asked.find()
        self.name = os.path.splitext(os.path.basename(files[0].name))[0]
        self._open(files)

    @property
    def rows(self) -> int:
        return self._contents.rows

    @property
    def files(self) -> tuple[File, ...]:
        """The files as they were when they were opened."""
        return tuple(self._files)

    @property
    def narrow(self) -> bool:
        """Whether columns get the narrowest integers that hold them."""
        return self._narrow

    @property
    def all_groups(self) -> tuple[RowGroup, ...]:
        """The row groups of all files, in the order of their rows."""
        return self._groups

    @property
    def row_groups(self) -> tuple[int, int]:
        return len(self._groups), len(self._groups)

    def extents(self, field: int, groups: Sequence[RowGroup]) -> list[Extent]:
        """Between which values a field lies in row groups, as far as the footers tell."""
        return list(self._contents.extents(field, groups))

    def _open(self, files: list[File]) -> None:
        with self._lock:
            self._cache.forget(id(self))
            self._files, self._contents = files, open_files(self.asked, files)
            self.schema, self._groups = self._contents.schema, self._contents.groups
            self._statistics = {}
            self._parts: WeakValueDictionary[PartKey, ParquetPart] = WeakValueDictionary()
            self._wide: set[tuple[int, Domain]] = set()  # filters that keep more rows than was thought
            self._read_in_parts: dict[int, int] = {}  # by field: the rows that parts have read

    def restricted(self, uses: Sequence[ScanUse]) -> Restriction:
        """The row groups that scans need, or the whole table: where it is loaded, where little would be left out, and where
        parts have cost as much already. See `DivisibleSource`."""
        fields = sorted({f for use in uses for f in use.fields})
        with self._lock:
            if all(self.is_held(f) for f in fields):
                return Restriction(self)
            groups, is_cut = needed(self._contents, uses)
            rows, part = sum(g.rows for g in groups), self._parts.get((groups, None))
            if part is None and self._is_worth_it(rows, fields):
                part = self._parts[groups, None] = ParquetPart(self, groups)
            if part is None and (part := self._selected(groups, uses, fields)) is None:
                return Restriction(self)
            for f in fields:
                if not part.is_counted(f):
                    self._read_in_parts[f] = self._read_in_parts.get(f, 0) + rows
        return Restriction(part, is_cut)

    def _selected(
        self, groups: tuple[RowGroup, ...], uses: Sequence[ScanUse], fields: Sequence[int]
    ) -> ParquetPart | None:
        """Those rows of row groups that a filter may keep, where columns would take much of a memory limit and were not read so
        before."""
        device, limit = self._cache.device, self._cache.limit
        if device is None or not device.keeps_columns or limit is None or any(map(self.is_held, fields)):
            return None
        if sum(map(self.bytes_of, fields)) < tuning.reading.selected_memory * limit:
            return None
        by = narrowest(self._contents, groups, uses)
        if by is None or by in self._wide:
            return None
        part = self._parts.get((groups, by))
        if part is not None:
            return part
        rows = sum(g.rows for g in groups)
        if any(self._read_in_parts.get(f, 0) + rows > self.rows for f in fields):
            return None
        found = self.rows_with(groups, *by)
        if found is None or sum(g.count for g in found) > tuning.reading.selected_share * rows:
            self._wide.add(by)
            return None
        kept = [(g._replace(rows=s.count, whole=False), s) for g, s in zip(groups, found, strict=True) if s.count]
        selection = Selection(by[0], tuple(s for _, s in kept))
        part = self._parts[groups, by] = ParquetPart(self, tuple(g for g, _ in kept), selection)
        return part

    def _is_worth_it(self, rows: int, fields: Sequence[int]) -> bool:
        """Whether to read so many rows of columns in place of all."""
        if rows > tuning.reading.largest_part * self.rows:
            return False
        limit = self._cache.limit
        if limit is not None and sum(map(self.bytes_of, fields)) > limit:  # the whole would not fit
            return True
        return all(self._read_in_parts.get(f, 0) + rows <= self.rows for f in fields)


PartKey = tuple[tuple[RowGroup, ...], tuple[int, Domain] | None]
"""What tells one part from another: its row groups, and by which column's values their rows are selected."""


class ParquetPart(ParquetRows):
    """Some rows of a `ParquetSource`, whose files are as they were when the part was made."""

    def __init__(self, whole: ParquetSource, groups: tuple[RowGroup, ...], selection: Selection | None = None) -> None:
        ParquetRows.__init__(self, whole._cache, whole._narrow)
        self.name, self.schema, self.asked = whole.name, whole.schema, whole.asked
        self._contents, self._groups, self._selection = whole._contents, groups, selection
        self._counted: set[int] = set()

    @property
    def version(self) -> int:
        """That of the files that it is a part of."""
        return hash(self._contents.files)

    @property
    def row_groups(self) -> tuple[int, int]:
        return len(self._groups), len(self._contents.groups)

    def is_counted(self, field: int) -> bool:
        """Whether a field was asked about before; it counts as read from now on."""
        known = field in self._counted
        self._counted.add(field)
        return known
