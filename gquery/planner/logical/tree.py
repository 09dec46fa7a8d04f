"""The recursion over plans: every walk, rewrite and renaming of a plan is here, and nowhere else.

Rules are written against these functions, so that a new node is one case in `sources`, `with_sources`, `expressions`
and `with_expressions`. All of them hand back the same object where nothing changed, so "did it change" is ``is``, and
what is known of a subplan (free columns, unique keys) stays valid in the cache that hangs on the node itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar, assert_never

from gquery.expression.expr import (
    Column,
    Exists,
    Expr,
    InSubquery,
    ScalarSubquery,
    SortKey,
    new_column,
    same_objects,
)
from gquery.expression.traverse import transform as transform_expr
from gquery.expression.windows import with_parts
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Filter,
    Fixpoint,
    GroupingSets,
    Join,
    Limit,
    Plan,
    Project,
    Range,
    Scan,
    Shared,
    Sort,
    UnionAll,
    Unnest,
    Values,
    Window,
    WorkingTable,
    output_ids,
)
from gquery.runtime.records import replace

Subquery = ScalarSubquery | Exists | InSubquery
T = TypeVar("T")


def cached(plan: Plan, name: str, compute: Callable[[], T]) -> T:
    """A fact about a plan, computed once and kept on the (frozen) node itself."""
    known = plan.__dict__
    if name not in known:
        known[name] = compute()
    value: T = known[name]
    return value


# ---- one node --------------------------------------------------------------------------------------------------------


def with_sources(plan: Plan, new: tuple[Plan, ...]) -> Plan:
    """``plan`` over other sources; the same object where they are the same objects."""
    old = plan.sources
    if not old or (old[0] is new[0] and (len(old) == 1 or same_objects(old, new))):
        return plan
    made: Plan
    match plan:
        case Join():
            made = Join(new[0], new[1], plan.kind, plan.condition, plan.mark)
        case Filter():
            made = Filter(new[0], plan.predicate)
        case Project():
            made = Project(new[0], plan.exprs)
        case Aggregate():
            made = Aggregate(new[0], plan.keys, plan.aggregates, plan.sets)
        case Window():
            made = Window(new[0], plan.partition, plan.order, plan.calls, plan.first)
        case Unnest() | Fixpoint():
            made = replace(plan, source=new[0])
        case Sort():
            made = Sort(new[0], plan.keys, plan.limit, plan.offset)
        case Limit():
            made = Limit(new[0], plan.limit, plan.offset)
        case Apply():
            made = Apply(new[0], new[1], plan.kind, plan.condition, plan.mark)
        case UnionAll():
            made = UnionAll(new, plan.inputs, plan.columns)
        case Scan() | Values() | Range() | Shared() | WorkingTable():
            return plan
        case _:
            assert_never(plan)
    made.memo_expressions, made.memo_subqueries = plan.memo_expressions, plan.memo_subqueries  # which stay
    return made


def expressions(plan: Plan) -> tuple[Expr, ...]:
    """The expressions of the node itself, in a fixed order (`with_expressions` takes them back)."""
    found = plan.memo_expressions
    if found is None:
        found = plan.memo_expressions = _expressions(plan)
    return found


def _expressions(plan: Plan) -> tuple[Expr, ...]:
    match plan:  # most first: each class that a node is not of takes 50 ns
        case Join(condition=c):
            return (c,)
        case Project(exprs=exprs):
            return tuple([e for _, e in exprs])
        case Aggregate(keys=keys, aggregates=aggregates):
            out = [e for _, e in keys]
            for _, call in aggregates:
                out.extend(call.expressions)
            return tuple(out)
        case Filter(predicate=p):
            return (p,)
        case Scan() | Shared() | UnionAll() | Limit() | Range() | WorkingTable() | Fixpoint():
            return ()
        case Sort(keys=sort_keys):
            return tuple(k.expr for k in sort_keys)
        case Apply(condition=c):
            return (c,)
        case Values(rows=rows):
            return tuple(e for row in rows for e in row)
        case Window(partition=partition, order=order, calls=windows):
            return (*partition, *(k.expr for k in order), *(e for _, call in windows for e in call.expressions))
        case Unnest(lists=lists):
            return tuple(e for _, e in lists)
        case _:
            assert_never(plan)


def with_expressions(plan: Plan, new: tuple[Expr, ...]) -> Plan:
    """``plan`` with other expressions, in the order of `expressions`; the same object where nothing changed."""
    if same_objects(expressions(plan), new):
        return plan
    it = iter(new)
    match plan:
        case Scan() | Range() | Shared() | WorkingTable() | Limit() | UnionAll() | Fixpoint():
            return plan
        case Values():
            return Values(plan.columns, tuple(tuple(next(it) for _ in row) for row in plan.rows))
        case Filter():
            return Filter(plan.source, next(it))
        case Project():
            return Project(plan.source, tuple((c, next(it)) for c, _ in plan.exprs))
        case Join() | Apply():
            return replace(plan, condition=next(it))
        case Sort():
            keys = tuple(SortKey(next(it), k.descending, k.nulls_first) for k in plan.keys)
            return Sort(plan.source, keys, plan.limit, plan.offset)
        case Aggregate():
            group = tuple((c, next(it)) for c, _ in plan.keys)
            calls = tuple((c, call.mapped(lambda _: next(it))) for c, call in plan.aggregates)
            return Aggregate(plan.source, group, calls, plan.sets)
        case Window():
            partition = tuple(next(it) for _ in plan.partition)
            keys = tuple(SortKey(next(it), k.descending, k.nulls_first) for k in plan.order)
            windows = tuple((c, with_parts(call, it)) for c, call in plan.calls)
            return Window(plan.source, partition, keys, windows, plan.first)
        case Unnest():
            return replace(plan, lists=tuple((c, next(it)) for c, _ in plan.lists))
        case _:
            assert_never(plan)


def map_expressions(plan: Plan, f: Callable[[Expr], Expr]) -> Plan:
    """``f`` applied to every expression of the node itself (whole expressions, not their parts)."""
    new, is_new = [], False
    for e in expressions(plan):
        made = f(e)
        is_new = is_new or made is not e
        new.append(made)
    return with_expressions(plan, tuple(new)) if is_new else plan


# ---- the recursion ---------------------------------------------------------------------------------------------------


def transform_up(plan: Plan, f: Callable[[Plan], Plan]) -> Plan:
    """``f`` applied to every node, sources first. Plans inside subquery expressions are left alone."""
    below = plan.sources
    if not below:
        return f(plan)
    new, is_new = [], False
    for s in below:
        made = transform_up(s, f)
        is_new = is_new or made is not s
        new.append(made)
    return f(with_sources(plan, tuple(new)) if is_new else plan)


def walk(plan: Plan) -> Iterator[Plan]:
    """The plan and every plan below it, parents first, without those inside subquery expressions."""
    stack = [plan]
    while stack:
        node = stack.pop()
        yield node
        if below := node.sources:
            stack.extend(below[::-1])


def subqueries(e: Expr) -> tuple[Subquery, ...]:
    """The subquery expressions in ``e``, outermost first, each once. One does not remember itself: that would be a circle."""
    if (known := e.memo_subqueries) is not None:
        return known
    own: tuple[Subquery, ...] = (e,) if isinstance(e, Subquery) else ()
    for k in e.children:
        if more := subqueries(k) if (seen := k.memo_subqueries) is None else seen:
            own = tuple({id(s): s for s in (*own, *more)}.values()) if own else more
    if not own or own[0] is not e:
        e.memo_subqueries = own
    return own


def has_subquery(e: Expr) -> bool:
    return bool(subqueries(e))


def own_subqueries(plan: Plan) -> tuple[Subquery, ...]:
    """The subquery expressions of the node itself."""
    found = plan.memo_subqueries
    if found is None:
        found = ()
        for e in expressions(plan):
            found += subqueries(e) if e.memo_subqueries is None else e.memo_subqueries
        plan.memo_subqueries = found
    return found


# ---- columns ---------------------------------------------------------------------------------------------------------

_NO_COLUMNS: frozenset[int] = frozenset()


def used_columns(e: Expr) -> frozenset[int]:
    """Ids of the columns that an expression reads, with those that its subqueries' plans read and do not make."""
    if (known := e.memo_columns) is not None:
        return known
    used = frozenset((e.id,)) if isinstance(e, Column) else free_columns(e.plan) if isinstance(e, Subquery) else _NO_COLUMNS
    for k in e.children:
        more = used_columns(k)
        used = used | more if used and more else used or more
    e.memo_columns = used
    return used


