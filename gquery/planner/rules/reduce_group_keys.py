"""Group keys that other keys determine are no keys: their value is that of any row of the group.

    Aggregate by k, name              Aggregate by k, dependent_value(name)
      Scan t (k unique)         =>      Scan t (k unique)

An expression of keys is computed of each group's. It rests on values that are the same, which equal floats need not be
(`equal_is_same`): 0.0 and -0.0 have texts of their own. Constant keys go the same way as what a key determines. At least one
key stays: an aggregate without keys would have a row for no input.
DISTINCT of rows that have a unique key is no aggregate at all, nor is DISTINCT of rows that are only looked for (SEMI, ANTI,
MARK).
"""

from __future__ import annotations

from collections.abc import Collection

from gquery.expression.expr import AggregateCall, Column, Expr
from gquery.expression.traverse import walk
from gquery.planner.logical.nodes import Aggregate, Join, JoinKind, Plan, Project
from gquery.planner.logical.properties import determined, equal_is_same, is_unique
from gquery.planner.logical.shared import kinds_of, transform_kinds
from gquery.planner.logical.tree import remap_expr, used_columns
from gquery.runtime.records import replace

_KINDS = kinds_of(Aggregate)


def reduce_group_keys(plan: Plan) -> Plan | None:
    """Every aggregate with as few keys as functional dependencies allow."""
    new = transform_kinds(plan, _KINDS, _node)
    return None if new is plan else new


def _node(plan: Plan) -> Plan:
    match plan:
        case Aggregate(keys=keys) if keys:
            return _reduce(plan)
        case Join(kind=JoinKind.SEMI | JoinKind.ANTI | JoinKind.MARK, right=Aggregate(aggregates=()) as right) if (
            right.keys
        ):
            return replace(plan, right=Project(right.source, right.keys))
        case _:
            return plan


def _reduce(plan: Aggregate) -> Plan:
    columns = frozenset(e.id for _, e in plan.keys if isinstance(e, Column))
    if not plan.aggregates and is_unique(plan.source, columns):
        return Project(plan.source, plan.keys)  # DISTINCT of rows that differ anyway
    kept = list(plan.keys)
    dropped: list[tuple[Column, Expr]] = []
    # text keys first: they cost most
    for key in sorted(plan.keys, key=lambda k: not k[1].dtype.is_string):
        rest = [k for k in kept if k is not key]
        known = frozenset(e.id for _, e in rest if isinstance(e, Column))
        used = used_columns(key[1])
        if not (isinstance(key[1], Column) or _rests_on_same(key[1])):
            continue
        if rest and (used <= known or (known and used <= determined(plan.source, known))):
            kept = rest
            dropped.append(key)
    if not dropped:
        return plan
    names = {e.id: c for c, e in plan.keys if isinstance(e, Column)}
    above = {c: remap_expr(e, names) for c, e in dropped if e.children and _is_made_of(e, names)}
    calls = [(c, AggregateCall("dependent_value", (e,), e.dtype)) for c, e in plan.keys if (c, e) in dropped and c not in above]
    groups = Aggregate(plan.source, tuple(kept), (*plan.aggregates, *calls))
    return Project(groups, tuple([(c, above.get(c, c)) for c in plan.columns])) if above else groups


def _is_made_of(e: Expr, keys: Collection[int]) -> bool:
    used = used_columns(e)
    return bool(used) and all(i in keys for i in used)


def _rests_on_same(e: Expr) -> bool:
    return all(equal_is_same(c.dtype) for c in walk(e) if isinstance(c, Column))
