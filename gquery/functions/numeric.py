# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Functions of numbers.

Bodies work on doubles (``f64`` registers) and call primitives by name, which each target resolves; that is why their
names are not defined here. Functions that keep exact types (``round`` of a decimal) are rewritten to casts and
operators, which the engine computes in 64 or 128 bits as bounds tell.

A function outside its domain raises (``sqrt(-1)``, ``ln(0)``); NaN gives NaN.
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
    UBIGINT,
    Bounds,
    DType,
    Kind,
    decimal,
)
from gquery.functions.casts import bare, cast, fits, is_text_literal
from gquery.functions.registry import by_signature, call, is_null_literal, make, resolver, scalar

_UNARY = (((DOUBLE,), DOUBLE),)
_BINARY = (((DOUBLE, DOUBLE), DOUBLE),)
_KEEPING = (((REAL,), REAL), ((DOUBLE,), DOUBLE))


# ---- where a function raises -----------------------------------------------------------------------------------------


def is_negative(x: float) -> bool:
    return lt_f64(x, 0.0)


def is_zero(x: float) -> bool:
    return eq_f64(x, 0.0)


def is_infinite(x: float) -> bool:
    return not f64_is_nan(x) and f64_is_nan(sub_f64(x, x))


def is_beyond_one(x: float) -> bool:
    return not f64_is_nan(x) and gt_f64(abs_f64(x), 1.0)


def has_negative(x: float, y: float) -> bool:
    return lt_f64(x, 0.0) or lt_f64(y, 0.0)


def has_zero(x: float, y: float) -> bool:
    return eq_f64(x, 0.0) or eq_f64(y, 0.0)


def is_one(x: float, y: float) -> bool:
    return eq_f64(x, 1.0)


_LOGARITHM = (
    (is_negative, "cannot take logarithm of a negative number"),
    (is_zero, "cannot take logarithm of zero"),
)
_LOGARITHM_TO_BASE = (
    (has_negative, "cannot take logarithm of a negative number"),
    (has_zero, "cannot take logarithm of zero"),
    (is_one, "cannot take logarithm to base 1"),
)
_ANGLE = ((is_infinite, "a trigonometric function of an infinite number"),)
_SINE = ((is_beyond_one, "ASIN and ACOS are undefined outside -1 to 1"),)


@scalar(
    "sqrt", *_UNARY, domain=((is_negative, "cannot take square root of a negative number"),), example=("sqrt(9)", "3.0")
)
def sqrt(x: float) -> float:
    """Square root."""
    return sqrt_f64(x)


@scalar("cbrt", *_UNARY, example=("cbrt(64)", "4.0"))
def cbrt(x: float) -> float:
    """Cube root."""
    if eq_f64(x, 0.0) or f64_is_nan(sub_f64(x, x)):
        return x
    root = pow_f64(abs_f64(x), 0.3333333333333333)
    excess = sub_f64(mul_f64(mul_f64(root, root), root), abs_f64(x))
    root = sub_f64(root, div_f64(excess, mul_f64(3.0, mul_f64(root, root))))  # a step of Newton's
    if lt_f64(x, 0.0):
        return neg_f64(root)
    return root


@scalar("ln", *_UNARY, domain=_LOGARITHM, example=("ln(1)", "0.0"))
def ln(x: float) -> float:
    """Natural logarithm."""
    return ln_f64(x)


@scalar("log10 log", *_UNARY, domain=_LOGARITHM, example=("log(1000)", "3.0"))
def log10(x: float) -> float:
    """Logarithm to base 10; ``log(b, x)`` takes the base first."""
    return log10_f64(x)


@scalar("log2", *_UNARY, domain=_LOGARITHM, example=("log2(8)", "3.0"))
def log2(x: float) -> float:
    """Logarithm to base 2."""
    return log2_f64(x)


@scalar("_log_base", *_BINARY, domain=_LOGARITHM_TO_BASE)
def log_base(base: float, x: float) -> float:
    """Logarithm of x to a base."""
    return div_f64(log10_f64(x), log10_f64(base))


@resolver("log", "$(base DOUBLE, DOUBLE) -> DOUBLE", example=("log(2, 8)", "3.0"))
def _log_base(base: Expr, x: Expr) -> Expr | None:
    """Logarithm of x to a base."""
    return by_signature("_log_base", (base, x), _BINARY)


@scalar("exp", *_UNARY, example=("exp(0)", "1.0"))
def exp(x: float) -> float:
    """e to the power x."""
    return exp_f64(x)


@scalar("pow power", *_BINARY, example=("pow(2, 10)", "1024.0"))
def pow(x: float, y: float) -> float:  # noqa: A001
    """x to the power y, as DOUBLE; also written ``x ** y`` and ``x ^ y``."""
    return pow_f64(x, y)


@scalar("_fmod_real", ((REAL, REAL), REAL))
def fmod_real(x: float, y: float) -> float:
    """`fmod` with every step rounded."""
    return sub_f64(x, round_f32(mul_f64(floor_f64(round_f32(div_f64(x, y))), y)))


@scalar("_fmod", *_BINARY)
def fmod_double(x: float, y: float) -> float:
    """`fmod` of doubles."""
    return sub_f64(x, mul_f64(floor_f64(div_f64(x, y)), y))


