"""Aggregates over the elements of each list: ``list_sum(xs)``, or ``list_aggregate(xs, 'sum')``. NULLs are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.errors import BindError, OutOfRangeError, did_you_mean
from gquery.expression.expr import Expr, Literal
from gquery.expression.facts import INT64_BITS, INT64_DIGITS
from gquery.expression.nested_types import list_of
from gquery.expression.traverse import pinned
from gquery.expression.types import BIGINT, BOOLEAN, DOUBLE, VARCHAR, DType, Kind, decimal
from gquery.functions.casts import cast
from gquery.functions.list_arrays import Lists, first_by_row, lists_of
from gquery.functions.list_function import Typed, list_function, list_overload
from gquery.functions.list_ranks import NO_VALUE, counted, ranks, without_nulls
from gquery.functions.nested_casts import joined_lists
from gquery.functions.registry import LIST_RESOLVERS, RESOLVERS, call, resolver
from gquery.functions.vectors import Vector, doubles, flags, from_numpy, integers, size_of
from gquery.runtime.arrow_compute import pc

_MOST = float(2**62)


class _There:
    """The elements of lists that are no NULL: their rows, which are counted by row, and places among all elements."""

    def __init__(self, xs: Vector) -> None:
        self.lists: Lists = lists_of(xs, size_of(xs))
        self.ok = flags(self.lists.flat.is_valid())
        self.rows = self.lists.rows[self.ok]
        self.counts = np.bincount(self.rows, minlength=len(self.lists))
        self.has_value = self.counts > 0

    @property
    def values(self) -> pa.Array:
        flat = self.lists.flat
        return flat if self.ok.all() else flat.filter(from_numpy(self.ok))

    @property
    def doubles(self) -> Any:
        return doubles(self.values.cast(pa.float64(), safe=False))  # integers that it rounds, too

    def sums(self, values: Any) -> Any:
        return np.bincount(self.rows, weights=values, minlength=len(self.lists))

    def taken(self, places: Any) -> pa.Array:
        """For each row the element at a place among all; NULL for rows without a value."""
        return self.lists.flat.take(from_numpy(np.where(self.has_value, places, 0), self.has_value))


def _doubles(values: Any, ok: Any) -> pa.Array:
    made = from_numpy(np.ascontiguousarray(values, np.float64).view(np.int64), ok)
    return made.view(pa.float64())


# ---- types -----------------------------------------------------------------------------------------------------------


def _any(xs: Expr) -> Typed | None:
    return None if xs.dtype.element is None else ((xs,), xs.dtype.element)


def _number(xs: Expr) -> Typed | None:
    element = xs.dtype.element
    return ((cast(xs, list_of(DOUBLE)),), DOUBLE) if element is not None and _is_number(element) else None


def _short_decimals(xs: Expr) -> Typed | None:
    element = xs.dtype.element
    if element is None or not element.is_decimal or element.precision > INT64_DIGITS:
        return None
    return (xs,), element


def _other_number(xs: Expr) -> Typed | None:
    return None if _short_decimals(xs) is not None else _number(xs)


def _is_number(dtype: DType) -> bool:
    return dtype.is_numeric or dtype.kind in (Kind.NULL, Kind.BOOLEAN)


def _sum(xs: Expr) -> Typed | None:
    element = xs.dtype.element
    if element is None or not _is_number(element):
        return None
    if element.is_decimal:
        return (xs,), decimal(38, element.scale)
    return ((cast(xs, list_of(DOUBLE)),), DOUBLE) if element.is_float else ((cast(xs, list_of(BIGINT)),), BIGINT)


def _truth(xs: Expr) -> Typed | None:
    return ((xs,), BOOLEAN) if xs.dtype.element == BOOLEAN else None


def _count(xs: Expr) -> Typed | None:
    return None if xs.dtype.element is None else ((xs,), BIGINT)


# ---- functions -------------------------------------------------------------------------------------------------------


@list_function("list_count array_count", _count, "$(list) -> BIGINT", example=("list_count([7, NULL])", "1"))
def list_count(xs: Vector) -> Vector:
    """How many elements are no NULL."""
    found = _There(xs)
    return from_numpy(found.counts.astype(np.int64), found.lists.ok)


@list_function("list_sum", _sum, "$(list of numbers)", nullable=True, example=("list_sum([1, NULL, 2])", "3"))
def list_sum(xs: Vector) -> Vector:
    """The sum; exact for integers and decimals, an error where it does not fit."""
    found = _There(xs)
    type_ = found.values.type
    if pa.types.is_floating(type_):
        return _doubles(found.sums(found.doubles), found.has_value)
    if pa.types.is_decimal(type_):
        return _exact(found, pa.decimal128(38, type_.scale))
    if bool((found.sums(np.abs(found.doubles)) > _MOST).any()):
        return _exact(found, pa.int64())
    totals = np.zeros(len(found.lists), np.int64)
    counts = found.counts[found.has_value]
    if len(counts):
        begins = np.cumsum(counts) - counts
        totals[found.has_value] = np.add.reduceat(integers(found.values, len(found.values)), begins)
    return from_numpy(totals, found.has_value)


def _exact(found: _There, type_: pa.DataType) -> pa.Array:
    totals: list[Any] = [0] * len(found.lists)
    for row, value in zip(found.rows.tolist(), found.values.to_pylist(), strict=True):
        totals[row] += value
    try:
        return pa.array([t if ok else None for t, ok in zip(totals, found.has_value.tolist(), strict=True)], type_)
    except (OverflowError, pa.ArrowInvalid):
        raise OutOfRangeError(
            f"list_sum: a sum does not fit {'BIGINT' if type_ == pa.int64() else 'DECIMAL(38)'}"
        ) from None


def _extreme(sign: int) -> Callable[[Vector], pa.Array]:
    def extreme(xs: Vector) -> pa.Array:
        found = _There(xs)
        (numbers,) = ranks(found.lists.flat)
        places = np.flatnonzero(numbers != NO_VALUE)
        counts = found.counts[found.has_value]
        at = np.zeros(len(found.lists), np.int64)
        if len(counts):
            keys = sign * numbers[places]
            least = np.minimum.reduceat(keys, np.cumsum(counts) - counts)
            (first,) = np.nonzero(keys == np.repeat(least, counts))
            at[found.rows[first[::-1]]] = places[first[::-1]]  # of several assignments to a row the last one stands
        return found.taken(at)

    return extreme


@list_function("list_min", _any, "$(list)", nullable=True, example=("list_min([3, 1])", "1"))
def list_min(xs: Vector) -> Vector:
    """The least element."""
    return _extreme(1)(xs)


@list_function("list_max", _any, "$(list)", nullable=True, example=("list_max([3, 1])", "3"))
def list_max(xs: Vector) -> Vector:
    """The greatest element."""
    return _extreme(-1)(xs)


def _at_end(found: _There, last: bool) -> pa.Array:
    places = np.flatnonzero(found.ok)
    if not last:
        return found.taken(np.where(found.has_value, first_by_row(found.rows, places, len(found.lists)), 0))
    at = np.zeros(len(found.lists), np.int64)
    at[found.rows] = places
    return found.taken(at)


@list_function("list_any_value", _any, "$(list)", nullable=True, example=("list_any_value([NULL, 3])", "3"))
def list_any_value(xs: Vector) -> Vector:
    """The first element that is no NULL."""
    return _at_end(_There(xs), False)


@list_function("list_first", _any, "$(list)", nullable=True, example=("list_first([7, 8])", "7"))
def list_first(xs: Vector) -> Vector:
    """The first element, which may be NULL."""
    lists = lists_of(xs, size_of(xs))
    return lists.at(np.zeros(len(lists), np.int64), lists.lengths > 0)


@list_function("list_last", _any, "$(list)", nullable=True, example=("list_last([7, 8])", "8"))
def list_last(xs: Vector) -> Vector:
    """The last element, which may be NULL."""
    lists = lists_of(xs, size_of(xs))
    return lists.at(lists.lengths - 1, lists.lengths > 0)


@list_function("list_avg", _number, "$(list of numbers) -> DOUBLE", nullable=True, example=("list_avg([1, 2])", "1.5"))
def list_avg(xs: Vector) -> Vector:
    """The mean."""
    found = _There(xs)
    return _doubles(found.sums(found.doubles) / np.maximum(found.counts, 1), found.has_value)


@list_function(
    "list_product", _number, "$(list of numbers) -> DOUBLE", nullable=True, example=("list_product([2, 3])", "6.0")
)
def list_product(xs: Vector) -> Vector:
    """The product of the elements."""
    found = _There(xs)
    products = np.ones(len(found.lists))
    np.multiply.at(products, found.rows, found.doubles)
    return _doubles(products, found.has_value)


@list_function(
    "list_median",
    _other_number,
    "$(list of numbers) -> DOUBLE or DECIMAL",
    nullable=True,
    example=("list_median([1, 2])", "1.5"),
)
def list_median(xs: Vector) -> Vector:
    """The middle element, or what lies between two."""
    found = _There(xs)
    low, high = _middles(found, found.doubles)
    with np.errstate(invalid="ignore"):
        return _doubles(np.where(low == high, low, low + (high - low) * 0.5), found.has_value)


def _middles(found: _There, values: Any) -> tuple[Any, Any]:
    """The two values in the middle of each list, which are one where their number is odd."""
    ordered = np.append(values[np.lexsort((values, found.rows))], values.dtype.type(0))
    starts = np.cumsum(found.counts) - found.counts
    low, high = (ordered[np.minimum(starts + np.maximum(found.counts - n, 0) // 2, len(ordered) - 1)] for n in (1, 0))
    return low, high


@list_overload("list_median", _short_decimals, nullable=True)
def list_median_of_decimals(xs: Vector) -> Vector:
    """The middle element, or what lies between two, rounded down."""
    found = _There(xs)
    values = found.values
    words = np.frombuffer(values.buffers()[1], np.int64)[::2][values.offset :][: len(values)]
    low, high = _middles(found, words)
    made = np.empty((len(low), 2), np.int64)
    made[:, 0] = low + (high - low) // 2
    made[:, 1] = made[:, 0] >> (INT64_BITS - 1)
    bitmap = pa.py_buffer(np.packbits(found.has_value, bitorder="little"))
    return pa.Array.from_buffers(values.type, len(low), [bitmap, pa.py_buffer(made)])


def _variance(least: int, root: bool) -> Callable[[Vector], pa.Array]:
    def variance(xs: Vector) -> pa.Array:
        found = _There(xs)
        values, counts = found.doubles, np.maximum(found.counts, 1)
        with np.errstate(invalid="ignore", over="ignore"):
            away = values - (found.sums(values) / counts)[found.rows]
            made = found.sums(away * away) / np.maximum(found.counts - least, 1)
        if not np.isfinite(made).all():
            raise OutOfRangeError("the variance of a list is out of range")
        return _doubles(np.sqrt(made) if root else made, found.counts > least)

    return variance


for _names, _least, _root, _doc in (
    ("list_var_samp list_variance", 1, False, "The variance of a sample; NULL of one value."),
    ("list_var_pop", 0, False, "The variance of all elements."),
    ("list_stddev_samp list_stddev", 1, True, "The standard deviation of a sample; NULL of one value."),
    ("list_stddev_pop", 0, True, "The standard deviation of all elements."),
):
    _made = _variance(_least, _root)
    _made.__doc__ = _doc
    list_function(_names, _number, "$(list of numbers) -> DOUBLE", nullable=True)(_made)


@list_function(
    "list_bool_and", _truth, "$(list of BOOLEAN) -> BOOLEAN", nullable=True, example=("list_bool_and([true])", "True")
)
def list_bool_and(xs: Vector) -> Vector:
    """Whether all elements are TRUE."""
    found = _There(xs)
    return from_numpy(np.bincount(found.rows[~flags(found.values)], minlength=len(found.lists)) == 0, found.has_value)


@list_function(
    "list_bool_or", _truth, "$(list of BOOLEAN) -> BOOLEAN", nullable=True, example=("list_bool_or([true])", "True")
)
def list_bool_or(xs: Vector) -> Vector:
    """Whether some element is TRUE."""
    found = _There(xs)
    return from_numpy(np.bincount(found.rows[flags(found.values)], minlength=len(found.lists)) > 0, found.has_value)


def _mode(xs: Expr) -> Typed | None:
    return _any(xs)


@list_function("list_mode", _mode, "$(list)", nullable=True, example=("list_mode([1, 2, 2])", "2"))
def list_mode(xs: Vector) -> Vector:
    """The most frequent element, of several the first one."""
    lists = without_nulls(lists_of(xs, size_of(xs)))
    rows, places, counts = counted(lists)
    order = np.lexsort((-places, counts, rows))  # the last one of a row counts
    at = np.full(len(lists), -1)
    at[rows[order]] = places[order]
    return lists.flat.take(from_numpy(at, at >= 0))


# ---- text ------------------------------------------------------------------------------------------------------------


def _texts(xs: Expr, separator: Expr) -> Typed | None:
    if xs.dtype.element is None or not (separator.dtype.is_string or separator.dtype.kind is Kind.NULL):
        return None
    between = Literal(",", VARCHAR) if separator.dtype.kind is Kind.NULL else separator
    return (cast(xs, list_of(VARCHAR)), between), VARCHAR


@list_function("array_to_string", _texts, "$(list, separator) -> VARCHAR", nullable=True,
               example=("array_to_string([1, NULL, 2], '-')", "1-2"))  # fmt: skip
def array_to_string(xs: Vector, separator: Vector) -> Vector:
    """The texts of the elements that are no NULL, with a separator between them."""
    lists = lists_of(xs, size_of(xs, separator))
    between = separator if isinstance(separator, pa.Array) else separator.as_py()
    texts = lists.flat
    is_nothing = (lists.lengths > 0) & (np.bincount(lists.rows[flags(texts.is_valid())], minlength=len(lists)) == 0)
    made = joined_lists(lists, texts, between)
    return pc.if_else(from_numpy(~is_nothing), made, pa.nulls(1, made.type)[0]) if is_nothing.any() else made


@resolver("list_string_agg", "$(list) -> VARCHAR")
def _string_agg(xs: Expr) -> Expr | None:
    """The texts of the elements, with commas between them; NULL where there is none."""
    return None if xs.dtype.element is None else call("_list_texts", xs)


def _some_texts(xs: Expr) -> Typed | None:
    return None if xs.dtype.element is None else ((cast(xs, list_of(VARCHAR)),), VARCHAR)


@list_function("_list_texts", _some_texts, "", nullable=True)
def list_texts(xs: Vector) -> Vector:
    """The texts of the elements, with commas between them; NULL where there is none."""
    found = _There(xs)
    made = joined_lists(found.lists, found.lists.flat, ",")
    return pc.if_else(from_numpy(found.has_value), made, pa.nulls(1, made.type)[0])


# ---- by name ---------------------------------------------------------------------------------------------------------


def _named(xs: Expr, name: Expr) -> Expr | None:
    """An aggregate over the elements, by its name."""
    value = pinned(name)
    if xs.dtype.element is None or not isinstance(value, Literal) or not value.dtype.is_string:
        return None
    full = f"list_{str(value.value).lower()}"
    if full not in LIST_RESOLVERS:
        known = [n[5:] for n in RESOLVERS if n.startswith("list_")]
        raise BindError(f"list_aggregate: there is no {value.value!r} of lists.{did_you_mean(str(value.value), known)}")
    return call(full, xs)


for _name in ("list_aggregate", "list_aggr", "array_aggregate", "array_aggr", "aggregate"):
    resolver(_name, "$(list, name of an aggregate)")(_named)
LIST_RESOLVERS.update({
    n: [lambda args: _named(*args) if len(args) == 2 else None]
    for n in ("list_aggregate", "list_aggr", "array_aggregate", "array_aggr", "aggregate")
})  # fmt: skip
LIST_RESOLVERS["list_string_agg"] = [lambda args: _string_agg(*args) if len(args) == 1 else None]
