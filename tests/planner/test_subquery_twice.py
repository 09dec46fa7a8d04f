"""One subquery in several expressions stays one while flags of NULL and names change: two would make the same columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import gquery

_LISTS = "SELECT k, list(k ORDER BY k) AS xs FROM '{path}' GROUP BY k"


def test_a_file_tells_that_a_subquery_has_no_nulls(tmp_path: Path) -> None:
    """The maximum of lists looks at each list several times."""
    path = tmp_path / "k.parquet"
    pq.write_table(pa.table({"k": [1, 2, 2]}), path)
    sql = f"SELECT max(list_transform(x.xs, lambda e: e - x.k)) FROM ({_LISTS.format(path=path)}) AS x"
    assert gquery.connect("python").sql(sql).fetchall() == [([0, 0],)]


def test_it_reads_a_definition_that_is_put_in_place() -> None:
    db = gquery.connect("python")
    values = "w AS (SELECT a AS k, a + 1 AS l FROM (VALUES (1), (2)) AS v(a))"
    once = f"WITH {values} SELECT max(list_transform([1, 2], lambda e: e - w.k)) FROM w"
    assert db.sql(once).fetchall() == [([0, 1],)]
    twice = f"WITH {values} SELECT max(list_transform([1, 2], lambda e: e - w.k)) FROM w JOIN w AS x ON w.k = x.l"
    assert db.sql(twice).fetchall() == [([-1, 0],)]


def test_a_definition_of_it_is_copied() -> None:
    values = "v AS (SELECT * FROM (VALUES (1), (2)) AS v(k))"
    most = "m AS NOT MATERIALIZED (SELECT max(list_transform([1, 2], lambda e: e - v.k)) AS xs FROM v)"
    sql = f"WITH {values}, {most} SELECT m.xs, x.xs FROM m JOIN m AS x ON m.xs = x.xs"
    assert gquery.connect("python").sql(sql).fetchall() == [([0, 1], [0, 1])]
