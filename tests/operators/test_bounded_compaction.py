"""A fan-out that is expected to make few rows writes them in one kernel; where a morsel gives more rows than it has, the pipeline
runs again, and later runs know."""

from __future__ import annotations

import random
from functools import cache

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.execution.feedback import RunFeedback
from tests.support.harness import TARGETS, assert_same, compare, expect
from tests.support.tuned import Tune

RNG = random.Random(21)
ROWS = 3000
SQL = "SELECT id, v, s FROM many JOIN few ON many.k = few.k WHERE x < 30"


@cache
def tables() -> dict[str, pa.Table]:
    many = {
        "id": range(ROWS),
        "k": [RNG.choice([*range(40), None]) for _ in range(ROWS)],
        "x": [RNG.randrange(100) for _ in range(ROWS)],
        "s": [RNG.choice(["", "a word", None, "ä" * 20]) for _ in range(ROWS)],
    }
    few = {"k": [3, 3, 7, None, 7, 7, 39, 12, 12], "v": range(9), "name": [f"n{i % 3}" for i in range(9)]}
    crowd = {"k": [5] * 50 + [6] * 3, "v": range(53)}  # one key has most of the rows: far more than is expected
    return {n: pa.table(t) for n, t in {"many": many, "few": few, "crowd": crowd}.items()}


@cache
def empty() -> dict[str, pa.Table]:
    return {name: table.slice(0, 0) for name, table in tables().items()}


QUERIES = [
    SQL,
    "SELECT id, v FROM many JOIN crowd USING (k) WHERE x = 3",
    "SELECT id, v FROM many JOIN crowd USING (k) WHERE k > 4 AND id % 7 = 1",
    "SELECT id, name FROM many LEFT JOIN few ON many.k = few.k AND v > 2 WHERE x = 4",
    "SELECT id, v FROM many FULL JOIN few ON many.k = few.k AND x > 90",
    "SELECT id, a.v, b.v AS w FROM many JOIN few a ON many.k = a.k JOIN crowd b ON b.k = a.k WHERE x < 9",
    "SELECT id, a.v, b.v AS w FROM many JOIN few a ON many.k = a.k JOIN few b ON b.k = a.k WHERE x < 9 AND a.v <> b.v",
    "SELECT id, v FROM many JOIN few ON many.k < few.k AND x = 1",
    "SELECT s, name, count(*), sum(v) FROM many JOIN few ON many.k = few.k WHERE x < 30 GROUP BY s, name",
    "SELECT id, v FROM many JOIN few ON many.k = few.k WHERE x < 20 ORDER BY id, v LIMIT 9",
    "SELECT id, v FROM many JOIN few ON many.k = few.k WHERE x > 1000",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_answers(sql: str, tune: Tune) -> None:
    tune(tuning.materialization, bounded_least_rows=1, bounded_selectivity=1e9)
    assert_same(sql, tables(), ordered="ORDER BY" in sql)
    assert_same(sql, empty(), ordered="ORDER BY" in sql, targets=TARGETS[:1])


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_rows_keep_the_order_of_their_source(device: str, tune: Tune) -> None:
    tune(tuning.materialization, bounded_least_rows=1, bounded_selectivity=1e9)
    with gquery.connect(device) as connection:
        connection.sql("SET interpret_limit = 0")
        connection.register("many", tables()["many"]).register("few", tables()["few"])
        ids = [row[0] for row in connection.sql(SQL).fetchall()]
        assert ids == sorted(ids) and len(ids) > len(set(ids))


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_a_morsel_that_gives_more_rows_than_it_has_runs_again_once(
    device: str, tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[int] = []
    note = RunFeedback.found_fan_out

    def count(self: RunFeedback, stage: int) -> None:
        noted.append(stage)
        note(self, stage)

    monkeypatch.setattr(RunFeedback, "found_fan_out", count)
    tune(tuning.materialization, bounded_least_rows=1, bounded_selectivity=1e9)
    data = {"many": pa.table({"k": [1] * 2000, "id": range(2000)}), "few": pa.table({"k": [1, 1, 1, 2], "v": range(4)})}
    sql = "SELECT id, v FROM many JOIN few USING (k) WHERE id >= 0"
    types, want = expect(sql, data)
    with gquery.connect(device) as connection:
        connection.sql("SET interpret_limit = 0")
        for name, table in data.items():
            connection.register(name, table)
        for _ in range(3):
            assert compare(connection.sql(sql).fetchall(), want, False, types) is None
        assert len(noted) == 1, "later runs know"


def test_explain_says_how_rows_find_their_place(tune: Tune) -> None:
    with gquery.connect("cpu") as connection:
        connection.register("many", tables()["many"]).register("few", tables()["few"])
        assert "count, then scatter" in str(connection.explain(SQL, "pipelines"))
        tune(tuning.materialization, bounded_least_rows=1, bounded_selectivity=1e9)
        assert "per-morsel compaction if there is room" in str(connection.explain(SQL + " ", "pipelines"))
