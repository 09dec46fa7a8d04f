"""CREATE MACRO and DROP MACRO: scripts that DuckDB and gquery both run, and what only one of them takes."""

from __future__ import annotations

import duckdb
import pytest

import gquery
from gquery import errors
from tests.support.harness import compare

SCRIPT = """
CREATE TABLE q AS SELECT * FROM (VALUES (1, 'a', 9), (2, 'b', 8), (3, 'a', NULL)) v(x, g, y)
CREATE MACRO plus(a, b := 10) AS a + b
SELECT plus(1), plus(1, 2), plus(1, b := 3), plus(a := 4), plus(b := 4, a := 1), plus(2 * 3) AS z, PLUS(plus(1, 1), plus(2))
SELECT plus(b => 1, a => 5), x.plus() FROM q
CREATE MACRO several(a) AS a * 2, (a, b) AS a || b
SELECT several(3), several('x', 'y')
CREATE MACRO typical(v) AS avg(v) FILTER (WHERE v > 1)
SELECT g, typical(x) FROM q GROUP BY g ORDER BY g
SELECT g, sum(plus(x)) FROM q GROUP BY g HAVING typical(x) IS NOT NULL ORDER BY typical(x)
CREATE MACRO before(v) AS lag(v) OVER (ORDER BY v)
SELECT x, before(x), plus(before(x), b := 1) FROM q ORDER BY x
CREATE MACRO total(v) AS sum(v)
CREATE MACRO total_of_many(v) AS (sum(v) FILTER (WHERE v > 1))
CREATE MACRO whole(v) AS total(v)
SELECT x, total(x) OVER (ORDER BY x), total_of_many(x) OVER (PARTITION BY g) FROM q ORDER BY x
SELECT whole(x + 1) OVER w, total(count(*)) OVER () FROM q GROUP BY x WINDOW w AS (ORDER BY x DESC ROWS 1 PRECEDING) ORDER BY x
SELECT total(total(x)) OVER (), plus(total(x) OVER ()) FROM q GROUP BY x ORDER BY ALL
CREATE MACRO same(v) AS v
SELECT x, last_value(same(y) IGNORE NULLS) OVER w, lag(same(y), plus(0, 1) RESPECT NULLS) OVER w FROM q WINDOW w AS (ORDER BY x)
SELECT x, nth_value(same(y), same(1) IGNORE NULLS) OVER (ORDER BY x DESC) FROM q ORDER BY x
CREATE MACRO safe(a, b) AS CASE WHEN b = 0 THEN NULL ELSE a / b END
SELECT safe(x, y), safe(x, 0), typeof(safe(1, 2)) FROM q ORDER BY x
SELECT safe(x, 2) AS h, count(*) FROM q GROUP BY safe(x, 2) ORDER BY ALL
CREATE MACRO near(a, b) AS a BETWEEN b AND b + 1
SELECT q.x, v.y FROM q JOIN (VALUES (2)) v(y) ON near(q.x, v.y) ORDER BY q.x
CREATE MACRO rows_of(a) AS (SELECT count(*) FROM q WHERE q.x = a)
SELECT x, rows_of(x), rows_of(x + 1), rows_of(4) FROM (VALUES (1), (3)) v(x) ORDER BY x
SELECT x, rows_of(x) FROM (VALUES (1), (3)) v(x) GROUP BY x ORDER BY x
SELECT x AS k, rows_of(k) FROM (VALUES (1), (7)) v(x) ORDER BY k
SELECT x, rows_of(x) IN (1, 2), (rows_of(x)) IN (SELECT 1), rows_of(x) NOT IN (0, x) FROM (VALUES (1), (3)) v(x) ORDER BY x
SELECT v.x FROM (VALUES (1), (3)) v(x) JOIN (VALUES (1), (3)) w(y) ON v.x = w.y AND rows_of(v.x) IN (v.x, 1) ORDER BY ALL
CREATE MACRO twins(a) AS EXISTS (SELECT 1 FROM q WHERE q.x = a) AND EXISTS (SELECT 1 FROM q WHERE q.x = a + 1)
SELECT x, twins(x) AND twins(x - 1) AS c, NOT twins(x) AS d FROM (VALUES (1), (2), (3)) v(x) ORDER BY x
SELECT INTERVAL (rows_of(x)) DAY AS e FROM (VALUES (1), (5)) v(x) ORDER BY x
CREATE TABLE kept AS SELECT x FROM q
UPDATE kept SET x = x + 10 WHERE x = 1 RETURNING plus(x, 1) AS a, x
DELETE FROM kept WHERE x > 10 RETURNING plus(plus(x), x) AS a
CREATE VIEW seen AS SELECT x AS z FROM q
CREATE MACRO of_view(a) AS (SELECT max(z) FROM seen WHERE z <= a)
SELECT of_view(2), of_view(x) IN (1, 3) FROM (VALUES (1), (9)) v(x) ORDER BY ALL
CREATE MACRO by_names(a) AS (SELECT max(COLUMNS('^x$')) + a FROM q)
CREATE MACRO rows_by_names(a) AS TABLE SELECT COLUMNS(c -> c < 'y') FROM q WHERE x > a
SELECT by_names(1), by_names(v) FROM (VALUES (1), (2)) w(v) WHERE by_names(v) > 4 ORDER BY ALL
SELECT * FROM rows_by_names(1) WHERE x < by_names(1) ORDER BY ALL
CREATE VIEW named_view AS SELECT by_names(2) AS n
SELECT n FROM named_view
CREATE MACRO nested(b) AS CASE WHEN EXISTS (SELECT 1 FROM q WHERE q.x = rows_of(b)) THEN b ELSE plus(b, 0) - 1 END
SELECT x, nested(x) FROM (VALUES (1), (3), (7)) v(x) ORDER BY x
CREATE MACRO added(l, n) AS list_transform(l, lambda e: e + n)
SELECT added([1, 2], e), list_transform([1], lambda x: plus(x)) FROM (SELECT 5 AS e)
CREATE MACRO field(s) AS s.a
SELECT field({'a': 1}), field(r) FROM (SELECT {'a': x} AS r FROM q) ORDER BY 2
CREATE MACRO parts(a, b) AS {'a': a, 'b': [b, b], 'c': DATE '2024-01-01' + INTERVAL (b) DAY}
SELECT parts(x, 1 + 1) FROM q ORDER BY x
CREATE MACRO seven() AS 7
SELECT seven(), -seven(), x FROM q GROUP BY x ORDER BY seven(), x
CREATE MACRO upper(a) AS lower(a) || '!'
SELECT upper('X')
DROP MACRO upper
SELECT upper('x')
CREATE MACRO few(n, least := 0) AS TABLE SELECT x, g FROM q WHERE x > least ORDER BY x LIMIT n
FROM few(2)
SELECT z.k, w.g FROM few(1) AS z(k), few(5, least := 2) w
SELECT v.n, s.x FROM (VALUES (1), (2)) v(n), LATERAL (SELECT * FROM few(9, least := v.n)) s ORDER BY ALL
CREATE MACRO by_place(n) AS TABLE SELECT x, y FROM q ORDER BY n
FROM by_place(2)
CREATE MACRO few(n) AS n || ' values'
SELECT few(x), (SELECT count(*) FROM few(2)) AS n FROM (SELECT 2 AS x)
CREATE OR REPLACE MACRO plus(a) AS a + 100
SELECT plus(1)
CREATE MACRO IF NOT EXISTS plus(a) AS 0
SELECT plus(1)
CREATE VIEW v AS SELECT plus(x) AS p FROM q
SELECT * FROM v ORDER BY p
CREATE OR REPLACE MACRO plus(a) AS a
SELECT * FROM v ORDER BY p
CREATE TABLE made AS SELECT plus(x), plus(1) FROM q
UPDATE made SET "plus(x)" = plus(40) + "plus(x)" WHERE rows_of("plus(x)") = 1
INSERT INTO made SELECT plus(5), plus(6)
DELETE FROM made WHERE "plus(x)" = plus(5)
SELECT * FROM made ORDER BY ALL
DROP FUNCTION IF EXISTS plus
DROP MACRO IF EXISTS plus
DROP MACRO TABLE by_place
BEGIN
CREATE MACRO gone() AS 1
ROLLBACK
CREATE MACRO gone() AS 2
SELECT gone()
"""


