"""Replay: a query that comes again runs as a recorded CUDA graph, and gives what it gave before, or what has changed since."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.device.device import available_devices
from gquery.errors import ConversionError
from gquery.execution.feedback import ReplayProgress
from tests.support.queries import Generator, random_tables
from tests.support.quiet import again_and_again
from tests.support.recorded import run_until_recorded

ROWS = 300_000
RUNS = 12
QUERIES = [
    "SELECT k, v FROM t WHERE v < 40",
    "SELECT k, v, s FROM t WHERE v >= 2",  # a result of more than a megabyte
    "SELECT count(*), sum(v), avg(d), min(s), max(k) FROM t WHERE v > 17",
    "SELECT sum(d), sum(k * v), avg(k), max(f) FROM t WHERE v < 0",
    "SELECT g, count(*), sum(d), avg(v), max(f) FROM t GROUP BY g ORDER BY g",
    "SELECT k % 5000 AS r, sum(v) AS total FROM t GROUP BY r ORDER BY total DESC, r LIMIT 10",
    "SELECT a.k, b.v FROM t a JOIN t b ON a.k = b.k + 1 WHERE b.v < 9 ORDER BY 1, 2",
    "SELECT g, count(*) FROM t WHERE v > (SELECT avg(v) FROM t WHERE g <> 'a') GROUP BY g ORDER BY ALL",
    "SELECT s, count(*) FROM t WHERE s LIKE '%7%' GROUP BY s ORDER BY 2 DESC, 1 LIMIT 20",
    "SELECT DISTINCT g, v FROM t ORDER BY ALL",
    "SELECT count(*) FROM t WHERE EXISTS (SELECT * FROM small WHERE small.id = t.v AND small.n IS NOT NULL)",
    "SELECT day, sum(f) IS NULL FROM t GROUP BY day ORDER BY day",
    "SELECT k FROM t WHERE v > 1000000",
    "SELECT g, min(n) FROM t LEFT JOIN small ON t.v = small.id GROUP BY g ORDER BY g NULLS FIRST",
    "SELECT s, k % 100000 AS r, count(*) FROM t GROUP BY ALL ORDER BY s, r LIMIT 100",  # of groups in any order
    "SELECT g, k % 3 AS a, k % 4 AS b, count(*), sum(v) FROM t GROUP BY CUBE (g, a, b) ORDER BY ALL",  # many frames, joined
    "SELECT g || '-' || s AS x, count(*) FROM t GROUP BY x ORDER BY x LIMIT 9",
    "(SELECT g FROM t WHERE v < 3) UNION ALL (SELECT g FROM t WHERE v > 97) ORDER BY 1 LIMIT 50",
]


def _table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    v = rng.integers(0, 100, ROWS)
    null = rng.random(ROWS) < 0.1
    return pa.table(
        {
            "k": rng.permutation(ROWS),
            "v": v,
            "g": pa.array(np.array(["a", "b", "c", "d"])[v % 4], mask=null),
            "s": [f"text {n % 977}" for n in v * 7919],
            "d": pa.array([Decimal(int(n)) / 100 for n in v], pa.decimal128(12, 2)),
            "f": pa.array(rng.random(ROWS), mask=null),
            "day": pa.array([datetime.date(2020, 1, 1) + datetime.timedelta(int(n)) for n in v]),
        }
    )


@pytest.fixture(params=[1, 2], ids=["one GPU", "two GPUs"])
def connection(request: pytest.FixtureRequest) -> Iterator[gquery.Connection]:
    with _connected(request.param) as made:
        made.register("t", _table(1))
        made.register("small", pa.table({"id": [1, 2, 3, None, 50, 50], "n": [1, None, 3, 4, 5, 6]}))
        yield made


def _connected(gpus: int) -> gquery.Connection:
    if len(available_devices()) <= gpus:
        pytest.skip(f"needs {gpus} GPUs")
    return gquery.connect(device="cuda", devices=gpus)


def _progress(connection: gquery.Connection, sql: str) -> ReplayProgress:
    """How far a query has come: of the plan that is kept for it."""
    prepared = connection._plans.find(sql, None, connection.settings)
    assert prepared is not None
    return prepared.feedback.replay


def _recorded(connection: gquery.Connection, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query, once it was recorded and played."""
    first = connection.sql(sql).fetchall()
    for _ in again_and_again(0.02):  # its kernels are compiled in the background
        rows = connection.sql(sql).fetchall()
        assert _alike(rows, first), sql
        if _progress(connection, sql).recorded is not None:
            break
    assert _progress(connection, sql).recorded is not None, (sql, _progress(connection, sql).refused)
    for _ in range(3):
        assert _alike(connection.sql(sql).fetchall(), first), sql
    assert _progress(connection, sql).given_up == 0
    return first


def _alike(rows: list[tuple[Any, ...]], others: list[tuple[Any, ...]]) -> bool:
    """Whether rows are the same, sums of doubles in another order aside."""
    return len(rows) == len(others) and all(
        x == y or (isinstance(x, float) and isinstance(y, float) and abs(x - y) <= 1e-9 * abs(y))
        for a, b in zip(rows, others, strict=True)
        for x, y in zip(a, b, strict=True)
    )


