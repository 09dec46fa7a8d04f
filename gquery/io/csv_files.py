"""CSV files as tables of Arrow: its reader does the work, here is what DuckDB finds out and that does not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow import arrow_type
from gquery.errors import FileError, InterfaceError, did_you_mean
from gquery.io.csv_dialect import Dialect, Given, sniff
from gquery.io.csv_times import with_format, with_times
from gquery.io.files import File
from gquery.io.options import CsvOptions
from gquery.runtime.arrow_compute import pc

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NUMBERS = (pa.int64(), pa.float64())


def read_csv(file: File, options: CsvOptions, texts: Collection[str] = ()) -> pa.Table:
    """The rows of a file; columns called as ``texts`` are texts."""
    with _stream(file, options) as stream:
        sample = bytes(stream.read(tuning.reading.csv_sample))
    if sample in (b"", _BYTE_ORDER_MARK) and not (options.columns or options.names or options.types):
        return pa.table({})
    is_whole = len(sample) < tuning.reading.csv_sample
    given = Given(options.delim, options.header, options.quote, options.escape, options.skip, options.comment)
    dialect = sniff(sample, given, is_whole)
    names = [n for n, _ in options.columns] or [*options.names, *dialect.names[len(options.names) :]]
    types = {n: arrow_type(t) for n, t in options.columns}
    for name, dtype in options.types:
        types[_known(name, names)] = arrow_type(dtype)
    is_alone = dialect.has_header and b"\n" not in sample and b"\r" not in sample and is_whole
    if is_alone:  # which Arrow does not take for a line
        return pa.table({n: pa.nulls(0, types.get(n, pa.string())) for n in names})
    asked = dict(types)
    types = {names[k]: pa.string() for k in dialect.texts if k < len(names)} | types
    if options.all_varchar or texts:
        types = {n: pa.string() for n in names if options.all_varchar or n.lower() in texts} | types
    found = [] if options.all_varchar else [n for n in names if n not in asked and n.lower() not in texts]
    if options.dateformat is not None:
        types |= {n: pa.string() for n, t in asked.items() if t == pa.date32()}
    table = _parse(file, options, dialect, names, types)
    for field in table.schema:
        if pa.types.is_binary(field.type):
            raise FileError(f'Column "{field.name}" of the CSV file "{file.name}" is not valid UTF-8')
    # a column without any value is text
    again = {f.name: pa.string() for f in table.schema if pa.types.is_null(f.type)}
    table = _parse(file, options, dialect, names, types | again) if again else table
    days = [n for n, t in asked.items() if t == pa.date32()]
    return _finished(table, options, [n for n in found if n not in again and n in table.column_names], days)


def _finished(table: pa.Table, options: CsvOptions, found: Sequence[str], days: Sequence[str]) -> pa.Table:
    """The table with days and times in the columns that are ``found`` out, and those that are to have ``days``."""
    if options.dateformat is not None:
        for name in days:
            table = with_format(table, name, options.dateformat, must_fit=True)
    for name in options.force_not_null:
        known = _known(name, table.column_names)
        if pa.types.is_string(table.schema.field(known).type):
            column = pc.fill_null(table[known], "")
            table = table.set_column(table.column_names.index(known), known, column)
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns" and field.name in found:
            moments = pc.floor_temporal(table[field.name], unit="microsecond").cast(pa.timestamp("us", field.type.tz))
            table = table.set_column(place, field.name, moments)
    texts = [n for n in found if pa.types.is_string(table.schema.field(n).type)]
    if options.dateformat is None:
        return with_times(table, texts)
    for name in texts:
        table = with_format(table, name, options.dateformat, must_fit=False)
    return table


def other_types(tables: Sequence[pa.Table]) -> set[str]:
    """The columns, in small letters, that have other types in one table than in another, and are no numbers in both."""
    types: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for field in table.schema if table.num_rows else ():
            if table[field.name].null_count < table.num_rows:
                types.setdefault(field.name.lower(), set()).add(field.type)
    return {n for n, ts in types.items() if len(ts) > 1 and not all(t in _NUMBERS for t in ts)}


def has_texts(table: pa.Table, names: Collection[str]) -> bool:
    """Whether all columns that are called so are texts."""
    return all(pa.types.is_string(f.type) for f in table.schema if f.name.lower() in names)


def _stream(file: File, options: CsvOptions) -> Any:
    stream = file.stream(options.compression)
    return stream if options.encoding == "utf-8" else pa.transcoding_input_stream(stream, options.encoding, "utf-8")


def _parse(
    file: File, options: CsvOptions, dialect: Dialect, names: Sequence[str], types: Mapping[str, Any]
) -> pa.Table:
    from pyarrow import csv

    names = [*names, *[""] * dialect.has_open_end]
    read = csv.ReadOptions(
        column_names=names, skip_rows=dialect.skip, skip_rows_after_names=1 if dialect.has_header else 0
    )
    parse = csv.ParseOptions(
        delimiter=dialect.delimiter,
        quote_char=dialect.quote or False,
        escape_char=dialect.escape if dialect.escape not in ("", dialect.quote) else False,
        newlines_in_values=True,
        ignore_empty_lines=len(names) > 1,
        invalid_row_handler=(lambda row: "skip") if options.ignore_errors else None,
    )
    convert = csv.ConvertOptions(
        column_types=types,
        null_values=list(options.nullstr),
        strings_can_be_null=True,
        quoted_strings_can_be_null=options.allow_quoted_nulls,
        true_values=_in_any_case("true", "t", "yes"),
        false_values=_in_any_case("false", "f", "no"),
        decimal_point=options.decimal_separator,
        timestamp_parsers=[options.timestampformat] if options.timestampformat else None,
    )
    with _stream(file, options) as stream:
        source = pa.BufferReader(_without_comments(bytes(stream.read()), dialect)) if dialect.comment else stream
        table = csv.read_csv(source, read, parse, convert)
    if dialect.has_open_end:
        if table.column(len(names) - 1).null_count < table.num_rows:
            raise pa.ArrowInvalid(f"a line has more than {len(names) - 1} columns")
        table = table.remove_column(len(names) - 1)
    return table


def _without_comments(data: bytes, dialect: Dialect) -> bytes:
    """The lines without those that a comment's sign begins, and without what stands behind it in others; in lines with quotes
    it may be a part of a value."""
    sign, quote = dialect.comment.encode(), dialect.quote.encode()
    kept = []
    for line in data.splitlines(keepends=True):
        if line.startswith(sign):
            continue
        if sign in line and not (quote and quote in line):
            line = line[: line.index(sign)].rstrip(b" ") + b"\n"
        kept.append(line)
    return b"".join(kept)


def _in_any_case(*words: str) -> list[str]:
    return [spelled for w in words for spelled in (w, w.capitalize(), w.upper())]


def _known(name: str | int, names: Sequence[str]) -> str:
    if isinstance(name, int):
        if name < len(names):
            return names[name]
        raise InterfaceError(f"There are types for {name + 1} columns or more, and {len(names)} columns")
    for known in names:
        if known.lower() == name.lower():
            return known
    raise InterfaceError(f'There is no column "{name}" to give a type to.{did_you_mean(name, names)}')
