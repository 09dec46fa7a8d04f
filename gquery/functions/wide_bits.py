# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Bits of DECIMALs without a fraction that stand for DuckDB's HUGEINT: UBIGINT beside a signed type, literals of 19 digits.

No primitive takes more than 64 bits. So a number is taken apart into two words, as two's complement has them, by exact
arithmetic: the upper one is a BIGINT, the lower one a UBIGINT.
"""

from __future__ import annotations

from collections.abc import Callable

from gquery.expression.expr import Case, Expr, IsNull, Literal
from gquery.expression.facts import INT64_DIGITS
from gquery.expression.traverse import disjunction
from gquery.expression.types import BIGINT, BOOLEAN, UBIGINT, Bounds, DType, decimal
from gquery.functions.aggregate_parts import Parts
from gquery.functions.casts import cast
from gquery.functions.registry import call, make, scalar

_WIDE = decimal(38, 0)
_WORD = Literal(1 << 64, _WIDE)


def is_wide(dtype: DType) -> bool:
    """Whether a type stands for HUGEINT; of 38 digits the bits may be a number of 39."""
    return dtype.is_decimal and not dtype.scale and INT64_DIGITS < dtype.precision < _WIDE.precision


def type_of_bits(*types: DType) -> DType:
    """The type that holds what bits of values of some types make."""
    digits = max(t.precision if t.is_decimal else len(str(1 << 64)) for t in types)
    return decimal(min(digits + 1, _WIDE.precision), 0)


def bits(function: str, a: Expr, b: Expr) -> Expr:
    """A function of two words (``_bit_and`` and its like) of two whole numbers."""
    (high_a, low_a), (high_b, low_b) = _words(a), _words(b)
    high, low = make(function, (high_a, high_b), BIGINT), make(function, (low_a, low_b), UBIGINT)
    return _joined(high, low, type_of_bits(a.dtype, b.dtype))


def complement(x: Expr) -> Expr:
    """Every bit the other way."""
    return cast(call("subtract", Literal(-1, BIGINT), x), type_of_bits(x.dtype))


def reduced(function: str) -> Callable[[Parts, Expr], Expr]:
    """``bit_and`` and its like of whole numbers, as parts of an aggregate."""

    def parts(p: Parts, x: Expr) -> Expr:
        high, low = _words(x)
        return _joined(p.part(function, BIGINT, high), p.part(function, UBIGINT, low), type_of_bits(x.dtype))

    return parts


def _words(x: Expr) -> tuple[Expr, Expr]:
    """The upper and the lower 64 bits."""
    wide = cast(x, _WIDE)
    below = call("lt", wide, Literal(0, _WIDE))
    size = make("int_divide", (Case(((below, _from_minus_one(wide)),), wide), _WORD), _WIDE)
    high = Case(((below, _from_minus_one(size)),), size)
    low = make("subtract", (wide, make("multiply", (high, _WORD), _WIDE)), _WIDE)
    return cast(high, BIGINT), cast(low, UBIGINT)


def _from_minus_one(x: Expr) -> Expr:
    return make("subtract", (Literal(-1, _WIDE), x), _WIDE)


def _joined(high: Expr, low: Expr, dtype: DType) -> Expr:
    return cast(
        make("add", (make("multiply", (cast(high, _WIDE), _WORD), _WIDE), cast(low, _WIDE)), _WIDE), dtype
    )


# ---- shifts ------------------------------------------------------------------------------------------------------------

_BITS, _LAST_POWER = 128, 126  # the powers of two that a DECIMAL holds end with the 126th


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


def shifted_left(x: Expr, places: Expr) -> Expr:
    """The bits some places up. OutOfRangeError where the number has more digits than a DECIMAL."""
    number, count = _sides(x, places)
    count = make("_left_places", (call("lt", number, Literal(0, _WIDE)), count), BIGINT)
    shifted = make("multiply", (number, make("_wide_power_of_two", (count,), _WIDE)), _WIDE)
    twice = make("multiply", (shifted, Literal(2, _WIDE)), _WIDE)  # too much, but of 0
    return Case(((call("gt", count, Literal(_LAST_POWER, BIGINT)), twice),), shifted)


def shifted_right(x: Expr, places: Expr) -> Expr:
    """The bits some places down, the sign kept; 0 for as many places as there are bits, and for places below 0."""
    number, count = _sides(x, places)
    power, zero = make("_wide_power_of_two", (count,), _WIDE), Literal(0, _WIDE)
    below = call("lt", number, zero)
    rest = make("int_divide", (Case(((below, _from_minus_one(number)),), number), power), _WIDE)
    shifted = Case(((below, _from_minus_one(rest)),), rest)
    sign = Case(((below, Literal(-1, _WIDE)),), zero)
    is_none = disjunction((call("lt", count, Literal(0, BIGINT)), call("ge", count, Literal(_BITS, BIGINT))))
    nothing = IsNull(number), Literal(None, _WIDE)  # also where no bit is left
    return Case((nothing, (is_none, zero), (call("gt", count, Literal(_LAST_POWER, BIGINT)), sign)), shifted)


def _sides(x: Expr, places: Expr) -> tuple[Expr, Expr]:
    """The number, and the places as a BIGINT, of which those that all bits go over are as many as these."""
    most = Literal(_BITS, places.dtype)
    return cast(x, _WIDE), cast(Case(((call("gt", places, most), most),), places), BIGINT)
