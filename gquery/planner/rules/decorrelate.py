"""Dependent joins (`Apply`) become plain joins.

Where the right side uses no column of the left, that is all there is to it. Else there are two ways:

*Lifting* the correlated predicates out of the right side into the join's condition (`_lift`), which gives the joins
that people would write by hand. A predicate passes filters, projections, inner joins and the left side of others; it
passes an aggregate if it is ``inner expression = outer expression``, whose inner side becomes a group key.

*The dependent domain* for every other shape (`_Domain`): let D be the distinct values of the outer columns that the
right side uses. The right side is computed once for each row of D, by joining D in where the columns are used and
carrying its columns up, and the result is joined to the left side on D's columns, NULLs taken as equal (Neumann and
Kemper, "Unnesting arbitrary queries", 2015).

An aggregate without keys has a row also for an empty group: COUNT is 0 there, not a missing row. Lifting therefore
makes a LEFT join and puts 0 in for count's NULL before anything above the aggregate is computed.
"""

from __future__ import annotations

from gquery.expression.expr import (
    TRUE,
    Call,
    Case,
    Column,
    Expr,
    IsNull,
    Literal,
    Not,
    new_column,
)
from gquery.expression.traverse import conjunction, conjuncts
from gquery.expression.types import BOOLEAN
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Filter,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Sort,
    Unnest,
    Values,
    Window,
)
from gquery.planner.logical.properties import key_pair
from gquery.planner.logical.shared import kinds_of, transform_kinds
from gquery.planner.logical.tree import column_ids, expressions, free_columns, used_columns
from gquery.runtime.records import dataclass, replace

_LEFT_ONLY = (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE, JoinKind.ASOF)
_KINDS = kinds_of(Apply)


def decorrelate(plan: Plan) -> Plan | None:
    """Every Apply replaced by joins, innermost first."""
    new = transform_kinds(plan, _KINDS, lambda n: _apply(n) if isinstance(n, Apply) else n)
    return None if new is plan else new


def _apply(plan: Apply) -> Plan:
    left, right = plan.left, plan.right
    outer = free_columns(right) & column_ids(left)
    if not outer:
        if (
            plan.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)
            and plan.condition == TRUE
            and not free_columns(right)
        ):
            right = Limit(right, 1)  # EXISTS (p): one row tells
        return Join(left, right, plan.kind, plan.condition, plan.mark)
    if plan.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK):
        while isinstance(right, Sort) and right.limit is None and not right.offset:
            right = right.source  # these ask which rows there are, in whatever order
        outer = free_columns(right) & column_ids(left)
    elif plan.condition == TRUE and (exprs := _constant_row(right)) is not None:
        return Project(left, tuple((c, c) for c in left.columns) + exprs)  # (SELECT outer + 1)
    elif (unnested := _unnested(plan, left, right)) is not None:
        return unnested
    if plan.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SINGLE) and (scalar := _scalar_aggregate(plan, outer)):
        return scalar
    lifted = _lift(right, outer)
    if lifted is not None:
        terms = lifted.terms
        if plan.kind is JoinKind.MARK:
            terms = tuple(t for term in terms for t in _two_valued(term))
        return Join(left, lifted.plan, plan.kind, conjunction((*conjuncts(plan.condition), *terms)), plan.mark)
    from gquery.planner.rules.decorrelate_domain import by_domain

    return by_domain(plan, right, outer)


def _constant_row(plan: Plan) -> tuple[tuple[Column, Expr], ...] | None:
    """The expressions of ``SELECT expressions`` without FROM."""
    if isinstance(plan, Project) and plan.source == Values((), ((),)):
        return plan.exprs
    return None


def _unnested(plan: Apply, left: Plan, right: Plan) -> Plan | None:
    """``left, unnest(left.list)``: the rows of the left side, each with its elements; None for what is no such thing."""
    if isinstance(right, Project) and all(isinstance(e, Column) for _, e in right.exprs):
        below = _unnested(plan, left, right.source)
        return below and Project(below, tuple((c, c) for c in left.columns) + right.exprs)
    if not isinstance(right, Unnest) or right.source != Values((), ((),)):
        return None
    if plan.kind is JoinKind.INNER:
        rows: Plan = replace(right, source=left)
        return rows if plan.condition == TRUE else Filter(rows, plan.condition)
    return replace(right, source=left, kept=True) if plan.kind is JoinKind.LEFT and plan.condition == TRUE else None


def _two_valued(term: Expr) -> tuple[Expr, ...]:
    """A predicate of the subquery's WHERE for which NULL means "not in the set": it must not make a mark NULL."""
    if not term.nullable:
        return (term,)
    if isinstance(term, Call) and term.function in ("eq", "ne", "lt", "le", "gt", "ge"):
        return (*(Not(IsNull(a)) for a in term.args if a.nullable), term)
    return (Case(((term, TRUE),), Literal(0, BOOLEAN)),)


# ---- lifting predicates ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lifted:
    """A plan without the outer columns, and the predicates with them, over columns that the plan gives."""

    plan: Plan
    terms: tuple[Expr, ...]


