"""now() becomes the moment at which the query is optimized, the same everywhere in it.

    Filter ts < now()    =>    Filter ts < TIMESTAMPTZ '2026-01-02 03:04:05'

It runs where no subquery stands in an expression any more, before constants are folded.
"""

from __future__ import annotations

from gquery.expression.expr import Expr, Literal
from gquery.expression.traverse import transform
from gquery.functions import clock
from gquery.planner.logical.nodes import Plan, Query
from gquery.planner.logical.shared import each, every_node
from gquery.planner.logical.tree import expressions, map_expressions, transform_up
from gquery.runtime.records import replace


def reads_clock(plan: Plan) -> bool:
    """Whether a plan depends on the moment at which it is made."""
    return clock.may_read_clock() and any(clock.reads_clock(e) for p in every_node(plan) for e in expressions(p))


def fix_moment(query: Query) -> Query | None:
    """The query with a moment in place of every call of the clock; None where there is none."""
    if not reads_clock(query.plan):
        return None
    now = clock.moment()

    def fixed(e: Expr) -> Expr:
        return Literal(now, e.dtype) if clock.is_moment(e) else e

    def one(q: Query) -> Query | None:
        plan = transform_up(q.plan, lambda p: map_expressions(p, lambda e: transform(e, fixed)))
        return None if plan is q.plan else replace(q, plan=plan)

    return each(query, one)
