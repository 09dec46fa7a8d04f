"""Transactions of several cursors: what each sees, what stays, and what is a conflict, as DuckDB has it."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import duckdb
import pytest

import gquery
from gquery import errors


@pytest.fixture
def db() -> Iterator[gquery.Connection]:
    with gquery.connect("python") as connection:
        connection.execute("CREATE TABLE t(a INTEGER)")
        connection.execute("CREATE TABLE k(a INTEGER PRIMARY KEY)")
        yield connection


def rows(who: Any, sql: str = "SELECT a FROM t ORDER BY a") -> list[Any]:
    return [a for (a,) in who.execute(sql).fetchall()]


def test_rollback_takes_back_nobody_elses_rows(db: gquery.Connection) -> None:
    one, other = db.cursor(), db.cursor()
    one.execute("BEGIN")
    one.execute("INSERT INTO t VALUES (1)")
    other.execute("INSERT INTO t VALUES (2)")
    db.execute("CREATE TABLE more AS SELECT 1 AS a")
    assert (rows(one), rows(other), rows(db)) == ([1], [2], [2])
    with pytest.raises(errors.CatalogError):
        one.execute("FROM more")
    one.execute("ROLLBACK")
    assert rows(one) == rows(other) == rows(db) == [2]
    assert rows(one, "FROM more") == [1]


def test_a_cursor_that_goes_has_changed_nothing(db: gquery.Connection) -> None:
    with db.cursor() as cursor:
        cursor.begin()
        cursor.execute("INSERT INTO t VALUES (1)")
    lost = db.cursor().begin()
    lost.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(errors.OperationalError, match="that of a cursor, whose own commit"):
        db.commit()
    del lost
    gc.collect()
    db.commit()
    assert rows(db) == []
    kept = db.cursor().begin()
    kept.execute("INSERT INTO t VALUES (3)")
    kept.commit()
    kept.rollback()
    assert rows(db) == [3]


CONFLICTS = (
    "UPDATE t SET a = 9", "DELETE FROM t WHERE a = 1", "ALTER TABLE t ADD COLUMN b INTEGER", "DROP TABLE t",
    "ALTER TABLE t RENAME TO u", "INSERT INTO k VALUES (7)", "CREATE TABLE fresh(x INTEGER)", "CREATE VIEW fresh AS SELECT 1",
    "CREATE MACRO f(x) AS x", "CREATE SCHEMA s", "CREATE SEQUENCE q", "CREATE OR REPLACE TABLE t AS SELECT 5 AS a",
)  # fmt: skip


@pytest.mark.parametrize(("first", "second"), list(combinations_with_replacement(CONFLICTS, 2)))
def test_conflicts_change_nothing(db: gquery.Connection, first: str, second: str) -> None:
    """Two transactions that change the same are never both kept; those that do not, are."""
    db.execute("INSERT INTO t VALUES (1), (2)")
    one, other = db.cursor().begin(), db.cursor().begin()
    one.execute(first)
    other.execute(second)
    one.commit()
    if _target(first) == _target(second):
        state = _state(db)
        with pytest.raises(errors.OperationalError, match="was changed by another transaction meanwhile"):
            other.commit()
        assert _state(db) == state
        other.execute("SELECT 1")
        other.begin()
        other.rollback()
    else:
        other.commit()
        with gquery.connect("python") as alone:
            for sql in ("CREATE TABLE t(a INTEGER)", "CREATE TABLE k(a INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)"):
                alone.execute(sql)
            alone.execute(first)
            alone.execute(second)
            assert _state(db) == _state(alone)


def _target(sql: str) -> str:
    return next(n for n in ("fresh", "f(x)", " s", " q", " k ", " t") if n in sql.replace(" SET", "").replace(" SELECT", ""))


def _state(db: gquery.Connection) -> list[Any]:
    shown = db.sql("SHOW ALL TABLES").fetchall()
    named = {row[2] for row in shown}
    told = [db.execute(f"FROM {n} ORDER BY ALL").fetchall() for n in sorted(named)]
    schemas = db.sql("SELECT schema_name FROM information_schema.schemata ORDER BY 1").fetchall()
    return [shown, told, schemas, *(_said(db, sql) for sql in ("SELECT f(1)", "SELECT nextval('q')"))]


def _said(db: gquery.Connection, sql: str) -> str:
    try:
        db.execute(sql)
    except errors.Error as error:
        return type(error).__name__
    return "well"


def test_rows_of_several_transactions_are_appended(db: gquery.Connection) -> None:
    cursors = [db.cursor().begin() for _ in range(4)]
    for n, cursor in enumerate(cursors):
        cursor.executemany("INSERT INTO t VALUES (?)", [[10 * n + i] for i in range(3)])
        cursor.execute(f"INSERT INTO t SELECT a + 5 FROM t WHERE a = {10 * n}")
        assert len(rows(cursor)) == 4
    db.execute("INSERT INTO t VALUES (100)")
    for cursor in cursors:
        cursor.commit()
    assert rows(db) == sorted([100] + [10 * n + i for n in range(4) for i in (0, 1, 2, 5)])
    late = db.cursor().begin()
    late.execute("INSERT INTO t VALUES (-1)")
    db.execute("DELETE FROM t WHERE a > 0")
    late.commit()
    assert rows(db) == [-1, 0]


def test_changes_are_seen_by_kept_plans_and_relations(db: gquery.Connection) -> None:
    cursor, text = db.cursor(), "SELECT count(*) AS a FROM t"
    waiting = db.sql(text)
    for number in range(1, 4):
        cursor.begin()
        cursor.execute("INSERT INTO t VALUES (?)", [number])
        assert (rows(cursor, text), rows(db, text)) == ([number], [number - 1])
        cursor.commit()
        assert rows(db, text) == [number]
    assert waiting.fetchall() == [(3,)]


def test_threads_have_transactions_of_their_own(db: gquery.Connection) -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            cursor = db.cursor()
            for turn in range(10):
                cursor.begin()
                cursor.execute("INSERT INTO t VALUES (?)", [number])
                cursor.execute(f"INSERT INTO t SELECT {number + 100} FROM range(2)")
                (cursor.commit if turn % 2 else cursor.rollback)()
        except BaseException as error:  # told by the test's own thread
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert rows(db) == sorted(list(range(4)) * 5 + [n + 100 for n in range(4)] * 10)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 40))])
def test_cursors_see_what_those_of_duckdb_see(seed: int) -> None:
    """Each changes rows of its own table, appends to one that all have, and looks at all of them."""
    rng = random.Random(seed)
    ours, theirs = gquery.connect("python"), duckdb.connect()
    count = 3
    cursors = [(ours.cursor(), theirs.cursor()) for _ in range(count)]
    for name in ("shared", *(f"own{n}" for n in range(count))):
        for one in (ours, theirs):
            one.execute(f"CREATE TABLE {name}(a INTEGER, b INTEGER)")
    begun = [False] * count
    for _ in range(120):
        n, value = rng.randrange(count), rng.randrange(8)
        sql = rng.choice((
            f"INSERT INTO shared VALUES ({value}, {n})", f"INSERT INTO own{n} SELECT a, b + 1 FROM shared WHERE a < {value}",
            f"INSERT INTO own{n} VALUES ({value}, NULL)", f"UPDATE own{n} SET b = {value} WHERE a % 3 = 1",
            f"DELETE FROM own{n} WHERE a = {value}", f"INSERT INTO shared SELECT a, {n} FROM own{n} LIMIT 3",
            "COMMIT" if begun[n] else "BEGIN", "ROLLBACK" if begun[n] else "BEGIN",
            f"CREATE OR REPLACE VIEW v{n} AS SELECT sum(a) AS a FROM own{n}",
        ))  # fmt: skip
        if sql in ("BEGIN", "COMMIT", "ROLLBACK"):
            begun[n] = sql == "BEGIN"
        for cursor in cursors[n]:
            cursor.execute(sql)
        who = rng.randrange(count)
        for name in ("shared", *(f"own{m}" for m in range(count))):
            text = f"SELECT a, b FROM {name} ORDER BY ALL"
            got, wanted = (cursor.execute(text).fetchall() for cursor in cursors[who])
            assert got == wanted, (sql, name)
