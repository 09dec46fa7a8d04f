"""What Parquet footers tell: rows, types, and the statistics of each column in each row group.

A `ParquetFiles` is a number of files of one schema as they were when they were opened. Sources read columns of them
(`gquery.io.parquet_rows`), of all row groups or of some.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from gquery.columns.arrow import dtype_of, import_schema
from gquery.columns.store import check_names
from gquery.errors import FileError
from gquery.expression.types import Schema
from gquery.io.extents import Extent, extent_of, extent_of_value, nulls_of
from gquery.io.files import File, PathColumn, readable, reading
from gquery.io.footers import check_chunks, check_rows, chunk_of, types_of
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
    arrow_schema: pa.Schema
    schema: Schema
    path_columns: dict[int, PathColumn]

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """Every row group of every file, in order."""
        places = [(f, g) for f, footer in enumerate(self.footers) for g in range(footer.num_row_groups)]
        return tuple(RowGroup(i, f, g, self.row_groups[i].num_rows) for i, (f, g) in enumerate(places))

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

    def chunks(self, field: int, groups: Sequence[RowGroup]) -> Iterator[Any]:
        """The metadata of a field's leaves in row groups, of which statistics can be asked."""
        self.check([field], groups)
        leaves, row_groups, types = self.leaves(field), self.row_groups, self._types
        for group in groups:
            for leaf in leaves:
                yield chunk_of(row_groups[group.position], leaf, types[group.file], self.files[group.file].name)

    def check(self, fields: Iterable[int], groups: Sequence[RowGroup]) -> None:
        """FileError where footers cannot be asked about fields in row groups; each is looked at once, several fields together in
        less time than one by one."""
        positions = {group.position for group in groups}
        wanted = [f for f in fields if f not in self.path_columns and not self._checked[f] >= positions]
        by_file: dict[int, list[int]] = {}
        for group in groups if wanted else ():
            by_file.setdefault(group.file, []).append(group.number)
        for number, numbers in by_file.items():
            file, footer = self.files[number], self.footers[number]
            with reading(file.name, "Parquet file"):
                check_chunks(footer, file.size, numbers, [leaf for f in wanted for leaf in self.leaves(f)])
        for f in wanted:
            self._checked[f] |= positions

    def extents(self, field: int, groups: Sequence[RowGroup]) -> list[Extent]:
        """What is known of a column in row groups, each of which is looked up in the footers once."""
        known = self._extents.setdefault(field, {})
        missing = [self.groups[g.position] for g in groups if g.position not in known]
        known.update(zip([g.position for g in missing], self._read_extents(field, missing), strict=True))
        return [known[g.position] for g in groups]

    def has_nulls(self, field: int, groups: Sequence[RowGroup]) -> bool:
        """Whether there may be NULLs in row groups: less to look up than `extents`, and no more than up to the first of them."""
        if field in self.path_columns or self.schema.fields[field].dtype.is_opaque:
            return any(e.nulls != 0 for e in self.extents(field, groups))
        return any(nulls_of(chunk) != 0 for chunk in self.chunks(field, groups))

    def _read_extents(self, field: int, groups: Sequence[RowGroup]) -> list[Extent]:
        dtype, by_path = self.schema.fields[field].dtype, self.path_columns.get(field)
        if by_path is not None:
            return [extent_of_value(by_path.values[g.file], dtype, g.rows) for g in groups]
        if dtype.is_opaque:  # the statistics of a nested column are those of its leaves
            return [Extent(g.rows) for g in groups]
        return [extent_of(c, dtype, g.rows) for c, g in zip(self.chunks(field, groups), groups, strict=True)]

    @cached_property
    def _extents(self) -> dict[int, dict[int, Extent]]:
        return {}

    @cached_property
    def _checked(self) -> dict[int, set[int]]:
        """By field, the positions of the row groups where it can be asked about."""
        return defaultdict(set)

    @cached_property
    def row_groups(self) -> list[Any]:
        """What the footers tell of the row groups of all files."""
        return [footer.row_group(g) for footer in self.footers for g in range(footer.num_row_groups)]

    @cached_property
    def _types(self) -> list[list[str]]:
        return [types_of(footer) for footer in self.footers]


def open_files(asked: Asked, files: list[File]) -> ParquetFiles:
    """Read the footers of files; FileError names the one that is at fault."""
    footers: list[Any] = []
    schema: pa.Schema | None = None
    first = f'"{files[0].name}"'
    for file in files:
        check()
        with reading(file.name, "Parquet file"), OpenedParquet(random_access(file)) as opened:
            check_rows(opened.metadata)
            footers.append(opened.metadata)
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
    return ParquetFiles(tuple(files), tuple(footers), schema, types, path_columns)


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
