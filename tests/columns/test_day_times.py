"""TIME: times of day come in as Arrow has them, are computed with as in DuckDB, and leave as times."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.errors import BindError, ConversionError, Error, NotSupportedError
from tests.support.harness import assert_same, connect

TIMES = [dt.time(12, 30), None, dt.time(0, 0), dt.time(23, 59, 59), dt.time(9, 5, 7), dt.time(12, 30)]
FINE = [
    dt.time(12, 30, 0, 5),
    dt.time(1),
    dt.time(23, 59, 59, 999_999),
    None,
    dt.time(0, 0, 0, 100_000),
    dt.time(12, 30),
]
TABLES = {
    "t": pa.table({
        "id": pa.array(range(6), pa.int32()),
        "a": pa.array(TIMES, pa.time32("s")),
        "b": pa.array(TIMES[::-1], pa.time32("ms")),
        "c": pa.array(FINE, pa.time64("us")),
        "day": [dt.date(2024, 1, 31), dt.date(1969, 12, 31), None, dt.date(2000, 2, 29), dt.date(1, 1, 1), dt.date(2024, 2, 1)],
        "ts": [dt.datetime(2024, 1, 31, 12, 30), dt.datetime(1969, 12, 31, 23, 59, 59, 5), None]
        + [dt.datetime(1900, 2, 3, n, 4, 5) for n in range(3)],
        "s": ["10:11", "1:2:3.5", None, " 23:59:59.999999 ", "2024-01-01 10:00:00+02", "00:00:00"],
    }),
    "e": pa.table({"a": pa.array([], pa.time64("us")), "n": pa.array([], pa.int32())}),
}  # fmt: skip
QUERIES = [
    "SELECT * FROM t",
    "SELECT a, count(*), min(c), max(b) FROM t GROUP BY a",
    "SELECT id FROM t WHERE a > '12:00' OR c = TIME '12:30:00.000005' OR b IN ('09:05:07', TIME '00:00')",
    "SELECT a = b, a < c, a IS DISTINCT FROM b, greatest(a, b, c), nullif(a, b), coalesce(a, c), c BETWEEN '01:00' AND a FROM t",
    "SELECT x.id, y.id FROM t x JOIN t y ON x.a = y.b",
    "SELECT x.id, y.id FROM t x LEFT JOIN t y ON x.a < y.c AND y.id > 2",
    "SELECT DISTINCT a FROM t UNION SELECT c FROM t",
    "SELECT hour(c), minute(c), second(c), millisecond(c), microsecond(c), epoch(c), epoch_ms(c), epoch_us(c) FROM t",
    "SELECT extract(hour FROM a), date_part('epoch', c), date_part('minute', b), epoch_ns(c) FROM t",
    "SELECT c::VARCHAR, a || '!', concat(b), [c]::VARCHAR, {'x': c}::VARCHAR, [ts]::VARCHAR FROM t",
    "SELECT s::TIME, TRY_CAST(s || 'x' AS TIME), TRY_CAST(id AS VARCHAR)::VARCHAR FROM t",
    "SELECT TRY_CAST(w AS TIME) FROM (VALUES ('25:00'), ('10'), ('10:61'), (''), (NULL), ('10:5'), ('-10:00'), ('x'), "
    "('10:05x'), ('10:00:00.5 PM'), ('010:00:0'), ('10:'), ('2024-01-01'), ('2024-01-01 24:00:00'), ('100:00:00'), "
    "('10:00:60')) v(w)",
    "SELECT (a::VARCHAR)::TIME, (c::VARCHAR)::TIME, '[10:00:00]'::TIME[], ['10:00:00.5']::TIME[]::VARCHAR FROM t",
    "SELECT ts::TIME, day + c, c + day, day + ts::TIME FROM t",
    "SELECT c + INTERVAL 15 HOUR, c - INTERVAL '90 minutes', INTERVAL 1 DAY + a, a - INTERVAL 2 MONTH FROM t",
    "SELECT a + to_seconds(id * 50000), a - to_microseconds(id) FROM t",
    "SELECT date_diff('minute', a, c), date_sub('hour', a, c), datediff('second', b, a) FROM t",
    "SELECT median(c), quantile_disc(a, 0.5), quantile_cont(c, 0.3), mode(a), count(DISTINCT a), arg_max(id, c), first(c) FROM t",
    "SELECT list(a ORDER BY a, id), array_agg(c ORDER BY id)[2] FROM t",
    "SELECT id, lag(c) OVER (ORDER BY c, id), rank() OVER (ORDER BY a), max(c) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t",
    "SELECT id, count(*) OVER (ORDER BY c RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) FROM t WHERE c IS NOT NULL",
    "SELECT make_time(id + 20, 59 - id, 59.5) FROM t WHERE id < 4",
    "SELECT CASE WHEN id > 2 THEN a ELSE c END, [a, c], {'x': a}, typeof(a) FROM t",
    "SELECT (SELECT max(a) FROM t), id FROM t WHERE a IN (SELECT b FROM t)",
    "SELECT * FROM (VALUES (TIME '10:00'), (NULL)) v(x)",
    "SELECT max(a), count(a), hour(min(a)) FROM e",
    "PIVOT (SELECT a, id FROM t WHERE a IS NOT NULL) ON a USING count(*)",
]  # fmt: skip


@pytest.mark.parametrize("sql", QUERIES)
def test_as_duckdb(sql: str) -> None:
    assert_same(sql, TABLES, targets=("python",))


@pytest.mark.slow
@pytest.mark.parametrize("sql", QUERIES)
def test_compiled(sql: str) -> None:
    assert_same(sql, TABLES, targets=("cpu",))


@pytest.mark.cuda
@pytest.mark.parametrize("sql", QUERIES)
def test_on_a_gpu(sql: str) -> None:
    assert_same(sql, TABLES, targets=("cuda",))


def test_sorted_rows_on_a_cpu() -> None:
    for sql in QUERIES[1:8:3]:
        assert_same(sql, TABLES, targets=("cpu",))
    assert_same("SELECT id, c FROM t ORDER BY c DESC, id", TABLES, True, targets=("python", "cpu"))


def test_in_and_out(tmp_path: Path) -> None:
    db = connect("python", 1, TABLES)
    result = db.sql("SELECT c, a FROM t")
    table = result.to_arrow_table()
    assert table.schema.types == [pa.time64("us"), pa.time64("us")]
    assert table.column("c") == TABLES["t"].column("c")
    assert result.fetchall()[0] == (dt.time(12, 30, 0, 5), dt.time(12, 30))
    assert result.df()["c"].tolist() == FINE
    assert result.fetchnumpy()["c"].tolist() == FINE
    assert "12:30:00.000005" in str(result)
    path = tmp_path / "t.parquet"
    result.to_parquet(path)
    pq.write_table(TABLES["t"], tmp_path / "units.parquet", row_group_size=2)
    for file, column in ((path, "c"), (tmp_path / "units.parquet", "a"), (tmp_path / "units.parquet", "c")):
        sql = f"SELECT {column}, hour({column}) FROM '{file}' WHERE {column} > '09:00' ORDER BY {column}"
        assert db.sql(sql).fetchall() == duckdb.sql(sql).fetchall()
    db.sql(f"COPY (SELECT a, c FROM t) TO '{tmp_path / 't.csv'}'")
    duckdb.from_arrow(table.select(["a", "c"])).write_csv(str(tmp_path / "theirs.csv"))
    assert (tmp_path / "t.csv").read_text() == (tmp_path / "theirs.csv").read_text()


def test_tables_and_parameters() -> None:
    db = gquery.connect(device="python")
    db.sql("CREATE TABLE t(a TIME DEFAULT '10:00', n INTEGER); INSERT INTO t (n) VALUES (1)")
    db.sql("INSERT INTO t VALUES ('11:00', 2), (NULL, 3)")
    db.sql("INSERT INTO t VALUES (?, 4)", [dt.time(1, 2, 3, 4)])
    db.sql("UPDATE t SET a = a + INTERVAL 1 HOUR WHERE n = 2")
    assert db.sql("FROM t ORDER BY n").fetchall() == [
        (dt.time(10), 1), (dt.time(12), 2), (None, 3), (dt.time(1, 2, 3, 4), 4)
    ]  # fmt: skip
    assert db.sql("SELECT n FROM t WHERE a < $x", {"x": dt.time(2)}).fetchall() == [(4,)]
    assert db.sql("SELECT localtime IS NULL").fetchall() == [(False,)]


@pytest.mark.parametrize(
    ("sql", "kind", "text"),
    [
        ("SELECT TIME '24:00:00'", ConversionError, "could not convert"),
        ("SELECT s::TIME FROM (VALUES ('x')) v(s)", ConversionError, "TIME"),
        ("SELECT a - b FROM t", BindError, "no function matches"),
        ("SELECT a + 1 FROM t", BindError, "no function matches"),
        ("SELECT a < ts FROM t", BindError, "cannot mix"),
        ("SELECT a::TIMESTAMP FROM t", BindError, "cannot CAST"),
        ("SELECT year(a) FROM t", BindError, "no function matches year"),
        ("SELECT date_part('month', a) FROM t", NotSupportedError, "a TIME has no month"),
        ("SELECT date_diff('day', a, b) FROM t", NotSupportedError, "of times in 'day'"),
        ("SELECT make_time(24, 0, 0)", Error, "make_time"),
        ("SELECT sum(a) FROM t", BindError, "no function matches sum"),
    ],
)
def test_what_is_refused(sql: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as raised:
        connect("python", 1, TABLES).sql(sql).fetchall()
    assert text in str(raised.value)


def test_nanoseconds_are_refused() -> None:
    with gquery.connect(device="python") as db:
        db.register("t", pa.table({"a": pa.array([1], pa.time64("ns"))}))
        with pytest.raises(ConversionError, match='"a".*cannot be held exactly'):
            db.table("t").fetchall()
