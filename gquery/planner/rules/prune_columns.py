"""Only what is used above is read, computed and carried: columns, aggregates, and joins that add nothing.

Project a                       Project a
  Join left on a = k       =>     Scan t(a)                 k is unique in u, so the join neither adds
    Scan t(a, b)                                            nor drops rows, and nothing of u is used
    Scan u(k, v)
"""

from __future__ import annotations

from typing import assert_never

from gquery.expression.expr import Expr
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Definition,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Query,
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
from gquery.planner.logical.properties import many_to_one
from gquery.planner.logical.shared import definitions, rebuilt, uses
from gquery.planner.logical.tree import column_ids, expressions, free_columns, used_columns, with_sources
from gquery.runtime.records import replace

Ids = frozenset[int]


def prune_columns(query: Query) -> Query | None:
    """The query computing the columns that it gives and no others; definitions give what some use of them asks for."""
    plan = _prune(query.plan, frozenset(c.id for c in query.outputs))
    plan = _with_pruned_definitions(query, plan)
    return None if plan is query.plan else replace(query, plan=plan)


def _with_pruned_definitions(query: Query, plan: Plan) -> Plan:
    """The pruned plan over pruned definitions: those that use others first, as their pruning tells what they ask for."""
    order = definitions(query.plan)
    if not order:
        return plan
    asked: dict[int, set[int]] = {d.number: set() for d in order}
    changed: dict[int, Definition] = {}
    positions: dict[int, dict[int, int]] = {}
    _note(plan, asked)
    for d in reversed(order):
        kept = sorted(asked[d.number])
        if not kept:
            continue  # no one uses it any more
        outputs = tuple(d.outputs[f] for f in kept)
        new = _prune(d.plan, frozenset(c.id for c in outputs))
        _note(new, asked)
        if new is not d.plan or len(kept) < len(d.outputs):
            changed[d.number] = replace(d, plan=new, outputs=outputs)
            positions[d.number] = {old: position for position, old in enumerate(kept)}
    return rebuilt(plan, changed, positions)


def _note(plan: Plan, asked: dict[int, set[int]]) -> None:
    for use in uses(plan):
        asked[use.definition.number].update(use.fields)


def _used(exprs: tuple[Expr, ...]) -> Ids:
    return frozenset[int]().union(*[used_columns(e) for e in exprs])


def _prune(plan: Plan, needed: Ids) -> Plan:
    match plan:  # most first
        case Scan():
            keep = [i for i, c in enumerate(plan.columns) if c.id in needed]
            if len(keep) == len(plan.columns):
                return plan
            return Scan(plan.source, tuple(plan.columns[i] for i in keep), tuple(plan.fields[i] for i in keep))
        case Join() | Apply():
            return _join(plan, needed)
        case Filter(source=s, predicate=p):
            return with_sources(plan, (_prune(s, needed | used_columns(p)),))
        case Project(source=s, exprs=exprs):
            kept = tuple((c, e) for c, e in exprs if c.id in needed)
            below = _prune(s, _used(tuple(e for _, e in kept)))
            return plan if below is s and len(kept) == len(exprs) else Project(below, kept)
        case Aggregate():
            return _aggregate(plan, needed)
        case Shared():
            keep = [i for i, c in enumerate(plan.columns) if c.id in needed] or _narrowest(plan)
            if len(keep) == len(plan.columns):
                return plan
            return Shared(plan.definition, tuple(plan.columns[i] for i in keep), tuple(plan.fields[i] for i in keep))
        case Values():
            keep = [i for i, c in enumerate(plan.columns) if c.id in needed]
            if len(keep) == len(plan.columns):
                return plan
            return Values(tuple(plan.columns[i] for i in keep), tuple(tuple(row[i] for i in keep) for row in plan.rows))
        case Range() | WorkingTable():
            return plan
        case Fixpoint(source=s, inputs=inputs):  # each round reads all of them
            return with_sources(plan, (_prune(s, frozenset(c.id for c in inputs)),))
        case Sort(source=s, keys=keys):
            return with_sources(plan, (_prune(s, needed | _used(tuple(k.expr for k in keys))),))
        case Unnest(source=s, lists=lists):  # all of them say how many rows there are
            return with_sources(plan, (_prune(s, needed | _used(tuple(e for _, e in lists))),))
        case Limit(source=s):
            return with_sources(plan, (_prune(s, needed),))
        case Window():
            return _window(plan, needed)
        case UnionAll():
            return _union(plan, needed)
        case _:
            assert_never(plan)


def _narrowest(plan: Shared) -> list[int]:
    """A column of a use of which only the rows are counted: a frame has a column."""
    return sorted(range(len(plan.columns)), key=lambda i: plan.columns[i].dtype.is_string)[:1]


def _aggregate(plan: Aggregate, needed: Ids) -> Plan:
    kept = tuple((c, a) for c, a in plan.aggregates if c.id in needed)
    if not plan.keys and not kept:
        return Values((), ((),))  # one row, whatever the source holds
    used = _used(tuple(e for _, e in plan.keys))
    for _, call in kept:
        used |= _used(call.expressions)
    below = _prune(plan.source, used)
    if below is plan.source and len(kept) == len(plan.aggregates):
        return plan
    return Aggregate(below, plan.keys, kept)


def _window(plan: Window, needed: Ids) -> Plan:
    kept = tuple((c, call) for c, call in plan.calls if c.id in needed)
    if not kept:
        return _prune(plan.source, needed)
    if len(kept) < len(plan.calls):
        plan = replace(plan, calls=kept)
    needed = (needed - {c.id for c, _ in kept}) | _used(expressions(plan))
    return with_sources(plan, (_prune(plan.source, needed),))


def _join(plan: Join | Apply, needed: Ids) -> Plan:
    left_ids, right_ids = column_ids(plan.left), column_ids(plan.right)
    unused = not needed & right_ids
    kind = plan.kind
    if unused and isinstance(plan, Join) and kind in (JoinKind.LEFT, JoinKind.SINGLE) and many_to_one(plan):
        return _prune(plan.left, needed)
    if unused and kind is JoinKind.ASOF:
        return _prune(plan.left, needed)
    if plan.mark is not None and kind is JoinKind.MARK and plan.mark.id not in needed:
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
