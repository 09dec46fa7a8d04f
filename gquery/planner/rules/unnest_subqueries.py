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

from collections.abc import Iterable, Iterator

from gquery.errors import NotSupportedError
from gquery.expression.expr import (
    TRUE,
    Call,
    Column,
    Exists,
    Expr,
    InSubquery,
    Not,
    ScalarSubquery,
    new_column,
)
from gquery.expression.traverse import conjunction, conjuncts, transform
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
    UnionAll,
    Unnest,
    Values,
    Window,
)
from gquery.planner.logical.properties import one_row_at_most, one_row_exactly
from gquery.planner.logical.separate import separate
from gquery.planner.logical.shared import has_subqueries
from gquery.planner.logical.tree import (
    Subquery,
    column_ids,
    expressions,
    fresh_copy,
    has_subquery,
    own_subqueries,
    transform_up,
    used_columns,
    with_expressions,
    with_sources,
)
from gquery.planner.rules.simplify import simplify_expr
from gquery.runtime.records import replace


def unnest_subqueries(plan: Plan) -> Plan | None:
    """Every subquery expression replaced by a column of an Apply, or by the Apply alone."""
    if not has_subqueries(plan):
        return None
    new = transform_up(separate(plan), _node)
    return None if new is plan else new


def _node(plan: Plan) -> Plan:
    if not own_subqueries(plan):
        return plan
    match plan:
        case Filter():
            return _filter(plan)
        case Values():
            return _values(plan)
        case Join() | Apply():
            return _join(plan)
        case Project() | Aggregate() | Window() | Unnest() | Sort():  # the Applies go below
            new, out = _below_sort(plan.source, expressions(plan))
            return with_expressions(with_sources(plan, (new,)), out)
        case _:
            return plan


def _filter(plan: Filter) -> Plan:
    terms = conjuncts(simplify_expr(plan.predicate))  # NOT (NOT EXISTS p OR a) shows its EXISTS
    plain = tuple(t for t in terms if not has_subquery(t))
    applied = _Applied(Filter(plan.source, conjunction(plain)) if plain else plan.source)
    left: list[Expr] = []
    for term in terms:
        if not has_subquery(term):
            continue
        match term:
            case Exists(p) if applied.is_new(p):
                applied.add(_no_order(_unnested(p)), JoinKind.SEMI, TRUE)
            case Not(Exists(p)) if applied.is_new(p):
                applied.add(_no_order(_unnested(p)), JoinKind.ANTI, TRUE)
            case InSubquery(args, p) if applied.is_new(p):
                applied.add_in(args, _unnested(p), JoinKind.SEMI)
            case Not(InSubquery(args, p)) if not any(e.nullable for e in (*args, *p.columns)) and applied.is_new(p):
                applied.add_in(args, _unnested(p), JoinKind.ANTI)
            case _:
                left.append(applied.value(term))
    return Filter(applied.plan, conjunction(tuple(left))) if left else applied.plan


def _unnested(plan: Plan) -> Plan:
    return transform_up(plan, _node)


def _no_order(plan: Plan) -> Plan:
    """What EXISTS asks of a plan, whether it has a row: projections, sorting and a positive limit do not matter."""
    while True:
        match plan:
            case Project(source=s) | Window(source=s):
                plan = s
            case Sort(source=s, limit=limit, offset=0) | Limit(source=s, limit=limit, offset=0) if limit != 0:
                plan = s
            case _:
                return plan


def _equal(args: tuple[Expr, ...], plan: Plan) -> Expr:
    return conjunction(
        tuple(Call("eq", (a, c), BOOLEAN, a.nullable or c.nullable) for a, c in zip(args, plan.columns, strict=True))
    )


