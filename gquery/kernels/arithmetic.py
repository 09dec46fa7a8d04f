"""Arithmetic on exact numbers, floats and dates, with bounds deciding width and checks.

A check is left out only where interval arithmetic proves that the result fits its logical type; what is not proved is
checked, and overflow raises. Exact values are computed in 64 bits where bounds prove that they fit, else in 128.
"""

from __future__ import annotations

from gquery.errors import ConversionError, OutOfRangeError
from gquery.expression.expr import Call, Literal
from gquery.expression.facts import MICROS_PER_DAY
from gquery.expression.frozen import frozen
from gquery.expression.interval import Interval
from gquery.expression.types import (
    BIGINT,
    INT64,
    INT128,
    TIMESTAMP,
    Bounds,
    DType,
    Kind,
    Register,
    type_bounds,
)
from gquery.kernels import ir
from gquery.kernels.bindings import NeedsHostError
from gquery.kernels.code import Code
from gquery.kernels.number_registers import as_f64, as_i128, wide_constant, words_of
from gquery.kernels.values import Value, ValueProperties, fits_int64, value_properties
from gquery.runtime.records import replace

_SYMBOL = {"add": "+", "subtract": "-", "multiply": "*", "negate": "-", "abs": "abs", "int_divide": "//", "modulo": "%"}
_SHORT = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "negate": "neg",
    "abs": "abs",
    "divide": "div",
    "modulo": "mod",
}
BITS = {"_bit_and": "and_i64", "_bit_or": "or_i64", "_bit_xor": "xor_i64"}
TAKES_INFINITE = frozenset(("_isfinite_date",))  # functions of dates and timestamps that are asked for infinite ones
_DAYS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
CAST = "a cast"  # in place of an operator, where a value does not fit the type that it is cast to


def arithmetic(e: Call, values: list[Value], code: Code) -> Value:
    """A call of an arithmetic operator; the binder has made the argument types fit."""
    if e.dtype.is_float:
        return _float(e, values, code)
    if e.function in ("negate", "abs"):
        return _unary(e.function, values[0], e.dtype, code)
    if e.function in ("int_divide", "modulo"):
        return _divide(e.function, values[0], values[1], e.dtype, code)
    return exact(e.function, values[0], values[1], e.dtype, code)


def _float(e: Call, values: list[Value], code: Code) -> Value:
    ok = code.both(*(v.ok for v in values))
    operands = [as_f64(v, code) for v in values]
    short = "div" if e.function == "int_divide" else _SHORT[e.function]  # DuckDB does not round a float `//`
    result = code.call(f"{short}_f64", *operands)
    if e.dtype.kind is Kind.REAL:
        result = code.call("round_f32", result)
    var = code.let(result)
    if e.function == "int_divide":  # by zero is NULL
        nonzero = code.let(code.call("ne_f64", operands[1], code.call("f64", ir.Constant(0.0))))
        ok = code.both(ok, nonzero)
    return Value(var, ok, value_properties(e.dtype, nullable=ok is not None))


def interval_arithmetic(function: str, a: Bounds, b: Bounds) -> Bounds:
    """The range of a sum, difference or product of two ranges.

    >>> interval_arithmetic("multiply", Bounds(-2, 3), Bounds(5, 7))
    Bounds(low=-14, high=21)
    """
    match function:
        case "add":
            return Bounds(a.low + b.low, a.high + b.high)
        case "subtract":
            return Bounds(a.low - b.high, a.high - b.low)
        case _:
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return Bounds(min(corners), max(corners))


