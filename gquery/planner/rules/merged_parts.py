"""Aggregates that are made of parts of their groups: what of a part is kept, and the value over what is merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from gquery.expression.expr import AggregateCall, Cast, Column, Expr, Literal
from gquery.expression.facts import MOST_PRECISION, MOST_ROWS_LOG10
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
    exact = value if value.dtype.is_float else _exact(value)
    parts = ((one.function, exact if isinstance(one, Total) else value) for one in made.accumulators)
    return tuple([aggregate(function, (e,), where=a.filter) for function, e in parts])


def _exact(value: Expr) -> Expr:
    return cast(value, decimal(MOST_PRECISION, value.dtype.scale))


# ---- parts that are merged once -----------------------------------------------------------------------------------------


def parts_can_fit(a: AggregateCall) -> bool:
    """Whether `exact_parts` are never out of range where the whole is not: sums of parts may be greater than those of all."""
    made = declaration(a).accumulated
    assert made is not None
    has_totals = any(isinstance(one, Total) for one in made.accumulators)
    return not has_totals or a.args[0].dtype.precision <= MOST_PRECISION - MOST_ROWS_LOG10


def exact_parts(a: AggregateCall) -> tuple[AggregateCall, ...]:
    """`parts_of`, of which a total of integers is a DECIMAL: that of a part may not fit the type of the whole."""
    if not _is_integer_total(a):
        return parts_of(a)
    return (aggregate("sum", (_exact(a.args[0]),), where=a.filter),)


def exactly_merged(a: AggregateCall, part: AggregateCall, column: Column) -> AggregateCall:
    """One of `exact_parts` over the column that has it of each part; a total has to fit the type of the whole."""
    return AggregateCall("sum", (column,), a.dtype) if _is_integer_total(a) else merged_part(part, column)


def _is_integer_total(a: AggregateCall) -> bool:
    made = declaration(a).accumulated
    return made is not None and isinstance(made.only, Total) and a.args[0].dtype.is_integer


# ---- merged -------------------------------------------------------------------------------------------------------------


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
