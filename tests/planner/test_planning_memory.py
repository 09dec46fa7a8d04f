"""Planning looks at statistics, bounds and a few rows: what it takes does not grow with the tables. To go over a column takes
seconds where it has hundreds of millions of rows, and no test of answers sees it."""

from __future__ import annotations

import tracemalloc
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from tests.support.tuned import Tune

FEW, MANY = 40_000, 400_000
ROOM = 100_000  # bytes: a byte for each third row that there are more
QUERIES = [
    "SELECT sum(v) FROM lines WHERE k < 1000",
    "SELECT sum(v) FROM lines WHERE small = 7 AND day BETWEEN DATE '2001-01-01' AND DATE '2001-02-01'",
    "SELECT k, sum(v) AS s FROM lines GROUP BY k ORDER BY s DESC LIMIT 3",
    "SELECT small, count(*) FROM lines GROUP BY small",
    "SELECT txt, count(*) FROM lines GROUP BY txt",
    "SELECT count(DISTINCT v) FROM lines",
    "SELECT sum(v + c) FROM lines JOIN orders USING (k)",
    "SELECT c, sum(v) FROM lines JOIN orders USING (k) WHERE day < DATE '2002-01-01' GROUP BY c",
    "SELECT count(*) FROM lines WHERE v IN (SELECT c FROM orders WHERE k > 20)",
    "SELECT count(*) FROM orders WHERE NOT EXISTS (SELECT * FROM lines WHERE lines.k = orders.k AND v < 5)",
    "SELECT count(*) FROM lines WHERE name LIKE '%9%' AND txt <> 'b'",
    "SELECT k, v FROM lines ORDER BY v DESC, k LIMIT 10",
    "SELECT max(r) FROM (SELECT rank() OVER (PARTITION BY k ORDER BY v) AS r FROM lines)",
    "SELECT DISTINCT small, txt FROM lines",
    "SELECT k FROM lines UNION ALL SELECT k FROM orders ORDER BY 1 LIMIT 5",
    "SELECT name, sum(d) FROM lines WHERE d > 1.5 GROUP BY name ORDER BY 2 LIMIT 5",
    "SELECT * FROM lines WHERE v = 3 LIMIT 7",
]


@cache
def tables(rows: int) -> dict[str, pa.Table]:
    """Sorted keys, a few values, dates, decimals, texts of few and of many kinds, NULLs."""
    numbers = np.random.default_rng(3).integers(0, 1_000, rows)
    lines = {
        "k": np.arange(rows, dtype=np.int64) // 4,
        "v": pa.array(numbers, mask=numbers % 11 == 0),
        "small": pa.array((numbers % 100).astype(np.uint8)),
        "day": pa.array((11_000 + np.arange(rows) * 900 // rows).astype(np.int32), pa.date32()),
        "txt": pa.array(["a", "b", "c", None]).take(pa.array(numbers % 4)),
        "name": [f"name {n}" for n in range(rows)],
        "d": pa.array(numbers * 7).cast(pa.decimal128(21, 0)).cast(pa.decimal128(12, 2)),
    }
    orders = {"k": np.arange(rows // 4, dtype=np.int64), "c": numbers[: rows // 4]}
    return {"lines": pa.table(lines), "orders": pa.table(orders)}


@cache
def connected(ranks: int | None, rows: int) -> gquery.Connection:
    db = gquery.connect(device="cpu", devices=ranks)
    for name, table in tables(rows).items():
        db.register(name, table)
    return db


def taken(db: gquery.Connection, sql: str) -> int:
    """The most bytes that planning a query takes which has run before, so that all is known of its columns."""
    db.sql(sql).fetchall()
    most = []
    for _ in range(2):  # the first one fills caches of the planner's own
        db._plans.clear()
        db._templates.clear()
        tracemalloc.start()
        try:
            prepared = db.sql(sql).prepared
            assert prepared is not None
            assert db._program(prepared).stages
            most.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return most[-1]


@pytest.mark.parametrize("ranks", [None, 3])
@pytest.mark.parametrize("sql", QUERIES)
def test_planning_takes_no_more_memory_for_more_rows(sql: str, ranks: int | None, tune: Tune) -> None:
    tune(tuning.distribution, replicated_bytes=1, alone_bytes=1, joined_bytes=1, uneven_rows=1000)
    few, many = (taken(connected(ranks, rows), sql) for rows in (FEW, MANY))
    assert many < few + ROOM
