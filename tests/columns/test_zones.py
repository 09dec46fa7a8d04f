"""TIMESTAMP WITH TIME ZONE: moments are compared, ordered and grouped as DuckDB does, and keep their zones; what asks for a
local time takes that of UTC, which is the session's zone."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery.errors import BindError, ConversionError, NotSupportedError
from tests.support.harness import connect

MOMENTS = [
    dt.datetime(2020, 1, 1, 1),
    None,
    dt.datetime(1960, 1, 1),
    dt.datetime(2020, 1, 1, 1),
    dt.datetime(2024, 6, 1, 12, 30, 0, 5),
]
TABLES = {
    "t": pa.table({
        "id": [1, 2, 3, 4, 5],
        "a": pa.array(MOMENTS, pa.timestamp("us", "Europe/Berlin")),
        "b": pa.array(MOMENTS[::-1], pa.timestamp("us", "UTC")),
        "n": pa.array(MOMENTS, pa.timestamp("ns", "America/New_York")),
        "p": pa.array(MOMENTS, pa.timestamp("us")),
    })
}  # fmt: skip
QUERIES = [
    "SELECT * FROM t",
    "SELECT a FROM t WHERE a > '2020-01-01 00:00:00+00'",
    "SELECT a FROM t WHERE a = '2020-01-01 01:00:00Z' OR a < '1970-01-01 00:00:00 UTC'",
    "SELECT id FROM t WHERE a > b",
    "SELECT a, count(*) FROM t GROUP BY a",
    "SELECT min(a), max(a), count(DISTINCT a), count(a) FROM t",
    "SELECT * FROM t ORDER BY a DESC, id",
    "SELECT DISTINCT a FROM t",
    "SELECT x.id, y.id FROM t x JOIN t y ON x.a = y.b",
    "SELECT a IN ('2020-01-01 01:00:00+00', '1960-01-01 00:00:00+00') FROM t",
    "SELECT a FROM t UNION ALL SELECT b FROM t",
    "SELECT a FROM t UNION SELECT b FROM t",
    "SELECT a::VARCHAR, a::TIMESTAMP, a::DATE, p::TIMESTAMPTZ, p::DATE::TIMESTAMPTZ, a || 'x', concat(b, id) FROM t",
    "SELECT [a, p]::VARCHAR, {'x': b}::VARCHAR FROM t",
    "SELECT a > p, a > DATE '2020-01-01', a > '2020-01-01', a BETWEEN DATE '2019-01-01' AND p, a IN (p, b) FROM t",
    "SELECT year(a), extract(dow FROM a), date_part('hour', a), dayname(a), last_day(a), yearweek(a) FROM t",
    "SELECT date_trunc('day', a), date_trunc('hour', a), time_bucket(INTERVAL 1 WEEK, a), strftime(a, '%Y %H %%Z %Z') FROM t",
    "SELECT date_diff('day', a, p), date_diff('month', DATE '2019-01-01', a), a - p, a - DATE '2020-01-01', age(a, p) FROM t",
    "SELECT a FROM t UNION ALL SELECT p FROM t UNION ALL SELECT p::DATE FROM t",
    "SELECT CASE WHEN id > 1 THEN a ELSE p END, coalesce(p, a), [p, NULL] FROM t",
    "SELECT x.id, y.id FROM t x JOIN t y ON x.a = y.p",
    "SELECT (2019 + id || '-01-01 00:00:00' || w)::TIMESTAMPTZ FROM t, "
    "(VALUES ('+00'), ('-03:30'), (''), ('Z'), ('.5+01:02:03')) v(w)",
    "SELECT TRY_CAST(w AS TIMESTAMPTZ) FROM "
    "(VALUES ('2024-13-01 00:00:00Z'), ('x'), (NULL), ('2024-1-1'), ('2024-01-01 24:00:00+02')) v(w)",
    "SELECT a AT TIME ZONE 'Europe/Berlin', p AT TIME ZONE 'Europe/Berlin', timezone('America/New_York', p) FROM t",
    "SELECT w AT TIME ZONE 'Europe/Berlin' FROM "
    "(VALUES (TIMESTAMP '2024-10-27 02:30:00'), (TIMESTAMP '2024-03-31 02:30:00')) v(w)",
    "SELECT w AT TIME ZONE 'America/New_York' FROM (VALUES (TIMESTAMPTZ '2050-07-01 00:00:00+00'), (NULL)) v(w)",
    "SELECT (TIMESTAMP '2050-03-13 02:30:00' AT TIME ZONE 'America/New_York'), "
    "(TIMESTAMP '1890-01-01' AT TIME ZONE 'Europe/Berlin')",
    "SELECT coalesce(a, b), greatest(a, b), nullif(a, b), CASE WHEN id > 2 THEN a END FROM t",
    "SELECT a IS DISTINCT FROM b FROM t",
    "SELECT a BETWEEN '2019-01-01 00:00:00+00' AND '2021-01-01 00:00:00+02:30' FROM t",
    "SELECT a AT TIME ZONE 'UTC', p AT TIME ZONE 'UTC', p AT TIME ZONE 'UTC' = a FROM t",
    "SELECT extract(year FROM a AT TIME ZONE 'UTC'), date_trunc('day', a AT TIME ZONE 'UTC') FROM t",
    "SELECT TIMESTAMPTZ '2020-01-01 00:00:00+02:00:30', TIMESTAMP WITH TIME ZONE '2020-01-01 00:00:00.5 UTC'",
    "SELECT * FROM (VALUES (TIMESTAMPTZ '2020-01-01 00:00:00+00'), (NULL)) v(x)",
    "SELECT x.a FROM t x LEFT JOIN t y ON x.a < y.a AND y.id = 5",
    "SELECT id FROM t WHERE a IN (SELECT b FROM t)",
    "SELECT a FROM t WHERE a NOT IN (SELECT b FROM t WHERE b IS NOT NULL AND id > 3)",
    "SELECT (SELECT max(a) FROM t), id FROM t",
    "SELECT a::TIMESTAMPTZ, TRY_CAST('x' AS TIMESTAMPTZ) FROM t",
    "SELECT CAST('2020-01-01T00:00:00.123456789+0230' AS TIMESTAMP WITH TIME ZONE)",
]


def oracle() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("SET TimeZone = 'UTC'")
    made.register("registered", TABLES["t"])
    made.execute("CREATE TABLE t AS FROM registered")
    return made


def rows(table: pa.Table) -> list[Any]:
    """Rows with every moment in UTC."""
    moment = pa.timestamp("us", "UTC")
    columns = [c.cast(moment) if pa.types.is_timestamp(c.type) and c.type.tz else c for c in table.columns]
    return sorted(zip(*(c.to_pylist() for c in columns), strict=True), key=str)


@pytest.mark.parametrize(("target", "partitions"), [("python", 1), ("python", 3), ("cpu", 1), ("cpu", 3)])
def test_as_duckdb(target: str, partitions: int) -> None:
    theirs, mine = oracle(), connect(target, partitions, TABLES)
    for sql in QUERIES if target == "python" else QUERIES[::3]:
        got, want = mine.sql(sql), theirs.sql(sql)
        assert [str(t) for t in got.types] == [str(t) for t in want.types], sql
        assert rows(got.to_arrow_table()) == rows(want.to_arrow_table()), sql


def test_zones_are_kept(tmp_path: Path) -> None:
    connection = connect("python", 1, TABLES)
    for sql in (
        "SELECT a, b, n FROM t",
        "SELECT max(a) a, min(b) b, max(n) n FROM t",
        "SELECT coalesce(a, a) a, b, n FROM t",
    ):
        types = connection.sql(sql).to_arrow_table().schema.types
        assert types == [pa.timestamp("us", zone) for zone in ("Europe/Berlin", "UTC", "America/New_York")]
    connection.sql("SELECT * FROM t").to_parquet(tmp_path / "t.parquet")
    back = connection.sql(f"FROM '{tmp_path / 't.parquet'}' WHERE a > '2024-01-01 00:00:00+00'").to_arrow_table()
    assert back.column("a") == TABLES["t"].column("a").slice(4)
    first = connection.sql("SELECT a FROM t LIMIT 1")
    assert first.fetchall() == [(dt.datetime(2020, 1, 1, 1, tzinfo=dt.UTC),)]
    assert first.fetchnumpy()["a"].tolist() == [dt.datetime(2020, 1, 1, 1)]
    assert "2020-01-01 01:00:00+00" in str(first)  # as CAST to VARCHAR writes it
    with pytest.raises(NotSupportedError, match='CSV with column "a"'):
        connection.sql("SELECT a FROM t").to_csv(tmp_path / "t.csv")


def test_parameters() -> None:
    connection = connect("python", 1, TABLES)
    west = dt.timezone(-dt.timedelta(hours=3, minutes=30))
    for value in (dt.datetime(2020, 1, 1, 1, tzinfo=dt.UTC), dt.datetime(2019, 12, 31, 21, 30, tzinfo=west)):
        assert connection.sql("SELECT id FROM t WHERE a = ?", params=[value]).fetchall() == [(1,), (4,)]
        assert connection.sql("SELECT ?", params=[value]).fetchall() == [(value,)]
    shown = connection.sql("SELECT $x", params={"x": dt.datetime(2020, 1, 1, tzinfo=west)}).to_arrow_table()
    assert shown.schema.types == [pa.timestamp("us", "-03:30")]


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT a::BIGINT FROM t", "cannot CAST"),
        ("SELECT sum(a) FROM t", "no function matches sum"),
        ("SELECT a AT TIME ZONE 'Europe/Nowhere' FROM t", "there is no time zone 'Europe/Nowhere'"),
        ("SELECT timezone(id || '', a) FROM t", "no constant"),
        ("SELECT strftime(a, id || '') FROM t", "no constant"),
        ("SELECT id AT TIME ZONE 'UTC' FROM t", "no function matches timezone"),
        ("SELECT TIMESTAMPTZ 'x'", "TIMESTAMP WITH TIME ZONE"),
        ("SELECT TIMESTAMPTZ '294247-01-10 04:00:54.775806-10'", "TIMESTAMP WITH TIME ZONE"),
        ("SELECT s::TIMESTAMPTZ FROM (VALUES ('294247-01-10 04:00:54.775806-10')) v(s)", "TIMESTAMP WITH TIME ZONE"),
        ("SELECT s::TIMESTAMPTZ FROM (VALUES ('290309-12-22 (BC) 00:00:00+10')) v(s)", "TIMESTAMP WITH TIME ZONE"),
    ],
)
def test_what_is_refused(sql: str, text: str) -> None:
    with pytest.raises((BindError, NotSupportedError, ConversionError)) as raised:
        connect("python", 1, TABLES).sql(sql).fetchall()
    assert text in str(raised.value)


def test_nanoseconds_are_refused() -> None:
    with gquery.connect(device="python") as connection:
        connection.register("t", pa.table({"a": pa.array([1], pa.timestamp("ns", "UTC"))}))
        with pytest.raises(ConversionError, match='"a".*cannot be held exactly'):
            connection.table("t").fetchall()
