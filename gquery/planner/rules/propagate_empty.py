"""What reads a relation that is proved empty is not computed.

    Join inner                    Values (no rows)
      Scan a               =>
      Values (no rows)

Contradictory predicates (``WHERE 1 = 0``) and ``LIMIT 0`` make them. An aggregate without keys still has its row.
"""

from __future__ import annotations

from gquery.planner.logical.nodes import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Shared,
    Sort,
    UnionAll,
    Values,
    Window,
)
from gquery.planner.logical.tree import transform_up


def propagate_empty(plan: Plan) -> Plan | None:
    """Empty relations as far up as they decide the result."""
    new = transform_up(plan, _node)
    return None if new is plan else new


def _empty(plan: Plan) -> bool:
    return isinstance(plan, Values) and not plan.rows


def _node(plan: Plan) -> Plan:
    match plan:
        case Filter(source=s) | Project(source=s) | Window(source=s) | Sort(source=s) | Limit(source=s) if _empty(s):
            return Values(plan.columns, ())
        case Aggregate(source=s, keys=keys) if keys and _empty(s):
            return Values(plan.columns, ())
        case Shared(definition=d) if _empty(d.plan):
            return Values(plan.columns, ())
        case Join():
            return _join(plan)
        case UnionAll():
            return _union(plan)
        case _:
            return plan


def _join(plan: Join) -> Plan:
    left, right = _empty(plan.left), _empty(plan.right)
    if left and (plan.kind is not JoinKind.FULL or right):
        return Values(plan.columns, ())
    if right and plan.kind in (JoinKind.INNER, JoinKind.SEMI):
        return Values(plan.columns, ())
    return plan.left if right and plan.kind is JoinKind.ANTI else plan


def _union(plan: UnionAll) -> Plan:
    kept = [(s, row) for s, row in zip(plan.sources, plan.inputs, strict=True) if not _empty(s)]
    if len(kept) == len(plan.sources):
        return plan
    if not kept:
        return Values(plan.columns, ())
    if len(kept) == 1:
        source, row = kept[0]
        return Project(source, tuple(zip(plan.columns, row, strict=True)))
    return UnionAll(tuple(s for s, _ in kept), tuple(row for _, row in kept), plan.columns)
