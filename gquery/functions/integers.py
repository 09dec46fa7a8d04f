# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Functions of whole numbers: bits, divisors, the next even number."""

from __future__ import annotations

import numpy as np

from gquery.errors import OutOfRangeError
from gquery.expression.expr import Expr, Literal
from gquery.expression.types import (
    BIGINT,
    DOUBLE,
    INT64,
    TINYINT,
    UBIGINT,
    Bounds,
    DType,
    type_bounds,
)
from gquery.functions.casts import cast
from gquery.functions.registry import call, host_scalar, is_null_literal, make, resolver, scalar
from gquery.functions.vectors import Vector, array_of, from_numpy, integers, size_of, with_nulls_of
from gquery.functions.wide_bits import complement, is_wide, shifted_left, shifted_right

_TWO = (BIGINT, BIGINT)


@resolver("_bit_not", "$(integer)", example=("~5", "-6"))
def _bit_not(x: Expr) -> Expr | None:
    """Every bit the other way."""
    if is_null_literal(x):
        return Literal(None, BIGINT)
    if is_wide(x.dtype):
        return complement(x)
    limit = type_bounds(x.dtype)
    if not x.dtype.is_integer or limit is None:
        return None
    return make("subtract", (Literal(-1 if limit.low < 0 else limit.high, x.dtype), x), x.dtype)


@scalar("_bit_count", (_TWO, BIGINT), bounds=lambda x, bits: Bounds(0, 64))
def bits_set(x: int, bits: int) -> int:
    """How many of the lowest bits are 1: of a number below 0 those that are 0 in its complement."""
    n = x
    if lt_i64(x, 0):
        n = sub_i64(-1, x)
    n = add_i64(and_i64(n, 0x5555555555555555), and_i64(shr_i64(n, 1), 0x5555555555555555))
    n = add_i64(and_i64(n, 0x3333333333333333), and_i64(shr_i64(n, 2), 0x3333333333333333))
    n = add_i64(and_i64(n, 0x0F0F0F0F0F0F0F0F), and_i64(shr_i64(n, 4), 0x0F0F0F0F0F0F0F0F))
    n = add_i64(and_i64(n, 0x00FF00FF00FF00FF), and_i64(shr_i64(n, 8), 0x00FF00FF00FF00FF))
    n = add_i64(and_i64(n, 0x0000FFFF0000FFFF), and_i64(shr_i64(n, 16), 0x0000FFFF0000FFFF))
    n = add_i64(and_i64(n, 0x00000000FFFFFFFF), shr_i64(n, 32))
    if lt_i64(x, 0):
        return sub_i64(bits, n)
    return n


@resolver("bit_count", "$(integer) -> TINYINT", example=("bit_count(7)", "3"))
def _bit_count(x: Expr) -> Expr | None:
    """How many bits are 1."""
    limit = type_bounds(x.dtype) if x.dtype.is_integer and x.dtype != UBIGINT else None
    if limit is None:
        return None
    width = 64 if limit.low == 0 else limit.high.bit_length() + 1
    return cast(make("_bit_count", (cast(x, BIGINT), Literal(width, BIGINT)), BIGINT), TINYINT)


@host_scalar("gcd greatest_common_divisor", (_TWO, BIGINT), example=("gcd(12, -18)", "6"),
             fails=(OutOfRangeError, "the greatest common divisor is no BIGINT"))  # fmt: skip
def gcd(a: Vector, b: Vector) -> Vector:
    """The greatest number that divides both."""
    rows = size_of(a, b)
    made = np.gcd(integers(a, rows), integers(b, rows))
    return with_nulls_of(from_numpy(made, made >= 0), array_of(a, rows), array_of(b, rows))


@host_scalar("lcm least_common_multiple", (_TWO, BIGINT), example=("lcm(4, 6)", "12"),
             fails=(OutOfRangeError, "the least common multiple is no BIGINT"))  # fmt: skip
