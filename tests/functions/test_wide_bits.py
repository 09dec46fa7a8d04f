"""Bits of what is HUGEINT in DuckDB, and a DECIMAL without a fraction here."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from gquery.errors import BindError
from tests.support.harness import TARGETS, assert_error, compare, connect, expect

_RANDOM = random.Random(5)
_ENDS = [0, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1]


def _column(low: int) -> pa.Array:
    ends = [n for v in _ENDS for n in (v, -v, ~v) if low <= n < low + 2**64]
    values = [*ends, *(_RANDOM.randrange(low, low + 2**64) >> _RANDOM.randrange(64) for _ in range(60)), None, None]
    _RANDOM.shuffle(values)
    return pa.array([_RANDOM.choice(values) for _ in range(90)], pa.uint64() if low == 0 else pa.int64())


_TABLES = {
    "t": pa.table({"g": [n % 7 for n in range(90)], "n": range(90), "u": _column(0), "b": _column(-(2**63))}),
    "none": pa.table({"u": pa.array([], pa.uint64()), "b": pa.array([], pa.int64())}),
}
_H = "least(u, b)"
_QUERIES = (
    "SELECT u & b, u | b, xor(u, b), ~greatest(u, b), b & u & 12, u | -1, xor(-1, u), u & NULL, b | least(u, b) FROM t",
    f"SELECT g, bit_and({_H}), bit_or({_H}), bit_xor({_H}), bit_xor(DISTINCT {_H}) FROM t GROUP BY g",
    f"SELECT g, bit_or({_H}) FILTER (WHERE u > 9) FROM t GROUP BY g",
    f"SELECT bit_and({_H}), bit_or({_H}), bit_xor({_H}) FROM t",
    f"SELECT bit_and({_H}), bit_or({_H}), bit_xor({_H}) FROM none",
    f"SELECT n, bit_and({_H}) OVER (ORDER BY n ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) FROM t",
    f"SELECT n, bit_xor({_H}) OVER (PARTITION BY g) FROM t",
    "SELECT [n, 1, 2][least(g, 0::UBIGINT):greatest(g, 2::UBIGINT)] FROM t",
    "SELECT 170141183460469231731 & u, bit_or(-9223372036854775809) FROM t GROUP BY ALL",
)  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_bits(target: str, ranks: int) -> None:
    connection = connect(target, ranks, _TABLES)
    for sql in _QUERIES:
        types, want = expect(sql, _TABLES)
        rows = [tuple(int(v) if isinstance(v, Decimal) else v for v in row) for row in connection.sql(sql).fetchall()]
        wrong = compare(rows, want, False, types)
        assert wrong is None, f"{wrong}\n{sql}"


def test_decimals_that_stand_for_no_integer_have_no_bits() -> None:
    for sql in ("SELECT bit_and(1.5::DECIMAL(20,1))", "SELECT 5::DECIMAL(18,0) & 1", "SELECT ~5::DECIMAL(4,0)"):
        assert_error(sql, _TABLES, BindError, "no function matches", ranks=(1,))
