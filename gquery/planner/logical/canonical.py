"""Structural equality of plans and expressions: what reads the same, whatever its columns are numbered."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import assert_never

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
    SortKey,
)
from gquery.expression.windows import shape
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Filter,
    Fixpoint,
    Join,
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
from gquery.planner.logical.tree import cached, expressions


def canonical(plan: Plan) -> tuple[Hashable, ...]:
    """A hashable key that two plans share exactly where they compute the same rows in the same column order.

    Column ids are renumbered by first appearance, so two copies of a subquery agree. Names do not count.
    """
    return cached(plan, "_canonical", lambda: _Canonical().plan(plan))


def expression_key(e: Expr, name: Callable[[Column], Hashable]) -> tuple[Hashable, ...]:
    """A hashable key that two expressions share where they are the same over columns that are called the same."""
    return _Canonical(name).expr(e)


class _Canonical:
    def __init__(self, name: Callable[[Column], Hashable] | None = None) -> None:
        self.number: dict[int, int] = {}
        self.seen: dict[int, int] = {}  # expressions by identity: one that comes again is written as its number
        self.name = name

    def column(self, c: Column) -> Hashable:
        return self.number.setdefault(c.id, len(self.number)) if self.name is None else self.name(c)

    def plan(self, p: Plan) -> tuple[Hashable, ...]:
        below = tuple([self.plan(s) for s in p.sources])
        own: tuple[Hashable, ...]
        match p:
            case Scan():
                own = (id(p.source), p.source.version, p.fields)
            case Shared():
                own = (p.definition.number, p.fields)
            case Range():
                own = (p.start, p.stop, p.step)
            case Values():
                own = (len(p.rows),)
            case Join() | Apply():
                own = (p.kind,)
            case Sort():
                own = (p.limit, p.offset, _directions(p.keys))
            case Limit():
                own = (p.limit, p.offset)
            case UnionAll():
                own = tuple(tuple(self.column(c) for c in row) for row in p.inputs)
            case Aggregate():
                own = (
                    len(p.keys),
                    p.sets and p.sets.sets,
                    tuple(
                        (a.function, a.dtype, a.distinct, a.filter is None, len(a.args), _directions(a.order))
                        for _, a in p.aggregates
                    ),
                )
            case Window():
                order = tuple((k.descending, k.nulls_first) for k in p.order)
                own = (len(p.partition), order, tuple(shape(call) for _, call in p.calls), p.first)
            case Unnest():
                own = (len(p.lists), p.ordinal is None, p.kept)
            case WorkingTable():
                own = (p.number, p.fields, p.level)
            case Fixpoint():
                own = (p.number, tuple(self.column(c) for c in p.inputs), p.enough)
            case Filter() | Project():
                own = ()
            case _:
                assert_never(p)
        exprs = tuple([self.expr(e) for e in expressions(p)])
        return (type(p).__name__, own, exprs, tuple([self.column(c) for c in p.columns]), below)

    def expr(self, e: Expr) -> tuple[Hashable, ...]:
        if isinstance(e, Column):  # half of all are
            return ("column", self.column(e))
        if kids := e.children:
            if (number := self.seen.get(id(e))) is not None:
                return ("again", number)
            self.seen[id(e)] = len(self.seen)
        below = tuple([self.expr(k) for k in kids])
        match e:
            case Literal():
                return ("literal", e)
            case ScalarSubquery(plan, field):
                return ("scalar", self.plan(plan), field)
            case Exists() | InSubquery():
                return (type(e).__name__, self.plan(e.plan), below)
            case Call():
                return (e.function, e.dtype, below)
            case Cast():
                return ("cast", e.dtype, e.try_, below)
            case In():
                return ("in", e.items, below)
            case Case() | And() | Or() | Not() | IsNull():
                return (type(e).__name__, below)
            case _:
                assert_never(e)


def _directions(keys: tuple[SortKey, ...]) -> tuple[tuple[bool, bool], ...]:
    """How keys of an order are sorted by, their expressions left out."""
    return tuple((k.descending, k.nulls_first) for k in keys)
