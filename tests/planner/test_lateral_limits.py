"""LIMIT 1 within LATERAL, ordered by what the row around it has: DuckDB's rows, and a MERGE, which is made of such."""

from __future__ import annotations

from itertools import product

import duckdb
import pytest

import gquery

_TABLES = (
    "CREATE TABLE u (str VARCHAR)", "INSERT INTO u VALUES ('a'), ('b'), (NULL), ('a')",
    "CREATE TABLE z (i32 INTEGER, str VARCHAR)", "INSERT INTO z VALUES (1, 'a'), (-2, 'b'), (NULL, NULL), (3, 'c')",
)  # fmt: skip
_OUTPUTS = ("z.i32 + 1 AS a", "z.i32 + 1 AS a, z.str AS f", "nullif(z.str, '%') AS f", "z.str || y.str AS f", "1 AS f")
_ORDERS = (
    "", "ORDER BY z.i32 > 0 DESC", "ORDER BY z.i32 > length(y.str) DESC", "ORDER BY length(y.str) + z.i32", "ORDER BY 1 DESC",
)  # fmt: skip


@pytest.mark.parametrize(("outputs", "order"), list(product(_OUTPUTS, _ORDERS)))
def test_an_order_by_outer_columns(outputs: str, order: str) -> None:
    sql = (
        f"SELECT * FROM z LEFT JOIN LATERAL (SELECT {outputs} FROM u AS y WHERE z.str = y.str {order} LIMIT 1) AS l "
        "ON TRUE ORDER BY ALL"
    )
    ours, theirs = gquery.connect(), duckdb.connect()
    for statement in _TABLES:
        ours.execute(statement)
        theirs.execute(statement)
    assert ours.sql(sql).fetchall() == theirs.sql(sql).fetchall()


def test_a_merge_that_leaves_some_changes_some_and_deletes_others() -> None:
    sql = (
        "MERGE INTO z USING (SELECT DISTINCT str FROM u) AS y ON z.str = y.str WHEN MATCHED AND z.i32 > 0 THEN DO NOTHING "
        "WHEN MATCHED THEN UPDATE SET str = z.str || '!' WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    ours, theirs = gquery.connect(), duckdb.connect()
    for statement in (*_TABLES, sql):
        ours.execute(statement)
        theirs.execute(statement)
    rows = "SELECT * FROM z ORDER BY ALL"
    assert ours.sql(rows).fetchall() == theirs.sql(rows).fetchall() == [(-2, "b!"), (1, "a")]
