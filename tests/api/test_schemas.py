"""Schemas, and variables of the session: scripts that DuckDB and gquery both run, and what each of them says is wrong."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery import errors
from tests.support.harness import compare

SCHEMAS = """
CREATE SCHEMA st
CREATE TABLE st.a AS SELECT 1 AS x
CREATE TABLE a AS SELECT 1 AS x, 2 AS y
CREATE VIEW st.v AS SELECT x + 1 AS z FROM a
SELECT st.a.x, a.x, memory.st.a.x FROM st.a
SELECT st.a.x, main.a.y FROM st.a, main.a WHERE st.a.x = main.a.x
SELECT * FROM st.a s JOIN main.a USING (x)
FROM st.a s JOIN a USING (x)
FROM a s LEFT JOIN st.a t ON s.x = t.x SELECT s.y, t.x
WITH a AS (SELECT 7 AS z) SELECT * FROM a, st.a
WITH RECURSIVE a AS (SELECT x FROM st.a) SELECT * FROM a
FROM st.v
UPDATE st.a SET x = 5 WHERE st.a.x = 1 RETURNING st.a.x
INSERT INTO st.a VALUES (1), (9) RETURNING a.x
DELETE FROM st.a WHERE x = 9 RETURNING *
FROM a
CREATE TABLE st.k (i INTEGER PRIMARY KEY, v INTEGER DEFAULT 3, CHECK (k.v > 0))
INSERT INTO st.k VALUES (1, 2)
INSERT INTO st.k VALUES (1, 4), (2, 5) ON CONFLICT DO UPDATE SET v = excluded.v + k.v WHERE k.v < 10
MERGE INTO st.k USING (VALUES (1, 7), (9, 9)) s(i, v) ON k.i = s.i WHEN MATCHED THEN UPDATE SET v = 7 WHEN NOT MATCHED THEN INSERT
UPDATE st.k SET v = s.x FROM st.a s WHERE st.k.i = s.x
FROM st.k ORDER BY i
ALTER TABLE st.k ADD COLUMN w VARCHAR DEFAULT 'q'
ALTER TABLE st.k RENAME TO kk
DESCRIBE st.kk
PRAGMA table_info('st.kk')
SELECT table_schema, table_name, table_type FROM information_schema.tables ORDER BY ALL
SELECT table_schema, column_name FROM information_schema.columns ORDER BY ALL
SELECT schema_name, view_name, column_count FROM duckdb_views() WHERE NOT internal
SELECT DISTINCT schema_name FROM information_schema.schemata ORDER BY 1
SELECT DISTINCT schema_name, internal FROM duckdb_schemas() ORDER BY 1
SHOW TABLES
SELECT schema, name FROM (SHOW ALL TABLES) ORDER BY ALL
USE st
SELECT current_schema()
FROM a ORDER BY x
CREATE TABLE b AS SELECT 3 AS x
CREATE VIEW w AS FROM b
SHOW TABLES
SET schema = 'main'
FROM st.w
CREATE TABLE b AS SELECT 4 AS x
FROM st.w
SET search_path = 'st,main'
FROM b
DROP TABLE b
FROM b
RESET schema
SELECT current_schema
CREATE TABLE "st.a" AS SELECT 'dot' AS d
FROM "st.a"
DROP TABLE "st.a"
FROM st.a ORDER BY x
DROP TABLE IF EXISTS nowhere.a
DROP SCHEMA IF EXISTS nowhere
BEGIN
CREATE SCHEMA gone
CREATE TABLE gone.t AS SELECT 1
USE gone
DROP SCHEMA st CASCADE
ROLLBACK
FROM st.a ORDER BY x
CREATE SCHEMA gone
DROP SCHEMA gone
CREATE SCHEMA IF NOT EXISTS st
DROP SCHEMA st CASCADE
SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL
"""
VARIABLES = """
SET VARIABLE Ab = 1
SELECT getvariable('ab'), getvariable('AB') + 200, getvariable('none'), getvariable('none') + 1
SET VARIABLE n = NULL
SET VARIABLE s = {'a': 1, 'b': [1, 2]}
SELECT getvariable('s').b[2], typeof(getvariable('s')), getvariable('n')
SET VARIABLE m = map {'k': 1}
SELECT getvariable('m')['k']
SET VARIABLE l = ['a', 'b']
SELECT 'a' IN getvariable('l'), unnest(getvariable('l'))
SET VARIABLE i = to_months(1 + 1)
SELECT DATE '2024-01-31' + getvariable('i')
SET VARIABLE f = 1.50::DECIMAL(10, 4)
SELECT getvariable('f'), typeof(getvariable('f'))
SET VARIABLE e TO 'a''b'
SELECT getvariable('e'), 'a''b' = getvariable('e') AS q
SET VARIABLE b = 'ab'::BLOB
SELECT getvariable('b')
SET VARIABLE l0 = []
SELECT getvariable('l0')
SET VARIABLE q = (SELECT max(range) FROM range(5))
SELECT range FROM range(9) WHERE range > getvariable('q') ORDER BY 1 LIMIT getvariable('ab')
CREATE VIEW v AS SELECT getvariable('ab') AS z
FROM v
SET VARIABLE ab = 7
FROM v
RESET VARIABLE e
SELECT getvariable('e')
BEGIN
SET VARIABLE kept = DATE '2024-01-01'
ROLLBACK
SELECT getvariable('kept') + 1
"""


@pytest.mark.parametrize("script", [SCHEMAS, VARIABLES])
def test_as_in_duckdb(script: str) -> None:
    ours, theirs = gquery.connect(device="python"), duckdb.connect()
    for line in script.strip().splitlines():
        done = theirs.execute(line)
        want, types = done.fetchall(), [str(d[1]) for d in done.description or ()]
        got = ours.sql(line).fetchall()
        if not line.startswith(("CREATE", "ALTER", "USE", "SET", "RESET", "DROP")):
            ordered = "ORDER" in line
            assert (difference := compare(got, want, ordered, types)) is None, f"{line}: {difference}"


FAULTS = [
    ("FROM nowhere.t", errors.CatalogError, r"schema 'nowhere' does not exist.*\nLINE 1: .*\n {13}\^"),
    ("FROM st.nothing", errors.CatalogError, "table 'st.nothing' does not exist"),
    ("FROM other.st.t", errors.CatalogError, "database 'other' does not exist"),
    ("SELECT main.t.x FROM st.t", errors.BindError, "table 'main.t' is not in the FROM clause"),
    ("SELECT t.x FROM st.t, main.t", errors.BindError, "'x' is ambiguous: it may be st.t.x or main.t.x"),
    ("SELECT t.* FROM st.t, main.t", errors.BindError, "ambiguous"),
    ("SELECT * FROM st.t, st.t", errors.BindError, "in the FROM clause twice"),
    ("CREATE SCHEMA ST", errors.CatalogError, "schema 'ST' already exists"),
    ("CREATE SCHEMA main", errors.CatalogError, "schema 'main' already exists"),
    ("CREATE SCHEMA other.s", errors.CatalogError, "database 'other' does not exist"),
    ("CREATE OR REPLACE SCHEMA st", errors.NotSupportedError, "CREATE OR REPLACE SCHEMA"),
    ("DROP SCHEMA st", errors.CatalogError, "schema 'st' is not empty: st.t; DROP SCHEMA ... CASCADE"),
    ("DROP SCHEMA main CASCADE", errors.CatalogError, "'main' cannot be dropped"),
    ("DROP SCHEMA nowhere", errors.CatalogError, "schema 'nowhere' does not exist"),
    ("CREATE TABLE st.t AS SELECT 1 AS x", errors.CatalogError, "table 'st.t' already exists"),
    ("ALTER TABLE t RENAME TO u; ALTER TABLE st.t RENAME TO t; ALTER TABLE t RENAME TO v", errors.CatalogError, "'t'"),
    ("USE nowhere", errors.CatalogError, "schema 'nowhere' does not exist"),
    ("SET search_path = 'main,st'", errors.NotSupportedError, "several schemas"),
    ("CREATE MACRO st.f() AS 1", errors.NotSupportedError, "macros in schemas"),
    ("SHOW TABLES FROM st", errors.NotSupportedError, "SHOW TABLES FROM"),
    ("SELECT getvariable(x) FROM t", errors.BindError, "takes the name of a variable"),
    ("SELECT getvariable(x) FROM (SELECT 'a' AS x)", errors.NotSupportedError, "no constant"),
    ("SET VARIABLE a = x", errors.BindError, "'x' is not in the FROM clause"),
    ("SET VARIABLE a = (SELECT unnest([1, 2]))", errors.Error, "more than one row"),
    ("SET VARIABLE a = unnest([1, 2])", errors.BindError, "one value, 2 are given"),
    ("SET VARIABLE a = 1 / 'x'::INTEGER", errors.Error, "x"),
    ("SET VARIABLE = 1", errors.ParseError, "a name is expected"),
]


@pytest.mark.parametrize(("sql", "kind", "message"), FAULTS)
def test_errors(sql: str, kind: type[Exception], message: str) -> None:
    """Nothing is changed by them."""
    db = gquery.connect(device="python")
    db.sql("CREATE SCHEMA st; CREATE TABLE st.t AS SELECT 1 AS x; CREATE TABLE t AS SELECT 2 AS x; SET VARIABLE a = 5")
    with pytest.raises(kind, match=message):
        db.sql(sql.split("; ")[0]).fetchall() if "; " not in sql else db.sql(sql).fetchall()
    assert db.sql("SELECT getvariable('a'), current_schema()").fetchall() == [(5, "main")]
    if "; " not in sql:
        assert db.sql("SELECT st.t.x, main.t.x FROM st.t, t").fetchall() == [(1, 2)]


def test_texts_that_ran_before_mean_other_tables() -> None:
    """What is kept of a text is not what it means where another schema is in use."""
    db = gquery.connect(device="cpu")
    db.sql("CREATE TABLE a AS SELECT 1 AS x; CREATE SCHEMA st; CREATE TABLE st.a AS SELECT 2 AS x; CREATE TABLE made AS FROM a")
    made = "CREATE OR REPLACE TABLE made AS SELECT x FROM a"
    insert, prepared = "INSERT INTO a VALUES (10)", db.sql("SELECT sum(x) FROM a WHERE x < 10")
    db.sql("PREPARE p AS SELECT x FROM a WHERE x < $1")
    for _ in range(2):
        db.sql(made)
        db.sql(insert)
        assert db.sql("SELECT max(x) FROM a WHERE x < 10").fetchall() == [(1,)]
    db.sql("USE st")
    for _ in range(2):
        db.sql(made)
        db.sql(insert)
        assert db.sql("SELECT max(x) FROM a WHERE x < 10").fetchall() == [(2,)]
    assert db.sql("EXECUTE p(10)").fetchall() == [(2,)]
    assert prepared.fetchall() == [(2,)]
    assert db.sql("SELECT main.made.x, count(*) FROM main.made GROUP BY ALL ORDER BY 1").fetchall() == [(1, 1), (10, 1)]
    assert db.sql("SELECT x, count(*) FROM made GROUP BY ALL ORDER BY 1").fetchall() == [(2, 1), (10, 1)]
    assert db.sql("SELECT count(*) FROM main.a").fetchall() == [(3,)]


def test_variables_of_texts_with_one_shape() -> None:
    """Texts that differ in a constant share a plan, but not where the constant names a variable."""
    db = gquery.connect(device="cpu")
    db.sql("CREATE TABLE t AS SELECT range AS x FROM range(10); SET VARIABLE a = 3; SET VARIABLE b = 5")
    for name, want in (("a", 3), ("b", 5), ("a", 3), ("none", 0)):
        assert db.sql(f"SELECT count(*) AS n FROM t WHERE x < getvariable('{name}')").fetchall() == [(want,)]
    db.sql("SET VARIABLE a = 7")
    assert db.sql("SELECT count(*) AS n FROM t WHERE x < getvariable('a')").fetchall() == [(7,)]


def test_names_with_dots_of_python() -> None:
    db = gquery.connect(device="python")
    db.register("st.t", pa.table({"x": [1]}))
    db.sql("CREATE SCHEMA st; CREATE TABLE st.t AS SELECT 2 AS x; CREATE TABLE st.u AS SELECT 3 AS x")
    assert db.table("st.t").fetchall() == [(1,)] and db.table("st.u").fetchall() == [(3,)]
    assert db.sql('SELECT a.x, b.x FROM "st.t" a, st.t b').fetchall() == [(1, 2)]
    db.unregister("st.t")
    assert db.table("st.t").fetchall() == [(2,)]
