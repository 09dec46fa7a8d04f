"""What Parquet footers tell: rows, types, and the statistics of each column in each row group.

A `ParquetFiles` is a number of files of one schema as they were when they were opened. Sources read columns of them
(`gquery.io.parquet_rows`), of all row groups or of some.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.arrow import dtype_of, import_schema
from gquery.columns.page_values import CHUNK_WORDS, page_kernels
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
from gquery.io.extents import Ends, Extent, Extents, extent_of, extent_of_value
from gquery.io.files import File, PathColumn, readable, reading
from gquery.io.footers import check_chunks, check_rows, chunk_of, rows_of, types_of
from gquery.io.parquet_opened import OpenedParquet, random_access
from gquery.io.watched import Asked
from gquery.runtime.interrupt import check
from gquery.runtime.records import cached_property, dataclass
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
    """Files of one schema, their footers and the columns that their paths give, which come behind those of the files, or in the
    place of one. ``written``: how many leaves each of the files' own columns has."""

    files: tuple[File, ...]
    footers: tuple[Any, ...]
    raw_footers: tuple[Array | None, ...]  # their bytes, where kernels may read them
    arrow_schema: pa.Schema
    schema: Schema
    path_columns: dict[int, PathColumn]
    written: tuple[int, ...]

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
        return list(accumulate(self.written, initial=0))

    def leaves(self, field: int) -> range:
        """The numbers of a field's leaves in the files: one of a flat field, several of a nested one."""
        return range(self._first_leaves[field], self._first_leaves[field + 1])

    def chunks(self, field: int, groups: Sequence[RowGroup]) -> tuple[Chunks, ...]:
        """What footers tell of the chunks of each of a field's leaves in row groups: more once kernels are ready. FileError where
        they contradict themselves."""
        positions, has_nulls = self.positions(groups), not self.schema.fields[field].dtype.is_opaque
        return tuple(Chunks(self._words(leaf, positions, has_nulls)[positions]) for leaf in self.leaves(field))

    def _words(self, leaf: int, positions: Array | slice, has_nulls: bool) -> Array:
        """A row of `CHUNK_WORDS` for each chunk of a leaf; those of some row groups are there."""
        found = self._leaves.get((leaf, page_kernels() is not None))
        if found is None:
            found = np.full((len(self.groups), len(CHUNK_WORDS)), -1), np.zeros(len(self.groups), np.bool_)
            self._leaves[leaf, page_kernels() is not None] = found
        words, are_there = found
        for file, numbers in self._missing(positions, are_there):
            table, footer, name, rows = self._table(file), self.footers[file], self.files[file].name, self._rows_of(file)
            if table is not None:
                words[rows] = words_in_table(table, footer, leaf, name)
            else:
                self._check(file, leaf, numbers)
                rows = rows.start + numbers
                words[rows] = words_of_objects(footer, numbers.tolist(), leaf, name, has_nulls)
            are_there[rows] = True
        return words

    def _missing(self, positions: Array | slice, are_there: Array) -> Iterator[tuple[int, Array]]:
        """The files with those of some row groups that are not there yet, and the numbers of these in them."""
        missing = np.arange(len(are_there))[positions]
        missing = missing[~are_there[missing]]
        files = np.searchsorted(self._firsts, missing, side="right") - 1
        for file in np.flatnonzero(np.bincount(files)).tolist():  # `np.unique` imports numpy.ma
            yield file, missing[files == file] - self._firsts[file]

    def _rows_of(self, file: int) -> slice:
        """Where what there is of all row groups has those of a file."""
        return slice(int(self._firsts[file]), int(self._firsts[file + 1]))

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

    def _check(self, file: int, leaf: int, numbers: Array) -> None:
        """FileError where PyArrow's objects of a leaf's chunks in row groups cannot be asked for. Each is looked at once."""
        found, footer, checked = self.files[file], self.footers[file], self._checked[file, leaf]
        if not checked.issuperset(numbers.tolist()):
            with reading(found.name, "Parquet file"):
                check_chunks(footer, found.size, numbers.tolist(), [leaf])
            checked.update(numbers.tolist())

    def extents(self, field: int, groups: Sequence[RowGroup]) -> Extents:
        """What is known of a column in row groups, each of which is looked up in the footers once."""
        positions, nulls = self.positions(groups), self.nulls(field, groups)
        ends = self._ends(field, positions)
        rows = np.array([g.rows for g in self.groups], np.int64)[positions]
        return Extents(rows, nulls, ends.low[positions], ends.high[positions], ends.known[positions] & (nulls != rows))

    def nulls(self, field: int, groups: Sequence[RowGroup]) -> Array:
        """How many NULLs a column has in row groups (int64, -1: not known)."""
        by_path = self.path_columns.get(field)
        if by_path is not None:
            return np.array([g.rows if by_path.values[g.file] is None else 0 for g in groups], np.int64)
        if self.schema.fields[field].dtype.is_opaque:  # the statistics of a nested column are those of its leaves
            return np.full(len(groups), -1)
        (chunks,) = self.chunks(field, groups)
        return chunks.nulls

    def _ends(self, field: int, positions: Array | slice) -> Ends:
        """Minima and maxima of a column; those in some row groups are there."""
        ends, dtype = self._extremes.get(field), self.schema.fields[field].dtype
        if ends is None:
            ends = self._extremes[field] = Ends.of(len(self.groups), dtype)
        for file, numbers in self._missing(positions, ends.are_there):
            if (by_path := self.path_columns.get(field)) is not None:
                ends.put(numbers + self._firsts[file], [extent_of_value(by_path.values[file], dtype, 1)] * len(numbers))
            elif dtype.is_opaque:
                ends.put(numbers + self._firsts[file], [Extent(1)] * len(numbers))
            else:
                self._put_ends(ends, field, file, numbers)
        return ends

    def _put_ends(self, ends: Ends, field: int, file: int, numbers: Array) -> None:
        """Minima and maxima of a column in a file: of some row groups, of all where that takes no longer."""
        (leaf,), dtype, footer, table = self.leaves(field), self.schema.fields[field].dtype, self.footers[file], self._table(file)
        column, name = footer.schema.column(leaf), self.files[file].name
        if table is not None and table.has_ends(leaf):
            rows, width = self._rows_of(file), integer_width(column, self.arrow_schema.field(field).type)
            if width is not None:
                low, high, known = table.integers(leaf, width)
                ends.put_words(rows, low, high, within(dtype, low, high, known))
                return
            if dtype.is_string and column.physical_type == "BYTE_ARRAY":
                ends.put(np.arange(rows.start, rows.stop), [Extent(1, *each) for each in zip(*table.texts(leaf), strict=True)])
                return
        self._check(file, leaf, numbers)
        types = types_of(footer)
        found = [extent_of(chunk_of(footer.row_group(n), leaf, types, name), dtype, -1) for n in numbers.tolist()]
        ends.put(numbers + self._firsts[file], found)

    @cached_property
    def _firsts(self) -> Array:
        """The position of the first row group of each file, and how many there are."""
        return np.cumsum([0, *(footer.num_row_groups for footer in self.footers)])

    @cached_property
    def _leaves(self) -> dict[tuple[int, bool], tuple[Array, Array]]:
        return {}

    @cached_property
    def _checked(self) -> dict[tuple[int, int], set[int]]:
        """By file and leaf, the numbers of the row groups where it can be asked about."""
        return defaultdict(set)

    @cached_property
    def _tables(self) -> dict[int, FooterTable | None]:
        return {}

    @cached_property
    def _extremes(self) -> dict[int, Ends]:
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
                f'"{file.name}" has other columns than {first}: {_words(arrow_schema)} against {_words(schema)}; '
                "union_by_name = true puts columns together by their names"
            )
        else:
            schema = _plain(schema, arrow_schema)
    assert schema is not None
    path_columns: dict[int, PathColumn] = {}
    written = tuple(map(_leaves, schema.types))
    for column in asked.columns(files, schema.names):
        field = pa.field(column.name, column.type, None in column.values)
        place = schema.names.index(column.name) if column.name in schema.names else len(schema)
        path_columns[place] = column
        schema = schema.set(place, field) if place < len(schema) else schema.append(field)
    types = import_schema(schema)
    check_names(types, first)
    return ParquetFiles(tuple(files), tuple(footers), tuple(raw_footers), schema, types, path_columns, written)


def _leaves(type_: pa.DataType) -> int:
    """How many columns of a Parquet file hold a value of an Arrow type."""
    if isinstance(type_, pa.BaseExtensionType):
        return _leaves(type_.storage_type)
    if pa.types.is_nested(type_) and not pa.types.is_run_end_encoded(type_):
        return sum(_leaves(type_.field(i).type) for i in range(type_.num_fields))
    return 1


def _plain(a: pa.Schema, b: pa.Schema) -> pa.Schema:
    """The schema of files, plain where one of two has a dictionary and the other has none."""
    for place, (one, other) in enumerate(zip(a.types, b.types, strict=True)):
        if pa.types.is_dictionary(one) and not pa.types.is_dictionary(other):
            a = a.set(place, a.field(place).with_type(other))
    return a


def _same(a: pa.Schema, b: pa.Schema) -> bool:
    """Equal names and logical types; strings may be laid out in different ways, opaque values are of one Arrow type."""
    return a.names == b.names and all(
        x == y or (dtype_of(x) == dtype_of(y) and not dtype_of(x).is_opaque)
        for x, y in zip(a.types, b.types, strict=True)
    )


def _words(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {dtype_of(f.type)}" for f in schema)
