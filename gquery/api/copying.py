"""COPY ... TO: a query's rows as a file. Formats and options have DuckDB's names; what is not written is refused by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gquery.errors import BindError, NotSupportedError
from gquery.expression.expr import new_column
from gquery.expression.types import VARCHAR
from gquery.functions import cast
from gquery.planner.logical.nodes import Project, Query

if TYPE_CHECKING:
    from gquery.api.relation import Relation
    from gquery.result.csv_text import CsvStyle

Options = Mapping[str, object]
_TRUE, _FALSE = ("true", "1", "on", "yes"), ("false", "0", "off", "no")
_SEPARATORS, _NULLS = ("delimiter", "delim", "sep"), ("nullstr", "null")
_CSV = (*_SEPARATORS, *_NULLS, "header", "quote", "escape", "force_quote")
_PARQUET = ("compression", "codec", "compression_level", "row_group_size")


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
        if found == "csv" and low.endswith((".gz", ".zst")):
            raise NotSupportedError("not supported: COPY into a compressed CSV file")
    if found not in ("csv", "parquet"):
        raise NotSupportedError(f"not supported: COPY with FORMAT {found}; csv and parquet are")
    known = _CSV if found == "csv" else _PARQUET
    for name in options:
        if name not in (*known, "format"):
            raise NotSupportedError(f"not supported: option {name.upper()} of COPY with FORMAT {found}")
    return found


def as_texts(query: Query) -> Query:
    """The query with its columns as texts."""
    columns = [
        (new_column(n, VARCHAR, c.nullable), cast(c, VARCHAR)) for n, c in zip(query.names, query.outputs, strict=True)
    ]
    return Query(Project(query.plan, tuple(columns)), tuple(c for c, _ in columns), query.names)


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


def write_parquet(relation: Relation, path: str, options: Options) -> None:
    """Write a Parquet file as the options want it."""
    more: dict[str, Any] = {}
    if "compression_level" in options:
        more["compression_level"] = _number(options, "compression_level")
    if "row_group_size" in options:
        more["row_group_size"] = _number(options, "row_group_size")
    codec = str(_one(options, ("compression", "codec"), "snappy")).lower()
    relation.to_parquet(path, compression={"uncompressed": "none"}.get(codec, codec), **more)


def _one(options: Options, names: Sequence[str], default: object) -> object:
    return next((options[n] for n in names if n in options), default)


def _flag(value: object) -> bool:
    text = str(value).lower()
    if text not in (*_TRUE, *_FALSE):
        raise BindError(f"COPY: HEADER is TRUE or FALSE, not {value!r}")
    return text in _TRUE


def _number(options: Options, name: str) -> int:
    text = str(options[name])
    if not text.isdecimal():
        raise BindError(f"COPY: {name.upper()} is a number, not {text!r}")
    return int(text)
