"""Aggregates: each is a tuple of accumulators (monoids over 64-bit words) and a finalizer.

An accumulator adds, or takes the minimum or maximum of, one word a row. Accumulators are shared: ``sum(x)``, ``avg(x)``
and ``count(x)`` need two between them. Sums are exact: a sum that bounds prove to fit 64 bits is one word, any other is
split into words of 32 bits (of 16, where the rows may be more than 2^31), whose sums cannot overflow;
`operators.finalize` passes their carries on. An identity never stands for NULL: whether a group had a value is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gquery.errors import NotSupportedError
from gquery.expression.expr import AggregateCall, Expr
from gquery.expression.facts import INT64_BITS, INT128_BITS, LARGE_ROWS, SMALL_SUM_WORD_BITS, SUM_WORD_BITS
from gquery.expression.types import BIGINT, DOUBLE, INT64, Bounds, DType, Register, type_bounds
from gquery.functions.certain import never_null
from gquery.kernels.values import ValueProperties

What = Literal["one", "value", "ordered", "sum_word", "address", "length"]
Op = Literal["add", "min", "max"]


@dataclass(frozen=True)
class Accumulator:
    """One word of state: ``op`` over ``what`` of ``arg``, for rows where ``arg`` is not NULL and ``filter`` is TRUE. A
    word of a multiword sum is the number ``sum_word`` of ``bits`` bits, low first; the last one carries the sign."""

    op: Op
    word: Literal["i64", "f64"]
    what: What
    arg: Expr | None = None
    filter: Expr | None = None
    sum_word: int = 0
    bits: int = 0

    @property
    def identity(self) -> int | float:
        match self.op:
            case "add":
                return 0 if self.word == "i64" else 0.0
            case "min":
                return INT64.high
            case "max":
                return INT64.low


Finalizer = Literal[
    "count", "sum_i64", "sum_multiword", "sum_f64", "avg_i64", "avg_multiword", "avg_f64", "extreme", "text"
]


@dataclass(frozen=True)
class AggregatePlan:
    """An aggregate as indices of accumulators and the way to its result. ``count`` is the accumulator that counts its
    values; None where every group has one."""

    call: AggregateCall
    finalizer: Finalizer
    accumulators: tuple[int, ...]
    count: int | None
    arg: ValueProperties | None
    result: ValueProperties
    sum_word_bits: int = 0


def plan_aggregates(
    calls: Sequence[AggregateCall], known: Sequence[ValueProperties | None], rows: int | None, grouped: bool
) -> tuple[tuple[Accumulator, ...], tuple[AggregatePlan, ...]]:
    """The accumulators that a list of aggregates needs together, and each one's plan.

    ``known[i]`` tells of the argument of call i, ``rows`` is a proved limit of the rows that reach one group (None:
    none).
    """
    accumulators: dict[Accumulator, int] = {}

    def use(accumulator: Accumulator) -> int:
        return accumulators.setdefault(accumulator, len(accumulators))

    plans = [_plan(call, arg, rows, grouped, use) for call, arg in zip(calls, known, strict=True)]
    return tuple(accumulators), tuple(plans)


def _plan(call: AggregateCall, arg: ValueProperties | None, rows: int | None, grouped: bool, use: Any) -> AggregatePlan:
    e = call.args[0] if call.args else None
    counting = Accumulator("add", "i64", "one", e if arg is not None and arg.nullable else None, call.filter)
    if call.function == "count":
        if e is not None and not never_null(e):
            counting = Accumulator("add", "i64", "one", e, call.filter)  # without NULLs too: what fails has no count
        most = Bounds(0, rows if rows is not None else INT64.high)
        return AggregatePlan(call, "count", (use(counting),), None, arg, ValueProperties(BIGINT, most, False))
    assert e is not None and arg is not None
    can_be_empty = arg.nullable or call.filter is not None or not grouped
    register = arg.register
    if call.function in ("sum", "avg"):
        used: tuple[int, ...]
        finalizer: Finalizer
        if register is Register.F64:
            finalizer, bits = "sum_f64", 0
            used = (use(Accumulator("add", "f64", "value", e, call.filter)),)
        elif (
            register is Register.I64
            and arg.bounds is not None
            and rows is not None
            and rows * arg.bounds.magnitude <= INT64.high
        ):
            finalizer, bits = "sum_i64", 0
            used = (use(Accumulator("add", "i64", "value", e, call.filter)),)
        else:
            finalizer = "sum_multiword"
            bits = SUM_WORD_BITS if rows is not None and rows <= LARGE_ROWS else SMALL_SUM_WORD_BITS
            count = (INT128_BITS if register is Register.I128 else INT64_BITS) // bits
            used = tuple(
                use(Accumulator("add", "i64", "sum_word", e, call.filter, sum_word, bits)) for sum_word in range(count)
            )
        if call.function == "avg":
            counted = use(counting)
            kinds: dict[Finalizer, Finalizer] = {
                "sum_i64": "avg_i64",
                "sum_multiword": "avg_multiword",
                "sum_f64": "avg_f64",
            }
            return AggregatePlan(
                call, kinds[finalizer], used, counted, arg, ValueProperties(DOUBLE, None, can_be_empty), bits
            )
        count_ = use(counting) if can_be_empty else None
        return AggregatePlan(
            call, finalizer, used, count_, arg, _sum_properties(call.dtype, arg, rows, can_be_empty), bits
        )
    if call.function in ("min", "max", "dependent_value"):
        count_ = use(counting) if can_be_empty else None
        result = ValueProperties(call.dtype, arg.bounds, can_be_empty, arg.dictionary)
        if register is Register.STR and call.function == "dependent_value":  # one text: any address of it will do
            used = (
                use(Accumulator("max", "i64", "address", e, call.filter)),
                use(Accumulator("max", "i64", "length", e, call.filter)),
            )
            return AggregatePlan(call, "text", used, count_, arg, result)
        if register in (Register.I128, Register.STR):
            raise AssertionError(f"{call.function} of {arg.dtype} is ranked before it is folded")
        what: What = "ordered" if register is Register.F64 else "value"
        op: Op = "min" if call.function == "min" else "max"
        return AggregatePlan(call, "extreme", (use(Accumulator(op, "i64", what, e, call.filter)),), count_, arg, result)
    raise NotSupportedError(f"aggregate {call.function}")


def needs_ranks(call: AggregateCall, arg: ValueProperties | None) -> bool:
    """Whether an aggregate's argument must be replaced by ranks first: minima that no atomic can hold; or by row numbers: the
    first value."""
    if call.function == "any_value":
        return True
    if arg is None or call.function not in ("min", "max", "dependent_value"):
        return False
    return arg.register is Register.I128 or (arg.register is Register.STR and call.function != "dependent_value")


def _sum_properties(dtype: DType, arg: ValueProperties, rows: int | None, nullable: bool) -> ValueProperties:
    limit = type_bounds(dtype)
    if limit is None or arg.bounds is None:
        return ValueProperties(dtype, limit, nullable)
    if rows is None:
        return ValueProperties(dtype, limit, nullable)
    low, high = min(0, arg.bounds.low * rows), max(0, arg.bounds.high * rows)
    return ValueProperties(dtype, Bounds(max(low, limit.low), min(high, limit.high)), nullable)


def is_plain(plan: AggregatePlan) -> bool:
    """Whether the result of an aggregate, where it is not NULL, is the word of its accumulator: there is nothing to do
    or to check."""
    if plan.finalizer not in ("count", "sum_i64", "sum_f64", "extreme"):
        return False
    if plan.finalizer == "sum_f64":
        return plan.result.dtype == DOUBLE
    limit = type_bounds(plan.result.dtype)
    checked = plan.finalizer == "sum_i64" and limit is not None and not INT64.within(limit)
    return plan.result.register is Register.I64 and not checked


def has_plain_count(accumulators: Sequence[Accumulator]) -> int | None:
    """The accumulator that counts every row of a group, if there is one: it tells which groups exist."""
    return next((n for n, f in enumerate(accumulators) if f.what == "one" and f.arg is None and f.filter is None), None)
