# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Rounding and signs: floor, ceil, trunc, round, sign, of floats, decimals and integers.

Bodies call primitives by name, as those of `numeric` do. What keeps exact types is rewritten to casts and operators.
"""

from __future__ import annotations

from gquery.expression.expr import Case, Expr, IsNull, Literal
from gquery.expression.promotion import integer_as_decimal
from gquery.expression.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    REAL,
    TINYINT,
    Bounds,
    DType,
    Kind,
    decimal,
)
from gquery.functions.casts import bare, cast, fits
from gquery.functions.registry import by_signature, call, is_null_literal, make, resolver, scalar

_KEEPING = (((REAL,), REAL), ((DOUBLE,), DOUBLE))


@scalar("_floor", *_KEEPING)
def floor_float(x: float) -> float:
    """The greatest whole number not above x."""
    return floor_f64(x)


@scalar("_ceil", *_KEEPING)
def ceil_float(x: float) -> float:
    """The least whole number not below x."""
    return ceil_f64(x)


@scalar("_trunc", *_KEEPING)
def trunc_float(x: float) -> float:
    """x without its fraction."""
    return trunc_f64(x)


@scalar("_round", *_KEEPING)
def round_float(x: float) -> float:
    """The nearest whole number, halves away from zero."""
    return round_f64(x)


@scalar("_round_to", ((REAL, DOUBLE), REAL), ((DOUBLE, DOUBLE), DOUBLE))
def round_to(x: float, power: float) -> float:
    """x rounded to a multiple of 1 / power; x itself where the scaled number is out of reach."""
    scaled = round_f64(mul_f64(x, power))
    if f64_is_nan(sub_f64(scaled, scaled)):
        return x
    return div_f64(scaled, power)


@scalar("_round_to_tens", ((REAL, DOUBLE), REAL), ((DOUBLE, DOUBLE), DOUBLE))
def round_to_tens(x: float, power: float) -> float:
    """x rounded to a multiple of a power of ten; 0 where that is no finite number, as in DuckDB."""
    rounded = mul_f64(round_f64(div_f64(x, power)), power)
    if f64_is_nan(sub_f64(rounded, rounded)):
        return 0.0
    return rounded


@scalar("_trunc_to", ((REAL, DOUBLE), REAL), ((DOUBLE, DOUBLE), DOUBLE))
def trunc_to(x: float, power: float) -> float:
    """x cut to a multiple of 1 / power."""
    scaled = trunc_f64(mul_f64(x, power))
    if f64_is_nan(sub_f64(scaled, scaled)):
        return x
    return div_f64(scaled, power)


def _div_round_bounds(x: Bounds | None, power: Bounds | None) -> Bounds | None:
    if x is None or power is None or power.low <= 0:
        return None
    return Bounds(-((-x.low) // power.low) - 1, x.high // power.low + 1)


@scalar("_div_round", ((BIGINT, BIGINT), BIGINT), bounds=_div_round_bounds)
def div_round(x: int, power: int) -> int:
    """x / power to the nearest integer, halves away from zero."""
    return div_round_i64(x, power)


def _step_one(x: Expr, op: str, step: str) -> Expr:
    """floor and ceil of a decimal: cut, then one down (up) where the fraction was below (above) zero."""
    precision = x.dtype.precision
    x = _roomy(x)
    fraction = call("modulo", x, Literal(10**x.dtype.scale, x.dtype))
    dtype = decimal(precision, 0)
    cut = cast(make("subtract", (x, fraction), x.dtype), dtype)
    beyond = make(step, (cut, Literal(1, dtype)), dtype)
    return Case(((make(op, (fraction, Literal(0, fraction.dtype)), BOOLEAN), beyond),), cut)


def _roomy(x: Expr) -> Expr:
    """A decimal with at least one digit before the point."""
    p, s = x.dtype.precision, x.dtype.scale
    return cast(x, decimal(p + 1, s)) if p == s and p < 38 else x


@resolver("floor", "$(numeric)", example=("floor(-1.5)", "-2"))
def _floor(x: Expr) -> Expr | None:
    """The greatest whole number not above x."""
    if x.dtype.is_decimal:
        return _step_one(x, "lt", "subtract") if x.dtype.scale else x
    return by_signature("_floor", (x,), _KEEPING)


@resolver("ceil ceiling", "$(numeric)", example=("ceil(1.2)", "2"))
def _ceil(x: Expr) -> Expr | None:
    """The least whole number not below x."""
    if x.dtype.is_decimal:
        return _step_one(x, "gt", "add") if x.dtype.scale else x
    return by_signature("_ceil", (x,), _KEEPING)


def _cut(x: Expr, unit: int) -> Expr:
    """An exact number cut to a multiple of a unit (at its own scale), towards zero."""
    return make("subtract", (x, call("modulo", x, Literal(unit, x.dtype))), x.dtype)


def _zero(x: Expr) -> Expr:
    """0 of x's type; NULL with it."""
    return make("multiply", (x, Literal(0, x.dtype)), x.dtype)


