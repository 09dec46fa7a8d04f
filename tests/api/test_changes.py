"""CREATE TABLE with columns, INSERT, UPDATE, DELETE and TRUNCATE: a script that DuckDB and gquery both run."""

from __future__ import annotations

import threading

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import errors
from tests.support.harness import compare

SCRIPT = """
CREATE TABLE t(a INTEGER, b VARCHAR, c DECIMAL(10,2), d DATE, e DOUBLE, f TIMESTAMP, g BIGINT, i INTERVAL, j BOOLEAN)
SELECT * FROM t
DESCRIBE t
INSERT INTO t VALUES (1, 'x', 1.5, '2024-01-01', 1e3, '2024-01-01 10:00:00', 9007199254740993, INTERVAL 1 DAY, true)
INSERT INTO t VALUES (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (NULL, 'w', -2, NULL, 'inf', NULL, -1, NULL, false)
INSERT INTO t (b, a) VALUES ('y', 3), ('z', '4')
INSERT INTO t (g) VALUES (1e3), (9007199254740993), (1.5)
INSERT INTO t BY NAME SELECT 5 AS a, DATE '2020-02-02' AS d
INSERT INTO t BY POSITION SELECT * FROM t WHERE a = 1
INSERT INTO t (a) FROM range(3)
INSERT INTO t (b, e) (SELECT 'n' || a, NULL FROM t WHERE a < 0)
UPDATE t SET g = 2.5 WHERE a = 3
UPDATE t SET b = b || '!', a = a + 10 WHERE b IS NOT NULL
UPDATE t AS u SET e = (SELECT max(a) FROM t) + u.a WHERE u.a IN (SELECT a FROM t WHERE a > 10)
UPDATE t u SET c = 7 / u.a WHERE u.a > 11
UPDATE t SET a = g WHERE g < 100
UPDATE t SET i = INTERVAL 1 MONTH, d = '1999-12-31'
UPDATE t SET b = NULL WHERE NULL
DELETE FROM t WHERE a > 12
DELETE FROM t WHERE NULL
DELETE FROM t AS z WHERE EXISTS (SELECT 1 FROM t w WHERE w.a > z.a AND z.a < 2)
TRUNCATE t
INSERT INTO t SELECT * FROM t
CREATE OR REPLACE TABLE t(x INTEGER)
CREATE TABLE IF NOT EXISTS t(y INTEGER)
INSERT INTO t SELECT range FROM range(5)
DELETE FROM t
CREATE TEMP TABLE t2("a b" INTEGER, "select" VARCHAR, "É" DOUBLE)
INSERT INTO main.t2 VALUES (1, 'q', 2)
INSERT INTO t2 ("select", "a b") SELECT 'r' || range, range FROM range(2000)
UPDATE t2 SET "select" = 'w' WHERE "a b" = 1
DELETE FROM t2 WHERE "a b" % 2 = 0
"""


@pytest.mark.parametrize(
    ("target", "ranks"),
    [("python", None), ("python", 3), ("cpu", None), pytest.param("cuda", None, marks=pytest.mark.cuda)],
)
def test_a_script_of_changes(target: str, ranks: int | None) -> None:
    theirs = duckdb.connect()
    with gquery.connect(target) if ranks is None else gquery.connect(target, partitions=ranks) as ours:
        for sql in SCRIPT.strip().splitlines():
            want = theirs.execute(sql).fetchall()
            got = ours.sql(sql).fetchall()
            if not sql.startswith("CREATE"):
                assert got == want, sql
            for (table,) in ours.sql("SHOW TABLES").fetchall():
                ask = f"SELECT * FROM {table}"
                found = theirs.execute(ask)
                types = [str(d[1]) for d in found.description]
                assert compare(ours.sql(ask).fetchall(), found.fetchall(), False, types) is None, sql


