"""CAST between types: in the kernel for numbers, dates and booleans, on the host for text.

A cast that cannot hold its value raises; TRY_CAST gives NULL in its place.
"""

from __future__ import annotations

import numpy as np

from gquery.errors import ConversionError
from gquery.expression.expr import Cast, Literal
from gquery.expression.facts import MICROS_PER_DAY
from gquery.expression.types import BIGINT, INT64, REAL, Bounds, DType, Kind, Register, type_bounds
from gquery.kernels import ir
from gquery.kernels.arithmetic import (
    CAST,
    RawInteger,
    checked_range,
    exact,
    finite,
    rescale,
)
from gquery.kernels.bindings import NeedsHostError
from gquery.kernels.code import Code
from gquery.kernels.number_registers import as_f32, as_f64, as_i128, words_of
from gquery.kernels.values import Value, ValueProperties, value_properties
from gquery.runtime.records import replace

LEAST_BEYOND_REAL = 3.4028235677973366e38  # halfway between the largest float and what would follow it
INFINITE = 0x7FF0000000000000  # the bits of the infinite double


def null_of(dtype: DType, code: Code) -> Value:
    """NULL of a type."""
    what = ValueProperties(dtype, Bounds(0, 0) if dtype.is_exact or dtype.is_opaque else None, nullable=True)
    return Value(code.zero(what.register), ir.FALSE, what)


def cast(value: Value, dtype: DType, try_: bool, code: Code) -> Value:
    """``value`` as ``dtype``."""
    source = value.properties.dtype
    if source == dtype:
        return value
    if source.kind is Kind.NULL or value.ok == ir.FALSE:
        return null_of(dtype, code)
    if source.is_string and dtype.is_string:  # JSON as VARCHAR, or a text that is known to be JSON
        return Value(value.var, value.ok, replace(value.properties, dtype=dtype))
    if source.is_string or dtype.is_string or source.is_nested or dtype.is_nested:
        if code.target != "python":
            raise NeedsHostError(f"CAST({source} AS {dtype})")  # see `kernels.host_calls`
        from gquery.kernels.row_calls import row_call

        return row_call(Cast(Literal(None, source), dtype, try_), [value], code)
    if try_ and not _always_fits(value.properties, dtype):
        value = _null_unless_fits(value, dtype, code)
    if source.is_float:
        return _from_float(value, dtype, code)
    if dtype.is_float:
        number = as_f32(value, code) if dtype.kind is Kind.REAL else as_f64(value, code)
        return Value(number, value.ok, value_properties(dtype, nullable=value.properties.nullable))
    return _between_exact(value, dtype, code)


