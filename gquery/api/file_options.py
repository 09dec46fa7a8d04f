"""The options of `read_csv`, `read_json`, `read_ipc` and `read_parquet`, as Python and SQL give them: DuckDB's names.

An option that is taken does what DuckDB does with it; any other name, type or value is refused by its name. What gquery
always finds out or does (``auto_detect``, ``parallel``) may be asked for, and not be switched off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from gquery.errors import BindError, Error, NotSupportedError, did_you_mean
from gquery.expression.types import DType
from gquery.io.options import CsvOptions, FileOptions, JsonOptions

_SYNONYMS = {
    "sep": "delim", "delimiter": "delim", "dtypes": "types", "column_names": "names", "null": "nullstr",
    "column_types": "types", "date_format": "dateformat", "timestamp_format": "timestampformat"
}  # fmt: skip
_PATHS = ("hive_partitioning", "filename", "filesystem")
_ENCODINGS = {
    "utf-8": "utf-8", "utf8": "utf-8", "latin-1": "latin-1", "latin1": "latin-1", "iso-8859-1": "latin-1", "utf-16": "utf-16-le",
}  # fmt: skip
_AUTOMATIC = {
    "csv": ("auto_detect", "sample_size", "parallel", "buffer_size", "max_line_size"),
    "json": ("auto_detect", "sample_size"),
}
_PLAIN = {"delim": ",", "header": False, "quote": '"', "escape": '"', "skip": 0, "comment": ""}  # what nobody finds out
_TRUTH = {
    word: word in ("true", "t", "yes", "y", "1")
    for word in ["true", "t", "yes", "y", "1", "false", "f", "no", "n", "0"]
}
_SPECIFIERS = frozenset("YymdHIMSpBbjAaT%")  # of time formats: those that Arrow and DuckDB read alike


def file_options(kind: str, options: Mapping[str, Any]) -> FileOptions:
    """The options of one reading function's call. NotSupportedError for a name that it does not have, BindError for a value
    that the option does not take."""
    given: dict[str, Any] = {}
    for name, value in options.items():
        known = _SYNONYMS.get(name.lower(), name.lower())
        if known in given:
            raise BindError(f"The option {known} is given twice")
        given[known] = value
    given = {name: value for name, value in given.items() if value is not None}  # as if it were not given
    own = {"csv": CsvOptions, "json": JsonOptions}.get(kind)
    names = () if own is None else tuple(f.name for f in fields(own))
    _refuse(kind, given, names)
    values = {name: given[name] if name == "filesystem" else _READ[name](name, value) for name, value in given.items()}
    if values.get("auto_detect") is False:
        if "columns" not in values:
            raise NotSupportedError("not supported: auto_detect = false without columns; what is given is not found out")
        values = _PLAIN | values
    return FileOptions(
        values.get("hive_partitioning"),
        values.get("filename"),
        values.get("filesystem"),
        CsvOptions(**{n: v for n, v in values.items() if n in names}) if kind == "csv" else None,
        JsonOptions(**{n: v for n, v in values.items() if n in names}) if kind == "json" else None,
    )


def _refuse(kind: str, given: Mapping[str, Any], names: tuple[str, ...]) -> None:
    every = [*names, *_PATHS, *_AUTOMATIC.get(kind, ())]
    wrong = [name for name in given if name not in every]
    if wrong:
        raise NotSupportedError(
            f"read_{kind} has no option {', '.join(wrong)}; there are {', '.join(every)}.{did_you_mean(wrong[0], every)}"
        )


# ---- values ----------------------------------------------------------------------------------------------------------


def _wrong(name: str, takes: str, value: Any) -> Error:
    return BindError(f"The option {name} is {takes}, not {value!r}")


def _truth(name: str, value: Any) -> bool:
    known = _TRUTH.get(str(value).lower())
    if known is None or not isinstance(value, bool | int | str):
        raise _wrong(name, "true or false", value)
    return known


def _count(least: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise _wrong(name, f"an integer of at least {least}", value)
        return value

    return read


def _sign(empty: bool) -> Callable[[str, Any], str]:
    """One character of one byte, or where ``empty`` allows it, none."""

    def read(name: str, value: Any) -> str:
        text = value.replace("\\t", "\t") if isinstance(value, str) else value
        if not isinstance(text, str) or (not (len(text) == 1 and text.isascii()) and not (empty and not text)):
            raise _wrong(name, "one ASCII character", value)
        return text

    return read


def _choice(*choices: str) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        if value not in choices:
            raise _wrong(name, f"one of {', '.join(map(repr, choices))}", value)
        return str(value)

    return read


def _texts(name: str, value: Any) -> tuple[str, ...]:
    """Texts, at least one."""
    if not isinstance(value, list | tuple) or not value or not all(isinstance(v, str) for v in value):
        raise _wrong(name, "a list of texts", value)
    return tuple(value)


def _encoding(name: str, value: Any) -> str:
    known = _ENCODINGS.get(str(value).lower())
    if known is None:
        raise _wrong(name, f"one of {', '.join(sorted(_ENCODINGS))}", value)
    return known


def _nulls(name: str, value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else _texts(name, value)


def _filename(name: str, value: Any) -> str | None:
    """The name of the column that holds the file's name; None for no column."""
    if isinstance(value, str) and value and value.lower() not in ("true", "false"):
        return value
    return "filename" if _truth(name, value) else None


