"""What rows a plan gives, whichever of their columns it reads, and a plan that reads more of them.

    Join semi on k = j          Join semi on k#2 = j#2
      Scan a (k, x)               Scan a (k#2, s)          the same rows: the same number
      Filter y = 1                Filter y#2 = 1
        Scan b (j, y)               Scan b (j#2, y#2)

A column is known by where its value comes from: the field of a table, the side of a join, the expression of a projection.
That is the same in plans that give the same rows, so a column of one is found in the other.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias, assert_never

from gquery.expression.expr import Column, Expr, new_column
from gquery.expression.frozen import frozen_open
from gquery.expression.windows import shape
from gquery.planner.logical.canonical import expression_key
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
from gquery.planner.logical.tree import own_subqueries, with_sources

Origin: TypeAlias = Hashable
"""Where a column's value comes from: the number of a field, ``(side, origin)`` behind a join, the key of an expression. Only
`side_of` takes it apart; all others compare it."""
Origins = dict[int, Origin]  # by column id


@frozen_open
class Shape:
    """The number of a plan's rows, equal for plans that give the same rows in the same order, and where its columns' values
    come from."""

    rows: int
    origins: Origins


class Outlines:
    """Numbers for what plans look like without their expressions: equal for plans that give the same rows, and for some others.
    They cost a fraction of shapes, which only plans with equal outlines need. A number is good as long as its plan is there."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, int] = {}  # by identity

    def of(self, plan: Plan) -> int:
        known = self._known.get(id(plan))
        if known is None:
            known = self._known[id(plan)] = self._outline(plan)
        return known

    def _outline(self, plan: Plan) -> int:
        if isinstance(plan, Project):
            return self.of(plan.source)
        # a use of a definition is like any other: which of them compute the same is not known yet
        key = id(plan.source) if isinstance(plan, Scan) else (type(plan), *map(self.of, plan.sources))
        return self._numbers.setdefault(key, len(self._numbers))


class Shapes:
    """The shapes of a query's plans. ``definitions`` says which definition stands for another one that computes the same."""

    def __init__(self) -> None:
        self.definitions: dict[int, int] = {}
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, tuple[Plan, Shape | None]] = {}  # by identity; the plan is kept, so its id too

    def of(self, plan: Plan) -> Shape | None:
        """The shape of a plan; None for plans that are not compared: those that hold subqueries still."""
        known = self._known.get(id(plan))
        if known is None:
            known = self._known[id(plan)] = (plan, self._shape(plan))
        return known[1]

    def _shape(self, plan: Plan) -> Shape | None:
        below = [s for s in map(self.of, plan.sources) if s is not None]
        if len(below) < len(plan.sources) or isinstance(plan, Apply) or own_subqueries(plan):
            return None
        if isinstance(plan, Project):
            made = {c.id: _key(e, below[0].origins) for c, e in plan.exprs}
            return Shape(below[0].rows, made)
        origins = _origins(plan, below)
        inside = below[0].origins if len(below) == 1 else origins
        key = (type(plan).__name__, tuple(s.rows for s in below), self._own(plan, below, inside))
        return Shape(self._numbers.setdefault(key, len(self._numbers)), origins)

    def _own(self, plan: Plan, below: list[Shape], inside: Origins) -> Hashable:
        """What a node does with the rows that it reads."""
        match plan:
            case Scan(source=source):
                return id(source), source.version
            case Shared(definition=d):
                return self.definitions.get(d.number, d.number)
            case Range():
                return plan.start, plan.stop, plan.step
            case Values(columns=columns, rows=rows):  # of no rows the types are all there is
                return tuple(c.dtype for c in columns), tuple(tuple(_key(e, inside) for e in row) for row in rows)
            case Filter(predicate=p):
                return _key(p, inside)
            case Join(kind=kind, condition=condition):
                return kind, _key(condition, inside)
            case Aggregate(keys=keys, aggregates=calls):
                made = [
                    (
                        a.function,
                        a.distinct,
                        tuple(_key(x, inside) for x in a.args),
                        a.filter and _key(a.filter, inside),
                        tuple((_key(k.expr, inside), k.descending, k.nulls_first) for k in a.order),
                    )
                    for _, a in calls
                ]
                return tuple(_key(e, inside) for _, e in keys), tuple(made)
            case Window(partition=partition, order=sort_keys, calls=windows):
                by = tuple(_key(e, inside) for e in partition)
                order = tuple((_key(k.expr, inside), k.descending, k.nulls_first) for k in sort_keys)
                return by, order, tuple((shape(c), tuple(_key(e, inside) for e in c.expressions)) for _, c in windows)
            case Unnest(lists=lists):
                return tuple(_key(e, inside) for _, e in lists), plan.kept
            case Sort(keys=sort_keys):
                order = tuple((_key(k.expr, inside), k.descending, k.nulls_first) for k in sort_keys)
                return order, plan.limit, plan.offset
            case Limit():
                return plan.limit, plan.offset
            case WorkingTable():
                return plan.number, plan.level
            case Fixpoint():
                return plan.number, plan.enough, tuple(below[0].origins[c.id] for c in plan.inputs)
            case UnionAll(inputs=inputs):
                return tuple(tuple(s.origins[c.id] for c in row) for s, row in zip(below, inputs, strict=True))
            case Project() | Apply():
                raise AssertionError(plan)
            case _:
                assert_never(plan)


