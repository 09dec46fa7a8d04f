"""How alike two strings are, by Jaro and Winkler: characters that both have, not far apart. They are bytes, as in DuckDB."""

from __future__ import annotations

import pyarrow as pa

from gquery.expression.expr import Expr, Literal
from gquery.expression.types import DOUBLE, VARCHAR
from gquery.functions.registry import by_signature, host_scalar, resolver
from gquery.functions.vectors import Vector, each_row

_SSD = (((VARCHAR, VARCHAR, DOUBLE), DOUBLE),)
_ALL = Literal(0.0, DOUBLE)
_WEIGHT, _FROM, _MOST_BEGINNING = 0.1, 0.7, 4  # of a common beginning, where they are that alike, up to so many bytes


def jaro(a: bytes, b: bytes) -> float:
    """The likeness by Jaro, 0 to 1."""
    if not a or not b:
        return 0.0
    reach = max(max(len(a), len(b)) // 2 - 1, 0)
    taken = [False] * len(b)
    common: list[int] = []
    for i, x in enumerate(a):
        for j in range(max(i - reach, 0), min(i + reach + 1, len(b))):
            if b[j] == x and not taken[j]:
                taken[j] = True
                common.append(x)
                break
    if not common:
        return 0.0
    there = [y for y, is_taken in zip(b, taken, strict=True) if is_taken]
    swaps = sum(x != y for x, y in zip(common, there, strict=True)) // 2
    count = len(common)
    return (count / len(a) + count / len(b) + (count - swaps) / count) / 3


def jaro_winkler(a: bytes, b: bytes) -> float:
    """Jaro's likeness, more where both begin alike."""
    found = jaro(a, b)
    if found <= _FROM:
        return found
    beginning = 0
    for x, y in zip(a[:_MOST_BEGINNING], b, strict=False):
        if x != y:
            break
        beginning += 1
    return min(found + beginning * _WEIGHT * (1 - found), 1.0)


@host_scalar("_jaro", *_SSD)
def jaro_similarity(a: Vector, b: Vector, least: Vector) -> Vector:
    """`jaro_similarity`, 0 below a number."""
    return each_row(lambda a, b, least: _from(jaro(a.encode(), b.encode()), least), pa.float64(), a, b, least)


@host_scalar("_jaro_winkler", *_SSD)
def jaro_winkler_similarity(a: Vector, b: Vector, least: Vector) -> Vector:
    """`jaro_winkler_similarity`, 0 below a number."""
    return each_row(lambda a, b, least: _from(jaro_winkler(a.encode(), b.encode()), least), pa.float64(), a, b, least)


def _from(found: float, least: float) -> float:
    return found if found >= least else 0.0


@resolver(
    "jaro_similarity", "$(VARCHAR, VARCHAR, least) -> DOUBLE", example=("jaro_similarity('duck', 'duckdb', 0.9)", "0.0")
)
def _jaro(a: Expr, b: Expr, least: Expr = _ALL) -> Expr | None:
    """How alike two strings are, 0 to 1, by Jaro; 0 where that is below a number."""
    return by_signature("_jaro", (a, b, least), _SSD)


@resolver("jaro_winkler_similarity", "$(VARCHAR, VARCHAR, least) -> DOUBLE",
          example=("jaro_winkler_similarity('duck', 'duckdb') > 0.93", "True"))  # fmt: skip
def _jaro_winkler(a: Expr, b: Expr, least: Expr = _ALL) -> Expr | None:
    """How alike two strings are, 0 to 1, by Jaro and Winkler: a common beginning counts more. 0 where that is below a number."""
    return by_signature("_jaro_winkler", (a, b, least), _SSD)
