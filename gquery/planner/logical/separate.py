"""Subqueries that a plan holds twice are told apart: no two nodes of a plan may make the same column id.

``(SELECT ...) BETWEEN a AND b`` is bound as two comparisons of one expression, COALESCE tests a value and gives it, an alias
stands in several clauses: the plan inside would stand in the query twice. Within a node a subquery stays one object, which is
computed once; each further node has a copy with ids of its own.
"""

from __future__ import annotations

from gquery.expression.expr import Expr
from gquery.expression.traverse import transform
from gquery.planner.logical.nodes import Plan
from gquery.planner.logical.tree import Subquery, fresh_copy, map_expressions, own_subqueries, with_sources
from gquery.runtime.records import replace


def separate(plan: Plan, seen: set[int] | None = None) -> Plan:
    """The plan with each subquery's plan in one node only; the same object where that is so already."""
    met = set[int]() if seen is None else seen
    if own := {id(e.plan): e.plan for e in own_subqueries(plan)}:
        apart = {i: fresh_copy(p)[0] if i in met else p for i, p in own.items()}
        met.update(own)  # before what is within them, which may be one of them too
        apart = {i: separate(p, met) for i, p in apart.items()}

        def one(e: Expr) -> Expr:
            return replace(e, plan=apart[id(e.plan)]) if isinstance(e, Subquery) and apart[id(e.plan)] is not e.plan else e

        plan = map_expressions(plan, lambda e: transform(e, one))
    return with_sources(plan, tuple([separate(s, met) for s in plan.sources])) if plan.sources else plan
