"""Infinite dates and timestamps, which files and Arrow's arrays may have: they are compared as DuckDB compares them and written
as text; no function takes them for days, the last ones that there are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import gquery
from tests.support.harness import assert_same

FIRST, LAST = -(2**31) + 1, 2**31 - 1
DAYS = pa.array([LAST, FIRST, 18_262, None], pa.int32()).cast(pa.date32())
MOMENTS = pa.array([2**63 - 1, -(2**63) + 1, 18_262 * 86_400_000_000, None], pa.int64()).cast(pa.timestamp("us"))
TABLE = pa.table({"i": [1, 2, 3, 4], "d": DAYS, "m": MOMENTS})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT i, monthname(d), dayname(m), strftime(d, 'x%d'), strftime(m, '%Y'), to_json(d) FROM t",
        "SELECT i, CAST(d AS VARCHAR), CAST(m AS VARCHAR), isfinite(d), isinf(m) FROM t",
        "SELECT i, d > DATE '9999-12-31', m < TIMESTAMP '0001-01-01', d IS NULL, d = d FROM t",
        "SELECT CAST(max(d) AS VARCHAR), CAST(min(m) AS VARCHAR), count(DISTINCT d) FROM t",
        "SELECT CAST(d AS VARCHAR), count(*), row_number() OVER (ORDER BY d) FROM t GROUP BY d",
        "SELECT a.i, b.i FROM t a JOIN t b ON a.d = b.d AND a.m = b.m",
        "SELECT i FROM t WHERE DATE '2020-01-01' BETWEEN DATE '2000-01-01' AND d",
        "SELECT i, CAST(coalesce(d, DATE '2020-01-01') AS VARCHAR), CAST(greatest(d, DATE '2020-01-01') AS VARCHAR) FROM t",
    ],
)
def test_compared(sql: str) -> None:
    assert_same(sql, {"t": TABLE})


CALLS = [
    "year(d)", "month(m)", "extract(isoyear FROM d)", "extract(epoch FROM m)", "epoch_us(m)", "last_day(d)",
    "CAST(m AS DATE)", "CAST(d AS TIMESTAMP)", "CAST(m AS TIME)", "d + 1", "d - 1",
    "d - DATE '2020-01-01'", "m - TIMESTAMP '2020-01-01'", "m + INTERVAL 1 DAY", "date_trunc('year', m)", "age(m, m)",
    "date_diff('day', d, DATE '2020-01-01')", "date_diff('year', m, m)", "date_sub('month', d, DATE '2020-01-01')",
    "time_bucket(INTERVAL 1 DAY, m)", "timezone('UTC', m)",
]  # fmt: skip


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_no_day(device: str) -> None:
    """An error for rows that have them, and none for those that do not, nor where a condition keeps them away."""
    db = gquery.connect(device=device)
    db.register("t", TABLE)
    for call in CALLS if device == "python" else CALLS[:6]:
        with pytest.raises(gquery.DataError):
            db.sql(f"SELECT {call} FROM t").to_arrow_table()
        assert db.sql(f"SELECT {call} IS NULL FROM t WHERE i > 2 ORDER BY i").fetchall() == [(False,), (True,)], call
        assert len(db.sql(f"SELECT CASE WHEN i > 2 THEN CAST({call} AS VARCHAR) END FROM t").fetchall()) == 4, call


def test_of_files(tmp_path: Path) -> None:
    """Of Parquet files too, with statistics and without."""
    for statistics in (True, False):
        path = tmp_path / f"{statistics}.parquet"
        pa.parquet.write_table(TABLE, path, write_statistics=statistics)
        for limit in (None, "64MB"):
            db = gquery.connect(device="python")
            if limit:
                db.sql(f"SET memory_limit = '{limit}'")
            assert db.sql(f"SELECT count(*) FROM '{path}' WHERE d > DATE '9999-12-31'").fetchall() == [(1,)]
            with pytest.raises(gquery.DataError):
                db.sql(f"SELECT year(d), month(m) FROM '{path}'").fetchall()
