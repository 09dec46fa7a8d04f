"""Subquery expressions become dependent joins (`Apply`), which `decorrelate` then turns into plain ones.

    Filter a > (SELECT max(b) ...) AND EXISTS (p)      Filter a > m
      Scan t                                       =>    Apply single -> m
                                                           Apply semi p
                                                             Scan t

A conjunct that is EXISTS, NOT EXISTS, IN or NOT IN alone filters rows, so a SEMI or ANTI join does it; anywhere else in
an expression its truth value is needed, which a MARK join makes a column of. NOT IN is an ANTI join only where neither
side can be NULL: otherwise the mark may be NULL, and NOT NULL drops the row. A scalar subquery is a SINGLE join, or a
plain one where the plan cannot have two rows.
"""

from __future__ import annotations

from gquery.dtypes import BOOLEAN
from gquery.errors import NotSupportedError
from gquery.expr import (
    TRUE,
    Call,
    Column,
    Exists,
    Expr,
    InSubquery,
    Not,
    ScalarSubquery,
    conjunction,
    conjuncts,
    new_column,
    transform,
)
from gquery.planner.logical import (
    Aggregate,
    Apply,
    Filter,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Sort,
    UnionAll,
    Values,
)
from gquery.planner.rules.simplify import simplify_expr
from gquery.planner.statistics import one_row_at_most, one_row_exactly
from gquery.planner.tree import (
    column_ids,
    expressions,
    has_subquery,
    transform_up,
    used_columns,
    with_expressions,
    with_sources,
)


def unnest_subqueries(plan: Plan) -> Plan | None:
    """Every subquery expression replaced by a column of an Apply, or by the Apply alone."""
    new = transform_up(plan, _node)
    return None if new is plan else new


def _node(plan: Plan) -> Plan:
    if not any(has_subquery(e) for e in expressions(plan)):
        return plan
    match plan:
        case Filter():
            return _filter(plan)
        case Values():
            return _values(plan)
        case Join() | Apply():
            return _join(plan)
        case Project() | Aggregate() | Sort():  # the Applies go below
            new, out = _replace(plan.source, expressions(plan))
            return with_expressions(with_sources(plan, (new,)), out)
        case _:
            return plan


def _filter(plan: Filter) -> Plan:
    terms = conjuncts(simplify_expr(plan.predicate))  # NOT (NOT EXISTS p OR a) shows its EXISTS
    plain = tuple(t for t in terms if not has_subquery(t))
    source: Plan = Filter(plan.source, conjunction(plain)) if plain else plan.source
    left: list[Expr] = []
    for term in terms:
        if not has_subquery(term):
            continue
        match term:
            case Exists(p):
                source = Apply(source, _no_order(_unnested(p)), JoinKind.SEMI, TRUE)
            case Not(Exists(p)):
                source = Apply(source, _no_order(_unnested(p)), JoinKind.ANTI, TRUE)
            case InSubquery(args, p):
                source, args = _replace(source, args)
                p = _unnested(p)
                source = Apply(source, p, JoinKind.SEMI, _equal(args, p))
            case Not(InSubquery(args, p)) if not any(e.nullable for e in (*args, *p.columns)):
                source, args = _replace(source, args)
                p = _unnested(p)
                source = Apply(source, p, JoinKind.ANTI, _equal(args, p))
            case _:
                source, (value,) = _replace(source, (term,))
                left.append(value)
    return Filter(source, conjunction(tuple(left))) if left else source


def _unnested(plan: Plan) -> Plan:
    return transform_up(plan, _node)


def _no_order(plan: Plan) -> Plan:
    """What EXISTS asks of a plan, whether it has a row: projections, sorting and a positive limit do not matter."""
    while True:
        match plan:
            case Project(source=s):
                plan = s
            case Sort(source=s, limit=limit, offset=0) | Limit(source=s, limit=limit, offset=0) if limit != 0:
                plan = s
            case _:
                return plan


def _equal(args: tuple[Expr, ...], plan: Plan) -> Expr:
    return conjunction(
        tuple(
            Call("eq", (a, c), BOOLEAN, a.nullable or c.nullable) for a, c in zip(args, plan.columns, strict=True)
        )
    )


def _replace(source: Plan, exprs: tuple[Expr, ...]) -> tuple[Plan, tuple[Expr, ...]]:
    """The expressions with columns in place of subqueries, over a source that makes those columns."""
    plan = source

    def one(e: Expr) -> Expr:
        nonlocal plan
        match e:
            case ScalarSubquery(p):
                p = _one_column(_unnested(p))
                column = p.columns[0]
                if one_row_exactly(p):
                    plan = Apply(plan, p, JoinKind.INNER, TRUE)
                    return column
                kind = JoinKind.LEFT if one_row_at_most(p) else JoinKind.SINGLE
                plan = Apply(plan, p, kind, TRUE)
                return Column(column.id, column.name, column.dtype, True)
            case Exists(p):
                mark = new_column("exists", BOOLEAN, False)
                plan = Apply(plan, _no_order(_unnested(p)), JoinKind.MARK, TRUE, mark)
                return mark
            case InSubquery(args, p):
                p = _unnested(p)
                mark = new_column("in", BOOLEAN, e.nullable)
                plan = Apply(plan, p, JoinKind.MARK, _equal(args, p), mark)
                return mark
            case _:
                return e

    out = tuple(transform(e, one) for e in exprs)
    return plan, out


def _one_column(plan: Plan) -> Plan:
    """Unnesting below can leave helper columns beside a subquery's own; the first is the one that is asked for."""
    c = plan.columns[0]
    return plan if len(plan.columns) == 1 else Project(plan, ((c, c),))


def _values(plan: Values) -> Plan:
    """VALUES with subqueries: one projection of a constant row for each row."""
    rows: list[Plan] = []
    for row in plan.rows:
        source, exprs = _replace(Values((), ((),)), row)
        columns = tuple(new_column(c.name, c.dtype, True) for c in plan.columns)
        rows.append(Project(source, tuple(zip(columns, exprs, strict=True))))
    return UnionAll(tuple(rows), tuple(r.columns for r in rows), plan.columns)


def _join(plan: Join | Apply) -> Plan:
    """A subquery in ON: computed on the side whose columns it uses; above the join where the join is an inner one."""
    left, right = plan.left, plan.right
    terms: list[Expr] = []
    above: list[Expr] = []
    for term in conjuncts(plan.condition):
        used = used_columns(term)
        if not has_subquery(term):
            terms.append(term)
        elif plan.kind is JoinKind.INNER:
            above.append(term)
        elif not used & column_ids(left) and plan.kind in (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI):
            right = _node(Filter(right, term))
        elif not used & column_ids(right):
            left, (value,) = _replace(left, (term,))
            terms.append(value)
        else:
            raise NotSupportedError("a subquery in the ON of an outer join that uses columns of both sides")
    new = with_expressions(with_sources(plan, (left, right)), (conjunction(tuple(terms)),))
    return _filter(Filter(new, conjunction(tuple(above)))) if above else new