def _time_format(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(name, "a text", value)
    unread = [s for s in re.findall("%(-?.?)", value) if s not in _SPECIFIERS]
    if unread:
        raise NotSupportedError(f"not supported: %{unread[0]} in {name}; there are %{' %'.join(sorted(_SPECIFIERS))}")
    return value


def _columns(name: str, value: Any) -> tuple[tuple[str, DType], ...]:
    """Types by the names of columns."""
    if not isinstance(value, Mapping) or not value:
        raise BindError(f"The option {name} maps columns to types: {{'a': 'BIGINT'}}")
    lower = [str(k).lower() for k in value]
    if len(set(lower)) < len(lower):
        raise BindError(f"The option {name} names a column twice: {', '.join(map(str, value))}")
    return tuple((str(k), _dtype(v)) for k, v in value.items())


def _types(name: str, value: Any) -> tuple[tuple[str | int, DType], ...]:
    """Types by the names of columns, or by their places."""
    if isinstance(value, list | tuple) and value:
        return tuple((place, _dtype(v)) for place, v in enumerate(value))
    return _columns(name, value)


def _dtype(value: Any) -> DType:
    """A type from its SQL name."""
    if isinstance(value, DType):
        return value
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    from gquery.sql.types import sql_type

    if not isinstance(value, str):
        raise BindError(f"A type is named by a text, not {value!r}")
    try:
        return sql_type(exp.DataType.build(value, dialect="duckdb", udt=True))
    except SqlglotError:
        raise BindError(f"{value!r} is no type") from None


_READ: dict[str, Callable[[str, Any], Any]] = {
    "hive_partitioning": _truth, "filename": _filename, "auto_detect": _truth, "parallel": _truth,
    "sample_size": _count(-1), "header": _truth, "all_varchar": _truth, "ignore_errors": _truth,
    "allow_quoted_nulls": _truth, "skip": _count(0), "names": _texts, "types": _types, "columns": _columns,
    "delim": _sign(empty=False), "quote": _sign(empty=True), "escape": _sign(empty=True), "nullstr": _nulls,
    "dateformat": _time_format, "force_not_null": _texts, "comment": _sign(empty=True), "encoding": _encoding,
    "compression": _choice("auto", "none", "gzip", "zstd"), "buffer_size": _count(1), "max_line_size": _count(1),
    "decimal_separator": _choice(".", ","), "timestampformat": _time_format,
    "format": _choice("auto", "newline_delimited", "unstructured", "array"), "maximum_object_size": _count(1),
}  # fmt: skip
