# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Functions of numbers.

Bodies work on doubles (``f64`` registers) and call primitives by name, which each target resolves; that is why their
names are not defined here.

A function outside its domain raises (``sqrt(-1)``, ``ln(0)``); NaN gives NaN.
"""

from __future__ import annotations

from gquery.expression.expr import Expr, Literal
from gquery.expression.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    REAL,
    UBIGINT,
)
from gquery.functions.casts import cast, is_text_literal
from gquery.functions.registry import by_signature, call, is_null_literal, make, resolver, scalar
from gquery.functions.wide_bits import bits, is_wide

_UNARY = (((DOUBLE,), DOUBLE),)
_BINARY = (((DOUBLE, DOUBLE), DOUBLE),)


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
def pow(x: float, y: float) -> float:  # noqa: A001  (SQL's name)
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
    if not all(e.dtype.is_integer or is_wide(e.dtype) or is_null_literal(e) for e in (a, b)):
        return None
    dtype = call("add", a, b).dtype
    if is_null_literal(a) or is_null_literal(b):
        return Literal(None, dtype)
    if not dtype.is_integer:  # UBIGINT and a signed type: DuckDB's is HUGEINT
        return bits(name, a, b)
    word = UBIGINT if dtype == UBIGINT else BIGINT
    return cast(make(name, (cast(a, word), cast(b, word)), word), dtype)


@resolver("_bit_and", "$(integer, integer)", example=("6 & 3", "2"))
def _and(a: Expr, b: Expr) -> Expr | None:
    """Bits set in both."""
    return _bits("_bit_and", a, b)


@resolver("_bit_or", "$(integer, integer)", example=("6 | 3", "7"))
def _or(a: Expr, b: Expr) -> Expr | None:
    """Bits set in either."""
    return _bits("_bit_or", a, b)


@resolver("xor", "$(integer, integer)", example=("xor(6, 3)", "5"))
def _xor(a: Expr, b: Expr) -> Expr | None:
    """Bits set in one of both."""
    return _bits("_bit_xor", a, b)
