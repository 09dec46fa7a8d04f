"""JSON as a whole: what types its values have, and its values as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from gquery.errors import BindError, NotSupportedError
from gquery.expression.expr import Expr, Literal
from gquery.expression.nested_types import list_of, struct_of
from gquery.expression.types import BOOLEAN, JSON, UBIGINT, VARCHAR
from gquery.functions.casts import cast
from gquery.functions.json import as_json, type_name
from gquery.functions.json_paths import MISSING, has_wildcard, part_of, path_of
from gquery.functions.registry import call, host_scalar, make, resolver
from gquery.functions.vectors import Vector, array_of, each_row, each_value, size_of
from gquery.runtime.json_values import value_of, written

# ---- structure -------------------------------------------------------------------------------------------------------

_INTEGERS = ("UBIGINT", "BIGINT", "HUGEINT")


@resolver("json_structure", "$(JSON) -> JSON", example=("json_structure('{\"a\": [1, 2.5]}')", '{"a":["DOUBLE"]}'))
def _json_structure(j: Expr) -> Expr | None:
    """The types of the values in JSON, as `json_transform` takes them."""
    text = as_json(j)
    return None if text is None else make("_jsonrows_structure", [text], JSON)


@host_scalar("_jsonrows_structure", ((JSON,), JSON))
def _structures(j: Vector) -> Vector:
    """The structure of each."""
    return each_value(array_of(j, size_of(j)), lambda text: written(_closed(_structure(value_of(text)))), pa.large_string())


def _structure(value: Any) -> Any:
    """A name of a type, a list of one structure, or structures by names; None of null."""
    if isinstance(value, dict):
        return {n: _structure(v) for n, v in value.items()}
    if isinstance(value, list):
        inner: Any = None
        for v in value:
            inner = _common(inner, _structure(v))
        return [inner]
    return None if value is None else type_name(value)


def _common(a: Any, b: Any) -> Any:
    """The structure of values that have one of two."""
    if a is None or b is None or a == b:
        return b if a is None else a
    if isinstance(a, dict) and isinstance(b, dict):
        return {n: _common(a.get(n), b.get(n)) for n in {**a, **b}}
    if isinstance(a, list) and isinstance(b, list):
        return [_common(a[0], b[0])]
    if all(s in _INTEGERS for s in (a, b)):
        return "HUGEINT"
    return "DOUBLE" if all(s in (*_INTEGERS, "DOUBLE") for s in (a, b)) else "JSON"


def _closed(structure: Any) -> Any:
    """A structure with names where nothing is known."""
    if isinstance(structure, dict):
        return {n: _closed(s) for n, s in structure.items()} or "JSON"
    return [_closed(structure[0])] if isinstance(structure, list) else structure or "NULL"


# ---- rows ------------------------------------------------------------------------------------------------------------

FIELDS = (
    ("key", VARCHAR), ("value", JSON), ("type", VARCHAR), ("atom", JSON), ("id", UBIGINT), ("parent", UBIGINT),
    ("fullkey", VARCHAR), ("path", VARCHAR),
)  # fmt: skip
_ROWS = list_of(struct_of(FIELDS))
_TYPES = {JSON: pa.string(), VARCHAR: pa.string(), UBIGINT: pa.uint64()}
_Row = dict[str, Any]


def json_rows(name: str, args: Sequence[Expr]) -> Expr:
    """The list of the rows of `json_each` or `json_tree`."""
    if not 1 <= len(args) <= 2:
        raise BindError(f"{name} takes JSON and a path, not {len(args)} arguments")
    text = as_json(args[0]) or as_json(call("to_json", args[0]))
    path = args[1] if len(args) == 2 else Literal("$", VARCHAR)
    if isinstance(path, Literal) and isinstance(path.value, str):
        if path.value[:1] == "/" or has_wildcard(path.value):
            raise BindError(f"{name} takes a path to one value, which begins with $: {path.value!r}")
    elif not isinstance(path, Literal):
        raise NotSupportedError(f"not supported: {name} of a path that is no constant")
    assert text is not None
    return make("_jsonrows_of", [text, cast(path, VARCHAR), Literal(int(name == "json_tree"), BOOLEAN)], _ROWS)


@host_scalar("_jsonrows_of", ((JSON, VARCHAR, BOOLEAN), _ROWS))
def _rows(j: Vector, path: Vector, is_tree: Vector) -> Vector:
    """The values of each, as rows."""
    type_ = pa.list_(pa.struct([(n, _TYPES[t]) for n, t in FIELDS]))
    return each_row(lambda text, p, tree: list(_of_value(value_of(text), p, tree)), type_, j, path, is_tree)


def _of_value(whole: Any, path: str, is_tree: bool) -> Iterator[_Row]:
    value, number = whole, 0
    for step in path_of(path):
        part = part_of(value, (step,))
        if part is MISSING:
            return
        number += _ahead(value, step)
        value = part
    shown = path if path[:1] == "$" else f'$."{path}"' if path else "$"
    if is_tree or not isinstance(value, dict | list):
        yield _row(None, value, number, None, shown, shown)
    yield from _inner(value, number, shown, is_tree)


def _inner(value: Any, number: int, path: str, is_tree: bool) -> Iterator[_Row]:
    """The rows of what is in a value that has a number. Values have numbers in the order of the text, names too."""
    at = number + 1
    named = isinstance(value, dict)
    for n, v in value.items() if named else enumerate(value) if isinstance(value, list) else ():
        full = f"{path}.{n}" if named else f"{path}[{n}]"
        yield _row(str(n), v, at + named, number if is_tree else None, full, path)
        if is_tree:
            yield from _inner(v, at + named, full, True)
        at += named + _size(v)


def _row(key: str | None, value: Any, number: int, parent: int | None, full: str, path: str) -> _Row:
    text, type_ = written(value), type_name(value)
    atom = None if type_ in ("ARRAY", "OBJECT", "NULL") else text
    made = (key, text, type_, atom, number, parent, full, path)
    return dict(zip((n for n, _ in FIELDS), made, strict=True))


def _size(value: Any) -> int:
    """How many numbers a value takes."""
    if isinstance(value, dict):
        return 1 + sum(1 + _size(v) for v in value.values())
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1


def _ahead(value: Any, step: Any) -> int:
    """How many numbers lie between a value and a part of it."""
    if isinstance(value, list):
        return 1 + sum(map(_size, value[: step % len(value)]))
    names = list(value)
    return 2 + sum(1 + _size(value[n]) for n in names[: names.index(step)])
