"""Domains: the values that a column can have in the rows that a filter keeps.

`planner.logical.domains` finds them in a predicate, in one place for all who skip rows by what is known of many at once: the
row groups of a file (`io.row_groups`), and whatever else keeps minima and maxima of parts of a column.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeGuard

from gquery.columns.table import TableSource
from gquery.runtime.records import dataclass

Value: TypeAlias = int | float | str  # a physical value; text compares by code points, as its UTF-8 bytes do


@dataclass(frozen=True, slots=True)
class Interval:
    """All values from ``low`` to ``high``, both among them; None is no end on that side."""

    low: Value | None
    high: Value | None


@dataclass(frozen=True, slots=True)
class Domain:
    """A set of values: those of intervals, which ascend and do not overlap, and NULL where ``null``. A NaN, which is
    greater than all else, is in an interval that has no end above."""

    intervals: tuple[Interval, ...]
    null: bool

    @staticmethod
    def of(intervals: Iterable[Interval], null: bool = False) -> Domain:
        """The domain of intervals in any order."""
        out: list[Interval] = []
        for i in sorted(intervals, key=_start):
            last = out[-1] if out else None
            if last is not None and (last.high is None or i.low is None or at_most(i.low, last.high)):
                out[-1] = Interval(last.low, _higher(last.high, i.high))
            else:
                out.append(i)
        return Domain(tuple(out), null)

    @staticmethod
    def point(value: Value) -> Domain:
        """The domain of one value."""
        return Domain((Interval(value, value),), False)

    def union(self, other: Domain) -> Domain:
        """
        >>> Domain.point(1).union(Domain.point(3)).intervals
        (Interval(low=1, high=1), Interval(low=3, high=3))
        """
        return Domain.of((*self.intervals, *other.intervals), self.null or other.null)

    def intersection(self, other: Domain) -> Domain:
        """
        >>> Domain((Interval(None, 5),), True).intersection(Domain((Interval(2, None),), False))
        Domain(intervals=(Interval(low=2, high=5),), null=False)
        """
        out: list[Interval] = []
        a, b = 0, 0
        while a < len(self.intervals) and b < len(other.intervals):
            x, y = self.intervals[a], other.intervals[b]
            low, high = max(x, y, key=_start).low, _lower(x.high, y.high)
            if low is None or high is None or at_most(low, high):
                out.append(Interval(low, high))
            if y.high is None or (x.high is not None and at_most(x.high, y.high)):
                a += 1
            else:
                b += 1
        return Domain(tuple(out), self.null and other.null)

    def meets(self, low: Value | None, high: Value | None) -> bool:
        """Whether a value between ``low`` and ``high`` is in an interval; None is no end on that side.

        >>> Domain.of([Interval(1, 2), Interval(8, 9)]).meets(3, 7)
        False
        """
        every = self.intervals
        first = 0
        if low is not None and len(every) == 1:  # as most have, and many row groups are asked about
            end = every[0].high
            first = int(end is not None and not at_most(low, end))
        elif low is not None:
            first = bisect_left(every, True, key=lambda i: i.high is None or at_most(low, i.high))
        if first == len(every):
            return False
        start = every[first].low
        return start is None or high is None or at_most(start, high)

    @property
    def is_open_above(self) -> bool:
        """Whether it holds values that are greater than any other."""
        return bool(self.intervals) and self.intervals[-1].high is None


ANY = Domain((Interval(None, None),), True)
VALUES = Domain((Interval(None, None),), False)  # everything but NULL
NOTHING = Domain((), False)
ONLY_NULL = Domain((), True)


def at_most(a: Value, b: Value) -> bool:
    """Whether ``a`` is not greater than ``b``, a value of the same column: both are numbers, or both text."""
    if isinstance(a, str):
        assert isinstance(b, str), (a, b)
        return a <= b
    assert not isinstance(b, str), (a, b)
    return a <= b


def _start(i: Interval) -> tuple[bool, Value]:
    return (False, 0) if i.low is None else (True, i.low)


def _higher(a: Value | None, b: Value | None) -> Value | None:
    return None if a is None or b is None else b if at_most(a, b) else a


def _lower(a: Value | None, b: Value | None) -> Value | None:
    return b if a is None else a if b is None else a if at_most(a, b) else b


# ---- scans of a part ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScanUse:
    """What one scan needs of its source: these fields, of rows that may lie in these domains (by field). ``rows``: the first
    so many rows of the table are enough. ``parts``: so many parts (the row groups of a file) that may hold such rows are to
    be tried first. Domains rest on the values of literals: a plan that has asked for them serves no other values."""

    fields: tuple[int, ...]
    domains: Callable[[], Mapping[int, Domain]] = dict
    rows: int | None = None
    parts: int | None = None


@dataclass(frozen=True)
class Restriction:
    """A source with at least the rows that scans need, in their order. ``is_cut``: some scan's ``parts`` left rows out that it
    may need."""

    source: TableSource
    is_cut: bool = False


class DivisibleSource(Protocol):
    """A source that can be read in part."""

    def restricted(self, uses: Sequence[ScanUse]) -> Restriction:
        """The rows that are needed by any of these scans, or all."""


def is_divisible(source: TableSource) -> TypeGuard[DivisibleSource]:
    """Whether a source is a `DivisibleSource`: `isinstance` goes through all classes of a protocol, 20 us at each call."""
    return hasattr(source, "restricted")
