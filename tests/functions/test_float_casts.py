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


def _between(low: int, high: int) -> list[int]:
    """Integers beside the middle of two FLOATs, and of two doubles: what is rounded twice, or by words, shows here."""
    r = random.Random(high)
    made = []
    for bits in (24, 53) * 40:
        above = r.randint(1, high.bit_length() - bits)
        middle = (r.randint(2 ** (bits - 1), 2**bits - 1) << above) + (1 << (above - 1))
        made += [sign * (middle + k) for k in (-1, 0, 1) for sign in (1, -1)]
    return [v for v in made if low <= v <= high]


@pytest.mark.parametrize("target", TARGETS)
def test_what_lies_between_two_floats(target: str) -> None:
    """UBIGINT is rounded once; decimals of more than 18 digits are the doubles of two words, as in DuckDB."""
    types = {"u": (0, 2**64 - 1), "i": (-(2**63), 2**63 - 1), "w": (-(10**38) + 1, 10**38 - 1), "n": (-(2**63), 2**63 - 1)}
    r = random.Random(9)
    for name, (low, high) in types.items():
        numbers = [*_between(low, high), low, high, *(r.randint(low, high) >> r.randint(0, 60) for _ in range(60))]
        if name == "i":
            column = pa.array([None, *numbers], pa.int64())
        elif name == "u":
            column = pa.array([None, *numbers], pa.uint64())
        else:
            column = pa.array([None, *map(Decimal, numbers)], pa.decimal128(38, 0))
        data = {"t": pa.table({"x": column, "y": pa.nulls(len(column), pa.float32()), "s": column.cast(pa.string())})}
        sql = """SELECT x::FLOAT, x::DOUBLE, coalesce(y, x), x / 3, [x]::FLOAT[], [x]::DOUBLE[], s::FLOAT, (' ' || s)::FLOAT,
            (x::FLOAT)::DOUBLE > x::DOUBLE FROM t"""
        _, want = expect(sql, data)
        assert [*map(repr, connect(target, 1, data).sql(sql).fetchall())] == [*map(repr, want)], name


@pytest.mark.parametrize("target", TARGETS)
def test_small_decimals_of_many_places_as_floats(target: str) -> None:
    """A FLOAT holds 10 to the 10th and no greater power: what is divided by is rounded, too."""
    data = {"t": pa.table({"x": pa.array([Decimal(v * 7919).scaleb(-17) for v in range(300)], pa.decimal128(18, 17))})}
    _, want = expect("SELECT x::FLOAT FROM t", data)
    assert connect(target, 1, data).sql("SELECT x::FLOAT FROM t").fetchall() == want


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
