"""Projections that only rename or pass columns on disappear; two that meet become one.

    Project b AS c, b + 1 AS d                Project a + 1 AS d        and c is a from here on
      Project a AS b                    =>      Scan t(a)
        Scan t(a)

Renaming is free in the engine, but a projection in the way hides joins from the join order and filters from scans.
"""

from __future__ import annotations

from gquery.expression.expr import Call, Cast, Column, Expr, Literal
from gquery.expression.traverse import substitute, walk
from gquery.planner.logical.nodes import Fixpoint, Plan, Project, Query, UnionAll
from gquery.planner.logical.tree import (
    expressions,
    map_expressions,
    remap_expr,
    transform_up,
    with_sources,
)
from gquery.runtime.records import replace


def inline_renames(query: Query) -> Query | None:
    """``(new, Column old)`` gone from all projections: ``old`` is used in place of ``new`` above."""
    names: dict[int, Column] = {}
    plan = _inline(query.plan, names)
    if plan is query.plan:
        return None
    outputs = tuple(_named(c, names) for c in query.outputs)
    return Query(plan, outputs, query.names)


def _named(c: Column, names: dict[int, Column]) -> Column:
    old = names.get(c.id)
    if old is None:
        return c
    return Column(old.id, old.name, old.dtype, c.nullable or old.nullable)


def _inline(plan: Plan, names: dict[int, Column]) -> Plan:
    plan = with_sources(plan, tuple([_inline(s, names) for s in plan.sources]))
    if names:
        plan = map_expressions(plan, lambda e: remap_expr(e, names))
        if isinstance(plan, UnionAll):
            inputs = tuple(tuple(_named(c, names) for c in row) for row in plan.inputs)
            if inputs != plan.inputs or any(c.id in names for row in plan.inputs for c in row):
                plan = replace(plan, inputs=inputs)
        if isinstance(plan, Fixpoint) and any(c.id in names for c in plan.inputs):
            plan = replace(plan, inputs=tuple(_named(c, names) for c in plan.inputs))
    if not isinstance(plan, Project) or all(not isinstance(e, Column) or e.id == c.id for c, e in plan.exprs):
        return _without_identity(plan)
    kept: dict[int, tuple[Column, Expr]] = {}
    for c, e in plan.exprs:
        if isinstance(e, Column) and e.id != c.id:
            names[c.id] = e
            kept.setdefault(e.id, (e, e))
        else:
            kept.setdefault(c.id, (c, e))
    return _without_identity(Project(plan.source, tuple(kept.values())))


def _without_identity(plan: Plan) -> Plan:
    """A projection that computes nothing only drops columns, which no one names then: its source does as well."""
    if isinstance(plan, Project) and all(isinstance(e, Column) and e.id == c.id for c, e in plan.exprs):
        return plan.source
    return plan


def merge_projections(plan: Plan) -> Plan | None:
    """Two projections as one, where that computes nothing twice."""
    new = transform_up(plan, _merge)
    return None if new is plan else new


def _merge(plan: Plan) -> Plan:
    plan = _without_identity(plan)
    if not (isinstance(plan, Project) and isinstance(plan.source, Project)):
        return plan
    inner = plan.source
    uses: dict[int, int] = {}
    for e in expressions(plan):
        for x in walk(e):
            if isinstance(x, Column):
                uses[x.id] = uses.get(x.id, 0) + 1
    if any(uses.get(c.id, 0) > 1 and not _free(e) for c, e in inner.exprs):
        return plan
    by_id: dict[int, Expr] = {c.id: e for c, e in inner.exprs}
    return _merge(Project(inner.source, tuple((c, substitute(e, by_id)) for c, e in plan.exprs)))


def _free(e: Expr) -> bool:
    """Whether computing it twice costs nothing."""
    if isinstance(e, Cast):
        return _free(e.arg)
    return isinstance(e, Column | Literal) and not isinstance(e, Call)
