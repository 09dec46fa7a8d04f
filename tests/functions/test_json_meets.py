"""JSON that meets values of another type in one column: they become JSON, as in DuckDB."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from tests.support.harness import assert_same

TABLES = {
    "t": pa.table(
        {
            "i": pa.array([1, None, 7], pa.int32()),
            "w": ['{"a": [1, null]}', None, "5"],
            "d": pa.array([dt.date(2001, 1, 1), None, dt.date(1999, 12, 31)]),
            "s": ["1", None, "12"],
            "b": [True, None, False],
            "x": [1.5, None, -0.5],
            "l": pa.array([[1, 2], None, []], pa.list_(pa.int32())),
            "t": pa.array([dt.datetime(2001, 1, 1, 10), None, dt.datetime(1970, 1, 1)], pa.timestamp("us")),
        }
    )
}
MEETINGS = (
    *(f"[{c}, j]" for c in "idsbxlt"), *(f"coalesce(j, {c})" for c in "idsbxlt"), "coalesce(i, j)", "[1, j, NULL]", "[i, j, d]",
    "CASE WHEN b THEN i ELSE j END", "CASE i WHEN 1 THEN j WHEN 7 THEN x END", "if(b, j, d)", "ifnull(j, l)", "[{'a': i}, j]",
    "coalesce(j, 1.50)", "[INTERVAL 1 DAY, j]", "['5', j]", "coalesce(NULL, j, 5)", "list_value(i, j)[1]", "nullif(j, j)",
)  # fmt: skip


@pytest.mark.parametrize("e", MEETINGS)
def test_expressions(e: str) -> None:
    assert_same(f"SELECT {e} AS e FROM (SELECT *, w::JSON AS j FROM t)", TABLES)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT i FROM t UNION ALL SELECT w::JSON FROM t",
        "SELECT w::JSON FROM t UNION SELECT d FROM t",
        "SELECT l FROM t UNION ALL SELECT w::JSON FROM t UNION ALL SELECT NULL",
        "SELECT i AS a FROM t UNION ALL BY NAME SELECT w::JSON AS a, d FROM t",
        "SELECT w::JSON FROM t EXCEPT SELECT i FROM t",
        "SELECT * FROM (VALUES (1), ('[1]'::JSON)) v(a)",
    ],
)
def test_columns_of_several_queries(sql: str) -> None:
    assert_same(sql, TABLES)
