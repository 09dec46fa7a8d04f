"""Maps: values by keys. They are Arrow arrays of entries, as lists of structs are (see `gquery.functions.list_arrays`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.errors import BindError, ConversionError
from gquery.expression.expr import Case, Expr, IsNull, Literal
from gquery.expression.nested_types import entries_of, list_of, map_of, with_types
from gquery.expression.types import BIGINT, BOOLEAN, INTEGER, NULL, UBIGINT, DType, Kind
from gquery.functions.casts import cast, unified
from gquery.functions.list_arrays import Lists, any_by_row, first_by_row, list_array, lists_of, plain, together
from gquery.functions.list_function import Typed, element_of, list_function, meeting
from gquery.functions.list_ranks import NO_VALUE, ranks
from gquery.functions.nested_arrays import fields_of, struct_array
from gquery.functions.registry import FUNCTIONS, LIST_RESOLVERS, RESOLVERS, call, make, resolver
from gquery.functions.vectors import Vector, array_of, flags, from_numpy, size_of
from gquery.runtime.records import replace

_NONE = np.iinfo(np.int64).max


def key_type(dtype: DType) -> DType:
    """The type of a map's keys."""
    return dtype.fields[0][1]


def value_type(dtype: DType) -> DType:
    """The type of a map's values."""
    return dtype.fields[1][1]


def map_array(keys: pa.Array, values: pa.Array, lengths: Any, ok: Any = None) -> pa.Array:
    """Maps of entries that stand one after another; NULL where ``ok`` is False."""
    return list_array(struct_array([keys, values], names=("key", "value")), lengths, ok)


def _parts(maps: Lists) -> tuple[pa.Array, pa.Array]:
    keys, values = fields_of(maps.flat)
    return plain(keys), plain(values)


_FAILS = (ConversionError, "the keys of a map have to differ, none can be NULL, and there have to be as many values")


def are_keys(keys: pa.Array, rows: Any, count: int) -> Any:
    """Whether the keys of each row differ, and none is NULL."""
    (numbers,) = ranks(keys)
    order = np.lexsort((numbers, rows))
    same = (rows[order][1:] == rows[order][:-1]) & (numbers[order][1:] == numbers[order][:-1])
    wrong = np.concatenate([rows[numbers == NO_VALUE], rows[order][1:][same]])
    return ~any_by_row(wrong, count)


# ---- made ------------------------------------------------------------------------------------------------------------


def _of_lists(keys: Expr, values: Expr) -> Typed | None:
    key, value = element_of(keys), element_of(values)
    return None if key is None or value is None else ((keys, values), map_of(key, value))


@list_function(
    "map", _of_lists, "$(keys list, values list) -> MAP", example=("map(['a', 'b'], [1, 2])", "{'a': 1, 'b': 2}"),
)  # fmt: skip
def map_of_lists(keys: Vector, values: Vector) -> Vector:
    """A map of a list of keys and one of values: ``MAP {'a': 1}``."""
    rows = size_of(keys, values)
    a, b = lists_of(keys, rows), lists_of(values, rows)
    ok = a.ok & b.ok & (a.lengths == b.lengths) & are_keys(a.flat, a.rows, rows)
    a, b = (Lists(x.starts, np.where(ok, x.lengths, 0), ok, x.elements) for x in (a, b))
    return map_array(a.flat, b.flat, a.lengths, ok)


@list_function("_empty_map", lambda n: ((n,), map_of(NULL, NULL)), "", strict=False)
def empty_map(n: Vector) -> Vector:
    """A map without entries, of no type yet."""
    return map_array(pa.nulls(0), pa.nulls(0), np.zeros(size_of(n), np.int64))


@resolver("map", "$() -> MAP")
def _no_entries() -> Expr:
    """A map without entries."""
    return make("_empty_map", (Literal(0, INTEGER),), map_of(NULL, NULL))


def _from_entries(xs: Expr) -> Typed | None:
    entry = xs.dtype.element
    if entry is None or not entry.is_struct or len(entry.fields) != 2:
        return None
    return (xs,), map_of(*(t for _, t in entry.fields))


@list_function("map_from_entries", _from_entries, "$(list of structs) -> MAP",
               example=("map_from_entries([('a', 1), ('b', 2)])", "{'a': 1, 'b': 2}"))  # fmt: skip
def map_from_entries(xs: Vector) -> Vector:
    """A map of a list of structs of a key and a value."""
    lists = lists_of(xs, size_of(xs))
    ok = lists.ok & are_keys(_parts(lists)[0], lists.rows, len(lists))
    kept = Lists(lists.starts, np.where(ok, lists.lengths, 0), ok, lists.elements)
    return map_array(*_parts(kept), kept.lengths, ok)


