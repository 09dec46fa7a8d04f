"""Aggregates of distinct values become two groups: first one row a value, then the aggregate over those.

    Aggregate by k: count(distinct x)       Aggregate by k: count(x)
      Scan t                          =>      Aggregate by k, x
                                                Scan t

Beside other aggregates, or for several different arguments, each set of distinct values is an aggregate of its own and
they are joined on the keys, NULLs taken as equal. MIN and MAX do not care for DISTINCT.
"""

from __future__ import annotations

from gquery.expression.expr import TRUE, AggregateCall, Call, Case, Column, Expr, Literal, new_column
from gquery.expression.traverse import conjunction
from gquery.expression.types import BOOLEAN
from gquery.planner.logical.nodes import Aggregate, Join, JoinKind, Plan
from gquery.planner.logical.tree import fresh_copy, remap_expr, transform_up

_INSENSITIVE = ("min", "max", "any_value")
Calls = tuple[tuple[Column, AggregateCall], ...]


def eliminate_distinct_aggregates(plan: Plan) -> Plan | None:
    """No aggregate is DISTINCT any more."""
    new = transform_up(plan, lambda n: _eliminate(n) if isinstance(n, Aggregate) else n)
    return None if new is plan else new


def _eliminate(plan: Aggregate) -> Plan:
    if not any(a.distinct for _, a in plan.aggregates):
        return plan
    calls = tuple((c, _plain(a) if a.function in _INSENSITIVE else a) for c, a in plan.aggregates)
    groups: dict[tuple[tuple[Expr, ...], Expr | None] | None, list[tuple[Column, AggregateCall]]] = {}
    for c, a in calls:
        groups.setdefault((a.args, a.filter) if a.distinct else None, []).append((c, a))
    parts = [(what, tuple(members)) for what, members in groups.items()]
    if len(parts) == 1:
        what, members = parts[0]
        return Aggregate(plan.source, plan.keys, members) if what is None else _two_groups(plan, members)
    return _joined(plan, [members for _, members in parts])


def _plain(a: AggregateCall) -> AggregateCall:
    return AggregateCall(a.function, a.args, a.dtype, False, a.filter)


def _two_groups(plan: Aggregate, calls: Calls) -> Aggregate:
    """Calls that are DISTINCT over the same arguments. A filter drops rows of the inner group's input: but never a
    group, as the group's row is there whatever its filtered values are."""
    args, where = calls[0][1].args, calls[0][1].filter
    keys = tuple((new_column(c.name, c.dtype, c.nullable), e) for c, e in plan.keys)
    values = tuple((new_column("value", a.dtype, a.nullable or where is not None), _where(a, where)) for a in args)
    inner = Aggregate(plan.source, keys + values, ())
    outer = tuple((c, k) for (c, _), (k, _) in zip(plan.keys, keys, strict=True))
    return Aggregate(
        inner,
        outer,
        tuple((c, AggregateCall(a.function, tuple(v for v, _ in values), a.dtype)) for c, a in calls),
    )


def _where(e: Expr, where: Expr | None) -> Expr:
    """The value, or NULL (which aggregates pass over) where the filter does not hold."""
    return e if where is None else Case(((where, e),), Literal(None, e.dtype))


def _joined(plan: Aggregate, parts: list[Calls]) -> Plan:
    """One aggregate a part, over copies of the source, joined on the keys. Every part has the same groups."""
    result: Plan | None = None
    first_keys: tuple[Column, ...] = ()
    names: dict[int, Column] = {}
    for calls in parts:
        if result is None:
            keys, source = plan.keys, plan.source
        else:
            source, names = fresh_copy(plan.source)
            keys = tuple((new_column(c.name, c.dtype, c.nullable), remap_expr(e, names)) for c, e in plan.keys)
        moved = tuple((c, _moved(a, names)) for c, a in calls)
        part = Aggregate(source, keys, moved)
        new: Plan = _two_groups(part, moved) if moved[0][1].distinct else part
        if result is None:
            result, first_keys = new, tuple(c for c, _ in keys)
        else:
            same = tuple(_same(a, b) for a, (b, _) in zip(first_keys, keys, strict=True))
            result = Join(result, new, JoinKind.INNER, conjunction(same) if same else TRUE)
    assert result is not None
    return result


def _moved(a: AggregateCall, names: dict[int, Column]) -> AggregateCall:
    where = None if a.filter is None else remap_expr(a.filter, names)
    return AggregateCall(a.function, tuple(remap_expr(x, names) for x in a.args), a.dtype, a.distinct, where)


def _same(a: Column, b: Column) -> Expr:
    if a.nullable and b.nullable:
        return Call("is_not_distinct_from", (a, b), BOOLEAN, False)
    return Call("eq", (a, b), BOOLEAN, False)