def _lift(plan: Plan, outer: frozenset[int]) -> _Lifted | None:
    """None where some node does not let predicates through."""
    if not free_columns(plan) & outer:
        return _Lifted(plan, ())
    match plan:
        case Filter(source=s, predicate=p):
            below = _lift(s, outer)
            if below is None:
                return None
            mine = tuple(t for t in conjuncts(p) if used_columns(t) & outer)
            rest = tuple(t for t in conjuncts(p) if not used_columns(t) & outer)
            return _Lifted(Filter(below.plan, conjunction(rest)) if rest else below.plan, (*below.terms, *mine))
        case Project(source=s, exprs=exprs):
            below = _lift(s, outer)
            if below is None or any(used_columns(e) & outer for _, e in exprs):
                return None
            return _Lifted(Project(below.plan, exprs + _carry(below, outer, {c.id for c, _ in exprs})), below.terms)
        case Sort(source=s, limit=None, offset=0):
            below = _lift(s, outer)
            if below is None or any(used_columns(k.expr) & outer for k in plan.keys):
                return None
            return _Lifted(Sort(below.plan, plan.keys), below.terms)
        case Join(kind=JoinKind.INNER):
            left, right = _lift(plan.left, outer), _lift(plan.right, outer)
            if left is None or right is None:
                return None
            mine = tuple(t for t in conjuncts(plan.condition) if used_columns(t) & outer)
            rest = tuple(t for t in conjuncts(plan.condition) if not used_columns(t) & outer)
            join = Join(left.plan, right.plan, JoinKind.INNER, conjunction(rest))
            return _Lifted(join, left.terms + right.terms + mine)
        case Join(kind=kind) if kind in _LEFT_ONLY:
            if free_columns(plan.right) & outer or used_columns(plan.condition) & outer:
                return None
            below = _lift(plan.left, outer)
            return below and _Lifted(replace(plan, left=below.plan), below.terms)
        case Window():
            return _lift_through_window(plan, outer)
        case Aggregate(keys=keys) if keys:
            return _lift_through_aggregate(plan, outer)
        case _:
            return None


def _carry(below: _Lifted, outer: frozenset[int], have: set[int]) -> tuple[tuple[Column, Expr], ...]:
    """The inner columns that lifted predicates need, passed on by a projection."""
    need = frozenset[int]().union(*(used_columns(t) for t in below.terms)) - outer - have
    return tuple((c, c) for c in below.plan.columns if c.id in need)


def _lift_through_aggregate(plan: Aggregate, outer: frozenset[int]) -> _Lifted | None:
    """Predicates ``inner = outer`` over an aggregate: the inner expressions become group keys."""
    below = _lift(plan.source, outer)
    if below is None or any(used_columns(e) & outer for e in _aggregate_inputs(plan)):
        return None
    keys: list[tuple[Column, Expr]] = []
    terms: list[Expr] = []
    inside = column_ids(below.plan)
    for term in below.terms:
        if not (isinstance(term, Call) and term.function in ("eq", "is_not_distinct_from")):
            return None
        a, b = term.args
        if used_columns(a) & inside:
            a, b = b, a
        if used_columns(a) & inside or not used_columns(b) <= inside:
            return None
        key = new_column(b.name if isinstance(b, Column) else "key", b.dtype, b.nullable)
        keys.append((key, b))
        terms.append(Call(term.function, (a, key), BOOLEAN, term.nullable))
    return _Lifted(Aggregate(below.plan, plan.keys + tuple(keys), plan.aggregates), tuple(terms))


def _lift_through_window(plan: Window, outer: frozenset[int]) -> _Lifted | None:
    """Predicates ``inner = outer`` over a window: the inner expressions become part of the partition."""
    below = _lift(plan.source, outer)
    if below is None or any(used_columns(e) & outer for e in expressions(plan)):
        return None
    inside = column_ids(below.plan)
    inner: list[Expr] = []
    for term in below.terms:
        pair = key_pair(term, outer, inside)
        if pair is None:
            return None
        inner.append(pair[1])
    return _Lifted(Window(below.plan, (*plan.partition, *inner), plan.order, plan.calls, plan.first), below.terms)


def _aggregate_inputs(plan: Aggregate) -> tuple[Expr, ...]:
    return (
        *(e for _, e in plan.keys),
        *(e for _, call in plan.aggregates for e in call.expressions),
    )


def _scalar_aggregate(plan: Apply, outer: frozenset[int]) -> Plan | None:
    """``(SELECT f(aggregates) FROM ... WHERE inner = outer)``: group by the inner side, LEFT join, then compute f."""
    projections: list[Project] = []
    node = plan.right
    while isinstance(node, Project):
        projections.append(node)
        node = node.source
    if not isinstance(node, Aggregate) or node.keys or plan.condition != TRUE:
        return None
    lifted = _lift_through_aggregate(node, outer)
    if lifted is None or not isinstance(lifted.plan, Aggregate):
        return None
    from gquery.planner.rules.decorrelate_domain import empty_group, inner_column

    aggregates = lifted.plan.aggregates
    grouped = Aggregate(lifted.plan.source, lifted.plan.keys, tuple((inner_column(c, a), a) for c, a in aggregates))
    top: Plan = Join(plan.left, grouped, JoinKind.LEFT, conjunction(lifted.terms))
    inner = {c.id: n for (c, _), (n, _) in zip(aggregates, grouped.aggregates, strict=True)}
    passed = tuple((c, c) for c in plan.left.columns)
    top = Project(top, passed + tuple((c, empty_group(inner[c.id], a)) for c, a in aggregates))
    for p in reversed(projections):
        top = Project(top, passed + p.exprs)
    return top


# ---- the dependent domain --------------------------------------------------------------------------------------------
