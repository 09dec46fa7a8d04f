"""Lists and dicts as parameters: a list, a tuple or a one-dimensional array of NumPy is a LIST, a dict a STRUCT, or a MAP where
it is ``{"key": [...], "value": [...]}`` or has nothing, as in DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gquery.errors import InterfaceError
from gquery.expression.expr import Expr, Literal
from gquery.expression.types import NULL, VARCHAR
from gquery.functions import call, cast
from gquery.functions.structs import struct

Value = Callable[[Any], Expr]


def nested_value(value: Any, value_of: Value) -> Expr:
    """A list, a tuple, an array or a dict as an expression of constants. ``value_of`` gives those of the values in it.
    InterfaceError where one has no type."""
    if isinstance(value, bytes):
        return call("unhex", Literal(value.hex(), VARCHAR))
    if not isinstance(value, dict):
        return _list(_elements(value), value_of)
    if not value:
        return call("map", call("list_value"), call("list_value"))
    keys, values = value.get("key"), value.get("value")
    if (
        len(value) == 2
        and isinstance(keys, list | tuple)
        and isinstance(values, list | tuple)
        and len(keys) == len(values)
    ):
        return call("map", _list(keys, value_of), _list(values, value_of))
    return struct([(str(name), value_of(v)) for name, v in value.items()])


def _elements(value: Any) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    if value.dtype.kind not in "biufUO":
        raise InterfaceError(f"a parameter that is an array of {value.dtype} has no SQL type")
    made: list[Any] = value.tolist()
    return made


def _list(values: Sequence[Any], value_of: Value) -> Expr:
    items = [value_of(v) for v in values]
    if any(i.dtype == VARCHAR for i in items):  # texts beside other values make texts of these
        items = [i if i.dtype == NULL else cast(i, VARCHAR) for i in items]
    return call("list_value", *items)
