"""The recursion of rules that no part of a query may be left out of: through sources, and plans inside subquery expressions."""

from __future__ import annotations

from collections.abc import Callable

from gquery.errors import InternalError
from gquery.expression.expr import Expr
from gquery.expression.traverse import transform
from gquery.planner.logical.nodes import Plan
from gquery.planner.logical.tree import Subquery, map_expressions, own_subqueries, transform_up
from gquery.runtime.records import replace


def map_subqueries(node: Plan, f: Callable[[Plan], Plan]) -> Plan:
    """The node with ``f`` of each of its own subqueries' plans. One that stands in several expressions stays one: two of them
    would make the same columns."""
    own = {id(e.plan): e.plan for e in own_subqueries(node)}
    made = {i: new for i, p in own.items() if (new := f(p)) is not p}

    def one(e: Expr) -> Expr:
        return replace(e, plan=made[id(e.plan)]) if isinstance(e, Subquery) and id(e.plan) in made else e

    return map_expressions(node, lambda e: transform(e, one)) if made else node


def transform_everywhere(plan: Plan, f: Callable[[Plan], Plan]) -> Plan:
    """``f`` applied to every node, sources first, and those of the node's own subqueries before it."""

    def inside(p: Plan) -> Plan:
        made = transform_everywhere(p, f)
        if made.columns[: len(p.columns)] != p.columns:
            raise InternalError("a rule moves the columns of a subquery, whose values come first")
        return made

    return transform_up(plan, lambda p: f(map_subqueries(p, inside) if own_subqueries(p) else p))