def column_ids(plan: Plan) -> frozenset[int]:
    """Ids of the plan's output columns."""
    found = plan.memo_ids
    if found is None:
        found = plan.memo_ids = output_ids(plan, column_ids)
    return found


def free_columns(plan: Plan) -> frozenset[int]:
    """Ids that a plan uses and nothing below makes: the columns of outer queries that it depends on (correlation)."""
    return cached(plan, "_free_columns", lambda: _free_columns(plan))


def _free_columns(plan: Plan) -> frozenset[int]:
    used: set[int] = set()
    for e in expressions(plan):
        used |= used_columns(e)
    match plan:
        case Apply(left=left, right=right):  # the right side may use the left's columns
            used |= free_columns(right)
            return frozenset(used - column_ids(left) - column_ids(right)) | free_columns(left)
        case _:
            free: frozenset[int] = frozenset()
            for s in plan.sources:
                used -= column_ids(s)
                free |= free_columns(s)
            return free | frozenset(used)


def made_columns(plan: Plan) -> tuple[Column, ...]:
    """The columns that the node itself makes (not those that it passes on)."""
    match plan:
        case Scan() | Values() | Shared() | WorkingTable() | UnionAll() | Fixpoint() | Aggregate():
            return plan.columns
        case Range(column=column):
            return (column,)
        case Project(exprs=exprs):
            return tuple(c for c, e in exprs if not (isinstance(e, Column) and e.id == c.id))
        case Window(calls=calls):
            return tuple(c for c, _ in calls)
        case Unnest(made=made):
            return made
        case Join(mark=mark) | Apply(mark=mark):
            return () if mark is None else (mark,)
        case Filter() | Sort() | Limit():
            return ()
        case _:
            assert_never(plan)


