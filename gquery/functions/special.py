# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Functions of numbers beyond those of `numeric`: hyperbolic ones, gamma, factorials, and floats as they are stored."""

from __future__ import annotations

from math import factorial as factorial_of

from gquery.expression.expr import Expr, Literal
from gquery.expression.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, REAL, Bounds, decimal
from gquery.functions.casts import cast
from gquery.functions.numeric import is_beyond_one, is_zero
from gquery.functions.registry import call, is_null_literal, make, resolver, scalar

_UNARY = (((DOUBLE,), DOUBLE),)
_MOST_FACTORIAL = 33  # whose factorial an integer of 128 bits holds


# ---- hyperbolic functions --------------------------------------------------------------------------------------------


@scalar("sinh", *_UNARY, example=("sinh(0)", "0.0"))
def sinh(x: float) -> float:
    """Hyperbolic sine."""
    return sinh_f64(x)


@scalar("cosh", *_UNARY, example=("cosh(0)", "1.0"))
def cosh(x: float) -> float:
    """Hyperbolic cosine."""
    return cosh_f64(x)


@scalar("tanh", *_UNARY, example=("tanh(0)", "0.0"))
def tanh(x: float) -> float:
    """Hyperbolic tangent."""
    return tanh_f64(x)


@scalar("asinh", *_UNARY, example=("asinh(0)", "0.0"))
def asinh(x: float) -> float:
    """Inverse hyperbolic sine."""
    return asinh_f64(x)


@scalar("acosh", *_UNARY, example=("acosh(1)", "0.0"))
def acosh(x: float) -> float:
    """Inverse hyperbolic cosine; NaN below 1."""
    return acosh_f64(x)


@scalar("atanh", *_UNARY, domain=((is_beyond_one, "ATANH is undefined outside -1 to 1"),), example=("atanh(0)", "0.0"))
def atanh(x: float) -> float:
    """Inverse hyperbolic tangent; infinite, and not below 0, for -1 too."""
    if eq_f64(x, -1.0):
        x = 1.0
    return atanh_f64(x)


# ---- gamma -----------------------------------------------------------------------------------------------------------


@scalar("gamma", *_UNARY, domain=((is_zero, "cannot take gamma of zero"),), example=("gamma(5)", "24.0"))
def gamma(x: float) -> float:
    """The gamma function: (x - 1)! between whole numbers too."""
    return gamma_f64(x)


@scalar("lgamma", *_UNARY, domain=((is_zero, "cannot take log gamma of zero"),), example=("lgamma(1)", "0.0"))
def lgamma(x: float) -> float:
    """The natural logarithm of the magnitude of gamma."""
    return lgamma_f64(x)


def is_below_zero(n: int) -> bool:
    return lt_i64(n, 0)


def has_no_factorial(n: int) -> bool:
    return gt_i64(n, 33)


@scalar(
    "factorial",
    ((INTEGER,), decimal(38, 0)),
    bounds=lambda n: Bounds(1, factorial_of(_MOST_FACTORIAL)),
    domain=((is_below_zero, "the factorial of a negative number"), (has_no_factorial, "a factorial beyond 128 bits")),
    example=("factorial(5)", "120"),
)
def factorial(n: int) -> int:
    """The product of the whole numbers from 1 to n; HUGEINT in DuckDB."""
    made, k = i128_from_i64(1), i64(2)
    while le_i64(k, min_i64(n, 33)):
        made = mul_i128(made, i128_from_i64(k))
        k = add_i64(k, 1)
    return made


# ---- floats as they are stored ---------------------------------------------------------------------------------------


@scalar("_nextafter", ((DOUBLE, DOUBLE), DOUBLE))
def next_double(x: float, y: float) -> float:
    """The double beside x on the way to y."""
    if f64_is_nan(x) or f64_is_nan(y):
        return add_f64(x, y)
    if eq_f64(x, y):
        return y
    if eq_f64(x, 0.0):
        least = f64_from_bits(1)
        if lt_f64(y, x):
            return neg_f64(least)
        return least
    bits = bits_f64(x)
    if (lt_f64(x, y) and gt_f64(x, 0.0)) or (lt_f64(y, x) and lt_f64(x, 0.0)):
        return f64_from_bits(add_i64(bits, 1))
    return f64_from_bits(sub_i64(bits, 1))


@scalar("_nextafter_real", ((REAL, REAL), REAL))
def next_real(x: float, y: float) -> float:
    """The REAL beside x on the way to y: a REAL's last bit is the 30th of the double that holds it."""
    if f64_is_nan(x) or f64_is_nan(y):
        return add_f64(x, y)
    if eq_f64(x, y):
        return y
    least = 1.401298464324817e-45
    if lt_f64(y, x):
        least = neg_f64(least)
    size = abs_f64(x)
    is_away = (lt_f64(x, y) and ge_f64(x, 0.0)) or (lt_f64(y, x) and le_f64(x, 0.0))
    if lt_f64(size, 1.1754943508222875e-38) or (not is_away and eq_f64(size, 1.1754943508222875e-38)):
        return add_f64(x, least)
    if f64_is_nan(sub_f64(x, x)):
        if lt_f64(x, 0.0):
            return -3.4028234663852886e38
        return 3.4028234663852886e38
    if is_away:
        return f64_from_bits(add_i64(bits_f64(x), 536870912))
    return f64_from_bits(sub_i64(bits_f64(x), 536870912))


@resolver("nextafter", "$(DOUBLE, DOUBLE) -> DOUBLE", "$(FLOAT, FLOAT) -> FLOAT",
          example=("nextafter(1::DOUBLE, 2::DOUBLE) > 1", "True"))  # fmt: skip
def _nextafter(x: Expr, y: Expr) -> Expr | None:
    """The float beside x on the way to y."""
    if not (x.dtype.is_numeric and y.dtype.is_numeric):
        return None
    if REAL in (x.dtype, y.dtype) and DOUBLE not in (x.dtype, y.dtype):
        return make("_nextafter_real", (cast(x, REAL), cast(y, REAL)), REAL)
    return make("_nextafter", (cast(x, DOUBLE), cast(y, DOUBLE)), DOUBLE)


@scalar("signbit", ((DOUBLE,), BOOLEAN), ((REAL,), BOOLEAN), example=("signbit(-0.0::DOUBLE)", "True"))
def signbit(x: float) -> bool:
    """Whether a float is negative, or -0; not so NaN."""
    return not f64_is_nan(x) and lt_i64(bits_f64(x), 0)


@resolver("round_even roundbankers", "$(numeric, digits)", example=("round_even(2.5, 0)", "2.0"))
def _round_even(x: Expr, digits: Expr) -> Expr | None:
    """x rounded to some digits after the point, a half to the even neighbour."""
    x = cast(x, DOUBLE) if is_null_literal(x) else x
    if not (x.dtype.is_numeric and digits.dtype.is_integer):
        return None
    power = call("pow", Literal(10, BIGINT), call("add", digits, Literal(1, INTEGER)))
    last = call("modulo", call("multiply", call("abs", x), power), Literal(10, BIGINT))
    half = call("multiply", call("round", call("divide", x, Literal(2, BIGINT)), digits), Literal(2, BIGINT))
    from gquery.functions.conditional import case

    return case([(call("eq", last, Literal(5, BIGINT)), half)], call("round", x, digits))
