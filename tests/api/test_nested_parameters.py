"""Lists, tuples, arrays and dicts as parameters, beside DuckDB."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pytest

import gquery
from gquery.errors import BindError, InterfaceError

VALUES: list[Any] = [
    (1, 2), [1, None], [], [None], [1, 2.5], [1, "a", True], [[1], [2, 3]], [[], [1]], [2**40, 1], [1, True],
    [Decimal("1.5"), 1], [datetime.date(2020, 1, 1)], np.array([1, 2]), np.array(["a"]), np.array([0.5]),
    {"a": 1, "b": "x"}, {"a": None, "b": [{"c": 2}]}, {}, {1: "a", 2: "b"}, [{"a": 1}, {"b": 2}],
    {"key": [1, 2], "value": ["a", "b"]}, {"key": [1, 2], "value": ["a"]}, {"key": 1, "value": 2},
]  # fmt: skip


@pytest.fixture(params=["python", "cpu"])
def db(request: pytest.FixtureRequest) -> gquery.Connection:
    made = gquery.connect(request.param)
    made.sql("SET interpret_limit = 0")
    return made


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_has_duckdbs_type(value: Any) -> None:
    ask = "SELECT $1, typeof($1)"
    want = duckdb.execute(ask, [value]).fetchall()
    found = gquery.connect("python").sql(ask, [value]).fetchall()
    assert repr(found) == repr(want)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT a FROM t WHERE a IN ? ORDER BY a", [3, 1]),
        ("SELECT a FROM t WHERE a NOT IN $1 ORDER BY a", (1, None)),
        ("SELECT a FROM t WHERE a IN ?", []),
        ("SELECT a FROM t WHERE a = ANY(?)", [2, 9]),
        ("SELECT a FROM t WHERE list_contains($1, a) ORDER BY a", [2, 3]),
        ("SELECT unnest(?)", ["x", "y"]),
        ("SELECT ?[2]", [5, 6]),
        ("SELECT $1.a + a FROM t ORDER BY 1", {"a": 4}),
        ("SELECT $1[a] FROM t ORDER BY a", {"key": [1, 2], "value": ["x", "y"]}),
    ],
)
def test_a_value_stands_where_others_do(db: gquery.Connection, sql: str, value: Any) -> None:
    theirs = duckdb.connect()
    theirs.execute("CREATE TABLE t AS SELECT range AS a FROM range(5)")
    db.sql("CREATE TABLE t AS SELECT range AS a FROM range(5)")
    for _ in range(2):
        assert db.sql(sql, [value]).fetchall() == theirs.execute(sql, [value]).fetchall()


def test_other_values_are_another_query(db: gquery.Connection) -> None:
    ids = [1, 2]
    assert db.sql("SELECT list_sum($ids)", {"ids": ids}).fetchall() == [(3,)]
    ids.append(4)
    assert db.sql("SELECT list_sum($ids)", {"ids": ids}).fetchall() == [(7,)]
    assert db.sql("SELECT typeof($ids)", {"ids": [1]}).fetchall() == [("INTEGER[]",)]
    assert db.sql("SELECT typeof($ids)", {"ids": [True]}).fetchall() == [("BOOLEAN[]",)]


def test_rows_of_an_insert_have_them(db: gquery.Connection) -> None:
    db.sql("CREATE TABLE t (x INTEGER[], s VARCHAR, m STRUCT(a INTEGER))")
    for n in range(2):
        db.execute("INSERT INTO t VALUES (?, ?, ?)", [[n, None], [n], {"a": n}])
    rows = db.sql("SELECT * FROM t ORDER BY s").fetchall()
    assert rows == [([0, None], "[0]", {"a": 0}), ([1, None], "[1]", {"a": 1})]
    db.sql("PREPARE p AS SELECT len($1)")
    assert db.sql("EXECUTE p([7, 8])").fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        ({1, 2}, InterfaceError, "of type set has no SQL type"),
        ([1, object()], InterfaceError, "of type object has no SQL type"),
        (np.array(["2020-01-01"], "datetime64[D]"), InterfaceError, "an array of datetime64"),
        ([1, [2]], BindError, "INTEGER"),
        ({"a": 1, "A": 2}, BindError, "the name 'A' twice"),
    ],
    ids=["set", "object", "dates", "mixed list", "keys of two cases"],
)
def test_what_has_no_type_is_refused(db: gquery.Connection, value: Any, error: type[Exception], match: str) -> None:
    for sql in ("SELECT $1", "SELECT $1 || [1]"):
        with pytest.raises(error, match=match):
            db.sql(sql, [value])


@pytest.mark.parametrize("given", [0, 5, "abc", b"abc", 1.5])
def test_parameters_are_a_list_or_a_dict(db: gquery.Connection, given: Any) -> None:
    for sql in ("SELECT ?", "SELECT 1"):
        with pytest.raises(InterfaceError, match="a list or a dict of values"):
            db.sql(sql, given)
