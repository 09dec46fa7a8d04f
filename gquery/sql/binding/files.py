"""The arguments of table functions that read files: paths first, then options by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from gquery.columns.table import TableSource
from gquery.errors import BindError, CatalogError, NotSupportedError
from gquery.expression.expr import Expr, Literal, new_column
from gquery.expression.types import python_value
from gquery.planner.logical.nodes import Query, Scan
from gquery.sql.binding.sets import by_name, union
from gquery.sql.catalog import Catalog

READERS = {
    "read_parquet": "parquet", "parquet_scan": "parquet", "read_csv": "csv", "read_csv_auto": "csv",
    "read_json": "json", "read_json_auto": "json", "read_ndjson": "json", "read_ndjson_auto": "json",
    "read_ipc": "ipc", "read_arrow": "ipc", "read_feather": "ipc",
}  # fmt: skip
ENDS = (".parquet", ".pq", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".arrow", ".arrows", ".feather", ".ipc", ".gz",
    ".zst", ".bz2")
WHOLE = {  # whose rows tell of files
    "glob": "glob", "read_text": "text", "read_blob": "blob", "parquet_metadata": "parquet_metadata",
    "parquet_file_metadata": "parquet_file_metadata", "parquet_kv_metadata": "parquet_kv_metadata",
}  # fmt: skip
Bind = Callable[[exp.Expr], Expr]


def reader_of(node: exp.Expr) -> str | None:
    """The format that a table function reads; None for a function that reads no files."""
    return READERS.get(node.name.lower()) if isinstance(node, exp.Anonymous) else None


def reader_arguments(node: exp.Expr, bind: Bind) -> tuple[list[str], dict[str, Any]]:
    """The paths and the options of a reading function's call."""
    paths: list[str] = []
    options: dict[str, Any] = {}
    for argument in node.expressions:
        match argument:
            case exp.EQ() | exp.PropertyEQ() | exp.Kwarg():
                name = argument.this.name.lower()
                if name in options:
                    raise BindError(f"The option {name} is given twice")
                options[name] = _option(argument.expression, bind)
                if options[name] is None:
                    raise BindError(f"The option {name} is NULL")
            case _ if options:
                raise BindError("paths stand before options")
            case _ if paths:
                raise BindError("reading files takes one name, or a list of them: ['a.csv', 'b.csv']")
            case exp.Array():
                paths += [_path(e, bind) for e in argument.expressions]
            case _:
                paths.append(_path(argument, bind))
    if not paths:
        raise BindError("reading a file takes its name")
    return paths, options


def _path(node: exp.Expr, bind: Bind) -> str:
    value = bind(node)
    if not (isinstance(value, Literal) and isinstance(value.value, str)):
        raise NotSupportedError("not supported: reading of files whose names are not constant")
    return value.value


def _option(node: exp.Expr, bind: Bind) -> Any:
    match node:
        case exp.Array() | exp.Tuple():
            return [_option(e, bind) for e in node.expressions]
        case exp.Struct():
            return _struct(node, bind)
    value = bind(node)
    if not isinstance(value, Literal):
        raise NotSupportedError("not supported: options of a table function that are not constant")
    return python_value(value.dtype, value.value)


def _struct(node: exp.Struct, bind: Bind) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for e in node.expressions:
        name = _key(e)
        if name.lower() in (known.lower() for known in made):
            raise BindError(f"{name!r} stands twice in an option")
        made[name] = _option(e.expression, bind)
    return made


def _key(node: exp.Expr) -> str:
    if not isinstance(node, exp.PropertyEQ):
        raise BindError("an option of columns and types is written {'a': 'BIGINT'}")
    return str(node.this.name)


def is_by_name(options: dict[str, Any]) -> bool:
    """Whether files are to have their columns put together by name; the option is taken away."""
    value = options.pop("union_by_name", False)
    known = {"true": True, "1": True, "false": False, "0": False}.get(str(value).lower())
    if known is None:
        raise BindError(f"The option union_by_name is true or false, not {value!r}")
    return known


def whole_files(name: str, node: exp.Expr, bind: Bind, catalog: Catalog) -> TableSource:
    """The table of one of `WHOLE`, good for this query alone."""
    paths, options = reader_arguments(node, bind)
    if options:
        raise BindError(f"{name} takes no option {next(iter(options))}")
    if catalog.open_file is None:
        raise CatalogError("files cannot be read here")
    catalog.is_for_one_use()
    return catalog.open_file(paths, WHOLE[name])


def read(paths: list[str], kind: str, options: dict[str, Any], catalog: Catalog) -> TableSource:
    """The table that files are."""
    if catalog.open_file is None:
        raise CatalogError("files cannot be read here")
    return catalog.open_file(paths[0] if len(paths) == 1 else paths, kind, options)


def by_names(paths: list[str], kind: str, options: dict[str, Any], catalog: Catalog) -> Query:
    """All rows of files whose columns may differ, NULL in those that a file has not. Files with the same columns are one table.
    Which files there are is known to this query alone."""
    assert catalog.open_file is not None and catalog.find_files is not None
    groups: dict[Any, list[str]] = {}
    for path in catalog.find_files(paths, kind):
        fields = catalog.open_file(path, kind, options).schema.fields
        groups.setdefault(tuple((f.name.lower(), f.dtype) for f in fields), []).append(path)
    catalog.is_for_one_use()
    sides = []
    for group in groups.values():
        source = catalog.open_file(group[0] if len(group) == 1 else group, kind, options)
        columns = tuple(new_column(f.name, f.dtype, f.nullable) for f in source.schema)
        sides.append(Query(Scan(source, columns, tuple(range(len(columns)))), columns, source.schema.names))
    if len(sides) == 1:
        return sides[0]
    made = union(by_name(sides))
    folders = {part for group in groups.values() for path in group for part in re.split(r"[/\\]", path)}
    of_paths = {f.partition("=")[0].lower() for f in folders if "=" in f}
    of_paths.add(str(options.get("filename")).lower() if isinstance(options.get("filename"), str) else "filename")
    order = sorted(range(len(made.names)), key=lambda n: made.names[n].lower() in of_paths)  # those of paths stand last
    return Query(made.plan, tuple(made.outputs[n] for n in order), tuple(made.names[n] for n in order))
