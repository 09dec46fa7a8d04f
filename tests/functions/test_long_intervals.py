"""Days and moments plus intervals of up to 2^31 days, whose microseconds take more than 64 bits, beside DuckDB."""

from __future__ import annotations

import duckdb
import pytest

import gquery

SETUP = """
CREATE TABLE t AS SELECT DATE '2000-01-01' + range::INTEGER AS d, TIMESTAMP '2000-01-01' + to_days(range::INTEGER) AS m,
    TIMESTAMPTZ '2000-01-01' AS z FROM range(3)
"""
INTERVALS = (
    "INTERVAL (106751991) DAY", "INTERVAL (106751992) DAY", "INTERVAL (2147483647) DAY", "INTERVAL (-2147483648) DAY",
    "INTERVAL '2147483647 days 2147483647 hours'", "INTERVAL '2147483647 months 2147483647 days'", "to_days(-106751992)",
    "INTERVAL (200000) YEAR", "to_hours(2147483647)",
)  # fmt: skip


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("target", ["python", "cpu"])
def test_long_intervals(interval: str, target: str) -> None:
    theirs = duckdb.connect()
    theirs.execute(SETUP)
    with gquery.connect(target) as ours:
        ours.sql(SETUP)
        if target == "cpu":
            ours.sql("SET interpret_limit = 0")
        for column in ("d", "m", "z"):
            for operator in "+-":
                sql = f"SELECT CAST({column} {operator} {interval} AS VARCHAR) FROM t"
                try:
                    want = theirs.execute(sql).fetchall()
                except duckdb.Error:
                    with pytest.raises(gquery.DataError):
                        ours.sql(sql).fetchall()
                else:
                    assert ours.sql(sql).fetchall() == want, sql