def test_as_in_duckdb() -> None:
    ours, theirs = gquery.connect(device="python"), duckdb.connect()
    for line in SCRIPT.strip().splitlines():
        want = theirs.sql(line)
        got = ours.sql(line)
        if want is None:
            continue
        assert got.columns == want.columns, line
        difference = compare(got.fetchall(), want.fetchall(), True, [str(t) for t in want.types])
        assert difference is None, f"{line}: {difference}"


FAULTS = [
    ("CREATE MACRO f(a) AS a + b", errors.BindError, r"there is no parameter 'b' of macro f\(a\)\nLINE 1: .*\n {33}\^"),
    ("CREATE MACRO f(a, A) AS a", errors.ParseError, "the parameter 'A' twice"),
    ("CREATE MACRO f(a := 1, b) AS a", errors.ParseError, "'b' has no default"),
    ("CREATE MACRO f(a := x) AS a", errors.BindError, "the default of parameter 'a'"),
    ("CREATE MACRO f(a) AS ?", errors.BindError, "no parameters but its own"),
    (
        "CREATE MACRO f(x) AS (SELECT max(x) FROM q)",
        errors.BindError,
        "'x' of macro 'f' has the name of a column of 'q'",
    ),
    ("CREATE MACRO m(a) AS 1", errors.CatalogError, "macro 'm' already exists"),
    ("CREATE MACRO f(a) AS 1, (b) AS 2", errors.BindError, "two bodies of as many parameters"),
    ("CREATE MACRO f(a INTEGER) AS a", errors.NotSupportedError, "types of the parameters"),
    (
        "SELECT m()",
        errors.BindError,
        r"macro 'm' does not take these arguments; there is m\(a, b := ...\)\n.*\n {15}\^",
    ),
    ("SELECT m(1, a := 2)", errors.BindError, "does not take these arguments"),
    ("SELECT m(1, z := 2)", errors.BindError, "does not take these arguments"),
    ("SELECT m(DISTINCT 1)", errors.BindError, "no arguments of a macro"),
    ("SELECT m(1) OVER ()", errors.BindError, "OVER behind macro 'm', whose body is no call"),
    ("SELECT m(1) FILTER (WHERE true)", errors.BindError, "'m' is a macro"),
    ("SELECT 1 + m('x')", errors.BindError, r"no function matches \+(.|\n)*\n {21}\^"),
    ("SELECT * FROM m(1)", errors.NotSupportedError, "table function m"),
    ("SELECT g(1)", errors.BindError, "macro 'g' calls itself"),
    ("DROP MACRO nosuch", errors.CatalogError, "macro 'nosuch' does not exist"),
]


