"""Aggregates of distinct values become two groups: first one row a value, then the aggregate over those.

    Aggregate by k: count(distinct x)       Aggregate by k: count(x)
      Scan t                          =>      Aggregate by k, x
                                                Scan t

Beside other aggregates, or for several different arguments, each set of distinct values is an aggregate of its own and
they are joined on the keys, NULLs taken as equal. MIN and MAX do not care for DISTINCT.
"""

from __future__ import annotations

from gquery.expression.expr import TRUE, AggregateCall, Case, Column, Expr, Literal, new_column
from gquery.expression.traverse import transform
from gquery.expression.types import BOOLEAN
from gquery.functions import counts, declaration
from gquery.planner.logical.aggregate_joins import Calls, joined_parts
from gquery.planner.logical.nodes import Aggregate, Plan
from gquery.planner.logical.shared import kinds_of, transform_kinds
from gquery.runtime.records import replace

_KINDS = kinds_of(Aggregate)


def eliminate_distinct_aggregates(plan: Plan) -> Plan | None:
    """No aggregate is DISTINCT any more."""
    new = transform_kinds(plan, _KINDS, lambda n: _eliminate(n) if isinstance(n, Aggregate) else n)
    return None if new is plan else new


def _eliminate(plan: Aggregate) -> Plan:
    if not any(a.distinct for _, a in plan.aggregates):
        return plan
    calls = tuple((c, a if declaration(a).repeats_count else _plain(a)) for c, a in plan.aggregates)
    groups: dict[tuple[tuple[Expr, ...], Expr | None] | None, list[tuple[Column, AggregateCall]]] = {}
    for c, a in calls:
        groups.setdefault((a.args, a.filter) if a.distinct else None, []).append((c, a))
    parts = [(what, tuple(members)) for what, members in groups.items()]
    if len(parts) == 1:
        what, members = parts[0]
        return Aggregate(plan.source, plan.keys, members) if what is None else _two_groups(plan, members)
    return joined_parts(plan, [members for _, members in parts], _of_part)


def _plain(a: AggregateCall) -> AggregateCall:
    return replace(a, distinct=False)


def _of_part(plan: Aggregate) -> Plan:
    """A part whose calls are all alike."""
    return _two_groups(plan, plan.aggregates) if plan.aggregates[0][1].distinct else plan


def _two_groups(plan: Aggregate, calls: Calls) -> Aggregate:
    """Calls that are DISTINCT over the same arguments. A filter drops rows of the inner group's input: but never a
    group, as the group's row is there whatever its filtered values are."""
    args, where = calls[0][1].args, calls[0][1].filter
    keys = tuple((new_column(c.name, c.dtype, c.nullable), e) for c, e in plan.keys)
    made: dict[Expr, Column] = {}
    values: list[tuple[Column, Expr]] = []
    passes: Column | None = None
    if where is not None and not all(declaration(a).skips_null and len(a.args) == 1 for _, a in calls):
        passes, where = new_column("passes", BOOLEAN, where.nullable), None
        values.append((passes, calls[0][1].filter or TRUE))
    differing = tuple([a for a in args if not isinstance(a, Literal)])
    for a in differing or args[:1]:  # a key at least: of no rows there is no group
        made[a] = new_column("value", a.dtype, a.nullable or where is not None)
        values.append((made[a], _where(a, where)))
    inner = Aggregate(plan.source, (*keys, *values), ())
    outer = tuple((c, k) for (c, _), (k, _) in zip(plan.keys, keys, strict=True))

    def moved(e: Expr) -> Expr:
        return transform(e, lambda x: made.get(x, x))

    over = tuple((c, replace(a.mapped(moved), distinct=False, filter=passes)) for c, a in calls)
    return Aggregate(inner, outer, tuple((c, _of_rows(a)) for c, a in over))


def _of_rows(a: AggregateCall) -> AggregateCall:
    """The call over rows of which each is there once: a count of rows of several values counts those with NULL too."""
    return replace(a, args=()) if counts(a) and len(a.args) > 1 else a


def _where(e: Expr, where: Expr | None) -> Expr:
    """The value, or NULL (which aggregates pass over) where the filter does not hold."""
    return e if where is None else Case(((where, e),), Literal(None, e.dtype))
