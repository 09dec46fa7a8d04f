"""Aggregates of one group made in several nodes, joined on the group's keys, NULLs taken as equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery.expression.expr import TRUE, AggregateCall, Column, Expr, new_column
from gquery.expression.traverse import conjunction
from gquery.planner.logical.equal_columns import equal
from gquery.planner.logical.nodes import Aggregate, Join, JoinKind, Plan
from gquery.planner.logical.tree import fresh_copy, remap_expr

Calls = tuple[tuple[Column, AggregateCall], ...]


def joined_parts(plan: Aggregate, parts: Sequence[Calls], made: Callable[[Aggregate], Plan]) -> Plan:
    """One node a part of the aggregates, over copies of the source; ``made`` is what stands for such a node. Every part has the
    same groups."""
    result: Plan | None = None
    first_keys: tuple[Column, ...] = ()
    names: dict[int, Column] = {}
    for calls in parts:
        if result is None:
            keys, source = plan.keys, plan.source
        else:
            source, names = fresh_copy(plan.source)
            keys = tuple((new_column(c.name, c.dtype, c.nullable), remap_expr(e, names)) for c, e in plan.keys)
        new = made(Aggregate(source, keys, tuple((c, moved(a, names)) for c, a in calls)))
        if result is None:
            result, first_keys = new, tuple(c for c, _ in keys)
        else:
            result = Join(result, new, JoinKind.INNER, equal_keys(first_keys, [c for c, _ in keys]))
    assert result is not None
    return result


def moved(a: AggregateCall, names: dict[int, Column]) -> AggregateCall:
    """A call over other columns."""
    return a.mapped(lambda e: remap_expr(e, names))


def equal_keys(left: Sequence[Expr], right: Sequence[Expr]) -> Expr:
    """Whether all keys are the same."""
    same = tuple(equal(a, b, True) for a, b in zip(left, right, strict=True))
    return conjunction(same) if same else TRUE
