"""``LEFT JOIN ... WHERE right IS NULL`` asks for left rows without a match: an ANTI join.

    Filter b.k IS NULL                    Project a, b.k = NULL
      Join left on a.k = b.k        =>      Join anti on a.k = b.k
        Scan a                                Scan a
        Scan b                                Scan b

Right only where a match cannot have NULL there: b.k holds none, or the join's condition drops it.
"""

from __future__ import annotations

from gquery.expression.expr import Column, Expr, IsNull, Literal
from gquery.expression.traverse import conjunction, conjuncts
from gquery.planner.logical.nodes import Filter, Join, JoinKind, Plan, Project
from gquery.planner.logical.tree import fresh_copy, remap_expr, transform_up
from gquery.planner.rules.reduce_outer_joins import rejects_null


def anti_join(plan: Plan) -> Plan | None:
    """Left joins that are only asked where they found nothing, as ANTI joins."""
    new = transform_up(plan, _node)
    return None if new is plan else new


def _node(plan: Plan) -> Plan:
    if not (isinstance(plan, Filter) and isinstance(plan.source, Join) and plan.source.kind is JoinKind.LEFT):
        return plan
    join = plan.source
    inner = {c.id: c for c in join.right.columns}
    dropped = rejects_null(join.condition)

    def unmatched(e: Expr) -> bool:
        if not (isinstance(e, IsNull) and isinstance(e.arg, Column) and e.arg.id in inner):
            return False
        return e.arg.id in dropped or not inner[e.arg.id].nullable

    terms = conjuncts(plan.predicate)
    if not any(unmatched(t) for t in terms):
        return plan
    right, names = fresh_copy(join.right)  # the join's own columns go on as NULLs
    anti = Join(join.left, right, JoinKind.ANTI, remap_expr(join.condition, names))
    nulls = tuple((Column(c.id, c.name, c.dtype, True), Literal(None, c.dtype)) for c in join.right.columns)
    project = Project(anti, tuple((c, c) for c in join.left.columns) + nulls)
    rest = tuple(t for t in terms if not unmatched(t))
    return Filter(project, conjunction(rest)) if rest else project
