"""Subqueries that a plan holds twice are told apart: no two nodes of a plan may make the same column id.

``(SELECT ...) BETWEEN a AND b`` is bound as two comparisons of one expression, COALESCE tests a value and gives it, an alias
stands in several clauses: the plan inside would stand in the query twice. Within a node a subquery stays one object, which is
computed once; each further node has a copy with ids of its own.
"""

from __future__ import annotations

from gquery.planner.logical.everywhere import map_subqueries
from gquery.planner.logical.nodes import Plan
from gquery.planner.logical.tree import fresh_copy, own_subqueries, with_sources


def separate(plan: Plan, seen: set[int] | None = None) -> Plan:
    """The plan with each subquery's plan in one node only; the same object where that is so already."""
    met = set[int]() if seen is None else seen
    if own := [e.plan for e in own_subqueries(plan)]:
        again = {id(p) for p in own} & met
        met.update(map(id, own))  # before what is within them, which may be one of them too
        plan = map_subqueries(plan, lambda p: separate(fresh_copy(p)[0] if id(p) in again else p, met))
    return with_sources(plan, tuple([separate(s, met) for s in plan.sources])) if plan.sources else plan