def lcm(a: Vector, b: Vector) -> Vector:
    """The least number that both divide; 0 with a 0."""
    rows = size_of(a, b)
    x, y = integers(a, rows), integers(b, rows)
    common = np.maximum(np.abs(np.gcd(x, y)), 1)
    part, other = (np.abs(v).view(np.uint64) for v in (x // common, y))
    fits = part <= np.uint64(INT64.high) // np.maximum(other, 1)
    made = np.where(fits, part * np.where(fits, other, 0), 0).view(np.int64)
    return with_nulls_of(from_numpy(made, fits), array_of(a, rows), array_of(b, rows))


@resolver("even", "$(numeric) -> DOUBLE", example=("even(2.5)", "4.0"))
def _even(x: Expr) -> Expr | None:
    """The next even number away from 0."""
    if not x.dtype.is_numeric:
        return None
    x = cast(x, DOUBLE)
    half = call("divide", call("abs", x), Literal(2.0, DOUBLE))
    size = call("multiply", call("ceil", half), Literal(2.0, DOUBLE))
    return call("if", call("signbit", x), call("negate", size), size)


@resolver("fdiv", "$(numeric, numeric) -> DOUBLE or FLOAT", example=("fdiv(7, 2)", "3.0"))
def _fdiv(a: Expr, b: Expr) -> Expr | None:
    """The quotient, rounded down."""
    if not (a.dtype.is_numeric and b.dtype.is_numeric):
        return None
    return call("floor", call("divide", a, b))


# ---- shifts ----------------------------------------------------------------------------------------------------------


def shifts_negative(x: int, places: int, most: int) -> bool:
    return lt_i64(x, 0)


def shifts_back(x: int, places: int, most: int) -> bool:
    return lt_i64(places, 0)


def shifts_out(x: int, places: int, most: int) -> bool:
    return gt_i64(x, shr_i64(most, min_i64(max_i64(places, 0), 63)))


_LEFT = ((shifts_negative, "cannot left-shift a negative number"), (shifts_back, "cannot left-shift by a negative number"),
         (shifts_out, "overflow in left shift"))  # fmt: skip


@scalar(
    "_shift_left", ((BIGINT, BIGINT, BIGINT), BIGINT), domain=_LEFT, bounds=lambda x, places, most: Bounds(0, most.high)
)
def shift_left(x: int, places: int, most: int) -> int:
    """The bits some places up; a result above the most of a type is an error."""
    room = shr_i64(most, min_i64(max_i64(places, 0), 63))
    if lt_i64(x, 0) or lt_i64(places, 0) or ge_i64(places, 63) or gt_i64(x, room):
        return i64(0)
    return shl_i64(x, places)


@scalar("_shift_right", ((BIGINT, BIGINT, BIGINT), BIGINT))
def shift_right(x: int, places: int, bits: int) -> int:
    """The bits some places down, the sign kept; 0 for as many places as there are bits, and for places below 0."""
    if lt_i64(places, 0) or ge_i64(places, bits):
        return i64(0)
    return shr_i64(x, places)


def _shifted(x: Expr, places: Expr) -> tuple[Expr, Expr, DType] | None:
    """Both sides as BIGINTs, and the type of the result; in a type that 64 bits do not hold, as they are. None where a side is no
    integer."""
    if not all(e.dtype.is_integer or is_wide(e.dtype) or is_null_literal(e) for e in (x, places)):
        return None
    dtype = call("add", x, places).dtype
    if not dtype.is_integer or dtype == UBIGINT:  # DuckDB's is HUGEINT, but for UBIGINT
        return x, places, dtype
    return cast(cast(x, dtype), BIGINT), cast(cast(places, dtype), BIGINT), dtype


@resolver("_shift_left", "$(integer, integer)", example=("1 << 4", "16"))
def _shift_left(x: Expr, places: Expr) -> Expr | None:
    """The bits of an integer some places up."""
    sides = _shifted(x, places)
    if sides is None:
        return None
    number, count, dtype = sides
    if not dtype.is_integer or dtype == UBIGINT:
        shifted = shifted_left(number, count)
        return cast(shifted, UBIGINT) if dtype == UBIGINT else shifted
    limit = type_bounds(dtype)
    assert limit is not None
    return cast(make("_shift_left", (number, count, Literal(limit.high, BIGINT)), BIGINT), dtype)


@resolver("_shift_right", "$(integer, integer)", example=("-9 >> 1", "-5"))
def _shift_right(x: Expr, places: Expr) -> Expr | None:
    """The bits of an integer some places down, the sign kept."""
    sides = _shifted(x, places)
    if sides is None:
        return None
    number, count, dtype = sides
    if not dtype.is_integer or dtype == UBIGINT:
        shifted = shifted_right(number, count)
        return cast(shifted, UBIGINT) if dtype == UBIGINT else shifted
    limit = type_bounds(dtype)
    assert limit is not None
    bits = (limit.high - limit.low).bit_length()
    return cast(make("_shift_right", (number, count, Literal(bits, BIGINT)), BIGINT), dtype)
