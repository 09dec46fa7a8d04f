"""Numbers of an expression in other registers: as doubles and FLOATs, to the last digit as DuckDB has them, and in 128 bits."""

from __future__ import annotations

from gquery.expression.types import INT64, Bounds, Register, type_bounds
from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.kernels.values import Value
from gquery.runtime.records import replace

F64_WHOLE, F32_WHOLE = (Bounds(-(2**bits), 2**bits) for bits in (53, 24))  # integers that a DOUBLE, or a FLOAT, holds
F32_POWERS = 10  # the greatest power of ten that a FLOAT holds


def as_f64(value: Value, code: Code) -> ir.Expression:
    """A number as a double: decimals divided by their scale."""
    if value.properties.dtype.scale and not _holds(F64_WHOLE, value):
        return _quotient("f64", value, code)
    match value.properties.register:
        case Register.F64:
            return value.var
        case Register.I64:
            by_words = _is_wide(value) and not _holds(F64_WHOLE, value)
            number = code.call("f64_from_i128", as_i128(value, code)) if by_words else code.call("f64", value.var)
        case Register.I128:
            number = code.call("f64_from_i128", value.var)
        case Register.BOOL:
            number = code.call("f64", code.call("from_bool", value.var))
        case Register.STR:
            raise AssertionError("a string in arithmetic")
    if value.properties.dtype.scale:
        number = code.call("div_f64", number, code.constant(float(10**value.properties.dtype.scale)))
    return code.let(number)


def as_f32(value: Value, code: Code) -> ir.Expression:
    """A number as a FLOAT, rounded once; decimals of more than 18 digits as a double first, as in DuckDB."""
    what = value.properties
    if what.dtype.scale and not (_holds(F32_WHOLE, value) and what.dtype.scale <= F32_POWERS):
        return _quotient("f32", value, code)
    if what.dtype.is_exact and not _is_wide(value) and not _holds(F64_WHOLE, value):
        if what.register is Register.I64:
            return code.let(code.call("f32_from_i64", value.var))
        return code.let(code.call("f32_from_u64", code.call("low_i128", value.var)))
    return code.let(code.call("round_f32", as_f64(value, code)))


def _is_wide(value: Value) -> bool:
    """Whether DuckDB has the type in two words, whose doubles it adds; UBIGINT is one."""
    what = value.properties.dtype
    return what.is_decimal and not (type_bounds(what) or INT64).within(INT64)


def _holds(limit: Bounds, value: Value) -> bool:
    return value.properties.bounds is not None and value.properties.bounds.within(limit)


def _quotient(name: str, value: Value, code: Code) -> ir.Expression:
    """A decimal that a double, or a FLOAT, may not hold before it is divided."""
    power, register = 10**value.properties.dtype.scale, value.properties.register
    if _is_wide(value) and register is Register.I64:
        value, register = replace(value, var=as_i128(value, code)), Register.I128
    which = "i128" if register is Register.I128 else "i64"
    return code.let(code.call(f"{name}_from_decimal_{which}", value.var, exact_constant(power, register, code)))


def words_of(value: int) -> tuple[int, int]:
    """The two 64-bit words of a 128-bit integer, high word first, both as signed.

    >>> words_of(-1)
    (-1, -1)
    """
    low = value & (2**64 - 1)
    return value >> 64, low - 2**64 if low >= 2**63 else low


def wide_constant(value: int, code: Code) -> ir.Name:
    high, low = words_of(value)
    return code.let(code.call("make_i128", code.constant(high), code.constant(low)))


def exact_constant(value: int, register: Register, code: Code) -> ir.Expression:
    """An integer constant in a register of 64 or 128 bits."""
    return wide_constant(value, code) if register is Register.I128 else code.constant(value)


def as_i128(value: Value, code: Code) -> ir.Expression:
    """The value as a 128-bit integer."""
    return value.var if value.properties.register is Register.I128 else code.let(code.call("i128_from_i64", value.var))
