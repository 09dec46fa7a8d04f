"""How often values come: histograms and the most frequent ones, over the lists of a group's values.

``histogram(x)`` is a function of ``list(x)``, and so is ``approx_top_k(x, k)``: one pass counts the values of all groups.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery.errors import BindError, NotSupportedError
from gquery.expression.expr import Call, Expr, Literal, SortKey
from gquery.expression.nested_types import list_of, map_of
from gquery.expression.traverse import columns_of, pinned
from gquery.expression.types import BIGINT, INTEGER_BOUNDS, UBIGINT, DType
from gquery.functions.aggregate_parts import Parts
from gquery.functions.aggregate_record import Checked, Resolved
from gquery.functions.casts import cast
from gquery.functions.list_arrays import list_array, lists_of, together
from gquery.functions.list_ranks import counted, ranks, without_nulls
from gquery.functions.maps import map_array
from gquery.functions.registry import LIST_RESOLVERS, RESOLVERS, ScalarFunction, declare, make, resolver
from gquery.functions.vectors import Vector, array_of, from_numpy, integers, size_of

_HISTOGRAM, _BINS, _EXACT, _TOP = "_histogram", "_histogram_bins", "_histogram_exact", "_top_k"


def _histogram(xs: Vector) -> Vector:
    lists = without_nulls(lists_of(xs, size_of(xs)))
    rows, places, counts = counted(lists)
    lengths = np.bincount(rows, minlength=len(lists))
    return map_array(lists.flat.take(from_numpy(places)), from_numpy(counts.astype(np.uint64)), lengths, lengths > 0)


def _in_bins(xs: Vector, bins: Vector, rest: Vector, is_exact: bool) -> Vector:
    """Counts of values up to each bin's end, and of those behind all under ``rest``; of values equal to a bin if ``is_exact``."""
    count = size_of(xs, bins)
    lists = lists_of(xs, count)
    ends = lists_of(array_of(bins, count)[:1], min(count, 1)).flat
    numbers, own = ranks(lists.flat, ends)
    own = np.unique(own, return_index=True)
    ends, width = ends.take(from_numpy(own[1])), len(own[0])
    place = np.searchsorted(own[0], numbers)
    if is_exact:
        is_there = own[0][np.minimum(place, width - 1)] == numbers if width else np.zeros(len(numbers), np.bool_)
        place = np.where(is_there, place, width)
    found = np.bincount(lists.rows * (width + 1) + place, minlength=count * (width + 1)).reshape(count, width + 1)
    kept = np.ones(found.shape, np.bool_)
    kept[:, width] = found[:, width] > 0
    kept &= lists.ok[:, None]
    keys = together(ends, array_of(rest, 1)[:1])
    which = np.broadcast_to(np.arange(width + 1), found.shape)[kept]
    return map_array(
        keys.take(from_numpy(which)), from_numpy(found[kept].astype(np.uint64)), kept.sum(axis=1), lists.ok
    )


def _top(xs: Vector, k: Vector) -> Vector:
    lists = lists_of(xs, size_of(xs))
    rows, places, counts = counted(lists)
    order = np.lexsort((places, -counts, rows))
    rows, places = rows[order], places[order]
    starts = np.searchsorted(rows, np.arange(len(lists)))
    kept = np.arange(len(rows)) - starts[rows] < integers(k, 1)[0]
    lengths = np.bincount(rows[kept], minlength=len(lists))
    return list_array(lists.flat.take(from_numpy(places[kept])), lengths, lists.ok)


declare(ScalarFunction(_HISTOGRAM, host=_histogram, nullable=True, doc="How often each value of a list comes; NULL of none."))
declare(
    ScalarFunction(_BINS, host=lambda xs, bins, rest: _in_bins(xs, bins, rest, False), doc="Values of a list by bins.")
)
declare(
    ScalarFunction(_EXACT, host=lambda xs, bins, rest: _in_bins(xs, bins, rest, True), doc="Values of a list by some.")
)
declare(ScalarFunction(_TOP, host=_top, doc="The most frequent values of a list."))