def _between_exact(value: Value, dtype: DType, code: Code) -> Value:
    source, what = value.properties.dtype, value.properties
    if source.kind is Kind.BOOLEAN:
        value = Value(code.let(code.call("from_bool", value.var)), value.ok, replace(what, dtype=BIGINT))
        return rescale(value, dtype.scale, dtype, code)
    if dtype.kind is Kind.BOOLEAN:
        zero = code.integer(0)
        wide = what.register is Register.I128
        test = (
            code.call("ne_i128", value.var, code.call("i128_from_i64", zero))
            if wide
            else code.call("ne_i64", value.var, zero)
        )
        return Value(code.let(test), value.ok, value_properties(dtype, nullable=what.nullable))
    if source.kind is Kind.DATE and dtype.kind is Kind.TIMESTAMP:
        by = Value(
            code.integer(MICROS_PER_DAY),
            None,
            ValueProperties(BIGINT, Bounds(MICROS_PER_DAY, MICROS_PER_DAY), False),
        )
        return exact("multiply", value, by, dtype, code, CAST)
    if source.kind is Kind.TIMESTAMP and dtype.kind is Kind.DATE:
        value = finite(value, CAST, code)
        what = value.properties
        assert what.bounds is not None
        bounds = Bounds(what.bounds.low // MICROS_PER_DAY, what.bounds.high // MICROS_PER_DAY)
        day = code.call("floor_div_i64", value.var, code.integer(MICROS_PER_DAY))
        return checked_range(RawInteger(code.let(day), value.ok, bounds), dtype, CAST, code)
    return rescale(value, dtype.scale - source.scale, dtype, code)


def _from_float(value: Value, dtype: DType, code: Code) -> Value:
    what = value.properties
    if dtype.kind is Kind.DOUBLE:
        return Value(value.var, value.ok, replace(what, dtype=dtype))
    if dtype.kind is Kind.REAL:
        return _to_real(value, code)
    if dtype.kind is Kind.BOOLEAN:
        test = code.call("ne_f64", value.var, code.call("f64", ir.Constant(0.0)))
        return Value(code.let(test), value.ok, value_properties(dtype, nullable=what.nullable))
    limit = type_bounds(dtype) or INT64
    site = code.site(ConversionError, f"a {what.dtype} value does not fit {dtype}")
    register = Register.I64 if limit.within(INT64) else Register.I128
    var = value.var
    if dtype.scale:
        var = code.let(code.call("mul_f64", var, code.constant(float(10**dtype.scale))))
    if dtype.kind is Kind.DECIMAL:  # integers are rounded to even, decimals away from zero
        var = code.let(code.call("round_f64", var))
        if what.dtype.kind is Kind.REAL:  # and to the digits of a float, as in DuckDB
            var = code.let(code.call("round_f32", var))
    result = code.let(code.zero(register))
    with code.when(value.ok or ir.TRUE):
        if register is Register.I64:
            low, high = code.constant(limit.low), code.constant(limit.high)
            code.set(result, code.call("i64_from_f64_checked", var, low, high, code.status(), site))
        else:
            low, high = code.constant(float(limit.low)), code.constant(float(limit.high))
            above = "ge_f64" if limit.low == 0 else "gt_f64"  # the double nearest to the last of 38 digits is beyond it
            with code.when(ir.And((code.call(above, var, low), code.call("lt_f64", var, high)))):
                code.set(result, code.call("i128_from_f64", var))
            with code.otherwise():
                code.do(code.call("fail", code.status(), site))
    return Value(result, value.ok, ValueProperties(dtype, limit, what.nullable))


def _to_real(value: Value, code: Code) -> Value:
    """A DOUBLE as REAL; a finite one that would be infinite has to raise."""
    beyond = _beyond_real(value, code)
    with code.when(ir.And((value.ok, beyond)) if value.ok else beyond):
        code.do(code.call("fail", code.status(), code.site(ConversionError, "a DOUBLE value does not fit FLOAT")))
    return Value(code.let(code.call("round_f32", value.var)), value.ok, replace(value.properties, dtype=REAL))


def _beyond_real(value: Value, code: Code) -> ir.Expression:
    size = code.let(code.call("abs_f64", value.var))
    infinite = code.call("f64_from_bits", code.integer(INFINITE))
    return ir.And((code.call("ge_f64", size, code.constant(LEAST_BEYOND_REAL)), code.call("lt_f64", size, infinite)))


def _least_real_beyond(last: int, scale: int) -> float:
    """The least FLOAT that, rounded as `_from_float` does, is no DECIMAL of that scale whose last value is ``last``."""

    def fits(x: np.float32) -> bool:
        return int(np.float32(np.round(float(x) * float(10**scale)))) <= last

    x = np.float32((last + 1) / 10**scale)
    while fits(x):
        x = np.nextafter(x, np.float32(np.inf))
    while not fits(below := np.nextafter(x, np.float32(0))):
        x = below
    return float(x)


def _always_fits(what: ValueProperties, dtype: DType) -> bool:
    if dtype.is_float or dtype.kind is Kind.BOOLEAN:
        return not (what.dtype.kind is Kind.DOUBLE and dtype.kind is Kind.REAL)
    limit = type_bounds(dtype)
    if what.bounds is None or limit is None:
        return False
    if what.dtype.is_temporal:
        return what.dtype.kind is Kind.TIMESTAMP
    return Bounds(*(_scaled(b, dtype.scale - what.dtype.scale) for b in (what.bounds.low, what.bounds.high))).within(
        limit
    )


def _scaled(value: int, places: int) -> int:
    if places >= 0:
        return int(value * 10**places)
    factor: int = 10**-places
    size = (abs(value) + factor // 2) // factor
    return size if value >= 0 else -size


def _null_unless_fits(value: Value, dtype: DType, code: Code) -> Value:
    """NULL where the cast to ``dtype`` would raise: the source's own range of values that fit, tested first."""
    limit = type_bounds(dtype) or INT64
    what = value.properties
    bounds: Bounds | None = None
    if dtype.kind is Kind.REAL:
        test: ir.Expression = ir.Not(_beyond_real(value, code))
    elif what.dtype.is_float:
        places, is_decimal = 10.0**dtype.scale, dtype.kind is Kind.DECIMAL
        if is_decimal and what.dtype.kind is Kind.REAL:
            beyond = _least_real_beyond(limit.high, dtype.scale)
            low, high = code.constant(-beyond), code.constant(beyond)
        else:
            low = code.constant((limit.low - 0.5 * is_decimal) / places)
            high = code.constant((limit.high + 0.5) / places)
        above = code.call("gt_f64" if is_decimal else "ge_f64", value.var, low)
        test = ir.And((above, code.call("lt_f64", value.var, high)))
    else:
        assert what.bounds is not None
        places_ = dtype.scale - what.dtype.scale
        if what.dtype.kind is Kind.DATE:
            low_, high_ = -(-limit.low // MICROS_PER_DAY), limit.high // MICROS_PER_DAY
        elif places_ >= 0:
            low_, high_ = -(-limit.low // 10**places_), limit.high // 10**places_
        else:  # the largest values that still round into the range
            factor = 10**-places_
            low_, high_ = limit.low * factor - (factor - 1) // 2, limit.high * factor + (factor - 1) // 2
        bounds = Bounds(max(low_, what.bounds.low), min(high_, what.bounds.high))
        if bounds.low > bounds.high:
            bounds = Bounds(0, 0)
        if what.register is Register.I64:
            above = code.call("ge_i64", value.var, code.constant(bounds.low))
            test = ir.And((above, code.call("le_i64", value.var, code.constant(bounds.high))))
        else:
            low128 = code.let(code.call("make_i128", *(code.constant(w) for w in words_of(bounds.low))))
            high128 = code.let(code.call("make_i128", *(code.constant(w) for w in words_of(bounds.high))))
            wide = as_i128(value, code)
            test = ir.And((code.call("ge_i128", wide, low128), code.call("le_i128", wide, high128)))
    inside = code.both(value.ok, code.let(test))
    assert inside is not None
    narrowed = ValueProperties(what.dtype, bounds, True)
    var = value.var
    if what.register is Register.I128 and narrowed.register is Register.I64:
        register = code.let(code.zero(Register.I64))
        with code.when(inside):
            code.set(register, code.call("i64_from_i128", var))
        var = register
    return Value(var, inside, narrowed)