def exact(function: str, a: Value, b: Value, dtype: DType, code: Code, label: str = "") -> Value:
    """a + b, a - b or a * b of integers, decimals or days; ``label`` stands for it in errors."""
    label = label or _SYMBOL[function]
    assert a.properties.bounds is not None and b.properties.bounds is not None
    raw = interval_arithmetic(function, a.properties.bounds, b.properties.bounds)
    limit = type_bounds(dtype) or INT64
    short = _SHORT[function]
    ok = code.both(a.ok, b.ok)
    narrow = a.properties.register is Register.I64 and b.properties.register is Register.I64
    if narrow and raw.within(INT64):
        var = code.let(code.call(f"{short}_i64", a.var, b.var))
        return checked_range(RawInteger(var, ok, raw), dtype, label, code)
    if narrow and limit.within(INT64):
        site = _overflow(code, label, dtype)
        var = guarded(code, ok, Register.I64, code.call(f"{short}_i64_checked", a.var, b.var, code.status(), site))
        return checked_range(RawInteger(var, ok, INT64), dtype, label, code)
    if narrow and function == "multiply":
        product = code.call("mul_i64_i128", a.var, b.var)
        return checked_range(RawInteger(code.let(product), ok, raw, wide=True), dtype, label, code)
    operands = as_i128(a, code), as_i128(b, code)
    if raw.within(INT128):
        var = code.let(code.call(f"{short}_i128", *operands))
    else:
        site = _overflow(code, label, dtype)
        var = guarded(code, ok, Register.I128, code.call(f"{short}_i128_checked", *operands, code.status(), site))
        raw = INT128
    return checked_range(RawInteger(var, ok, raw, wide=True), dtype, label, code)


def _overflow(code: Code, what: str, dtype: DType) -> ir.Constant:
    if what == CAST:
        return code.site(
            ConversionError, f"Could not cast a value to {dtype}: it is out of range. TRY_CAST gives NULL instead."
        )
    return code.site(
        OutOfRangeError, f"Overflow in {what}: the result does not fit {dtype}. Cast an operand to a wider type."
    )


def guarded(code: Code, ok: ir.Expression | None, register: Register, value: ir.Expression) -> ir.Name:
    """A variable that holds ``value`` where ``ok``: what lies under a NULL must not raise."""
    if ok is None:
        return code.let(value)
    var = code.let(code.zero(register))
    with code.when(ok):
        code.set(var, value)
    return var


@frozen
class RawInteger:
    """An integer before it is checked against its type: proved within ``bounds``, of 128 bits if ``wide``."""

    var: ir.Expression
    ok: ir.Expression | None
    bounds: Bounds
    wide: bool = False


def checked_range(raw: RawInteger, dtype: DType, what: str, code: Code) -> Value:
    """The integer as a value of ``dtype``: checked where the type is narrower, in 64 bits where the result fits. A value that
    fails becomes one within the bounds that are declared, as it may be an index before the error is raised. ``what`` stands for
    it in errors."""
    limit = type_bounds(dtype) or INT64
    var, ok, bounds, wide = raw.var, raw.ok, raw.bounds, raw.wide
    register = Register.I128 if wide else Register.I64
    if not bounds.within(limit):
        bounds = Bounds(max(bounds.low, limit.low), min(bounds.high, limit.high))
        if bounds.low > bounds.high:  # every row overflows: the nearest value, which has the register of the others
            nearest = limit.low if raw.bounds.high < limit.low else limit.high
            bounds = Bounds(nearest, nearest)
        site = _overflow(code, what, dtype)
        if wide:
            words = [code.constant(w) for bound in (bounds.low, bounds.high) for w in words_of(bound)]
            ranged = code.call("range_i128", var, *words, code.status(), site)
        else:
            ends = code.constant(bounds.low), code.constant(bounds.high)
            ranged = code.call("range_i64", var, *ends, code.status(), site)
        var = guarded(code, ok, register, ranged)
    if wide and bounds.within(INT64):
        var = code.let(code.call("i64_from_i128", var))
    return Value(var, ok, ValueProperties(dtype, bounds, ok is not None))


def finite(value: Value, what: str, code: Code) -> Value:
    """The value, which fails where it is an infinite date or timestamp, as tables may have them: they are compared and passed on,
    and stand for no day that has parts."""
    known, limit = value.properties, type_bounds(value.properties.dtype)
    if known.dtype.kind not in _DAYS or known.bounds is None or limit is None or known.bounds.within(limit):
        return value
    bounds = Bounds(max(known.bounds.low, limit.low), min(max(known.bounds.high, limit.low), limit.high))
    site = code.site(OutOfRangeError, f"{what} of an infinite date or timestamp: gquery has none")
    ends = code.constant(bounds.low), code.constant(bounds.high)
    var = guarded(code, value.ok, Register.I64, code.call("range_i64", value.var, *ends, code.status(), site))
    return Value(var, value.ok, replace(known, bounds=bounds))


