"""Sequences: a script that DuckDB and gquery both run, what is wrong, and which numbers stay free."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import gquery
from gquery import errors
from tests.support.harness import compare

SCRIPT = """
CREATE SEQUENCE s
SELECT nextval('s'), nextval('S') AS two
SELECT currval('main.s')
SELECT nextval('s') FROM range(3)
SELECT nextval('s') AS n, range FROM range(3) WHERE range > 0 ORDER BY n DESC
SELECT nextval('s') + nextval('s'), range * 2 FROM range(1)
SELECT nextval('s'), x FROM (SELECT 1 AS x WHERE false)
SELECT nextval('s')
CREATE SEQUENCE IF NOT EXISTS s START 99
CREATE OR REPLACE SEQUENCE s START WITH 10 INCREMENT BY 5
SELECT nextval('s') FROM range(2)
CREATE TABLE t (id INTEGER PRIMARY KEY DEFAULT nextval('s'), n VARCHAR)
INSERT INTO t (n) VALUES ('a'), ('b')
INSERT INTO t (n) VALUES ('a'), ('b')
INSERT INTO t (n) SELECT 'c' FROM range(2)
INSERT INTO t VALUES (nextval('s'), 'v'), (nextval('s'), 'w')
INSERT INTO t VALUES (DEFAULT, 'd') RETURNING id
INSERT INTO t SELECT nextval('s') * 1000, 'x' FROM range(2)
INSERT INTO t DEFAULT VALUES
FROM t ORDER BY id
CREATE TABLE u AS SELECT nextval('s') AS id, range AS x FROM range(3)
INSERT INTO u SELECT nextval('s'), 9
FROM u ORDER BY id
ALTER TABLE u ALTER id SET DEFAULT nextval('s')
INSERT INTO u (x) VALUES (7)
SELECT x FROM u WHERE id = currval('s')
UPDATE u SET id = nextval('s') WHERE x > 100
SELECT count(DISTINCT id) FROM u
CREATE SEQUENCE d INCREMENT BY -2 START WITH 10 MINVALUE 5 MAXVALUE 10
SELECT nextval('d') FROM range(3)
CREATE SEQUENCE c MAXVALUE 3 CYCLE
SELECT nextval('c'), range FROM range(4)
SELECT nextval('c')
CREATE TEMP SEQUENCE e MINVALUE -10 NO MAXVALUE NO CYCLE
SELECT nextval('e')
BEGIN
CREATE SEQUENCE gone
DROP SEQUENCE c
SELECT nextval('e')
ROLLBACK
SELECT nextval('e'), nextval('c')
CREATE SEQUENCE gone START 7
SELECT nextval('gone')
PREPARE p AS SELECT nextval('gone')
EXECUTE p
EXECUTE p
SET VARIABLE v = nextval('gone')
SELECT getvariable('v'), currval('gone')
SELECT sequence_name, start_value, min_value, increment_by, cycle, last_value FROM duckdb_sequences() WHERE cycle
DROP SEQUENCE gone
DROP SEQUENCE IF EXISTS gone
"""


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_as_in_duckdb(device: str) -> None:
    ours, theirs = gquery.connect(device=device), duckdb.connect()
    for line in SCRIPT.strip().splitlines():
        done = theirs.execute(line)
        want, types = done.fetchall(), [str(d[1]) for d in done.description or ()]
        got = ours.sql(line).fetchall()
        if line.startswith(("SELECT", "FROM", "EXECUTE", "INSERT")):
            assert (found := compare(got, want, True, types)) is None, f"{line}: {found}"


FAULTS = [
    ("SELECT nextval('none')", errors.CatalogError, "sequence 'none' does not exist"),
    ("SELECT currval('u')", errors.BindError, "'u' has given no value yet"),
    ("SELECT nextval(1)", errors.BindError, "takes the name of a sequence"),
    ("SELECT nextval(x) FROM (SELECT 's' AS x)", errors.NotSupportedError, "no constant"),
    ("SELECT nextval('s'), currval('s')", errors.NotSupportedError, "in one statement"),
    ("SELECT 1 WHERE nextval('s') > 0", errors.NotSupportedError, "nextval but in"),
    ("SELECT max(nextval('s')) FROM t", errors.NotSupportedError, "nextval but in"),
    ("SELECT DISTINCT nextval('s') FROM t", errors.NotSupportedError, "nextval but in"),
    ("SELECT nextval('s') FROM t LIMIT 1", errors.NotSupportedError, "nextval but in"),
    ("SELECT (SELECT nextval('s'))", errors.NotSupportedError, "nextval but in"),
    ("INSERT INTO t VALUES (nextval('s')), (5)", errors.NotSupportedError, "in some rows"),
    ("INSERT INTO t SELECT nextval('few') FROM range(3)", errors.OutOfRangeError, "'few' is at its maximum, 2"),
    ("CREATE TABLE made AS SELECT nextval('few') FROM range(3)", errors.OutOfRangeError, "maximum"),
    ("SELECT nextval('few') FROM range(3)", errors.OutOfRangeError, "maximum"),
    ("INSERT INTO t VALUES (0), (nextval('s'))", errors.NotSupportedError, "in some rows"),
    ("CREATE SEQUENCE s", errors.CatalogError, "sequence 's' already exists"),
    ("CREATE SEQUENCE z INCREMENT 0", errors.OutOfRangeError, "INCREMENT BY 0"),
    ("CREATE SEQUENCE z START 5 MAXVALUE 3", errors.OutOfRangeError, "START 5"),
    ("CREATE SEQUENCE z MINVALUE 5 MAXVALUE 3", errors.OutOfRangeError, "MINVALUE 5 is not less"),
    ("CREATE SEQUENCE z START 9223372036854775808", errors.OutOfRangeError, "no BIGINT"),
    ("CREATE SEQUENCE z START 1.5", errors.ParseError, "an integer is expected"),
    ("CREATE SEQUENCE z START 1 START 2", errors.ParseError, "once"),
    ("CREATE SEQUENCE z OWNED", errors.ParseError, "INCREMENT BY"),
    ("CREATE SEQUENCE st.z", errors.NotSupportedError, "sequences in schemas"),
    ("DROP SEQUENCE s", errors.CatalogError, "defaults of table 't' draw"),
    ("DROP SEQUENCE z", errors.CatalogError, "sequence 'z' does not exist"),
]


@pytest.mark.parametrize(("sql", "kind", "message"), FAULTS)
def test_errors(sql: str, kind: type[Exception], message: str) -> None:
    """Nothing is changed by them, and nothing drawn."""
    db = gquery.connect(device="python")
    db.sql("CREATE SCHEMA st; CREATE SEQUENCE s; CREATE SEQUENCE u; CREATE SEQUENCE few MAXVALUE 2")
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY DEFAULT nextval('s')); INSERT INTO t VALUES (DEFAULT)")
    with pytest.raises(kind, match=message):
        db.sql(sql).fetchall()
    assert db.sql("FROM t").fetchall() == [(1,)]
    assert db.sql("SELECT table_name FROM information_schema.tables").fetchall() == [("t",)]
    assert db.sql("SELECT nextval('s') AS s, nextval('few') AS f").fetchall() == [(2, 1)]


def test_a_relation_has_its_numbers_when_it_is_made() -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE SEQUENCE s")
    first, second = db.sql("SELECT nextval('s') AS n FROM range(2)"), db.sql("SELECT nextval('s') AS n FROM range(2)")
    assert second.fetchall() == [(3,), (4,)] and first.fetchall() == [(1,), (2,)]
    assert db.sql("FROM first ORDER BY n").fetchall() == [(1,), (2,)]


def test_copies_draw(tmp_path: Path) -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE SEQUENCE s")
    for n, end in enumerate(("csv", "json", "parquet")):
        db.sql(f"COPY (SELECT nextval('s') AS n FROM range(2)) TO '{tmp_path}/a.{end}'")
        assert db.sql(f"SELECT n FROM '{tmp_path}/a.{end}' ORDER BY n").fetchall() == [(2 * n + 1,), (2 * n + 2,)]


def test_a_key_that_is_taken_changes_nothing() -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE SEQUENCE s; CREATE TABLE t (id BIGINT PRIMARY KEY DEFAULT nextval('s'), x INTEGER)")
    db.sql("INSERT INTO t VALUES (2, 0)")
    with pytest.raises(errors.IntegrityError):
        db.sql("INSERT INTO t (x) VALUES (1), (2)")
    assert db.sql("FROM t").fetchall() == [(2, 0)]
    db.sql("INSERT INTO t (x) VALUES (1), (2)")
    assert db.sql("FROM t ORDER BY id").fetchall() == [(2, 0), (3, 1), (4, 2)]
