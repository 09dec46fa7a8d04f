"""Structs: made of named values, and taken apart. They are Arrow arrays (see `gquery.functions.nested_arrays`).

A field of a struct that the query itself makes is the value that went in, so that no struct is made for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.errors import BindError, NotSupportedError, did_you_mean
from gquery.expression.expr import Call, Case, Expr, IsNull, Literal, Not
from gquery.expression.nested_types import field_at, has_names, struct_of
from gquery.expression.traverse import pinned
from gquery.expression.types import BIGINT, VARCHAR
from gquery.functions.list_arrays import plain
from gquery.functions.nested_arrays import fields_of, struct_array
from gquery.functions.registry import LIST_RESOLVERS, RESOLVERS, ScalarFunction, call, declare, make, resolver
from gquery.functions.vectors import Vector, array_of, size_of

_MAKE, _FIELD = "_struct", "_field"


def _made(*values: Vector) -> Vector:
    rows = size_of(*values)
    return struct_array([plain(array_of(v, rows)) for v in values])


def _taken(s: Vector, place: Vector) -> Vector:
    return plain(fields_of(array_of(s, size_of(s)))[place.as_py()])


declare(ScalarFunction(_MAKE, host=_made, strict=False, doc="A struct of these values."))
declare(ScalarFunction(_FIELD, host=_taken, nullable=True, doc="A field of a struct by its place."))


def struct(fields: Sequence[tuple[str, Expr]]) -> Expr:
    """A struct of values by names, which are "" in one without names."""
    made = make(_MAKE, [e for _, e in fields], struct_of([(name, e.dtype) for name, e in fields]))
    return Call(made.function, made.args, made.dtype, False)


def constant_names(e: Expr, what: str) -> list[str]:
    """The texts of a list of constants, of which there are some; NotSupportedError for another."""
    given = e.args if isinstance(e, Call) and e.function == "list_value" else ()
    names = [a.value for a in given if isinstance(a, Literal) and isinstance(a.value, str)]
    if not names or len(names) < len(given):
        raise NotSupportedError(f"not supported: {what} that are no list of constant texts")
    return names


def struct_or_null(of: Expr, fields: Sequence[tuple[str, Expr]]) -> Expr:
    """A struct of what is made of a value, NULL where that is."""
    made = struct(fields)
    return Case(((Not(IsNull(of)), made),), Literal(None, made.dtype)) if of.nullable else made


def field(s: Expr, name: str) -> Expr:
    """A field of a struct by its name; BindError where there is none."""
    place = field_at(s.dtype, name)
    if place is None:
        names = [n for n, _ in s.dtype.fields if n]
        raise BindError(f"there is no field {name!r} in a value of type {s.dtype}.{did_you_mean(name, names)}")
    return field_number(s, place)


def field_number(s: Expr, place: int) -> Expr:
    """The field at a place, from 0 on."""
    if isinstance(s, Call) and s.function == _MAKE:
        return s.args[place]
    return make(_FIELD, (s, Literal(place, BIGINT)), s.dtype.fields[place][1])


def fields(s: Expr) -> list[tuple[str, Expr]]:
    """All fields of a struct: names and values; those without names are element1, element2, ..."""
    return [(name or f"element{n + 1}", field_number(s, n)) for n, (name, _) in enumerate(s.dtype.fields)]


@resolver("struct_extract struct_extract_at", "$(STRUCT, 'field' or place)",
          example=("struct_extract({'a': 7}, 'a')", "7"))  # fmt: skip
def struct_extract(s: Expr, key: Expr) -> Expr | None:
    """A field of a struct, by its name, or by its place in a struct without names: ``s.a``, ``s['a']``."""
    if not s.dtype.is_struct:
        return None
    known = pinned(key)
    if not isinstance(known, Literal) or known.is_null or not (known.dtype == VARCHAR or known.dtype.is_integer):
        raise NotSupportedError("not supported: a field of a struct that is no constant")
    if known.dtype == VARCHAR:
        return field(s, str(known.value))
    if has_names(s.dtype):
        raise BindError("a field of a struct with names is taken by its name, not by its place")
    if not 1 <= int(known.value) <= len(s.dtype.fields):
        raise BindError(f"a value of type {s.dtype} has no field {known.value}")
    return field_number(s, int(known.value) - 1)


@resolver("row", "$(any, ...) -> STRUCT", example=("row(1, 'a')", "(1, 'a')"))
def row(first: Expr, *more: Expr) -> Expr:
    """A struct without names: ``(a, b)``."""
    return struct([("", e) for e in (first, *more)])


@resolver(
    "struct_concat", "$(STRUCT, ...) -> STRUCT", example=("struct_concat({'a': 1}, {'b': 2})", "{'a': 1, 'b': 2}")
)
def struct_concat(first: Expr, *more: Expr) -> Expr | None:
    """A struct of the fields of several."""
    structs = (first, *more)
    if not all(s.dtype.is_struct for s in structs):
        return None
    if len({has_names(s.dtype) for s in structs}) > 1:
        raise BindError("struct_concat takes structs that all have names, or none that has")
    return struct([(name, field_number(s, n)) for s in structs for n, (name, _) in enumerate(s.dtype.fields)])


@resolver("struct_values", "$(STRUCT) -> STRUCT", example=("struct_values({'a': 1, 'b': 2})", "(1, 2)"))
def struct_values(s: Expr) -> Expr | None:
    """The values of a struct without their names."""
    return _of_any(s, struct([("", e) for _, e in fields(s)])) if s.dtype.is_struct else None


@resolver("struct_keys", "$(STRUCT) -> VARCHAR[]", example=("struct_keys({'a': 1})", "['a']"))
def struct_keys(s: Expr) -> Expr | None:
    """The names of a struct's fields."""
    if not s.dtype.is_struct:
        return None
    if not has_names(s.dtype):
        raise BindError("struct_keys takes a struct whose fields have names")
    return _of_any(s, call("list_value", *(Literal(name, VARCHAR) for name, _ in s.dtype.fields)))


def _of_any(s: Expr, made: Expr) -> Expr:
    """What is made of a struct, NULL of NULL."""
    return Case(((IsNull(s), Literal(None, made.dtype)),), made) if s.nullable else made


for _name in (
    "struct_extract", "struct_extract_at", "row", "struct_concat", "struct_values", "struct_keys",
):  # fmt: skip
    LIST_RESOLVERS[_name] = RESOLVERS[_name]
