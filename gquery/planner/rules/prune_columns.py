"""Only what is used above is read, computed and carried: columns, aggregates, and joins that add nothing.

Project a                       Project a
  Join left on a = k       =>     Scan t(a)                 k is unique in u, so the join neither adds
    Scan t(a, b)                                            nor drops rows, and nothing of u is used
    Scan u(k, v)
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from gquery.expr import Expr
from gquery.planner.logical import (
    Aggregate,
    Apply,
    Filter,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Range,
    Scan,
    Sort,
    UnionAll,
    Values,
)
from gquery.planner.proofs import many_to_one
from gquery.planner.tree import column_ids, free_columns, used_columns, with_sources

Ids = frozenset[int]


def prune_columns(plan: Plan, needed: Ids) -> Plan | None:
    """The plan giving (at least) the columns of ``needed`` and computing no others."""
    new = _prune(plan, needed)
    return None if new is plan else new


def _used(exprs: tuple[Expr, ...]) -> Ids:
    return frozenset[int]().union(*(used_columns(e) for e in exprs))


def _prune(plan: Plan, needed: Ids) -> Plan:
    match plan:
        case Scan():
            keep = [i for i, c in enumerate(plan.columns) if c.id in needed]
            if len(keep) == len(plan.columns):
                return plan
            return Scan(plan.source, tuple(plan.columns[i] for i in keep), tuple(plan.fields[i] for i in keep))
        case Values():
            keep = [i for i, c in enumerate(plan.columns) if c.id in needed]
            if len(keep) == len(plan.columns):
                return plan
            return Values(tuple(plan.columns[i] for i in keep), tuple(tuple(row[i] for i in keep) for row in plan.rows))
        case Range():
            return plan
        case Filter(source=s, predicate=p):
            return with_sources(plan, (_prune(s, needed | used_columns(p)),))
        case Project(source=s, exprs=exprs):
            kept = tuple((c, e) for c, e in exprs if c.id in needed)
            below = _prune(s, _used(tuple(e for _, e in kept)))
            return plan if below is s and len(kept) == len(exprs) else Project(below, kept)
        case Sort(source=s, keys=keys):
            return with_sources(plan, (_prune(s, needed | _used(tuple(k.expr for k in keys))),))
        case Limit(source=s):
            return with_sources(plan, (_prune(s, needed),))
        case Aggregate():
            return _aggregate(plan, needed)
        case Join() | Apply():
            return _join(plan, needed)
        case UnionAll():
            return _union(plan, needed)
        case _:
            assert_never(plan)


def _aggregate(plan: Aggregate, needed: Ids) -> Plan:
    kept = tuple((c, a) for c, a in plan.aggregates if c.id in needed)
    if not plan.keys and not kept:
        return Values((), ((),))  # one row, whatever the source holds
    used = _used(tuple(e for _, e in plan.keys))
    for _, call in kept:
        used |= _used(call.args) | (used_columns(call.filter) if call.filter is not None else frozenset())
    below = _prune(plan.source, used)
    if below is plan.source and len(kept) == len(plan.aggregates):
        return plan
    return Aggregate(below, plan.keys, kept)


def _join(plan: Join | Apply, needed: Ids) -> Plan:
    left_ids, right_ids = column_ids(plan.left), column_ids(plan.right)
    unused = not needed & right_ids
    if isinstance(plan, Join) and plan.kind in (JoinKind.LEFT, JoinKind.SINGLE) and unused and many_to_one(plan):
        return _prune(plan.left, needed)
    if plan.kind is JoinKind.MARK and plan.mark is not None and plan.mark.id not in needed:
        return _prune(plan.left, needed)
    used = needed | used_columns(plan.condition)
    if isinstance(plan, Apply):
        used |= free_columns(plan.right)
    left, right = _prune(plan.left, used & left_ids), _prune(plan.right, used & right_ids)
    return plan if left is plan.left and right is plan.right else replace(plan, left=left, right=right)


def _union(plan: UnionAll, needed: Ids) -> Plan:
    keep = [i for i, c in enumerate(plan.columns) if c.id in needed]
    inputs = tuple(tuple(row[i] for i in keep) for row in plan.inputs)
    new = tuple(_prune(s, frozenset(c.id for c in row)) for s, row in zip(plan.sources, inputs, strict=True))
    if len(keep) == len(plan.columns) and all(a is b for a, b in zip(new, plan.sources, strict=True)):
        return plan
    return UnionAll(new, inputs, tuple(plan.columns[i] for i in keep))
