"""Every column and call says NULL is possible exactly where what lies below it does.

    Project a.x (NULL?)                     Project a.x
      Join inner                      =>      Join inner          it was a LEFT join before
        Scan a                                  Scan a            and the table holds no NULLs

Columns carry the flag, so it goes stale where joins change their kind. NULL costs nothing in kernels where a column
has none, and NOT IN is a plain ANTI join there: so it is worth being exact. Sources' counts of NULLs are believed.
"""

from __future__ import annotations

from typing import assert_never

from gquery.expression.expr import (
    Call,
    Column,
    Exists,
    Expr,
    InSubquery,
    ScalarSubquery,
    same_objects,
)
from gquery.expression.traverse import transform
from gquery.expression.types import Kind
from gquery.functions import FUNCTIONS, may_give_null
from gquery.functions.windows import with_nullability
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Query,
    Range,
    Scan,
    Shared,
    Sort,
    UnionAll,
    Unnest,
    Values,
    Window,
    WorkingTable,
)
from gquery.planner.logical.shared import nodes
from gquery.planner.logical.tree import (
    Subquery,
    expressions,
    free_columns,
    map_expressions,
    used_columns,
    with_sources,
)
from gquery.runtime.records import cached_property, replace

Columns = dict[int, Column]
_NO_FLAGS: frozenset[tuple[int, bool]] = frozenset()
_PAIRS = (Join, Apply)
_PASSING = (Filter, Sort, Limit)
_FILLING = (JoinKind.LEFT, JoinKind.SINGLE, JoinKind.ASOF, JoinKind.FULL)  # joins that put NULLs into columns of a side


def refresh_nullability(query: Query, is_pruned: bool = False) -> Query | None:
    """The query with the flags of all columns and calls as they follow from its sources. Where it ``is_pruned``, all columns of
    its sources are read."""
    plan = _refresh(query.plan, {}, Read(query, is_pruned))
    if plan is query.plan:
        return None
    made = {c.id: c for c in plan.columns}
    return Query(plan, tuple(made[c.id] for c in query.outputs), query.names)


class Read:
    """What is read of a query, and what has been made of its subqueries."""

    def __init__(self, query: Query, is_pruned: bool) -> None:
        self._query, self._is_pruned = query, is_pruned
        # by plan and flags of outer columns: the plan, so that it stays, and what was made of it
        self.subqueries: dict[tuple[int, tuple[tuple[int, bool], ...]], tuple[Plan, Plan]] = {}

    def of(self, plan: Scan) -> list[tuple[Column, int]]:
        """The columns of a source that anything reads, with their fields. Before unused ones are pruned it has many others."""
        pairs = zip(plan.columns, plan.fields, strict=True)
        return list(pairs) if self._is_pruned else [(c, f) for c, f in pairs if c.id in self.columns]

    @cached_property
    def columns(self) -> frozenset[int]:
        """Those that anything reads: asking a file for the NULLs of others costs time, and nobody looks at their flags. Made
        where a source may have to look for NULLs, which is seldom a second time."""
        read = {c.id for c in self._query.outputs}
        for node in nodes(self._query.plan):
            for e in expressions(node):
                read |= used_columns(e)
            if isinstance(node, UnionAll):
                read.update(c.id for row in node.inputs for c in row)
        return frozenset(read)


def _refresh(plan: Plan, known: Columns, read: Read) -> Plan:
    """The plan below and the node itself. ``known`` is every column that was met, with the flag that it has where the walk
    stands: no two nodes make one column, so a node finds its sources' columns there, and those of outer queries."""
    if isinstance(plan, Scan):
        return _scan(plan, known, read)
    new, is_new = [], False
    for s in plan.sources:  # Apply's right side after its left
        made = _refresh(s, known, read)
        is_new = is_new or made is not s
        new.append(made)
    if is_new:
        plan = with_sources(plan, tuple(new))
    for e in expressions(plan):
        if not _is_current(e, known):  # which is looked at first: flags seldom change
            plan = map_expressions(plan, lambda e: _expression(e, known, read))
            break
    plan = _columns(plan)
    if isinstance(plan, _PAIRS):
        if plan.mark is not None or plan.kind in _FILLING:
            known.update({c.id: c for c in plan.columns})
    elif not isinstance(plan, _PASSING):
        known.update({c.id: c for c in plan.columns})
    return plan


def _scan(plan: Scan, known: Columns, read: Read) -> Plan:
    """A table with right flags on the columns that are read."""
    pairs = read.of(plan)
    # of type NULL are columns that a file has but nobody can read: asking for their statistics is an error
    asked = [(c, f) for c, f in pairs if c.nullable and c.dtype.kind is not Kind.NULL]
    full = {c.id for c, f in asked if not plan.source.has_nulls(f)}
    known.update([(c.id, _as(c, False) if c.id in full else c) for c, _ in pairs])
    if not full:
        return plan
    return replace(plan, columns=tuple([_as(c, False) if c.id in full else c for c in plan.columns]))


def _expression(e: Expr, known: Columns, read: Read) -> Expr:
    """The expression with right flags; itself where it has them."""
    if _is_current(e, known):
        return e

    def one(x: Expr) -> Expr:
        match x:
            case Column():
                made = known.get(x.id)
                return x if made is None or made.nullable == x.nullable else made
            case Call():
                nullable = _may_be_null(x)
                return x if nullable == x.nullable else replace(x, nullable=nullable)
            case ScalarSubquery() | Exists() | InSubquery():
                plan = _subquery(x.plan, known, read)
                return x if plan is x.plan else replace(x, plan=plan)
            case _:
                return x

    return transform(e, one)


