"""Opening files by name: which format, with which options. Behind ``FROM 'x.csv'``, the table functions ``read_csv``,
``read_json``, ``read_ipc``, ``read_parquet`` and the methods of `Connection` of those names; the options are DuckDB's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from gquery.api.session import Session
from gquery.errors import FileError, InterfaceError, NotSupportedError
from gquery.runtime.boundary import boundary
from gquery.runtime.interrupt import Lock

if TYPE_CHECKING:
    from gquery.api.connection import Connection
    from gquery.api.relation import Relation
    from gquery.columns.table import ColumnData, TableSource
    from gquery.io.column_cache import ColumnCache
    from gquery.planner.logical.nodes import Query
    from gquery.runtime.recent import Recent


class Files(Session):
    """The part of a connection that reads and writes files."""

    _cache: ColumnCache
    _files: Recent[Any, TableSource]
    _files_lock: Lock

    def read_parquet(self, paths: Any, **options: Any) -> Relation:
        """Parquet files as a relation: a path, a glob pattern, a directory, a URI of an object store, or a list of them.
        Options: ``hive_partitioning`` (found out), ``filename`` (as a column; a text names it),
        ``filesystem`` (of pyarrow.fs or fsspec).
        FileError where a file is missing or damaged."""
        return self._read_files(paths, "parquet", options)

    def read_csv(self, paths: Any, **options: Any) -> Relation:
        """CSV files as a relation; delimiter, header and types are found out where no option says them: ``delim``,
        ``header``, ``quote``, ``escape``, ``nullstr`` (one or a list), ``allow_quoted_nulls``, ``skip``, ``names``,
        ``types``, ``columns``, ``all_varchar``, ``decimal_separator``, ``timestampformat``, ``ignore_errors``, and those
        of `read_parquet`."""
        return self._read_files(paths, "csv", options)

    def read_json(self, paths: Any, **options: Any) -> Relation:
        """JSON files as a relation: objects, one a line or over several lines, or one array of them."""
        return self._read_files(paths, "json", options)

    def read_ipc(self, paths: Any, **options: Any) -> Relation:
        """Arrow IPC files or streams (Feather) as a relation."""
        return self._read_files(paths, "ipc", options)

    @boundary
    def _copy(self, query: Query, path: str, options: Mapping[str, object]) -> int:
        """Write the rows of a query to a file, as COPY ... TO does; how many there are."""
        from gquery.api.copying import copied
        from gquery.api.relation import Relation

        return copied(query, path, options, lambda made: Relation(cast("Connection", self), self._plan(made)))

    @boundary
    def _read_files(self, paths: Any, kind: str, options: Mapping[str, Any]) -> Relation:
        self._check_open()
        from gquery.api.relation import Relation
        from gquery.expression.expr import new_column
        from gquery.planner.logical.nodes import Query, Scan

        source = self._open_file(paths, kind, options)
        columns = tuple(new_column(f.name, f.dtype, f.nullable) for f in source.schema)
        scan = Scan(source, columns, tuple(range(len(columns))))
        return Relation(cast("Connection", self), self._plan(Query(scan, columns, source.schema.names)))

    def kept_columns(self) -> Iterator[tuple[str, str, ColumnData]]:
        """The columns in memory, of tables and of files: the table's name, the column's, the column."""
        tables = {name: self._catalog.table(name) for name in self._catalog.tables()}
        names = {id(source): name for name, source in tables.items()}
        files = [source for _, source in self._files.items()]
        for source in {id(s): s for s in (*files, *tables.values())}.values():
            for field, column in _held(source, self._cache):
                yield names.get(id(source), source.name), source.schema.fields[field].name, column

    def _open_file(self, paths: Any, kind: str | None = None, options: Mapping[str, Any] | None = None) -> TableSource:
        """One source a path, its options and connection, so that its columns are loaded once."""
        if kind in ("glob", "text", "blob"):  # read now, and for one query
            from gquery.io.whole_files import whole_files

            return whole_files(paths, kind, self.settings.narrow)
        if kind is not None and kind.startswith("parquet_"):  # so are footers
            from gquery.io.parquet_metadata import parquet_metadata

            return parquet_metadata(paths, kind, self.settings.narrow)
        is_one = isinstance(paths, (str, os.PathLike))
        several = paths if isinstance(paths, Sequence) and not is_one else [paths]
        if wrong := [p for p in several if not isinstance(p, (str, os.PathLike))]:
            raise InterfaceError(
                f"A file is named by a text or a path, or several by a list of them, not by {wrong[0]!r}"
            )
        named = os.fspath(paths) if is_one else tuple(os.fspath(p) for p in paths)
        key = (named, kind, repr(sorted((options or {}).items(), key=lambda o: o[0])))
        with self._files_lock:
            source = self._files.get(key)
            if source is None:
                source = self._files[key] = open_files(paths, kind, options or {}, self._cache, self.settings.narrow)
            else:
                _ = source.version  # looks whether the files have changed, and opens them again if so
        return source if self._cluster is None else self._cluster.table(source)


def found_files(paths: Sequence[str], kind: str) -> list[str]:
    """The files that paths, patterns and folders mean. NotSupportedError for those of other machines."""
    from gquery.io.files import items_of, resolve

    items = items_of(paths)
    if any(i.path is None for i in items):
        raise NotSupportedError("not supported: union_by_name of files that are not on this machine")
    return [f.path for f in resolve(items, kind)]


def _held(source: TableSource, cache: ColumnCache) -> Iterable[tuple[int, ColumnData]]:
    """The columns of a source that are in memory, with the numbers of their fields."""
    from gquery.columns.store import TableStore
    from gquery.io.memory import ArrowSource

    match source:
        case ArrowSource():
            return source.held()
        case TableStore():
            return enumerate(source.table.columns)
        case _:
            return cache.held(id(source))


def open_files(
    paths: Any, kind: str | None, options: Mapping[str, Any], cache: ColumnCache, narrow: bool
) -> TableSource:
    """The source for paths of the format ``kind``, or of the one that their names tell."""
    from gquery.io.files import SUFFIXES, format_of

    kind = kind or format_of(paths)
    if kind is None:
        known = ", ".join(end for ends in SUFFIXES.values() for end in ends[:2])
        raise FileError(
            f'"{paths}" has none of the ends {known}: read_parquet, read_csv, read_json and read_ipc say the format'
        )
    from gquery.api.file_options import file_options

    given = file_options(kind, options)
    if kind == "parquet":
        from gquery.io.parquet import ParquetSource

        return ParquetSource(
            paths, cache=cache, narrow=narrow, hive=given.hive, filename=given.filename, filesystem=given.filesystem
        )
    from gquery.io.text import FileSource

    return FileSource(paths, kind, given, narrow)
