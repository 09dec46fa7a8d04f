"""Order that no one asks for is not made.

    Aggregate by k                    Aggregate by k
      Sort by x                 =>      Scan t
        Scan t

An aggregate, a build side and another sort do not care for the order of their input; a result and a limit do, and so do lists,
joined texts, first and last values without an order of their own. A sort
that does stay forgets keys that cannot matter: constants, and all that follow a unique key. The order of a definition is
seen if that of one of its uses is.
"""

from __future__ import annotations

from gquery.expression.expr import Column, Literal, SortKey
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Definition,
    Join,
    Limit,
    Plan,
    Query,
    Shared,
    Sort,
    Window,
)
from gquery.planner.logical.properties import is_unique
from gquery.planner.logical.shared import definitions, kinds, kinds_of, rebuilt
from gquery.planner.logical.tree import with_sources
from gquery.runtime.records import replace

# which users have sorted rows for: they take them as they come
_IN_ORDER = frozenset(("list", "string_agg", "first", "last"))
_NOTED = kinds_of(Sort, Shared)


def drop_sorts(query: Query) -> Query | None:
    """Sorts only where their order is seen, by as few keys as decide it."""
    shown: set[int] = set()
    plan = _drop(query.plan, True, shown)
    changed: dict[int, Definition] = {}
    for d in reversed(definitions(query.plan)):  # those that use others first
        new = _drop(d.plan, d.number in shown, shown)
        if new is not d.plan:
            changed[d.number] = replace(d, plan=new)
    plan = rebuilt(plan, changed)
    return None if plan is query.plan else replace(query, plan=plan)


def _drop(plan: Plan, seen: bool, shown: set[int]) -> Plan:
    """``shown`` takes up the definitions whose order is seen."""
    if not kinds(plan) & _NOTED:
        return plan
    match plan:
        case Shared(definition=d):
            if seen:
                shown.add(d.number)
            return plan
        case Sort(source=s, limit=None, offset=0) if not seen:
            return _drop(s, False, shown)
        case Sort(source=s):
            source = _drop(s, False, shown)
            keys = _deciding(plan.keys, source)
            if not keys:  # all rows are equal to it, so they stay as they come
                return Limit(s, plan.limit, plan.offset) if plan.limit is not None or plan.offset else s
            if len(keys) == len(plan.keys):
                return with_sources(plan, (source,))
            return Sort(source, keys, plan.limit, plan.offset)
        case Aggregate(source=s, aggregates=aggregates):
            takes_order = any(call.function in _IN_ORDER and not call.order for _, call in aggregates)
            return with_sources(plan, (_drop(s, takes_order, shown),))
        case Limit(source=s) | Window(source=s):  # rows that a window's order does not tell apart come as they come
            return with_sources(plan, (_drop(s, True, shown),))
        case Join(left=a, right=b) | Apply(left=a, right=b):
            return with_sources(plan, (_drop(a, seen, shown), _drop(b, False, shown)))
        case _:
            return with_sources(plan, tuple([_drop(s, seen, shown) for s in plan.sources]))


def _deciding(keys: tuple[SortKey, ...], source: Plan) -> tuple[SortKey, ...]:
    out: list[SortKey] = []
    columns: set[int] = set()
    for key in keys:
        if isinstance(key.expr, Literal) or (isinstance(key.expr, Column) and key.expr.id in columns):
            continue
        if columns and is_unique(source, frozenset(columns)):
            break
        out.append(key)
        if isinstance(key.expr, Column):
            columns.add(key.expr.id)
    return tuple(out)
