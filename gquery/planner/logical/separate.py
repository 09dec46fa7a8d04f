"""Subqueries that a plan holds twice are told apart: no two nodes of a plan may make the same column id.

``(SELECT ...) BETWEEN a AND b`` is bound as two comparisons of one expression, COALESCE tests a value and gives it, an alias
stands in several clauses: the plan inside would stand in the query twice. Within a node a subquery stays one object, which is
computed once; each further node has a copy with ids of its own.
"""

from __future__ import annotations

from gquery.planner.logical.everywhere import map_subqueries
from gquery.planner.logical.nodes import Plan
from gquery.planner.logical.shared import has_subqueries
from gquery.planner.logical.tree import fresh_copy, made_columns, own_subqueries, walk, with_sources


def separate(plan: Plan, seen: set[int] | None = None) -> Plan:
    """The plan with each subquery's plan in one node only; the same object where that is so already. ``seen``: the ids of the
    columns that subqueries make already. They tell one from another, not the object: what has rewritten the nodes of a plan one
    by one has made several objects of one."""
    if seen is None and (not has_subqueries(plan) or _are_apart(plan)):
        return plan
    met = set[int]() if seen is None else seen
    apart: dict[int, Plan] = {}
    for p in {id(e.plan): e.plan for e in own_subqueries(plan)}.values():
        apart[id(p)] = fresh_copy(p)[0] if met & _made(p) else p
        met |= _made(p)  # before what is within it, which may be one of them too
    if apart:
        plan = map_subqueries(plan, lambda p: separate(apart[id(p)], met))
    return with_sources(plan, tuple([separate(s, met) for s in plan.sources])) if plan.sources else plan


def _are_apart(plan: Plan) -> bool:
    """Whether the subqueries of all nodes make columns of their own, and hold none themselves: those of most queries."""
    own = [s for node in walk(plan) for s in {id(e.plan): e.plan for e in own_subqueries(node)}.values()]
    if any(own_subqueries(node) for p in own for node in walk(p)):
        return False
    made = [_made(p) for p in own] if len(own) > 1 else []
    return len(frozenset[int]().union(*made)) == sum(map(len, made))


def _made(plan: Plan) -> set[int]:
    return {c.id for node in walk(plan) for c in made_columns(node)}
