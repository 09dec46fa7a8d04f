"""Lists: made of values, looked into by place, put together. They are Arrow arrays (see `gquery.functions.list_arrays`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.errors import NotSupportedError, OutOfRangeError
from gquery.expression.expr import Expr, Literal
from gquery.expression.nested_types import list_of
from gquery.expression.types import BIGINT, BOOLEAN, INTEGER, NULL, DType, Kind
from gquery.functions.casts import cast, unified
from gquery.functions.list_arrays import (
    Lists,
    any_by_row,
    first_by_row,
    list_array,
    lists_of,
    plain,
    together,
)
from gquery.functions.list_function import Typed, as_lists, element_of, list_function, list_overload, with_value
from gquery.functions.list_ranks import NO_VALUE, ranks
from gquery.functions.registry import (
    LIST_RESOLVERS,
    RESOLVERS,
    ScalarFunction,
    call,
    declare,
    is_null_literal,
    make,
    resolver,
)
from gquery.functions.structs import struct_extract
from gquery.functions.vectors import Vector, array_of, flags, from_numpy, integers, room, size_of
from gquery.functions.wide_bits import is_wide

# ---- made of values --------------------------------------------------------------------------------------------------


def _values(*values: Expr) -> Typed | None:
    made = unified(values, "a list") if values else []
    if made and made[0].dtype.kind in (Kind.INTERVAL, Kind.OPAQUE):
        raise NotSupportedError(f"not supported: lists of {made[0].dtype}")
    return (made, list_of(made[0].dtype)) if made else None


@list_function("list_value list_pack", _values, "$(any, ...)", strict=False, example=("list_value(1, 2)", "[1, 2]"))
def list_value(*values: Vector) -> Vector:
    """A list of these values: ``[a, b]``."""
    rows, count = size_of(*values), len(values)
    return list_array(side_by_side(values, rows), np.full(rows, count, np.int64))


def side_by_side(values: Sequence[Vector], rows: int) -> pa.Array:
    """The values of each row one after another."""
    arrays, count = [plain(array_of(v, rows)) for v in values], len(values)
    type_ = arrays[0].type
    if count == 1:
        return arrays[0]
    if _is_of_words(type_) and all(a.type == type_ for a in arrays):
        width = np.dtype(f"u{type_.bit_width // 8}")
        words = np.empty((rows, count), width)
        for n, a in enumerate(arrays if rows else ()):
            words[:, n] = np.frombuffer(a.buffers()[1], width)[a.offset : a.offset + rows]
        bitmap = None
        if any(a.null_count for a in arrays):
            ok = np.stack([flags(a.is_valid()) for a in arrays], axis=1)
            bitmap = pa.py_buffer(np.packbits(ok.reshape(-1), bitorder="little"))
        return pa.Array.from_buffers(type_, rows * count, [bitmap, pa.py_buffer(words)])
    places = (np.arange(count)[None, :] * rows + np.arange(rows)[:, None]).reshape(-1)
    return together(*arrays).take(from_numpy(places))


def _is_of_words(type_: pa.DataType) -> bool:
    is_number = pa.types.is_integer(type_) or pa.types.is_float32(type_) or pa.types.is_float64(type_)
    return bool(is_number or pa.types.is_date32(type_) or pa.types.is_timestamp(type_) or pa.types.is_time64(type_))


def _kept(*args: Vector) -> pa.Array:
    """A list of those of some values beside which a condition is true; the conditions stand behind all values."""
    rows, count = size_of(*args), len(args) // 2
    kept = np.stack([flags(array_of(c, rows)) for c in args[count:]], axis=1)
    lengths = kept.sum(axis=1, dtype=np.int64)
    return list_array(side_by_side(args[:count], rows).filter(from_numpy(kept.reshape(-1))), lengths)


declare(ScalarFunction("_list_kept", host=_kept, strict=False, doc="A list of the values whose conditions are true."))


@list_function("_empty_list", lambda n: ((n,), list_of(NULL)), "", strict=False)
def empty_list(n: Vector) -> Vector:
    """A list without elements, of no type yet."""
    return list_array(pa.nulls(0), np.zeros(size_of(n), np.int64))


@resolver("list_value list_pack", "$() -> NULL[]")
def _no_values() -> Expr:
    """A list without elements."""
    return make("_empty_list", (Literal(0, INTEGER),), list_of(NULL))


def _numbers(*ends: Expr) -> Typed | None:
    if not all(e.dtype.is_integer or is_null_literal(e) for e in ends) or not 1 <= len(ends) <= 3:
        return None
    ends = (Literal(0, BIGINT), *ends) if len(ends) == 1 else ends
    return [cast(e, BIGINT) for e in ends], list_of(BIGINT)


@list_function("range", _numbers, "$([start,] stop[, step]) -> BIGINT[]", example=("range(1, 4)", "[1, 2, 3]"))
def range_(start: Vector, stop: Vector, step: Vector = None) -> Vector:
    """The numbers from start to stop, which is left out."""
    return _counted(start, stop, step, 0)


@list_function("generate_series", _numbers, "$([start,] stop[, step]) -> BIGINT[]",
               example=("generate_series(1, 3)", "[1, 2, 3]"))  # fmt: skip
def generate_series(start: Vector, stop: Vector, step: Vector = None) -> Vector:
    """The numbers from start to stop, which is among them."""
    return _counted(start, stop, step, 1)


def _counted(start: Vector, stop: Vector, step: Vector, more: int) -> pa.Array:
    rows = size_of(start, stop) if step is None else size_of(start, stop, step)
    given = [start, stop, *([] if step is None else [step])]
    ok = np.logical_and.reduce([flags(array_of(x, rows).is_valid()) for x in given])
    low, high = integers(start, rows), integers(stop, rows)
    by = np.ones(rows, np.int64) if step is None else integers(step, rows)
    far, away = high.astype(np.float64) - low, np.where(by == 0, 1, by)
    if bool((ok & (np.abs(far / away) > 2**31)).any()):
        raise OutOfRangeError("range: a list has at most 2^31 elements")
    steps = np.where(by > 0, (high - low + by - 1 + more) // away, (low - high - by - 1 + more) // -away)
    lengths = np.where(ok & (by != 0), np.maximum(steps, 0), 0)
    room(8 * int(lengths.sum()))
    ends = np.cumsum(lengths)
    ordinals = np.arange(int(ends[-1]) if rows else 0) - np.repeat(ends - lengths, lengths)
    return list_array(from_numpy(np.repeat(low, lengths) + ordinals * np.repeat(by, lengths)), lengths, ok)


# ---- by place --------------------------------------------------------------------------------------------------------


def _length(xs: Expr) -> Typed | None:
    return None if xs.dtype.element is None else ((xs,), BIGINT)


@list_overload("len length array_length", _length, "$(list) -> BIGINT", example=("len([7, NULL])", "2"))
def length(xs: Vector) -> Vector:
    """How many elements there are, NULLs among them."""
    lists = lists_of(xs, size_of(xs))
    return from_numpy(lists.lengths, lists.ok)


def _place(xs: Expr, place: Expr) -> Typed | None:
    element = xs.dtype.element
    if element is None or not (place.dtype.is_integer or is_null_literal(place)):
        return None
    return (xs, cast(place, BIGINT)), element


@list_function("list_extract list_element array_extract", _place, "$(list, BIGINT)", nullable=True,
               example=("list_extract([7, 8], 2)", "8"))  # fmt: skip
def list_extract(xs: Vector, place: Vector) -> Vector:
    """The element at a place, counted from 1, or from -1 at the end; NULL where there is none: ``xs[1]``."""
    rows = size_of(xs, place)
    lists, places = lists_of(xs, rows), integers(place, rows)
    at = np.where(places < 0, lists.lengths + places, places - 1)
    is_there = flags(array_of(place, rows).is_valid()) & (at >= 0) & (at < lists.lengths)
    return lists.at(at, is_there)


def _slice(xs: Expr, low: Expr, high: Expr, step: Expr | None = None) -> Typed | None:
    ends = [low, high, *([] if step is None else [step])]
    if xs.dtype.element is None or not all(e.dtype.is_integer or is_wide(e.dtype) or is_null_literal(e) for e in ends):
        return None
    return (xs, *(cast(e, BIGINT) for e in ends)), list_of(xs.dtype.element)


@list_function("list_slice array_slice", _slice, "$(list, first, last[, step])", example=("[7, 8, 9][2:3]", "[8, 9]"))
def list_slice(xs: Vector, low: Vector, high: Vector, step: Vector = None) -> Vector:
    """The elements from one place to another, which is among them, every n-th of them: ``xs[2:3]``."""
    rows = size_of(xs, low, high)
    lists = lists_of(xs, rows)
    first, last = integers(low, rows), integers(high, rows)
    ends = (low, high) if step is None else (low, high, step)
    ok = np.logical_and.reduce([lists.ok, *(flags(array_of(x, rows).is_valid()) for x in ends)])
    by = np.ones(rows, np.int64) if step is None else integers(step, rows)
    if bool((ok & (by <= 0)).any()):
        raise OutOfRangeError("list_slice: not supported: a step that is not positive")
    n = lists.lengths
    begin = np.clip(np.where(first < 0, n + first, first - 1), 0, n)
    end = np.clip(np.where(last < 0, n + last + 1, last), 0, n)
    lengths = np.where(ok, -(-np.maximum(end - begin, 0) // np.maximum(by, 1)), 0)
    counts = np.cumsum(lengths)
    ordinals = np.arange(int(counts[-1]) if rows else 0) - np.repeat(counts - lengths, lengths)
    places = np.repeat(lists.starts + begin, lengths) + ordinals * np.repeat(by, lengths)
    return list_array(lists.elements.take(from_numpy(places)), lengths, ok)


# ---- where a value is ------------------------------------------------------------------------------------------------


def _contains(xs: Expr, value: Expr) -> Typed | None:
    found = with_value(xs, value)
    return None if found is None else (found[:2], BOOLEAN)


@list_function("list_contains list_has array_contains array_has", _contains, "$(list, any) -> BOOLEAN",
               example=("list_contains([7, 8], 8)", "True"))  # fmt: skip
def list_contains(xs: Vector, value: Vector) -> Vector:
    """Whether an element is the value."""
    rows = size_of(xs, value)
    lists, values = lists_of(xs, rows), array_of(value, rows)
    elements, wanted = ranks(lists.flat, plain(values))
    found = any_by_row(lists.rows[elements == wanted[lists.rows]], rows)
    return from_numpy(found, lists.ok & (wanted != NO_VALUE))


def _position(xs: Expr, value: Expr) -> Typed | None:
    found = with_value(xs, value)
    return None if found is None else (found[:2], INTEGER)


@list_function("list_position list_indexof array_position array_indexof", _position, "$(list, any) -> INTEGER",
               strict=False, nullable=True, example=("list_position([7, 8], 8)", "2"))  # fmt: skip
def list_position(xs: Vector, value: Vector) -> Vector:
    """The first place of a value, which may be NULL; NULL where there is none."""
    rows = size_of(xs, value)
    lists, values = lists_of(xs, rows), array_of(value, rows)
    elements, wanted = ranks(lists.flat, plain(values))
    same = elements == wanted[lists.rows]
    first = first_by_row(lists.rows[same], lists.ordinals[same], rows)
    return from_numpy((first + 1).astype(np.int32), first < np.iinfo(np.int64).max)


# ---- put together ----------------------------------------------------------------------------------------------------


def _joined(*lists: Expr) -> Typed | None:
    found = as_lists(*lists) if lists else None
    return None if found is None else (found, _plain_list(found[0].dtype))


def _plain_list(dtype: DType) -> DType:
    assert dtype.element is not None
    return list_of(dtype.element)


def _concatenated(parts: list[Lists], ok: Any) -> pa.Array:
    lengths = np.sum([p.lengths for p in parts], axis=0)
    whole = together(*(p.flat for p in parts))
    before, rows, places = 0, [], []
    for p in parts:
        rows.append(p.rows)
        places.append(before + np.arange(len(p.rows)))
        before += len(p.rows)
    order = np.argsort(np.concatenate(rows), kind="stable")
    return list_array(whole.take(from_numpy(np.concatenate(places)[order])), np.where(ok, lengths, 0), ok)


@list_function("list_concat list_cat array_concat array_cat", _joined, "$(list, list, ...)", strict=False,
               example=("list_concat([1], [2, 3])", "[1, 2, 3]"))  # fmt: skip
def list_concat(*lists: Vector) -> Vector:
    """The elements of lists one after another; NULL has none."""
    rows = size_of(*lists)
    return _concatenated([lists_of(x, rows) for x in lists], np.ones(rows, np.bool_))


LIST_RESOLVERS.setdefault("concat", []).extend(LIST_RESOLVERS["list_concat"])


@resolver("list_extract list_element array_extract", "$(VARCHAR, BIGINT) -> VARCHAR")
def _character(s: Expr, place: Expr) -> Expr | None:
    """The character at a place."""
    return call("substring", s, place, Literal(1, BIGINT)) if s.dtype.is_string else None


resolver("array_extract list_extract list_element", "$(STRUCT, 'field' or place)")(struct_extract)
for _name in ("array_extract", "list_extract", "list_element"):
    LIST_RESOLVERS[_name] = RESOLVERS[_name]


def _both(xs: Expr, ys: Expr) -> Typed | None:
    return _joined(xs, ys)


@list_overload("_concat_operator", _both)
def joined(xs: Vector, ys: Vector) -> Vector:
    """The same, NULL with a NULL: ``xs || ys``."""
    rows = size_of(xs, ys)
    parts = [lists_of(xs, rows), lists_of(ys, rows)]
    ok = parts[0].ok & parts[1].ok
    kept = [Lists(p.starts, np.where(ok, p.lengths, 0), ok, p.elements) for p in parts]
    return _concatenated(kept, ok)


def _append(xs: Expr, value: Expr) -> Typed | None:
    found = with_value(xs, value, is_new=True)
    return None if found is None else (found[:2], list_of(found[2]))


def _prepend(value: Expr, xs: Expr) -> Typed | None:
    found = with_value(xs, value, is_new=True)
    return None if found is None else ((found[1], found[0]), list_of(found[2]))


def _single(value: Vector, rows: int) -> Lists:
    return Lists(np.arange(rows), np.ones(rows, np.int64), np.ones(rows, np.bool_), plain(array_of(value, rows)))


@list_function("list_append array_append", _append, "$(list, any)", strict=False,
               example=("list_append([1], 2)", "[1, 2]"))  # fmt: skip
def list_append(xs: Vector, value: Vector) -> Vector:
    """The list with a value behind its elements."""
    rows = size_of(xs, value)
    return _concatenated([lists_of(xs, rows), _single(value, rows)], np.ones(rows, np.bool_))


@list_function("list_prepend array_prepend", _prepend, "$(any, list)", strict=False,
               example=("list_prepend(1, [2])", "[1, 2]"))  # fmt: skip
def list_prepend(value: Vector, xs: Vector) -> Vector:
    """The list with a value before its elements."""
    rows = size_of(xs, value)
    return _concatenated([_single(value, rows), lists_of(xs, rows)], np.ones(rows, np.bool_))


def _of_lists(xs: Expr) -> Typed | None:
    inner = element_of(xs)
    return ((xs,), list_of(inner.element)) if inner is not None and inner.element is not None else None


@list_function("flatten", _of_lists, "$(list of lists)", example=("flatten([[1], [2, 3]])", "[1, 2, 3]"))
def flatten(xs: Vector) -> Vector:
    """The elements of all lists in a list."""
    rows = size_of(xs)
    lists = lists_of(xs, rows)
    inner = lists_of(lists.flat, len(lists.flat))
    lengths = np.bincount(lists.rows, weights=inner.lengths, minlength=rows).astype(np.int64)
    return list_array(inner.flat, lengths, lists.ok)