@pytest.mark.parametrize(
    ("sql", "error", "match"),
    [
        ("INSERT INTO t VALUES (1, 2, 3)", errors.BindError, "rows of 3 values"),
        ("INSERT INTO t (a) VALUES (1, 2)", errors.BindError, "INSERT into 1 columns of 't'"),
        ("INSERT INTO t (a, A) VALUES (1, 2)", errors.BindError, "'A' twice"),
        ("INSERT INTO t (aa) VALUES (1)", errors.BindError, "no column 'aa'. Did you mean \"a\""),
        ("INSERT INTO t VALUES (1, 'x'), (300, 'y')", errors.DataError, "TINYINT"),
        ("INSERT INTO t SELECT 'one', s FROM t", errors.DataError, "'one'"),
        ("INSERT INTO t (a) BY NAME SELECT 1 AS a", errors.ParseError, "no list of columns"),
        ("INSERT INTO t BY NAME SELECT 1 AS b", errors.BindError, "no column 'b'"),
        ("INSERT INTO t VALUES (1, 'x') RETURNING a", errors.NotSupportedError, "RETURNING"),
        ("INSERT INTO t VALUES (1, 'x') ON CONFLICT DO NOTHING", errors.NotSupportedError, "ON CONFLICT"),
        ("INSERT OR REPLACE INTO t VALUES (1, 'x')", errors.NotSupportedError, "INSERT OR"),
        ("INSERT INTO t DEFAULT VALUES", errors.NotSupportedError, "DEFAULT"),
        ("INSERT INTO t", errors.ParseError, "ends too early"),
        ("INSERT INTO t VALUES (1, 'x') 2", errors.ParseError, "2 cannot stand here"),
        ("INSERT INTO v VALUES (1)", errors.CatalogError, "is a view"),
        ("INSERT INTO nothing VALUES (1)", errors.CatalogError, "'nothing' does not exist"),
        ("UPDATE t SET b = 1", errors.BindError, "no column 'b'"),
        ("UPDATE t SET a = 1, a = 2", errors.BindError, "'a' twice"),
        ("UPDATE t SET a = a + 200", errors.DataError, "TINYINT"),
        ("UPDATE t SET a = DEFAULT", errors.NotSupportedError, "DEFAULT"),
        ("UPDATE t SET a = 1 FROM t u", errors.NotSupportedError, "UPDATE with FROM"),
        ("UPDATE t a = 1", errors.ParseError, "SET is expected"),
        ("UPDATE t SET a == 1", errors.ParseError, "= is expected"),
        ("UPDATE t SET s = z.s", errors.BindError, "z"),
        ("DELETE FROM t WHERE no", errors.BindError, "no"),
        ("DELETE FROM t USING t u WHERE u.a = t.a", errors.NotSupportedError, "DELETE with USING"),
        ("DELETE t", errors.ParseError, "FROM is expected"),
        ("DELETE FROM v", errors.CatalogError, "is a view"),
        ("TRUNCATE nothing", errors.CatalogError, "'nothing' does not exist"),
        ("CREATE TABLE t(a INTEGER)", errors.CatalogError, "already exists"),
        ("CREATE TABLE k(a INTEGER PRIMARY KEY)", errors.NotSupportedError, "PRIMARY behind the type"),
        ("CREATE TABLE k(a INTEGER, UNIQUE (a))", errors.NotSupportedError, "UNIQUE; tables have no constraints"),
        ("CREATE TABLE k(a INTEGER, a DATE)", errors.BindError, "'a' twice"),
        ("CREATE TABLE k(a INTEGER,)", errors.ParseError, "a column is expected"),
        ("CREATE TABLE k()", errors.ParseError, "the name of a column"),
        ("CREATE TABLE k(a INTEGER", errors.ParseError, r"\) is expected"),
        ("CREATE TABLE k", errors.ParseError, "AS is expected"),
    ],
)
def test_what_fails_changes_nothing(sql: str, error: type[Exception], match: str) -> None:
    db = gquery.connect("python")
    db.register("t", pa.table({"a": pa.array([1, 100], pa.int8()), "s": ["x", None]}))
    db.sql("CREATE VIEW v AS SELECT a FROM t")
    with pytest.raises(error, match=match):
        db.sql(sql)
    assert db.sql("SELECT * FROM t").fetchall() == [(1, "x"), (100, None)]
    assert db.sql("SHOW TABLES").fetchall() == [("t",), ("v",)]


def test_parameters_and_cursors() -> None:
    db = gquery.connect("python")
    db.sql("CREATE TABLE t(a INTEGER, s VARCHAR)")
    cursor = db.cursor()
    cursor.execute("INSERT INTO t VALUES (?, ?), (?, NULL)", [1, "it's", 2])
    assert cursor.rowcount == 2
    cursor.executemany("INSERT INTO t VALUES ($a, $s)", [{"a": 3, "s": "x"}, {"a": 4, "s": None}])
    cursor.execute("UPDATE t SET s = $s WHERE a > $n", {"s": "new", "n": 3})
    assert cursor.rowcount == 1
    cursor.execute("DELETE FROM t WHERE a = ?", [3])
    assert cursor.execute("SELECT * FROM t ORDER BY a").fetchall() == [(1, "it's"), (2, None), (4, "new")]


def test_who_has_read_a_table_keeps_its_rows() -> None:
    db = gquery.connect("python")
    given = {"a": np.arange(4)}
    db.register("t", given)
    before = db.sql("SELECT a FROM t")
    assert before.fetchall() == [(0,), (1,), (2,), (3,)]
    db.sql("DELETE FROM t WHERE a > 1")
    assert before.fetchall() == [(0,), (1,), (2,), (3,)]
    assert db.sql("SELECT a FROM t").fetchall() == [(0,), (1,)]
    assert given["a"].tolist() == [0, 1, 2, 3]


def test_no_change_of_two_threads_is_lost() -> None:
    """What one thread has changed meanwhile is no other's to overwrite: that gets an error, and may ask again."""
    db = gquery.connect("python")
    db.sql("CREATE TABLE t(a INTEGER)")
    done: list[int] = []

    def insert(n: int) -> None:
        for i in range(10):
            try:
                db.cursor().execute("INSERT INTO t VALUES (?)", [10 * n + i])
            except errors.CatalogError:
                continue
            done.append(10 * n + i)

    threads = [threading.Thread(target=insert, args=(n,)) for n in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(done) == sorted(a for (a,) in db.sql("SELECT a FROM t").fetchall())


def test_explain_shows_what_a_change_runs() -> None:
    db = gquery.connect("python")
    db.sql("CREATE TABLE t(a INTEGER)")
    assert "Union" in db.explain("INSERT INTO t VALUES (1)")
    assert "Scan t" in db.explain("DELETE FROM t WHERE a > 1")
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(0,)]
