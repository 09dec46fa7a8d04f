"""FLOATs as decimals: rounded, then to the digits of a FLOAT, at the ends of types too."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from gquery.errors import ConversionError
from tests.support.harness import TARGETS, assert_error, compare, connect, expect

_RANDOM = random.Random(3)
_FLOATS = [
    -1423368832.0, 0.35, 0.15, 0.25, 1e30, 9999999827968.0, 1000.0, 10.0, 1e7, 99999997952.0, None, float("nan"), float("-inf"),
    *(_RANDOM.uniform(-1, 1) * 10 ** _RANDOM.randint(-3, 22) for _ in range(100)),
]  # fmt: skip
_TABLES = {"t": pa.table({"x": pa.array(_FLOATS, pa.float32())})}


@pytest.mark.parametrize("target", TARGETS)
def test_floats_as_decimals(target: str) -> None:
    """Where DuckDB's decimal has more digits than its type, ours is NULL."""
    types = [(12, 2), (18, 3), (18, 9), (9, 2), (4, 1), (38, 4), (14, 1), (20, 1), (30, 29), (9, 9)]
    items = ", ".join(f"TRY_CAST(x AS DECIMAL({w},{s})) AS d{n}" for n, (w, s) in enumerate(types))
    sql = f"SELECT x, {items} FROM t"
    names, rows = expect(sql, _TABLES)
    want = [(row[0], *(_within(v, w) for v, (w, _) in zip(row[1:], types, strict=True))) for row in rows]
    assert sum(a != b for row, kept in zip(rows, want) for a, b in zip(row[1:], kept[1:])) == 2
    wrong = compare(connect(target, 1, _TABLES).sql(sql).fetchall(), want, False, names)
    assert wrong is None, wrong


def _within(value: Decimal | None, digits: int) -> Decimal | None:
    return None if value is None or len(value.as_tuple().digits) > digits else value


def test_a_decimal_with_more_digits_than_its_type_is_refused() -> None:
    sql = "SELECT CAST(x AS DECIMAL(14,1)) FROM t WHERE x = 9999999827968"
    assert_error(sql, _TABLES, ConversionError, "does not fit", ranks=(1,))


def _numbers(digits: int, scale: int) -> list[Decimal | None]:
    """Random decimals of few and of many digits."""
    r = random.Random(digits)
    most = [10 ** r.randint(1, digits) for _ in range(200)]
    return [None, *(Decimal(r.randint(-n, n)).scaleb(-scale) for n in (*most, 10**digits - 1))]


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_as_floats(target: str) -> None:
    """To the last digit, where a double or a FLOAT does not hold the integer that a decimal is over a power of ten."""
    r = random.Random(7)
    some = (r.randint(-(2**63), 2**63 - 1) >> r.randint(0, 62) for _ in range(200))
    integers = [2**63 - 1, -(2**63), 9007199791611905, 0, *some]
    data = {
        "t": pa.table(
            {
                "i": pa.array([None, *integers[:201]], pa.int64()),
                "a": pa.array(_numbers(18, 3), pa.decimal128(18, 3)),
                "b": pa.array(_numbers(18, 17), pa.decimal128(18, 17)),
                "c": pa.array(_numbers(25, 10), pa.decimal128(25, 10)),
                "d": pa.array(_numbers(9, 4), pa.decimal128(9, 4)),
            }
        )
    }
    sql = "SELECT a::DOUBLE, b::DOUBLE, c::DOUBLE, d::DOUBLE, i::DOUBLE, a::FLOAT, b::FLOAT, c::FLOAT, d::FLOAT, i::FLOAT FROM t"
    _, want = expect(sql, data)
    assert [*map(repr, connect(target, 1, data).sql(sql).fetchall())] == [*map(repr, want)]
