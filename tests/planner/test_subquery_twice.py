"""One subquery in several expressions stays one while flags of NULL change: two would make the same columns."""

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
