"""What Parquet footers tell: rows, types, and the statistics of each column in each row group.

A `ParquetFiles` is a number of files of one schema as they were when they were opened. Sources read columns of them
(`gquery.io.parquet_rows`), of all row groups or of some.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.arrow import dtype_of, import_schema
from gquery.columns.page_values import page_kernels
from gquery.columns.store import check_names
from gquery.device.array import Array
from gquery.errors import FileError
from gquery.expression.types import Schema
from gquery.io.chunks import (
    Chunks,
    FooterTable,
    footer_bytes,
    integer_width,
    table_of,
    within,
    words_in_table,
    words_of_objects,
)
from gquery.io.extents import Extents, extent_of, extent_of_value
from gquery.io.files import File, PathColumn, readable, reading
from gquery.io.footers import check_chunks, check_rows, chunk_of, row_groups_of, rows_of, types_of
from gquery.io.parquet_opened import OpenedParquet, random_access
from gquery.io.watched import Asked
from gquery.runtime.interrupt import check
from gquery.runtime.records import dataclass
from gquery.runtime.tuples import NamedTuple


class RowGroup(NamedTuple):
    """The first ``rows`` rows of a row group: number ``number`` of file ``file``; ``position`` counts through all files."""

    position: int
    file: int
    number: int
    rows: int
    whole: bool = True


@dataclass(frozen=True, eq=False)
class ParquetFiles:
    """Files of one schema, their footers and the columns that their paths give, which come behind those of the files."""

    files: tuple[File, ...]
    footers: tuple[Any, ...]
    raw_footers: tuple[Array | None, ...]  # their bytes, where kernels may read them
    arrow_schema: pa.Schema
    schema: Schema
    path_columns: dict[int, PathColumn]

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """Every row group of every file, in order."""
        places = [(f, g, r) for f, footer in enumerate(self.footers) for g, r in enumerate(rows_of(footer))]
        return tuple(RowGroup(i, *place) for i, place in enumerate(places))

    @cached_property
    def rows(self) -> int:
        return sum(footer.num_rows for footer in self.footers)

    @cached_property
    def _first_leaves(self) -> list[int]:
        """The number of the first leaf of each field, and how many there are."""
        out = [0]
        for type_ in self.arrow_schema.types:
            out.append(out[-1] + _leaves(type_))
        return out

    def leaves(self, field: int) -> range:
        """The numbers of a field's leaves in the files: one of a flat field, several of a nested one."""
        return range(self._first_leaves[field], self._first_leaves[field + 1])

    def chunks(self, field: int) -> tuple[Chunks, ...]:
        """What footers tell of the chunks of each of a field's leaves, in all row groups: more once kernels are ready. FileError
        where they contradict themselves."""
        key = field, page_kernels() is not None
        known = self._chunks.get(key)
        if known is None:
            parts = [
                [self._words(f, leaf, not self.schema.fields[field].dtype.is_opaque) for f in range(len(self.files))]
                for leaf in self.leaves(field)
            ]
            known = self._chunks[key] = tuple(Chunks(np.concatenate(each)) for each in parts)
        return known

    def _words(self, file: int, leaf: int, has_nulls: bool) -> Array:
        """A row of `CHUNK_WORDS` for each chunk of a leaf in a file."""
        table, footer, name = self._table(file), self.footers[file], self.files[file].name
        if table is not None:
            return words_in_table(table, footer, leaf, name)
        self._check(file, leaf)
        return words_of_objects(footer, leaf, name, has_nulls)

    def _table(self, file: int) -> FooterTable | None:
        """The footer of a file as kernels read it, once they are ready; None where they do not take it."""
        raw = self.raw_footers[file]
        if file not in self._tables and raw is not None and (kernels := page_kernels()) is not None:
            self._tables[file] = table_of(kernels, self.footers[file], raw)
        return self._tables.get(file)

    def positions(self, groups: Sequence[RowGroup]) -> Array | slice:
        """Where in what there is of all row groups some of them, in order, have theirs."""
        if len(groups) == len(self.groups):
            return slice(None)
        return np.fromiter((g.position for g in groups), np.int64, len(groups))

    def _check(self, file: int, leaf: int) -> None:
        """FileError where PyArrow's objects of a leaf's chunks cannot be asked for."""
        found, footer = self.files[file], self.footers[file]
        with reading(found.name, "Parquet file"):
            check_chunks(footer, found.size, range(footer.num_row_groups), [leaf])

    def extents(self, field: int, groups: Sequence[RowGroup]) -> Extents:
        """What is known of a column in row groups, which is looked up in the footers once."""
        known = self._extents.get(field)
        if known is None:
            known = self._extents[field] = self._read_extents(field)
        return known.take(self.positions(groups))

    def nulls(self, field: int, groups: Sequence[RowGroup]) -> Array:
        """How many NULLs a column has in row groups (int64, -1: not known)."""
        if field in self.path_columns or self.schema.fields[field].dtype.is_opaque:
            return self.extents(field, groups).nulls
        (chunks,) = self.chunks(field)
        return chunks.take(self.positions(groups)).nulls

    def _read_extents(self, field: int) -> Extents:
        dtype, by_path = self.schema.fields[field].dtype, self.path_columns.get(field)
        rows = np.array([g.rows for g in self.groups], np.int64)
        if by_path is not None:
            every = [extent_of_value(by_path.values[g.file], dtype, g.rows) for g in self.groups]
            return Extents.of(rows, np.array([e.nulls for e in every], np.int64), [(e.low, e.high) for e in every])
        if dtype.is_opaque:  # the statistics of a nested column are those of its leaves
            return Extents.of(rows, np.full(len(rows), -1), [(None, None)] * len(rows))
        nulls, parts, at = self.nulls(field, self.groups), [], 0
        for file, footer in enumerate(self.footers):
            some = slice(at, at + footer.num_row_groups)
            parts.append(self._extents_of_file(field, file, rows[some], nulls[some]))
            at = some.stop
        return Extents.joined(parts)

    def _extents_of_file(self, field: int, file: int, rows: Array, nulls: Array) -> Extents:
        (leaf,), dtype, footer = self.leaves(field), self.schema.fields[field].dtype, self.footers[file]
        table = self._table(file)
        if table is not None and not table.has_ends(leaf):
            table = None
        if table is not None and (width := integer_width(footer.schema.column(leaf), self.arrow_schema.field(field).type)):
            low, high, known = table.integers(leaf, width)
            return Extents(rows, nulls, low, high, within(dtype, low, high, known) & (nulls != rows))
        if table is not None and dtype.is_string and footer.schema.column(leaf).physical_type == "BYTE_ARRAY":
            return Extents.of(rows, nulls, list(zip(*table.texts(leaf), strict=True)))
        self._check(file, leaf)
        name, types = self.files[file].name, types_of(footer)
        groups = zip(row_groups_of(footer), rows.tolist(), strict=True)
        found = [extent_of(chunk_of(group, leaf, types, name), dtype, count) for group, count in groups]
        return Extents.of(rows, nulls, [(e.low, e.high) for e in found])

    @cached_property
    def _chunks(self) -> dict[tuple[int, bool], tuple[Chunks, ...]]:
        return {}

    @cached_property
    def _tables(self) -> dict[int, FooterTable | None]:
        return {}

    @cached_property
    def _extents(self) -> dict[int, Extents]:
        return {}


