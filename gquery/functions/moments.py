# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Moments: variances, covariances, regressions, skewness and kurtosis, as parts of aggregates and what is made of them.

Sums of squares about 0 lose the digits that values have in common, so nothing here takes them in floating point. Of integers of
up to 32 bits and decimals of up to 9 digits the sums are exact, and so is ``n * sum(x * y) - sum(x) * sum(y)``, in 128 bits: the
rows are looked at once. Of all others sums are taken about a number near the mean of the group, which is found first, and are
corrected for its distance from the mean.
"""

from __future__ import annotations

from collections.abc import Callable

from gquery.expression.expr import Call, Case, Cast, Expr, Literal
from gquery.expression.facts import INT64_DIGITS
from gquery.expression.types import BIGINT, DOUBLE, DType, Kind, decimal
from gquery.functions.aggregate_parts import Parts, is_there
from gquery.functions.casts import cast
from gquery.functions.registry import call, make, scalar

SMALL = (Kind.TINYINT, Kind.UTINYINT, Kind.SMALLINT, Kind.USMALLINT, Kind.INTEGER)
_TOTAL = decimal(38, 0)  # of exact sums, decimal places left out
_RANGE = "out of range: a moment of values of which one is infinite or NaN, or that are too large for DOUBLE"

# ---- what a kernel computes for each group ---------------------------------------------------------------------------

_TWO = (((DOUBLE, DOUBLE), DOUBLE),)
_THREE = (((DOUBLE, DOUBLE, DOUBLE), DOUBLE),)
_FOUR = (((DOUBLE, DOUBLE, DOUBLE, DOUBLE), DOUBLE),)
_FIVE = (((DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE), DOUBLE),)


def is_not_finite(x: float) -> bool:
    return f64_is_nan(sub_f64(x, x))


@scalar("_finite", ((DOUBLE,), DOUBLE), domain=((is_not_finite, _RANGE),))
def _finite(x: float) -> float:
    """x, which is neither infinite nor NaN."""
    return x


@scalar("_ratio", *_TWO)
def _ratio(x: float, y: float) -> float:
    """x / y, as IEEE has it."""
    return div_f64(x, y)


@scalar("_about_means", *_FOUR)
def _about_means(n: float, x: float, y: float, xy: float) -> float:
    """The sum of products about the means of n pairs, from sums about any other numbers."""
    return sub_f64(xy, div_f64(mul_f64(x, y), n))


@scalar("_correlation", *_THREE)
def _correlation(x: float, y: float, xy: float) -> float:
    """The correlation, from sums of products about the means."""
    return div_f64(div_f64(xy, sqrt_f64(x)), sqrt_f64(y))


@scalar("_skewness", *_FOUR)
def _skewness(n: float, s1: float, s2: float, s3: float) -> float:
    """The skewness of a sample of n values, from sums of their powers about any number."""
    mean = div_f64(s1, n)
    variance = sub_f64(div_f64(s2, n), mul_f64(mean, mean))
    third = sub_f64(div_f64(s3, n), mul_f64(mul_f64(3.0, mean), div_f64(s2, n)))
    third = add_f64(third, mul_f64(2.0, mul_f64(mean, mul_f64(mean, mean))))
    if le_f64(variance, 0.0):
        return div_f64(0.0, 0.0)
    scale = div_f64(sqrt_f64(mul_f64(n, sub_f64(n, 1.0))), sub_f64(n, 2.0))
    return div_f64(mul_f64(scale, third), mul_f64(variance, sqrt_f64(variance)))


@scalar("_excess", *_FIVE)
def _excess(n: float, s1: float, s2: float, s3: float, s4: float) -> float:
    """The kurtosis of n values less that of a normal distribution, from sums of their powers about any number."""
    mean = div_f64(s1, n)
    square = mul_f64(mean, mean)
    variance = sub_f64(div_f64(s2, n), square)
    fourth = sub_f64(div_f64(s4, n), mul_f64(mul_f64(4.0, mean), div_f64(s3, n)))
    fourth = add_f64(fourth, mul_f64(mul_f64(6.0, square), div_f64(s2, n)))
    fourth = sub_f64(fourth, mul_f64(3.0, mul_f64(square, square)))
    return sub_f64(div_f64(fourth, mul_f64(variance, variance)), 3.0)


@scalar("_sample_excess", *_TWO)
def _sample_excess(n: float, excess: float) -> float:
    """The same of a sample of n values."""
    scaled = add_f64(mul_f64(add_f64(n, 1.0), excess), 6.0)
    return div_f64(mul_f64(sub_f64(n, 1.0), scaled), mul_f64(sub_f64(n, 2.0), sub_f64(n, 3.0)))


# ---- sums about the mean ---------------------------------------------------------------------------------------------


def is_small(dtype: DType) -> bool:
    """Whether sums of squares of such values are exact in 128 bits, whatever the values are."""
    return dtype.kind in SMALL or (dtype.is_decimal and 2 * dtype.precision <= INT64_DIGITS)


def _products(p: Parts, x: Expr, y: Expr) -> Expr:
    """The sum of the products of the distances of x and y from their means, over the rows where both are there."""
    n = p.count()
    if is_small(x.dtype) and is_small(y.dtype) and x.dtype.is_decimal == y.dtype.is_decimal:
        return _exact_products(p, x, y)
    found = p.central(cast(x, DOUBLE), cast(y, DOUBLE))
    if found is not None:
        return found
    a, b = (call("subtract", cast(e, DOUBLE), p.centre(cast(e, DOUBLE))) for e in (x, y))
    sums = (p.part("sum", DOUBLE, e) for e in (a, b, call("multiply", a, b)))
    return make("_about_means", (cast(n, DOUBLE), *sums), DOUBLE)


def _exact_products(p: Parts, x: Expr, y: Expr) -> Expr:
    n = cast(p.count(), _TOTAL)
    if not x.dtype.is_decimal:
        x, y = cast(x, BIGINT), cast(y, BIGINT)
    product = call("multiply", x, y)
    sx, sy, sxy = (p.part("sum", _TOTAL, e) for e in (x, y, product))
    exact = _exactly("subtract", _exactly("multiply", n, sxy), _exactly("multiply", sx, sy))
    made = cast(exact, DOUBLE)
    if product.dtype.is_decimal:
        made = make("_ratio", (made, Literal(float(10**product.dtype.scale), DOUBLE)), DOUBLE)
    return make("_ratio", (made, cast(p.count(), DOUBLE)), DOUBLE)


def _exactly(operation: str, a: Expr, b: Expr) -> Expr:
    return Call(operation, (a, b), _TOTAL, a.nullable or b.nullable)


def _mean(p: Parts, x: Expr) -> Expr:
    return p.part("avg", DOUBLE, x)


def _where_more(p: Parts, least: int, result: Expr) -> Expr:
    """The result where there are more than so many rows, else NULL."""
    return Case(((is_there("gt", p.count(), Literal(least, BIGINT)), result),), Literal(None, DOUBLE))


# ---- the aggregates --------------------------------------------------------------------------------------------------

Aggregates = dict[str, Callable[..., Expr]]


def _spread(of_sample: bool, root: bool, of_mean: bool = False) -> Callable[[Parts, Expr], Expr]:
    """A variance, a standard deviation (``root``), or the standard error of the mean."""

    def result(p: Parts, x: Expr) -> Expr:
        p.only(x)
        n = cast(p.count(), DOUBLE)
        divisor = call("subtract", n, Literal(1.0, DOUBLE)) if of_sample else n
        made: Expr = make("_finite", (make("_ratio", (_products(p, x, x), divisor), DOUBLE),), DOUBLE)
        if of_mean:
            made = make("_ratio", (made, n), DOUBLE)
        return _where_more(p, 1 if of_sample else 0, make("sqrt", (made,), DOUBLE) if root else made)

    return result


def _covariance(of_sample: bool) -> Callable[[Parts, Expr, Expr], Expr]:
    def result(p: Parts, y: Expr, x: Expr) -> Expr:
        p.only(y, x)
        n = cast(p.count(), DOUBLE)
        divisor = call("subtract", n, Literal(1.0, DOUBLE)) if of_sample else n
        return _where_more(p, int(of_sample), make("_ratio", (_products(p, y, x), divisor), DOUBLE))

    return result


def _correlated(p: Parts, y: Expr, x: Expr) -> Expr:
    xx, yy = (make("_finite", (_products(p, e, e),), DOUBLE) for e in (x, y))
    return make("_correlation", (xx, yy, _products(p, x, y)), DOUBLE)


def corr(p: Parts, y: Expr, x: Expr) -> Expr:
    p.only(y, x)
    return _where_more(p, 0, _correlated(p, y, x))


def regr_sxx(p: Parts, y: Expr, x: Expr) -> Expr:
    p.only(y, x)
    return _where_more(p, 0, make("_finite", (_products(p, x, x),), DOUBLE))


def regr_syy(p: Parts, y: Expr, x: Expr) -> Expr:
    return regr_sxx(p, x, y)


def regr_sxy(p: Parts, y: Expr, x: Expr) -> Expr:
    p.only(y, x)
    return _where_more(p, 0, _products(p, x, y))


def regr_avgx(p: Parts, y: Expr, x: Expr) -> Expr:
    p.only(y, x)
    return _mean(p, x)


def regr_avgy(p: Parts, y: Expr, x: Expr) -> Expr:
    return regr_avgx(p, x, y)


def regr_count(p: Parts, y: Expr, x: Expr) -> Expr:
    p.only(y, x)
    return Cast(p.count(), DType(Kind.UINTEGER))


def _slope(p: Parts, y: Expr, x: Expr) -> Expr:
    return make("_ratio", (_products(p, x, y), make("_finite", (_products(p, x, x),), DOUBLE)), DOUBLE)


def regr_slope(p: Parts, y: Expr, x: Expr) -> Expr:
    p.only(y, x)
    return _where_more(p, 0, _slope(p, y, x))


def _is_zero(e: Expr) -> Expr:
    return is_there("eq", e, Literal(0.0, DOUBLE))


def regr_intercept(p: Parts, y: Expr, x: Expr) -> Expr:
    p.only(y, x)
    xx = make("_finite", (_products(p, x, x),), DOUBLE)
    line = call("subtract", _mean(p, y), call("multiply", _slope(p, y, x), _mean(p, x)))
    return _where_more(p, 0, Case(((_is_zero(xx), Literal(None, DOUBLE)),), line))


def regr_r2(p: Parts, y: Expr, x: Expr) -> Expr:
    p.only(y, x)
    xx, yy = (make("_finite", (_products(p, e, e),), DOUBLE) for e in (x, y))
    r = _correlated(p, y, x)
    branches = ((_is_zero(xx), Literal(None, DOUBLE)), (_is_zero(yy), Literal(1.0, DOUBLE)))
    return _where_more(p, 0, Case(branches, call("multiply", r, r)))


def _powers(p: Parts, x: Expr, count: int) -> list[Expr]:
    """The count of values, and the sums of so many powers of their distances from a number near their mean."""
    own = cast(x, DOUBLE)
    found = [p.central(*[own] * power) for power in range(2, count + 1)]
    if all(e is not None for e in found):
        return [cast(p.count(), DOUBLE), Literal(0.0, DOUBLE), *(e for e in found if e is not None)]
    distance = call("subtract", cast(x, DOUBLE), p.centre(cast(x, DOUBLE)))
    power, sums = distance, [cast(p.count(), DOUBLE)]
    for _ in range(count):
        sums.append(p.part("sum", DOUBLE, power))
        power = call("multiply", power, distance)
    return sums


def skewness(p: Parts, x: Expr) -> Expr:
    p.only(x)
    sums = _powers(p, x, 3)
    made = Case(((_is_zero(sums[2]), make("_ratio", (Literal(0.0, DOUBLE), Literal(0.0, DOUBLE)), DOUBLE)),),
                make("_finite", (make("_skewness", sums, DOUBLE),), DOUBLE))  # fmt: skip
    return _where_more(p, 2, made)


def _kurtosis(of_sample: bool) -> Callable[[Parts, Expr], Expr]:
    def result(p: Parts, x: Expr) -> Expr:
        p.only(x)
        sums = _powers(p, x, 4)
        made: Expr = make("_excess", sums, DOUBLE)
        if of_sample:
            made = make("_sample_excess", (sums[0], made), DOUBLE)
        same = Case(((_is_zero(sums[2]), Literal(None, DOUBLE)),), make("_finite", (made,), DOUBLE))
        return _where_more(p, 3 if of_sample else 1, same)

    return result


def geomean(p: Parts, x: Expr) -> Expr:
    return make("exp", (p.part("avg", DOUBLE, make("ln", (x,), DOUBLE)),), DOUBLE)


var_samp, var_pop = _spread(True, False), _spread(False, False)
stddev_samp, stddev_pop, sem = _spread(True, True), _spread(False, True), _spread(False, True, of_mean=True)
covar_samp, covar_pop = _covariance(True), _covariance(False)
kurtosis, kurtosis_pop = _kurtosis(True), _kurtosis(False)
