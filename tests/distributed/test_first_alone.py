"""What the first rank alone needs for the result, others leave to it: they run no stage for it and read no column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.execution import ranked
from gquery.execution.run_stages import run_stages
from gquery.execution.state import Run
from tests.support.harness import assert_same
from tests.support.quiet import wait_until_compiled
from tests.support.tuned import Tune

ROWS = 4000
TABLES = {
    "t": pa.table({"k": np.arange(ROWS) // 4, "v": np.arange(ROWS) % 97, "w": np.arange(ROWS) % 13}),
    "names": pa.table({"key": np.arange(100), "name": [f"name {n % 30}" for n in range(100)]}),
}
LATE = (
    "SELECT name, s FROM (SELECT w, sum(v) AS s FROM t GROUP BY w) JOIN (SELECT key, name FROM names) ON key = s % 100"
)
QUERIES = (
    "SELECT w, sum(v) FROM t GROUP BY w ORDER BY 2 DESC, 1 LIMIT 3",
    LATE,
    "SELECT s, count(*) FROM (SELECT w, sum(v) AS s FROM t GROUP BY w) GROUP BY s",
    "SELECT k, v, row_number() OVER (ORDER BY v, k) FROM t",
    "SELECT k, v FROM t UNION SELECT w, s FROM (SELECT w, sum(v) AS s FROM t GROUP BY w)",
    "SELECT * FROM (SELECT k, v FROM t ORDER BY v, k LIMIT 50) a JOIN (SELECT k, v FROM t ORDER BY v, k LIMIT 9) b USING (k)",
    "SELECT * FROM t WHERE v > (SELECT max(s) FROM (SELECT sum(w) AS s FROM t GROUP BY k ORDER BY 1 LIMIT 7))",
)


@pytest.fixture
def db() -> Iterator[gquery.Connection]:
    with gquery.connect(device="cpu", devices=3) as connection:
        connection.sql("SET interpret_limit = 0")
        for name, table in TABLES.items():
            connection.register(name, table)
        yield connection


@pytest.mark.parametrize("sql", QUERIES)
def test_answers(sql: str) -> None:
    assert_same(sql, TABLES, targets=("python", "cpu"), ranks=(1, 2, 3))


@pytest.mark.cuda
@pytest.mark.parametrize("sql", QUERIES)
def test_answers_on_a_gpu(sql: str) -> None:
    for _ in range(6):  # until they are replayed
        assert_same(sql, TABLES, targets=("cuda",), ranks=(1, 2, 3))
        wait_until_compiled()


def test_others_run_no_stage_behind_the_last_exchange(
    db: gquery.Connection, monkeypatch: pytest.MonkeyPatch, tune: Tune
) -> None:
    tune(tuning.distribution, replicated_bytes=5000)
    states: dict[int, Run] = {}

    def noted(state: Run, first: int, end: int) -> None:
        run_stages(state, first, end)
        assert state.rank is not None
        states[state.rank.comm.rank] = state

    monkeypatch.setattr(ranked, "run_stages", noted)
    assert len(db.sql(LATE + " WHERE s % 100 < 90").fetchall()) > 0
    first, second = states[0].rank, states[1].rank
    assert first is not None and second is not None
    assert not first.left and second.left
    assert [len(states[r].tables) for r in range(3)] == [2, 1, 1]


def test_a_query_over_small_tables_runs_on_the_first_device(
    db: gquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = db.sql("SELECT sum(range) FROM range(1000)").fetchall()
    monkeypatch.setattr(ranked, "run_ranks", None)  # would be called
    assert db.sql("SELECT sum(range) FROM range(1001)").fetchall() == [(expected[0][0] + 1000,)]
    assert "the first of 3 ranks: all rows" in db.sql("SELECT sum(range) FROM range(1001)").explain("physical")


def test_few_rows_go_to_the_first_rank(db: gquery.Connection, tune: Tune) -> None:
    """A table that ranks have parts of is not made whole for that: what is probed then stays divided."""
    few = "SELECT v, count(*) FROM (SELECT k, v FROM t WHERE w = 5 AND v < 20) GROUP BY v, k"
    tune(tuning.distribution, gathered_rows=1)
    assert "the first of" not in db.sql(few).explain("physical")
    tune(tuning.distribution, gathered_rows=10**9)
    sql = "SELECT a.v, count(*) FROM (SELECT k, v FROM t WHERE w = 5 LIMIT 300) a JOIN t b USING (k) GROUP BY 1"
    assert "each of 3 ranks: a part of the rows" in db.sql(sql).explain("physical")
    assert_same(sql.replace("LIMIT 300", ""), TABLES, targets=("python", "cpu"), ranks=(1, 3))


def test_where_no_table_is_cut_ranks_divide_large_frames_alone(db: gquery.Connection, tune: Tune) -> None:
    sql = "SELECT a.v, count(*) FROM (SELECT DISTINCT k, v FROM t) a JOIN (SELECT DISTINCT k, w FROM t) b USING (k) GROUP BY 1"
    expected = sorted(db.sql(sql).fetchall())
    tune(tuning.distribution, alone_bytes=10**9)
    assert "each of 3 ranks" in db.sql(sql).explain("physical")
    assert sorted(db.sql(sql).fetchall()) == expected
    tune(tuning.distribution, alone_rows=10**9)
    with gquery.connect(device="cpu", devices=3) as other:
        other.register("t", TABLES["t"])
        assert "each of 3 ranks" not in other.sql(sql).explain("physical")
        assert sorted(other.sql(sql).fetchall()) == expected
