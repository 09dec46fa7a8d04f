"""CREATE TABLE with columns, INSERT, UPDATE, DELETE and TRUNCATE: a script that DuckDB and gquery both run."""

from __future__ import annotations

import gc
import threading
from datetime import date
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import errors, tuning
from gquery.api.plan_cache import PreparedPlan
from gquery.columns.table import Table
from tests.support.harness import compare
from tests.support.tuned import Tune

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
CREATE TABLE u AS SELECT range::INTEGER AS k, range % 3 AS g, 'u' || range AS v FROM range(6)
INSERT INTO u VALUES (NULL, NULL, NULL)
UPDATE t SET b = v, g = g0 + t.a FROM (SELECT k, v, g AS g0 FROM u) w WHERE w.k = t.a
UPDATE t AS z SET b = NULL FROM u, (VALUES (1), (NULL)) q(n) JOIN range(2) r(m) ON r.m = q.n WHERE u.k = z.a AND r.m < u.k
UPDATE t SET c = 1 FROM u WHERE NULL
UPDATE t SET c = 2 FROM u WHERE u.k > 100 AND u.k = t.a
UPDATE u SET g = 7 FROM (SELECT max(a) - 8 AS m FROM t) t WHERE t.m > u.k
UPDATE u SET v = w.v || '!' FROM u w WHERE w.k = u.k + 1
DELETE FROM u USING u w WHERE w.k = u.k + 1 AND w.k < 3
DELETE FROM u AS z USING t, range(3) r(n) WHERE z.k = t.a + r.n
DELETE FROM u USING t WHERE t.a IS NULL AND u.k IS NULL
DELETE FROM t USING u WHERE u.k < 0
DELETE FROM t USING (SELECT 1 WHERE false) w
DELETE FROM u USING t WHERE t.a < u.k AND t.a IN (SELECT k FROM u)
INSERT INTO u VALUES (11, 2, 'r'), (12, NULL, 's') RETURNING *
INSERT INTO u (v) SELECT 's' || range FROM range(2000) ORDER BY range DESC LIMIT 3 RETURNING v, k IS NULL AS n, u.g, 7
INSERT INTO u BY NAME SELECT 4 AS k RETURNING columns('[kg]'), k + 1
UPDATE u SET g = k * 2, v = v || '!' WHERE k > 10 RETURNING g, *, upper(v) AS w
UPDATE u AS z SET g = w.a FROM (SELECT DISTINCT a FROM t) w WHERE w.a = z.k RETURNING z.k, g
UPDATE u SET g = 0 WHERE false RETURNING *
DELETE FROM u WHERE k = 4 RETURNING g AS k, k AS g
DELETE FROM u AS z USING range(13) r(n) WHERE z.k = n + 1 RETURNING z.*, v LIKE 'r%'
DELETE FROM u WHERE NULL RETURNING k
DELETE FROM u RETURNING [v, 'x'], CASE WHEN g IS NULL THEN 1 END
DROP TABLE u
TRUNCATE t
INSERT INTO t SELECT * FROM t
CREATE TABLE w(k INTEGER, v VARCHAR)
INSERT INTO w VALUES (1, DEFAULT), (DEFAULT, 'x'), (3, 'default')
INSERT INTO w (v) VALUES (DEFAULT)
INSERT INTO w DEFAULT VALUES RETURNING *
UPDATE w SET v = DEFAULT, k = 7 WHERE k = 3
WITH x AS (SELECT 1 AS q), y(z) AS (SELECT q + 1 FROM x) INSERT INTO w (k) SELECT z FROM y RETURNING k
WITH x AS (SELECT 9 AS q) INSERT INTO w VALUES ((SELECT q FROM x), 'v'), (10, DEFAULT)
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) INSERT INTO w(k) FROM r
WITH x AS (SELECT 1 AS q) UPDATE w SET v = 'q' || (SELECT q FROM x) WHERE k IN (SELECT q FROM x)
WITH x AS (SELECT 2 AS q) UPDATE w SET v = 'u', k = q + 100 FROM x WHERE k = q RETURNING *
WITH x AS (SELECT 102 AS q) DELETE FROM w USING x WHERE k = q
WITH x AS (SELECT 7 AS q) DELETE FROM w WHERE k IN (FROM x) RETURNING k
WITH x AS NOT MATERIALIZED (SELECT 9 AS q) DELETE FROM w WHERE k >= (SELECT q FROM x)
DROP TABLE w
CREATE OR REPLACE TABLE t(x INTEGER)
CREATE TABLE u AS SELECT 1 AS y
UPDATE t SET x = y FROM u
DELETE FROM t USING u
DELETE FROM u USING t
DROP TABLE u
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
        ("INSERT INTO t VALUES (1, 'x') ON CONFLICT DO NOTHING", errors.BindError, "'t': it has no key"),
        ("INSERT INTO t VALUES (1, 'x') RETURNING b", errors.BindError, r"'b'.*\n.* RETURNING b\n {48}\^"),
        (
            "INSERT INTO t\nVALUES (1, 'x')\nRETURNING a, 1 + max(a)",
            errors.BindError,
            r"aggregates\nLINE 3: .*\n {25}\^",
        ),
        ("INSERT INTO t VALUES (1, 'x') RETURNING row_number() OVER ()", errors.BindError, "cannot contain window"),
        ("INSERT INTO t VALUES (1, 'x') RETURNING (SELECT 1)", errors.BindError, "cannot contain subqueries"),
        ("INSERT INTO t VALUES (1, 'x') RETURNING unnest([1])", errors.BindError, "cannot contain UNNEST"),
        ("INSERT INTO t VALUES (1, 'x') RETURNING ?", errors.BindError, "cannot contain parameters"),
        ("INSERT INTO t VALUES (1, 'x') RETURNING a ORDER BY a", errors.ParseError, "ORDER cannot stand here"),
        ("INSERT INTO t VALUES (1, 'x') RETURNING", errors.ParseError, "ends too early"),
        ("INSERT INTO t VALUES (1, 'x') RETURNING s::INT", errors.DataError, "'x'"),
        ("UPDATE t SET a = 2 RETURNING s::INT", errors.DataError, "'x'"),
        ("UPDATE t SET a = 2 FROM t u WHERE u.a = t.a RETURNING u.a", errors.BindError, "'u'"),
        ("DELETE FROM t RETURNING s::INT", errors.DataError, "'x'"),
        ("DELETE FROM t AS z RETURNING t.a", errors.BindError, "'t'"),
        ("TRUNCATE t RETURNING a", errors.ParseError, "RETURNING cannot stand here"),
        ("INSERT OR REPLACE INTO t VALUES (1, 'x')", errors.BindError, "'t': it has no key"),
        ("INSERT INTO t VALUES (1 + DEFAULT, 'x')", errors.ParseError, "DEFAULT cannot stand here"),
        ("INSERT INTO t (a) SELECT DEFAULT", errors.ParseError, "DEFAULT cannot stand here"),
        ("INSERT INTO t BY NAME DEFAULT VALUES", errors.ParseError, "DEFAULT cannot stand here"),
        ("WITH t AS (SELECT 1 AS a) DELETE FROM t", errors.NotSupportedError, "a CTE with the name of the table"),
        ("WITH x AS (SELECT 1) DELETE FROM t WHERE a = (SELECT y FROM x)", errors.BindError, "'y'"),
        ("INSERT INTO t", errors.ParseError, "ends too early"),
        ("INSERT INTO t VALUES (1, 'x') 2", errors.ParseError, "2 cannot stand here"),
        ("INSERT INTO v VALUES (1)", errors.CatalogError, "is a view"),
        ("INSERT INTO nothing VALUES (1)", errors.CatalogError, "'nothing' does not exist"),
        ("UPDATE t SET b = 1", errors.BindError, "no column 'b'"),
        ("UPDATE t SET a = 1, a = 2", errors.BindError, "'a' twice"),
        ("UPDATE t SET a = a + 200", errors.DataError, "TINYINT"),
        ("UPDATE t SET a = DEFAULT + 1", errors.ParseError, "cannot stand here"),
        ("UPDATE t SET a = a FROM t u", errors.BindError, "ambiguous"),
        ("UPDATE t SET a = u.a + 200 FROM t u", errors.DataError, "TINYINT"),
        ("UPDATE t SET a = u.s FROM t u WHERE t.a = u.a", errors.DataError, "'x'"),
        ("UPDATE t SET a = 1 + max(u.a) FROM t u", errors.BindError, r"UPDATE cannot contain aggregates.*\n.*\n +\^"),
        ("UPDATE t SET a = max(a) OVER ()", errors.BindError, "UPDATE cannot contain window functions"),
        ("UPDATE t SET a = 1 FROM t", errors.BindError, "t"),
        ("UPDATE t SET a = 1 FROM", errors.ParseError, "ends too early"),
        ("UPDATE t a = 1", errors.ParseError, "SET is expected"),
        ("UPDATE t SET a == 1", errors.ParseError, "= is expected"),
        ("UPDATE t SET s = z.s", errors.BindError, "z"),
        ("DELETE FROM t WHERE no", errors.BindError, "no"),
        ("DELETE FROM t USING t u WHERE a = 1", errors.BindError, "ambiguous"),
        ("DELETE FROM t USING t u WHERE u.a + 200::TINYINT = t.a", errors.DataError, "TINYINT"),
        ("DELETE FROM t USING nothing", errors.CatalogError, "'nothing' does not exist"),
        ("DELETE t", errors.ParseError, "FROM is expected"),
        ("DELETE FROM v", errors.CatalogError, "is a view"),
        ("TRUNCATE nothing", errors.CatalogError, "'nothing' does not exist"),
        ("CREATE TABLE t(a INTEGER)", errors.CatalogError, "already exists"),
        ("CREATE TABLE k(a INTEGER PRIMARY KEY, PRIMARY KEY (a))", errors.CatalogError, "more than one PRIMARY KEY"),
        ("CREATE TABLE k(a INTEGER, UNIQUE (b))", errors.BindError, "UNIQUE: table 'k' has no column 'b'"),
        ("CREATE TABLE k(a INTEGER, UNIQUE (a, A))", errors.BindError, "UNIQUE names a column twice"),
        ("CREATE TABLE k(a INTEGER[] UNIQUE)", errors.NotSupportedError, r"a key of type INTEGER\[\]"),
        ("CREATE TABLE k(a INTEGER PRIMARY)", errors.ParseError, "KEY is expected"),
        ("CREATE TABLE k(a INTEGER CHECK (b > 0))", errors.BindError, "'b'"),
        ("CREATE TABLE k(a INTEGER CHECK (max(a) > 0))", errors.BindError, "CHECK cannot contain aggregates"),
        ("CREATE TABLE k(a INTEGER CHECK ((SELECT 1) > 0))", errors.BindError, "CHECK cannot contain subqueries"),
        ("CREATE TABLE k(a INTEGER CHECK a > 0)", errors.ParseError, r"\( is expected"),
        ("CREATE TABLE k(a INTEGER DEFAULT b)", errors.BindError, "DEFAULT cannot contain names of columns"),
        ("INSERT INTO t(a) VALUES ('x')", errors.ConversionError, "'x'"),
        ("CREATE TABLE k(a INTEGER NOT)", errors.ParseError, "NULL is expected"),
        ("CREATE TABLE k(a INTEGER REFERENCES t(a))", errors.NotSupportedError, "REFERENCES"),
        ("CREATE TABLE k(CHECK (1 > 0))", errors.ParseError, "needs a column"),
        ("CREATE TABLE k(a INTEGER, a DATE)", errors.BindError, "'a' twice"),
        ("CREATE TABLE k(a INTEGER,)", errors.ParseError, "a column is expected"),
        ("CREATE TABLE k()", errors.ParseError, "the name of a column"),
        ("CREATE TABLE k(a INTEGER", errors.ParseError, r"\) is expected"),
        ("CREATE TABLE k", errors.ParseError, "AS is expected"),
        ("CREATE TABLE other.k(a INTEGER)", errors.CatalogError, "schema 'other' does not exist"),
        ("CREATE TABLE other.k AS SELECT 1", errors.CatalogError, "schema 'other' does not exist"),
        ("CREATE VIEW other.k AS SELECT 1", errors.CatalogError, "schema 'other' does not exist"),
        ("INSERT INTO other.t VALUES (1, 'x')", errors.CatalogError, "schema 'other' does not exist"),
        ("UPDATE other.t SET a = 1", errors.CatalogError, "schema 'other' does not exist"),
        ("DELETE FROM other.t", errors.CatalogError, "schema 'other' does not exist"),
        ("TRUNCATE other.t", errors.CatalogError, "schema 'other' does not exist"),
        ("DROP TABLE other.t", errors.CatalogError, "schema 'other' does not exist"),
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


