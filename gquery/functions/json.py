"""JSON: texts that are valid, looked into on the host, once for each text that differs.

A kernel finds what a path leads to where that is plain (`functions.json_scan`), `json` of Python reads the others. A value is
written as DuckDB writes it: without spaces, numbers with the digits that tell them apart. NaN and Infinity are numbers; a comma
at the end of a list, which DuckDB reads over, makes no JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa

from gquery.errors import BindError, ConversionError
from gquery.expression.expr import Case, Expr, IsNull, Literal, Not
from gquery.expression.nested_types import list_of
from gquery.expression.types import BIGINT, BOOLEAN, DOUBLE, JSON, UBIGINT, VARCHAR, DType, Kind
from gquery.functions import json_scan
from gquery.functions.byte_maps import ByteMap
from gquery.functions.casts import cast
from gquery.functions.json_paths import MISSING, Path, has_wildcard, part_of, parts_of, path_of
from gquery.functions.registry import LIST_RESOLVERS, RESOLVERS, call, host_scalar, make, resolver
from gquery.functions.structs import constant_names
from gquery.functions.vectors import Vector, array_of, each_row, each_value, null, size_of, text_like, value_array
from gquery.runtime.arrow_compute import pc
from gquery.runtime.json_values import Digits, fields_of, is_json, number_text, quoted, value_of, written
from gquery.runtime.tuples import NamedTuple

_MALFORMED = (ConversionError, "malformed JSON")


def plain(value: Any) -> str | None:
    """A value as text: of a text itself, of null none."""
    return value if value is None or isinstance(value, str) else written(value)


# ---- arguments -------------------------------------------------------------------------------------------------------


def _at(path: Any) -> Path:
    """The path that an argument is: a text, or a place in a list."""
    return path_of(path) if isinstance(path, str) else (path,)


def as_json(e: Expr) -> Expr | None:
    """A text as JSON, which it has to be; None for what is no text."""
    if e.dtype == JSON:
        return e
    if e.dtype.kind is Kind.NULL:
        return Literal(None, JSON)
    if e.dtype != VARCHAR:
        return None
    if isinstance(e, Literal):
        if e.is_null or is_json(str(e.value)):
            return Literal(e.value, JSON)
    return make("_json_checked", [e], JSON)


def _path(e: Expr | None, takes_places: bool) -> Expr | None:
    """The path of a call; one that is constant is read now, for its errors."""
    if e is None:
        return Literal("$", VARCHAR)
    if e.dtype.is_integer:
        return cast(e, BIGINT) if takes_places else None
    if isinstance(e, Literal) and e.dtype.is_string and not e.is_null:
        path_of(str(e.value), True)
    return cast(e, VARCHAR) if e.dtype.is_string or e.dtype.kind is Kind.NULL else None


class _Read(NamedTuple):
    """What a function makes of what a path leads to: ``of`` the value, ``missing`` where there is nothing; for many texts at once
    by ``answer``, if there is a way."""

    of: Callable[[Any], Any]
    missing: Any = None
    answer: json_scan.Answer | None = None


def _over(j: Vector, path: Vector, read: _Read, type_: pa.DataType) -> pa.Array:
    """What is made of what a path leads to in each row."""

    def found(text: str, steps: Path) -> Any:
        value = part_of(value_of(text), steps)
        return read.missing if value is MISSING else read.of(value)

    rows = size_of(j, path)
    if not isinstance(path, pa.Array) and path.is_valid:
        steps, texts = _at(path.as_py()), array_of(j, rows)
        if read.answer is None:
            return each_value(texts, lambda text: found(text, steps), type_)
        reader = json_scan.Reader(
            read.answer, lambda text: found(text, steps), lambda part: read.of(value_of(part)), type_
        )
        return json_scan.by_parts(texts, steps, reader)
    return each_row(lambda text, p: found(text, _at(p)), type_, j, path)


_ARROW = {
    JSON: pa.string(), VARCHAR: pa.string(), UBIGINT: pa.uint64(), BOOLEAN: pa.bool_(), list_of(VARCHAR): pa.list_(pa.string()),
}  # fmt: skip


def _reader(
    names: str,
    dtype: DType,
    read: _Read,
    doc: str,
    example: tuple[str, str],
) -> None:
    """Declares a function of what a path leads to; without a path that is all of the JSON."""
    inner = f"_json_{names.split()[0].removeprefix('json_')}"
    takes_places = inner in ("_json_extract", "_json_extract_string", "_json_value")  # of lists

    def host(j: Vector, path: Vector) -> Vector:
        return _over(j, path, read, _ARROW[dtype])

    def host_of_each(j: Vector, path: Vector) -> Vector:
        steps = path_of(path.as_py(), True) if path.is_valid else ()
        return each_value(array_of(j, size_of(j)), lambda text: [read.of(v) for v in parts_of(value_of(text), steps)],
                          pa.list_(_ARROW[dtype]))  # fmt: skip

    def resolve(j: Expr, path: Expr | None = None) -> Expr | None:
        text = as_json(j)
        if text is not None and path is not None and path.dtype.is_list:
            return by_each_path(text, path)
        at = _path(path, takes_places)
        if text is None or at is None:
            return None
        if isinstance(at, Literal) and at.dtype.is_string and not at.is_null and has_wildcard(str(at.value)):
            return make(f"{inner}_each", [text, at], list_of(dtype))
        return make(inner, [text, at], dtype)

    def by_each_path(text: Expr, paths: Expr) -> Expr:
        given = constant_names(paths, f"paths of {names.split()[0]}")
        if any(map(has_wildcard, given)):
            raise BindError(f"{names.split()[0]}: of several paths none leads to several values")
        found = call("list_value", *(make(inner, [text, Literal(p, VARCHAR)], dtype) for p in given))
        return Case(((Not(IsNull(text)), found),), Literal(None, found.dtype))

    for made in (host, host_of_each, resolve):
        made.__doc__ = doc
    host_scalar(inner, ((VARCHAR, VARCHAR), dtype), nullable=True)(host)
    host_scalar(f"{inner}_each", ((VARCHAR, VARCHAR), list_of(dtype)), nullable=True)(host_of_each)
    resolver(names, f"$(JSON, path) -> {dtype}", example=example)(resolve)
    for name in names.split():
        LIST_RESOLVERS[name] = RESOLVERS[name]


def type_name(value: Any) -> str:
    if isinstance(value, Digits | float):
        return "DOUBLE"
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else "BOOLEAN"
    if isinstance(value, int):
        return "UBIGINT" if 0 <= value < 2**64 else "BIGINT" if -(2**63) <= value < 0 else "DOUBLE"
    return "VARCHAR" if isinstance(value, str) else "OBJECT" if isinstance(value, dict) else "ARRAY"


_A = "'{\"a\": [1, \"x\"]}'"
_reader("json_extract json_extract_path", JSON, _Read(written, None, json_scan.as_json),
        "What a path leads to: ``$.a[0]``, ``/a/0``, the name of a field, or a place in a list; also written ``j -> path``.",
        (f"json_extract({_A}, '$.a[1]')", '"x"'))  # fmt: skip
_reader("json_extract_string json_extract_path_text", VARCHAR, _Read(plain, None, json_scan.as_text),
        "The same as text, NULL for ``null``; also written ``j ->> path``.",
        (f"json_extract_string({_A}, '$.a[1]')", "x"))  # fmt: skip
_reader("json_value", VARCHAR,
        _Read(lambda v: None if v is None or isinstance(v, dict | list) else written(v), None, json_scan.as_scalar),
        "As `json_extract`, NULL for lists, objects and ``null``.", (f"json_value({_A}, '/a/0')", "1"))  # fmt: skip
_reader("json_type", VARCHAR, _Read(type_name, None, json_scan.type_names),
        "What a value is: OBJECT, ARRAY, VARCHAR, BOOLEAN, BIGINT, UBIGINT, DOUBLE or NULL.",
        (f"json_type({_A}, '$.a')", "ARRAY"))  # fmt: skip
_reader("json_array_length", UBIGINT, _Read(lambda v: len(v) if isinstance(v, list) else 0, None, json_scan.lengths),
        "How many values a list has; 0 of what is no list.", (f"json_array_length({_A}, 'a')", "2"))  # fmt: skip
_reader("json_exists", BOOLEAN, _Read(lambda v: True, False, json_scan.are_there),
        "Whether a path leads to a value.", (f"json_exists({_A}, '$.a')", "True"))  # fmt: skip
_reader("json_keys", list_of(VARCHAR), _Read(lambda v: [n for n, _ in fields_of(v)] if isinstance(v, dict) else []),
        "The names of an object's fields.", (f"json_keys({_A})", "['a']"))  # fmt: skip


# ---- texts -----------------------------------------------------------------------------------------------------------


@host_scalar("_json_checked", ((VARCHAR,), JSON), fails=_MALFORMED)
def _checked(text: Vector) -> Vector:
    """A text that is JSON, as it is."""
    texts = array_of(text, size_of(text)).cast(pa.large_string())
    ok = _are_json(texts)
    return texts if ok.true_count == len(texts) - texts.null_count else pc.if_else(ok, texts, null(texts.type))


@host_scalar("_json_or_null", ((VARCHAR,), JSON), nullable=True)
def _or_null(text: Vector) -> Vector:
    """The same, NULL for a text that is none."""
    return _checked(text)


@host_scalar("json_valid", ((VARCHAR,), BOOLEAN), example=("json_valid('{\"a\": 1}')", "True"))
def json_valid(text: Vector) -> Vector:
    """Whether a text is JSON."""
    return _are_json(array_of(text, size_of(text)))


def _are_json(texts: pa.Array) -> pa.Array:
    return json_scan.by_parts(texts, (), json_scan.Reader(json_scan.are_json, is_json, is_json, pa.bool_()))


@host_scalar("_json_compact", ((JSON,), JSON))
def _compact(j: Vector) -> Vector:
    """JSON without spaces."""
    return each_value(array_of(j, size_of(j)), lambda t: written(value_of(t)), pa.large_string())


@host_scalar("_json_quoted", ((VARCHAR,), JSON))
def _quoted(text: Vector) -> Vector:
    """A text as JSON."""
    escaped = _escapes().of(array_of(text, size_of(text))).cast(pa.large_string())
    mark = text_like('"', escaped)
    return pc.binary_join_element_wise(mark, escaped, mark, text_like("", escaped))


@cache
def _escapes() -> ByteMap:
    """What is escaped in a text of JSON: ASCII alone."""
    return ByteMap({n: quoted(chr(n))[1:-1].encode() for n in range(128)})


@host_scalar("_json_number", ((DOUBLE,), JSON))
def _number(x: Vector) -> Vector:
    """A double as JSON."""
    return each_value(array_of(x, size_of(x)), number_text, pa.large_string())


@resolver("json", "$(VARCHAR) -> JSON", example=("json('{ \"a\" : 1.50 }')", '{"a":1.5}'))
def json_(text: Expr) -> Expr | None:
    """JSON without spaces."""
    j = as_json(text)
    return None if j is None else make("_json_compact", [j], JSON)


@resolver("json_contains", "$(JSON, JSON) -> BOOLEAN", example=("json_contains('[1, {\"a\": 2}]', '2')", "True"))
def _contains(j: Expr, part: Expr) -> Expr | None:
    """Whether a value is somewhere in another; an object is in one that has its fields, a list in one that has its values."""
    both = as_json(j), as_json(part)
    return None if None in both else make("_json_within", [e for e in both if e is not None], BOOLEAN)


@host_scalar("_json_within", ((JSON, JSON), BOOLEAN))
def _within(j: Vector, part: Vector) -> Vector:
    """Whether a value is in another."""
    return each_row(lambda a, b: _holds(value_of(a), value_of(b)), pa.bool_(), j, part)


def _holds(value: Any, part: Any) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return _covers(value, part) or any(_holds(v, part) for v in inside)


def _covers(value: Any, part: Any) -> bool:
    if isinstance(value, dict) and isinstance(part, dict):
        return all(n in value and _covers(value[n], v) for n, v in part.items())
    if isinstance(value, list) and isinstance(part, list):
        return all(any(_covers(v, p) for v in value) for p in part)
    return type(value) is type(part) and bool(value == part)


@resolver("json_merge_patch", "$(JSON, JSON, ...) -> JSON",
          example=("json_merge_patch('{\"a\": 1}', '{\"b\": 2}')", '{"a":1,"b":2}'))  # fmt: skip
def _merged(j: Expr, patch: Expr, *more: Expr) -> Expr | None:
    """The first with the fields of the others; those that are null there are taken away. A patch of what is no object, or NULL,
    is given as it is; one that is NULL gives NULL."""
    texts = [as_json(e) for e in (j, patch, *more)]
    if None in texts:
        return None
    return make("_json_patched", [e for e in texts if e is not None], JSON)


@host_scalar("_json_patched", ((JSON, JSON), JSON), strict=False, nullable=True)
def _patched(*texts: Vector) -> Vector:
    """JSON with the fields of patches, one after the other."""
    rows = size_of(*texts)
    columns = [array_of(t, rows).to_pylist() for t in texts]
    return value_array([_patched_text(row) for row in zip(*columns, strict=True)], pa.large_string())


def _patched_text(row: tuple[str | None, ...]) -> str | None:
    made = None if row[0] is None else value_of(row[0])
    for patch in row[1:-1]:
        made = _after(made, patch)
    return None if row[-1] is None else written(_after(made, row[-1]))


def _after(value: Any, patch: str | None) -> Any:
    new = None if patch is None else value_of(patch)
    return _patch(value, new) if isinstance(value, dict) else new


def _patch(value: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    own = value if isinstance(value, dict) else {}
    made = {name: v for name, v in own.items() if name not in patch}  # what is patched stands behind the others
    made.update((name, _patch(own.get(name), new)) for name, new in patch.items() if new is not None)
    return made