@resolver("list_histogram", "$(list) -> MAP", example=("list_histogram([1, 1, 2])", "{1: 2, 2: 1}"))
def _of_list(xs: Expr) -> Expr | None:
    """How often each value of a list comes."""
    return None if xs.dtype.element is None else make(_HISTOGRAM, (xs,), map_of(xs.dtype.element, UBIGINT))


LIST_RESOLVERS["list_histogram"] = RESOLVERS["list_histogram"]


# ---- the aggregates --------------------------------------------------------------------------------------------------


def histogram_type(types: Sequence[DType]) -> Resolved | None:
    """Of values, and of values and their bins."""
    if not 1 <= len(types) <= 2 or (len(types) == 2 and types[1].element is None):
        return None
    return [types[0], *([list_of(types[0])] if len(types) == 2 else [])], map_of(types[0], UBIGINT)


def bins_type(types: Sequence[DType]) -> Resolved | None:
    """Of values and their bins."""
    return histogram_type(types) if len(types) == 2 else None


def top_type(types: Sequence[DType]) -> Resolved | None:
    """Of values and how many."""
    return ([types[0], BIGINT], list_of(types[0])) if len(types) == 2 and types[1].is_integer else None


def checked_bins(name: str, args: Sequence[Expr], order: tuple[SortKey, ...]) -> Checked:
    """Bins are a constant list without NULL."""
    if len(args) == 2:
        bins = args[1]
        if not isinstance(bins, Call) or bins.function != "list_value" or columns_of(bins):
            raise NotSupportedError(f"not supported: {name} of bins that are no constant list")
        if any(isinstance(b, Literal) and b.is_null for b in bins.args):
            raise BindError(f"{name}: a bin cannot be NULL")
        _rest(args[0].dtype)
    return tuple(args), (), order


def checked_count(name: str, args: Sequence[Expr], order: tuple[SortKey, ...]) -> Checked:
    """How many is a positive constant."""
    if len(args) != 2:
        return tuple(args), (), order
    k = pinned(args[1])
    if not isinstance(k, Literal):
        raise NotSupportedError(f"not supported: {name} of a number that is no constant")
    if k.is_null or not k.dtype.is_integer or int(k.value) <= 0:
        raise BindError(f"{name}: the number of values is an integer above 0")
    return (args[0], k), (), order


def _rest(dtype: DType) -> Literal:
    """What DuckDB calls the values behind all bins."""
    if dtype.is_integer:
        return Literal(INTEGER_BOUNDS[dtype.kind][1], dtype)
    if dtype.is_float:
        return Literal(float("inf"), dtype)
    if dtype.is_string:
        return Literal("", dtype)
    raise NotSupportedError(f"not supported: histogram of bins of type {dtype}; of integers, DOUBLE and VARCHAR")


def _values(p: Parts, x: Expr) -> Expr:
    p.only(x)
    return p.part("list", list_of(x.dtype), x)


def histogram(p: Parts, x: Expr, *bins: Expr) -> Expr:
    """How often each value comes, or the values up to the end of each bin."""
    made = map_of(x.dtype, UBIGINT)
    xs = _values(p, x)
    return make(_BINS, (xs, *bins, _rest(x.dtype)), made) if bins else make(_HISTOGRAM, (xs,), made)


def histogram_exact(p: Parts, x: Expr, bins: Expr) -> Expr:
    """How often each of some values comes."""
    return make(_EXACT, (_values(p, x), bins, _rest(x.dtype)), map_of(x.dtype, UBIGINT))


def top_k(p: Parts, x: Expr, k: Expr) -> Expr:
    """The most frequent values, of equally frequent ones those that come first."""
    return make(_TOP, (_values(p, x), cast(k, BIGINT)), list_of(x.dtype))
