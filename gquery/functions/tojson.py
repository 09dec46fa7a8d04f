"""JSON of values of other types, and casts from and to JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gquery.errors import BindError, ConversionError, NotSupportedError
from gquery.expression.expr import Cast, Expr, Literal
from gquery.expression.nested_types import inner_types
from gquery.expression.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    JSON,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    DType,
    Kind,
    decimal,
)
from gquery.functions.binary import to_texts
from gquery.functions.cast_to_text import to_text
from gquery.functions.casts import cast
from gquery.functions.json import as_json, plain
from gquery.functions.list_arrays import list_array
from gquery.functions.nested_arrays import as_type, struct_array
from gquery.functions.nested_casts import cast_elements
from gquery.functions.registry import LIST_RESOLVERS, RESOLVERS, call, host_scalar, make, resolver
from gquery.functions.vectors import Vector, array_of, each_value, size_of, value_array
from gquery.runtime.json_values import is_json, number_text, quoted, value_of, written

_TOO_WIDE = 15  # digits of a decimal beyond which it is written digit by digit, as no double may have them


_OTHERS = (
    (pa.types.is_date, DATE), (pa.types.is_timestamp, TIMESTAMP), (pa.types.is_time, TIME), (pa.types.is_interval, INTERVAL),
)  # fmt: skip


@resolver("to_json row_to_json array_to_json json_quote", "$(any) -> JSON",
          example=("to_json({'a': [1, NULL], 'b': 'x'})", '{"a":[1,null],"b":"x"}'))  # fmt: skip
def to_json(x: Expr) -> Expr | None:
    """A value as JSON. Dates, times, intervals and blobs are texts."""
    dtype = x.dtype
    if dtype.kind is Kind.NULL:
        return Literal(None, JSON)
    if dtype == JSON:
        return make("_json_compact", [x], JSON)
    if dtype.is_nested and dtype.kind is not Kind.BLOB:
        leaves = set(_texts(dtype))
        if len(leaves) > 1:
            raise NotSupportedError(f"not supported: to_json of JSON beside VARCHAR in one value of type {dtype}")
        return make("_tojson_nested", [x, Literal(int(leaves == {JSON}), BOOLEAN)], JSON)
    if dtype.is_float or (dtype.is_decimal and dtype.precision <= _TOO_WIDE):
        return make("_json_number", [cast(x, DOUBLE)], JSON)
    text = cast(x, VARCHAR)
    if dtype.is_integer or dtype.is_decimal or dtype.kind is Kind.BOOLEAN:
        return Literal(text.value, JSON) if isinstance(text, Literal) else Cast(text, JSON)
    return make("_json_quoted", [text], JSON)


def _texts(dtype: DType) -> list[DType]:
    """The types of the texts in values of a type."""
    if dtype.is_nested and dtype.kind is not Kind.BLOB:
        return [t for inner in inner_types(dtype) for t in _texts(inner)]
    return [dtype] if dtype.is_string else []


@resolver("json_object", "$(name, value, ...) -> JSON", example=("json_object('a', 1, 'b', NULL)", '{"a":1,"b":null}'))
def json_object(*args: Expr) -> Expr | None:
    """An object of names and values."""
    if len(args) % 2:
        raise BindError("json_object takes names and values, an even number of arguments")
    for name in args[::2]:
        if name.dtype != VARCHAR:
            raise BindError(f"json_object: a name is a VARCHAR, and no {name.dtype}")
    made = [a if n % 2 == 0 else call("to_json", a) for n, a in enumerate(args)]
    return make("_tojson_object", made, JSON) if made else Literal("{}", JSON)


@resolver("json_array", "$(value, ...) -> JSON", example=("json_array(1, 'a', NULL)", '[1,"a",null]'))
def json_array(*args: Expr) -> Expr | None:
    """A list of values."""
    return make("_tojson_array", [call("to_json", a) for a in args], JSON) if args else Literal("[]", JSON)


for _name in ("to_json", "row_to_json", "array_to_json", "json_quote", "json_object", "json_array"):
    LIST_RESOLVERS[_name] = RESOLVERS[_name]


@host_scalar("_tojson_array", ((JSON,), JSON), strict=False)
def _array(*values: Vector) -> Vector:
    """The list of JSON values."""
    rows = size_of(*values)
    columns = [array_of(v, rows).to_pylist() for v in values]
    return value_array(
        ["[" + ",".join(["null" if v is None else v for v in row]) + "]" for row in zip(*columns, strict=True)], pa.string()
    )


@host_scalar("_tojson_object", ((JSON,), JSON), strict=False, fails=(ConversionError, "json_object: a name is NULL"))
def _object(*args: Vector) -> Vector:
    """The object of names and JSON values."""
    rows = size_of(*args)
    columns = [array_of(a, rows).to_pylist() for a in args]
    lacks_name = [any(column[row] is None for column in columns[::2]) for row in range(rows)]
    names = [["" if n is None else quoted(n) for n in column] for column in columns[::2]]
    pairs = list(zip(names, columns[1::2], strict=True))
    made = [",".join([f"{n[row]}:{'null' if v[row] is None else v[row]}" for n, v in pairs]) for row in range(rows)]
    return value_array([None if lacks else "{" + m + "}" for lacks, m in zip(lacks_name, made, strict=True)], pa.string())


@host_scalar("_tojson_nested", ((VARCHAR, BOOLEAN), JSON))
def _nested(x: Vector, has_json: Vector) -> Vector:
    """A nested value as JSON; whether the texts in it are JSON."""
    rows = size_of(x, has_json)
    return value_array(_written(array_of(x, rows), bool(has_json.as_py())), pa.large_string())


def _written(array: pa.Array, has_json: bool) -> list[str | None]:
    """The values of an array as JSON, None for NULL."""
    kinds, type_ = pa.types, array.type
    if kinds.is_dictionary(type_):
        return _written(array.dictionary_decode(), has_json)
    there = array.is_valid().to_pylist()
    if kinds.is_struct(type_):
        fields = [[v or "null" for v in _written(f, has_json)] for f in array.flatten()]
        names = [quoted(f.name) for f in type_]
        made = ["{" + ",".join([f"{n}:{f[row]}" for n, f in zip(names, fields, strict=True)]) + "}" for row in range(len(array))]
        return [m if ok else None for m, ok in zip(made, there, strict=True)]
    if kinds.is_map(type_) or kinds.is_list(type_) or kinds.is_large_list(type_):
        ends = array.offsets.to_pylist()
        if kinds.is_map(type_):
            keys = [k if k[:1] == '"' else quoted(k) for k in _texts_of(array.keys, has_json)]
            inner = [f"{k}:{v}" for k, v in zip(keys, _texts_of(array.items, has_json), strict=True)]
            marks = "{", "}"
        else:
            inner, marks = _texts_of(array.values, has_json), ("[", "]")
        rows = zip(ends, ends[1:], there, strict=False)
        return [marks[0] + ",".join(inner[a:b]) + marks[1] if ok else None for a, b, ok in rows]
    return _leaves(array, has_json)


def _texts_of(array: pa.Array, has_json: bool) -> list[str]:
    return [v or "null" for v in _written(array, has_json)]


def _leaves(array: pa.Array, has_json: bool) -> list[str | None]:
    kinds, type_ = pa.types, array.type
    if kinds.is_null(type_):
        return [None] * len(array)
    if kinds.is_boolean(type_):
        return [None if v is None else "true" if v else "false" for v in array.to_pylist()]
    if kinds.is_integer(type_):
        return [None if v is None else str(v) for v in array.to_pylist()]
    if kinds.is_floating(type_) or (kinds.is_decimal(type_) and type_.precision <= _TOO_WIDE):
        return [None if v is None else number_text(v) for v in array.cast(pa.float64()).to_pylist()]
    if kinds.is_string(type_) or kinds.is_large_string(type_):
        text = (lambda t: written(value_of(t))) if has_json else quoted
        return [None if v is None else text(v) for v in array.to_pylist()]
    if kinds.is_decimal(type_):
        return list(to_text(array, decimal(type_.precision, type_.scale)).to_pylist())
    if kinds.is_binary(type_) or kinds.is_large_binary(type_):
        shown = to_texts(array)
    else:
        dtype = next(t for of, t in _OTHERS if of(type_))
        shown = to_text(array, TIMESTAMPTZ if dtype == TIMESTAMP and type_.tz is not None else dtype)
    return [None if v is None else quoted(v) for v in shown.to_pylist()]


# ---- casts -----------------------------------------------------------------------------------------------------------


def cast_json(e: Expr, dtype: DType, try_: bool) -> Expr:
    """A cast from or to JSON. ConversionError for a constant that is none."""
    if e.dtype == JSON:
        return _from_json(e, dtype, try_)
    if e.dtype != VARCHAR:
        return call("to_json", e)
    if not try_:
        made = as_json(e)
        assert made is not None
        return made
    if isinstance(e, Literal):
        return Literal(e.value if is_json(str(e.value)) else None, JSON)
    return make("_json_or_null", [e], JSON)


def _from_json(e: Expr, dtype: DType, try_: bool) -> Expr:
    if dtype == VARCHAR:
        return Literal(e.value, VARCHAR) if isinstance(e, Literal) else Cast(e, VARCHAR)
    if dtype.is_nested and dtype.kind is not Kind.BLOB:
        return Cast(e, dtype, try_)
    if dtype.is_numeric:
        return cast(make("_tojson_digits", [e], VARCHAR), dtype, try_)
    return cast(make("_json_extract_string", [e, Literal("$", VARCHAR)], VARCHAR), dtype, try_)


@host_scalar("_tojson_digits", ((JSON,), VARCHAR), nullable=True)
def _digits(j: Vector) -> Vector:
    """JSON as text from which numbers are made."""
    return each_value(array_of(j, size_of(j)), lambda t: _as_number(value_of(t)), pa.large_string())


def _as_number(value: Any) -> str | None:
    """A value as the text of a number: true is 1."""
    return str(int(value)) if isinstance(value, bool) else plain(value)


def from_json(array: pa.Array, target: DType, to: pa.DataType, is_tried: bool) -> pa.Array:
    """JSON as lists, structs and maps. ConversionError for what has another shape, or is NULL where that ``is_tried``."""
    return _shaped([None if t is None else value_of(t) for t in array.to_pylist()], target, to, is_tried)


def _shaped(values: list[Any], target: DType, to: pa.DataType, is_tried: bool) -> pa.Array:
    from gquery.functions.maps import map_array

    if target == JSON:
        return value_array([None if v is None else written(v) for v in values], pa.string()).cast(to)
    if not target.is_nested or target.kind is Kind.BLOB:
        shown = _as_number if target.is_numeric else plain
        texts = value_array([shown(v) for v in values], pa.string())
        return as_type(cast_elements(texts, VARCHAR, target, to, is_tried), to)
    is_list = target.kind is Kind.LIST
    kept = [_checked(v, target, is_tried) for v in values]
    ok = np.array([v is not None for v in kept], np.bool_)
    if target.is_struct:
        names = [n for n, _ in target.fields]
        for v in kept:
            if v is not None and not is_tried and v.keys() != set(names):
                raise ConversionError(f"JSON {written(v)} has not the fields of {target}")
        inner = [[None if v is None else v.get(n) for v in kept] for n in names]
        made = [_shaped(v, t, to.field(n).type, is_tried) for n, (v, (_, t)) in enumerate(zip(inner, target.fields, strict=True))]
        return as_type(struct_array(made, ok), to)
    lengths = np.array([len(v or ()) for v in kept], np.int64)
    if is_list:
        assert target.element is not None
        flat = _shaped([x for v in kept for x in v or ()], target.element, to.value_type, is_tried)
        return as_type(list_array(flat, lengths, ok), to)
    (_, key), (_, of) = target.fields
    keys = _shaped([n for v in kept for n in v or ()], key, to.key_type, is_tried)
    items = _shaped([x for v in kept for x in (v or {}).values()], of, to.item_type, is_tried)
    return as_type(map_array(keys, items, lengths, ok), to)


def _checked(value: Any, target: DType, is_tried: bool) -> Any:
    """A value of the shape that a type has, or None."""
    if value is None or isinstance(value, list if target.kind is Kind.LIST else dict):
        return value
    if not is_tried:
        raise ConversionError(f"JSON {written(value)} is no {target}")
    return {} if target.is_struct else None  # a struct of another shape has fields that are NULL, as in DuckDB
