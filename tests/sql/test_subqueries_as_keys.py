"""Keys of GROUP BY that are subqueries: what is written the same way means the key, wherever it stands, as in DuckDB."""

from __future__ import annotations

import duckdb
import pytest

import gquery

_TABLE = ("CREATE TABLE t (a INTEGER, b INTEGER)", "INSERT INTO t VALUES (1, 2), (1, 3), (2, 5), (NULL, 1), (4, NULL)")
_MACRO = "CREATE MACRO m(q) AS (SELECT max(x.b) FROM t AS x WHERE x.a = q)"
_KEY = "(SELECT max(x.b) FROM t AS x WHERE x.a = t.a)"
_STATEMENTS = (
    "SELECT {k} AS k, dense_rank() OVER (PARTITION BY {k} ORDER BY min(b)) FROM t GROUP BY 1 ORDER BY ALL",
    "SELECT dense_rank() OVER (ORDER BY {k} + 1) FROM t GROUP BY {k} ORDER BY ALL",
    "SELECT {k} + 1, count(*) FROM t GROUP BY {k} HAVING {k} > 2 ORDER BY {k} * 2",
    "SELECT count(*) FROM t GROUP BY {k} HAVING {k} IS NULL",
    "SELECT {k} AS k, sum({k}), count(DISTINCT {k}) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT {k} AS k, CASE WHEN {k} > 3 THEN {k} ELSE -{k} END FROM t GROUP BY CUBE (1) ORDER BY ALL",
    "SELECT {k}, {k} FROM t GROUP BY ALL ORDER BY ALL",
    "SELECT a, {k} FROM t GROUP BY a, {k} QUALIFY row_number() OVER (PARTITION BY {k} ORDER BY a) = 1 ORDER BY ALL",
)


@pytest.mark.parametrize("key", [_KEY, "m(t.a)"])
@pytest.mark.parametrize("sql", _STATEMENTS)
def test_a_key_that_is_a_subquery(sql: str, key: str) -> None:
    ours, theirs = gquery.connect(), duckdb.connect()
    for statement in (*_TABLE, _MACRO):
        ours.execute(statement)
        theirs.execute(statement)
    assert ours.sql(sql.format(k=key)).fetchall() == theirs.sql(sql.format(k=key)).fetchall()


def test_another_subquery_is_no_key() -> None:
    db = gquery.connect()
    db.execute(_TABLE[0])
    with pytest.raises(gquery.BindError, match="must be in GROUP BY"):
        db.sql(f"SELECT (SELECT max(x.b) FROM t AS x WHERE x.a = t.b) FROM t GROUP BY {_KEY}").fetchall()