def remap_expr(e: Expr, columns: dict[int, Column], subplans: dict[int, Plan] | None = None) -> Expr:
    """Columns replaced by columns, also inside the plans of subqueries. A reference that was nullable stays so. ``subplans``:
    new plans of subqueries, by identity. One in several expressions stays one: two would make the same columns."""
    known = {} if subplans is None else subplans

    def one(x: Expr) -> Expr:
        match x:
            case Column():
                if (new := columns.get(x.id)) is None:
                    return x
                return new if new.nullable or not x.nullable else Column(new.id, new.name, new.dtype, True)
            case ScalarSubquery() | Exists() | InSubquery() if free_columns(x.plan) & columns.keys():
                return replace(x, plan=known.get(id(x.plan)) or known.setdefault(id(x.plan), remap(x.plan, columns)))
            case _:
                return x

    return transform_expr(e, one)


def remap(plan: Plan, columns: dict[int, Column]) -> Plan:
    """The plan reading and making other columns, by id. Ids that the mapping does not name stay."""
    return transform_up(plan, lambda node: remap_node(node, columns))


def remap_node(node: Plan, columns: dict[int, Column]) -> Plan:
    """`remap` of the node alone, without its sources."""

    def name(c: Column) -> Column:
        new = columns.get(c.id)
        if new is None:
            return c
        return new if new.nullable == c.nullable else Column(new.id, new.name, new.dtype, c.nullable)

    subplans: dict[int, Plan] = {}
    node = map_expressions(node, lambda e: remap_expr(e, columns, subplans))
    match node:
        case Scan() | Values() | Shared() | WorkingTable():
            return replace(node, columns=tuple(name(c) for c in node.columns))
        case Fixpoint():
            return replace(node, inputs=tuple(map(name, node.inputs)), columns=tuple(map(name, node.columns)))
        case Range():
            return replace(node, column=name(node.column))
        case UnionAll():
            inputs = tuple(tuple(name(c) for c in row) for row in node.inputs)
            return UnionAll(node.sources, inputs, tuple(name(c) for c in node.columns))
        case Project():
            return Project(node.source, tuple((name(c), e) for c, e in node.exprs))
        case Aggregate():
            keys = tuple((name(c), e) for c, e in node.keys)
            sets = None if node.sets is None else GroupingSets(node.sets.sets, name(node.sets.mask))
            return Aggregate(node.source, keys, tuple((name(c), a) for c, a in node.aggregates), sets)
        case Window():
            return replace(node, calls=tuple((name(c), call) for c, call in node.calls))
        case Unnest(lists=lists, ordinal=ordinal):
            made = tuple((name(c), e) for c, e in lists)
            return replace(node, lists=made, ordinal=None if ordinal is None else name(ordinal))
        case Join() | Apply():
            return node if node.mark is None else replace(node, mark=name(node.mark))
        case Filter() | Sort() | Limit():
            return node
        case _:
            assert_never(node)


def fresh_copy(plan: Plan) -> tuple[Plan, dict[int, Column]]:
    """The same plan making columns with new ids, and the new column for every old id: nullable as the plan gives it, where an
    outer join inside has made it so."""
    columns: dict[int, Column] = {}
    _mint(plan, columns)
    made = _remap_all(plan, columns, {})
    given = {c.id: columns[c.id] for c in plan.columns if c.nullable and c.id in columns}
    return made, columns | {i: Column(c.id, c.name, c.dtype, True) for i, c in given.items()}


def _mint(plan: Plan, columns: dict[int, Column]) -> None:
    for node in walk(plan):
        for c in made_columns(node):
            columns[c.id] = new_column(c.name, c.dtype, c.nullable)
        for e in expressions(node):
            for sub in subqueries(e):
                _mint(sub.plan, columns)


def _remap_all(plan: Plan, columns: dict[int, Column], plans: dict[int, Plan]) -> Plan:
    """`remap`, but inside subqueries too where they make columns of their own. ``plans``: new ones of subqueries, by identity,
    so that one which stands in several nodes stays one."""

    def inside(x: Expr) -> Expr:
        if isinstance(x, Subquery):
            made = plans.get(id(x.plan)) or plans.setdefault(id(x.plan), _remap_all(x.plan, columns, plans))
            return replace(x, plan=made)
        return x

    return remap(transform_up(plan, lambda n: map_expressions(n, lambda e: transform_expr(e, inside))), columns)
