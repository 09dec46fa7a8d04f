"""Sums of CASEs that give one value compute it once, and only where computing it for every row is sure to go well."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning

MANY = tuning.kernel_texts.shared_branches
ROWS = 400


def sums(value: str, count: int, otherwise: str = "0", cond: str = "m = {}") -> str:
    return ", ".join(f"sum(CASE WHEN {cond.format(k)} THEN {value} ELSE {otherwise} END) AS s{k}" for k in range(count))


def table() -> pa.Table:
    rng = np.random.default_rng(7)

    def column(values: object, gaps: float = 0.2) -> pa.Array:
        return pa.array(values, mask=rng.random(ROWS) < gaps)

    return pa.table(
        {
            "m": column(rng.integers(0, 6, ROWS)),
            "g": column(rng.integers(0, 4, ROWS)),
            "p": column(rng.integers(-99, 99, ROWS)),
            "q": column(rng.integers(-3, 3, ROWS)),
            "f": column(rng.random(ROWS)),
            "d": column(rng.integers(0, 9999, ROWS)).cast(pa.int32()).cast(pa.decimal128(12, 2)).cast(pa.decimal128(9, 2)),
            "none": pa.nulls(ROWS, pa.int32()),
            # where m is 9 it has no square, nor a number
            "big": pa.array(rng.integers(1, 9, ROWS)),
            "text": pa.array([str(n) for n in range(ROWS)]),
        }
    )


@pytest.fixture(scope="module", params=["cpu", "python"])
def db(request: pytest.FixtureRequest) -> gquery.Connection:
    connection = gquery.connect(device=request.param)
    connection.register("t", table()).register("empty", table().slice(0, 0))
    connection.sql("SET interpret_limit = 0")
    return connection


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("t", table())
    connection.register("empty", table().slice(0, 0))
    return connection


def products(db: gquery.Connection, sql: str) -> int:
    """How often a kernel of the query has a product in its text."""
    return sum(k.text.count("mul_i64(") for k in db.kernels(sql))


@pytest.mark.parametrize("keys", ["", "GROUP BY g"])
def test_it_is_computed_once(db: gquery.Connection, keys: str) -> None:
    assert products(db, f"SELECT {sums('p * q', MANY)} FROM t {keys}") == 1
    assert products(db, f"SELECT {sums('p * q', MANY - 1)} FROM t {keys}") == MANY - 1
    different = ", ".join(f"sum(CASE WHEN m = {k} THEN p * (q + {k}) ELSE 0 END)" for k in range(MANY))
    assert products(db, f"SELECT {different} FROM t {keys}") == MANY


@pytest.mark.parametrize("keys", ["", "GROUP BY g ORDER BY g"])
@pytest.mark.parametrize("source", ["t", "empty"])
@pytest.mark.parametrize(
    ("value", "otherwise"),
    [
        ("p * q", "0"),
        ("p * q", "NULL"),
        ("p", "-q"),
        ("p // q", "1"),
        ("p % q", "0"),
        ("d * p", "0"),
        ("d", "NULL"),
        ("none", "0"),
        ("none + p", "d"),
        ("CAST(f AS DECIMAL(9, 3))", "0"),
        ("CAST(p AS SMALLINT) * 2", "p"),
        ("-p", "abs(p)"),
        ("length(text)", "0"),
        ("CASE WHEN q > 0 THEN p * q END", "0"),
    ],
)
def test_sums_are_duckdbs(
    db: gquery.Connection, oracle: duckdb.DuckDBPyConnection, value: str, otherwise: str, source: str, keys: str
) -> None:
    sql = f"SELECT {'g, ' if keys else ''}{sums(value, MANY + 1, otherwise)} FROM {source} {keys}"
    assert db.sql(sql).fetchall() == oracle.execute(sql).fetchall()


@pytest.mark.parametrize("keys", ["", "GROUP BY g ORDER BY g"])
@pytest.mark.parametrize(
    "value",
    [
        "big * big",
        "big + 9223372036854775800",
        "CAST(text AS INTEGER)",
        "CAST(big AS TINYINT)",
        "-big",
        "CAST(d AS DECIMAL(3, 2))",
    ],
)
def test_what_may_fail_is_computed_where_it_is_asked_for(
    db: gquery.Connection, oracle: duckdb.DuckDBPyConnection, value: str, keys: str
) -> None:
    """The rows that no CASE takes have values that fail."""
    bad = pa.table(
        {
            "m": pa.array([0, 1, 2, 3, 9, 9]),
            "g": pa.array([0, 0, 1, 1, 1, 0]),
            "big": pa.array([1, 2, 3, 4, -(2**63), 2**63 - 1]),
            "text": pa.array(["1", "2", "3", "4", "five", ""]),
            "d": pa.array([1, 2, 3, 4, 9999, 9999], pa.int32()).cast(pa.decimal128(12, 2)).cast(pa.decimal128(9, 2)),
        }
    )
    db.register("bad", bad)
    oracle.register("bad", bad)
    sql = f"SELECT {'g, ' if keys else ''}{sums(value, MANY)} FROM bad {keys}"
    assert db.sql(sql).fetchall() == oracle.execute(sql).fetchall()
    with pytest.raises(gquery.Error):
        db.sql(f"{sql.replace('m = 0', 'm = 9')}").fetchall()


def test_what_a_filter_leaves_out_is_not_computed(db: gquery.Connection) -> None:
    kept = ", ".join(f"sum(CASE WHEN m = {k} THEN p * q ELSE 0 END) FILTER (WHERE g = {k})" for k in range(MANY))
    assert products(db, f"SELECT {kept} FROM t") == MANY
