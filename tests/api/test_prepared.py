"""PREPARE, EXECUTE and DEALLOCATE."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery.errors import BindError, CatalogError, Error, InterfaceError, NotSupportedError, ParseError


@pytest.fixture
def db() -> gquery.Connection:
    made = gquery.connect("python")
    made.register("t", pa.table({"a": [1, 2, 3], "s": ["x", "y", "x"]}))
    return made


@pytest.mark.parametrize(
    ("prepared", "call", "rows"),
    [
        ("SELECT a + $1 FROM t ORDER BY a LIMIT 1", "EXECUTE p(3)", [(4,)]),
        ("SELECT ? - ?, $2", "EXECUTE p(1 + 4, abs(-2))", [(3, 2)]),
        ("SELECT $x - $y", "EXECUTE p(y := 1, x := 3)", [(2,)]),
        ("SELECT $1::DATE = DATE '2020-01-01', $2", "EXECUTE p('2020-01-01', NULL)", [(True, None)]),
        (
            "SELECT ?::DATE + 1 = DATE '2020-01-02', ?::INT::VARCHAR || ?",
            "EXECUTE p('2020-01-01', 1, 'b')",
            [(True, "1b")],
        ),
        ("SELECT ?2 || ?1, ?1::VARCHAR", "EXECUTE p('a', 'b')", [("ba", "a")]),
        ("SELECT 42", "EXECUTE P", [(42,)]),
        ("SELECT s FROM t ORDER BY a LIMIT ?", 'EXECUTE "p"(2)', [("x",), ("y",)]),
        ("WITH u AS (SELECT * FROM t WHERE s = ?) SELECT sum(a) FROM u", "EXECUTE p('x')", [(4,)]),
        ("PIVOT t ON s USING sum(a + $n)", "EXECUTE p(n := 1)", [(6, 3)]),
        ("FROM t UNPIVOT (v FOR n IN (a)) WHERE v > $1", "EXECUTE p(2)", [("x", "a", 3)]),
        ("SELECT column_name FROM (SUMMARIZE t)", "EXECUTE p", [("a",), ("s",)]),
    ],
)
def test_a_statement_is_asked_with_its_arguments(
    db: gquery.Connection, prepared: str, call: str, rows: list[Any]
) -> None:
    assert db.sql(f"PREPARE p AS {prepared}").is_message
    for _ in range(2):
        assert db.sql(call).fetchall() == rows


@pytest.mark.parametrize(
    ("sql", "error", "match"),
    [
        ("EXECUTE q(1)", CatalogError, "no prepared statement 'q'"),
        ("EXECUTE p", InterfaceError, "no value is given for $1"),
        ("EXECUTE p(x := 1)", InterfaceError, "no value is given for $1"),
        ("EXECUTE p(1, 2)", InterfaceError, "no parameter $2"),
        ("EXECUTE p((SELECT 1))", BindError, "cannot be a subquery"),
        ("EXECUTE p(a)", BindError, "column 'a'"),
        ("EXECUTE p(1", ParseError, ")"),
        ("EXECUTE", ParseError, "a name is expected"),
        ("DEALLOCATE", ParseError, "a name is expected"),
        ("PREPARE", ParseError, "a name is expected"),
        ("PREPARE n", ParseError, "AS is expected"),
        ("PREPARE n AS", ParseError, "ends too early"),
        ("PREPARE n AS CREATE TABLE u AS SELECT 1", ParseError, "CREATE cannot stand here"),
        ("PREPARE n AS INSERT INTO nope VALUES ($1)", CatalogError, "'nope' does not exist"),
        ("PREPARE n AS DELETE FROM t WHERE nope = 1", BindError, "'nope'"),
        ("PREPARE n(INTEGER) AS SELECT $1", NotSupportedError, "types of parameters"),
        ("PREPARE n AS SELECT * FROM nope WHERE a = $1", CatalogError, "'nope' does not exist"),
        ("PREPARE n AS SELECT nope FROM t", BindError, "'nope'"),
    ],
)
def test_what_is_wrong_is_said(db: gquery.Connection, sql: str, error: type[Error], match: str) -> None:
    db.sql("PREPARE p AS SELECT $1")
    with pytest.raises(error) as caught:
        db.sql(sql)
    assert match in str(caught.value) and "\x1e" not in str(caught.value)
    assert db.sql("EXECUTE p(5)").fetchall() == [(5,)]


def test_a_name_is_taken_again_and_forgotten(db: gquery.Connection) -> None:
    db.sql("PREPARE p AS SELECT 1; PREPARE p AS SELECT 2")
    assert db.sql("EXECUTE p").fetchall() == [(2,)]
    db.sql("DEALLOCATE PREPARE p; DEALLOCATE p")  # twice does no harm, as in DuckDB
    with pytest.raises(CatalogError):
        db.sql("EXECUTE p")


def test_it_reads_tables_as_they_are(db: gquery.Connection) -> None:
    db.sql("PREPARE p AS SELECT sum(a) FROM t WHERE a > $1")
    assert db.sql("EXECUTE p(1)").fetchall() == [(5,)]
    db.register("t", pa.table({"a": [7], "s": ["z"]}))
    assert db.sql("EXECUTE p(1)").fetchall() == [(7,)]
    assert db.sql("EXECUTE p(?)", [9]).fetchall() == [(None,)]


def test_explain_shows_what_runs(db: gquery.Connection) -> None:
    db.sql("PREPARE p AS SELECT a FROM t WHERE a = $1")
    assert "Scan t" in str(db.sql("EXPLAIN EXECUTE p(1)"))


def test_a_change_is_prepared(db: gquery.Connection) -> None:
    db.sql(
        "CREATE TABLE n (x BIGINT, s VARCHAR); PREPARE p AS INSERT INTO n VALUES ($1, $2), (DEFAULT, $2) RETURNING x + 1"
    )
    assert db.sql("EXECUTE p(1, 'y')").fetchall() == [(2,), (None,)]
    assert db.sql("EXECUTE p(3, 'z')").fetchall() == [(4,), (None,)]
    db.sql("PREPARE p AS WITH w AS (SELECT $1 AS v) UPDATE n SET s = s || $2 WHERE x IN (FROM w)")
    assert db.sql("EXECUTE p(3, '!')").fetchall() == [(1,)]
    assert db.sql("SELECT x, s FROM n ORDER BY x, s").fetchall()[:2] == [(1, "y"), (3, "z!")]
    db.sql("PREPARE p AS DELETE FROM n WHERE x = $1")
    assert [db.sql("EXECUTE p(3)").fetchall() for _ in range(2)] == [[(1,)], [(0,)]]


@pytest.mark.parametrize(
    ("sql", "values", "rows"),
    [
        ("SELECT $1+$1", [2], [(4,)]),
        ("SELECT $a+$b_2", {"a": 1, "b_2": 2}, [(3,)]),
        ("SELECT $1||$2, '$1' -- $3\n", ["x", "y"], [("xy", "$1")]),
        ('SELECT $1::INT+$2-$1 AS "$1"', [1, 2], [(2,)]),
        ("SELECT ?1+?2", [1, 2], [(3,)]),
    ],
)
def test_parameters_stand_side_by_side(db: gquery.Connection, sql: str, values: Any, rows: list[Any]) -> None:
    assert db.sql(sql, values).fetchall() == rows


@pytest.mark.parametrize(
    ("sql", "values", "more"),
    [
        ("SELECT 1", [5], "$1"),
        ("SELECT ?", [1, 2, 3], "$2, $3"),
        ("SELECT $2", [1, 2], "$1"),
        ("SELECT $a", {"a": 1, "b": 2}, "$b"),
        ("SELECT $1", {"1": 1, "2": 2}, "$2"),
        ("SELECT 1; SELECT 2", [1], "$1"),
        ("INSERT INTO n VALUES (?)", [1, 2], "$2"),
        ("CREATE TABLE m AS SELECT 1", [1], "$1"),
        ("PREPARE p AS SELECT ?", [1], "$1"),
        ("SET threads = 1", [1], "$1"),
        ("DROP TABLE n", [1], "$1"),
    ],
)
def test_values_of_parameters_that_are_not_there_are_refused(
    db: gquery.Connection, sql: str, values: Any, more: str
) -> None:
    db.sql("CREATE TABLE n (x BIGINT)")
    for _ in range(2):  # the second time where a text that fits has run before
        with pytest.raises(InterfaceError, match=f"no parameter {re.escape(more)}, which"):
            db.sql(sql, values)
        fitting: Any = {"SELECT ?": [1], "SELECT $a": {"a": 1}, "INSERT INTO n VALUES (?)": [1]}.get(sql)
        if fitting is not None:
            assert db.sql(sql, fitting).fetchall() == [(1,)]
    assert db.sql("SELECT 1; SELECT ?", [7]).fetchall() == [(7,)]
