"""The arguments of table functions that read files: paths first, then options by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from gquery.errors import BindError, NotSupportedError
from gquery.expression.expr import Expr, Literal
from gquery.expression.types import python_value

READERS = {
    "read_parquet": "parquet", "parquet_scan": "parquet", "read_csv": "csv", "read_csv_auto": "csv",
    "read_json": "json", "read_json_auto": "json", "read_ndjson": "json", "read_ndjson_auto": "json",
    "read_ipc": "ipc", "read_arrow": "ipc", "read_feather": "ipc",
}  # fmt: skip
_OPTION = (exp.EQ, exp.PropertyEQ, exp.Kwarg)
Bind = Callable[[exp.Expr], Expr]


def reader_of(node: exp.Expr) -> str | None:
    """The format that a table function reads; None for a function that reads no files."""
    return READERS.get(node.name.lower()) if isinstance(node, exp.Anonymous) else None


def is_option(node: exp.Expr) -> bool:
    """Whether a node is the value of an option in a call of a reading function."""
    option = node.parent
    return isinstance(option, _OPTION) and isinstance(option.parent, exp.Expr) and reader_of(option.parent) is not None


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
