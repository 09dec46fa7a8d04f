"""Between which values a column lies in a row group, as far as a footer tells.

Writers leave statistics out, cut text short, count no NULLs, and leave NaN out of minima and maxima; what is not certain is
None here. An `Extent` decides nothing but which row groups need not be read, so it may be too large, never too small.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np

from gquery.columns.domain import Domain, Value, at_most
from gquery.device.array import Array
from gquery.expression.types import INT64, INTEGER_BOUNDS, DType, Kind, type_bounds
from gquery.runtime.records import dataclass
from gquery.runtime.tuples import NamedTuple

_DIGITS = Context(prec=80)  # of a decimal, whose own arithmetic rounds to 28
_LONG_TEXT = 16  # bytes of a greatest text from which on a writer may have cut it short without making it greater
_LAST = "\U0010ffff"
_ROUNDED = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME)  # a file's nanoseconds are, whichever way


class Extent(NamedTuple):
    """A column in a part of its rows: minimum and maximum, and how many values are NULL; None: not known. Both ends are known,
    or neither is."""

    rows: int
    low: Value | None = None
    high: Value | None = None
    nulls: int | None = None

    def may_hold(self, domain: Domain, dtype: DType) -> bool:
        """Whether some row may have a value of the domain."""
        if not self.rows:
            return False
        if domain.null and self.nulls != 0:
            return True
        if self.nulls == self.rows:
            return False
        if dtype.is_float and domain.is_open_above:  # a NaN, of which minimum and maximum know nothing
            return True
        low, high = self.low, self.high
        if low is None or high is None:
            return domain.meets(None, None)
        if dtype.kind in _ROUNDED:
            assert isinstance(low, int) and isinstance(high, int), (low, high)
            low, high = low - 1, high + 1
        elif isinstance(high, str) and len(high.encode()) >= _LONG_TEXT:
            high += _LAST
        return domain.meets(low, high)


@dataclass(frozen=True, eq=False)
class Extents:
    """A column in parts of its rows, as `Extent` has it in one: ``rows`` and ``nulls`` (int64, -1: not known), minima and maxima
    (both int64, or both objects), and where these are known."""

    rows: Array
    nulls: Array
    low: Array
    high: Array
    known: Array

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Extent]:
        for rows, nulls, low, high, known in zip(
            *(each.tolist() for each in (self.rows, self.nulls, self.low, self.high, self.known)), strict=True
        ):
            yield Extent(rows, low if known else None, high if known else None, nulls if nulls >= 0 else None)

    def may_hold(self, domain: Domain, dtype: DType) -> Array:
        """Of each whether some row may have a value of the domain (bool)."""
        every = [(i.low, i.high) for i in domain.intervals]
        if self.low.dtype == object or not all(end is None or type(end) is int for pair in every for end in pair):
            return np.array([extent.may_hold(domain, dtype) for extent in self], np.bool_)
        low, high = self.low, self.high
        if dtype.kind in _ROUNDED:
            low, high = low - (low > INT64.low), high + (high < INT64.high)
        may = np.where(self.known, _meet(every, low, high), bool(every)) & (self.nulls != self.rows)
        if domain.null:
            may |= self.nulls != 0
        made: Array = may & (self.rows > 0)
        return made


def _meet(intervals: Sequence[tuple[Any, Any]], low: Array, high: Array) -> Array:
    """Whether values between ``low`` and ``high`` (int64) are in some of the intervals, which ascend."""
    ends = [(INT64.low if a is None else a, INT64.high if b is None else b) for a, b in intervals]
    ends = [(max(a, INT64.low), min(b, INT64.high)) for a, b in ends if b >= INT64.low and a <= INT64.high]
    if not ends:
        return np.zeros(len(low), np.bool_)
    firsts, lasts = np.array(ends, np.int64).T
    found = np.searchsorted(lasts, low)
    made: Array = (found < len(ends)) & (firsts[np.minimum(found, len(ends) - 1)] <= high)
    return made


@dataclass(frozen=True, eq=False)
class Ends:
    """Minima and maxima of a column in parts of its rows, as `Extents` has them, where they ``are_there``."""

    low: Array
    high: Array
    known: Array
    are_there: Array

    @staticmethod
    def of(parts: int, dtype: DType) -> Ends:
        """Of so many parts, none of which is there."""
        bounds = type_bounds(dtype) if dtype.is_exact else None
        type_ = np.int64 if bounds is not None and bounds.within(INT64) else object
        return Ends(np.zeros(parts, type_), np.zeros(parts, type_), np.zeros(parts, np.bool_), np.zeros(parts, np.bool_))

    def put(self, places: Array, extents: Sequence[Extent]) -> None:
        """Those of some parts."""
        is_integer = self.low.dtype == np.int64
        for place, extent in zip(places.tolist(), extents, strict=True):
            low, high = extent.low, extent.high
            is_known = low is not None and high is not None and at_most(low, high)
            if is_known and is_integer:
                is_known = all(isinstance(v, int) and INT64.low <= v <= INT64.high for v in (low, high))
            if is_known:
                self.low[place], self.high[place] = low, high
            self.known[place] = is_known
        self.are_there[places] = True

    def put_words(self, places: slice, low: Array, high: Array, known: Array) -> None:
        """The same of integers."""
        self.low[places], self.high[places], self.known[places], self.are_there[places] = low, high, known, True


def extent_of(chunk: Any, dtype: DType, rows: int) -> Extent:
    """What the metadata of a flat column's chunk tell of its ``rows`` rows."""
    stats = chunk.statistics
    if stats is None:
        return Extent(rows)
    nulls = stats.null_count if stats.has_null_count else None
    if not stats.has_min_max or nulls == rows:
        return Extent(rows, nulls=nulls)
    low, high = ends_of(stats, dtype)
    if low is None or high is None or not at_most(low, high):
        return Extent(rows, nulls=nulls)
    return Extent(rows, low, high, nulls)


