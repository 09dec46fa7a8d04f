"""Parts of strings in characters as people see them (`graphemes`), where `left` and its kin count code points."""

from __future__ import annotations

import pyarrow as pa

from gquery.expression.expr import Expr, Literal
from gquery.expression.types import BIGINT, INT64, VARCHAR
from gquery.functions.graphemes import characters
from gquery.functions.registry import by_signature, host_scalar, resolver
from gquery.functions.vectors import Vector, each_row

_ALL = Literal(INT64.high, BIGINT)
_SI, _SII = ((VARCHAR, BIGINT), VARCHAR), (((VARCHAR, BIGINT, BIGINT), VARCHAR),)


@host_scalar("length_grapheme", ((VARCHAR,), BIGINT), example=("length_grapheme('e' || chr(769))", "1"))
def length(s: Vector) -> Vector:
    """How many characters as people see them."""
    return each_row(lambda s: len(characters(s)), pa.int64(), s)


@host_scalar("left_grapheme", _SI, example=("left_grapheme('abc', 2)", "ab"))
def left(s: Vector, count: Vector) -> Vector:
    """The first of these characters; all but the last -count for a negative count."""
    return each_row(lambda s, n: "".join(characters(s)[:n]), pa.string(), s, count)


@host_scalar("right_grapheme", _SI, example=("right_grapheme('abc', 2)", "bc"))
def right(s: Vector, count: Vector) -> Vector:
    """The last of these characters; all but the first -count for a negative count."""

    def last(s: str, n: int) -> str:
        found = characters(s)
        return "".join(found[max(len(found) - n, 0) :] if n >= 0 else found[-n:])

    return each_row(last, pa.string(), s, count)


@host_scalar("_substring_grapheme", *_SII)
def substring(s: Vector, start: Vector, count: Vector) -> Vector:
    """`substring_grapheme`."""

    def part(s: str, start: int, count: int) -> str:
        found = characters(s)
        first = min(start - 1, len(found)) if start > 0 else max(len(found) + start, 0) if start < 0 else 0
        count = count - (start == 0) if count > 0 else count
        return "".join(found[first : first + count] if count > 0 else found[max(first + count, 0) : first])

    return each_row(part, pa.string(), s, start, count)


@resolver(
    "substring_grapheme", "$(VARCHAR, start, length) -> VARCHAR", example=("substring_grapheme('abcd', 2, 2)", "bc")
)
def _substring(s: Expr, start: Expr, count: Expr = _ALL) -> Expr | None:
    """Some of these characters from a place, counted from 1, or from the end where it is negative."""
    return by_signature("_substring_grapheme", (s, start, count), _SII)
