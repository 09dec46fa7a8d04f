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

from dataclasses import dataclass, replace

from gquery.errors import NotSupportedError
from gquery.expression.expr import (
    TRUE,
    AggregateCall,
    Call,
    Case,
    Column,
    Expr,
    IsNull,
    Literal,
    Not,
    SortKey,
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
    Range,
    Scan,
    Shared,
    Sort,
    UnionAll,
    Values,
)
from gquery.planner.logical.tree import column_ids, free_columns, fresh_copy, remap_expr, transform_up, used_columns
from gquery.planner.rules.limit_into_sort import limit_into_sort

_LEFT_ONLY = (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE)


def decorrelate(plan: Plan) -> Plan | None:
    """Every Apply replaced by joins, innermost first."""
    new = transform_up(plan, lambda n: _apply(n) if isinstance(n, Apply) else n)
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
    if plan.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SINGLE) and (scalar := _scalar_aggregate(plan, outer)):
        return scalar
    lifted = _lift(right, outer)
    if lifted is not None:
        terms = lifted.terms
        if plan.kind is JoinKind.MARK:
            terms = tuple(t for term in terms for t in _two_valued(term))
        return Join(left, lifted.plan, plan.kind, conjunction((*conjuncts(plan.condition), *terms)), plan.mark)
    return _by_domain(plan, right, outer)


def _constant_row(plan: Plan) -> tuple[tuple[Column, Expr], ...] | None:
    """The expressions of ``SELECT expressions`` without FROM."""
    if isinstance(plan, Project) and plan.source == Values((), ((),)):
        return plan.exprs
    return None


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


