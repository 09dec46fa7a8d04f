"""Queries on several ranks: the answers of one, its errors, and a connection that goes on; whatever lies on which rank."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.execution import ranked
from tests.support.faults import failing_allocations
from tests.support.harness import assert_same
from tests.support.marks import in_turns
from tests.support.tuned import Tune

ROWS = 500
RNG = np.random.default_rng(13)
TABLES = {
    "t": pa.table(
        {
            "sorted": np.sort(RNG.integers(0, 120, ROWS)).astype(np.int32),
            "few": RNG.integers(0, 5, ROWS).astype(np.int8),
            "x": RNG.integers(-(10**9), 10**9, ROWS),
            "d": RNG.normal(size=ROWS),
            "text": pa.array([None if n % 7 == 0 else f"text {n * 31 % 90}" for n in range(ROWS)]),
            "nothing": pa.nulls(ROWS, pa.int32()),
            "wide": pa.array([None if n % 11 == 0 else n * 10**15 for n in range(ROWS)], pa.decimal128(38, 2)),
        }
    ),
    "u": pa.table({"key": np.arange(120, dtype=np.int64), "name": [f"name {n % 17}" for n in range(120)]}),
    "none": pa.table({"sorted": pa.array([], pa.int32()), "name": pa.array([], pa.string())}),
    "one": pa.table({"sorted": [7], "name": ["seven"]}),
    "few_rows": pa.table({"few": [1, 2, None]}),
    "skewed": pa.table({"sorted": [3] * 400 + [4], "v": range(401)}),
}
QUERIES = (
    "SELECT count(*), sum(x), min(d), max(d), min(text), max(text), sum(wide), avg(wide), count(nothing) FROM t",
    "SELECT few, count(*), sum(x), avg(x), min(text), max(wide), sum(nothing) FROM t GROUP BY few",
    "SELECT text, count(*), sum(wide) FROM t GROUP BY text",
    "SELECT d, count(*) FROM t GROUP BY d",
    "SELECT sorted, sum(x), count(DISTINCT few), max(text) FROM t GROUP BY sorted",
    "SELECT count(DISTINCT text), count(DISTINCT sorted), count(DISTINCT nothing) FROM t",
    "SELECT DISTINCT few, sorted % 3 FROM t",
    "SELECT name, sum(x), any_value(few) IS NULL FROM t JOIN u ON sorted = key GROUP BY name",
    "SELECT name, text FROM t LEFT JOIN u ON sorted = key AND few > 2",
    "SELECT t.sorted, u.name FROM t FULL JOIN u ON t.sorted = u.key AND t.few = 1",
    "SELECT t.x, none.name FROM t LEFT JOIN none ON t.sorted = none.sorted",
    "SELECT t.x, none.name FROM none FULL JOIN t ON t.sorted = none.sorted",
    "SELECT count(*) FROM t JOIN one ON t.sorted = one.sorted",
    "SELECT a.v, b.v FROM skewed a JOIN skewed b ON a.sorted = b.sorted AND a.v = b.v + 1",
    "SELECT count(*) FROM t WHERE sorted NOT IN (SELECT nothing FROM t)",
    "SELECT count(*) FROM u WHERE key NOT IN (SELECT CASE WHEN x > 999999000 THEN NULL ELSE sorted END FROM t)",
    "SELECT few FROM few_rows WHERE few NOT IN (SELECT few + 1 FROM few_rows WHERE few IS NOT NULL)",
    "SELECT few FROM few_rows WHERE few NOT IN (SELECT few FROM few_rows WHERE few > 7)",
    "SELECT few, few IN (SELECT few + 1 FROM few_rows) FROM few_rows",
    "SELECT count(*) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.sorted = a.sorted AND b.few < a.few)",
    "SELECT x FROM t WHERE x > (SELECT avg(x) FROM t)",
    "SELECT sorted FROM t UNION SELECT key FROM u",
    "SELECT n.name, count(t.x) FROM none n LEFT JOIN t ON n.sorted = t.sorted GROUP BY n.name",
    "SELECT upper(name), md5(text) FROM t JOIN u ON sorted = key WHERE few = 2",
    "SELECT CASE WHEN x % 3 = 0 THEN NULL ELSE x % 97 END AS k, count(*), sum(d), min(wide) FROM t GROUP BY k",
    "SELECT x % 40, text, few, count(*), max(d) FROM t GROUP BY ALL",
    "SELECT v % 200, count(*), sum(v) FROM skewed GROUP BY 1",
    "SELECT name, s FROM u JOIN (SELECT abs(x) % 120 AS k, sum(x) AS s FROM t GROUP BY k) ON key = k",
    "SELECT name, s FROM u LEFT JOIN (SELECT abs(x) % 60 AS k, sum(x) AS s FROM t GROUP BY k) ON key = k",
    "SELECT few, n, m FROM (SELECT abs(x) % 90 AS k, count(*) AS n FROM t GROUP BY k) a JOIN "
    "(SELECT abs(x) % 70 AS j, few, max(d) AS m FROM t GROUP BY j, few) b ON a.k = b.j",
    "SELECT n, count(*) FROM (SELECT x % 110 AS k, count(*) AS n FROM t GROUP BY k) GROUP BY n",
    "SELECT k, n FROM (SELECT x % 110 AS k, count(*) AS n FROM t GROUP BY k) WHERE k NOT IN "
    "(SELECT x % 30 AS j FROM t GROUP BY j)",
)
ORDERED = (
    "SELECT text, x FROM t ORDER BY text, x LIMIT 20 OFFSET 5",
    "SELECT few, text, wide FROM t ORDER BY few DESC, wide NULLS FIRST, x",
    "SELECT sorted, x FROM t LIMIT 7",
    "SELECT x FROM t WHERE few = 3 LIMIT 4 OFFSET 2",
    "SELECT x FROM t UNION ALL SELECT key FROM u",
    "SELECT few FROM t WHERE sorted > 20",
)


@pytest.mark.parametrize(("sql", "ranks"), in_turns(2, QUERIES, (2, 3, 4, 8)))
def test_answers(sql: str, ranks: int) -> None:
    assert_same(sql, TABLES, targets=("python",), ranks=(ranks,))


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("sql", ORDERED)
def test_rank_order_is_the_order_of_rows(sql: str, ranks: int) -> None:
    assert_same(sql, TABLES, ordered=True, targets=("python",), ranks=(ranks,))


@pytest.mark.long
@pytest.mark.parametrize("sql", [*QUERIES, *ORDERED])
def test_compiled(sql: str) -> None:
    assert_same(sql, TABLES, sql in ORDERED, targets=("cpu",), ranks=(3,))


@pytest.mark.cuda
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("sql", [*QUERIES, *ORDERED])
def test_on_gpus(sql: str, ranks: int) -> None:
    assert_same(sql, TABLES, sql in ORDERED, targets=("cuda",), ranks=(ranks,))


@pytest.fixture
def db() -> Iterator[gquery.Connection]:
    with gquery.connect(device="python", devices=3) as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        yield connection
    assert not [t for t in threading.enumerate() if t.name.startswith("gquery-rank")]


def test_the_second_run_and_after_the_data_grew(db: gquery.Connection) -> None:
    sql = "SELECT sorted, sum(x) AS s FROM t GROUP BY sorted ORDER BY s, sorted"
    first = db.sql(sql).fetchall()
    assert db.sql(sql).fetchall() == first
    more = pa.concat_tables([TABLES["t"]] * 3)
    db.register("t", more)
    assert [(k, 3 * s) for k, s in first] == db.sql(sql).fetchall()


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT CAST(x AS TINYINT) FROM t WHERE sorted > 110", gquery.ConversionError),
        ("SELECT (SELECT x FROM t)", gquery.CardinalityError),
        ("SELECT sum(CAST(9e18 AS BIGINT) + 0 * x) FROM t", gquery.OutOfRangeError),
    ],
)
def test_an_error_of_one_rank_is_that_of_the_query(sql: str, error: type[Exception], db: gquery.Connection) -> None:
    for _ in range(2):
        with pytest.raises(error):
            db.sql(sql).fetchall()
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(ROWS,)]


@pytest.mark.parametrize("sql", QUERIES[:6])
def test_failed_allocations(sql: str, db: gquery.Connection) -> None:
    """Whichever allocation of whichever rank fails: one clear error, and the next run is right."""
    want = sorted(map(repr, db.sql(sql).fetchall()))
    for number in range(1, 12, 2):
        with failing_allocations(number):
            with contextlib.suppress(gquery.OutOfMemoryError):
                db.sql(sql).fetchall()
        assert sorted(map(repr, db.sql(sql).fetchall())) == want


def test_explain_analyze_has_the_rows_of_all_ranks(db: gquery.Connection) -> None:
    text = db.sql("SELECT few, sum(x) FROM t GROUP BY few").explain("analyze")
    assert f"x)  [{ROWS} rows]" in text
    assert "each of 3 ranks: a part of the rows, states merged" in text
    (read,) = [line for line in text.splitlines() if "rows read by rank" in line]
    counts = [int(n) for n in read.partition(": ")[2].split(", ")]
    assert sum(counts) == ROWS and max(counts) <= 1.1 * ROWS / 3 + 5
    assert "received by rank" in text


def test_large_tables_are_cut_and_small_ones_are_not(db: gquery.Connection, tune: Tune) -> None:
    tune(tuning.distribution, replicated_bytes=1000)
    text = db.sql("SELECT name, sum(x) FROM t JOIN u ON sorted % 100 = key GROUP BY name").explain("physical")
    assert "each of 3 ranks: all rows" in text and "a part of the rows, its part of the groups merged by the range" in text


@pytest.mark.parametrize("devices", [0, -1, 257, 10**40, [], [-1], "some", [1.5]])
def test_devices_that_are_none(devices: object) -> None:
    with pytest.raises(gquery.InterfaceError, match="devices"):
        gquery.connect(device="cpu", devices=devices)  # type: ignore[arg-type]


def test_a_connection_says_what_it_runs_on() -> None:
    with gquery.connect(device="cpu", devices=2) as connection:
        connection.set("interpret_limit", 0)
        assert repr(connection) == "<gquery.Connection on cpu:1, cpu:2>"
        assert " on cpu:1, cpu:2\n" in connection.sql("SELECT 1 AS a").explain("analyze")


def test_a_device_of_one_rank_runs_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "run_ranks", None)  # would be called
    connection = gquery.connect(device="python", devices=1)
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
