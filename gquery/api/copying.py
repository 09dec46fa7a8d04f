"""COPY ... TO: a query's rows as a file, or several in folders. Formats and options have DuckDB's names; what is not written is
refused by its name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gquery.errors import BindError, NotSupportedError
from gquery.expression.expr import Literal, new_column
from gquery.expression.types import VARCHAR
from gquery.functions import call, cast
from gquery.planner.logical.nodes import Project, Query
from gquery.runtime.records import replace

if TYPE_CHECKING:
    from gquery.api.relation import Relation
    from gquery.result.csv_text import CsvStyle

Options = Mapping[str, object]
_TRUE, _FALSE = ("true", "1", "on", "yes"), ("false", "0", "off", "no")
_SEPARATORS, _NULLS = ("delimiter", "delim", "sep"), ("nullstr", "null")
_CSV = (*_SEPARATORS, *_NULLS, "header", "quote", "escape", "force_quote")
_PARQUET = ("compression", "codec", "compression_level", "row_group_size")
_KNOWN = {"csv": _CSV, "json": ("array",), "parquet": _PARQUET}
PARTS = ("partition_by", "overwrite", "overwrite_or_ignore", "append", "write_partition_columns", "filename_pattern")
Run = Callable[[Query], "Relation"]


def format_of(path: str, options: Options) -> str:
    """The format that is asked for, else that of the file's name, else CSV. NotSupportedError for others, and for options that
    the format has and gquery does not."""
    given = options.get("format")
    found = str(given).lower() if given is not None else ""
    if not found:
        low = path.lower()
        found = (
            "parquet" if low.endswith((".parquet", ".pq")) else "json" if ".json" in low or ".ndjson" in low else "csv"
        )
        if found != "parquet" and low.endswith((".gz", ".zst")):
            raise NotSupportedError(f"not supported: COPY into a compressed {found.upper()} file")
    if found not in _KNOWN:
        raise NotSupportedError(f"not supported: COPY with FORMAT {found}; csv, json and parquet are")
    for name in options:
        if name not in (*_KNOWN[found], *PARTS, "format"):
            raise NotSupportedError(f"not supported: option {name.upper()} of COPY with FORMAT {found}")
    more = [n for n in options if n in PARTS]
    if more and "partition_by" not in options:
        raise NotSupportedError(f"not supported: {more[0].upper()} of COPY without PARTITION_BY")
    return found


def copied(query: Query, path: str, options: Options, run: Run) -> int:
    """Writes the rows of a query to a file, or with PARTITION_BY to files in folders; how many there are."""
    kind = format_of(path, options)
    if "partition_by" in options:
        from gquery.api.copied_parts import name_of, parts, places_of, prepare, with_keys, without

        places = places_of(query, options)
        is_kept = _flag(options.get("write_partition_columns", False), "write_partition_columns")
        kept = query if is_kept else without(query, places)
        write = _writer(kind, kept, options)
        is_appended = _flag(options.get("append", False), "append")
        name = name_of(options, f".{kind}", is_appended)
        table = run(with_keys(_content(kind, kept), query, places)).to_arrow_table()
        prepare(path, options, _flag)
        for folder, rows in parts(table, [query.names[n] for n in places]):
            inside = os.path.join(os.path.expanduser(path), folder)
            os.makedirs(inside, exist_ok=True)
            write(rows, os.path.join(inside, name))
        return int(table.num_rows)
    write = _writer(kind, query, options)
    made = run(_content(kind, query))
    write(made, path)
    return len(made)


def _content(kind: str, query: Query) -> Query:
    """What is written of a query: itself, or its texts."""
    if kind == "csv":
        return as_texts(query)
    return as_objects(query) if kind == "json" else query


def _writer(kind: str, query: Query, options: Options) -> Callable[[Any, str], None]:
    """Writes a relation, or a table of Arrow, of `_content` to a file."""
    if kind == "parquet":
        return lambda rows, path: write_parquet(rows, path, options)
    if kind == "json":
        from gquery.result.json_text import write_json

        is_list = _flag(options.get("array", False), "array")
        return lambda rows, path: write_json(_batches(rows), path, is_list)
    from gquery.result.csv_text import write_csv

    style = csv_style(options, query.names)
    return lambda rows, path: write_csv(query.names, _batches(rows), path, style)


def _batches(rows: Any) -> Any:
    return rows.to_arrow_reader() if hasattr(rows, "to_arrow_reader") else rows.to_batches()


def as_objects(query: Query) -> Query:
    """The query with one column: its columns as an object of JSON."""
    low = [n.lower() for n in query.names]
    for n, name in enumerate(query.names):
        if low.index(name.lower()) != n:
            raise BindError(f"COPY: two columns are called {name!r}")
    pairs = [e for n, c in zip(query.names, query.outputs, strict=True) for e in (Literal(n, VARCHAR), c)]
    column = new_column("json", VARCHAR, False)
    plan = Project(query.plan, ((column, cast(call("json_object", *pairs), VARCHAR)),))
    return replace(query, plan=plan, outputs=(column,), names=("json",))


def as_texts(query: Query) -> Query:
    """The query with its columns as texts."""
    columns = [
        (new_column(n, VARCHAR, c.nullable), cast(c, VARCHAR)) for n, c in zip(query.names, query.outputs, strict=True)
    ]
    return replace(query, plan=Project(query.plan, tuple(columns)), outputs=tuple(c for c, _ in columns))


def csv_style(options: Options, names: Sequence[str]) -> CsvStyle:
    """How the options want a CSV file."""
    from gquery.result.csv_text import CsvStyle

    forced = options.get("force_quote", ())
    forced = (forced,) if isinstance(forced, str) else forced
    assert isinstance(forced, tuple)
    for name in forced:
        if name != "*" and name.lower() not in (n.lower() for n in names):
            raise BindError(f"COPY: FORCE_QUOTE names {name!r}, which is no column")
    quoted = names if "*" in forced else [n for n in names if n.lower() in {str(f).lower() for f in forced}]
    separator = str(_one(options, _SEPARATORS, ",")).replace("\\t", "\t")
    quote, escape = (str(options.get(name, '"')) for name in ("quote", "escape"))
    for what, text in (("DELIMITER", separator), ("QUOTE", quote), ("ESCAPE", escape)):
        if len(text) != 1 or text in "\r\n":
            raise BindError(f"COPY: {what} is one character, not {text!r}")
    return CsvStyle(
        separator, quote, escape, str(_one(options, _NULLS, "")), _flag(options.get("header", True)), tuple(quoted)
    )


def write_parquet(rows: Any, path: str, options: Options) -> None:
    """Write a relation, or a table of Arrow, as the options want it."""
    more: dict[str, Any] = {}
    if "compression_level" in options:
        more["compression_level"] = _number(options, "compression_level")
    if "row_group_size" in options:
        more["row_group_size"] = _number(options, "row_group_size")
    codec = str(_one(options, ("compression", "codec"), "snappy")).lower()
    codec = {"uncompressed": "none"}.get(codec, codec)
    if hasattr(rows, "to_parquet"):
        rows.to_parquet(path, compression=codec, **more)
    else:
        from gquery.result.output import parquet_of

        parquet_of(rows.to_reader(), path, codec, **more)


def _one(options: Options, names: Sequence[str], default: object) -> object:
    return next((options[n] for n in names if n in options), default)


def _flag(value: object, name: str = "header") -> bool:
    text = str(value).lower()
    if text not in (*_TRUE, *_FALSE):
        raise BindError(f"COPY: {name.upper()} is TRUE or FALSE, not {value!r}")
    return text in _TRUE


def _number(options: Options, name: str) -> int:
    text = str(options[name])
    if not text.isdecimal():
        raise BindError(f"COPY: {name.upper()} is a number, not {text!r}")
    return int(text)
