"""Comparisons of a widened column with a constant are made in the column's own type.

    CAST(d AS TIMESTAMP) < TIMESTAMP '1995-01-01 00:00:00'   =>   d < DATE '1995-01-01'
    CAST(i AS BIGINT) <= 5                                   =>   i <= 5
    CAST(x AS DECIMAL(16,3)) > 1.005                         =>   x > 1.00            x is DECIMAL(15,2)

Column statistics then speak of the comparison, and a kernel compares what it loads. Only for casts that lose nothing
and keep the order; a constant between two values of the column's type is rounded to the side that keeps the meaning.
"""

from __future__ import annotations

from gquery.expression.expr import FALSE, TRUE, Call, Cast, Expr, Literal
from gquery.expression.facts import MICROS_PER_DAY, power_of_ten
from gquery.expression.slots import decided, derived
from gquery.expression.types import BOOLEAN, DType, Kind, type_bounds
from gquery.functions.casts import is_between


def uncast(e: Call) -> Expr:
    """The comparison without its cast, or ``e`` itself.

    >>> from gquery.expression.types import BIGINT, INTEGER
    >>> from gquery.expression.expr import new_column
    >>> i = new_column("i", INTEGER, False)
    >>> uncast(Call("lt", (Cast(i, BIGINT), Literal(5, BIGINT)), BOOLEAN, False)).args[1].dtype == INTEGER
    True
    """
    a, b = e.args
    if not (isinstance(a, Cast) and isinstance(b, Literal) and not b.is_null and b.dtype.is_exact):
        return e
    factor = _factor(a.arg.dtype, a.dtype)
    bounds = type_bounds(a.arg.dtype)
    if factor is None or bounds is None:
        return e
    match e.function:
        case "eq" | "ne":
            if not decided(_is_a_value, (b,), factor, bounds.low, bounds.high):  # no value is equal
                never = FALSE if e.function == "eq" else TRUE
                return e if a.arg.nullable else never  # a nullable column's NULL would be lost in a constant
            value = derived(_whole_part, a.arg.dtype, (b,), factor)
        case "ge" | "lt":
            value = derived(_next_value, a.arg.dtype, (b,), factor)
        case "le" | "gt":
            value = derived(_whole_part, a.arg.dtype, (b,), factor)
        case _:
            return e
    if not decided(is_between, (value,), bounds.low, bounds.high):
        return e
    return Call(e.function, (a.arg, value), BOOLEAN, e.nullable)


def _whole_part(value: int, factor: int) -> int:
    """The greatest value of the column's type that is not above the constant, in the column's unit."""
    return value // factor


def _next_value(value: int, factor: int) -> int:
    """The least one that is not below it."""
    return -(-value // factor)


def _is_a_value(value: int, factor: int, low: int, high: int) -> bool:
    whole, rest = divmod(value, factor)
    return not rest and low <= whole <= high


def _factor(narrow: DType, wide: DType) -> int | None:
    """What one unit of ``narrow`` is in units of ``wide``, where every value of it has its place there."""
    if narrow.kind is Kind.DATE and wide.kind is Kind.TIMESTAMP:
        return MICROS_PER_DAY
    inner, outer = type_bounds(narrow), type_bounds(wide)
    numbers = (narrow.is_integer or narrow.is_decimal) and (wide.is_integer or wide.is_decimal)
    if not numbers or inner is None or outer is None or wide.scale < narrow.scale:
        return None
    factor = power_of_ten(wide.scale - narrow.scale)
    return factor if inner.low * factor >= outer.low and inner.high * factor <= outer.high else None
