"""Aggregates: each is a tuple of accumulators (monoids over 64-bit words) and a finalizer.

An accumulator adds, or takes the minimum or maximum of, one word a row. Accumulators are shared: ``sum(x)``, ``avg(x)``
and ``count(x)`` need two between them. Sums are exact: a sum that bounds prove to fit 64 bits is one word, any other is
split into words of 32 bits (of 16, where the rows may be more than 2^31), whose sums cannot overflow;
`operators.finalize` passes their carries on. An identity never stands for NULL: whether a group had a value is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from gquery.errors import NotSupportedError
from gquery.expression.expr import AggregateCall, Expr
from gquery.expression.facts import INT64_BITS, INT128_BITS, LARGE_ROWS, SMALL_SUM_WORD_BITS, SUM_WORD_BITS
from gquery.expression.frozen import frozen_open
from gquery.expression.types import BIGINT, DOUBLE, INT64, Bounds, DType, Register, type_bounds
from gquery.functions import declaration
from gquery.functions.certain import never_null
from gquery.kernels.values import ValueProperties

What = Literal["one", "value", "ordered", "sum_word", "address", "length"]
Op = Literal["add", "min", "max"]


@frozen_open
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


@frozen_open
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

    plans = []
    for call, arg in zip(calls, known, strict=True):
        if call.function not in _PLANS:
            raise NotSupportedError(f"aggregate {call.function}")
        plans.append(_PLANS[call.function](_Use(call, arg, rows, grouped, use)))
    return tuple(accumulators), tuple(plans)


@frozen_open
class _Use:
    """An aggregate that is planned: its argument's properties, the rows of a group at most, and where accumulators go."""

    call: AggregateCall
    arg: ValueProperties | None
    rows: int | None
    grouped: bool
    use: Callable[[Accumulator], int]

    @property
    def values(self) -> tuple[Expr, ValueProperties]:
        """The argument, of an aggregate that has one."""
        assert self.arg is not None
        return self.call.args[0], self.arg

    @property
    def can_be_empty(self) -> bool:
        """Whether a group may have no value."""
        return self.values[1].nullable or self.call.filter is not None or not self.grouped

    def accumulate(self, op: Op, register: Literal["i64", "f64"], what: What, sum_word: int = 0, bits: int = 0) -> int:
        """The index of an accumulator of the argument."""
        return self.use(Accumulator(op, register, what, self.values[0], self.call.filter, sum_word, bits))

    def count_values(self) -> int:
        """The index of the accumulator that counts the argument's values: the rows, where it has no NULL."""
        e, arg = self.values
        return self.use(Accumulator("add", "i64", "one", e if arg.nullable else None, self.call.filter))


def _count(a: _Use) -> AggregatePlan:
    e = a.call.args[0] if a.call.args else None
    if e is not None and never_null(e):
        e = None  # any other is looked at without NULLs too: what fails has no count
    counting = a.use(Accumulator("add", "i64", "one", e, a.call.filter))
    most = Bounds(0, a.rows if a.rows is not None else INT64.high)
    return AggregatePlan(a.call, "count", (counting,), None, a.arg, ValueProperties(BIGINT, most, False))


def _sum(a: _Use) -> AggregatePlan:
    finalizer, used, bits = _sum_words(a)
    count = a.count_values() if a.can_be_empty else None
    _, arg = a.values
    result = _sum_properties(a.call.dtype, arg, a.rows, a.can_be_empty)
    return AggregatePlan(a.call, finalizer, used, count, arg, result, bits)


def _average(a: _Use) -> AggregatePlan:
    finalizer, used, bits = _sum_words(a)
    kinds: dict[Finalizer, Finalizer] = {
        "sum_i64": "avg_i64",
        "sum_multiword": "avg_multiword",
        "sum_f64": "avg_f64",
    }
    result = ValueProperties(DOUBLE, None, a.can_be_empty)
    return AggregatePlan(a.call, kinds[finalizer], used, a.count_values(), a.arg, result, bits)


def _sum_words(a: _Use) -> tuple[Finalizer, tuple[int, ...], int]:
    """How a sum is finalized, its accumulators, and the bits of each word of several."""
    _, arg = a.values
    if arg.register is Register.F64:
        return "sum_f64", (a.accumulate("add", "f64", "value"),), 0
    if arg.register is Register.I64 and arg.bounds is not None and a.rows is not None:
        is_one_word = a.rows * arg.bounds.magnitude <= INT64.high
    else:
        is_one_word = False
    if is_one_word:
        return "sum_i64", (a.accumulate("add", "i64", "value"),), 0
    bits = SUM_WORD_BITS if a.rows is not None and a.rows <= LARGE_ROWS else SMALL_SUM_WORD_BITS
    count = (INT128_BITS if arg.register is Register.I128 else INT64_BITS) // bits
    return "sum_multiword", tuple(a.accumulate("add", "i64", "sum_word", n, bits) for n in range(count)), bits


def _extreme(a: _Use) -> AggregatePlan:
    _, arg = a.values
    if arg.register in (Register.I128, Register.STR):
        raise AssertionError(f"{a.call.function} of {arg.dtype} is ranked before it is accumulated")
    count = a.count_values() if a.can_be_empty else None
    what: What = "ordered" if arg.register is Register.F64 else "value"
    index = a.accumulate("min" if a.call.function == "min" else "max", "i64", what)
    return AggregatePlan(a.call, "extreme", (index,), count, arg, _like_argument(a))


def _dependent(a: _Use) -> AggregatePlan:
    _, arg = a.values
    if arg.register is not Register.STR:
        return _extreme(a)
    count = a.count_values() if a.can_be_empty else None  # one text: any address of it will do
    used = (a.accumulate("max", "i64", "address"), a.accumulate("max", "i64", "length"))
    return AggregatePlan(a.call, "text", used, count, arg, _like_argument(a))


def _like_argument(a: _Use) -> ValueProperties:
    """The properties of one of the argument's values."""
    _, arg = a.values
    return ValueProperties(a.call.dtype, arg.bounds, a.can_be_empty, arg.dictionary)


_PLANS: dict[str, Callable[[_Use], AggregatePlan]] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "min": _extreme,
    "max": _extreme,
    "dependent_value": _dependent,
}


def needs_ranks(call: AggregateCall, arg: ValueProperties | None) -> bool:
    """Whether an aggregate's argument must be replaced by ranks first: minima that no atomic can hold; or by row numbers: the
    first value."""
    if declaration(call).picks is not None:
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