def _aggregate_inputs(plan: Aggregate) -> tuple[Expr, ...]:
    return (
        *(e for _, e in plan.keys),
        *(a for _, call in plan.aggregates for a in call.args),
        *(call.filter for _, call in plan.aggregates if call.filter is not None),
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
    aggregates = lifted.plan.aggregates
    grouped = Aggregate(lifted.plan.source, lifted.plan.keys, tuple((_inner(c, a), a) for c, a in aggregates))
    top: Plan = Join(plan.left, grouped, JoinKind.LEFT, conjunction(lifted.terms))
    inner = {c.id: n for (c, _), (n, _) in zip(aggregates, grouped.aggregates, strict=True)}
    passed = tuple((c, c) for c in plan.left.columns)
    top = Project(top, passed + tuple((c, _empty_group(inner[c.id], a)) for c, a in aggregates))
    for p in reversed(projections):
        top = Project(top, passed + p.exprs)
    return top


def _inner(c: Column, call: AggregateCall) -> Column:
    return new_column(c.name, c.dtype, call.nullable)


def _empty_group(c: Column, call: AggregateCall) -> Expr:
    """The value over no rows where the grouped aggregate found none: 0 for counts, NULL for all others."""
    c = Column(c.id, c.name, c.dtype, True)
    return Case(((IsNull(c), Literal(0, c.dtype)),), c) if call.function == "count" else c


# ---- the dependent domain --------------------------------------------------------------------------------------------


def _by_domain(plan: Apply, right: Plan, outer: frozenset[int]) -> Plan:
    """Apply(left, right) as a join of left with the right side computed for all distinct outer values."""
    domain = _Domain(plan.left, outer)
    dependent, names = domain.push(right)
    matches = tuple(_same(c, names[c.id]) for c in domain.columns)
    return Join(plan.left, dependent, plan.kind, conjunction((*conjuncts(plan.condition), *matches)), plan.mark)


def _same(a: Expr, b: Expr) -> Expr:
    """Equality under which NULLs are equal; the plain one where there are none."""
    if not a.nullable or not b.nullable:
        return Call("eq", (a, b), BOOLEAN, a.nullable or b.nullable)
    return Call("is_not_distinct_from", (a, b), BOOLEAN, False)


class _Domain:
    """D, the distinct values of some columns of a plan; each use of D is a copy with columns of its own."""

    def __init__(self, left: Plan, outer: frozenset[int]) -> None:
        self.outer = outer
        self.columns = tuple(c for c in left.columns if c.id in outer)
        # a part of the left side that makes all these columns will do: D may hold more values than are asked for
        while isinstance(left, Join):
            if outer <= column_ids(left.left) and left.kind is not JoinKind.FULL:
                left = left.left
            elif outer <= column_ids(left.right) and left.kind is JoinKind.INNER:
                left = left.right
            else:
                break
        self.left = left

    def make(self) -> tuple[Plan, dict[int, Column]]:
        """A new D, and its column for every outer column."""
        copy, columns = fresh_copy(self.left)
        names = {c.id: new_column(c.name, c.dtype, c.nullable) for c in self.columns}
        # as nullable as the left side gives them: a join in the copy may fill them with NULLs
        keys = tuple((names[c.id], Column(columns[c.id].id, c.name, c.dtype, c.nullable)) for c in self.columns)
        return Aggregate(copy, keys, ()), names

    def push(self, plan: Plan) -> tuple[Plan, dict[int, Column]]:
        """``plan`` for every row of D: its own columns and D's."""
        if not free_columns(plan) & self.outer:
            d, names = self.make()
            if isinstance(plan, Values) and not plan.columns and len(plan.rows) == 1:
                return d, names
            return Join(plan, d, JoinKind.INNER, TRUE), names
        match plan:
            case Filter(source=s, predicate=p):
                new, names = self.push(s)
                return Filter(new, remap_expr(p, names)), names
            case Project(source=s, exprs=exprs):
                new, names = self.push(s)
                carried = tuple((c, c) for c in names.values())
                return Project(new, tuple((c, remap_expr(e, names)) for c, e in exprs) + carried), names
            case Sort(source=s, limit=None, offset=0):
                return self.push(s)  # only the order within one outer row could matter, and nothing here asks for it
            case Aggregate():
                return self._aggregate(plan)
            case Join():
                return self._join(plan)
            case UnionAll():
                return self._union(plan)
            case Sort() | Limit():
                return self._limit(plan)
            case Values():
                return self._values(plan)
            case Scan() | Range() | Shared() | Apply():
                raise AssertionError("a leaf uses no outer column, and inner Applies are gone")

    def _aggregate(self, plan: Aggregate) -> tuple[Plan, dict[int, Column]]:
        new, below = self.push(plan.source)
        names = {i: new_column(c.name, c.dtype, c.nullable) for i, c in below.items()}
        by = tuple((names[i], below[i]) for i in below)
        keys = tuple((c, remap_expr(e, below)) for c, e in plan.keys)
        calls = tuple((c, _remap_call(a, below)) for c, a in plan.aggregates)
        if keys:
            return Aggregate(new, keys + by, calls), names
        # without keys there is a row for every row of D, also where the group is empty
        inner = {c.id: _inner(c, a) for c, a in calls}
        grouped = Aggregate(new, by, tuple((inner[c.id], a) for c, a in calls))
        d, outer = self.make()
        join = Join(d, grouped, JoinKind.LEFT, conjunction(tuple(_same(outer[i], names[i]) for i in outer)))
        out = tuple((c, _empty_group(inner[c.id], a)) for c, a in calls)
        return Project(join, out + tuple((c, c) for c in outer.values())), outer

    def _join(self, plan: Join) -> tuple[Plan, dict[int, Column]]:
        in_left = bool(free_columns(plan.left) & self.outer)
        in_right = bool(free_columns(plan.right) & self.outer)
        if plan.kind is JoinKind.INNER and not (in_left and in_right):
            if in_right:
                right, names = self.push(plan.right)
                left = plan.left
            else:
                left, names = self.push(plan.left)
                right = plan.right
            return Join(left, right, plan.kind, remap_expr(plan.condition, names)), names
        left, names = self.push(plan.left)
        if not in_right and plan.kind is not JoinKind.FULL:
            return replace(plan, left=left, condition=remap_expr(plan.condition, names)), names
        right, others = self.push(plan.right)
        same = tuple(_same(names[i], others[i]) for i in names)
        condition = conjunction((*conjuncts(remap_expr(plan.condition, names)), *same))
        join = replace(plan, left=left, right=right, condition=condition)
        if plan.kind is not JoinKind.FULL:
            return join, names
        both = {i: new_column(c.name, c.dtype, True) for i, c in names.items()}
        nullable = {c.id: c for c in join.columns}
        merged = tuple(
            (both[i], Case(((Not(IsNull(a := nullable[names[i].id])), a),), nullable[others[i].id])) for i in names
        )
        return Project(join, tuple((c, c) for c in join.columns) + merged), both

    def _union(self, plan: UnionAll) -> tuple[Plan, dict[int, Column]]:
        names = {c.id: new_column(c.name, c.dtype, c.nullable) for c in self.columns}
        pushed = [self.push(s) for s in plan.sources]
        inputs = tuple(
            row + tuple(below[c.id] for c in self.columns) for row, (_, below) in zip(plan.inputs, pushed, strict=True)
        )
        columns = plan.columns + tuple(names[c.id] for c in self.columns)
        return UnionAll(tuple(p for p, _ in pushed), inputs, columns), names

    def _values(self, plan: Values) -> tuple[Plan, dict[int, Column]]:
        """Constant rows that use outer columns: one projection of D for each."""
        rows: list[Plan] = []
        inputs: list[tuple[Column, ...]] = []
        for row in plan.rows:
            d, names = self.make()
            columns = tuple(new_column(c.name, c.dtype, c.nullable) for c in plan.columns)
            exprs = tuple((c, remap_expr(e, names)) for c, e in zip(columns, row, strict=True))
            rows.append(Project(d, exprs + tuple((names[c.id], names[c.id]) for c in self.columns)))
            inputs.append(columns + tuple(names[c.id] for c in self.columns))
        out = {c.id: new_column(c.name, c.dtype, c.nullable) for c in self.columns}
        union = UnionAll(tuple(rows), tuple(inputs), plan.columns + tuple(out[c.id] for c in self.columns))
        return union, out

    def _limit(self, plan: Sort | Limit) -> tuple[Plan, dict[int, Column]]:
        """LIMIT within a correlated subquery: ``ORDER BY key LIMIT 1`` is any of the rows that hold the least key."""
        if isinstance(plan, Limit) and (sorted_first := limit_into_sort(plan)) is not None:
            return self.push(sorted_first)
        pushed, outer = self.push(plan.source)
        if plan.limit == 0:
            return Filter(pushed, Literal(0, BOOLEAN)), outer
        keys = plan.keys if isinstance(plan, Sort) else ()
        values = [c for c in plan.columns if not any(k.expr == c for k in keys)]
        if plan.limit != 1 or plan.offset or len(values) > 1 or len(keys) > 1 or any(_nulls_lead(k) for k in keys):
            raise NotSupportedError("LIMIT in a correlated subquery, save LIMIT 1 of one column by at most one key")
        rows, columns = fresh_copy(pushed)
        names = {i: new_column(c.name, c.dtype, c.nullable) for i, c in outer.items()}
        if keys:
            others, copied = fresh_copy(pushed)
            by = {i: new_column(c.name, c.dtype, c.nullable) for i, c in outer.items()}
            key = keys[0].expr
            least = new_column("least", key.dtype, True)
            call = AggregateCall("max" if keys[0].descending else "min", (remap_expr(key, copied),), key.dtype)
            group = Aggregate(others, tuple((by[i], copied[outer[i].id]) for i in outer), ((least, call),))
            same = tuple(_same(columns[outer[i].id], by[i]) for i in outer)
            rows = Join(rows, group, JoinKind.INNER, conjunction((*same, _same(remap_expr(key, columns), least))))
        return (
            Aggregate(
                rows,
                tuple((names[i], columns[c.id]) for i, c in outer.items()),
                tuple((c, AggregateCall("any_value", (columns[c.id],), c.dtype)) for c in plan.columns),
            ),
            names,
        )


def _nulls_lead(key: SortKey) -> bool:
    return key.nulls_first and key.expr.nullable


def _remap_call(call: AggregateCall, names: dict[int, Column]) -> AggregateCall:
    args = tuple(remap_expr(a, names) for a in call.args)
    where = None if call.filter is None else remap_expr(call.filter, names)
    return AggregateCall(call.function, args, call.dtype, call.distinct, where)
