"""Subqueries that an expression holds twice are told apart: no two nodes of a plan may make the same column id.

``(SELECT ...) BETWEEN a AND b`` is bound as two comparisons of one expression, COALESCE tests a value and gives it: the
plan inside would stand in the query twice. Every occurrence but the first becomes a copy with ids of its own; lowering
finds that aggregates in them are equal and computes them once.
"""

from __future__ import annotations

from gquery.expression.expr import Expr
from gquery.expression.traverse import transform as transform_expr
from gquery.planner.logical.nodes import Plan
from gquery.planner.logical.tree import (
    Subquery,
    fresh_copy,
    map_expressions,
    own_subqueries,
    with_sources,
)
from gquery.runtime.records import replace


def separate(plan: Plan, seen: dict[int, Plan] | None = None) -> Plan:
    """The plan with each subquery's plan in one place only; the same object where that is so already."""
    known: dict[int, Plan] = {} if seen is None else seen

    def one(e: Expr) -> Expr:
        if not isinstance(e, Subquery):
            return e
        first = known.get(id(e.plan))
        if first is not None:
            return replace(e, plan=fresh_copy(first)[0])
        inside = separate(e.plan, known)
        known[id(e.plan)] = inside
        return e if inside is e.plan else replace(e, plan=inside)

    below = plan.sources
    if below:
        plan = with_sources(plan, tuple([separate(s, known) for s in below]))
    return map_expressions(plan, lambda e: transform_expr(e, one)) if own_subqueries(plan) else plan
