"""CREATE OR REPLACE TABLE AS whose text was run before: its plan is used again as long as all names mean what they did."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import gquery
from gquery.api.planning import Plans

TEXT = "CREATE OR REPLACE TABLE made AS SELECT k, sum(v) AS s FROM t GROUP BY k"


@pytest.fixture
def db() -> gquery.Connection:
    connection = gquery.connect(device="python")
    connection.sql("CREATE TABLE t AS SELECT range % 3 AS k, range AS v FROM range(9)")
    connection.sql("CREATE TABLE other AS SELECT 1 AS k, 5 AS v")
    return connection


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was planned since."""
    found: list[object] = []
    whole = Plans._plan

    def spy(self: Plans, query: Any, *arguments: Any, **named: Any) -> Any:
        found.append(query)
        return whole(self, query, *arguments, **named)

    monkeypatch.setattr(Plans, "_plan", spy)
    return found


def rows(db: gquery.Connection, sql: str = "SELECT * FROM made") -> list[Any]:
    return sorted(db.sql(sql).fetchall())


def test_it_is_planned_once(db: gquery.Connection, planned: list[object]) -> None:
    for _ in range(3):
        assert db.sql(TEXT).fetchall() == [(3,)]
        assert db.sql("SELECT count(*) FROM made").fetchall() == [(3,)]
    assert len(planned) == 4, "once, and each look at the table that it made"
    assert rows(db) == [(0, 9), (1, 12), (2, 15)]
    db.sql("CREATE TABLE beside AS SELECT 1 AS a")
    planned.clear()
    db.sql(TEXT)
    assert planned == [], "another table changes nothing"


CHANGES: dict[str, Callable[[gquery.Connection], object]] = {
    "rows behind it": lambda db: db.sql("INSERT INTO t VALUES (1, 100)"),
    "rows from a query": lambda db: db.sql("INSERT INTO t SELECT * FROM other"),
    "other values": lambda db: db.sql("UPDATE t SET v = v + 1"),
    "fewer rows": lambda db: db.sql("DELETE FROM t WHERE k = 2"),
    "another table": lambda db: db.sql("CREATE OR REPLACE TABLE t AS SELECT k, v FROM other"),
    "a table of other types": lambda db: db.register("t", {"k": ["a", "b", "a"], "v": [0.5, 1.5, 2.5]}),
    "a view": lambda db: [db.sql("DROP TABLE t"), db.sql("CREATE VIEW t AS SELECT 7 AS k, 8 AS v")],
    "another name": lambda db: [db.sql("ALTER TABLE t RENAME TO u"), db.sql("ALTER TABLE other RENAME TO t")],
    "other columns": lambda db: [db.sql("ALTER TABLE t DROP COLUMN v"), db.sql("ALTER TABLE t ADD COLUMN v INTEGER")],
    "a rollback": lambda db: [db.sql("BEGIN"), db.sql("INSERT INTO t VALUES (5, 5)"), db.sql(TEXT), db.sql("ROLLBACK")],
    "a setting": lambda db: db.sql("SET threads = 1"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(db: gquery.Connection, change: str) -> None:
    for _ in range(2):
        db.sql(TEXT)
    CHANGES[change](db)
    db.sql(TEXT)
    assert rows(db) == rows(db, "SELECT k, sum(v) FROM t GROUP BY k")


def test_a_view_between_is_seen(db: gquery.Connection) -> None:
    db.sql("CREATE VIEW w AS SELECT k, v FROM t")
    text = "CREATE OR REPLACE TABLE made AS SELECT * FROM w"
    for _ in range(2):
        db.sql(text)
    db.sql("CREATE OR REPLACE VIEW w AS SELECT v AS k, k AS v FROM t WHERE k = 1")
    db.sql(text)
    assert rows(db) == [(1, 1), (4, 1), (7, 1)]


def test_what_reads_itself_is_planned_anew(db: gquery.Connection) -> None:
    text = "CREATE OR REPLACE TABLE other AS SELECT k, v + 1 AS v FROM other"
    for n in range(3):
        db.sql(text)
        assert db.sql("SELECT v FROM other").fetchall() == [(6 + n,)]
    listed = "CREATE OR REPLACE TABLE names AS SELECT table_name AS n FROM information_schema.tables"
    assert [db.sql(listed).fetchall() for _ in range(2)] == [[(2,)], [(3,)]]
    described = "CREATE OR REPLACE TABLE names AS SELECT column_name FROM (DESCRIBE names)"
    db.sql("CREATE OR REPLACE TABLE names AS SELECT 1 AS a, 2 AS b")
    db.sql(described)
    db.sql(described)
    assert rows(db, "SELECT * FROM names") == [("column_name",)]


def test_variables_moments_and_chance_are_anew(db: gquery.Connection) -> None:
    for n in range(2):
        held = {"x": [n]}
        db.sql("CREATE OR REPLACE TABLE made AS SELECT x FROM held")
        assert rows(db) == [(n,)] and held
    db.sql("CREATE OR REPLACE TABLE made AS SELECT random() AS r")
    first = rows(db)
    db.sql("CREATE OR REPLACE TABLE made AS SELECT random() AS r")
    assert rows(db) != first


def _less(x: int) -> int:
    return x - 1


def _more(x: int) -> int:
    return x + 1


def test_a_function_of_the_name_is_seen(db: gquery.Connection) -> None:
    text = "CREATE OR REPLACE TABLE made AS SELECT step(k) AS a FROM other"
    for function, expected in ((_less, 0), (_more, 2)):
        db.create_function("step", function)
        for _ in range(2):
            db.sql(text)
            assert rows(db) == [(expected,)]


def test_what_is_dropped_is_not_held(db: gquery.Connection) -> None:
    for _ in range(2):
        db.sql(TEXT)
    table = weakref.ref(db._catalog.table("t"))
    db.sql("DROP TABLE t")
    gc.collect()
    assert table() is None
    with pytest.raises(gquery.errors.CatalogError, match="does not exist"):
        db.sql(TEXT)


def test_a_name_that_is_taken_is_an_error_again(db: gquery.Connection) -> None:
    text = "CREATE TABLE made AS SELECT k FROM other"
    db.sql(text)
    with pytest.raises(gquery.errors.CatalogError, match="already exists"):
        db.sql(text)
