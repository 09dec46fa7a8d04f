"""Bits of DECIMALs without a fraction that stand for DuckDB's HUGEINT: UBIGINT beside a signed type, literals of 19 digits.

No primitive takes more than 64 bits. So a number is taken apart into two words, as two's complement has them, by exact
arithmetic: the upper one is a BIGINT, the lower one a UBIGINT.
"""

from __future__ import annotations

from collections.abc import Callable

from gquery.expression.expr import Case, Expr, Literal
from gquery.expression.facts import INT64_DIGITS
from gquery.expression.types import BIGINT, UBIGINT, DType, decimal
from gquery.functions.aggregate_parts import Parts
from gquery.functions.casts import cast
from gquery.functions.registry import call, make

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
