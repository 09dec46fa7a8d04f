"""ALTER TABLE and transactions: scripts that DuckDB and gquery both run, and what both refuse."""

from __future__ import annotations

import duckdb
import pytest

import gquery
from gquery import errors

ALTER = """
CREATE TABLE t AS SELECT range::INTEGER AS a, 'x' || range AS b FROM range(7)
INSERT INTO t VALUES (NULL, NULL)
ALTER TABLE t ADD COLUMN c INTEGER
ALTER TABLE t ADD d DECIMAL(5,2)
ALTER TABLE t ADD COLUMN IF NOT EXISTS a VARCHAR
UPDATE t SET c = a * 2, d = a WHERE a > 2
ALTER TABLE t RENAME a TO A
ALTER TABLE t RENAME COLUMN A TO "z z"
INSERT INTO t BY NAME SELECT 9 AS "z z"
ALTER TABLE t ALTER c TYPE VARCHAR
ALTER TABLE t ALTER COLUMN "z z" SET DATA TYPE BIGINT USING "z z" + length(b)
ALTER TABLE t ALTER d TYPE DOUBLE USING d / 2
ALTER TABLE t ADD l INTEGER[]
ALTER TABLE main.t ADD s STRUCT(a INTEGER)
ALTER TABLE t DROP l
ALTER TABLE t DROP COLUMN IF EXISTS nothing
ALTER TABLE IF EXISTS nothing ADD x INTEGER
ALTER TABLE t DROP COLUMN s CASCADE
ALTER TABLE t RENAME TO T
ALTER TABLE t RENAME TO u
INSERT INTO u SELECT * FROM u
ALTER TABLE u RENAME TO t
DELETE FROM t
ALTER TABLE t ADD "É" TIMESTAMP
"""

TRANSACTIONS = """
CREATE TABLE t(a INTEGER)
INSERT INTO t VALUES (1)
BEGIN
INSERT INTO t VALUES (2)
CREATE TABLE u AS SELECT * FROM t
UPDATE t SET a = a + 1
ROLLBACK
START TRANSACTION
INSERT INTO t SELECT range FROM range(5)
DELETE FROM t WHERE a = 3
END
BEGIN WORK
DROP TABLE t
CREATE TABLE t(b VARCHAR)
ABORT WORK
BEGIN TRANSACTION READ WRITE
ALTER TABLE t RENAME a TO q
ALTER TABLE t RENAME TO w
ROLLBACK TRANSACTION
BEGIN
TRUNCATE t
COMMIT TRANSACTION
INSERT INTO t VALUES (8)
BEGIN; INSERT INTO t VALUES (77); ROLLBACK
"""

TARGETS = [("python", None), ("python", 3), ("cpu", None), pytest.param("cuda", None, marks=pytest.mark.cuda)]


@pytest.mark.parametrize("script", [ALTER, TRANSACTIONS])
@pytest.mark.parametrize(("target", "ranks"), TARGETS)
def test_a_script(target: str, ranks: int | None, script: str) -> None:
    theirs = duckdb.connect()
    with gquery.connect(target) if ranks is None else gquery.connect(target, partitions=ranks) as ours:
        for sql in script.strip().splitlines():
            want, got = theirs.execute(sql).fetchall(), ours.sql(sql).fetchall()
            if not sql.startswith("CREATE"):
                assert got == want, sql
            tables = theirs.execute("SHOW TABLES").fetchall()
            assert ours.sql("SHOW TABLES").fetchall() == tables, sql
            for (table,) in tables:
                for asked in (f"DESCRIBE {table}", f"SELECT * FROM {table} ORDER BY ALL"):
                    assert ours.sql(asked).fetchall() == theirs.execute(asked).fetchall(), sql


