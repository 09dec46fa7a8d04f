"""Intervals in kernels: three numbers become one register, and one register three numbers.

The register is that of any exact value (see `gquery.expression.interval`): 128 bits, or 64 where bounds prove that there are
microseconds alone. A compiler sees through a pair of both, so an expression that packs an interval and takes it apart again costs
its arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable

from gquery.errors import OutOfRangeError
from gquery.expression.expr import Call, Expr
from gquery.expression.facts import UINT32_MAX
from gquery.expression.interval import LEAST_MONTHS
from gquery.expression.types import INT64, INTERVAL, Register
from gquery.functions import intervals
from gquery.kernels.arithmetic import guarded
from gquery.kernels.code import Code
from gquery.kernels.values import Value, ValueProperties

FUNCTIONS = frozenset((intervals.MAKE, intervals.KEY, intervals.MONTHS, intervals.DAYS, intervals.MICROS))
_PARTS = (intervals.MONTHS, intervals.DAYS, intervals.MICROS)


def written(e: Call, render: Callable[[Expr, Code], Value], code: Code) -> Value:
    """A call of one of the functions that make intervals and take them apart."""
    if e.function == intervals.KEY:
        return render(intervals.computed_key(e.args[0]), code)
    values = [render(a, code) for a in e.args]
    if e.function == intervals.MAKE:
        return _packed(values, code)
    return _part(_PARTS.index(e.function), values[0], e, code)


def _packed(values: list[Value], code: Code) -> Value:
    """One value of three numbers."""
    months, days, micros = values
    ok = code.both(*(v.ok for v in values))
    bounds = intervals.packed_bounds(*(v.properties.bounds for v in values))
    assert bounds is not None and months.properties.bounds is not None
    what = ValueProperties(INTERVAL, bounds, ok is not None)
    if bounds.within(INT64):
        return Value(micros.var, ok, what)
    most = months.var
    if months.properties.bounds.low < LEAST_MONTHS:  # the least number of 32 bits, whose days might not fit beside it
        limits = code.constant(LEAST_MONTHS), code.constant(months.properties.bounds.high)
        site = code.site(OutOfRangeError, "interval out of range: it has too many months")
        most = guarded(code, ok, Register.I64, code.call("range_i64", most, *limits, code.status(), site))
    high = code.call("add_i64", code.call("mul_i64", most, code.integer(UINT32_MAX + 1)), days.var)
    sign = code.call("shr_i64", micros.var, code.integer(63))
    return Value(code.let(code.call("make_i128", code.call("add_i64", high, sign), micros.var)), ok, what)


def _part(number: int, value: Value, e: Call, code: Code) -> Value:
    """Months (0), days (1) or microseconds (2) of a value."""
    bounds = intervals.part_bounds(value.properties.bounds)[number]
    what = ValueProperties(e.dtype, bounds, value.properties.nullable)
    if value.properties.register is Register.I64:
        return Value(value.var if number == 2 else code.integer(0), value.ok, what)
    low = code.once((value.var, "low"), lambda: code.let(code.call("low_i128", value.var)))
    if number == 2:
        return Value(low, value.ok, what)
    sign = code.call("shr_i64", low, code.integer(63))
    rest = code.let(code.call("sub_i64", code.call("high_i128", value.var), sign))
    half = code.integer((UINT32_MAX + 1) // 2)
    unsigned = code.call("and_i64", code.call("add_i64", rest, half), code.integer(UINT32_MAX))
    days = code.let(code.call("sub_i64", unsigned, half))
    if number == 1:
        return Value(days, value.ok, what)
    return Value(code.let(code.call("shr_i64", code.call("sub_i64", rest, days), code.integer(32))), value.ok, what)
