"""A query that stands once for each of its columns is what it is once: what `common_subplans` takes for one value is one.

Two windows one above the other once had the same origin, and a use that asked for the one got the other.
"""

from __future__ import annotations

import pytest

import gquery
from gquery.errors import Error
from tests.support.cases import Case, read_cases
from tests.support.harness import connect

MOST = 6  # columns that are asked for
_QUERIES = ("select", "with", "values", "from", "(")
FAST = ("shared",)


def _values(number: int) -> str:
    return f"max(q{number}::VARCHAR), count(q{number})"


def _check(case: Case) -> bool:
    """Whether the case has several columns and is taken within another query; AssertionError if their values differ."""
    db = connect("python", 1, case.tables(), {})
    try:
        count = len(db.sql(case.sql).columns)
        source = f"({case.sql}) v({', '.join(f'q{n}' for n in range(count))})"
        asked = range(min(count, MOST))
        once = db.sql(f"SELECT {', '.join(map(_values, asked))} FROM {source}").fetchall()
    except Error:  # its own test says why
        return False
    each = (f"(SELECT {value} FROM {source})" for n in asked for value in _values(n).split(", "))
    assert db.sql(f"SELECT {', '.join(each)}").fetchall() == once, case.sql
    return count > 1


def _cases(fast: bool) -> list[Case]:
    cases = [c for c in read_cases() if c.sql.lower().startswith(_QUERIES)]
    return [c for c in cases if (c.name.split(":")[0] in FAST) == fast]


def test_columns_of_shared_queries() -> None:
    assert sum(_check(c) for c in _cases(fast=True)) > 30


@pytest.mark.slow
def test_columns_of_all_queries() -> None:
    assert sum(_check(c) for c in _cases(fast=False)) > 500


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT max(y) OVER (PARTITION BY x) a, min(y) OVER (PARTITION BY y ORDER BY x) b FROM t",
        "SELECT e, f FROM (SELECT x, unnest([x, x + 10]) e, [y, y * 3] m FROM t) v, unnest(m) u(f)",
        "SELECT x IN (SELECT y FROM t) a, y NOT IN (SELECT x FROM t WHERE x > 1) b FROM t",
    ],
    ids=["windows", "unnests", "marks"],
)
def test_plans_one_above_the_other(sql: str) -> None:
    db = gquery.connect("python")
    db.sql("CREATE TABLE t AS SELECT i % 5 AS x, i AS y FROM range(12) r(i)")
    names = [n for n in ("a", "b", "e", "f") if n in db.sql(sql).columns]
    once = db.sql(f"SELECT {', '.join(f'sum({n}::INT)' for n in names)} FROM ({sql})").fetchall()
    each = ", ".join(f"(SELECT sum({n}::INT) FROM ({sql}))" for n in names)
    assert db.sql(f"SELECT {each}").fetchall() == once
