"""What there is, asked as tables, beside DuckDB."""

from __future__ import annotations

import duckdb
import pytest

import gquery
from gquery import errors

SETUP = """
CREATE TABLE t(a TINYINT, b SMALLINT, c UINTEGER, d REAL, e DOUBLE, f DECIMAL(18,3), g BOOLEAN, h INTERVAL, i TIMESTAMPTZ)
CREATE TABLE "two words"(j DATE[], k STRUCT(x INT, y VARCHAR), l MAP(VARCHAR, INT), "Ä b" BIGINT)
CREATE VIEW v AS SELECT a + 1 AS z, f * 2 AS y, 'x' AS x FROM t
INSERT INTO t (a) VALUES (1), (2)
"""
DUCKDB_COLUMNS = (
    "database_name, schema_name, table_name, column_name, column_index, comment, internal, column_default, is_nullable, "
    "data_type, character_maximum_length, numeric_precision, numeric_precision_radix, numeric_scale"
)
ASKED = [
    "SELECT * FROM information_schema.tables ORDER BY table_name",
    "SELECT * FROM information_schema.columns ORDER BY table_name, ordinal_position",
    "SELECT table_name, estimated_size, column_count, temporary, has_primary_key FROM duckdb_tables() ORDER BY 1",
    f"SELECT {DUCKDB_COLUMNS} FROM duckdb_columns() WHERE NOT internal ORDER BY table_name, column_index",
    "FROM pragma_table_info('t')",
    "SELECT name FROM pragma_table_info('V') p WHERE type = 'VARCHAR'",
    "SELECT c.table_name, count(*) FROM information_schema.columns c JOIN information_schema.tables t USING (table_name) "
    "WHERE t.table_type = 'VIEW' GROUP BY ALL",
]


def test_what_there_is() -> None:
    theirs, ours = duckdb.connect(), gquery.connect("python")
    for change in [*SETUP.strip().splitlines(), 'DROP TABLE "two words"', "INSERT INTO t (b) SELECT 7 FROM range(4)"]:
        theirs.execute(change)
        ours.sql(change)
        for sql in ASKED if change.startswith(("INSERT", "DROP")) else ():
            want = theirs.execute(sql)
            names = [d[0] for d in want.description or ()]
            found = ours.sql(sql)
            assert (found.columns, found.fetchall()) == (names, want.fetchall()), sql


def test_a_view_that_has_lost_its_table_has_no_columns() -> None:
    db = gquery.connect("python")
    db.sql("CREATE TABLE t(a INTEGER)")
    db.sql("CREATE VIEW v AS SELECT a FROM t")
    ask = "SELECT table_name, column_name FROM information_schema.columns ORDER BY ALL"
    assert db.sql(ask).fetchall() == [("t", "a"), ("v", "a")]
    db.sql("DROP TABLE t")
    assert db.sql(ask).fetchall() == []
    assert db.sql("SELECT table_name FROM information_schema.tables").fetchall() == [("v",)]


@pytest.mark.parametrize(
    ("sql", "error", "match"),
    [
        ("FROM information_schema.nothing", errors.CatalogError, "information_schema.nothing does not exist"),
        ("FROM pragma_table_info('nothing')", errors.CatalogError, "'nothing' does not exist"),
        ("FROM pragma_table_info(1)", errors.BindError, "takes the name of a table"),
        ("FROM duckdb_tables(1)", errors.BindError, "takes no arguments"),
        ("FROM duckdb_settings()", errors.NotSupportedError, "duckdb_settings"),
    ],
)
def test_what_is_refused(sql: str, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        gquery.connect("python").sql(sql)