def _subquery(plan: Plan, known: Columns, read: Read) -> Plan:
    """The plan of a subquery. One that stands in several expressions stays one: two of them would make the same columns. It is
    another only where columns of outer queries have other flags."""
    flags = tuple((i, known[i].nullable) for i in sorted(free_columns(plan)) if i in known)
    made = read.subqueries.get((id(plan), flags))
    if made is None:
        made = read.subqueries[id(plan), flags] = plan, _refresh(plan, known, read)
    return made[1]


def _is_current(e: Expr, known: Columns) -> bool:
    """Whether no flag in ``e`` has to change, as far as that is seen without its subqueries."""
    flags = _flags(e)
    if flags is None:
        return False
    for id_, nullable in flags:
        made = known.get(id_)
        if made is not None and made.nullable != nullable:
            return False
    return True


def _flags(e: Expr) -> frozenset[tuple[int, bool]] | None:
    """The columns that ``e`` reads, each with its flag; None where a call's flag is not what follows from its arguments, or
    where there is a subquery. Remembered: most expressions go through the rule twice, and into others between."""
    if (known := e.memo_flags) is not None:
        return None if isinstance(known, bool) else known
    found = _found_flags(e)
    e.memo_flags = False if found is None else found
    return found


def _found_flags(e: Expr) -> frozenset[tuple[int, bool]] | None:
    if isinstance(e, Column):
        return frozenset(((e.id, e.nullable),))
    if isinstance(e, Subquery) or (isinstance(e, Call) and _may_be_null(e) != e.nullable):
        return None
    found = _NO_FLAGS
    for kid in e.children:
        more = kid.memo_flags
        if more is None:
            more = _flags(kid)
        if more is None or isinstance(more, bool):
            return None
        found = found | more if found and more else found or more
    return found


def _may_be_null(call: Call) -> bool:
    """The flag of a call as it follows from its arguments' flags."""
    function = FUNCTIONS.get(call.function)
    if function is None or not (function.strict or function.null_if_all):
        return call.nullable
    return function.may_be_null(call.args)


def _as(c: Column, nullable: bool) -> Column:
    return c if c.nullable == nullable else Column(c.id, c.name, c.dtype, nullable)


def _columns(plan: Plan) -> Plan:
    """The node with right flags on the columns that it makes; its sources and expressions have them, and so have tables."""
    match plan:  # most first
        case Filter():
            return plan
        case Join(mark=mark) | Apply(mark=mark):
            if mark is None or not mark.nullable or plan.condition.nullable:
                return plan
            return replace(plan, mark=_as(mark, False))
        case Project(exprs=exprs):
            if [c.nullable for c, _ in exprs] == [e.nullable for _, e in exprs]:
                return plan
            return replace(plan, exprs=tuple((_as(c, e.nullable), e) for c, e in exprs))
        case Aggregate(keys=keys, aggregates=calls):
            by = tuple((_as(c, e.nullable), e) for c, e in keys)
            of = tuple((_as(c, may_give_null(a, has_rows=bool(keys))), a) for c, a in calls)
            return plan if _same_pairs((*by, *of), (*keys, *calls)) else replace(plan, keys=by, aggregates=of)
        case Values(columns=columns, rows=rows):
            new = tuple(_as(c, any(row[i].nullable for row in rows)) for i, c in enumerate(columns))
            return plan if same_objects(new, columns) else replace(plan, columns=new)
        case Shared(columns=columns):
            new = tuple(_as(c, made.nullable) for c, made in zip(columns, plan.outputs, strict=True))
            return plan if same_objects(new, columns) else replace(plan, columns=new)
        case Window(calls=windows):
            found = tuple((c, with_nullability(call)) for c, call in windows)
            if all(c.nullable == call.nullable for c, call in found):
                return (
                    plan
                    if all(a is b for (_, a), (_, b) in zip(found, windows, strict=True))
                    else replace(plan, calls=found)
                )
            return replace(plan, calls=tuple((_as(c, call.nullable), call) for c, call in found))
        case UnionAll(columns=columns):
            sets = [{c.id: c.nullable for c in s.columns} for s in plan.sources]
            new = tuple(
                _as(c, any(flags[row[i].id] for flags, row in zip(sets, plan.inputs, strict=True)))
                for i, c in enumerate(columns)
            )
            inputs = tuple(
                tuple(_as(c, flags[c.id]) for c in row) for flags, row in zip(sets, plan.inputs, strict=True)
            )
            unchanged = same_objects(new, columns) and all(
                same_objects(a, b) for a, b in zip(inputs, plan.inputs, strict=True)
            )
            return plan if unchanged else UnionAll(plan.sources, inputs, new)
        case Fixpoint(inputs=inputs):
            below = {c.id: c for c in plan.source.columns}
            return replace(plan, inputs=tuple(_as(c, below[c.id].nullable) for c in inputs))
        case Scan() | Range() | WorkingTable() | Sort() | Limit() | Unnest():
            return plan
        case _:
            assert_never(plan)


def _same_pairs(a: tuple[tuple[Column, object], ...], b: tuple[tuple[Column, object], ...]) -> bool:
    return all(x is y for (x, _), (y, _) in zip(a, b, strict=True))
