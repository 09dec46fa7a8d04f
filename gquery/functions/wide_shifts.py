# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Shifts of UBIGINT, and of whole numbers that DuckDB shifts in HUGEINT: UBIGINT beside a signed type, literals of 19 digits.
Here they are DECIMALs without a fraction, whose powers of two end with the 126th."""

from __future__ import annotations

from gquery.expression.expr import Case, Expr, Literal
from gquery.expression.traverse import disjunction
from gquery.expression.types import BIGINT, BOOLEAN, Bounds, decimal
from gquery.functions.casts import cast
from gquery.functions.registry import call, make, scalar

_WIDE = decimal(38, 0)
_BITS, _LAST_POWER = 128, 126


def is_of_negative(x_below: bool, places: int) -> bool:
    return x_below


def is_back(x_below: bool, places: int) -> bool:
    return lt_i64(places, 0)


@scalar(
    "_left_places",
    ((BOOLEAN, BIGINT), BIGINT),
    domain=(
        (is_of_negative, "cannot left-shift a negative number"),
        (is_back, "cannot left-shift by a negative number"),
    ),
    bounds=lambda x_below, places: places,
)
def left_places(x_below: bool, places: int) -> int:
    """How far a number is shifted to the left; a number below 0 is not, and none goes back."""
    return places


@scalar("_wide_power_of_two", ((BIGINT,), _WIDE), bounds=lambda places: Bounds(1, 2**_LAST_POWER))
def power_of_two(places: int) -> int:
    """2 to the power of 0 to 126, the nearest of these for other numbers."""
    return shl_i128(i128_from_i64(1), min_i64(max_i64(places, 0), 126))


def left(x: Expr, places: Expr) -> Expr:
    """The bits some places up. OutOfRangeError where the number has more digits than a DECIMAL."""
    number, count = _sides(x, places)
    count = make("_left_places", (call("lt", number, Literal(0, _WIDE)), count), BIGINT)
    shifted = make("multiply", (number, make("_wide_power_of_two", (count,), _WIDE)), _WIDE)
    twice = make("multiply", (shifted, Literal(2, _WIDE)), _WIDE)  # too much, but of 0
    return Case(((call("gt", count, Literal(_LAST_POWER, BIGINT)), twice),), shifted)


def right(x: Expr, places: Expr) -> Expr:
    """The bits some places down, the sign kept; 0 for as many places as there are bits, and for places below 0."""
    number, count = _sides(x, places)
    power, zero = make("_wide_power_of_two", (count,), _WIDE), Literal(0, _WIDE)
    below = call("lt", number, zero)
    rest = make("int_divide", (Case(((below, _turned(number)),), number), power), _WIDE)
    shifted = Case(((below, _turned(rest)),), rest)
    sign = Case(((below, Literal(-1, _WIDE)),), zero)
    is_none = disjunction((call("lt", count, Literal(0, BIGINT)), call("ge", count, Literal(_BITS, BIGINT))))
    return Case(((is_none, zero), (call("gt", count, Literal(_LAST_POWER, BIGINT)), sign)), shifted)


def _sides(x: Expr, places: Expr) -> tuple[Expr, Expr]:
    """The number, and the places as a BIGINT, of which those that all bits go over are as many as these."""
    most = Literal(_BITS, places.dtype)
    return cast(x, _WIDE), cast(Case(((call("gt", places, most), most),), places), BIGINT)


def _turned(x: Expr) -> Expr:
    """Every bit the other way."""
    return make("subtract", (Literal(-1, _WIDE), x), _WIDE)
