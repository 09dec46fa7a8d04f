"""How alike two strings are, by Jaro and Winkler: characters that both have, not far apart. They are bytes, as in DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.expression.expr import Expr, Literal
from gquery.expression.types import DOUBLE, VARCHAR
from gquery.functions.edit_distance import WORD_BITS, Side, blocks, places_of_bytes, sides
from gquery.functions.registry import by_signature, host_scalar, resolver
from gquery.functions.vectors import Vector, array_of, doubles, from_numpy, with_nulls_of

_SSD = (((VARCHAR, VARCHAR, DOUBLE), DOUBLE),)
_OfBlock = Callable[[Side, Side], Any]
_OfPair = Callable[[bytes, bytes], float]
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


def _jaro_of_block(a: Side, b: Side) -> Any:
    """float64: Jaro's likeness for rows of which both strings have as many bytes as a word has bits, at most."""
    first, second, where = a.matrix(), b.matrix(), places_of_bytes(b)
    rows, one, zero = np.arange(len(a.sizes)), np.uint64(1), np.uint64(0)
    reach = np.maximum(np.maximum(a.sizes, b.sizes) // 2 - 1, 0)
    taken = np.zeros(len(rows), np.uint64)  # places of the second string
    common = np.zeros(first.shape, np.bool_)  # those of the first
    for n in range(first.shape[1]):
        low = np.maximum(n - reach, 0)
        high = np.minimum(n + reach, WORD_BITS - 1)
        window = (~zero << low.astype(np.uint64)) & (~zero >> (WORD_BITS - 1 - high).astype(np.uint64))
        found = np.where(n < a.sizes, where[rows, first[:, n]] & window & ~taken, zero)
        common[:, n] = found != 0
        taken |= found & (~found + one)  # the lowest bit
    there = (taken[:, None] >> np.arange(second.shape[1], dtype=np.uint64)) & one != 0
    count = common.sum(axis=1)
    differs = np.append(0, np.cumsum(first[common] != second[there]))
    ends = np.cumsum(count)
    swaps = (differs[ends] - differs[ends - count]) // 2
    with np.errstate(divide="ignore", invalid="ignore"):
        made = (count / a.sizes + count / b.sizes + (count - swaps) / count) / 3
    return np.where(count > 0, made, 0.0)


def _winkler_of_block(a: Side, b: Side) -> Any:
    """float64: the same by Jaro and Winkler."""
    found = _jaro_of_block(a, b)
    first, second = (np.pad(side.matrix(), ((0, 0), (0, _MOST_BEGINNING)))[:, :_MOST_BEGINNING] for side in (a, b))
    is_there = np.arange(_MOST_BEGINNING) < np.minimum(a.sizes, b.sizes)[:, None]
    beginning = np.minimum.accumulate((first == second) & is_there, axis=1).sum(axis=1)
    return np.where(found > _FROM, np.minimum(found + beginning * _WEIGHT * (1 - found), 1.0), found)


def _likeness(a: Vector, b: Vector, least: Vector, of_block: _OfBlock, of_pair: _OfPair) -> pa.Array:
    """float64, 0 below ``least``, NULL where an argument is."""
    x, y, ok = sides(a, b)
    made = np.zeros(len(ok))
    fits = np.maximum(x.sizes, y.sizes) <= WORD_BITS
    for block in blocks(np.flatnonzero(ok & fits), np.zeros(len(ok), np.int64)):
        made[block] = of_block(x.at(block), y.at(block))
    for row in np.flatnonzero(ok & ~fits).tolist():
        made[row] = of_pair(x.string(row), y.string(row))
    enough = array_of(least, len(ok))
    made = np.where(made >= doubles(enough), made, 0.0)
    return with_nulls_of(from_numpy(made.view(np.int64)).view(pa.float64()), array_of(a, len(ok)), array_of(b, len(ok)), enough)


@host_scalar("_jaro", *_SSD)
def jaro_similarity(a: Vector, b: Vector, least: Vector) -> Vector:
    """`jaro_similarity`, 0 below a number."""
    return _likeness(a, b, least, _jaro_of_block, jaro)


@host_scalar("_jaro_winkler", *_SSD)
def jaro_winkler_similarity(a: Vector, b: Vector, least: Vector) -> Vector:
    """`jaro_winkler_similarity`, 0 below a number."""
    return _likeness(a, b, least, _winkler_of_block, jaro_winkler)


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