def ends_of(stats: Any, dtype: DType) -> tuple[Value | None, Value | None]:
    """Minimum and maximum as physical values; None where they cannot be told for certain."""
    try:
        return physical(stats.min, dtype), physical(stats.max, dtype)
    except (OverflowError, ValueError, ArithmeticError, ImportError):  # no such date in Python, no UTF-8, ...
        return None, None


def extent_of_value(value: Any, dtype: DType, rows: int) -> Extent:
    """Of rows that all have one value."""
    known = None if value is None else physical(value, dtype)
    return Extent(rows, known, known, rows if value is None else 0)


def physical(value: Any, dtype: DType) -> Value | None:
    """A footer's minimum or maximum as a physical value; None where the footer's unit is not certain."""
    if type(value) is int:  # most are
        bounds = INTEGER_BOUNDS.get(dtype.kind)
        return value if bounds is not None and bounds[0] <= value <= bounds[1] else None
    match value:
        case bool() if dtype.kind is Kind.BOOLEAN:
            return int(value)
        case float() if dtype.is_float:
            return value if value == value else None
        case str() if dtype.is_string:
            return value
        case bytes() if dtype.is_string:
            return value.decode()
        case Decimal() if dtype.is_decimal:
            scaled = value.scaleb(dtype.scale, _DIGITS)
            return int(scaled) if scaled == scaled.to_integral_value(context=_DIGITS) else None
        case datetime.datetime() if dtype.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            start = datetime.datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else datetime.UTC)
            return (value - start) // datetime.timedelta(microseconds=1)
        case datetime.time() if dtype.kind is Kind.TIME:
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        case datetime.date() if dtype.kind is Kind.DATE and not isinstance(value, datetime.datetime):
            return (value - datetime.date(1970, 1, 1)).days
        case _:
            return None