def _merged(*maps: Expr) -> Typed | None:
    if not maps or not any(m.dtype.kind is Kind.MAP for m in maps):
        return None
    types = {m.dtype.name for m in maps if m.dtype.kind is not Kind.NULL}
    if len(types) > 1:
        raise BindError(f"map_concat takes maps of one type, not {' and '.join(sorted(types))}")
    made = unified(maps, "map_concat")
    return made, with_types(made[0].dtype, (key_type(made[0].dtype), value_type(made[0].dtype)))


@list_function("map_concat", _merged, "$(MAP, ...) -> MAP", strict=False, nullable=True,
               example=("map_concat(MAP {'a': 1, 'b': 2}, MAP {'b': 3})", "{'a': 1, 'b': 3}"))  # fmt: skip
def map_concat(*maps: Vector) -> Vector:
    """The entries of several maps; of a key that several have the last value. NULL has no entries."""
    rows = size_of(*maps)
    lists = [lists_of(m, rows) for m in maps]
    parts = [_parts(m) for m in lists]
    row = np.concatenate([m.rows for m in lists])
    keys, values = together(*(k for k, _ in parts)), together(*(v for _, v in parts))
    (numbers,) = ranks(keys)
    order = np.lexsort((np.arange(len(row)), numbers, row))  # entries of a key side by side, those of the last map last
    starts = np.ones(len(order), np.bool_)
    starts[1:] = (row[order][1:] != row[order][:-1]) | (numbers[order][1:] != numbers[order][:-1])
    first = order[starts]
    last = order[np.append(np.flatnonzero(starts)[1:], len(order)) - 1] if len(order) else order
    by_place = np.lexsort((first, row[first]))
    lengths = np.bincount(row[first], minlength=rows)
    taken = keys.take(from_numpy(first[by_place])), values.take(from_numpy(last[by_place]))
    return map_array(*taken, lengths, np.logical_or.reduce([m.ok for m in lists]))


# ---- taken apart -----------------------------------------------------------------------------------------------------


def _part(place: int) -> Any:
    def rule(m: Expr) -> Typed | None:
        return ((m,), list_of(m.dtype.fields[place][1])) if m.dtype.kind is Kind.MAP else None

    return rule


@list_function("map_keys", _part(0), "$(MAP) -> list", example=("map_keys(MAP {'a': 1})", "['a']"))
def map_keys(m: Vector) -> Vector:
    """The keys of a map as a list."""
    maps = lists_of(m, size_of(m))
    return list_array(_parts(maps)[0], maps.lengths, maps.ok)


@list_function("map_values", _part(1), "$(MAP) -> list", example=("map_values(MAP {'a': 1})", "[1]"))
def map_values(m: Vector) -> Vector:
    """The values of a map as a list."""
    maps = lists_of(m, size_of(m))
    return list_array(_parts(maps)[1], maps.lengths, maps.ok)


def _all_entries(m: Expr) -> Typed | None:
    return ((m,), entries_of(m.dtype)) if m.dtype.kind is Kind.MAP else None


@list_function("map_entries", _all_entries, "$(MAP) -> list of STRUCT(key, value)",
               example=("map_entries(MAP {'a': 1})", "[{'key': 'a', 'value': 1}]"))  # fmt: skip
def map_entries(m: Vector) -> Vector:
    """The entries of a map as structs of a key and a value."""
    maps = lists_of(m, size_of(m))
    return list_array(struct_array(_parts(maps), names=("key", "value")), maps.lengths, maps.ok)


def _count(m: Expr) -> Typed | None:
    return ((m,), UBIGINT) if m.dtype.kind is Kind.MAP else None


@list_function("cardinality", _count, "$(MAP) -> UBIGINT", example=("cardinality(MAP {'a': 1, 'b': 2})", "2"))
def cardinality(m: Vector) -> Vector:
    """How many entries a map has."""
    maps = lists_of(m, size_of(m))
    return from_numpy(maps.lengths.astype(np.uint64), maps.ok)


# ---- looked up -------------------------------------------------------------------------------------------------------


def _with(m: Expr, value: Expr, place: int) -> tuple[Expr, Expr] | None:
    """A map, and a value of the type of its keys (0) or values (1)."""
    if m.dtype.kind is not Kind.MAP:
        return None
    types = [t for _, t in m.dtype.fields]
    met = meeting(types[place], value)
    if met is None:
        what = ("key", "value")[place]
        raise BindError(f"a value of type {value.dtype} is no {what} of a value of type {m.dtype}")
    types[place] = met
    return cast(m, with_types(m.dtype, types)), cast(value, met)


def _by_key(m: Expr, key: Expr) -> Typed | None:
    found = _with(m, key, 0)
    return None if found is None else (found, value_type(m.dtype))


