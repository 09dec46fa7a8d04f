"""Binding of ASOF joins: each left row beside the right row whose key is nearest among those that match.

`JoinKind.ASOF` keeps every left row. The other kinds are made of it: INNER and SEMI keep the rows that found one, ANTI the
others. RIGHT and FULL number the right side's rows, and join them again, by their numbers, with what found one of them.

    t ASOF FULL JOIN u ON t.x >= u.y    =>    (t ASOF JOIN u ON t.x >= u.y) FULL JOIN u ON n = n, the numbers of u

Keys that no 64 bits hold in order, as texts, are compared by their ranks among the values of both sides.
"""

from __future__ import annotations

from gquery.errors import BindError
from gquery.expression.expr import TRUE, Call, Column, Expr, IsNull, Not, SortKey, new_column
from gquery.expression.traverse import conjunction, conjuncts
from gquery.expression.types import BIGINT, BOOLEAN, INT64, type_bounds
from gquery.expression.windows import WindowCall
from gquery.functions import call
from gquery.planner.logical.bounds import Comparison, comparisons
from gquery.planner.logical.nodes import Aggregate, Filter, Join, JoinKind, Plan, Project, Query, UnionAll, Window
from gquery.planner.logical.tree import column_ids, fresh_copy, remap_expr
from gquery.sql.binding.limits import numbered
from gquery.sql.binding.shared import named, one_use


def asof_join(left: Plan, right: Plan, kind: JoinKind, condition: Expr) -> Plan:
    """The plan of an ASOF join of a kind. BindError where the condition does not compare the sides once."""
    found = comparisons(conjuncts(condition), column_ids(left), column_ids(right))
    if len(found) != 1:
        how = "has no comparison" if not found else "has several comparisons"
        raise BindError(f"an ASOF JOIN takes one comparison of both sides by >=, >, <= or <; this one {how}")
    (key,) = found
    if kind is JoinKind.FULL:
        pairs, rows, same = _numbered(left, right, JoinKind.LEFT, condition)
        return Join(pairs, rows, JoinKind.FULL, same)
    if not _is_ordinal(key.build):
        left, right, condition, key = _ranked(left, right, condition, key)
    if kind is JoinKind.LEFT:
        return Join(left, right, JoinKind.ASOF, condition)
    mark = key.build
    if not isinstance(mark, Column):  # of no right row it may be anything
        mark = new_column("found", BOOLEAN, False)
        right = Project(right, (*((c, c) for c in right.columns), (mark, TRUE)))
    is_missing = IsNull(Column(mark.id, mark.name, mark.dtype, True))
    joined = Join(left, right, JoinKind.ASOF, condition)
    return Filter(joined, is_missing if kind is JoinKind.ANTI else Not(is_missing))


def right_asof_join(left: Plan, right: Plan, condition: Expr) -> Plan:
    """The plan of an ASOF RIGHT join: the rows of INNER, and the right side's others."""
    pairs, rows, same = _numbered(left, right, JoinKind.INNER, condition)
    return Join(rows, pairs, JoinKind.LEFT, same)


def _numbered(left: Plan, right: Plan, kind: JoinKind, condition: Expr) -> tuple[Plan, Plan, Expr]:
    """The ASOF join of a kind with numbered rows of the right side, these rows, and that both have one number."""
    rows, number = numbered(right)
    rows, again, columns = _twice(rows)
    pairs = asof_join(left, again, kind, remap_expr(condition, columns))
    own = next(c for c in pairs.columns if c.id == columns[number.id].id)
    return pairs, rows, call("eq", own, number)


def _twice(plan: Plan) -> tuple[Plan, Plan, dict[int, Column]]:
    """A plan that is computed once for two uses: under its own columns, and under others, by the ids of its own."""
    copy, new = fresh_copy(plan)
    flags = {c.id: c for c in copy.columns}
    outputs = tuple(flags[new[c.id].id] if c.id in new else c for c in plan.columns)
    shared = named(Query(copy, outputs, tuple(c.name for c in outputs)), "ASOF")
    first, second = one_use(shared), one_use(shared)
    own = Project(first.plan, tuple(zip(plan.columns, first.outputs, strict=True)))
    return own, second.plan, {c.id: o for c, o in zip(plan.columns, second.outputs, strict=True)}


# ---- keys by their ranks ---------------------------------------------------------------------------------------------


def _is_ordinal(key: Expr) -> bool:
    """Whether values of its type are in the order of numbers of 64 bits."""
    limits = type_bounds(key.dtype)
    return key.dtype.is_float or (limits is not None and limits.within(INT64) and key.dtype != BOOLEAN)


def _ranked(left: Plan, right: Plan, condition: Expr, key: Comparison) -> tuple[Plan, Plan, Expr, Comparison]:
    """Both sides with the ranks of their keys, and the condition and its comparison of these."""
    left, left_values, left_key = _with_key(left, key.bound.expr)
    right, right_values, right_key = _with_key(right, key.build)
    value = new_column("value", left_key.dtype, True)
    inputs = tuple((next(c for c in v.columns),) for v in (left_values, right_values))
    values = UnionAll((left_values, right_values), inputs, (value,))
    distinct, rank = new_column("value", value.dtype, True), new_column("rank", BIGINT, False)
    one_each = Aggregate(Filter(values, Not(IsNull(value))), ((distinct, value),), ())
    ranks = Window(one_each, (), (SortKey(distinct),), ((rank, WindowCall("row_number", (), BIGINT, False)),))
    first, again, columns = _twice(ranks)
    left = Join(left, first, JoinKind.LEFT, call("eq", left_key, distinct))
    right = Join(right, again, JoinKind.LEFT, call("eq", right_key, columns[distinct.id]))
    sides = {key.bound.expr: _nullable(rank), key.build: _nullable(columns[rank.id])}
    assert isinstance(key.term, Call)
    compared = call(key.term.function, *(sides[a] for a in key.term.args))
    terms = tuple(compared if t is key.term else t for t in conjuncts(condition))
    (found,) = comparisons((compared,), column_ids(left), column_ids(right))
    return left, right, conjunction(terms), found


def _with_key(plan: Plan, key: Expr) -> tuple[Plan, Plan, Column]:
    """A plan with a column for a key, the keys of its rows alone, and that column."""
    column = new_column("key", key.dtype, key.nullable)
    own, again, columns = _twice(Project(plan, (*((c, c) for c in plan.columns), (column, key))))
    return own, Project(again, ((new_column("key", key.dtype, key.nullable), columns[column.id]),)), column


def _nullable(c: Column) -> Column:
    return Column(c.id, c.name, c.dtype, True)