@pytest.mark.parametrize(("sql", "kind", "message"), FAULTS)
def test_errors(sql: str, kind: type[Exception], message: str) -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE q(x INTEGER); CREATE MACRO m(a, b := 1) AS a + b; CREATE MACRO g(a) AS m(a)")
    db.sql("CREATE OR REPLACE MACRO m2(a) AS g(a); CREATE OR REPLACE MACRO g(a) AS m2(a)")
    with pytest.raises(kind, match=message):
        db.sql(sql).fetchall()


def test_columns_of_arguments_are_those_at_the_call() -> None:
    """In subqueries and lambda functions of a body, everywhere: DuckDB knows them in SELECT and GROUP BY alone."""
    db = gquery.connect(device="python")
    db.sql(
        "CREATE TABLE q AS SELECT unnest([1, 2]) AS x; CREATE MACRO rows_of(a) AS (SELECT count(*) FROM q WHERE q.x = a)"
    )
    db.sql("CREATE MACRO same(a) AS TABLE SELECT q.x AS y FROM q WHERE q.x = a")
    assert db.sql("SELECT x FROM (VALUES (1), (7)) v(x) WHERE rows_of(x) = 1").fetchall() == [(1,)]
    assert db.sql("SELECT rows_of(q.x) FROM (VALUES (1), (7)) q(x) ORDER BY ALL").fetchall() == [(0,), (1,)]
    assert db.sql("SELECT * FROM (SELECT 1 AS x) s, same(x)").fetchall() == [(1, 1)]
    assert db.sql("SELECT (SELECT rows_of(x)) FROM (VALUES (1)) v(x)").columns == ["(SELECT rows_of(x))"]


def test_a_plan_is_made_anew_for_another_macro() -> None:
    db = gquery.connect(device="python")
    sql = "SELECT upper('a') || x FROM (SELECT 'b' AS x)"
    assert db.sql(sql).fetchall() == [("Ab",)]
    db.sql("CREATE MACRO upper(a) AS 'no'")
    assert db.sql(sql).fetchall() == [("nob",)]
    db.sql("CREATE OR REPLACE MACRO upper(a) AS 'yes'")
    assert db.sql(sql).fetchall() == [("yesb",)]
    db.sql("DROP MACRO upper")
    assert db.sql(sql).fetchall() == [("Ab",)]


