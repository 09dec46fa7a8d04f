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
