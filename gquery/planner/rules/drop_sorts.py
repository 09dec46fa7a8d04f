"""Order that no one asks for is not made.

    Aggregate by k                    Aggregate by k
      Sort by x                 =>      Scan t
        Scan t

An aggregate, a build side and another sort do not care for the order of their input; a result and a limit do. A sort
that does stay forgets keys that cannot matter: constants, and all that follow a unique key.
"""

from __future__ import annotations

from gquery.expr import Column, Literal, SortKey
from gquery.planner.logical import Aggregate, Apply, Join, Limit, Plan, Sort, sources
from gquery.planner.proofs import is_unique
from gquery.planner.tree import with_sources


def drop_sorts(plan: Plan) -> Plan | None:
    """Sorts only where their order is seen, by as few keys as decide it."""
    new = _drop(plan, True)
    return None if new is plan else new


def _drop(plan: Plan, seen: bool) -> Plan:
    match plan:
        case Sort(source=s, limit=None, offset=0) if not seen:
            return _drop(s, False)
        case Sort(source=s):
            source = _drop(s, False)
            keys = _deciding(plan.keys, source)
            if not keys:  # all rows are equal to it, so they stay as they come
                return Limit(s, plan.limit, plan.offset) if plan.limit is not None or plan.offset else s
            if len(keys) == len(plan.keys):
                return with_sources(plan, (source,))
            return Sort(source, keys, plan.limit, plan.offset)
        case Aggregate(source=s):
            return with_sources(plan, (_drop(s, False),))
        case Limit(source=s):
            return with_sources(plan, (_drop(s, True),))
        case Join(left=a, right=b) | Apply(left=a, right=b):
            return with_sources(plan, (_drop(a, seen), _drop(b, False)))
        case _:
            return with_sources(plan, tuple(_drop(s, seen) for s in sources(plan)))


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
