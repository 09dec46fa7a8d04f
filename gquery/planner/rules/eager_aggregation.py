"""What is aggregated by the row that it is joined to is aggregated first, and joined then.

    Aggregate by c.id: count(o.x)             Project c.id, CASE WHEN n IS NULL THEN 0 ELSE n END
      Join left on c.id = o.customer            Join left on c.id = key
        Scan c (id is unique)           =>        Scan c
        Scan o                                    Aggregate by key = o.customer: n = count(o.x)
                                                    Scan o

The table of a LEFT join is built over its right side. Where a key has many rows there, that is the dearest kind of table,
and each of its rows is then visited once more, in no order. Groups are made in one pass over the right side, and a table
over them has one row a key. An INNER join may stream the larger side instead, so it is left alone.

Right where each group is one left row (the keys hold a unique key of the left side) and all that is aggregated is of the
right side and cannot raise: groups that no left row asks for are made too. A left row without a match has one row of NULLs
in its group: aggregates skip it, so that COUNT is 0 and the others are NULL; COUNT(*) is 1.
"""

from __future__ import annotations

from gquery import tuning
from gquery.expression.expr import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    Expr,
    IsNull,
    Literal,
    new_column,
)
from gquery.expression.traverse import conjunction, conjuncts, walk
from gquery.expression.types import BOOLEAN, Kind
from gquery.functions import counts, declaration, gives_one_value
from gquery.functions.aggregate_record import OneValue, Total
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import Aggregate, Join, JoinKind, Plan, Project
from gquery.planner.logical.properties import is_unique
from gquery.planner.logical.shared import kinds_of, transform_kinds
from gquery.planner.logical.tree import column_ids, used_columns
from gquery.planner.rules.reduce_outer_joins import null_if_null, rejects_null

_TESTS = ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from", "like", "ilike", "contains")
_KINDS = kinds_of(JoinKind.LEFT)


def eager_aggregation(plan: Plan, estimator: Estimator) -> Plan | None:
    """Aggregates over LEFT joins, made below the join where each group is one left row."""
    new = transform_kinds(plan, _KINDS, lambda n: _move(n, estimator) if isinstance(n, Aggregate) and n.keys else n)
    return None if new is plan else new


def _move(plan: Aggregate, estimator: Estimator) -> Plan:
    join = plan.source
    if not isinstance(join, Join) or join.kind is not JoinKind.LEFT:
        return plan
    left, right = column_ids(join.left), column_ids(join.right)
    pairs = _pairs(join.condition, left, right)
    keys = [e for _, e in plan.keys]
    if not pairs or not all(isinstance(e, Column) and e.id in left for e in keys):
        return plan
    if not is_unique(join.left, frozenset(e.id for e in keys if isinstance(e, Column))):
        return plan
    if not all(_is_of_left(a, left) or _is_of_right(a, right) for _, a in plan.aggregates):
        return plan
    if is_unique(join.right, frozenset(b.id for _, b in pairs)) or not _is_gain(join, pairs, estimator):
        return plan
    names = {b.id: new_column(b.name, b.dtype, b.nullable) for _, b in pairs}
    made = {c.id: new_column(c.name, c.dtype, a.nullable) for c, a in plan.aggregates if not _is_of_left(a, left)}
    calls = tuple((made[c.id], a) for c, a in plan.aggregates if c.id in made)
    groups = Aggregate(join.right, tuple((names[b.id], b) for b in dict.fromkeys(b for _, b in pairs)), calls)
    on = tuple(Call("eq", (a, names[b.id]), BOOLEAN, a.nullable or b.nullable) for a, b in pairs)
    values = [(c, a.args[0] if c.id not in made else _result(made[c.id], a)) for c, a in plan.aggregates]
    return Project(Join(join.left, groups, JoinKind.LEFT, conjunction(on)), (*plan.keys, *values))


def _pairs(condition: Expr, left: frozenset[int], right: frozenset[int]) -> list[tuple[Expr, Column]]:
    """The condition as (expression of the left side, column of the right side); nothing if it asks for more."""
    out: list[tuple[Expr, Column]] = []
    for term in conjuncts(condition):
        if not (isinstance(term, Call) and term.function == "eq"):
            return []
        a, b = term.args
        if not (isinstance(b, Column) and b.id in right):
            a, b = b, a
        if not (isinstance(b, Column) and b.id in right and used_columns(a) and used_columns(a) <= left):
            return []
        out.append((a, b))
    return out


def _is_of_left(call: AggregateCall, left: frozenset[int]) -> bool:
    """Whether a call only names a value of the left row."""
    return gives_one_value(call) and used_columns(call.args[0]) <= left


def _is_of_right(call: AggregateCall, right: frozenset[int]) -> bool:
    """Whether a call can be made over right rows alone, and over a row of NULLs in their place finds nothing to count."""
    declared = declaration(call)
    if isinstance(declared.only, OneValue) or not declared.skips_null or call.distinct:
        return False
    if call.order or not all(used_columns(e) <= right and _never_raises(e) for e in call.expressions):
        return False
    if isinstance(declared.only, Total) and call.args[0].dtype.kind in (Kind.BIGINT, Kind.UBIGINT):
        return False  # may not fit
    if call.filter is not None and rejects_null(call.filter) & right:
        return True
    return all(null_if_null(e) & right for e in call.args) and (bool(call.args) or call.filter is None)


def _never_raises(e: Expr) -> bool:
    return all(not isinstance(x, Call | Cast) or (isinstance(x, Call) and x.function in _TESTS) for x in walk(e))


def _result(column: Column, call: AggregateCall) -> Expr:
    """The value for a left row, whose group may not be there."""
    found = Column(column.id, column.name, column.dtype, True)
    if not counts(call):
        return found
    alone = 1 if not call.args and call.filter is None else 0  # COUNT(*) counts the left row itself
    return Case(((IsNull(found), Literal(alone, column.dtype)),), found)


def _is_gain(join: Join, pairs: list[tuple[Expr, Column]], estimator: Estimator) -> bool:
    rows = estimator.rows(join.right)
    groups = 1.0
    for _, b in pairs:
        groups *= estimator.distinct(b, rows)
    groups = min(groups, rows)
    limits = tuning.semi_joins
    return rows >= limits.rows_a_group * groups and estimator.rows(join.left) >= limits.least_probe_selectivity * groups