def _unary(function: str, a: Value, dtype: DType, code: Code) -> Value:
    assert a.properties.bounds is not None
    b = a.properties.bounds
    if function == "negate":
        raw = Bounds(-b.high, -b.low)
    else:
        raw = b if b.low >= 0 else Bounds(0 if b.high >= 0 else -b.high, max(-b.low, b.high))
    wide = a.properties.register is Register.I128
    suffix = "i128" if wide else "i64"
    if raw.within(INT128 if wide else INT64):
        var: ir.Expression = code.let(code.call(f"{_SHORT[function]}_{suffix}", a.var))
        return checked_range(RawInteger(var, a.ok, raw, wide), dtype, function, code)
    site = _overflow(code, function, dtype)  # only the least integer can overflow
    zero = code.call("i128_from_i64", code.integer(0)) if wide else code.integer(0)
    negated = code.call(f"sub_{suffix}_checked", zero, a.var, code.status(), site)
    if function == "abs":
        less = code.call(f"lt_{suffix}", a.var, zero)
        var = code.let(a.var)
        with code.when(less if a.ok is None else ir.And((a.ok, less))):
            code.set(var, negated)
    else:
        var = guarded(code, a.ok, Register.I128 if wide else Register.I64, negated)
    return checked_range(RawInteger(var, a.ok, INT128 if wide else INT64, wide), dtype, function, code)


def _divide(function: str, a: Value, b: Value, dtype: DType, code: Code) -> Value:
    """``//`` and ``%`` of exact numbers, truncating; by zero they are NULL."""
    assert a.properties.bounds is not None and b.properties.bounds is not None
    never_zero = b.properties.bounds.low > 0 or b.properties.bounds.high < 0
    wide = Register.I128 in (a.properties.register, b.properties.register)
    x, y = (as_i128(a, code), as_i128(b, code)) if wide else (a.var, b.var)
    suffix = "i128" if wide else "i64"
    ok = code.both(a.ok, b.ok)
    if not never_zero:
        zero = code.call("i128_from_i64", code.integer(0)) if wide else code.integer(0)
        ok = code.both(ok, code.let(code.call(f"ne_{suffix}", y, zero)))
    m = a.properties.bounds.magnitude
    if function == "modulo":
        n = min(m, b.properties.bounds.magnitude - 1) if b.properties.bounds.magnitude else 0
        raw = Bounds(0 if a.properties.bounds.low >= 0 else -n, max(n, 0))
    else:
        raw = Bounds(-m, m) if a.properties.bounds.low < 0 or b.properties.bounds.low < 0 else Bounds(0, m)
    if not raw.within(INT64) and not wide:  # the least integer divided by -1
        x, y, wide, suffix = as_i128(a, code), as_i128(b, code), True, "i128"
    if function == "modulo" and _may_be_least(a.properties.bounds, b.properties.bounds, dtype):
        _refuse_least(x, y, ok, dtype, suffix, code)
    short = "div" if function == "int_divide" else "mod"
    var = guarded(code, ok, Register.I128 if wide else Register.I64, code.call(f"{short}_{suffix}", x, y))
    return checked_range(RawInteger(var, ok, raw, wide), dtype, _SYMBOL[function], code)


def _may_be_least(a: Bounds, b: Bounds, dtype: DType) -> bool:
    """Whether the least integer of a type may meet -1, by which its quotient does not fit."""
    limit = type_bounds(dtype)
    return dtype.is_integer and limit is not None and limit.low < 0 and a.low <= limit.low and b.low <= -1 <= b.high


def _refuse_least(
    x: ir.Expression, y: ir.Expression, ok: ir.Expression | None, dtype: DType, suffix: str, code: Code
) -> None:
    """The least integer of a type modulo -1 raises."""
    limit = type_bounds(dtype)
    assert limit is not None
    least = wide_constant(limit.low, code) if suffix == "i128" else code.constant(limit.low)
    minus = wide_constant(-1, code) if suffix == "i128" else code.constant(-1)
    test = ir.And((code.call(f"eq_{suffix}", x, least), code.call(f"eq_{suffix}", y, minus)))
    with code.when(ir.And((ok, test)) if ok else test):
        code.do(code.call("fail", code.status(), _overflow(code, "%", dtype)))


