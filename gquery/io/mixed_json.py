"""JSON files in which a field has values of several kinds: a number in one object, a text in the next. It is JSON there, as in
DuckDB, and what Arrow's reader makes an error is read once more by Python's.

    {"a": 1, "b": {"c": [1]}}          {"a": "1", "b": {"c": ["1"]}}             a JSON, b STRUCT(c JSON[])
    {"a": "x", "b": {"c": [true]}}  => {"a": "\\"x\\"", "b": {"c": ["true"]}}  =>
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from gquery.columns.arrow import dtype_of
from gquery.expression.nested_types import list_of, struct_of
from gquery.expression.types import JSON, DType
from gquery.runtime.json_values import values_of, written

MIXED: Final = "JSON"
Shape = Any  # None of null alone, the name of a kind, MIXED, {name: shape} of objects, [shape] of lists


def decoded(text: str) -> list[Any]:
    """The objects of a file, which stand one behind the other or in a list; ValueError for what is no such file."""
    values = values_of(text)
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    if not all(isinstance(v, dict) for v in values):
        raise ValueError("values that are no objects")
    return values


def shape_of(values: Iterable[Any], known: Shape = None) -> Shape:
    """What values have in common, with what is known of others before them."""
    for value in values:
        known = _with(known, value)
    return known


def _with(known: Shape, value: Any) -> Shape:
    if value is None or known == MIXED:
        return known
    if isinstance(value, dict):
        if known is not None and not isinstance(known, dict):
            return MIXED
        fields = {} if known is None else known
        for name, v in value.items():
            fields[name] = _with(fields.get(name), v)
        return fields
    if isinstance(value, list):
        if known is not None and not isinstance(known, list):
            return MIXED
        return [shape_of(value, None if known is None else known[0])]
    kind = "text" if type(value) is str else "boolean" if isinstance(value, bool) else "number"
    return kind if known in (None, kind) else MIXED


def with_fields(shape: Shape) -> Shape:
    """The same; objects that never have a field are JSON: no struct is without fields."""
    if isinstance(shape, dict):
        return {name: with_fields(s) for name, s in shape.items()} if shape else MIXED
    return [with_fields(shape[0])] if isinstance(shape, list) else shape


def lines(values: Sequence[Any], shape: Shape) -> bytes:
    """The objects, a line each, with texts where the shape is JSON."""
    return "\n".join(written(_as_texts(v, shape)) for v in values).encode()


def _as_texts(value: Any, shape: Shape) -> Any:
    if value is None:
        return None
    if shape == MIXED:
        return written(value)
    if isinstance(value, dict):
        return {name: _as_texts(v, shape[name]) for name, v in value.items()}
    return [_as_texts(v, shape[0]) for v in value] if isinstance(value, list) else value


def types_of(table: pa.Table, shape: dict[str, Shape]) -> dict[str, DType]:
    """The types of the columns that hold JSON."""
    return {f.name: _type_of(f.type, shape[f.name]) for f in table.schema if holds_json(shape.get(f.name))}


def holds_json(shape: Shape) -> bool:
    """Whether values of several kinds lie somewhere."""
    below = shape.values() if isinstance(shape, dict) else shape if isinstance(shape, list) else ()
    return bool(shape == MIXED) or any(map(holds_json, below))


def _type_of(type_: pa.DataType, shape: Shape) -> DType:
    if shape == MIXED:
        return JSON
    if isinstance(shape, dict):
        return struct_of([(f.name, _type_of(f.type, shape[f.name])) for f in type_])
    return list_of(_type_of(type_.value_type, shape[0])) if isinstance(shape, list) else dtype_of(type_)
