"""What is estimated of a column of a UNION ALL from what is known of the columns that it takes.

    k of one side     1 .. 100, 50 values         1 .. 150, 90 values: of the 40 that the second side has, those within the
    k of the other    51 .. 150, 80 values   =>   common half of its range are taken to be among the first side's

Sides that hold a constant count each constant once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import ceil

from gquery.columns.table import ColumnStatistics
from gquery.expression.frozen import frozen
from gquery.expression.types import Bounds
from gquery.planner.logical.key_ranges import common_shares


@frozen
class Part:
    """A column of one side, of so many ``rows``: its range with the 0 of NULLs and without (``values``), its distinct values,
    the share of NULLs, each where it is known; and its only value, in a tuple, where it is a constant."""

    rows: float
    bounds: Bounds | None
    values: Bounds | None
    distinct: float | None
    nulls: float | None
    constant: tuple[Hashable] | None = None

    @property
    def is_null(self) -> bool:
        """Whether it has no value at all."""
        return self.constant == (None,)


def united(parts: Sequence[Part]) -> ColumnStatistics:
    """The statistics of all parts' rows together.

    >>> one, two = (Part(100.0, b, b, 10.0, 0.1, None) for b in (Bounds(1, 10), Bounds(6, 15)))
    >>> united((one, two, Part(50.0, None, None, 1.0, 1.0, (None,))))  # doctest: +NORMALIZE_WHITESPACE
    ColumnStatistics(bounds=Bounds(low=0, high=15), null_count=70, distinct=15, is_sorted=False, is_unique=False,
                     values=Bounds(low=1, high=15), zones=None, longest_run=None, frequent=())
    """
    valued = [p for p in parts if not p.is_null]
    values = _range([p.values for p in valued])
    bounds = _range([p.bounds for p in valued])
    if bounds is not None and len(valued) < len(parts):
        bounds |= Bounds(0, 0)
    shares = [p.nulls for p in parts]
    nulls = None if None in shares else ceil(sum(p.rows * (p.nulls or 0.0) for p in parts))
    return ColumnStatistics(bounds, nulls, _distinct(valued), values=values)


def _range(ranges: Sequence[Bounds | None]) -> Bounds | None:
    out: Bounds | None = None
    for n, r in enumerate(ranges):
        if r is None:
            return None
        out = r if n == 0 or out is None else out | r
    return out


def _distinct(parts: Sequence[Part]) -> int | None:
    """The values of all parts: a value that may lie in two is taken to."""
    constants = {p.constant for p in parts if p.constant is not None}
    known, values = 0.0, None
    for p in (p for p in parts if p.constant is None):
        if p.distinct is None:
            return None
        here, there = common_shares(values, p.values) if known else (1.0, 1.0)
        known += p.distinct - min(known * here, p.distinct * there)
        values = p.values if values is None or p.values is None else values | p.values
    return max(1, ceil(known) + len(constants))
