"""A SEMI join goes below what computes or writes rows that it would drop: a union's parts, groups by its key, partitions.

    Join semi on k = key                 UnionAll k
      UnionAll k                           Join semi on a.k = key
        Scan a                    =>         Scan a
        Scan b                               (few)
      (few)                                Join semi on b.k = key#2
                                             Scan b
                                             (few)

`semi_join_reduction` makes such joins and says when. Each side gets a copy of the rows that are asked for, of which `lower`
makes one table where they are the same.
"""

from __future__ import annotations

from gquery.expression.expr import Column, Expr
from gquery.planner.logical.equal_columns import equal
from gquery.planner.logical.nodes import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Sort,
    UnionAll,
    Window,
)
from gquery.planner.logical.tree import column_ids, fresh_copy, with_sources

_KEEPS_LEFT_ROWS = (JoinKind.LEFT, JoinKind.SINGLE, JoinKind.ASOF, JoinKind.MARK)


def sunk(plan: Plan, key: Column, asked: Plan, by: Column, null_safe: bool = False) -> Plan:
    """The rows of ``plan`` whose ``key`` is one of ``asked``'s values of ``by``; NULL is one of them if it is ``null_safe``."""
    if isinstance(plan, UnionAll):
        at = next(n for n, c in enumerate(plan.columns) if c.id == key.id)
        sides = zip(plan.sources, plan.inputs, strict=True)
        return with_sources(plan, tuple(sunk(side, row[at], asked, by, null_safe) for side, row in sides))
    below = _below(plan, key)
    if below is not None:
        source, inner = below
        return with_sources(plan, (sunk(source, inner, asked, by, null_safe), *plan.sources[1:]))
    copy, names = fresh_copy(asked)
    return Join(plan, copy, JoinKind.SEMI, equal(key, names[by.id], null_safe))


def _below(plan: Plan, key: Column) -> tuple[Plan, Column] | None:
    """The plan below, and its column: without its rows of one key, the rows of that key are missing here, and no others. None
    where there is none."""
    match plan:
        case Filter(source=s):  # which is for nothing where it would only be tested behind the join
            return (s, key) if isinstance(s, UnionAll) or _below(s, key) is not None else None
        case Sort(source=s, limit=None, offset=0):
            return s, key
        case Project(source=s, exprs=made):
            return _passed_on(s, made, key)
        case Aggregate(source=s, keys=made, sets=None):
            return _passed_on(s, made, key)
        case Window(source=s, partition=partition):
            return (s, key) if key in partition else None
        case Join(left=left, kind=kind) if kind in _KEEPS_LEFT_ROWS and key.id in column_ids(left):
            return left, key
        case _:
            return None


def _passed_on(source: Plan, made: tuple[tuple[Column, Expr], ...], key: Column) -> tuple[Plan, Column] | None:
    """Of what makes columns: where it has the key from, if that is a column."""
    e = next((e for c, e in made if c.id == key.id), None)
    return (source, e) if isinstance(e, Column) else None