def _list_by_key(m: Expr, key: Expr) -> Typed | None:
    found = _with(m, key, 0)
    return None if found is None else (found, list_of(value_type(m.dtype)))


def _found(maps: Lists, keys: pa.Array, wanted: pa.Array) -> Any:
    """For each row the place of the entry with its key among all, `_NONE` where there is none."""
    own, numbers = ranks(keys, plain(wanted))
    same = np.flatnonzero((own == numbers[maps.rows]) & (own != NO_VALUE))
    return first_by_row(maps.rows[same], same, len(maps))


@list_function("map_extract_value", _by_key, "$(MAP, key)", nullable=True,
               example=("map_extract_value(MAP {'a': 1}, 'a')", "1"))  # fmt: skip
def map_extract_value(m: Vector, key: Vector) -> Vector:
    """The value of a key; NULL where there is none: ``m['a']``."""
    rows = size_of(m, key)
    maps = lists_of(m, rows)
    keys, values = _parts(maps)
    places = _found(maps, keys, array_of(key, rows))
    return values.take(from_numpy(np.where(places == _NONE, 0, places), places != _NONE))


@list_function("map_extract element_at", _list_by_key, "$(MAP, key) -> list", strict=False,
               example=("map_extract(MAP {'a': 1}, 'a')", "[1]"))  # fmt: skip
def map_extract(m: Vector, key: Vector) -> Vector:
    """The value of a key in a list; the list is empty where there is none."""
    rows = size_of(m, key)
    maps = lists_of(m, rows)
    keys, values = _parts(maps)
    places = _found(maps, keys, array_of(key, rows))
    is_there = places != _NONE
    return list_array(values.take(from_numpy(places[is_there])), is_there.astype(np.int64), maps.ok)


def _has_key(m: Expr, key: Expr) -> Typed | None:
    found = _with(m, key, 0)
    return None if found is None else (found, BOOLEAN)


@list_function("map_contains", _has_key, "$(MAP, key) -> BOOLEAN", example=("map_contains(MAP {'a': 1}, 'a')", "True"))
def map_contains(m: Vector, key: Vector) -> Vector:
    """Whether a map has a key."""
    rows = size_of(m, key)
    maps, wanted = lists_of(m, rows), array_of(key, rows)
    found = _found(maps, _parts(maps)[0], wanted)
    return from_numpy(found != _NONE, maps.ok & flags(wanted.is_valid()))


def _has_value(m: Expr, value: Expr) -> Typed | None:
    found = _with(m, value, 1)
    return None if found is None else (found, BOOLEAN)


@list_function("map_contains_value", _has_value, "$(MAP, value) -> BOOLEAN",
               example=("map_contains_value(MAP {'a': 1}, 1)", "True"))  # fmt: skip
def map_contains_value(m: Vector, value: Vector) -> Vector:
    """Whether a map has a value."""
    rows = size_of(m, value)
    maps, wanted = lists_of(m, rows), array_of(value, rows)
    own, numbers = ranks(_parts(maps)[1], plain(wanted))
    found = any_by_row(maps.rows[own == numbers[maps.rows]], rows)
    return from_numpy(found, maps.ok & flags(wanted.is_valid()))


def _has_entry(args: Sequence[Expr]) -> Expr | None:
    if len(args) != 3 or args[0].dtype.kind is not Kind.MAP:
        return None
    m, key, value = args
    for what, (_, own), wanted in zip(("key", "value"), m.dtype.fields, (key, value), strict=True):
        if Kind.NULL not in (own.kind, wanted.dtype.kind) and own.is_string != wanted.dtype.is_string:  # not even a constant
            raise BindError(f"a value of type {wanted.dtype} is no {what} of a value of type {m.dtype}")
    there = call("coalesce", call("map_contains", m, key), Literal(0, BOOLEAN))
    same = call("is_not_distinct_from", call("list_extract", call("map_extract", m, key), Literal(1, BIGINT)), value)
    return Case(((IsNull(m), Literal(None, BOOLEAN)), (there, same)), Literal(0, BOOLEAN))


@resolver("map_contains_entry", "$(MAP, key, value) -> BOOLEAN", example=("map_contains_entry(MAP {'a': 1}, 'a', 1)", "True"))
def _map_contains_entry(m: Expr, key: Expr, value: Expr) -> Expr | None:
    """Whether a map has a key with a value."""
    return _has_entry((m, key, value))


LIST_RESOLVERS["map_contains_entry"] = [_has_entry]
LIST_RESOLVERS["map"] = RESOLVERS["map"]
for _name in ("map", "map_from_entries"):  # which give NULL for what is no map
    FUNCTIONS[_name] = replace(FUNCTIONS[_name], fails=_FAILS)
