"""Lists as sets and in order: sorted, reversed, without repetitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.errors import BindError
from gquery.expression.expr import Expr, Literal
from gquery.expression.nested_types import list_of
from gquery.expression.traverse import pinned
from gquery.expression.types import BIGINT, BOOLEAN, UBIGINT, VARCHAR
from gquery.functions.list_arrays import Lists, any_by_row, list_array, lists_of
from gquery.functions.list_function import Typed, as_lists, list_function
from gquery.functions.list_ranks import MOST, NO_VALUE, order_in_rows, ranks
from gquery.functions.vectors import Vector, from_numpy, size_of


def _same(xs: Expr) -> Typed | None:
    return None if xs.dtype.element is None else ((xs,), list_of(xs.dtype.element))


def _word(e: Expr, allowed: dict[str, str], name: str) -> Expr:
    value = pinned(e)
    word = str(value.value).upper() if isinstance(value, Literal) else ""
    if word not in allowed:
        raise BindError(f"{name}: the order is {' or '.join(allowed)}")
    return Literal(allowed[word], VARCHAR)


_ORDERS = {"ASC": "ASC", "DESC": "DESC"}
_NULLS = {"NULLS FIRST": "FIRST", "NULLS LAST": "LAST"}


def _sorted_as(reverse: bool) -> Callable[..., Typed | None]:
    def rule(xs: Expr, order: Expr | None = None, nulls: Expr | None = None) -> Typed | None:
        if xs.dtype.element is None:
            return None
        if reverse:
            order, nulls = Literal("DESC", VARCHAR), order
        asked = Literal("ASC", VARCHAR) if order is None else _word(order, _ORDERS, "list_sort")
        place = Literal("LAST", VARCHAR) if nulls is None else _word(nulls, _NULLS, "list_sort")
        return (xs, asked, place), list_of(xs.dtype.element)

    return rule


def _in_order(xs: Vector, order: Vector, nulls: Vector) -> tuple[Lists, Any]:
    """The lists, and their elements' places in the order."""
    lists = lists_of(xs, size_of(xs))
    (numbers,) = ranks(lists.flat)
    is_null = numbers == NO_VALUE
    keys = -numbers if order.as_py() == "DESC" else numbers
    if lists.flat.null_count:
        keys[is_null] = keys.min() - 1 if nulls.as_py() == "FIRST" else keys.max() + 1
    return lists, order_in_rows(lists, keys)


def _sorted(xs: Vector, order: Vector, nulls: Vector) -> pa.Array:
    lists, places = _in_order(xs, order, nulls)
    return list_array(lists.flat.take(from_numpy(places)), lists.lengths, lists.ok)


@list_function("list_sort array_sort", _sorted_as(False), "$(list[, 'ASC' or 'DESC'[, 'NULLS FIRST' or 'NULLS LAST']])",
               example=("list_sort([3, NULL, 1])", "[1, 3, None]"))  # fmt: skip
def list_sort(xs: Vector, order: Vector, nulls: Vector) -> Vector:
    """The elements in order."""
    return _sorted(xs, order, nulls)


@list_function("list_reverse_sort array_reverse_sort", _sorted_as(True), "$(list[, 'NULLS FIRST' or 'NULLS LAST'])",
               example=("list_reverse_sort([1, 3])", "[3, 1]"))  # fmt: skip
def list_reverse_sort(xs: Vector, order: Vector, nulls: Vector) -> Vector:
    """The elements in order, the greatest first."""
    return _sorted(xs, order, nulls)


def _places(xs: Expr) -> Typed | None:
    return (
        None if xs.dtype.element is None else ((xs, Literal("ASC", VARCHAR), Literal("LAST", VARCHAR)), list_of(BIGINT))
    )


@list_function("list_grade_up array_grade_up", _places, "$(list) -> BIGINT[]",
               example=("list_grade_up([9, 7, 8])", "[2, 3, 1]"))  # fmt: skip
def list_grade_up(xs: Vector, order: Vector, nulls: Vector) -> Vector:
    """The places of the elements, that of the least first."""
    lists, places = _in_order(xs, order, nulls)
    return list_array(from_numpy(lists.ordinals[places] + 1), lists.lengths, lists.ok)


@list_function("list_reverse array_reverse", _same, "$(list)", example=("list_reverse([1, 2])", "[2, 1]"))
def list_reverse(xs: Vector) -> Vector:
    """The elements from last to first."""
    lists = lists_of(xs, size_of(xs))
    places = np.repeat(2 * np.cumsum(lists.lengths) - lists.lengths - 1, lists.lengths) - np.arange(len(lists.flat))
    return list_array(lists.flat.take(from_numpy(places)), lists.lengths, lists.ok)