class _Applied:
    """A source with the Applies that make the columns that stand for subqueries."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.known: dict[tuple[type, int, tuple[Expr, ...]], tuple[Column, ...]] = {}
        self.plans: set[int] = set()

    def is_new(self, plan: Plan) -> bool:
        """Whether no Apply computes this very plan; from now on one does."""
        new = id(plan) not in self.plans
        self.plans.add(id(plan))
        return new

    def add(self, plan: Plan, kind: JoinKind, condition: Expr, mark: Column | None = None) -> None:
        self.plan = Apply(self.plan, plan, kind, condition, mark)

    def add_in(self, args: tuple[Expr, ...], plan: Plan, kind: JoinKind, mark: Column | None = None) -> None:
        values = tuple(self.value(a) for a in args)
        self.add(plan, kind, _equal(values, plan), mark)

    def value(self, e: Expr) -> Expr:
        """The expression with columns in place of subqueries."""
        return transform(e, self._one) if has_subquery(e) else e

    def _one(self, e: Expr) -> Expr:
        if not isinstance(e, Subquery):
            return e
        key = (type(e), id(e.plan), e.args if isinstance(e, InSubquery) else ())
        if key not in self.known:
            plan = e.plan if self.is_new(e.plan) else fresh_copy(e.plan)[0]
            self.known[key] = self._columns(e, _unnested(plan))
        return self.known[key][e.field if isinstance(e, ScalarSubquery) else 0]

    def _columns(self, e: Subquery, plan: Plan) -> tuple[Column, ...]:
        """The columns that stand for a subquery: of a scalar one for each of its fields."""
        match e:
            case ScalarSubquery():
                plan = _first_columns(plan, len(e.plan.columns))
                if one_row_exactly(plan):
                    self.add(plan, JoinKind.INNER, TRUE)
                    return plan.columns
                self.add(plan, JoinKind.LEFT if one_row_at_most(plan) else JoinKind.SINGLE, TRUE)
                return tuple(Column(c.id, c.name, c.dtype, True) for c in plan.columns)
            case Exists():
                mark = new_column("exists", BOOLEAN, False)
                self.add(_no_order(plan), JoinKind.MARK, TRUE, mark)
                return (mark,)
            case InSubquery(args=args):
                mark = new_column("in", BOOLEAN, e.nullable)
                self.add_in(args, plan, JoinKind.MARK, mark)
                return (mark,)


def _replace(source: Plan, exprs: tuple[Expr, ...]) -> tuple[Plan, tuple[Expr, ...]]:
    """The expressions with columns in place of subqueries, over a source that makes those columns."""
    applied = _Applied(source)
    out = tuple(applied.value(e) for e in exprs)
    return applied.plan, out


def _below_sort(source: Plan, exprs: tuple[Expr, ...]) -> tuple[Plan, tuple[Expr, ...]]:
    """As `_replace`, with the Applies below a sort: joins above it would be free to change its order."""
    match source:
        case Sort(source=s) | Limit(source=Sort() as s):
            below, out = _below_sort(s, exprs)
            return with_sources(source, (below,)), out
        case _:
            return _replace(source, exprs)


def _first_columns(plan: Plan, count: int) -> Plan:
    """Unnesting below can leave helper columns beside a subquery's own; the first are those that are asked for."""
    return plan if len(plan.columns) == count else Project(plan, tuple((c, c) for c in plan.columns[:count]))


def _values(plan: Values) -> Plan:
    """VALUES with subqueries: one projection of a constant row for each row."""
    rows: list[Plan] = []
    for row in plan.rows:
        source, exprs = _replace(Values((), ((),)), row)
        columns = tuple(new_column(c.name, c.dtype, e.nullable) for c, e in zip(plan.columns, exprs, strict=True))
        rows.append(Project(source, tuple(zip(columns, exprs, strict=True))))
    return UnionAll(tuple(rows), tuple(r.columns for r in rows), plan.columns)


def _apart(terms: Iterable[Expr]) -> Iterator[Expr]:
    """Terms, each with plans of its own: BETWEEN is two that share one, which may be wanted on both sides of a join."""
    seen: set[int] = set()
    for term in terms:
        copies: dict[int, Plan] = {}

        def own(e: Expr, copies: dict[int, Plan] = copies) -> Expr:
            if not isinstance(e, Subquery):
                return e
            if id(e.plan) not in copies:
                copies[id(e.plan)] = fresh_copy(e.plan)[0] if id(e.plan) in seen else e.plan
            return e if copies[id(e.plan)] is e.plan else replace(e, plan=copies[id(e.plan)])

        yield transform(term, own) if has_subquery(term) else term
        seen.update(copies)


def _join(plan: Join | Apply) -> Plan:
    """A subquery in ON: computed on the side whose columns it uses; above the join where the join is an inner one."""
    left, right = plan.left, plan.right
    terms: list[Expr] = []
    above: list[Expr] = []
    dependent = False
    given = conjuncts(plan.condition)
    for term in given if plan.kind is JoinKind.INNER else _apart(given):  # above an inner join all of them share
        used = used_columns(term)
        if not has_subquery(term):
            terms.append(term)
        elif plan.kind is JoinKind.INNER:
            above.append(term)
        elif plan.kind is not JoinKind.FULL and (used & column_ids(right) or not used & column_ids(left)):
            right = _node(Filter(right, term))
            dependent = dependent or bool(used & column_ids(left))
        elif not used & column_ids(right):
            left, (value,) = _replace(left, (term,))
            terms.append(value)
        elif not used & column_ids(left):
            right, (value,) = _replace(right, (term,))
            terms.append(value)
        else:
            raise NotSupportedError("a subquery in the ON of a FULL JOIN that uses columns of both sides")
    if dependent:  # the right side is filtered anew for each left row
        return Apply(left, right, plan.kind, conjunction(tuple(terms)), plan.mark)
    new = with_expressions(with_sources(plan, (left, right)), (conjunction(tuple(terms)),))
    return _filter(Filter(new, conjunction(tuple(above)))) if above else new