@pytest.mark.cuda
@pytest.mark.parametrize("sql", QUERIES)
def test_a_recorded_query_gives_the_same(connection: gquery.Connection, sql: str) -> None:
    rows = _recorded(connection, sql)
    with gquery.connect(device="cpu") as other:
        other.register("t", _table(1))
        other.register("small", connection.sql("FROM small").to_arrow_table())
        assert _alike(sorted(rows, key=repr), sorted(other.sql(sql).fetchall(), key=repr))


@pytest.mark.cuda
def test_recordings_share_their_memory(connection: gquery.Connection) -> None:
    """Each overwrites what the others left in the arena."""
    rows = {sql: _recorded(connection, sql) for sql in QUERIES}
    for _ in range(3):
        for sql, expected in rows.items():
            assert _alike(connection.sql(sql).fetchall(), expected), sql


@pytest.mark.cuda
def test_results_stay_when_others_run(connection: gquery.Connection) -> None:
    sql = QUERIES[1]
    expected = _recorded(connection, sql)
    held = [connection.sql(sql) for _ in range(3)]
    tables = [result.to_arrow_table() for result in held]
    for other in QUERIES:
        connection.sql(other).fetchall()
    assert all([tuple(r.values()) for r in table.to_pylist()] == expected for table in tables)


@pytest.mark.cuda
@pytest.mark.parametrize("sql", QUERIES)
def test_a_table_that_was_replaced_is_seen(connection: gquery.Connection, sql: str) -> None:
    _recorded(connection, sql)
    connection.register("t", _table(2))
    with gquery.connect(device="cpu") as other:
        other.register("t", _table(2))
        other.register("small", connection.sql("FROM small").to_arrow_table())
        expected = sorted(other.sql(sql).fetchall(), key=repr)
    for _ in range(RUNS):
        assert _alike(sorted(connection.sql(sql).fetchall(), key=repr), expected)


@pytest.mark.cuda
def test_rows_that_changed_in_place_are_noticed() -> None:
    """No promise to users, but nothing may break: a number that a recording counts on is another one now."""
    cupy = pytest.importorskip("cupy")
    values = cupy.asarray(np.arange(ROWS) % 1000)
    sql = "SELECT v FROM t WHERE v < 10 ORDER BY v"
    with gquery.connect(device="cuda") as connection:
        connection.register("t", {"v": values})
        _recorded(connection, sql)
        table: Any = connection.catalog.get("t")
        kept = table.load([0]).columns[0].data.on(connection.device)
        for factor in (3, 7, 9):
            kept[:] = (kept * factor + 1) % 1000
            expected = sorted(int(v) for v in kept.get() if v < 10)
            assert [v for (v,) in connection.sql(sql).fetchall()] == expected


@pytest.mark.cuda
def test_errors_of_a_recorded_query_are_raised() -> None:
    cupy = pytest.importorskip("cupy")
    sql = "SELECT max(CAST(v AS TINYINT)) FROM t WHERE k < 3"
    values = np.arange(ROWS) % 20_000
    with gquery.connect(device="cuda") as connection:
        connection.register("t", {"k": cupy.arange(ROWS), "v": cupy.asarray(values)})
        assert _recorded(connection, sql) == [(2,)]
        table: Any = connection.catalog.get("t")
        kept = table.load([1]).columns[0].data.on(connection.device)
        kept[:3] = 15_000  # within the bounds of the column
        for _ in range(2):
            with pytest.raises(ConversionError):
                connection.sql(sql).fetchall()
        kept[:3] = 6
        assert connection.sql(sql).fetchall() == [(6,)]
        assert _progress(connection, sql).given_up == 0


@pytest.mark.cuda
def test_threads_share_recordings(connection: gquery.Connection) -> None:
    expected = {sql: _recorded(connection, sql) for sql in QUERIES[:8]}
    failures: list[str] = []

    def work(start: int) -> None:
        cursor = connection.cursor()
        for n in range(40):
            sql = QUERIES[(start + n) % 8]
            if not _alike(cursor.execute(sql).fetchall(), expected[sql]):
                failures.append(sql)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.cuda
def test_memory_that_runs_out_takes_recordings_first(connection: gquery.Connection) -> None:
    rows = {sql: _recorded(connection, sql) for sql in QUERIES[:6]}
    connection.device.make_room()
    for sql, expected in rows.items():
        assert all(_alike(connection.sql(sql).fetchall(), expected) for _ in range(RUNS))


@pytest.mark.cuda
def test_a_setting_switches_it_off(connection: gquery.Connection) -> None:
    connection.sql("SET replay = false")
    for _ in range(RUNS):
        connection.sql(QUERIES[0]).fetchall()
    assert _progress(connection, QUERIES[0]).recorded is None and _progress(connection, QUERIES[0]).runs == 0


@pytest.mark.cuda
@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("seed", range(40))
def test_random_queries_give_the_same(seed: int, gpus: int) -> None:
    sql = Generator(seed).query()
    with _connected(gpus) as connection, gquery.connect(device="cpu") as other:
        connection.sql("SET interpret_limit = 0")
        for name, table in random_tables(seed).items():
            connection.register(name, table)
            other.register(name, table)
        expected = sorted(other.sql(sql).fetchall(), key=repr)

        def run() -> None:
            assert _alike(sorted(connection.sql(sql).fetchall(), key=repr), expected), sql

        run_until_recorded(connection, sql, run)
