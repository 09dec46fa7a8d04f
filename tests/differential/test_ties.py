"""Benchmarks compare rows under a LIMIT up to ties: which of equal rows are taken is no difference, any other row is one."""

from __future__ import annotations

import duckdb
import pytest

from benchmarks.ties import difference

TABLE = """
CREATE TABLE t AS SELECT * FROM (
    VALUES (1, 'a', 0.5::DOUBLE), (1, 'b', 1), (2, 'c', 2), (2, 'd', 3), (2, 'c', 4), (NULL, 'e', 5)
) v(k, s, x)
"""


@pytest.mark.parametrize(
    ("sql", "rows", "is_same"),
    [
        ("SELECT k, s FROM t ORDER BY k LIMIT 3", [(1, "a"), (1, "b"), (2, "d")], True),
        ("SELECT k, s FROM t ORDER BY k LIMIT 3", [(1, "a"), (2, "c"), (2, "d")], False),
        ("SELECT k, s FROM t ORDER BY k LIMIT 3", [(1, "a"), (1, "b"), (2, "e")], False),
        ("SELECT k, s FROM t ORDER BY k LIMIT 3", [(1, "a"), (1, "b")], False),
        ("SELECT k, s FROM t ORDER BY k LIMIT 4", [(1, "a"), (1, "b"), (2, "c"), (2, "c")], True),
        ("SELECT k, s FROM t ORDER BY k LIMIT 4", [(1, "a"), (1, "b"), (2, "d"), (2, "d")], False),
        ("SELECT k, s FROM t ORDER BY k LIMIT 2 OFFSET 1", [(1, "a"), (2, "d")], True),
        ("SELECT k, s FROM t ORDER BY k LIMIT 2 OFFSET 1", [(None, "e"), (2, "d")], False),
        ("SELECT k, s FROM t ORDER BY k LIMIT 3 OFFSET 1", [(1, "a"), (2, "d"), (2, "c")], True),
        ("SELECT s FROM t ORDER BY k DESC NULLS FIRST LIMIT 2", [("e",), ("d",)], True),
        ("SELECT s FROM t ORDER BY k DESC NULLS FIRST LIMIT 2", [("a",), ("d",)], False),
        ("SELECT s AS q FROM t LIMIT 2", [("e",), ("c",)], True),
        ("SELECT s AS q FROM t LIMIT 2", [("e",), ("e",)], False),
        ("SELECT s, count(*) AS c FROM t GROUP BY s ORDER BY c DESC LIMIT 3", [("c", 2), ("e", 1), ("d", 1)], True),
        ("SELECT s, count(*) AS c FROM t GROUP BY s ORDER BY c DESC LIMIT 3", [("a", 1), ("e", 1), ("d", 1)], False),
        ("SELECT s, count(*) FROM t GROUP BY s ORDER BY 2 DESC, k IS NULL LIMIT 2", None, True),
        ("SELECT DISTINCT s FROM t ORDER BY length(s) LIMIT 2", [("d",), ("e",)], True),
        ("SELECT DISTINCT s FROM t ORDER BY length(s) LIMIT 2", [("d",), ("d",)], False),
        ("SELECT k, sum(x) AS y FROM t GROUP BY ALL ORDER BY k LIMIT 1", [(1, 1.5 + 1e-13)], True),
        ("SELECT k, sum(x) AS y FROM t GROUP BY ALL ORDER BY k LIMIT 1", [(1, 1.6)], False),
        ("SELECT {'a': s} AS q FROM t ORDER BY k LIMIT 1", [({"a": "b"},)], True),
        ("SELECT k, s FROM t", [(1, "a")] * 6, False),
    ],
)
def test_which_of_equal_rows(sql: str, rows: list[tuple[object, ...]] | None, is_same: bool) -> None:
    db = duckdb.connect()
    db.execute(TABLE)
    if rows is None:
        sql, rows = sql.replace(", k IS NULL", ""), [("c", 2), ("d", 1)]
    want = db.execute(sql).fetchall()
    types = [str(d[1]) for d in db.description]
    assert (difference(db, sql, rows, want, types) is None) == is_same
