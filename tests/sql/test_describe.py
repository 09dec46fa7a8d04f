"""What DESCRIBE and SHOW say of tables, views and queries, beside DuckDB: types, NOT NULL, keys, defaults, the order of names."""

from __future__ import annotations

import duckdb
import pytest

import gquery

SETUP = """
CREATE TABLE k (a INTEGER PRIMARY KEY, b TEXT NOT NULL DEFAULT 'x', c DECIMAL(9,2) CHECK (c > 0), d DATE UNIQUE, e INT DEFAULT 7)
CREATE TABLE m (a INTEGER NOT NULL, z INTEGER DEFAULT 3)
CREATE TABLE p (a INTEGER, "B b" VARCHAR, PRIMARY KEY (a, "B b"))
CREATE VIEW v AS SELECT a, b FROM k
CREATE VIEW vv AS SELECT b AS q, a FROM v WHERE a > 1
CREATE VIEW dd AS SELECT DISTINCT b, a FROM v
CREATE SCHEMA aa
CREATE TABLE aa.z (x BIGINT UNIQUE, y DOUBLE DEFAULT 2.5)
CREATE TABLE "A" (x INTEGER)
CREATE VIEW aa."Q" AS FROM aa.z
CREATE MACRO mm() AS TABLE SELECT a, b FROM k
"""
OF_QUERIES = """
SELECT a AS x, e FROM k
SELECT a + 0, (a), +a, a::INTEGER, a::BIGINT, (((a))) FROM k
SELECT a, e FROM k WHERE a > 1 ORDER BY b LIMIT 1
SELECT a FROM k LIMIT 0
SELECT a, count(*), max(e) FROM k GROUP BY a
SELECT max(a), any_value(b) FROM k
SELECT k.a, m.a, b, z FROM k JOIN m ON k.a = m.a
SELECT k.a, m.a, b, z FROM k LEFT JOIN m ON k.a = m.a
SELECT * FROM k JOIN m USING (a)
SELECT k.*, m.z FROM k NATURAL JOIN m
SELECT a, z FROM k FULL JOIN m USING (a)
SELECT * FROM k, m
SELECT * FROM k SEMI JOIN m ON k.a = m.a
SELECT k.a FROM k WHERE a IN (SELECT a FROM m)
SELECT a FROM k ASOF JOIN m m2(aa) ON k.a >= m2.aa
SELECT a FROM k UNION ALL SELECT a FROM k
SELECT a FROM k EXCEPT SELECT a FROM m
SELECT a FROM (SELECT a FROM k)
SELECT a, b FROM v
SELECT * FROM vv
SELECT * FROM aa."Q"
WITH q AS (SELECT a, b FROM k) SELECT * FROM q
SELECT (SELECT a FROM k LIMIT 1), a FROM m
SELECT a, lag(a) OVER (ORDER BY a) FROM k
SELECT coalesce(a, 1), CASE WHEN true THEN a END FROM k
SELECT x.a FROM m, LATERAL (SELECT a FROM k WHERE k.a = m.a) x
SELECT * FROM k POSITIONAL JOIN m
SELECT * FROM mm()
SELECT * EXCLUDE (c) REPLACE (a + 1 AS a) FROM k
SELECT COLUMNS('a|b') FROM k
SELECT * FROM k AS t(q1, q2)
SELECT * FROM p
FROM k
VALUES (1)
SELECT a FROM k GROUP BY ROLLUP (a)
SELECT k FROM k
SELECT DISTINCT a, b, e FROM k
SELECT DISTINCT * FROM k ORDER BY a LIMIT 3
SELECT DISTINCT ON (c) a, b, c FROM k ORDER BY c, a
SELECT DISTINCT a + 1, b FROM k
SELECT DISTINCT k.a, z FROM k, m
SELECT a FROM (SELECT DISTINCT a, b FROM (SELECT DISTINCT a, b FROM vv AS r(b, a)))
SELECT DISTINCT a FROM k GROUP BY a
SELECT DISTINCT ON (a) a FROM k GROUP BY a
SELECT DISTINCT a FROM (SELECT a, row_number() OVER () AS r FROM k)
SELECT DISTINCT a FROM k QUALIFY row_number() OVER (ORDER BY b) = 1
WITH q AS (SELECT DISTINCT a FROM k) SELECT * FROM q
SELECT DISTINCT a FROM k UNION ALL SELECT a FROM k
SELECT rowid, a, d FROM k
SELECT rowid, a, rank() OVER (ORDER BY b) FROM k
SELECT * FROM k LIMIT 10%
SELECT * FROM k LIMIT (SELECT 1) OFFSET (SELECT 0)
SELECT * FROM dd
"""
STATEMENTS = """
DESCRIBE k
DESCRIBE p
DESCRIBE v
DESCRIBE vv
DESCRIBE aa.z
DESC k
SHOW k
SHOW TABLES
SHOW ALL TABLES
DESCRIBE
FROM (SHOW ALL TABLES) SELECT schema, name
SELECT column_name, key FROM (DESCRIBE SELECT b, a FROM vv AS r(b, a)) WHERE "null" = 'NO'
PRAGMA show_tables
PRAGMA table_info('p')
"""


@pytest.mark.parametrize(
    "sql", [*STATEMENTS.strip().splitlines(), *(f"DESCRIBE {q}" for q in OF_QUERIES.strip().splitlines())]
)
def test_as_in_duckdb(sql: str) -> None:
    """But for the names of expressions, which DuckDB writes with casts that it adds."""
    ours, theirs = gquery.connect(device="python"), duckdb.connect()
    for text in SETUP.strip().splitlines():
        ours.sql(text)
        theirs.execute(text)
    got, want = ours.sql(sql).fetchall(), theirs.execute(sql).fetchall()
    if sql.startswith("DESCRIBE "):
        got, want = [row[1:] for row in got], [row[1:] for row in want]
    assert got == want


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'nan'::DOUBLE AS x, 'inf'::REAL AS y, '-inf'::DOUBLE AS z, 1.5::REAL AS f, NULL::DOUBLE AS n",
        "SELECT TIME '10:00:00.5' AS t, NULL::TIME AS n, TIMESTAMPTZ '2000-01-01 10:00:00' AS z, DATE '2000-01-01' AS d",
        "SELECT * FROM (VALUES (TIME '10:00:00'), (TIME '10:00:00'), (NULL)) AS t(x)",
        "SELECT * FROM (VALUES (TIMESTAMPTZ '1960-01-01'), (TIMESTAMPTZ '1960-01-01'), (NULL)) AS t(x)",
        "SELECT TIME '10:00:00' AS t, TIMESTAMPTZ '2000-01-01' AS z, 1.5 AS x WHERE false",
    ],
)
def test_summaries_of_one_value(sql: str) -> None:
    """Of several values DuckDB estimates the quartiles."""
    ours, theirs = gquery.connect("python"), duckdb.connect()
    assert ours.sql(f"SUMMARIZE {sql}").fetchall() == theirs.execute(f"SUMMARIZE {sql}").fetchall()


def test_summaries_of_several_times() -> None:
    sql = "SUMMARIZE SELECT * FROM (VALUES (TIME '00:00:00'), (TIME '12:00:00'), (NULL), (TIME '23:59:59.999999')) AS t(x)"
    ours, theirs = gquery.connect("python").sql(sql).fetchall()[0], duckdb.connect().execute(sql).fetchall()[0]
    assert ours[:7] == theirs[:7]
    assert ours[7:10] == ("06:00:00", "12:00:00", "18:00:00")