@pytest.mark.parametrize(
    ("sql", "error", "match"),
    [
        ("ALTER TABLE t ADD a INTEGER", errors.CatalogError, "has a column 'a' already"),
        ("ALTER TABLE t ADD c INTEGER DEFAULT a", errors.BindError, "DEFAULT cannot contain names of columns"),
        ("ALTER TABLE t ADD c INTEGER NOT NULL", errors.NotSupportedError, r"NOT behind.*\n.*\n +\^"),
        ("ALTER TABLE t ALTER c SET NOT NULL", errors.BindError, "no column 'c'"),
        ("ALTER TABLE t ALTER a SET DEFAULT max(a)", errors.BindError, "DEFAULT cannot contain aggregates"),
        ("ALTER TABLE t RENAME a TO B", errors.CatalogError, "has a column 'B' already"),
        ("ALTER TABLE t RENAME TO other", errors.CatalogError, "already exists"),
        ("ALTER TABLE t RENAME aa TO c", errors.BindError, "no column 'aa'. Did you mean \"a\""),
        ("ALTER TABLE t DROP c", errors.BindError, "no column 'c'"),
        ("ALTER TABLE other DROP x", errors.CatalogError, "only column"),
        ("ALTER TABLE v DROP a", errors.CatalogError, "is a view"),
        ("ALTER TABLE nothing DROP a", errors.CatalogError, "does not exist"),
        ("ALTER TABLE t ALTER b TYPE INTEGER", errors.ConversionError, "'x'"),
        ("ALTER TABLE t ALTER a TYPE INTEGER USING max(a)", errors.BindError, "GROUP BY"),
        ("ALTER TABLE t ALTER a TYPE INTEGER USING unnest([a, a])", errors.BindError, r"cannot unnest\n.*\n +\^"),
        ("ALTER TABLE t DROP a, DROP b", errors.NotSupportedError, "several changes"),
        ("ALTER TABLE t ADD c", errors.ParseError, "a type is expected"),
        ("ALTER TABLE t FROB a", errors.ParseError, "ADD, DROP, RENAME or ALTER"),
        ("ALTER VIEW v RENAME TO w", errors.NotSupportedError, "ALTER VIEW"),
        ("COMMIT", errors.OperationalError, "without a transaction"),
        ("ROLLBACK", errors.OperationalError, "without a transaction"),
        ("BEGIN; BEGIN", errors.OperationalError, "within a transaction"),
        ("BEGIN READ ONLY", errors.NotSupportedError, "READ ONLY"),
        ("COMMIT AND CHAIN", errors.ParseError, "AND cannot stand here"),
    ],
)
def test_what_fails_changes_nothing(sql: str, error: type[Exception], match: str) -> None:
    with gquery.connect("python") as db:
        db.execute("CREATE TABLE t AS SELECT 1 AS a, 'x' AS b; CREATE TABLE other(x INTEGER); CREATE VIEW v AS FROM t")
        with pytest.raises(error, match=match):
            db.sql(sql)
        assert db.sql("DESCRIBE t").fetchall() == db.sql("DESCRIBE v").fetchall()
        assert db.sql("FROM t").fetchall() == [(1, "x")]


def test_who_has_read_an_altered_table_keeps_its_rows() -> None:
    with gquery.connect("python") as db:
        db.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b")
        before = db.execute("SELECT * FROM t")
        db.execute("ALTER TABLE t DROP a")
        assert before.fetchall() == [(1, 2)]
        assert db.sql("SELECT * FROM t").fetchall() == [(2,)]


def test_methods_of_a_transaction() -> None:
    with gquery.connect("python") as db:
        db.commit()
        db.rollback()
        db.begin()
        db.execute("CREATE TABLE r AS SELECT 1 AS x")
        db.execute("CREATE VIEW v AS SELECT * FROM r")
        with pytest.raises(errors.OperationalError, match="within"):
            db.begin()
        db.rollback()
        with pytest.raises(errors.CatalogError):
            db.sql("SELECT * FROM v")
        with pytest.raises(errors.CatalogError):
            db.sql("SELECT * FROM r")
        db.begin()
        db.execute("CREATE TABLE r AS SELECT 1 AS x")
        with pytest.raises(errors.ConversionError):
            db.execute("INSERT INTO r VALUES ('q')")
        insert = "INSERT INTO r VALUES (?)"
        for n in (2, 3):
            db.execute(insert, [n])
        db.commit()
        db.begin()
        db.execute(insert, [4])
        assert db.sql("SELECT sum(x) FROM r").fetchall() == [(10,)]
        db.rollback()
        assert db.sql("SELECT sum(x) FROM r").fetchall() == [(6,)]
        db.execute(insert, [5])
        assert db.sql("SELECT sum(x) FROM r").fetchall() == [(11,)]


def test_a_statement_may_follow() -> None:
    """What sqlglot is given in place of a hidden end of a statement stands before the next one."""
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE t(a INTEGER); ALTER TABLE t ADD COLUMN b VARCHAR DEFAULT 'q'; SELECT 1")
    db.sql("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 1; SELECT 1")
    made = db.sql("INSERT INTO t (a) VALUES (1) RETURNING b; UPDATE t SET a = 2 RETURNING a; SELECT * FROM t")
    assert made.fetchall() == [(2, "q", 1)]