def _key(e: Expr, origins: Origins) -> Origin:
    """An expression over where its columns' values come from; a column is that itself."""
    if isinstance(e, Column):
        return origins.get(e.id, ("unknown", e.id))
    return expression_key(e, lambda c: origins.get(c.id, ("unknown", c.id)))


def _origins(plan: Plan, below: list[Shape]) -> Origins:
    match plan:
        case Scan() | Shared() | WorkingTable():
            return {c.id: f for c, f in zip(plan.columns, plan.fields, strict=True)}
        case Join(mark=mark):
            sides: Origins = {i: (n, v) for n, s in enumerate(below) for i, v in s.origins.items()}
            return sides if mark is None else {**sides, mark.id: "mark"}
        case Values() | Range() | Aggregate() | UnionAll() | Fixpoint():
            return {c.id: ("made", n) for n, c in enumerate(plan.columns)}
        # of two such plans, one above the other, each has its own first column: the rows below tell which it is
        case Window(calls=calls):
            return {**below[0].origins, **{c.id: ("window", below[0].rows, n) for n, (c, _) in enumerate(calls)}}
        case Unnest(made=made):
            return {**below[0].origins, **{c.id: ("element", below[0].rows, n) for n, c in enumerate(made)}}
        case Filter() | Sort() | Limit() | Project() | Apply():
            return below[0].origins
        case _:
            assert_never(plan)


def side_of(origin: Origin) -> tuple[int, Origin] | None:
    """The side of a join that a value comes from, 0 or 1, and its origin there; None for an origin that names no side."""
    if not isinstance(origin, tuple) or origin[0] not in (0, 1):
        return None
    side, at = origin
    return side, at


def reading(plan: Plan, wanted: dict[Origin, Column], known: dict[Origin, Column]) -> Plan | None:
    """The plan giving a column for each origin in ``wanted`` too, called and typed like these; None where it can't. The
    columns are entered into ``known``, those by origin that it gives."""
    for origin, like in wanted.items():
        if origin in known:
            continue
        found = _with_column(plan, origin, like)
        if found is None:
            return None
        plan, known[origin] = found
    return plan


def _with_column(plan: Plan, origin: Origin, like: Column) -> tuple[Plan, Column] | None:
    """The plan with one column more, the one whose value comes from ``origin``."""
    match plan:
        case Scan(source, columns, fields) if isinstance(origin, int):
            column = new_column(like.name, like.dtype, like.nullable)
            return Scan(source, (*columns, column), (*fields, origin)), column
        case Shared(definition, columns, fields) if isinstance(origin, int):
            column = new_column(like.name, like.dtype, like.nullable)
            return Shared(definition, (*columns, column), (*fields, origin)), column
        case Filter(source=s):
            below = _with_column(s, origin, like)
            return below and (with_sources(plan, (below[0],)), below[1])
        case Join(left=left, right=right) if (there := side_of(origin)) is not None:
            side, at = there
            below = _with_column((left, right)[side], at, like)
            if below is None or (side and plan.kind is not JoinKind.INNER):
                return None
            return with_sources(plan, (left, below[0]) if side else (below[0], right)), below[1]
        case _:
            return None
