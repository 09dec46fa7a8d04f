"""Estimates of a plan's rows, distinct values and selectivities, for join order and the sizes of tables.

They may be wrong and only choose between right plans; what must never be wrong stands in `planner.logical.properties`.
"""

from __future__ import annotations

from math import prod
from typing import assert_never

from gquery import tuning
from gquery.columns.table import ColumnStatistics
from gquery.expression.expr import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Expr,
    In,
    InSubquery,
    IsNull,
    Literal,
    Not,
    Or,
    ScalarSubquery,
)
from gquery.expression.slots import shown
from gquery.expression.traverse import conjuncts
from gquery.expression.types import Bounds
from gquery.functions import counts
from gquery.planner.logical.bounds import chosen, comparisons
from gquery.planner.logical.column_estimates import UNKNOWN, ColumnEstimates, told_by_nulls
from gquery.planner.logical.key_ranges import KeyPair, common_shares, integer_columns, pairs_selectivity
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Range,
    Scan,
    Shared,
    Sort,
    UnionAll,
    Unnest,
    Values,
    Window,
    WorkingTable,
)
from gquery.planner.logical.properties import key_pair
from gquery.planner.logical.selectivity import (
    Frequencies,
    RangeEnd,
    distinct_counts,
    factor,
    selectivity_of,
    selectivity_of_values,
)
from gquery.planner.logical.shared import definitions
from gquery.planner.logical.tree import column_ids

_FILLING = (JoinKind.LEFT, JoinKind.FULL, JoinKind.ASOF, JoinKind.SINGLE)  # to name a member takes 40 ns
_ONE_EACH, _EXISTENCE = (JoinKind.MARK, JoinKind.SINGLE, JoinKind.ASOF), (JoinKind.SEMI, JoinKind.ANTI)