def _kept(lists: Lists, kept: Any) -> pa.Array:
    """The lists with some of their elements."""
    lengths = np.bincount(lists.rows[kept], minlength=len(lists))
    return list_array(lists.flat.take(from_numpy(np.flatnonzero(kept))), lengths, lists.ok)


def _firsts(lists: Lists, numbers: Any) -> Any:
    """Whether an element is the first of its value in its row, and no NULL."""
    order = order_in_rows(lists, numbers)
    ordered, rows = numbers[order], lists.rows  # which are in order themselves
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (rows[1:] != rows[:-1]) | (ordered[1:] != ordered[:-1])
    kept = np.zeros(len(order), np.bool_)
    kept[order] = is_new
    return kept & (numbers != NO_VALUE)


@list_function(
    "list_distinct array_distinct", _same, "$(list)", example=("list_sort(list_distinct([1, 1, NULL]))", "[1]")
)
def list_distinct(xs: Vector) -> Vector:
    """Each value once, in the order of their first places, without NULL."""
    lists = lists_of(xs, size_of(xs))
    (numbers,) = ranks(lists.flat)
    return _kept(lists, _firsts(lists, numbers))


def _count(xs: Expr) -> Typed | None:
    return None if xs.dtype.element is None else ((xs,), UBIGINT)


@list_function("list_unique array_unique", _count, "$(list) -> UBIGINT", example=("list_unique([1, 1, NULL])", "1"))
def list_unique(xs: Vector) -> Vector:
    """How many different values there are, without NULL."""
    lists = lists_of(xs, size_of(xs))
    (numbers,) = ranks(lists.flat)
    counts = np.bincount(lists.rows[_firsts(lists, numbers)], minlength=len(lists))
    return from_numpy(counts.astype(np.uint64), lists.ok)


# ---- two lists -------------------------------------------------------------------------------------------------------


def _two(xs: Expr, ys: Expr) -> Typed | None:
    found = as_lists(xs, ys)
    return None if found is None else (found, BOOLEAN)


def _meeting(xs: Expr, ys: Expr) -> Typed | None:
    found = as_lists(xs, ys)
    return None if found is None or found[0].dtype.element is None else (found, list_of(found[0].dtype.element))


def _found(a: Lists, b: Lists) -> tuple[Any, Any, Any]:
    """Of each element of ``a`` whether the list of ``b`` in its row has it, both numbers without NULLs."""
    own, other = ranks(a.flat, b.flat)
    width = int(max(own.max(initial=0), other.max(initial=0))) + 1
    if width * len(a) >= MOST:
        dense = np.unique(np.concatenate([own, other, [NO_VALUE]]), return_inverse=True)[1] - 1
        own, other, width = dense[: len(own)], dense[len(own) : -1], int(dense.max()) + 1
    there = np.unique(b.rows[other != NO_VALUE] * width + other[other != NO_VALUE])
    wanted = a.rows * width + own
    at = np.minimum(np.searchsorted(there, wanted), max(len(there) - 1, 0))
    found = (there[at] == wanted) & (own != NO_VALUE) if len(there) else np.zeros(len(wanted), np.bool_)
    return found, own, other


@list_function(
    "list_has_any array_has_any", _two, "$(list, list) -> BOOLEAN", example=("list_has_any([1], [1, 2])", "True")
)
def list_has_any(xs: Vector, ys: Vector) -> Vector:
    """Whether the lists have a value in common: ``xs && ys``."""
    rows = size_of(xs, ys)
    a, b = lists_of(xs, rows), lists_of(ys, rows)
    return from_numpy(any_by_row(a.rows[_found(a, b)[0]], rows), a.ok & b.ok)


@list_function(
    "list_has_all array_has_all", _two, "$(list, list) -> BOOLEAN", example=("list_has_all([1, 2], [1])", "True")
)
def list_has_all(xs: Vector, ys: Vector) -> Vector:
    """Whether the first list has every value of the second: ``xs @> ys``."""
    rows = size_of(xs, ys)
    a, b = lists_of(xs, rows), lists_of(ys, rows)
    found, own, _ = _found(b, a)
    return from_numpy(~any_by_row(b.rows[~found & (own != NO_VALUE)], rows), a.ok & b.ok)


@list_function(
    "list_intersect array_intersect",
    _meeting,
    "$(list, list)",
    strict=False,
    nullable=True,
    example=("list_intersect([1, 2], [2])", "[2]"),
)
def list_intersect(xs: Vector, ys: Vector) -> Vector:
    """The values that both lists have, each once, without NULL; none where the second one is NULL."""
    rows = size_of(xs, ys)
    a, b = lists_of(xs, rows), lists_of(ys, rows)
    found, own, _ = _found(a, b)
    return _kept(a, _firsts(a, own) & found)
