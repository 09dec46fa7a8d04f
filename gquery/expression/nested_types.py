"""Types of lists, structs and maps, made of those of the values in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gquery.errors import BindError, NotSupportedError
from gquery.expression.keywords import KEYWORDS
from gquery.expression.types import INTEGER, DType, Kind
from gquery.runtime.records import replace

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(name: str) -> str:
    """A name as DuckDB writes it in the name of a type.

    >>> quoted("a"), quoted("b c"), quoted("key")
    ('a', '"b c"', '"key"')
    """
    is_plain = _PLAIN.fullmatch(name) is not None and name.lower() not in KEYWORDS
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _named(dtype: DType) -> str:
    return '"NULL"' if dtype.kind is Kind.NULL else str(dtype)


def _check(what: str, dtype: DType) -> None:
    if dtype.kind is Kind.INTERVAL:
        raise NotSupportedError(
            f"not supported: {what} of INTERVAL; CAST the values to VARCHAR, or take epoch_us of them"
        )
    if dtype.kind in (Kind.OPAQUE, Kind.BLOB):
        raise NotSupportedError(f"not supported: {what} of {dtype}")


def list_of(element: DType) -> DType:
    """LIST of values of a type; NotSupportedError for intervals, which have no place in Arrow's arrays as they are here, and for
    values that are carried alone.

    >>> str(list_of(list_of(INTEGER)))
    'INTEGER[][]'
    """
    _check("lists", element)
    return DType(Kind.LIST, name=f"{_named(element)}[]", element=element)


def struct_of(fields: Sequence[tuple[str, DType]]) -> DType:
    """STRUCT of named values, or of values without names (each is ""); BindError where a name comes twice.

    >>> str(struct_of([("a", INTEGER), ("b", list_of(INTEGER))])), str(struct_of([("", INTEGER), ("", INTEGER)]))
    ('STRUCT(a INTEGER, b INTEGER[])', 'STRUCT(INTEGER, INTEGER)')
    """
    seen: set[str] = set()
    for name, dtype in fields:
        _check("structs", dtype)
        if name.lower() in seen and name:
            raise BindError(f"a struct has the name {name!r} twice")
        seen.add(name.lower())
    inside = ", ".join(f"{quoted(name)} {_named(t)}" if name else _named(t) for name, t in fields)
    return DType(Kind.STRUCT, name=f"STRUCT({inside})", fields=tuple(fields))


def map_of(key: DType, value: DType) -> DType:
    """MAP of values by keys.

    >>> str(map_of(INTEGER, list_of(INTEGER)))
    'MAP(INTEGER, INTEGER[])'
    """
    _check("maps", key)
    _check("maps", value)
    return DType(Kind.MAP, name=f"MAP({_named(key)}, {_named(value)})", fields=(("key", key), ("value", value)))


def entries_of(dtype: DType) -> DType:
    """The list that a map's entries are: structs of a key and a value."""
    return list_of(struct_of(dtype.fields))


def field_at(dtype: DType, name: str) -> int | None:
    """The place of a field of a struct, letter case ignored."""
    return next((n for n, (known, _) in enumerate(dtype.fields) if known.lower() == name.lower() and name), None)


def has_names(dtype: DType) -> bool:
    """Whether the fields of a struct have names."""
    return any(name for name, _ in dtype.fields)


def with_types(dtype: DType, types: Sequence[DType]) -> DType:
    """A nested type of other types: of its element, or of its fields in their order."""
    if dtype.kind is Kind.LIST:
        return list_of(types[0])
    if dtype.kind is Kind.MAP:
        return map_of(types[0], types[1])
    return struct_of([(name, t) for (name, _), t in zip(dtype.fields, types, strict=True)])


def inner_types(dtype: DType) -> tuple[DType, ...]:
    """The types of what is in a nested value."""
    return (dtype.element,) if dtype.element is not None else tuple(t for _, t in dtype.fields)


def known_type(dtype: DType) -> DType:
    """A type that a table can hold: INTEGER for the NULL of no type, within lists and their like as well."""
    if dtype.kind is Kind.NULL:
        return INTEGER
    inner = inner_types(dtype)
    known = [known_type(t) for t in inner]
    return dtype if all(a == b for a, b in zip(inner, known, strict=True)) else with_types(dtype, known)


def from_outside(dtype: DType, arrow: object) -> DType:
    """A type whose values lie in this Arrow type."""
    return replace(dtype, arrow=arrow)
