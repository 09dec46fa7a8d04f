"""Arguments that may fail, of calls that the host makes, in branches: no row that does not go there computes them.

Kernels compute them in a round of their own, before the branch is known to be taken: CAST(CAST(a AS UTINYINT) AS VARCHAR).
"""

from __future__ import annotations

import random

import duckdb
import pytest

from tests.support.harness import assert_same, expect

TABLE = duckdb.sql("""
    SELECT i, CAST(i - 2 AS INTEGER) AS a, CASE WHEN i % 3 <> 0 THEN 'v' || i END AS s,
        DATE '2020-01-01' + CAST(i AS INTEGER) AS d, CAST(i * 1.5 AS DECIMAL(6,2)) AS x, [i, i + 1] AS l, CAST(i AS DOUBLE) AS f,
        9223372036854775790 + i AS big,
        TIMESTAMP '2020-01-01' + to_hours(CAST(i AS INTEGER)) AS ts
    FROM range(1, 12) AS r(i)""").to_arrow_table()
TABLES = {"t": TABLE}
FAILING = [
    "CAST(a AS UTINYINT)", "CAST(i * 30 AS TINYINT)", "CAST(f * 20 AS TINYINT)", "big + i", "a * 2147483640", "ln(a)", "sqrt(a)",
    "CAST(x * 1000 AS DECIMAL(6,2))", "d + a * 2147483640", "ts + INTERVAL '290000 years'", "CAST(f * 1e40 AS REAL)",
    "CAST(i - 5 AS UBIGINT)", "abs(CAST(-a AS TINYINT) - 120)", "1 << CAST(i * 7 AS INTEGER)", "make_timestamp(big * 2)",
    "(x * x) * 100000000000.0", "ts + to_years(CAST(i * 100000 AS INTEGER))",
]  # fmt: skip
CONDITIONS = [
    "i > 5", "i > 2 AND i < 5", "i < 4", "s = 'v7'", "a BETWEEN 1 AND 3", "s LIKE 'v1%'", "upper(s) = 'V4'", "i = 2", "s IS NULL",
    "d < DATE '2020-01-04'", "length(s || 'x') = 3 AND i < 3",
]  # fmt: skip
CALLS = [
    "CAST({k} AS VARCHAR)", "upper(CAST({k} AS VARCHAR))", "'v' || {k}", "concat('a', {k}, s)", "CAST([{k}, {k}] AS VARCHAR)",
    "length('q' || {k})", "coalesce(s, CAST({k} AS VARCHAR))", "format('{{}}', {k})", "lpad(CAST({k} AS VARCHAR), 5, '0')",
    "list_contains(l, CAST(length(CAST({k} AS VARCHAR)) AS BIGINT))",
]  # fmt: skip
FORMS = [
    "SELECT i, CASE WHEN {c} THEN {h} END FROM t",
    "SELECT i, CASE WHEN NOT ({c}) THEN NULL WHEN {c} THEN {h} ELSE NULL END FROM t",
    "SELECT i FROM t WHERE {c} AND {h} IS NOT NULL",
    "SELECT i, NOT ({c}) OR ({h}) IS NULL FROM t",
    "SELECT i, CASE WHEN {c} THEN coalesce(CAST({h} AS VARCHAR), 'n') ELSE upper('x' || i) END FROM t",
    "SELECT max(CASE WHEN {c} THEN {h} END), count(*) FROM t",
    "SELECT max({h}) FILTER (WHERE {c}) FROM t",
    "SELECT i, CASE WHEN {c} THEN CASE WHEN upper(s) = 'V' || i THEN {h} END END FROM t",
]


def _answers(sql: str) -> bool:
    try:
        expect(sql, TABLES)
    except duckdb.Error:
        return False
    return True


@pytest.mark.parametrize("form", FORMS)
def test_in_branches(form: str) -> None:
    """25 calls of each form, whose argument fails for some rows, and not for those that go there."""
    drawn, asked = random.Random(form), 0
    while asked < 25:
        k, c = drawn.choice(FAILING), drawn.choice(CONDITIONS)
        sql = form.format(c=c, h=drawn.choice(CALLS).format(k=k))
        if not _answers(f"SELECT {k} FROM t") and _answers(f"SELECT {k} FROM t WHERE {c}") and _answers(sql):
            assert_same(sql, TABLES, targets=("python",))
            asked += 1