class Estimator(ColumnEstimates):
    """Estimated rows, distinct counts and selectivities. One is made for a query: it remembers what columns are."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[int, tuple[Plan, float]] = {}  # by identity; the plan is kept, so its id too

    def rows(self, plan: Plan) -> float:
        """Estimated rows of a plan."""
        known = self._rows.get(id(plan))
        if known is None:
            for s in plan.sources:
                if id(s) not in self._rows:
                    self.rows(s)
            known = (plan, self._estimate(plan))
            self._rows[id(plan)] = known
        return known[1]

    # -- plans

    def _estimate(self, plan: Plan) -> float:
        match plan:  # most first
            case Scan(source=source):
                rows = float(source.rows)
                for c, f in zip(plan.columns, plan.fields, strict=True):
                    if c.id not in self.columns:
                        self.columns[c.id] = source.statistics(f)
                        self.column_rows[c.id] = rows
                        self.origins[c.id] = id(source), f
                return rows
            case Join() | Apply():
                if plan.mark is not None:
                    self.columns[plan.mark.id] = ColumnStatistics(Bounds(0, 1), None, 2)
                if plan.kind in _FILLING:
                    self._note_unmatched(plan)
                return self.join_rows(
                    plan.kind, plan.condition, self.rows(plan.left), self.rows(plan.right), plan.left, plan.right
                )
            case Filter(source=s, predicate=p):
                return max(self.rows(s) * self._filtered(p), tuning.cardinality.least_rows)
            case Project(source=s, exprs=exprs):
                rows = self.rows(s)
                for c, e in exprs:
                    if c.id not in self.columns:
                        self.describe(c, e, rows)
                return rows
            case Aggregate():
                return self._groups(plan)
            case Values(columns=columns, rows=values):
                self.describe_values(columns, values)
                return float(len(values))
            case Range():
                self.columns[plan.column.id] = ColumnStatistics(None, 0, plan.rows, plan.step > 0, True)
                self.column_rows[plan.column.id] = float(plan.rows)
                return float(plan.rows)
            case Shared(definition=d):
                for other in () if id(d.plan) in self._rows else definitions(plan):  # a long chain is no deep recursion
                    self.rows(other.plan)
                rows = self.rows(d.plan)
                for c, made in zip(plan.columns, plan.outputs, strict=True):
                    self.describe(c, made, rows)
                return rows
            case Window():
                return self._window(plan)
            case Unnest():
                return self._elements(plan)
            case Sort(source=s, limit=limit, offset=offset) | Limit(source=s, limit=limit, offset=offset):
                rows = max(0.0, self.rows(s) - offset)
                return rows if limit is None else min(rows, float(limit))
            case UnionAll(sources=sides, inputs=inputs):
                sizes = [self.rows(s) for s in sides]
                self.describe_union(plan.columns, inputs, sizes)
                return sum(sizes)
            case Fixpoint() | WorkingTable():
                rows = sum(self.rows(s) for s in plan.sources) if plan.sources else tuning.cardinality.round_rows
                rows *= tuning.cardinality.rounds if isinstance(plan, Fixpoint) else 1.0
                self.column_rows.update((c.id, rows) for c in plan.columns)
                return rows
            case _:
                assert_never(plan)

    def _window(self, plan: Window) -> float:
        rows = self.rows(plan.source)
        if plan.first is not None:
            rows = min(rows, plan.first * max(prod([self.distinct(e, rows) for e in plan.partition]), 1.0))
        self.describe_window(plan.calls, plan.partition, rows)
        return rows

    def _elements(self, plan: Unnest) -> float:
        rows = self.rows(plan.source) * tuning.cardinality.list_elements
        self.column_rows.update((c.id, rows) for c in plan.made)
        return rows

    def _groups(self, plan: Aggregate) -> float:
        rows = self.rows(plan.source)
        groups = 1.0
        told = told_by_nulls([e for _, e in plan.keys])
        for _, e in plan.keys:
            groups *= 1.0 if isinstance(e, Column) and e.id in told else self.distinct(e, rows)
        groups = min(groups, rows) if plan.keys else 1.0
        for c, e in plan.keys:
            self.describe(c, e, groups)
        for c, call in plan.aggregates:
            self.describe_call(c, call.function, call.args, groups)
            if counts(call):
                self.columns[c.id] = ColumnStatistics(distinct=distinct_counts(rows, groups))
        return max(groups, tuning.cardinality.least_rows)

    def _note_unmatched(self, plan: Join | Apply) -> None:
        """An outer join makes the columns of its right side NULL where a left row has no match."""
        ids = column_ids(plan.left), column_ids(plan.right)
        pairs = [pair for e in conjuncts(plan.condition) if (pair := key_pair(e, *ids)) is not None]
        self.rows(plan.left)  # which notes what is known of its columns
        matched = self.match_selectivity(pairs, self.rows(plan.right))
        for i in ids[1]:
            self.unmatched[i] = max(tuning.cardinality.least_unmatched, 1 - matched)

    def join_rows(
        self, kind: JoinKind, condition: Expr, left_rows: float, right_rows: float, left: Plan, right: Plan
    ) -> float:
        """Estimated rows of a join of these sides."""
        left_ids, right_ids = column_ids(left), column_ids(right)
        terms = [(e, key_pair(e, left_ids, right_ids)) for e in conjuncts(condition)]
        pairs = [pair for _, pair in terms if pair is not None]
        if kind in _ONE_EACH:
            return left_rows
        if kind in _EXISTENCE:
            selectivity = self.match_selectivity(pairs, right_rows)
            if kind is JoinKind.SEMI and len(pairs) == 1:
                self.note_reduced(*pairs[0], selectivity)
            kept = selectivity if kind is JoinKind.SEMI else max(tuning.cardinality.least_unmatched, 1 - selectivity)
            return max(left_rows * kept, tuning.cardinality.least_rows)
        keys = [self.keys_of(a, b) for a, b in pairs]
        rows = left_rows * right_rows * pairs_selectivity(keys, left_rows, right_rows)
        rows *= self.pairs_kept(
            [e for e, pair in terms if pair is None], left_ids, right_ids, min(left_rows, right_rows)
        )
        if kind is JoinKind.LEFT:
            return max(rows, left_rows)
        if kind is JoinKind.FULL:
            return max(rows, left_rows, right_rows)
        return max(rows, tuning.cardinality.least_rows)

    def pairs_kept(self, terms: list[Expr], left: frozenset[int], right: frozenset[int], fewer: float) -> float:
        """The share of pairs of rows for which terms that are no equalities are TRUE. Of a range that is bounded from both
        sides, or an overlap of intervals, a row finds about one among those of the side with fewer rows."""
        kept = 1.0
        for e in terms:
            kept *= self.selectivity(e)
        bounds = chosen(comparisons(terms, left, right)) if len(terms) > 1 else None
        return min(kept, 1 / max(fewer, 1.0)) if bounds is not None and bounds.is_bounded else kept

    def keys_of(self, a: Expr, b: Expr) -> KeyPair:
        """What is known of an equality of the left side's ``a`` and the right side's ``b``."""
        columns = integer_columns(a, b)
        known = (None, None) if columns is None else (self.values(columns[0]), self.values(columns[1]))
        return KeyPair(
            (self.base_distinct(a), self.base_distinct(b)),
            (self.base_rows(a), self.base_rows(b)),
            common_shares(*known),
            (self.reduced(a, b), self.reduced(b, a)),
        )

    def match_selectivity(self, pairs: list[tuple[Expr, Expr]], right_rows: float) -> float:
        """The share of left rows that find a match."""
        if not pairs:
            return tuning.cardinality.cross_match
        selectivity = 1.0
        for a, b in pairs:
            domain = max(self.base_distinct(a), 1.0)
            found = self.distinct(b, right_rows)
            valued = 1 - (self.null_fraction(a) if isinstance(a, Column) else 0.0)
            selectivity = min(selectivity, valued * found / max(domain, found))
        return max(selectivity, tuning.cardinality.least_match)

    def _filtered(self, predicate: Expr) -> float:
        """The share of rows that a filter keeps. Of a column that it compares with constants it leaves few values: so many groups
        there are of it, and a column that is made of it has no more."""
        for i, left in self._values_left(predicate).items():
            self.values_left[i] = min(left, self.values_left.get(i, left))
        return self.selectivity(predicate)

    def _values_left(self, e: Expr) -> dict[int, float]:
        """The columns of which a predicate lets pass a few values alone, and how many."""
        match e:
            case And(args=args):
                return _least([self._values_left(a) for a in args])
            case Or(args=args):
                parts = [self._values_left(a) for a in args]
                return {i: sum(p[i] for p in parts) for i in parts[0] if all(i in p for p in parts)}
            case Call(function="eq", args=(Column(id=i), Literal())) | Call(function="eq", args=(Literal(), Column(id=i))):
                return {i: 1.0}
            case In(arg=Column(id=i), items=items):
                return {i: float(len(items))}
            case _:
                return {}

    # -- predicates

    def selectivity(self, e: Expr) -> float:
        """The share of rows for which a predicate is TRUE."""
        match e:
            case Literal(value=v):
                return 1.0 if v else 0.0
            case And(args=args):
                return self._conjunction(args)
            case Or(args=args):
                missed = 1.0
                for a in args:
                    missed *= 1 - self.selectivity(a)
                return 1 - missed
            case Not(arg=arg):
                return max(0.0, 1 - self.selectivity(arg))
            case IsNull(arg=arg):
                return self.null_fraction(arg)
            case In(arg=arg, items=items):
                return self._equals_one(arg, items)
            case Column(id=i):
                return tuning.cardinality.boolean if i in self.columns else tuning.cardinality.other
            case Call():
                return self._call(e)
            case Cast() | Case() | ScalarSubquery() | Exists() | InSubquery():
                return tuning.cardinality.other
            case _:
                assert_never(e)

    def _conjunction(self, args: tuple[Expr, ...]) -> float:
        """Ranges on one column are taken together: BETWEEN is one interval, not two independent thirds."""
        ranges: dict[int, list[tuple[Literal, RangeEnd]]] = {}
        out = 1.0
        for a in args:
            part = self._range(a)
            if part is None:
                out *= self.selectivity(a)
            else:
                ranges.setdefault(part[0].id, []).append(part[1:])
        for ends in ranges.values():
            out *= selectivity_of(ends)
        return out

    def _range(self, e: Expr) -> tuple[Column, Literal, RangeEnd] | None:
        """The column of a comparison with a constant, the constant, and what it says of the column's bounds."""
        if not (isinstance(e, Call) and e.function in _FLIPPED):
            return None
        a, b = e.args
        function = e.function
        if isinstance(a, Literal):
            a, b, function = b, a, _FLIPPED[function]
        while isinstance(a, Cast):
            a = a.arg
        if not (isinstance(a, Column) and isinstance(b, Literal) and isinstance(shown(b), int | float)):
            return None
        bounds = self.values(a)
        if bounds is None or a.dtype.is_string:
            return None
        return a, b, RangeEnd(function, factor(b.dtype, a.dtype), bounds.low, max(bounds.width, 1))

    def _equals_one(self, e: Expr, constants: tuple[Literal, ...]) -> float:
        """The share of rows in which an expression has one of some constant values."""
        of = e
        while isinstance(of, Cast):
            of = of.arg
        known = self.columns.get(of.id, UNKNOWN) if isinstance(of, Column) else UNKNOWN
        if known.frequent and all(isinstance(shown(c), int | float) for c in constants):
            rest = 1 - sum(part for _, part in known.frequent)
            other = max(rest, tuning.cardinality.least_range) / max(self.base_distinct(of) - len(known.frequent), 1.0)
            return selectivity_of_values(constants, Frequencies(known.frequent, other, factor(constants[0].dtype, of.dtype)))
        return min(1.0, len(constants) * self._equals(e))

    def _equals(self, e: Expr) -> float:
        match e:
            case Column(id=i):
                stats = self.columns.get(i, UNKNOWN)
                if stats.distinct is None and stats.bounds is None and not stats.is_unique:
                    return tuning.cardinality.equals
            case Call():  # of one argument's many values, a function often makes few
                return max(1 / max(self.base_distinct(e), 1.0), tuning.cardinality.equals / 2)
            case _:
                pass
        distinct = self.base_distinct(e)
        return tuning.cardinality.equals if distinct >= tuning.cardinality.unknown_distinct else 1 / max(distinct, 1.0)

    def _call(self, e: Call) -> float:
        match e.function:
            case "eq" | "is_not_distinct_from":
                tested = _constant_side(e)
                return min(map(self._equals, e.args)) if tested is None else self._equals_one(*tested)
            case "ne" | "is_distinct_from":
                tested = _constant_side(e)
                if tested is None:  # one of the sides may have but one value
                    return max(tuning.cardinality.least_unequal, 1 - min(map(self._equals, e.args)))
                return 1 - self._equals_one(*tested)
            case "lt" | "le" | "gt" | "ge":
                part = self._range(e)
                return _by_chance(e) if part is None else selectivity_of([part[1:]])
            case "like" | "ilike" | "contains" | "starts_with" | "ends_with":
                return tuning.cardinality.like
            case _:
                return tuning.cardinality.other


def _by_chance(e: Call) -> float:
    """The share of rows that an inequality keeps: of samples, whose rows have numbers from 0 up to 1, what it says."""
    match e.args:
        case (Call(function="_random"), Literal() as most) if isinstance(at := shown(most), float):
            kept = min(max(at, 0.0), 1.0)
            return kept if e.function in ("lt", "le") else 1 - kept
        case _:
            return tuning.cardinality.range


def _constant_side(e: Call) -> tuple[Expr, tuple[Literal, ...]] | None:
    """What a comparison compares with a constant, and the constant, if it does."""
    a, b = e.args
    if isinstance(b, Literal):
        return a, (b,)
    return (b, (a,)) if isinstance(a, Literal) else None


def _least(parts: list[dict[int, float]]) -> dict[int, float]:
    """The least of what the parts say of each column."""
    out: dict[int, float] = {}
    for part in parts:
        for i, n in part.items():
            out[i] = min(n, out.get(i, n))
    return out


_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