def test_constants_of_calls_are_slots() -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE q AS SELECT range AS x FROM range(100); CREATE MACRO far(a, n) AS abs(a - n) > .5 * n")
    for n in (10, 20, 30):
        want = sum(abs(x - n) > 0.5 * n for x in range(100))
        assert db.sql(f"SELECT count(*) AS c FROM q WHERE far(x, {n})").fetchall() == [(want,)]
        assert db.sql("SELECT count(*) AS c FROM q WHERE far(x, ?)", [n]).fetchall() == [(want,)]
    assert [db.sql(f"SELECT far(x, {n}) FROM q").columns for n in (1, 2)] == [["far(x, 1)"], ["far(x, 2)"]]


OF_TABLES = """
CREATE MACRO one(x) AS x + 1
CREATE MACRO below(v) AS (SELECT max(i) FROM range(10) r(i) WHERE i < v)
CREATE MACRO plus(v) AS list_transform([1, 2], lambda y: y + v)
CREATE TABLE t(a INTEGER PRIMARY KEY, b INTEGER DEFAULT one(4), c INTEGER CHECK (one(c) > 0))
INSERT INTO t(a, c) VALUES (1, 1), (2, 2)
INSERT INTO t(a, c) VALUES (3, -5)
INSERT INTO t VALUES (1, DEFAULT, 7), (4, 4, 4) ON CONFLICT (a) DO UPDATE SET b = one(excluded.c), c = one(t.c) WHERE one(t.c) < 3
INSERT INTO t(a, c) VALUES (1, 9) ON CONFLICT (a) DO UPDATE SET b = DEFAULT
FROM t ORDER BY ALL
ALTER TABLE t ADD COLUMN d INTEGER DEFAULT one(4)
ALTER TABLE t ALTER b SET DEFAULT one(one(7))
UPDATE t SET b = DEFAULT WHERE a = 2
INSERT INTO t(a) VALUES (8)
UPDATE t SET c = -1
MERGE INTO t USING (VALUES (8, 1)) u(a, c) ON t.a = u.a WHEN MATCHED THEN UPDATE SET d = DEFAULT, c = one(u.c)
FROM t ORDER BY ALL
SELECT a % 2 AS k, max(c) FROM t GROUP BY k HAVING below(max(c)) > 1 ORDER BY k
SELECT a % 2 AS k, below(max(c)), plus(max(c)) FROM t GROUP BY k HAVING plus(min(c))[1] > 1 ORDER BY below(min(c)), k
SELECT below(max(c)), below(min(a) + 1) FROM t
SELECT below(max(c)) FROM t WHERE a > 100
SELECT (SELECT below(max(u.c)) FROM t u WHERE u.a <= t.a) FROM t ORDER BY a
"""


def test_of_tables_and_groups_as_in_duckdb() -> None:
    ours, theirs = gquery.connect(device="python"), duckdb.connect()
    for sql in OF_TABLES.strip().splitlines():
        try:
            want = theirs.sql(sql)
        except duckdb.ConstraintException:
            with pytest.raises(errors.IntegrityError, match=r"CHECK \(one\(c\) > 0\)"):
                ours.sql(sql)
            continue
        got = ours.sql(sql)
        if want is not None and not sql.startswith(("INSERT", "UPDATE", "MERGE")):
            assert got.fetchall() == want.fetchall(), sql
    for sql in ("DROP MACRO one", "CREATE OR REPLACE MACRO one(x) AS x", "DROP MACRO IF EXISTS ONE"):
        with pytest.raises(errors.CatalogError, match="DEFAULT or CHECK of table 't' calls it"):
            ours.sql(sql)
    ours.sql("DROP TABLE t; DROP MACRO one; CREATE MACRO s(v) AS sum(v); CREATE TABLE u (a INTEGER PRIMARY KEY, b INTEGER)")
    for sql in ("CREATE TABLE v (a INTEGER DEFAULT s(4))", "CREATE TABLE v (a INTEGER CHECK (s(a) > 1))",
                "CREATE TABLE v (a INTEGER DEFAULT below(4))", "CREATE TABLE v (a INTEGER CHECK (below(a) > 1))",
                "INSERT INTO u VALUES (1, 2) ON CONFLICT DO UPDATE SET b = s(u.b)"):  # fmt: skip
        with pytest.raises(errors.BindError, match="(DEFAULT|CHECK|ON CONFLICT) cannot contain (aggregates|subqueries)"):
            ours.sql(sql)
