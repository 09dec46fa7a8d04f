"""LIMIT over a sort becomes a top-k; other limits move down to where rows come from.

Limit 10                    Project a                    Limit 5           UnionAll
  Project a           =>      Sort top 10 by b             UnionAll   =>     Limit 5 ...
    Sort by b                   Scan t                       ...             Limit 5 ...
      Scan t
"""

from __future__ import annotations

from gquery.planner.logical.nodes import (
    Fixpoint,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Sort,
    UnionAll,
    Values,
)
from gquery.planner.logical.properties import many_to_one, one_row_at_most
from gquery.planner.logical.tree import with_sources
from gquery.runtime.records import replace


def limit_into_sort(plan: Plan) -> Plan | None:
    """Limits as part of the sort below them, or as low as they may stand."""
    new = _down(plan)
    return None if new is plan else new


def _down(plan: Plan) -> Plan:
    if isinstance(plan, Limit):
        return _limit(plan.limit, plan.offset, plan.source, plan)
    return with_sources(plan, tuple([_down(s) for s in plan.sources]))


def _limit(limit: int | None, offset: int, source: Plan, plan: Limit | None) -> Plan:
    """The first ``limit`` rows after ``offset`` of ``source``."""
    if limit == 0:
        return Values(source.columns, ())
    if limit is None and offset == 0:
        return _down(source)
    match source:
        case Limit(source=s, limit=inner, offset=skipped):
            room = None if inner is None else max(0, inner - offset)
            both = room if limit is None else limit if room is None else min(limit, room)
            return _limit(both, skipped + offset, s, None)
        case Project(source=s):
            return with_sources(source, (_limit(limit, offset, s, None),))
        case Sort(source=s, keys=keys, limit=inner, offset=skipped):
            room = None if inner is None else max(0, inner - offset)
            both = room if limit is None else limit if room is None else min(limit, room)
            return Values(source.columns, ()) if both == 0 else Sort(_down(s), keys, both, skipped + offset)
        case Join(kind=JoinKind.MARK | JoinKind.SINGLE | JoinKind.ASOF | JoinKind.LEFT) if _one_for_one(source):
            return with_sources(source, (_limit(limit, offset, source.left, None), _down(source.right)))
        case UnionAll() if limit is not None:
            new = tuple(_limit(limit + offset, 0, s, None) for s in source.sources)
            return Limit(with_sources(source, new), limit, offset)
        case Fixpoint() if limit is not None:
            below = with_sources(source, (_down(source.source),))
            assert isinstance(below, Fixpoint)
            return Limit(replace(below, enough=limit + offset), limit, offset)
        case _ if offset == 0 and limit is not None and one_row_at_most(source):
            return _down(source)
        case _:
            below = _down(source)
            return plan if plan is not None and below is source else Limit(below, limit, offset)


def _one_for_one(join: Join) -> bool:
    """Whether the join gives one row for each left row: then they keep the left side's order, too."""
    return join.kind is not JoinKind.LEFT or many_to_one(join)
