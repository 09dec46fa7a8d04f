"""Binding of ``json_transform(j, '{"a": "INTEGER", "b": ["DATE"]}')``: a cast to the type that a constant of JSON describes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from gquery.errors import BindError, ConversionError, NotSupportedError
from gquery.expression.expr import Expr, Literal
from gquery.expression.nested_types import list_of, struct_of
from gquery.expression.types import INTEGER, JSON, DType
from gquery.functions import cast
from gquery.sql.types import sql_type


def transformed(name: str, args: Sequence[exp.Expr], bind: Callable[[exp.Expr], Expr]) -> Expr:
    """JSON as values of a type. What does not fit is NULL."""
    from gquery.functions.json import as_json
    from gquery.runtime.json_values import value_of

    if name.endswith("_strict"):
        raise NotSupportedError(f"not supported: {name}; a cast of JSON to a STRUCT fails for what does not fit")
    if len(args) != 2:
        raise BindError(f"{name} takes JSON and its structure, not {len(args)} arguments")
    j, structure = as_json(bind(args[0])), bind(args[1])
    if j is None:
        raise BindError(f"{name} takes JSON, or a text that is JSON")
    if not isinstance(structure, Literal) or not (structure.is_null or isinstance(structure.value, str)):
        raise NotSupportedError(f"not supported: {name} to a structure that is no constant text")
    if structure.is_null:
        return Literal(None, INTEGER)
    try:
        described = value_of(str(structure.value))
    except ValueError:
        raise ConversionError(f"malformed JSON: {structure.value!r}") from None
    dtype = _type(described)
    return j if dtype == JSON else cast(j, dtype, try_=True)


def _type(described: Any) -> DType:
    if isinstance(described, dict) and described:
        return struct_of([(name, _type(inner)) for name, inner in described.items()])
    if isinstance(described, list) and len(described) == 1:
        return list_of(_type(described[0]))
    if not isinstance(described, str):
        raise BindError("a structure of JSON has names of types, lists of one structure, and objects with some names")
    try:
        return sql_type(exp.DataType.build(described, dialect="duckdb", udt=True))
    except SqlglotError:
        raise BindError(f"{described!r} is no type") from None