ROWS = [
    (1, "a", "2024-01-02", 1.5, Decimal("1.25"), True), ("2", None, date(2020, 5, 6), 7, 3, None),
    (None, "\u00e9", None, float("nan"), 1.005, 1), (3.6, 5, "1999-12-31", -0.0, "9.999", False),
    (2**31 - 1, "", date(1, 1, 1), 2**60 + 1, None, "true"),
]  # fmt: skip


@pytest.mark.parametrize("target", ["python", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_rows_of_parameters_are_converted_as_values_are(target: str, tune: Tune) -> None:
    """An INSERT that is asked again takes its parameters without a plan, whatever their types, and tables grow in pieces."""
    tune(tuning.memory, appended_values=3, appended_rows=7)
    theirs, ours = duckdb.connect(), gquery.connect(target)
    answers: list[list[object]] = []
    for db in (theirs, ours):
        db.execute("CREATE TABLE t(a INTEGER, s VARCHAR, d DATE, x DOUBLE, n DECIMAL(9,2), b BOOLEAN, k VARCHAR)")
        answers.append([])
        for n in range(6):
            for row in ROWS[n % 3 :] + ROWS[:2]:
                db.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, 'k')", row)
                named = {"s": row[1], "a": row[0]}
                db.execute("INSERT INTO t (s, a) VALUES ($s, $a), ('w', -1), ($s, NULL)", named)
            db.execute("INSERT INTO t SELECT * FROM t WHERE a = 1" if n == 4 else "INSERT INTO t (b) SELECT true")
            if n % 3 == 2:
                ask = "SELECT count(*), sum(a), min(s), max(d), sum(n), count(DISTINCT k) FROM t"
                answers[-1].append(db.execute(ask).fetchall())
                db.execute("UPDATE t SET k = 'u' WHERE a = 2")
                db.execute("DELETE FROM t WHERE a = -1")
    assert answers[0] == answers[1]
    want = theirs.execute("SELECT * FROM t")
    types = [str(d[1]) for d in want.description or ()]
    assert compare(ours.sql("SELECT * FROM t").fetchall(), want.fetchall(), False, types) is None


@pytest.mark.parametrize(
    ("array_rows", "words"),
    [(3000, "union all"), pytest.param(100_000, "rows of INSERT into t", marks=pytest.mark.slow)],
)
def test_rows_that_wait_are_counted_in_a_limit(array_rows: int, words: str, tune: Tune) -> None:
    """INSERTs of constants end in one error where the limit is full, which changes nothing: the rows before it are there."""
    tune(tuning.memory, appended_values=500, appended_rows=array_rows, appended_bytes=100_000)
    db = gquery.connect("cpu", memory_limit=8_000_000)
    db.sql("CREATE TABLE t (a BIGINT, s VARCHAR)")
    there, texts = 0, "x" * 500
    with pytest.raises(errors.OutOfMemoryError, match=words):
        for n in range(100_000):
            db.execute("INSERT INTO t VALUES (?, ?)", (n, f"{n}{texts}"))
            there += 1
    assert 2_000_000 / 500 < there < 8_000_000 / 500
    assert (db.device.account.taken > 500 * there - 200_000) == (array_rows == 100_000)  # tables go into files
    with pytest.raises(errors.OutOfMemoryError, match="rows of INSERT into t"):  # one that is too large by itself
        db.execute("INSERT INTO t VALUES (?, ?)", (0, "y" * 9_000_000))
    db.set("memory_limit", "200MB")
    assert db.device.account.taken > 500 * there - 200_000 or array_rows == 3000
    assert db.sql("SELECT count(*), sum(a), max(length(s)) FROM t").fetchall() == [
        (there, there * (there - 1) // 2, len(f"{there - 1}{texts}"))
    ]
    db.execute("INSERT INTO t VALUES (1, 'z')")
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(there + 1,)]


def test_rows_that_waited_are_given_back(tune: Tune) -> None:
    tune(tuning.memory, appended_values=500, appended_rows=3000, appended_bytes=100_000)
    db = gquery.connect("cpu", memory_limit=50_000_000)
    db.sql("CREATE TABLE t (a BIGINT, s VARCHAR)")
    before = db.device.account.taken
    for n in range(4000):
        db.execute("INSERT INTO t VALUES (?, ?)", (n, f"{n} {'x' * 500}"))
    assert db.device.account.taken > before + 1_500_000
    db.sql("DROP TABLE t")
    gc.collect()
    assert db.device.account.taken <= before  # the empty table is gone, too


def test_an_insert_costs_what_its_rows_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """No INSERT of constants runs a query; those of queries copy no row more often than there are doublings."""
    db = gquery.connect("python")
    db.sql("CREATE TABLE t(a INTEGER, s VARCHAR)")
    ran: list[int] = []
    run_plan = db.run_plan

    def counted(prepared: PreparedPlan) -> Table:
        ran.append((made := run_plan(prepared)).rows)
        return made

    monkeypatch.setattr(db, "run_plan", counted)
    db.cursor().executemany("INSERT INTO t VALUES (?, 'x')", [(i,) for i in range(500)])
    assert not ran
    for n in range(64):
        db.sql(f"INSERT INTO t SELECT {n}, 'y'")
    assert sum(ran) <= 64 * 8 + 2 * 500
    assert db.sql("SELECT count(*), sum(a), count(DISTINCT s) FROM t").fetchall() == [(564, 126766, 2)]


def test_an_insert_whose_parameter_is_refused_adds_no_row() -> None:
    """Also where no value of the statement reads that parameter."""
    db = gquery.connect("cpu")
    db.sql("CREATE TABLE t (a INTEGER)")
    for _ in range(2):
        with pytest.raises(errors.InterfaceError, match=r"no parameter \$unused"):
            db.execute("INSERT INTO t VALUES ($a)", {"a": 1, "unused": 2})
        with pytest.raises(errors.InterfaceError, match="type object"):
            db.execute("INSERT INTO t VALUES ($a)", {"a": object()})
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_an_insert_that_ran_before_sees_what_a_table_has_become() -> None:
    db = gquery.connect("python")
    insert, rows = "INSERT INTO t VALUES (?, 7)", "SELECT * FROM t"
    db.sql("CREATE TABLE t(a INTEGER, b INTEGER)")
    db.sql(insert, [1])
    kept = db.sql(rows)
    assert kept.fetchall() == [(1, 7)]
    db.sql(insert, [2])
    assert kept.fetchall() == [(1, 7)]
    assert db.sql(rows).fetchall() == [(1, 7), (2, 7)]
    with pytest.raises(errors.ConversionError, match="'x'"):
        db.sql(insert, ["x"])
    with pytest.raises(errors.DataError):
        db.sql(insert, [2**40])
    with pytest.raises(errors.InterfaceError, match="parameter 1 has no value"):
        db.sql(insert)
    db.sql("CREATE OR REPLACE TABLE t(a VARCHAR, b DOUBLE)")
    db.sql(insert, [3])
    assert db.sql(rows).fetchall() == [("3", 7.0)]
    db.sql("DROP TABLE t")
    with pytest.raises(errors.CatalogError):
        db.sql(insert, [3])
    db.sql("CREATE TABLE t(b INTEGER, a INTEGER, c INTEGER)")
    with pytest.raises(errors.BindError, match="rows of 2 values"):
        db.sql(insert, [3])
    db.sql("CREATE OR REPLACE VIEW v AS SELECT 1 AS a")
    with pytest.raises(errors.CatalogError, match="is a view"):
        db.sql("INSERT INTO v VALUES (?)", [3])
    assert db.sql(rows).fetchall() == []


def test_what_is_new_each_time_is_computed_each_time() -> None:
    db = gquery.connect("python")
    db.sql("CREATE TABLE t(a DOUBLE, b TIMESTAMP, i INTERVAL, xs INTEGER[])")
    for _ in range(3):
        db.sql("INSERT INTO t VALUES (random(), now() AT TIME ZONE 'UTC', INTERVAL 2 MONTH, [1, 2])")
    found = db.sql(
        "SELECT count(DISTINCT a), count(DISTINCT b), min(i) = INTERVAL 60 DAY, any_value(xs) FROM t"
    ).fetchall()
    assert found == [(3, 3, True, [1, 2])]


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
    assert "Values" in db.explain("INSERT INTO t VALUES (1)")
    assert "Scan t" in db.explain("DELETE FROM t WHERE a > 1")
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_relations_that_others_are_made_of_have_their_rows() -> None:
    """What a relation gives and what one made of it gives are the same rows, whichever is asked for first."""
    with gquery.connect("python") as db:
        db.execute("CREATE TABLE t AS SELECT 1 AS a")
        waiting, has_run = db.table("t"), db.sql("SELECT a FROM t")
        assert has_run.fetchall() == [(1,)]
        db.execute("INSERT INTO t VALUES (2)")
        assert waiting.filter("a > 0").fetchall() == waiting.fetchall() == [(1,), (2,)]
        assert has_run.filter("a > 0").fetchall() == has_run.fetchall() == [(1,)]
        other = db.table("t")
        db.execute("ALTER TABLE t ADD COLUMN b INTEGER")
        assert other.select("b").fetchall() == [(None,), (None,)] and other.columns == ["a", "b"]
        gone = db.table("t")
        db.execute("DROP TABLE t")
        with pytest.raises(errors.CatalogError):
            gone.select("a")
        with pytest.raises(errors.CatalogError):
            gone.fetchall()