def unsigned_bits(e: Call, values: list[Value], code: Code) -> Value:
    """Bits of two UBIGINTs, which lie in the low words of wide registers."""
    words = [v.var if v.properties.register is Register.I64 else code.let(code.call("low_i128", v.var)) for v in values]
    ok = code.both(*(v.ok for v in values))
    word = code.let(code.call(BITS[e.function], *words))
    highs = [v.properties.bounds.high for v in values if v.properties.bounds is not None]
    most = min(highs) if e.function == "_bit_and" else (1 << max(h.bit_length() for h in highs)) - 1
    bounds = Bounds(0, most)
    if not bounds.within(INT64):
        word = code.let(code.call("make_i128", code.integer(0), word))
    return Value(word, ok, ValueProperties(e.dtype, bounds, ok is not None))


def add_days(e: Call, values: list[Value], code: Code) -> Value:
    """A date and a number of days; sets an error where the sum is outside of the type."""
    return exact("add", values[0], values[1], e.dtype, code)


def add_interval(value: Value, interval: Literal, code: Code) -> Value:
    """TIMESTAMP + INTERVAL: months first (the day is clamped to the month's length), then days and microseconds."""
    if interval.value is None:
        return Value(code.zero(Register.I64), ir.FALSE, ValueProperties(TIMESTAMP, Bounds(0, 0), True))
    by = Interval.of(interval.value)
    assert value.properties.bounds is not None
    if by.months:
        value = _add_months(value, by.months, code)
    for shift in (by.days * MICROS_PER_DAY, by.micros):
        if shift:
            what = ValueProperties(TIMESTAMP, Bounds(shift, shift), False)
            constant = wide_constant(shift, code) if what.register is Register.I128 else code.constant(shift)
            value = exact("add", value, Value(constant, None, what), TIMESTAMP, code)
    return value


def _add_months(value: Value, months: int, code: Code) -> Value:
    """A timestamp some months later; one beyond the type raises."""
    assert value.properties.bounds is not None
    day_length = code.integer(MICROS_PER_DAY)
    day = code.let(code.call("floor_div_i64", value.var, day_length))
    rest = code.let(code.call("floor_mod_i64", value.var, day_length))
    moved = code.let(code.call("date_add_months", day, code.constant(months)))
    slack = 31 * abs(months)
    bounds = Bounds(
        value.properties.bounds.low // MICROS_PER_DAY - slack, value.properties.bounds.high // MICROS_PER_DAY + slack
    )
    days = Value(moved, value.ok, ValueProperties(BIGINT, bounds, value.properties.nullable))
    length = Value(day_length, None, ValueProperties(BIGINT, Bounds(MICROS_PER_DAY, MICROS_PER_DAY), False))
    of_day = Value(rest, None, ValueProperties(TIMESTAMP, Bounds(0, MICROS_PER_DAY - 1), False))
    return exact("add", exact("multiply", days, length, TIMESTAMP, code, "+"), of_day, TIMESTAMP, code)


def rescale(value: Value, places: int, dtype: DType, code: Code) -> Value:
    """Multiply by 10**places, or divide and round half away from zero where that is negative; checked against ``dtype``."""
    assert value.properties.bounds is not None
    if places >= 0:
        what = ValueProperties(dtype, Bounds(10**places, 10**places), False)
        if places == 0:
            wide = value.properties.register is Register.I128
            return checked_range(RawInteger(value.var, value.ok, value.properties.bounds, wide), dtype, CAST, code)
        var = wide_constant(10**places, code) if what.register is Register.I128 else code.constant(10**places)
        return exact("multiply", value, Value(var, None, what), dtype, code, CAST)
    factor: int = 10**-places
    half = factor // 2

    def rounded(v: int) -> int:
        size = (abs(v) + half) // factor
        return size if v >= 0 else -size

    raw = Bounds(rounded(value.properties.bounds.low), rounded(value.properties.bounds.high))
    wide = value.properties.register is Register.I128 or not fits_int64(Bounds(factor, factor))
    if wide:
        quotient = code.call("div_round_i128", as_i128(value, code), wide_constant(factor, code))
    else:
        quotient = code.call("div_round_i64", value.var, code.constant(factor))
    return checked_range(RawInteger(code.let(quotient), value.ok, raw, wide), dtype, CAST, code)


__all__ = [
    "NeedsHostError",
    "RawInteger",
    "add_days",
    "add_interval",
    "arithmetic",
    "checked_range",
    "exact",
    "rescale",
    "unsigned_bits",
]
