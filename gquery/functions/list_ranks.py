"""Elements of lists as ranks, so that one comparison of integers serves every type: equal ranks are equal values, NULL has the
rank of no value, and the order is DuckDB's. Ranks of integers that lie near each other are how far they are from the least one,
so that nothing is sorted; of values that come again the different ones alone are."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.list_arrays import Lists, together
from gquery.functions.nested_keys import keys_of
from gquery.functions.vectors import doubles, flags, from_numpy, integers
from gquery.runtime import arrow_compute
from gquery.runtime.arrow_compute import pc

NO_VALUE = -1
MOST = 2**62  # a rank is below
_SAMPLE = 1000  # values that tell whether they are often the same
_SLOTS = 4  # for each value, up to which they are counted without a sort
_FEW_SLOTS = 2**10  # that cost nothing, whatever is counted


def ranks(*parts: pa.Array) -> list[Any]:
    """For each array numbers (int64) that are equal where values are, those of all arrays alike, and in the order of the values:
    NaN is the greatest one, and equal to itself. NULL has `NO_VALUE`. There may be numbers that no value has."""
    whole = parts[0] if len(parts) == 1 else together(*parts)
    found = _ranked(whole)
    ends = np.cumsum([0, *(len(p) for p in parts)])
    return [found[a:b] for a, b in pairwise(ends)]


def _ranked(array: pa.Array) -> Any:
    type_ = array.type
    if array.null_count == len(array):
        return np.full(len(array), NO_VALUE, np.int64)
    if pa.types.is_nested(type_):
        return _ranked(keys_of(array))
    if pa.types.is_boolean(type_):
        return _with_nulls(flags(array).astype(np.int64), array)
    if is_like_integer(type_):
        values = integers(array, len(array))
        there = values[flags(array.is_valid())] if array.null_count else values
        least, greatest = int(there.min()), int(there.max())
        if greatest - least < MOST:
            values -= least
            return _with_nulls(values, array)
    is_float = pa.types.is_floating(type_)
    array = _normalized(array) if is_float else array
    if len(array) > _SAMPLE and len(array[:_SAMPLE].unique()) < _SAMPLE // 2:
        encoded = arrow_compute.dictionary_encode(array)
        of_each = _sorted_ranks(encoded.dictionary, is_float)
        return _with_nulls(of_each[integers(encoded.indices, len(array))], array)
    return _with_nulls(_sorted_ranks(array, is_float), array)


def is_like_integer(type_: pa.DataType) -> bool:
    """Whether values of a type are integers of at most 64 bits, or stand for such, and are in their order."""
    is_time: bool = pa.types.is_date32(type_) or pa.types.is_timestamp(type_) or pa.types.is_time64(type_)
    is_integer: bool = pa.types.is_integer(type_) and type_ != pa.uint64()
    return is_time or is_integer


def _with_nulls(numbers: Any, array: pa.Array) -> Any:
    if array.null_count:
        numbers[~flags(array.is_valid())] = NO_VALUE
    return numbers


def _normalized(array: pa.Array) -> pa.Array:
    """Doubles of one zero and one NaN."""
    values = doubles(array.fill_null(0.0).cast(pa.float64()))
    values = np.where(values == 0, 0.0, np.where(np.isnan(values), np.nan, values))
    return from_numpy(values.view(np.int64), flags(array.is_valid()) if array.null_count else None).view(pa.float64())


def _sorted_ranks(array: pa.Array, is_float: bool) -> Any:
    """Dense ranks; of NULL any."""
    if is_float:
        return np.unique(doubles(array), return_inverse=True)[1].astype(np.int64)  # NaN is one value, the last
    made = pc.rank(array, sort_keys="ascending", tiebreaker="dense")
    return integers(made, len(made)) - 1


def counted(lists: Lists) -> tuple[Any, Any, Any]:
    """The different values of all rows, row by row in their order: the row, the first place and the count of each. Where pairs of
    a row and a rank are few, each has a slot that is counted up; else they are sorted."""
    (numbers,) = ranks(lists.flat)
    numbers += 1  # NULL has 0
    width, count = int(numbers.max(initial=0)) + 1, len(numbers)
    if width * len(lists) >= MOST:
        numbers = np.unique(numbers, return_inverse=True)[1]
        width = int(numbers.max(initial=0)) + 1
    keys = numbers if len(lists) == 1 else lists.rows * width + numbers
    if width * len(lists) <= max(_SLOTS * count, _FEW_SLOTS):
        counts = np.bincount(keys)
        first = np.empty(len(counts), np.int64)
        first[keys[::-1]] = np.arange(count - 1, -1, -1)  # of several assignments to a slot the last one stands
        slots = np.flatnonzero(counts)
        return slots // width, first[slots], counts[slots]
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_new = np.ones(count, np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    begin = np.flatnonzero(is_new)
    return ordered[begin] // width, order[begin], np.diff(np.append(begin, count))


def without_nulls(lists: Lists) -> Lists:
    """The lists without NULLs."""
    if not lists.flat.null_count:
        return lists
    ok = flags(lists.flat.is_valid())
    lengths = np.bincount(lists.rows[ok], minlength=len(lists))
    return Lists(np.cumsum(lengths) - lengths, lengths, lists.ok, lists.flat.filter(from_numpy(ok)))


def order_in_rows(lists: Lists, numbers: Any) -> Any:
    """The places of the elements row by row, of each row those with the least numbers first, equal ones as they come."""
    count, length = len(lists), int(lists.lengths[0]) if len(lists) else 0
    if length and bool((lists.lengths == length).all()):
        within = np.argsort(numbers.reshape(count, length), axis=1, kind="stable")
        within += np.arange(0, count * length, length)[:, None]
        return within.reshape(-1)
    least, greatest = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    if (greatest - least + 1) * count < MOST:
        return np.argsort(lists.rows * (greatest - least + 1) + (numbers - least), kind="stable")
    return np.lexsort((numbers, lists.rows))
