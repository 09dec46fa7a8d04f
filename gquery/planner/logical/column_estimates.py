"""What is estimated of columns: distinct values, ranges, shares of NULL. `cardinality.Estimator` asks, plan by plan.

A column of a table is described by its source; one that an operator makes by what it is made of:

    UnionAll v                 v: the range of both, the values of both (those that both ranges hold once), the NULLs of both,
      Project v = k, ...       as many rows as both
      Project v = 0, ...
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import ceil
from typing import TYPE_CHECKING

from gquery import tuning
from gquery.columns.table import ColumnStatistics
from gquery.expression.expr import Call, Case, Cast, Column, Expr, Literal
from gquery.expression.slots import shown
from gquery.expression.types import Bounds, type_bounds
from gquery.expression.windows import WindowCall
from gquery.functions.windows import gives_argument, numbers_rows
from gquery.planner.logical.tree import used_columns
from gquery.runtime.records import replace

if TYPE_CHECKING:
    from gquery.planner.logical.united import Part

UNKNOWN = ColumnStatistics()
Origin = tuple[int, int]
"""The source (its identity) and the field that a column's values come from."""


class ColumnEstimates:
    """What columns are, by id: it grows as plans are walked through."""

    def __init__(self) -> None:
        self.columns: dict[int, ColumnStatistics] = {}
        self.column_rows: dict[int, float] = {}  # of the relation that a column comes from
        self.unmatched: dict[int, float] = {}  # by column: the share of rows in which an outer join made it NULL
        self.values_left: dict[int, float] = {}  # by column: the distinct values that a filter left
        self._constants: dict[int, Hashable] = {}  # by column that has one value in all rows
        self.origins: dict[int, Origin] = {}
        self._reduced: dict[
            int, tuple[Origin, float]
        ] = {}  # by column: what a SEMI join asked of it, and the share kept

    # -- asked

    def distinct(self, e: Expr, rows: float) -> float:
        """Estimated distinct values of an expression in a relation of ``rows`` rows."""
        left = self.values_left.get(e.id, rows) if isinstance(e, Column) else rows
        return max(1.0, min(rows, left, self.base_distinct(e)))

    def base_distinct(self, e: Expr, done: dict[int, float] | None = None) -> float:
        """Those in the relation that it comes from. ``done``: of calls which were met already, by identity."""
        match e:
            case Column(id=i):
                stats = self.columns.get(i, UNKNOWN)
                base = self.column_rows.get(i, tuning.cardinality.unknown_distinct)
                if stats.is_unique:
                    return base
                if stats.distinct is not None:
                    return float(stats.distinct)
                if stats.bounds is not None:
                    return min(base, float(stats.bounds.width))
                return min(base, tuning.cardinality.unknown_distinct)
            case Literal():
                return 1.0
            case Cast(arg=arg):
                return self.base_distinct(arg, done)
            case Call(args=args):
                done = {} if done is None else done
                if (known := done.get(id(e))) is not None:
                    return known
                out = 1.0
                for a in args:
                    out *= self.base_distinct(a, done)
                done[id(e)] = out
                return out
            case Case(branches=branches, otherwise=otherwise):
                return sum(self.base_distinct(value, done) for value in (*(v for _, v in branches), otherwise))
            case _:
                return tuning.cardinality.unknown_distinct

    def is_likely_unique(self, e: Expr) -> bool:
        """Whether the values of a column are probably all different in the relation that it comes from."""
        if not isinstance(e, Column):
            return False
        distinct, rows = self.columns.get(e.id, UNKNOWN).distinct, self.column_rows.get(e.id)
        return distinct is not None and rows is not None and distinct >= tuning.cardinality.likely_unique * rows

    def bounds(self, e: Expr) -> Bounds | None:
        """The range of a column's physical values, where the source knows it."""
        if isinstance(e, Column):
            known = self.columns.get(e.id, UNKNOWN).bounds
            return known if known is not None or e.dtype.is_string else type_bounds(e.dtype)
        return None

    def values(self, column: Column) -> Bounds | None:
        """The range of a column's physical values, without the 0 of NULLs where they are known apart."""
        known = self.columns.get(column.id, UNKNOWN)
        return known.bounds if known.values is None else known.values

    def base_rows(self, key: Expr) -> float:
        """The rows of the relation that a column comes from; 0 where that is not known."""
        return self.column_rows.get(key.id, 0.0) if isinstance(key, Column) else 0.0

    def null_fraction(self, e: Expr) -> float:
        """The share of rows in which an expression is NULL."""
        if isinstance(e, Column):
            known = self._known_nulls(e)
            if known is not None:
                return known
            return max(self.unmatched.get(e.id, 0.0), tuning.cardinality.null if e.nullable else 0.0)
        return tuning.cardinality.null if e.nullable else 0.0

    def _known_nulls(self, c: Column) -> float | None:
        """The share of NULLs of a column whose source counted them."""
        nulls = self.columns.get(c.id, UNKNOWN).null_count
        if nulls is None:
            return None
        return min(1.0, self.unmatched.get(c.id, 0.0) + nulls / max(self.column_rows.get(c.id, 1.0), 1.0))

    # -- told

    def describe(self, c: Column, e: Expr, rows: float) -> None:
        """A column that has an expression's values, in ``rows`` rows."""
        if isinstance(e, Column):
            self.columns[c.id] = self._left(e)
            self.column_rows[c.id] = self.column_rows.get(e.id, rows)
            if e.id in self.unmatched:
                self.unmatched[c.id] = self.unmatched[e.id]
            if e.id in self._constants:
                self._constants[c.id] = self._constants[e.id]
            if e.id in self.origins:
                self.origins[c.id] = self.origins[e.id]
            if e.id in self._reduced:
                self._reduced[c.id] = self._reduced[e.id]
            return
        self.column_rows[c.id] = rows
        if isinstance(e, Literal):
            self._describe_constant(c, shown(e), rows)
        else:
            self.columns[c.id] = ColumnStatistics(distinct=int(min(self.base_distinct(e), rows)))

    def _left(self, column: Column) -> ColumnStatistics:
        """What a column is, with the distinct values that filters have left of it."""
        known = self.columns.get(column.id, UNKNOWN)
        left = self.values_left.get(column.id)
        if left is None or known.is_unique or left >= self.base_distinct(column):
            return known
        return replace(known, distinct=max(1, ceil(left)))

    def _describe_constant(self, c: Column, value: Hashable, rows: float) -> None:
        self._constants[c.id] = value
        is_whole = isinstance(value, int) and not c.dtype.is_float
        bounds = Bounds(int(value), int(value)) if is_whole and isinstance(value, int) else None
        nulls = ceil(rows) if value is None else 0
        self.columns[c.id] = ColumnStatistics(bounds, nulls, 1, values=bounds)

    def describe_values(self, columns: tuple[Column, ...], rows: tuple[tuple[Expr, ...], ...]) -> None:
        """The columns of several constant rows."""
        for n, c in enumerate(columns):
            if len(rows) > 1 and all(isinstance(row[n], Literal) for row in rows):
                self.columns[c.id] = ColumnStatistics(distinct=len({row[n] for row in rows}))
                self.column_rows[c.id] = float(len(rows))

    def describe_union(
        self, columns: tuple[Column, ...], inputs: tuple[tuple[Column, ...], ...], sizes: Sequence[float]
    ) -> None:
        """The columns of a union of so many rows each."""
        from gquery.planner.logical.united import united

        for n, c in enumerate(columns):
            self.columns[c.id] = united([self._part(row[n], size) for row, size in zip(inputs, sizes, strict=True)])
            self.column_rows[c.id] = sum(sizes)
            self._reduce_union(c, [row[n] for row in inputs], sizes)

    def _reduce_union(self, c: Column, parts: Sequence[Column], sizes: Sequence[float]) -> None:
        """Where a SEMI join asked the same of each part: what it kept of all."""
        asked = [self._reduced[p.id] for p in parts if p.id in self._reduced]
        if len(asked) == len(parts) and len({origin for origin, _ in asked}) == 1:
            before = sum(size / kept for size, (_, kept) in zip(sizes, asked, strict=True))
            self._reduced[c.id] = asked[0][0], min(1.0, sum(sizes) / max(before, 1.0))

    def note_reduced(self, key: Expr, by: Expr, kept: float) -> None:
        """A SEMI join kept the rows whose ``key`` is among the values of ``by``: a later join with those keeps them all."""
        if isinstance(key, Column) and isinstance(by, Column) and by.id in self.origins:
            self._reduced[key.id] = self.origins[by.id], kept

    def reduced(self, key: Expr, by: Expr) -> float:
        """The share of rows that a SEMI join with ``by``, or a column of its origin, left already; 1 where there was none."""
        if not (isinstance(key, Column) and isinstance(by, Column)):
            return 1.0
        asked = self._reduced.get(key.id)
        return asked[1] if asked is not None and asked[0] == self.origins.get(by.id) else 1.0

    def _part(self, c: Column, rows: float) -> Part:
        distinct = self.distinct(c, rows) if self.base_distinct(c) < tuning.cardinality.unknown_distinct else None
        bounds = None if c.dtype.is_string else self.columns.get(c.id, UNKNOWN).bounds  # codes differ from side to side
        is_constant = c.id in self._constants
        constant = (self._constants[c.id],) if is_constant else None
        from gquery.planner.logical.united import Part

        return Part(rows, bounds, None if bounds is None else self.values(c), distinct, self._known_nulls(c), constant)

    def describe_call(self, c: Column, function: str, args: tuple[Expr, ...], rows: float) -> bool:
        """A column of values of its function's first argument in ``rows`` rows; whether it is such a one."""
        self.column_rows[c.id] = rows
        if not gives_argument(function) or not args or not isinstance(args[0], Column):
            return False
        bounds, distinct = self.columns.get(args[0].id, UNKNOWN).bounds, ceil(self.distinct(args[0], rows))
        self.columns[c.id] = ColumnStatistics(bounds, None, distinct, values=self.values(args[0]))
        return True

    def describe_window(
        self, calls: tuple[tuple[Column, WindowCall], ...], partition: tuple[Expr, ...], rows: float
    ) -> None:
        """The columns of window calls over ``rows`` rows: ranks count the rows of a partition."""
        partitions = 1.0
        for e in partition:
            partitions = min(rows, partitions * self.distinct(e, rows))
        most = ceil(max(rows / max(partitions, 1.0), 1.0))
        for c, call in calls:
            if not self.describe_call(c, call.function, call.args, rows) and numbers_rows(call):
                bounds = Bounds(1, most)
                self.columns[c.id] = ColumnStatistics(bounds, 0, most, values=bounds)


def told_by_nulls(keys: list[Expr]) -> set[int]:
    """The columns that say which of other keys are NULL (CASE WHEN test THEN key END): groups by those are groups by these, but
    for NULLs of the data."""
    tests = (e.branches[0][0] for e in keys if isinstance(e, Case) and len(e.branches) == 1 and e.otherwise.nullable)
    return {i for test in tests for i in used_columns(test)}
