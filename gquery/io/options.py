"""What files are opened with: the options of reading functions, their names and values checked (`gquery.api.file_options`)."""

from __future__ import annotations

from typing import Any

from gquery.expression.types import DType
from gquery.runtime.records import dataclass


@dataclass(frozen=True)
class CsvOptions:
    """How to read CSV; None is found out. ``types`` are those of some columns, by name or place, ``columns`` those of all, in
    order. ``nullstr`` are texts that stand for NULL, quoted ones where ``allow_quoted_nulls``."""

    delim: str | None = None
    header: bool | None = None
    quote: str | None = None
    escape: str | None = None
    nullstr: tuple[str, ...] = ("",)
    allow_quoted_nulls: bool = True
    skip: int | None = None
    comment: str | None = None
    names: tuple[str, ...] = ()
    types: tuple[tuple[str | int, DType], ...] = ()
    columns: tuple[tuple[str, DType], ...] = ()
    all_varchar: bool = False
    decimal_separator: str = "."
    timestampformat: str | None = None
    dateformat: str | None = None
    force_not_null: tuple[str, ...] = ()
    compression: str = "auto"
    encoding: str = "utf-8"
    ignore_errors: bool = False


@dataclass(frozen=True)
class JsonOptions:
    """How to read JSON: ``format`` "auto" is found out; an object has at most ``maximum_object_size`` bytes."""

    format: str = "auto"
    maximum_object_size: int = 16 << 20


@dataclass(frozen=True)
class FileOptions:
    """What a source is opened with; ``csv`` and ``json`` belong to their formats."""

    hive: bool | None = None
    filename: str | None = None  # the name of the column that holds it
    filesystem: Any = None
    csv: CsvOptions | None = None
    json: JsonOptions | None = None
