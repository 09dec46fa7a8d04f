"""Sums of one value and constants: the answers of DuckDB and of the plan without the rule, at the edges of types, for other
constants of one template, and over tables that change."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.errors import OutOfRangeError
from tests.support.harness import Tables, assert_same
from tests.support.tuned import Tune

_EDGES = {
    "i8": (-128, 127), "i16": (-(2**15), 2**15 - 1), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1),
    "u8": (0, 255), "u32": (0, 2**32 - 1), "d9": (-(10**9) + 1, 10**9 - 1), "d18": (-(10**18) + 1, 10**18 - 1),
}  # fmt: skip
_TYPES = {
    "i8": pa.int8(), "i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64(), "u8": pa.uint8(), "u32": pa.uint32(),
    "d9": pa.decimal128(9, 2), "d18": pa.decimal128(18, 4),
}  # fmt: skip


@pytest.fixture(autouse=True)
def two(tune: Tune) -> None:
    """Two sums are worth it, so that answers of few tell."""
    tune(tuning.rewrites, sums_of_all=2)


def _column(rng: random.Random, name: str, rows: int, nulls: float) -> pa.Array:
    """Values near 0, in one table in three also those near the ends of the type."""
    low, high = _EDGES[name]
    wide = rng.random() < 0.3
    numbers = [rng.randint(low, high) if wide else rng.randint(max(low, -99), min(high, 99)) for _ in range(rows)]
    type_ = _TYPES[name]
    places = type_.scale if pa.types.is_decimal(type_) else 0
    values = [None if rng.random() < nulls else n for n in numbers]
    return pa.array([v if v is None or not places else Decimal(v).scaleb(-places) for v in values], type_)


def _table(rng: random.Random, rows: int) -> pa.Table:
    nulls = rng.choice((0.0, 0.2, 1.0))
    columns = {name: _column(rng, name, rows, nulls) for name in _TYPES}
    return pa.table({"k": pa.array([rng.randrange(3) for _ in range(rows)], pa.int64()), **columns})


def _sum(rng: random.Random, name: str) -> str:
    constant = rng.choice((0, 1, 7, 100, 127, 3000, 40_000))
    written = f"{constant}" if name[0] in "iu" else f"{constant}.{rng.choice(('5', '25'))}"
    if constant == 0 and rng.random() < 0.5:
        return f"sum({name})"
    if name[0] == "i" and rng.random() < 0.3:
        written = f"(-{written})"
    operation = rng.choice("++-*")
    sides = [name, written]
    rng.shuffle(sides)
    only = rng.choice(("", "", f" FILTER (WHERE k > {rng.randrange(2)})"))
    return f"sum({f' {operation} '.join(sides)}){only}"


@pytest.mark.parametrize("seed", range(40))
def test_random_sums_are_as_without_the_rule(seed: int) -> None:
    """On one and on three ranks. What overflows in a row does so with and without it."""
    rng = random.Random(seed)
    table = _table(rng, rng.choice((0, 1, 5, 60)))
    names = rng.sample(list(_TYPES), 2)
    sums = ", ".join(_sum(rng, rng.choice(names)) for _ in range(6))
    sql = rng.choice((f"SELECT {sums} FROM t", f"SELECT k, {sums} FROM t GROUP BY k ORDER BY k"))
    answers: list[object] = []
    for ranks, disabled in ((1, ""), (3, ""), (1, "linear_sums")):
        db = gquery.connect(device="python", devices=ranks)
        db.register("t", table)
        db.sql(f"SET disabled_rules = '{disabled}'")
        try:
            answers.append(db.sql(sql).fetchall())
        except OutOfRangeError:
            answers.append(OutOfRangeError)
    assert answers[0] == answers[1] == answers[2], sql


_SMALL: Tables = {
    "t": pa.table({
        "k": [1, 1, 2, 3, 3], "x": pa.array([5, None, 7, None, None], pa.int16()), "y": pa.array([5, 6, 7, 8, 9], pa.uint8()),
        "d": pa.array([Decimal("1.25"), None, Decimal("-3.50"), Decimal("9.99"), Decimal("0.01")], pa.decimal128(7, 2)),
    }),
    "none": pa.table({"k": pa.array([], pa.int64()), "x": pa.array([], pa.int16())}),
}  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(x + 1), sum(x + 2), sum(3 - x), sum(x * -4), count(x), avg(x) FROM t",
        "SELECT sum(x + 1), sum(x + 2) FROM none",
        "SELECT k, sum(x + 1), sum(x + 2) FROM none GROUP BY k",
        "SELECT k, sum(x + 1), sum(x - 2), sum(y * 3), sum(100 - y), sum(y + 7) FROM t GROUP BY k",
        "SELECT sum(d + 1), sum(d - 0.5), sum(2 * d), sum(d * 3) FROM t",
        "SELECT k, sum(x + 1) FILTER (WHERE y > 6), sum(x + 2) FILTER (WHERE y > 6), sum(x + 2) FROM t GROUP BY k",
        "SELECT sum(DISTINCT y + 1), sum(DISTINCT y + 2), sum(y + 1), sum(y + 2) FROM t",
        "SELECT k, sum(x + 1), sum(x + 2), sum(x + 3) FROM t GROUP BY ROLLUP (k)",
        "SELECT sum(y + 1) OVER (PARTITION BY k), sum(y + 2) OVER (PARTITION BY k) FROM t",
        "SELECT a.k, sum(b.x + 1), sum(b.x + 2) FROM t a LEFT JOIN t b ON a.k = b.k + 1 GROUP BY a.k",
        "SELECT sum(x + 1) + sum(x + 2), sum(x + 3) FROM t HAVING sum(x + 4) > 0",
        "SELECT k FROM t a WHERE (SELECT sum(b.x + 1) + sum(b.x + 2) FROM t b WHERE b.k <= a.k) > 20",
        "WITH s AS (SELECT k, sum(y + 1) AS p, sum(y + 2) AS q, sum(y * 2) AS r FROM t GROUP BY k) "
        "SELECT * FROM s JOIN s z ON s.p = z.p",
    ],
)
def test_as_in_duckdb(sql: str) -> None:
    assert_same(sql, _SMALL)


def _db(**columns: pa.Array) -> gquery.Connection:
    db = gquery.connect(device="python")
    db.register("t", pa.table(columns))
    return db


def _fires(db: gquery.Connection, sql: str) -> bool:
    db.sql(sql).fetchall()  # columns are known from their first use on
    return "Project" in db.explain(sql, "optimized")


def test_fires_where_no_row_can_overflow() -> None:
    db = _db(x=pa.array([1, 100], pa.int8()))
    assert _fires(db, "SELECT sum(x + 1), sum(x + 27) FROM t")
    assert db.sql("SELECT sum(x + 1), sum(x + 27) FROM t").fetchall() == [(103, 155)]
    db = _db(x=pa.array([1, 100], pa.int8()))
    with pytest.raises(OutOfRangeError):
        db.sql("SELECT sum(x + 1), sum(x + 28) FROM t").fetchall()


def test_another_constant_of_the_template_overflows() -> None:
    db = _db(x=pa.array([1, 100], pa.int8()))
    sql = "SELECT sum(x + {}), sum(x + {}) FROM t"
    assert _fires(db, sql.format(1, 2))
    assert db.sql(sql.format(3, 4)).fetchall() == [(107, 109)]
    with pytest.raises(OutOfRangeError):
        db.sql(sql.format(3, 40)).fetchall()
    assert db.sql(sql.format(5, 6)).fetchall() == [(111, 113)]


def test_a_table_that_has_changed() -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE t AS SELECT 100::TINYINT AS x")
    sql = "SELECT sum(x + 1), sum(x + 27) FROM t"
    assert db.sql(sql).fetchall() == [(101, 127)] and _fires(db, sql)
    db.sql("INSERT INTO t VALUES (101)")
    with pytest.raises(OutOfRangeError):
        db.sql(sql).fetchall()


def test_the_sum_of_the_value_alone_may_be_greater_than_its_type() -> None:
    """Of 2^62 twice and thrice, and as much less."""
    db = _db(x=pa.array([2**62] * 3, pa.int64()))
    sql = f"SELECT sum(x - {2**62}), sum(x - {2**62 - 5}), sum({2**62 + 1} - x) FROM t"
    assert _fires(db, sql)
    assert db.sql(sql).fetchall() == [(0, 15, 3)]
    with pytest.raises(OutOfRangeError):
        db.sql("SELECT sum(x - 1), sum(x - 2) FROM t").fetchall()


@pytest.mark.parametrize("operation", ["x + 0.5", "x * 0.5", "x / 2"])
def test_no_floats(operation: str) -> None:
    db = _db(x=pa.array([0.1, 0.2, 1e300]))
    assert not _fires(db, f"SELECT sum({operation}), sum({operation} + 1), sum(x + 2), sum(x + 3) FROM t")


def test_few_sums_stay(tune: Tune) -> None:
    """Two words in the place of two gain nothing, and registers cost little."""
    db = _db(k=pa.array([1, 2]), x=pa.array([1, 2], pa.int16()), n=pa.array([None, 2], pa.int16()))
    assert not _fires(db, "SELECT k, sum(x + 1), sum(x + 2) FROM t GROUP BY k")
    assert _fires(db, "SELECT k, sum(x + 1), sum(x + 2), sum(x + 3) FROM t GROUP BY k")
    assert _fires(db, "SELECT k, sum(n + 1), sum(n + 2) FROM t GROUP BY k")
    tune(tuning.rewrites, sums_of_all=4)
    assert not _fires(db, "SELECT sum(x + 1), sum(x + 2), sum(x + 3) FROM t")
    assert _fires(db, "SELECT sum(x + 1), sum(x + 2), sum(x + 3), sum(x + 4) FROM t")


def test_one_word_for_each_value() -> None:
    """Ninety sums are two words of state."""
    db = _db(x=pa.array(range(100), pa.int16()))
    sql = f"SELECT {', '.join(f'sum(x + {n})' for n in range(90))} FROM t"
    db.sql(sql).fetchall()
    assert "reduce to (sum, count), 2 words" in db.explain(sql, "pipelines")


def test_a_limit_of_memory() -> None:
    db = gquery.connect(device="cpu", memory_limit="40MB")
    rows = 400_000
    db.register("t", pa.table({"k": pa.array(range(rows)), "x": pa.array([n % 50 for n in range(rows)], pa.int16())}))
    sums = ", ".join(f"sum(x + {n}) AS s{n}" for n in range(4))
    sql = f"SELECT sum(s0), sum(s1), sum(s2), sum(s3), count(*) FROM (SELECT k, {sums} FROM t GROUP BY k)"
    total = sum(n % 50 for n in range(rows))
    assert db.sql(sql).fetchall() == [(total, total + rows, total + 2 * rows, total + 3 * rows, rows)]
