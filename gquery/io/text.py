"""CSV, JSON and Arrow IPC files as a table. They have no footer that tells rows and types, so opening reads them; a column
is validated and encoded when a query first uses it, and Arrow's copy of it is given up then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from gquery import tuning
from gquery.columns.domain import Restriction, ScanUse
from gquery.columns.ownership import file_origin
from gquery.columns.table import ColumnData, ColumnStatistics, Table
from gquery.errors import FileError
from gquery.expression.types import DType
from gquery.io.csv_files import has_texts, other_types, read_csv
from gquery.io.files import File, Paths, readable, reading
from gquery.io.memory import ArrowSource
from gquery.io.options import CsvOptions, FileOptions, JsonOptions
from gquery.io.watched import Asked, WatchedFiles
from gquery.runtime.arrow_compute import pc
from gquery.runtime.interrupt import check


class FileSource(WatchedFiles):
    """A file, several, a pattern or a directory of one of the formats "csv", "json" and "ipc"; see `ParquetSource`."""

    def __init__(self, paths: Paths, kind: str, options: FileOptions, narrow: bool = True) -> None:
        super().__init__(Asked(paths, kind, options.hive, options.filename, options.filesystem))
        self._kind, self._narrow = kind, narrow
        self._csv, self._json = options.csv or CsvOptions(), options.json or JsonOptions()
        self._open(self.asked.find())
        self.name = os.path.basename(self._files[0].name).split(".")[0]

    @property
    def rows(self) -> int:
        return self._inner.rows

    def statistics(self, field: int) -> ColumnStatistics:
        return self._inner.statistics(field)

    def has_nulls(self, field: int) -> bool:
        """Whether the field may hold NULLs."""
        return self.statistics(field).null_count != 0

    def is_unique(self, field: int) -> bool:
        """Whether no value comes twice and none is NULL, for certain."""
        return self.statistics(field).is_unique

    def load(self, fields: Sequence[int]) -> Table:
        return self._inner.load(fields)

    def restricted(self, uses: Sequence[ScanUse]) -> Restriction:
        """See `ArrowSource.restricted`."""
        made = self._inner.restricted(uses)
        return Restriction(self) if made.source is self._inner else made

    def held(self) -> list[tuple[int, ColumnData]]:
        """The columns that are encoded already, with the numbers of their fields."""
        return self._inner.held()

    def _open(self, files: list[File]) -> None:
        types: Mapping[str, DType] = {}
        try:
            tables = [self._table(file) for file in files]
            if self._kind == "csv" and (texts := other_types(tables)):
                tables = [t if has_texts(t, texts) else self._table(f, texts) for t, f in zip(tables, files, strict=True)]
            whole = self._whole(tables, files)
        except FileError as error:
            mixed = self._mixed(files) if self._kind == "json" and isinstance(error.__cause__, pa.ArrowException) else None
            if mixed is None:
                raise
            tables, types = mixed
            whole = self._whole(tables, files)
        else:
            if self._kind == "json" and any(map(_has_empty_structs, whole.schema.types)):
                tables, types = self._mixed(files) or (tables, types)
                whole = self._whole(tables, files)
        if not whole.num_columns and not whole.num_rows:  # files without a byte: a column without a value, as in DuckDB
            name, type_ = ("json", pa.json_()) if self._kind == "json" else ("column0", pa.string())
            whole = pa.table({name: pa.nulls(0, type_)})
        rows = [t.num_rows for t in tables]
        for column in self.asked.columns(files, whole.column_names):
            place, array = whole.column_names.index(column.name) if column.name in whole.column_names else -1, column.array(rows)
            whole = whole.append_column(column.name, array) if place < 0 else whole.set_column(place, column.name, array)
        first = f'"{files[0].name}"'
        origin = file_origin(first)
        names = {n: types.get(n) for n in whole.column_names} if types else whole.column_names
        self._inner = ArrowSource(first, names, whole.columns, whole.num_rows, self._narrow, origin)
        self.schema = self._inner.schema
        self._files = files

    def _table(self, file: File, texts: Collection[str] = ()) -> pa.Table:
        """The rows of a file; ``texts`` are columns of CSV that are texts whatever they hold."""
        read = {"csv": lambda f: read_csv(f, self._csv, texts), "json": self._read_json, "ipc": _read_ipc}[self._kind]
        check()
        with reading(file.name, f"{self._kind.upper() if self._kind != 'ipc' else 'Arrow'} file"):
            table = readable(read(file))
            file.check_unchanged()
        return table

    def _whole(self, tables: list[pa.Table], files: list[File]) -> pa.Table:
        """The rows of all files."""
        if len(tables) == 1:
            return tables[0]
        try:
            whole = pa.concat_tables(self._comparable(tables), promote_options="permissive")
        except MemoryError:
            raise
        except (pa.ArrowException, TypeError) as error:
            cause = error if isinstance(error, pa.ArrowException) else pa.ArrowTypeError(str(error))
            raise FileError(f'"{files[0].name}" and the files read with it have different columns: {error}') from cause
        return _closed(whole)

    def _mixed(self, files: list[File]) -> tuple[list[pa.Table], Mapping[str, DType]] | None:
        """The tables of JSON files in which a field has values of several kinds, and the types of these; None where the error was
        another."""
        from gquery.io import mixed_json

        try:
            values = [mixed_json.decoded(_text(f)) for f in files]
        except (ValueError, OSError):
            return None
        shape: Any = None
        for each in values:
            shape = mixed_json.shape_of(each, shape)
        shape = mixed_json.with_fields(shape)
        if not mixed_json.holds_json(shape):
            return None
        tables = []
        for file, each in zip(files, values, strict=True):
            with reading(file.name, "JSON file"):
                tables.append(readable(_read_lines(mixed_json.lines(each, shape), self._json)))
        return tables, mixed_json.types_of(self._whole(tables, files), shape)

    def _comparable(self, tables: list[pa.Table]) -> list[pa.Table]:
        """The tables; columns of a CSV file without a row have the types that other files give them."""
        if self._kind != "csv" or not any(t.num_rows for t in tables):
            return tables
        return [t if t.num_rows else pa.table({name: pa.nulls(0) for name in t.column_names}) for t in tables]

    def _read_json(self, file: File) -> pa.Table:
        return _read_json(file, self._json)


def _closed(table: pa.Table) -> pa.Table:
    """Columns to which no file has given a type are text."""
    for n, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(n, field.name, table.column(n).cast(pa.string()))
    return table


# ---- JSON and IPC ---------------------------------------------------------------------------------------------------


def _read_json(file: File, options: JsonOptions) -> pa.Table:
    """A line an object, objects over several lines, or one array of objects."""
    from pyarrow import json as arrow_json

    with file.stream() as stream:
        sample = bytes(stream.read(tuning.reading.csv_sample))
    start = sample.lstrip()
    if options.format != "auto" and start.startswith(b"[") != (options.format == "array"):
        raise FileError(f'"{file.name}" is not of the format {options.format}')
    block = max(options.maximum_object_size, 1 << 16)  # Arrow wants a whole object in a block
    read = arrow_json.ReadOptions(block_size=block)
    if start.startswith(b"["):
        with file.stream() as stream:
            rows = json.loads(bytes(stream.read()))
        return _read_lines("\n".join(json.dumps(row) for row in rows).encode(), options)
    if not start:
        return pa.table({})

    def parsed(options: Any) -> pa.Table:
        with file.stream() as stream:
            return arrow_json.read_json(stream, read, options)

    return _typed(parsed, not _is_object(start.split(b"\n")[0]))


def _text(file: File) -> str:
    with file.stream() as stream:
        return bytes(stream.read()).decode("utf-8-sig")


def _read_lines(lines: bytes, options: JsonOptions) -> pa.Table:
    """A line an object."""
    from pyarrow import json as arrow_json

    if not lines:
        return pa.table({})
    read = arrow_json.ReadOptions(block_size=max(options.maximum_object_size, 1 << 16, len(lines)))
    return _typed(lambda parse: arrow_json.read_json(pa.BufferReader(lines), read, parse), True)


def _typed(parsed: Callable[[Any], pa.Table], newlines: bool) -> pa.Table:
    """The table with types that Arrow does not find out: integers beyond 63 bits, which it makes floats, and days, which it
    makes timestamps. Its columns are looked at, and read again where that may be."""
    from pyarrow import json as arrow_json

    table = parsed(arrow_json.ParseOptions(newlines_in_values=newlines))
    wide = [f.name for f, c in zip(table.schema, table.columns, strict=True) if _may_be_unsigned(c)]
    days = [f.name for f, c in zip(table.schema, table.columns, strict=True) if _may_be_days(c)]
    for name in wide:
        again = pa.schema([(name, pa.uint64())])
        try:
            table = _replaced(table, name, parsed(_again(newlines, again))[name])
        except pa.ArrowInvalid:  # there are fractions or signs among them
            continue
    if days:
        texts = parsed(_again(newlines, pa.schema([(name, _as_texts(table.schema.field(name).type)) for name in days])))
        for name in days:
            type_ = _with_days(table.schema.field(name).type, texts[name].combine_chunks())
            if type_ != table.schema.field(name).type:
                table = _replaced(table, name, table[name].cast(type_))
    return table


def _as_texts(type_: pa.DataType) -> pa.DataType:
    """The type with texts in place of timestamps."""
    if pa.types.is_timestamp(type_):
        return pa.string()
    if pa.types.is_list(type_):
        return pa.list_(_as_texts(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([(f.name, _as_texts(f.type)) for f in type_.fields])
    return type_


def _with_days(type_: pa.DataType, texts: pa.Array) -> pa.DataType:
    """The type with days in place of timestamps whose texts are all days."""
    if pa.types.is_timestamp(type_):
        sizes = pc.binary_length(texts)
        return pa.date32() if pc.all(pc.equal(sizes, len("2000-01-01")), min_count=1).as_py() else type_
    if pa.types.is_list(type_):
        return pa.list_(_with_days(type_.value_type, texts.flatten()))
    if pa.types.is_struct(type_):
        return pa.struct([(f.name, _with_days(f.type, c)) for f, c in zip(type_.fields, texts.flatten(), strict=True)])
    return type_


def _again(newlines: bool, schema: pa.Schema) -> Any:
    from pyarrow import json as arrow_json

    return arrow_json.ParseOptions(newlines_in_values=newlines, explicit_schema=schema)


def _replaced(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def _may_be_unsigned(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_float64(column.type) or column.null_count == len(column):
        return False
    ends = pc.min_max(column).as_py()
    return bool(ends["min"] >= 0 and 2.0**63 <= ends["max"] <= 2.0**64)


def _may_be_days(column: pa.ChunkedArray) -> bool:
    if column.null_count == len(column):
        return False
    if pa.types.is_nested(column.type):
        return bool(_as_texts(column.type) != column.type)
    return pa.types.is_timestamp(column.type) and bool(
        pc.all(pc.equal(column, pc.floor_temporal(column, unit="day"))).as_py()
    )


def _is_object(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _read_ipc(file: File) -> pa.Table:
    """A file or a stream of Arrow's format, told apart by its first bytes."""
    source = file.random_access()
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    opened: Callable[[Any], Any] = pa.ipc.open_file if is_file else pa.ipc.open_stream
    return opened(source).read_all()


def _has_empty_structs(type_: pa.DataType) -> bool:
    """Whether there are objects without a field in a type."""
    below = [type_.field(n).type for n in range(type_.num_fields)]
    return (pa.types.is_struct(type_) and not below) or any(map(_has_empty_structs, below))
