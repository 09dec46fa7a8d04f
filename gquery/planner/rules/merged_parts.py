"""Aggregates that are made of parts of their groups: what of a part is kept, and the value over what is merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from gquery.expression.expr import AggregateCall, Cast, Column, Expr, Literal
from gquery.expression.facts import MOST_PRECISION
from gquery.expression.types import DOUBLE, decimal
from gquery.functions import aggregate, call, cast, declaration, gives_one_value
from gquery.functions.aggregate_record import Mean, State, Total


def merges(a: AggregateCall) -> bool:
    """Whether the results of parts of a group tell that of the whole."""
    return not a.distinct and not a.order and declaration(a).accumulated is not None


def parts_of(a: AggregateCall) -> tuple[AggregateCall, ...]:
    """What of a part is kept: the aggregate itself, or each of its accumulators."""
    made = declaration(a).accumulated
    assert made is not None
    if made.only is not None:
        return (a,)
    (value,) = a.args
    exact = value if value.dtype.is_float else cast(value, decimal(MOST_PRECISION, value.dtype.scale))
    parts = ((one.function, exact if isinstance(one, Total) else value) for one in made.accumulators)
    return tuple([aggregate(function, (e,), where=a.filter) for function, e in parts])


def merged_part(part: AggregateCall, column: Column) -> AggregateCall:
    """One of `parts_of` over the column that has it of each part."""
    if gives_one_value(part):  # which nobody can ask for by name
        return AggregateCall(part.function, (column,), column.dtype)
    return aggregate(declaration(part).merged_by or "", (column,))


def merged_value(a: AggregateCall, parts: Sequence[Column]) -> Expr:
    """The aggregate's value over merged parts."""
    declared = declaration(a)
    assert declared.accumulated is not None
    match declared.accumulated.finalize:
        case State() if declared.of_nothing is not None and parts[0].nullable:  # over no group
            return call("coalesce", parts[0], Literal(declared.of_nothing, parts[0].dtype))
        case State():
            return parts[0]
        case Mean(total, count):
            summed = parts[total.number]
            summed_double = summed if summed.dtype == DOUBLE else Cast(summed, DOUBLE)
            return call("divide", summed_double, Cast(parts[count.number], DOUBLE))
        case _:
            assert_never(declared.accumulated.finalize)