@resolver("fmod", "$(FLOAT, FLOAT) -> FLOAT", "$(DOUBLE, DOUBLE) -> DOUBLE", example=("fmod(-5.5, 2)", "0.5"))
def _fmod(x: Expr, y: Expr) -> Expr | None:
    """The remainder of floats with the sign of the divisor, where ``%`` has that of the dividend."""
    if is_text_literal(x) or is_text_literal(y):
        return None  # a macro of DuckDB's, whose operators take no text
    real = by_signature("_fmod_real", (x, y), (((REAL, REAL), REAL),))
    if real is not None and REAL in (x.dtype, y.dtype) and DOUBLE not in (x.dtype, y.dtype):
        return real
    return by_signature("_fmod", (x, y), _BINARY)


@scalar("sin", *_UNARY, domain=_ANGLE, example=("sin(0)", "0.0"))
def sin(x: float) -> float:
    """Sine of radians."""
    return sin_f64(x)


@scalar("cos", *_UNARY, domain=_ANGLE, example=("cos(0)", "1.0"))
def cos(x: float) -> float:
    """Cosine of radians."""
    return cos_f64(x)


@scalar("tan", *_UNARY, domain=_ANGLE, example=("tan(0)", "0.0"))
def tan(x: float) -> float:
    """Tangent of radians."""
    return tan_f64(x)


@scalar(
    "cot",
    *_UNARY,
    domain=(*_ANGLE, (is_zero, "COT is undefined at 0")),
    example=("cot(1) > 0.64 AND cot(1) < 0.65", "True"),
)
def cot(x: float) -> float:
    """Cotangent of radians."""
    return div_f64(1.0, tan_f64(x))


@scalar("asin", *_UNARY, domain=_SINE, example=("asin(0)", "0.0"))
def asin(x: float) -> float:
    """Arc sine in radians."""
    return asin_f64(x)


@scalar("acos", *_UNARY, domain=_SINE, example=("acos(1)", "0.0"))
def acos(x: float) -> float:
    """Arc cosine in radians."""
    return acos_f64(x)


@scalar("atan", *_UNARY, example=("atan(0)", "0.0"))
def atan(x: float) -> float:
    """Arc tangent in radians."""
    return atan_f64(x)


@scalar("atan2", *_BINARY, example=("atan2(0, 1)", "0.0"))
def atan2(y: float, x: float) -> float:
    """Angle of the point (x, y) in radians."""
    return atan2_f64(y, x)


@scalar("degrees", *_UNARY, example=("degrees(0)", "0.0"))
def degrees(x: float) -> float:
    """Radians as degrees."""
    return mul_f64(x, 57.29577951308232)


@scalar("radians", *_UNARY, example=("radians(0)", "0.0"))
def radians(x: float) -> float:
    """Degrees as radians."""
    return mul_f64(x, 0.017453292519943295)


@scalar("isnan", ((REAL,), BOOLEAN), ((DOUBLE,), BOOLEAN), example=("isnan('nan'::DOUBLE)", "True"))
def isnan(x: float) -> bool:
    """Whether x is NaN."""
    return f64_is_nan(x)


@scalar("isinf", ((REAL,), BOOLEAN), ((DOUBLE,), BOOLEAN), example=("isinf(1::DOUBLE / 0)", "True"))
def isinf(x: float) -> bool:
    """Whether x is infinite."""
    return not f64_is_nan(x) and f64_is_nan(sub_f64(x, x))


@scalar("isfinite", ((REAL,), BOOLEAN), ((DOUBLE,), BOOLEAN), example=("isfinite(1::DOUBLE)", "True"))
def isfinite(x: float) -> bool:
    """Whether x is neither NaN nor infinite."""
    return not f64_is_nan(sub_f64(x, x))


@resolver("pi", "$() -> DOUBLE", example=("pi() > 3", "True"))
def _pi() -> Expr:
    """3.14159..."""
    return Literal(3.141592653589793, DOUBLE)


# ---- rounding --------------------------------------------------------------------------------------------------------


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
    branches: list[tuple[Expr, Expr]] = [(IsNull(x), Literal(None, TINYINT))] if x.nullable else []
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


# ---- bits ------------------------------------------------------------------------------------------------------------


@scalar("_bit_and", ((BIGINT, BIGINT), BIGINT))
def bit_and(a: int, b: int) -> int:
    """Bits set in both."""
    return and_i64(a, b)


@scalar("_bit_or", ((BIGINT, BIGINT), BIGINT))
def bit_or(a: int, b: int) -> int:
    """Bits set in either."""
    return or_i64(a, b)


@scalar("_bit_xor", ((BIGINT, BIGINT), BIGINT))
def bit_xor(a: int, b: int) -> int:
    """Bits set in one of both."""
    return xor_i64(a, b)


def _bits(name: str, a: Expr, b: Expr) -> Expr | None:
    if not all(e.dtype.is_integer or is_null_literal(e) for e in (a, b)):
        return None
    dtype = call("add", a, b).dtype
    if is_null_literal(a) or is_null_literal(b):
        return Literal(None, dtype)
    if not dtype.is_integer:  # UBIGINT and a signed type: DuckDB's is HUGEINT
        return None
    word = UBIGINT if dtype == UBIGINT else BIGINT
    return cast(make(name, (cast(a, word), cast(b, word)), word), dtype)


@resolver("bit_and", "$(integer, integer)", example=("6 & 3", "2"))
def _and(a: Expr, b: Expr) -> Expr | None:
    """Bits set in both."""
    return _bits("_bit_and", a, b)


@resolver("bit_or", "$(integer, integer)", example=("6 | 3", "7"))
def _or(a: Expr, b: Expr) -> Expr | None:
    """Bits set in either."""
    return _bits("_bit_or", a, b)


@resolver("xor", "$(integer, integer)", example=("xor(6, 3)", "5"))
def _xor(a: Expr, b: Expr) -> Expr | None:
    """Bits set in one of both."""
    return _bits("_bit_xor", a, b)
