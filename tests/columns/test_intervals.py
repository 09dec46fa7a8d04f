"""INTERVAL columns on their way in and out: Arrow, Python, data frames, CSV; how they lie in memory; both compilers."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery.errors import ConversionError, InterfaceError, NotSupportedError, OutOfRangeError
from gquery.expression.interval import LEAST_DAYS, LEAST_MONTHS, MOST_PART, Interval, comparison_key, interval_text
from gquery.functions.interval_texts import parse_interval
from tests.support.harness import connect
from tests.support.tables import intervals

SPAN = pa.month_day_nano_interval()
EDGES = [(MOST_PART, MOST_PART, 2**63 - 1), (LEAST_MONTHS, LEAST_DAYS, -(2**63)), (0, -1, 1), (0, 1, -1), (-1, 31, 0)]


@pytest.mark.parametrize("parts", EDGES)
def test_packed(parts: tuple[int, int, int]) -> None:
    assert Interval.of(Interval(*parts).packed) == Interval(*parts)
    assert -(2**127) <= Interval(*parts).packed < 2**127


def test_too_large_to_pack() -> None:
    for parts in ((MOST_PART + 1, 0, 0), (LEAST_MONTHS - 1, 0, 0), (0, LEAST_DAYS - 1, 0), (0, 0, 2**63)):
        with pytest.raises(OverflowError):
            _ = Interval(*parts).packed


def test_order_and_texts_are_those_of_duckdb() -> None:
    """All pairs of some thirty intervals, whose parts have all signs."""
    parts = [(m, d, h) for m in (0, 1, -1) for d in (0, 29, 30, -31, 61) for h in (0, 23, -25, 720)]
    rows = ", ".join(f"({n}, to_months({m}) + to_days({d}) + to_hours({h}))" for n, (m, d, h) in enumerate(parts))
    packed = [Interval(m, d, h * 3_600_000_000).packed for m, d, h in parts]
    keys = [comparison_key(p) for p in packed]
    with duckdb.connect() as oracle:
        oracle.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {rows}) v(n, x)")
        found = oracle.execute("SELECT a.n, b.n, a.x < b.x, a.x = b.x FROM t a, t b").fetchall()
        assert all((keys[a] < keys[b], keys[a] == keys[b]) == (less, equal) for a, b, less, equal in found)
        texts = oracle.execute("SELECT x::VARCHAR FROM t ORDER BY n").fetchall()
        assert [text for (text,) in texts] == [interval_text(p) for p in packed]


@pytest.mark.parametrize(
    "text",
    ["5", "1.5", "1:02", "-1:02:03.4567899", "1 day ago", "@ 1 day", "+3 days", "3days", "3 days 5", "ago", "1 h 5 m",
     "1 day 2 hours ago", "  3   days ", "1e3 seconds", "- 3 days", "100:59:59", "1:60:00", "1 day1 hour", "12:", ":30",
     "1 millennia", "1 mils", "1 cs", "1 qtr", "1 centuries ago", "1 day @ 2 day", "", " ", "1 epoch", "2147483648 days",
     "1.7 years", "1.7 quarters", "-1.7 months", "0.333333333 weeks", "1.05 days", "-0.7 microseconds", "1.999999999 s"],
)  # fmt: skip
def test_texts_that_duckdb_takes(text: str) -> None:
    want = duckdb.sql("SELECT TRY_CAST(? AS INTERVAL)::VARCHAR", params=[text]).fetchall()[0][0]
    value = parse_interval(text)
    try:
        got = None if value is None else interval_text(value.packed)
    except OverflowError:
        got = None
    assert got == want
    with gquery.connect(device="python") as connection:
        connection.register("t", pa.table({"s": pa.array([text, None, text])}))
        sql = "SELECT TRY_CAST(s AS INTERVAL)::VARCHAR, TRY_CAST(s || '' AS INTERVAL)::VARCHAR FROM t"
        assert connection.sql(sql).fetchall() == [(want, want), (None, None), (want, want)]


def test_through_arrow() -> None:
    values = [pa.MonthDayNano([1, -2, 3000]), None, pa.MonthDayNano([0, 0, -7_000]), pa.MonthDayNano([0, 0, 1_999])]
    table = pa.table({"x": pa.chunked_array([pa.array(values, SPAN).slice(1), pa.array(values, SPAN)])})
    with gquery.connect(device="python") as connection:
        connection.register("t", table)
        made = connection.sql("SELECT x FROM t").to_arrow_table()
        assert made.schema.types == [SPAN]
        want = [v and pa.MonthDayNano([v.months, v.days, v.nanoseconds // 1000 * 1000]) for v in table["x"].to_pylist()]
        assert made.column(0).to_pylist() == want
        assert connection.sql("SELECT x FROM t").fetchall() == _in_duckdb("SELECT x FROM t", table)


def _in_duckdb(sql: str, table: pa.Table) -> list[Any]:
    with duckdb.connect() as oracle:
        oracle.register("t", table)
        return oracle.execute(sql).fetchall()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations(unit: str) -> None:
    table = pa.table({"x": pa.array([1, -1500, None, 123456789, 0], pa.duration(unit))})
    sql = "SELECT x, x::VARCHAR, typeof(x), epoch_us(x) FROM t"
    with gquery.connect(device="python") as connection:
        connection.register("t", table)
        assert connection.sql(sql).fetchall() == _in_duckdb(sql, table)
        assert connection.sql("SELECT x FROM t").to_arrow_table().schema.types == [SPAN]


def test_durations_lie_in_64_bits() -> None:
    """Microseconds alone are an integer like others: narrow, with bounds, in the order of the type."""
    with gquery.connect(device="python") as connection:
        connection.register("t", pa.table({"x": pa.array([5, -7, 100], pa.duration("us"))}))
        column: Any = connection.sql("SELECT x FROM t").table().columns[0]
        assert column.data.host.nbytes == 3


def test_seconds_that_do_not_fit() -> None:
    with gquery.connect(device="python") as connection:
        connection.register("t", pa.table({"x": pa.array([2**60], pa.duration("s"))}))
        with pytest.raises(ConversionError, match='Column "x"'):
            connection.sql("SELECT x FROM t").fetchall()


def test_more_than_arrow_holds() -> None:
    with gquery.connect(device="python") as connection:
        found = connection.sql("SELECT to_hours(10000000) AS x")
        with pytest.raises(ConversionError, match="292 years"):
            found.to_arrow_table()
        assert connection.sql("SELECT to_hours(10000000)::VARCHAR").fetchall() == [("10000000:00:00",)]
        with pytest.raises(InterfaceError, match="64 bits"):
            connection.sql("SELECT to_months(2147483647) AS x").fetchnumpy()
        with pytest.raises(ConversionError, match="64 bits"):
            connection.sql("SELECT to_months(2147483647) AS x").df()


def test_data_frames_and_files(tmp_path: Path) -> None:
    with gquery.connect(device="python") as connection:
        found = connection.sql(
            "SELECT INTERVAL '1 month 2 days 3 us' AS x UNION ALL SELECT NULL UNION ALL SELECT -INTERVAL 3 HOUR"
        )
        lengths = [dt.timedelta(32, 0, 3), None, dt.timedelta(hours=-3)]
        assert found.fetchall() == [(v,) for v in lengths]
        assert str(found.df()["x"].dtype) == "timedelta64[us]"
        assert found.pl()["x"].to_list() == lengths
        assert found.fetchnumpy()["x"].tolist() == lengths
        assert "│ 1 month 2 days 00:00:00.000003 │" in str(found)
        found.to_csv(tmp_path / "x.csv")
        assert (tmp_path / "x.csv").read_text() == '"x"\n"1 month 2 days 00:00:00.000003"\n\n"-03:00:00"\n'
        with pytest.raises(NotSupportedError, match='Parquet with column "x" of type INTERVAL'):
            found.to_parquet(tmp_path / "x.parquet")


def test_parameters() -> None:
    with gquery.connect(device="python") as connection:
        length = dt.timedelta(3, 0, 5)
        sql = "SELECT ?, ? + INTERVAL 1 DAY, DATE '2020-01-01' + ?"
        assert connection.sql(sql, params=[length] * 3).fetchall() == [
            (length, length + dt.timedelta(1), dt.datetime(2020, 1, 4, 0, 0, 0, 5))
        ]


def test_stored_and_described() -> None:
    with gquery.connect(device="python") as connection:
        for name, table in intervals().items():
            connection.register(name, table)
        connection.sql("CREATE TABLE s AS SELECT x, d, ts - day AS between FROM t")
        assert [row[1] for row in connection.sql("DESCRIBE s").fetchall()] == ["INTERVAL"] * 3
        assert (
            connection.sql("SELECT count(*) FROM s WHERE x = d").fetchall()
            == connection.sql("SELECT count(*) FROM t WHERE x = d").fetchall()
        )


BY_INTERVALS = "SELECT g, x::VARCHAR, count(*), max(x * 1.5)::VARCHAR, max(ts + x) FROM t GROUP BY g, x ORDER BY g, x"


@pytest.mark.parametrize(
    ("compiler", "sql"),
    [
        ("llvm", BY_INTERVALS),
        ("numba", "SELECT x, count(*), max(ts + x) FROM t GROUP BY x"),  # which takes a second a kernel
        pytest.param("numba", BY_INTERVALS, marks=pytest.mark.slow),
    ],
)
def test_compilers(compiler: str, sql: str) -> None:
    want = connect("python", 1, intervals()).sql(sql).fetchall()
    assert connect("cpu", 1, intervals(), {"compiler": compiler}).sql(sql).fetchall() == want


def test_other_constants_of_one_text() -> None:
    """What is kept of a text serves others of its shape."""
    with gquery.connect(device="python") as connection:
        for name, table in intervals().items():
            connection.register(name, table)
        with duckdb.connect() as oracle:
            for name, table in intervals().items():
                oracle.register(name, table)
            for length in ("1 day", "30 days", "1 month", "2 hours", "-1 month 31 days"):
                sql = (
                    f"SELECT id, x > INTERVAL '{length}', greatest(x, INTERVAL '{length}')::VARCHAR, "
                    f"x + INTERVAL '{length}', ts + INTERVAL '{length}', x IN (INTERVAL '{length}', INTERVAL '5 days'), "
                    f"time_bucket(INTERVAL '{length.split()[0].lstrip('-')} day', ts) FROM t ORDER BY id"
                )
                assert connection.sql(sql).fetchall() == oracle.execute(sql).fetchall()


@pytest.mark.parametrize("amount", ["to_days(id - 3)", "CASE WHEN id > 3 THEN to_days(1) END"])
def test_a_range_by_an_amount_that_is_none(amount: str) -> None:
    with gquery.connect(device="python") as connection:
        connection.register("t", intervals()["t"])
        sql = f"SELECT count(*) OVER (ORDER BY day RANGE BETWEEN {amount} PRECEDING AND CURRENT ROW) FROM t"
        with pytest.raises(OutOfRangeError, match="negative or NULL"):
            connection.sql(sql).fetchall()
        assert connection.sql("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize("sql", ["SELECT [INTERVAL 1 DAY]", "SELECT list(x) FROM t", "SELECT NULL::INTERVAL[]"])
def test_lists_are_refused(sql: str) -> None:
    with gquery.connect(device="python") as connection:
        connection.register("t", intervals()["t"])
        with pytest.raises(NotSupportedError, match="lists of INTERVAL"):
            connection.sql(sql).fetchall()


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_constants_keep_their_parts(seed: int) -> None:
    """Months are no days, and two hours less than nothing no day less and 22 hours more: they compare differently."""
    rng = random.Random(seed)

    def text() -> str:
        months, days, hours = (rng.choice((0, 0, 1, -1, top)) for top in (-14, 30, -50))
        return "NULL" if rng.random() < 0.2 else f"INTERVAL '{months} months {days} days {hours} hours'"

    rows = ", ".join(f"({n}, {text()})" for n in range(seed + 2))
    others = "(1, INTERVAL '-2 hours'), (2, INTERVAL '-24 hours'), (3, INTERVAL '2000000000 months')"
    ours = connect("python", 1, {})
    ours.sql("CREATE OR REPLACE TABLE z (n INTEGER, i INTERVAL)")
    with duckdb.connect() as theirs:
        theirs.execute("CREATE TABLE z (n INTEGER, i INTERVAL)")
        for sql in (
            f"SELECT n, i::VARCHAR FROM (VALUES {rows}) v(n, i) ORDER BY n",
            f"SELECT count(DISTINCT i), max(i)::VARCHAR FROM (VALUES {rows}, {others}) v(n, i)",
            f"SELECT a.n, b.n FROM (VALUES {rows}) a(n, i) JOIN (VALUES {others}) b(n, i) ON a.i < b.i ORDER BY ALL",
            f"INSERT INTO z VALUES {rows}, {others}",
            "SELECT n, i::VARCHAR FROM z ORDER BY ALL",
        ):
            assert ours.sql(sql).fetchall() == theirs.execute(sql).fetchall()
