"""Lists made of some elements of others: by places, by flags, cut or filled up to a length, without an end, where others are
least."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.errors import ConversionError, DataError, OutOfRangeError
from gquery.expression.expr import Expr, Literal
from gquery.expression.nested_types import list_of
from gquery.expression.types import BIGINT, BOOLEAN, UBIGINT, DType, Kind
from gquery.functions.casts import cast
from gquery.functions.list_arrays import Lists, list_array, lists_of, plain, together
from gquery.functions.list_function import Typed, element_of, list_function
from gquery.functions.list_ranks import NO_VALUE, ranks
from gquery.functions.registry import (
    LIST_RESOLVERS,
    RESOLVERS,
    ScalarFunction,
    call,
    declare,
    is_null_literal,
    resolver,
)
from gquery.functions.vectors import Vector, array_of, flags, from_numpy, integers, room, size_of

N_LEAST, N_GREATEST = "_n_least", "_n_greatest"
_MOST = 2**31
_TOO_MANY = 1_000_000  # values that an aggregate gives, as in DuckDB
_BLOCKS = 4  # of a long row for each value that is wanted
_LAST = 2**63 - 1


def _resized(xs: Expr, size: Expr, value: Expr | None = None) -> Typed | None:
    element = element_of(xs)
    if element is None or xs.dtype.element is None:
        return None
    return (xs, cast(size, BIGINT), cast(Literal(None, element) if value is None else value, element)), xs.dtype


@list_function("list_resize array_resize", _resized, "$(list, BIGINT[, any])", strict=False, nullable=True,
               example=("list_resize([1], 3, 9)", "[1, 9, 9]"))  # fmt: skip
def list_resize(xs: Vector, size: Vector, value: Vector) -> Vector:
    """The first elements, so many as are asked for; where there are fewer, a value or NULL stands for those that are missing."""
    rows = size_of(xs, size, value)
    lists, fill = lists_of(xs, rows), plain(array_of(value, rows))
    sizes = array_of(size, rows)
    wanted = np.where(flags(sizes.is_valid()) & lists.ok, integers(sizes, rows), 0)
    if bool((wanted < 0).any()):
        raise ConversionError("list_resize: a size that is negative")
    total = int(wanted.astype(np.float64).sum())
    if total > _MOST:
        raise OutOfRangeError("list_resize: a list has at most 2^31 elements")
    room(8 * total)
    ends = np.cumsum(wanted)
    row = np.repeat(np.arange(rows), wanted)
    ordinals = np.arange(int(ends[-1]) if rows else 0) - np.repeat(ends - wanted, wanted)
    places = np.where(ordinals < lists.lengths[row], lists.starts[row] + ordinals, len(lists.elements) + row)
    return list_array(together(lists.elements, fill).take(from_numpy(places)), wanted, lists.ok)


def _beside(element: DType) -> Callable[[Expr, Expr], Typed | None]:
    """The types of a list and of one of such elements beside it."""

    def typed(xs: Expr, others: Expr) -> Typed | None:
        given = others.dtype.element
        if xs.dtype.element is None or given is None:
            return None
        is_narrower = element.is_integer and given.is_integer and given != UBIGINT
        if not (given == element or is_narrower or given.kind is Kind.NULL):  # DuckDB widens, and does no more
            return None
        return (xs, cast(others, list_of(element))), xs.dtype

    return typed


@list_function("list_select array_select", _beside(BIGINT), "$(list, BIGINT[])",
               example=("list_select([7, 8, 9], [3, 1])", "[9, 7]"))  # fmt: skip
def list_select(xs: Vector, places: Vector) -> Vector:
    """The elements at places, NULL for a place that is not there."""
    rows = size_of(xs, places)
    lists, wanted, ok = _both(xs, places, rows)
    at = integers(wanted.flat, len(wanted.flat))
    is_there = (at > 0) & (at <= lists.lengths[wanted.rows])
    found = lists.elements.take(from_numpy(np.where(is_there, lists.starts[wanted.rows] + at - 1, 0), is_there))
    return list_array(found, wanted.lengths, ok)


@list_function("list_where array_where", _beside(BOOLEAN), "$(list, BOOLEAN[])",
               example=("list_where([7, 8, 9], [true, false, true])", "[7, 9]"))  # fmt: skip
def list_where(xs: Vector, keep: Vector) -> Vector:
    """The elements whose flags are true; NULL for one that is not there."""
    rows = size_of(xs, keep)
    lists, wanted, ok = _both(xs, keep, rows)
    kept = flags(wanted.flat)
    row, at = wanted.rows[kept], wanted.ordinals[kept]
    is_there = at < lists.lengths[row]
    found = lists.elements.take(from_numpy(np.where(is_there, lists.starts[row] + at, 0), is_there))
    return list_array(found, np.bincount(row, minlength=rows).astype(np.int64), ok)


def _both(xs: Vector, others: Vector, rows: int) -> tuple[Lists, Lists, Any]:
    """Two lists of each row, without elements where one is NULL. DataError where the other has a NULL."""
    lists, wanted = lists_of(xs, rows), lists_of(others, rows)
    ok = lists.ok & wanted.ok
    wanted = Lists(wanted.starts, np.where(ok, wanted.lengths, 0), ok, wanted.elements)
    if wanted.flat.null_count:
        raise DataError("list_select and list_where take no NULL among places and flags")
    return lists, wanted, ok


@resolver("array_push_back", "$(list, any)", example=("array_push_back([1], 2)", "[1, 2]"))
def _push_back(xs: Expr, value: Expr) -> Expr | None:
    """The list with a value behind its elements."""
    return call("list_append", xs, value) if xs.dtype.is_list or is_null_literal(xs) else None


@resolver("array_push_front", "$(list, any)", example=("array_push_front([2], 1)", "[1, 2]"))
def _push_front(xs: Expr, value: Expr) -> Expr | None:
    """The list with a value before its elements."""
    return call("list_prepend", value, xs) if xs.dtype.is_list or is_null_literal(xs) else None


@resolver("array_pop_back", "$(list)", example=("array_pop_back([1, 2])", "[1]"))
def _pop_back(xs: Expr) -> Expr | None:
    """The list without its last element."""
    one = Literal(1, BIGINT)
    return call("list_slice", xs, one, call("subtract", call("len", xs), one)) if xs.dtype.is_list else None


@resolver("array_pop_front", "$(list)", example=("array_pop_front([1, 2])", "[2]"))
def _pop_front(xs: Expr) -> Expr | None:
    """The list without its first element."""
    return call("list_slice", xs, Literal(2, BIGINT), call("len", xs)) if xs.dtype.is_list else None


for _name in ("array_push_back", "array_push_front", "array_pop_back", "array_pop_front"):
    LIST_RESOLVERS[_name] = RESOLVERS[_name]


LIST_RESOLVERS["add"] = [lambda args: call("list_concat", *args)]  # ``xs + ys``


def _several(xs: Vector, ys: Vector, n: Vector, is_greatest: bool) -> Vector:
    """Of each row the elements of one list where those of another, beside them, are the n least or greatest; of equal ones the
    first. A row without elements has no list."""
    rows = size_of(xs, ys, n)
    lists, others = lists_of(xs, rows), lists_of(ys, rows)
    lengths = np.where(others.lengths > 0, np.minimum(others.lengths, _wanted(n, rows, others)), 0)
    places = _least(_order_keys(others.flat, is_greatest), others, lengths)
    return list_array(lists.flat.take(from_numpy(places)), lengths, others.lengths > 0)


def _order_keys(values: pa.Array, is_greatest: bool) -> Any:
    """int64 of which the least come first. NULL has the last number there is."""
    type_ = values.type
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_) or (pa.types.is_integer(type_) and type_ != pa.uint64()):
        numbers, ok = integers(values, len(values)), flags(values.is_valid())
        if not len(numbers) or (int(numbers.min()) > -_LAST and int(numbers.max()) < _LAST):
            return np.where(ok, -numbers if is_greatest else numbers, _LAST)
    (numbers,) = ranks(values)
    return np.where(numbers == NO_VALUE, _LAST, -numbers if is_greatest else numbers)


def _least(keys: Any, lists: Lists, wanted: Any) -> Any:
    """The places of as many of the least keys of each row, the least first. Of blocks of a long row the least keys are taken:
    none of those that are wanted is greater than as many of these, so that few keys are left to sort."""
    rows, lengths = np.arange(len(lists)), lists.lengths
    blocks = np.where(lengths > 2 * _BLOCKS * wanted, _BLOCKS * wanted, np.minimum(lengths, 1))
    if not blocks.any():
        return np.zeros(0, np.int64)
    row, number = np.repeat(rows, blocks), _numbered(blocks)
    begins = (np.cumsum(lengths) - lengths)[row] + number * lengths[row] // blocks[row]
    least = np.minimum.reduceat(keys, begins)
    least = least[np.lexsort((least, row))]
    limits = np.full(len(lists), _LAST)
    is_long = blocks > 1
    limits[is_long] = least[(np.cumsum(blocks) - blocks + wanted - 1)[is_long]]
    (near,) = np.nonzero(keys <= np.repeat(limits, lengths))
    row = lists.rows[near]
    counts = np.bincount(row, minlength=len(lists))
    return near[np.lexsort((keys[near], row))][_numbered(counts) < np.repeat(wanted, counts)]


def _numbered(counts: Any) -> Any:
    """0, 1, ... for each count, one after another."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def _wanted(n: Vector, rows: int, there: Lists) -> Any:
    """How many values each row asks for: the number of its first element, where there is one for each. DataError where that
    cannot be, in a row that has a value."""
    found = array_of(n, rows)
    if found.type.num_fields:  # a list
        counts = lists_of(found, rows)
        found = counts.at(np.zeros(rows, np.int64), counts.lengths > 0)
    values, ok, is_asked = integers(found, rows), flags(found.is_valid()), there.lengths > 0
    problem = (
        "cannot be NULL" if (is_asked & ~ok).any()
        else "has to be above 0" if (is_asked & (values <= 0)).any()
        else f"has to be below {_TOO_MANY}" if (is_asked & (values >= _TOO_MANY)).any()
        else None
    )  # fmt: skip
    if problem is not None:
        raise DataError(f"min, max, arg_min and arg_max of n values: n {problem}")
    return values


declare(
    ScalarFunction(
        N_LEAST,
        host=lambda xs, ys, n: _several(xs, ys, n, False),
        strict=False,
        nullable=True,
        doc="Elements where another is least.",
    )
)
declare(
    ScalarFunction(
        N_GREATEST,
        host=lambda xs, ys, n: _several(xs, ys, n, True),
        strict=False,
        nullable=True,
        doc="Elements where another is greatest.",
    )
)