def open_files(asked: Asked, files: list[File]) -> ParquetFiles:
    """Read the footers of files; FileError names the one that is at fault."""
    footers, raw_footers = list[Any](), list[Array | None]()
    schema: pa.Schema | None = None
    first = f'"{files[0].name}"'
    for file in files:
        check()
        with reading(file.name, "Parquet file"), OpenedParquet(random_access(file)) as opened:
            check_rows(opened.metadata)
            footers.append(opened.metadata)
            raw_footers.append(footer_bytes(opened.source, file, opened.metadata))
            arrow_schema = readable(opened.schema)
            file.check_unchanged()
        if schema is None:
            schema = arrow_schema
        elif not _same(schema, arrow_schema):
            raise FileError(
                f'"{file.name}" has other columns than {first}: {_words(arrow_schema)} against {_words(schema)}'
            )
    assert schema is not None
    path_columns: dict[int, PathColumn] = {}
    for column in asked.columns(files, schema.names):
        path_columns[len(schema)] = column
        schema = schema.append(pa.field(column.name, column.type, None in column.values))
    types = import_schema(schema)
    check_names(types, first)
    return ParquetFiles(tuple(files), tuple(footers), tuple(raw_footers), schema, types, path_columns)


def _leaves(type_: pa.DataType) -> int:
    """How many columns of a Parquet file hold a value of an Arrow type."""
    if isinstance(type_, pa.BaseExtensionType):
        return _leaves(type_.storage_type)
    if pa.types.is_nested(type_) and not pa.types.is_run_end_encoded(type_):
        return sum(_leaves(type_.field(i).type) for i in range(type_.num_fields))
    return 1


def _same(a: pa.Schema, b: pa.Schema) -> bool:
    """Equal names and logical types; strings may be laid out in different ways, opaque values are of one Arrow type."""
    return a.names == b.names and all(
        x == y or (dtype_of(x) == dtype_of(y) and not dtype_of(x).is_opaque)
        for x, y in zip(a.types, b.types, strict=True)
    )


def _words(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {dtype_of(f.type)}" for f in schema)
