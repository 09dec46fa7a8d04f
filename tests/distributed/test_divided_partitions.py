"""Windows and ordered groups whose rows go to ranks by the hash of what partitions them: DuckDB's answers, and what moves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.execution import run_with_report
from gquery.execution.state import StageReport
from gquery.operators import partition_rows
from gquery.planner.physical import OrderedGroups, WindowRows
from tests.support.harness import assert_same, compare, expect
from tests.support.tables import all_types

RNG = np.random.default_rng(14)
ROWS = 900
KEYS = RNG.integers(0, 10**12, 60)[RNG.integers(0, 60, ROWS)]


def some_null(values: Any, every: int, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array([None if n % every == 3 else v for n, v in enumerate(values)], kind)


TABLES = {
    "t": pa.table(
        {
            "n": np.arange(ROWS),
            "k": some_null(KEYS, 17, pa.int64()),
            "few": (KEYS % 7).astype(np.int8),
            "far": np.where(np.arange(ROWS) % 2 == 0, KEYS[40], KEYS),  # half of the rows have one key
            "text": some_null([f"text {v % 37}" for v in KEYS], 13),
            "money": some_null([int(v % 50) for v in KEYS], 11, pa.decimal128(12, 2)),
            "wide": some_null([int(v) * 10**9 for v in KEYS], 19, pa.decimal128(38, 2)),
            "d": np.where(KEYS % 5 == 0, -0.0, KEYS % 50 / 4),
            "x": some_null(RNG.integers(-100, 100, ROWS).tolist(), 9, pa.int32()),
            "f": RNG.normal(0, 1e6, ROWS),
            "nothing": pa.nulls(ROWS, pa.int64()),
        }
    ),
    "sorted": pa.table({"k": np.sort(KEYS), "v": np.arange(ROWS)}),
    "none": pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}),
}
DIVIDED = (
    "SELECT n, row_number() OVER (PARTITION BY k ORDER BY x, n) FROM t",
    "SELECT n, sum(x) OVER (PARTITION BY far ORDER BY n), lag(text, 2) OVER (PARTITION BY far ORDER BY n) FROM t",
    "SELECT n, count(*) OVER (PARTITION BY text ORDER BY x, n ROWS 3 PRECEDING) FROM t",
    "SELECT n, first_value(text) OVER (PARTITION BY d ORDER BY n) FROM t",
    "SELECT n, min(text) OVER (PARTITION BY wide ORDER BY x RANGE 9 PRECEDING), max(f) OVER (PARTITION BY money) FROM t",
    "SELECT n, rank() OVER (PARTITION BY k, few ORDER BY x), sum(n) OVER (PARTITION BY few, text, k ORDER BY n) FROM t",
    "SELECT n, r FROM (SELECT n, rank() OVER (PARTITION BY few ORDER BY x DESC) r FROM t) WHERE r <= 3",
    "SELECT few, sum(r) FROM (SELECT few, x, row_number() OVER (PARTITION BY few, text ORDER BY n) r FROM t) GROUP BY few",
    "SELECT n, ntile(4) OVER (PARTITION BY nothing ORDER BY n) FROM t",
    "SELECT n, last_value(x IGNORE NULLS) OVER (PARTITION BY n % 10 ORDER BY n) FROM t WHERE x % 2 = 0",
    "SELECT k, rank() OVER (PARTITION BY few ORDER BY s, k) FROM (SELECT k, few, sum(x) s FROM t GROUP BY ALL)",
    "SELECT a.n, r FROM t a JOIN (SELECT few, n, rank() OVER (PARTITION BY few ORDER BY n) r FROM t) b USING (few, n)",
    "SELECT k, row_number() OVER (PARTITION BY x % 5 ORDER BY k) FROM t WHERE x > 1000 AND n < 0",
    "SELECT few, median(x), quantile_disc(text, 0.3), mode(x) FROM t GROUP BY few",
    "SELECT far, string_agg(text, '-'), first(text), last(x) FILTER (WHERE x > 0), bit_xor(n) FROM t GROUP BY far",
    "SELECT text, few, string_agg(text, '-' ORDER BY n DESC), median(f), count(*), sum(x), stddev(f) FROM t GROUP BY text, few",
    "SELECT k, median(d) FROM t GROUP BY k HAVING count(*) > 3",
    "SELECT d, product(f / 1e6), arg_min(text, n) FROM t GROUP BY d",
    "SELECT few, string_agg(text, ','), median(x) FROM t WHERE x > 1000 AND n < 0 GROUP BY few",
)  # fmt: skip
NOT_DIVIDED = (
    "SELECT n, row_number() OVER (ORDER BY n) FROM t",
    "SELECT n, sum(x) OVER (ORDER BY x) FROM t",
    "SELECT median(x), string_agg(text, '-'), mode(few) FROM t",
    "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) FROM sorted",  # which is cut at its keys
    "SELECT k, row_number() OVER (PARTITION BY v % 5 ORDER BY k) FROM none",
)


def reports(sql: str, db: gquery.Connection) -> list[tuple[StageReport, bool]]:
    """What the stages of a query did, and whether a stage is a window or groups in an order."""
    prepared = db.sql(sql).prepared
    assert prepared is not None
    program = db._program(prepared)
    ran = run_with_report(program, db._context(), prepared.feedback)[1]
    return [(r, isinstance(s.work, WindowRows | OrderedGroups)) for r, s in zip(ran, program.stages, strict=True)]


@pytest.fixture
def db() -> Iterator[gquery.Connection]:
    with gquery.connect(device="python", devices=3) as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        yield connection


@pytest.mark.parametrize("sql", DIVIDED)
def test_answers(sql: str, db: gquery.Connection) -> None:
    assert_same(sql, TABLES, targets=("python",), ranks=(1, 3))
    assert "by the hash of" in db.sql(sql).explain("physical"), "nothing is divided"


@pytest.mark.parametrize("ranks", [3, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sql", NOT_DIVIDED)
def test_answers_of_others(sql: str, ranks: int, db: gquery.Connection) -> None:
    assert_same(sql, TABLES, targets=("python",), ranks=(ranks,))
    assert "by the hash of" not in db.sql(sql).explain("physical")


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("sql", DIVIDED)
def test_compiled(sql: str, ranks: int) -> None:
    assert_same(sql, TABLES, targets=("cpu",), ranks=(ranks,))


@pytest.mark.cuda
@pytest.mark.parametrize("sql", DIVIDED)
def test_on_gpus(sql: str) -> None:
    assert_same(sql, TABLES, targets=("cuda",), ranks=(2,))


def test_columns_of_all_types_go_with_their_rows() -> None:
    tables = all_types()
    names = [f'"{name}"' for name in tables["t"].column_names]
    sql = f"SELECT {', '.join(names)}, row_number() OVER (PARTITION BY n ORDER BY id) FROM t"
    types, want = expect(sql, tables)
    with gquery.connect(device="python", devices=3) as connection:
        connection.register("t", tables["t"])
        assert compare(connection.sql(sql).fetchall(), want, False, types) is None


def test_each_rank_gets_its_rows_alone_and_explain_says_so(db: gquery.Connection) -> None:
    sql = "SELECT n, sum(x) OVER (PARTITION BY k ORDER BY n) FROM t"
    text = db.sql(sql).explain("physical")
    assert "each of 3 ranks: its part of the rows of stage 0 by the hash of k, about" in text
    ((report, _),) = [r for r in reports(sql, db) if r[1]]
    rows = [r.rows for r in report.of_ranks]
    assert sum(rows) == ROWS and max(rows) < 0.6 * ROWS
    assert 0 < sum(r.received_bytes for r in report.of_ranks) < ROWS * 40


def test_rows_that_lie_together_stay(db: gquery.Connection) -> None:
    """A window by more keys than the one before, and one by the key of a cut, exchange nothing."""
    sql = """SELECT n, rank() OVER (PARTITION BY few, text ORDER BY n), rank() OVER (PARTITION BY text, few, k ORDER BY n),
             rank() OVER (PARTITION BY text, k, few ORDER BY x) FROM t"""
    of_windows = [r.of_ranks for r, is_window in reports(sql, db) if is_window]
    assert [sum(r.received_bytes for r in ranks) > 0 for ranks in of_windows] == [True, False, False]
    cut = reports("SELECT k, rank() OVER (PARTITION BY k ORDER BY v) FROM sorted", db)
    assert not any(r.received_bytes for report, is_window in cut if is_window for r in report.of_ranks)


def test_one_of_several_keys_does_not_say_where_rows_lie(db: gquery.Connection) -> None:
    inner = "SELECT n, few, rank() OVER (PARTITION BY few, text ORDER BY n) r FROM t"
    sql = f"SELECT n, r, sum(r) OVER (PARTITION BY few ORDER BY n) FROM ({inner})"
    assert db.sql(sql).explain("physical").count("by the hash of") == 2
    assert_same(sql, TABLES, targets=("python",), ranks=(3,))


def test_rows_that_somebody_has_sorted_stay_in_their_order(db: gquery.Connection) -> None:
    sql = "SELECT n, row_number() OVER (PARTITION BY few ORDER BY n) FROM (SELECT * FROM t ORDER BY f LIMIT 500)"
    found = db.sql(sql).fetchall()
    with gquery.connect(device="python") as alone:
        alone.register("t", TABLES["t"])
        assert alone.sql(sql).fetchall() == found
    assert "by the hash of" not in db.sql(sql).explain("physical")


@pytest.mark.parametrize("call", ["row_number()", "sum(n)", "string_agg(text, '-')"])
def test_rows_that_an_order_does_not_tell_apart_are_as_they_came(call: str, db: gquery.Connection) -> None:
    frame = "ORDER BY x ROWS UNBOUNDED PRECEDING" if "(n" in call or "r()" in call else ""
    sql = f"SELECT few, n, {call} OVER (PARTITION BY few {frame}) FROM t"
    with gquery.connect(device="python") as alone:
        alone.register("t", TABLES["t"])
        assert sorted(alone.sql(sql).fetchall()) == sorted(db.sql(sql).fetchall())


@pytest.mark.parametrize("failing", [0, 2])
def test_a_rank_that_fails_in_the_exchange(
    failing: int, db: gquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    want, function = sorted(db.sql(DIVIDED[0]).fetchall()), partition_rows.partition_rows

    def fails(*args: Any) -> Any:
        if threading.current_thread().name == f"gquery-rank-{failing}":
            raise gquery.OutOfMemoryError("no memory, on purpose")
        return function(*args)

    with monkeypatch.context() as patch:
        patch.setattr("gquery.execution.hashed_rows.partition_rows", fails)
        with pytest.raises(gquery.OutOfMemoryError, match="on purpose"):
            db.sql(DIVIDED[0]).fetchall()
    assert sorted(db.sql(DIVIDED[0]).fetchall()) == want
