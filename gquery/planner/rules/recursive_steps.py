"""The step of a recursion is a query of its own, so that rules take it by itself: all of them, once."""

from __future__ import annotations

from collections.abc import Callable

from gquery.planner.logical.nodes import Fixpoint, Plan, Query
from gquery.planner.logical.shared import nodes
from gquery.planner.logical.tree import transform_up
from gquery.runtime.records import replace


def recursive_steps(query: Query, optimized: Callable[[Query], Query]) -> Query | None:
    """The query with the steps of its recursions as ``optimized`` makes them; None where it has none. Those of its definitions
    are theirs: the rule takes each by itself."""
    if not any(isinstance(n, Fixpoint) for n in nodes(query.plan)):
        return None

    def node(plan: Plan) -> Plan:
        return replace(plan, step=optimized(plan.step)) if isinstance(plan, Fixpoint) else plan

    plan = transform_up(query.plan, node)
    return None if plan is query.plan else replace(query, plan=plan)
