"""Expressions of the same parts are one object, and only those: what differs each time that it is evaluated is none."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery.expression.expr import Call, Case, Expr
from gquery.expression.traverse import walk
from gquery.planner.logical.nodes import Plan
from gquery.planner.logical.shared import every_node
from gquery.planner.logical.tree import expressions
from gquery.sql.bind import bind_query
from tests.support.harness import assert_same, connect

TABLES = {
    "t": pa.table({"m": [1, 2, 3, None, 1], "p": pa.array([150, None, 7, 9, 2], pa.int32()), "q": [2, 3, None, 5, 2**40]}),
    "s": pa.table({"m": [1, 2, 2], "p": [10, 20, None]}),
}


def _bound(sql: str) -> Plan:
    return bind_query(sql, connect("python", 1, TABLES, {}).catalog).plan


def _written(plan: Plan) -> list[Expr]:
    """All expressions of a plan, those that are one object once."""
    found = [x for n in every_node(plan) for e in expressions(n) for x in walk(e)]
    return list({id(x): x for x in found}.values())


def _calls(plan: Plan, function: str) -> int:
    return sum(isinstance(x, Call) and x.function == function for x in _written(plan))


def test_what_is_written_twice_is_one_object() -> None:
    sums = ", ".join(f"sum(CASE WHEN m = {k} THEN p * q ELSE 0 END)" for k in (1, 2, 3))
    plan = _bound(f"SELECT {sums} FROM t WHERE p * q > 3")
    assert _calls(plan, "multiply") == 1
    assert sum(isinstance(x, Case) for x in _written(plan)) == 3


@pytest.mark.parametrize(
    ("sql", "function", "count"),
    [
        ("SELECT random() + 1, random() + 1 FROM t", "add", 2),
        ("SELECT t.p + 1, s.p + 1 FROM t, s", "add", 2),
        ("SELECT p - q, q - p FROM t", "subtract", 2),
        ("SELECT a.p * 2, b.p * 2 FROM t a, t b", "multiply", 2),
        ("WITH u AS (SELECT p * 2 AS v FROM t) SELECT a.v + 1, b.v + 1 FROM u a, u b", "add", 2),
    ],
)
def test_what_is_another_value_is_another_object(sql: str, function: str, count: int) -> None:
    assert _calls(_bound(sql), function) == count


def test_random_is_drawn_anew() -> None:
    db = gquery.connect("python")
    (row,) = db.sql("SELECT random() + 1 = random() + 1, random() * 2 = random() * 2").fetchall()
    assert row == (False, False)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT m, sum(CASE WHEN m = 1 THEN p * q ELSE 0 END), sum(CASE WHEN m = 2 THEN p * q END), sum(p * q) FROM t GROUP BY m",
        "SELECT CASE m WHEN 1 THEN p WHEN 2 THEN q ELSE 0 END, CASE m WHEN 2 THEN p WHEN 1 THEN q ELSE 0.5 END FROM t",
        "SELECT CASE WHEN m = 1 THEN 1 ELSE 0 END, CASE WHEN m = 2 THEN 1 ELSE 0.5 END, CASE WHEN m = 2 THEN 1 END FROM t",
        "SELECT CASE WHEN m = 1 THEN '1' ELSE p END, CASE WHEN m = 2 THEN '1' ELSE 'x' END FROM t WHERE p IS NOT NULL",
        "SELECT p + 1, (SELECT max(s.p + 1) FROM s WHERE s.m = t.m), p + 1 + (p + 1) FROM t",
        "SELECT m + 1 AS k, count(*) FROM t GROUP BY m + 1 HAVING m + 1 > 1 OR count(*) = 1 ORDER BY m + 1",
        "SELECT p + 1 AS p, p + 1 AS q FROM (SELECT q + 1 AS p, p + 1 AS q FROM t) v WHERE p + 1 > 3",
    ],
)
def test_results(sql: str) -> None:
    assert_same(sql, TABLES, targets=("python",), ranks=(1,))


def test_a_template_serves_other_constants() -> None:
    """Constants that are written alike share a slot, also where the next text has two in their places."""
    db = gquery.connect("python").register("t", TABLES["t"])
    sql = "SELECT sum(CASE WHEN m = {} THEN p + {} ELSE {} END), sum(CASE WHEN m = {} THEN p + {} ELSE {} END) FROM t"
    oracle = duckdb.connect().register("t", TABLES["t"])
    for given in ((1, 5, 0, 2, 5, 0), (1, 5, 0, 2, 5, 0), (1, 6, 0, 2, 7, 1), (2, 9, 3, 2, 9, 3), (1, 2**33, 0, 2, 5, 7)):
        text = sql.format(*given)
        assert db.sql(text).fetchall() == oracle.sql(text).fetchall(), text