@resolver("trunc", "$(numeric)", "$(numeric, digits)", example=("trunc(-1.7)", "-1"))
def _trunc(x: Expr, digits: Expr | None = None) -> Expr | None:
    """x without its fraction, or cut to some digits after the point."""
    n = _constant_digits(digits)
    if n is None:
        return None
    if x.dtype.is_integer:
        if n >= 0:
            return x
        return _cut(x, 10**-n) if fits(Literal(10**-n, x.dtype), x.dtype) else _zero(x)
    if x.dtype.is_decimal:
        precision, scale = x.dtype.precision, x.dtype.scale
        if n >= scale:
            return x
        if -n >= precision - scale:
            return cast(_zero_decimal(x), decimal(precision, 0))
        return cast(_cut(_roomy(x), 10 ** (scale - n)), decimal(precision, max(n, 0)))
    if n == 0:
        return by_signature("_trunc", (x,), _KEEPING)
    return by_signature(
        "_trunc_to", (x, Literal(10.0**n, DOUBLE)), (((REAL, DOUBLE), REAL), ((DOUBLE, DOUBLE), DOUBLE))
    )


def _zero_decimal(x: Expr) -> Expr:
    """0 of a decimal's type; NULL with it."""
    return make("subtract", (x, x), x.dtype)


@resolver("round", "$(numeric)", "$(numeric, digits)", example=("round(2.567, 2)", "2.57"))
def _round(x: Expr, digits: Expr | None = None) -> Expr | None:
    """x to the nearest multiple of a power of ten, halves away from zero."""
    n = _constant_digits(digits)
    if n is None:
        return None
    if x.dtype.kind is Kind.UBIGINT:
        x = cast(x, integer_as_decimal(x.dtype))
    elif x.dtype.kind in (Kind.UTINYINT, Kind.USMALLINT, Kind.UINTEGER):
        x = cast(x, BIGINT)
    if x.dtype.is_integer:
        return x if n >= 0 else _round_integer(x, n)
    if x.dtype.is_decimal:
        return x if n >= x.dtype.scale else _round_decimal(x, n)
    if n == 0:
        return by_signature("_round", (x,), _KEEPING)
    name = "_round_to" if n > 0 else "_round_to_tens"
    return by_signature(
        name, (x, Literal(10.0 ** abs(n), DOUBLE)), (((REAL, DOUBLE), REAL), ((DOUBLE, DOUBLE), DOUBLE))
    )


def _round_integer(x: Expr, n: int) -> Expr:
    if n < -18:
        return make("multiply", (x, Literal(0, x.dtype)), x.dtype)
    power = Literal(10**-n, BIGINT)
    tens = make("_div_round", (cast(x, BIGINT), power), BIGINT)
    return cast(make("multiply", (tens, power), BIGINT), x.dtype)


def _round_decimal(x: Expr, n: int) -> Expr:
    precision, scale = x.dtype.precision, x.dtype.scale
    if n >= 0:
        return cast(_roomy(x), decimal(precision, n))
    if -n > precision - scale:
        return cast(_zero_decimal(x), decimal(precision, 0))
    # half a unit away from zero, then cut to units, in one step: rounding to whole numbers first would round twice
    x = cast(x, decimal(min(38, precision + 1), scale))
    half = Literal(10 ** (scale - n) // 2, x.dtype)
    up, down = (make(op, (x, half), x.dtype) for op in ("add", "subtract"))
    shifted = Case(((make("lt", (x, Literal(0, x.dtype)), BOOLEAN), down),), up)
    return cast(_cut(shifted, 10 ** (scale - n)), decimal(precision, 0))


def _constant_digits(digits: Expr | None) -> int | None:
    if digits is None:
        return 0
    digits = bare(digits)
    if isinstance(digits, Literal) and digits.dtype.is_integer and digits.value is not None:
        return max(-40, min(40, int(digits.value)))
    return None


@resolver("sign", "$(numeric) -> TINYINT", example=("sign(-3.5)", "-1"))
def _sign(x: Expr) -> Expr | None:
    """-1, 0 or 1 as x is below, at or above zero."""
    if is_null_literal(x):
        return Literal(None, TINYINT)
    if not x.dtype.is_numeric:
        return None
    if x.dtype.is_float:
        return by_signature("_sign_float", (x,), (((DOUBLE,), TINYINT),))
    zero = cast(Literal(0, DType(Kind.INTEGER)), x.dtype)
    branches: list[tuple[Expr, Expr]] = [(IsNull(x), Literal(None, TINYINT))]
    branches.append((make("lt", (x, zero), BOOLEAN), Literal(-1, TINYINT)))
    branches.append((make("gt", (x, zero), BOOLEAN), Literal(1, TINYINT)))
    return Case(tuple(branches), Literal(0, TINYINT))


@scalar("_sign_float", ((DOUBLE,), TINYINT), bounds=lambda x: Bounds(-1, 1))
def sign_float(x: float) -> int:
    """`sign` of a float: 0 for NaN."""
    if lt_f64(x, 0.0):
        return i64(-1)
    if f64_is_nan(x) or eq_f64(x, 0.0):
        return i64(0)
    return i64(1)
