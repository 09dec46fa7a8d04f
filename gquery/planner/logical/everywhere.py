"""The recursion of rules that no part of a query may be left out of: through sources, and plans inside subquery expressions."""

from __future__ import annotations

from collections.abc import Callable

from gquery.errors import InternalError
from gquery.expression.expr import Expr
from gquery.expression.traverse import transform
from gquery.planner.logical.nodes import Plan
from gquery.planner.logical.tree import Subquery, map_expressions, own_subqueries, transform_up
from gquery.runtime.records import replace


def transform_everywhere(plan: Plan, f: Callable[[Plan], Plan]) -> Plan:
    """``f`` applied to every node, sources first, and those of the node's own subqueries before it."""

    def inside(e: Expr) -> Expr:
        if not isinstance(e, Subquery):
            return e
        made = transform_everywhere(e.plan, f)
        if made is e.plan:
            return e
        if made.columns[: len(e.plan.columns)] != e.plan.columns:
            raise InternalError("a rule moves the columns of a subquery, whose value is the first")
        return replace(e, plan=made)

    def node(p: Plan) -> Plan:
        if own_subqueries(p):
            p = map_expressions(p, lambda e: transform(e, inside))
        return f(p)

    return transform_up(plan, node)
