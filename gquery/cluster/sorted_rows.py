"""Rows of a table of files found by the values of a sorted column: what a worker is asked before the table is cut.

row groups of visits, by the extremes of their visits         where does 2500 begin?
  0: 1 to 1000, 1: 1001 to 2000, 2: 2001 to 3000, ...     =>   2,000 rows lie before row group 2, which alone is read
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from gquery import tuning
from gquery.distributed.cuts import even, has_values
from gquery.expression.frozen import frozen_open
from gquery.expression.types import DType, Kind
from gquery.io.parquet import ParquetPart, ParquetSource
from gquery.io.parquet_files import RowGroup

_FIRST_GROUPS = 8  # of a file that show most columns to be in no order


@frozen_open
class ValueCut:
    """A table is cut between values of a field: rank r has the rows ``starts[r]`` to ``starts[r + 1]``, the first of which has
    the value ``bounds[r - 1]`` or the next greater one there is."""

    field: int
    bounds: tuple[int, ...]
    starts: tuple[int, ...]


class UnsortedError(Exception):
    """A column that is not sorted after all, or of other values than integers."""


def may_be_sorted(source: ParquetSource, field: int) -> bool:
    """Whether a field is of integers without NULLs, whose row groups do not overlap but at their ends, as the footers tell."""
    if not _is_exact(source.schema.fields[field].dtype):
        return False
    groups = source.all_groups
    for some in (groups[:_FIRST_GROUPS], groups):
        extents = [e for e in source.extents(field, some) if e.rows]
        ends = [(e.low, e.high) for e in extents if e.nulls == 0 and isinstance(e.low, int) and isinstance(e.high, int)]
        if len(ends) < len(extents) or any(a[1] > b[0] for a, b in pairwise(ends)):
            return False
    return source.rows > 0


def about_even(groups: Sequence[RowGroup], ranks: int) -> tuple[int, ...]:
    """The rows at which each rank begins, and their number: evenly, but where a row group begins that is near. One that
    lies on two ranks is read by both."""
    borders = [0, *accumulate(g.rows for g in groups)]
    rows = borders[-1]
    near = tuning.cluster.near_border * rows / ranks

    def moved(row: int) -> int:
        at = min(borders[max(bisect_left(borders, row) - 1, 0) :][:2], key=lambda border: abs(border - row))
        return at if abs(at - row) <= near else row

    return tuple(map(moved, even(rows, ranks)))


def _is_exact(dtype: DType) -> bool:
    """Whether footers tell the exact extremes of integers: those of timestamps may be rounded."""
    return dtype.is_integer or dtype.is_decimal or dtype.kind is Kind.DATE


class SortedRows:
    """The rows of a field that `may_be_sorted`. UnsortedError as soon as a row group that is read is not."""

    def __init__(self, source: ParquetSource, field: int) -> None:
        self._source, self._field = source, field
        self._groups = [g for g in source.all_groups if g.rows]
        self._extents = source.extents(field, self._groups)
        self._firsts = [0, *accumulate(g.rows for g in self._groups)]
        self._read: dict[int, np.ndarray] = {}

    def cut(self, ranks: int) -> ValueCut:
        """The rows in so many parts, cut at the values that stand where about even parts begin."""
        bounds = tuple([self._at(row) for row in about_even(self._groups, ranks)[1:-1]])
        return ValueCut(self._field, bounds, (0, *self.below(bounds), self._firsts[-1]))

    def below(self, bounds: Sequence[int]) -> tuple[int, ...]:
        """For each of these values how many rows are below it."""
        return tuple(map(self._below, bounds))

    def _at(self, row: int) -> int:
        group = next(n for n, first in enumerate(self._firsts[1:]) if row < first)
        extent = self._extents[group]
        if isinstance(extent.low, int) and extent.low == extent.high:
            return extent.low
        return int(self._values(group)[row - self._firsts[group]])

    def _below(self, bound: int) -> int:
        rows = 0
        for number, extent in enumerate(self._extents):
            assert isinstance(extent.low, int) and isinstance(extent.high, int)
            if extent.high < bound:
                rows += extent.rows
            elif extent.low < bound:
                rows += int(np.searchsorted(self._values(number), bound, "left"))
        return rows

    def _values(self, number: int) -> np.ndarray:
        """Those of a row group, which is read for it alone."""
        found = self._read.get(number)
        if found is None:
            (column,) = ParquetPart(self._source, (self._groups[number],)).load([self._field]).columns
            if not has_values(column):
                raise UnsortedError
            found = column.data.host.astype(np.int64)
            if bool((found[1:] < found[:-1]).any()):
                raise UnsortedError
            self._read[number] = found
        return found
