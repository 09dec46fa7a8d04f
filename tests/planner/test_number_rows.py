"""Numbers of a table's rows: the same with columns that the table has and with windows, and the rows as DuckDB numbers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import tuning
from tests.support.harness import compare
from tests.support.tuned import Tune

ROWS = 1_000
TABLE = pa.table(
    {
        "k": pa.array([None if n % 11 == 0 else n * 7 % 13 for n in range(ROWS)], pa.int32()),
        "x": pa.array([n * 37 % 101 / 4 for n in range(ROWS)]),
        "s": pa.array([None if n % 5 == 0 else f"text {n % 17}" for n in range(ROWS)]),
    }
)
QUERIES = [
    "SELECT rowid, k FROM t WHERE k = 3",
    "SELECT * FROM t WHERE rowid = 777",
    "SELECT count(*), sum(x) FROM t WHERE rowid BETWEEN 100 AND 199 OR rowid < 5 OR rowid >= 998",
    "SELECT rowid, s FROM t WHERE rowid IN (SELECT min(rowid) FROM t GROUP BY s) ORDER BY rowid",
    "SELECT k, arg_max(x, rowid), first(rowid), last(rowid), count(rowid) FROM t GROUP BY k ORDER BY k",
    "SELECT count(*) FROM t a JOIN t b ON a.rowid = b.rowid + 1 WHERE a.k = b.k",
    "SELECT a.k, b.rowid FROM t a LEFT JOIN t b ON a.rowid = b.rowid * 2 WHERE a.rowid < 9 ORDER BY a.rowid",
    "SELECT sum(n), min(m), max(m) FROM (SELECT row_number() OVER () n, row_number() OVER () - 1 m, x FROM t) WHERE x > 3",
    "SELECT row_number() OVER () n, count(*) OVER () c, sum(x) OVER (PARTITION BY k) s FROM t ORDER BY n LIMIT 7",
    "SELECT row_number() OVER () AS n, * FROM t LIMIT 5 OFFSET 3",
    "SELECT rowid AS a, -rowid AS c FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY rowid DESC) = 1 ORDER BY a",
    "SELECT DISTINCT ON (s) s, rowid FROM t ORDER BY s, rowid DESC",
    "SELECT a.k, b.s FROM t a POSITIONAL JOIN (SELECT s FROM t LIMIT 990) b ORDER BY ALL",
    "SELECT rowid FROM t ORDER BY x DESC, rowid LIMIT 4",
    "SELECT k FROM t LIMIT (SELECT 3) OFFSET (SELECT 2)",
    "SELECT count(*) FROM (SELECT * FROM t LIMIT 12%)",
    "SELECT n, count(*) FROM (SELECT row_number() OVER () % 3 AS n FROM t UNION ALL SELECT rowid FROM t) GROUP BY n ORDER BY n",
    "WITH r AS (SELECT rowid AS n, * FROM t) SELECT a.n, b.n FROM r a JOIN r b ON a.n = b.n - 500 WHERE a.x = b.x ORDER BY 1",
    "SELECT rowid, (SELECT count(*) FROM t b WHERE b.rowid < a.rowid AND b.k = a.k) FROM t a WHERE rowid % 200 = 7 ORDER BY 1",
]  # fmt: skip


def _connect(**given: Any) -> gquery.Connection:
    made = gquery.connect(**given)
    made.register("u", TABLE)
    made.sql("CREATE TABLE t AS SELECT * FROM u")
    return made


@pytest.mark.parametrize(
    "given",
    [
        {"device": "python"},
        {"device": "cpu"},
        {"device": "cpu", "partitions": 3},
        {"device": "cpu", "devices": 3},
        pytest.param({"device": "cuda"}, marks=pytest.mark.cuda),
        pytest.param({"device": "cuda", "partitions": 3}, marks=pytest.mark.cuda),
    ],
    ids=lambda given: " ".join(map(str, given.values())),
)
def test_as_in_duckdb(given: dict[str, Any], tune: Tune) -> None:
    if "devices" in given:
        tune(tuning.distribution, replicated_bytes=0, alone_bytes=0, alone_rows=0, cut_frame_rows=0)
    ours, theirs = _connect(**given), duckdb.connect()
    theirs.register("u", TABLE)
    theirs.execute("CREATE TABLE t AS SELECT * FROM u")
    for setting in ("SET interpret_limit = 0",) * (given["device"] != "python"):
        ours.sql(setting)
    for sql in QUERIES:
        done = theirs.execute(sql)
        types = [str(d[1]) for d in done.description or ()]
        want = done.fetchall()
        for _ in range(2):
            assert (found := compare(ours.sql(sql).fetchall(), want, "ORDER" in sql, types)) is None, f"{sql}: {found}"
    assert "Window" not in ours.explain(QUERIES[0])


def test_numbers_follow_the_rows() -> None:
    """INSERT, DELETE and UPDATE leave rows that are numbered anew; a plan that is kept knows."""
    db = _connect(device="python")
    sql = "SELECT count(*), max(rowid), sum(rowid) FROM t"
    assert db.sql(sql).fetchall() == [(1_000, 999, 999 * 500)]
    db.sql("INSERT INTO t VALUES (1, 2, 'three')")
    assert db.sql(sql).fetchall() == [(1_001, 1_000, 1_000 * 1_001 // 2)]
    assert db.sql("SELECT * FROM t WHERE rowid = 1000").fetchall() == [(1, 2.0, "three")]
    db.sql("DELETE FROM t WHERE rowid < 900")
    assert db.sql(sql).fetchall() == [(101, 100, 5_050)]
    db.sql("DELETE FROM t")
    assert db.sql(sql).fetchall() == [(0, None, None)]
    assert db.sql("SELECT rowid, * FROM t").fetchall() == []


@pytest.mark.parametrize(
    "sql", ["SELECT rowid, x FROM {} WHERE x > 20 ORDER BY ALL", "SELECT row_number() OVER () AS n, * FROM {} LIMIT 3"]
)
def test_tables_of_every_kind(sql: str, tmp_path: Path) -> None:
    """Arrow tables of many pieces, pandas, NumPy, files, relations: a window where the table gives no numbers."""
    db = _connect(device="python")
    cut = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 700), TABLE.slice(701)])
    pq.write_table(TABLE, tmp_path / "t.parquet", row_group_size=100)
    db.register("pieces", cut)
    db.register("pandas", TABLE.to_pandas(types_mapper=pd.ArrowDtype))
    db.sql(f"CREATE VIEW parquet AS SELECT * FROM '{tmp_path / 't.parquet'}'")
    want = db.sql(sql.format("t")).fetchall()
    assert want
    for name in ("pieces", "u", "pandas") + ("parquet",) * ("rowid" not in sql):
        assert db.sql(sql.format(name)).fetchall() == want, name


def test_a_limit_reads_no_more_than_it_needs() -> None:
    """Columns that are not encoded yet are not for the sake of numbers."""
    db = gquery.connect(device="python")
    db.register("u", pa.table({"a": np.arange(100_000), "s": [str(n) for n in range(100_000)]}))
    sql = "SELECT row_number() OVER () AS n, * FROM u LIMIT 2 OFFSET 1"
    assert db.sql(sql).fetchall() == [(2, 1, "1"), (3, 2, "2")]
    source: Any = db._catalog.table("u")
    assert not source._columns


def test_within_a_memory_limit() -> None:
    db = gquery.connect(device="cpu")
    db.register("u", pa.table({"a": np.arange(3_000_000) % 1_000}))
    db.sql("CREATE TABLE t AS SELECT * FROM u")
    db.sql("SET memory_limit = '20MB'")
    assert db.sql("SELECT sum(rowid), max(a) FROM t").fetchall() == [(2_999_999 * 1_500_000, 999)]
    assert db.sql("SELECT a, max(rowid) FROM t GROUP BY a ORDER BY a LIMIT 1").fetchall() == [(0, 2_999_000)]


@pytest.mark.parametrize("sql", ["SELECT s FROM t WHERE s = 'it''s a rowid'", "SELECT s AS rowids FROM t WHERE x > 3"])
def test_a_text_that_does_not_name_it(sql: str) -> None:
    explained = _connect(device="python").explain(sql)
    assert "row number" not in explained and "Window" not in explained
