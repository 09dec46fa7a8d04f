"""Joins whose rows go to ranks by the hash of their keys: DuckDB's answers for all keys, one error where a rank fails."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.execution import run_with_report
from gquery.execution.state import StageReport
from gquery.operators import heavy_keys, partition_rows
from gquery.planner.physical import Pipeline, Program, ReadStage
from tests.support.faults import failing_allocations
from tests.support.harness import assert_same, connect
from tests.support.marks import in_turns
from tests.support.tuned import Tune

RNG = np.random.default_rng(16)
ROWS, BUILT = 900, 250


def some_null(values: Any, every: int, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array([None if n % every == 3 else v for n, v in enumerate(values)], kind)


KEYS = RNG.integers(0, 10**12, 150)  # in no array
LEFT, RIGHT = KEYS[RNG.integers(0, 150, ROWS)], KEYS[RNG.integers(20, 150, BUILT)]
TABLES = {
    "l": pa.table(
        {
            "n": np.arange(ROWS),
            "k": some_null(LEFT, 17, pa.int64()),
            "few": (LEFT % 23).astype(np.int8),
            "far": np.where(np.arange(ROWS) % 2 == 0, KEYS[40], LEFT),  # half of the rows have one key
            "text": some_null([f"text {v % 97}" for v in LEFT], 13),
            "money": some_null([int(v % 1000) for v in LEFT], 11, pa.decimal128(12, 2)),
            "wide": some_null([int(v) * 10**9 for v in LEFT], 19, pa.decimal128(38, 2)),
            "d": np.where(LEFT % 5 == 0, -0.0, LEFT % 50 / 4),
            "nothing": pa.nulls(ROWS, pa.int64()),
            "day": pa.array((LEFT % 400).astype(np.int32), pa.date32()),
        }
    ),
    "r": pa.table(
        {
            "m": np.arange(BUILT),
            "k": some_null(RIGHT, 7, pa.int64()),
            "few": (RIGHT % 23).astype(np.int32),
            "text": some_null([f"text {v % 97}" for v in RIGHT], 9),
            "money": some_null([int(v % 1000) for v in RIGHT], 8, pa.decimal128(9, 2)),
            "wide": some_null([int(v) * 10**9 for v in RIGHT], 8, pa.decimal128(38, 2)),
            "d": np.where(RIGHT % 5 == 0, 0.0, RIGHT % 50 / 4),
            "nothing": pa.nulls(BUILT, pa.int64()),
            "day": pa.array((RIGHT % 400).astype(np.int32), pa.date32()),
        }
    ),
    "sorted": pa.table({"k": np.sort(LEFT), "v": np.arange(ROWS)}),
    "none": pa.table({"k": pa.array([], pa.int64()), "text": pa.array([], pa.string())}),
    "one": pa.table({"k": [int(KEYS[40])] * 400, "v": range(400)}),  # on one rank, whatever the hash
}
HASHED = (
    "SELECT l.n, r.m FROM l JOIN r ON l.k = r.k",
    "SELECT count(*), sum(l.n), sum(r.m), min(r.text) FROM l JOIN r ON l.k = r.k",
    "SELECT l.n, r.m, r.text FROM l LEFT JOIN r ON l.k = r.k",
    "SELECT l.n FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
    "SELECT l.n FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
    "SELECT l.n FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.m > l.n)",
    "SELECT l.n FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.m > l.n)",
    "SELECT l.n, r.m FROM l LEFT JOIN r ON l.k = r.k AND r.m % 3 <> l.n % 3",
    "SELECT l.n, r.m FROM l JOIN r ON l.text = r.text",
    "SELECT l.n, r.m FROM l JOIN r ON l.money = r.money",
    "SELECT l.n, r.m FROM l JOIN r ON l.wide = r.wide",
    "SELECT l.n, r.m FROM l JOIN r ON l.d = r.d",
    "SELECT l.n, r.m FROM l JOIN r ON l.few = r.few AND l.k = r.k",
    "SELECT l.n, r.m FROM l JOIN r ON l.k = r.k AND l.text = r.text AND l.day = r.day",
    "SELECT l.n, r.m FROM l JOIN r ON l.k IS NOT DISTINCT FROM r.k AND l.few = r.few",
    "SELECT l.n, r.m FROM l LEFT JOIN r ON l.nothing = r.k",
    "SELECT l.n, r.m FROM l LEFT JOIN r ON l.far = r.k",
    "SELECT few, count(*), sum(m) FROM (SELECT l.few, r.m FROM l JOIN r ON l.far = r.k) GROUP BY few",
    "SELECT l.k, count(*), sum(r.m) FROM l JOIN r ON l.k = r.k GROUP BY l.k",
    "SELECT l.n, r.m FROM l JOIN r ON l.k + 1 = r.k + 1 WHERE l.few > 4 AND r.m < 200",
    "SELECT l.n, one.v FROM l LEFT JOIN one ON l.far = one.k AND l.few = one.v % 50",
    "SELECT sorted.v, r.m FROM sorted JOIN r ON sorted.k = r.k WHERE sorted.v % 4 = 1",
    "SELECT a.n, b.m, c.m FROM l a JOIN r b ON a.k = b.k LEFT JOIN r c ON a.text = c.text AND c.m < b.m",
    "SELECT l.n, r.m, sorted.v FROM l JOIN r ON l.k = r.k JOIN sorted ON sorted.k = l.k AND sorted.v = l.n",
    "SELECT count(*) FROM l JOIN (SELECT r.m, r.text FROM r SEMI JOIN l ON l.wide = r.wide) t ON l.text = t.text",
    "SELECT l.n, s.c FROM l JOIN (SELECT k, count(*) AS c FROM r GROUP BY k) s ON l.k = s.k",
)
NOT_HASHED = (
    "SELECT l.n, r.m FROM l FULL JOIN r ON l.k = r.k",
    "SELECT l.n, r.m FROM l RIGHT JOIN r ON l.k = r.k AND l.n > 9",
    "SELECT l.n FROM l WHERE l.k NOT IN (SELECT r.m FROM r)",
    "SELECT l.n, r.m FROM l LEFT JOIN r ON l.n < r.m AND l.few = 3 WHERE l.n < 40",
    "SELECT l.n, none.text FROM l LEFT JOIN none ON l.k = none.k",
    "SELECT count(*) FROM none JOIN l ON none.text = l.text",
    "SELECT n, m FROM (SELECT * FROM l ORDER BY n LIMIT 300) l LEFT JOIN r ON l.k = r.k",
)


def by_hash(program: Program) -> list[int]:
    """The stages that read rows which ranks exchange by their hash."""
    sources = [(s.number, s.work.source) for s in program.stages if isinstance(s.work, Pipeline)]
    return [n for n, source in sources if isinstance(source, ReadStage) and source.by_hash]


def program_of(sql: str, db: gquery.Connection) -> Program:
    prepared = db.sql(sql).prepared
    assert prepared is not None
    return db._program(prepared)


SLOW = [pytest.param(n, marks=pytest.mark.slow) for n in (2, 4)]


OTHERS = [pytest.param(sql, n, marks=pytest.mark.slow) for sql in HASHED for n in (2, 4)]


@pytest.mark.parametrize(("sql", "ranks"), [*in_turns(2, HASHED, (3, 8)), *OTHERS])
def test_answers(sql: str, ranks: int) -> None:
    assert_same(sql, TABLES, targets=("python",), ranks=(ranks,))
    assert by_hash(program_of(sql, connect("python", ranks, TABLES))), "nothing is exchanged"


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("sql", NOT_HASHED)
def test_answers_of_other_joins(sql: str, ranks: int) -> None:
    assert_same(sql, TABLES, targets=("python",), ranks=(ranks,))


@pytest.mark.long
@pytest.mark.parametrize("sql", HASHED)
def test_compiled(sql: str) -> None:
    assert_same(sql, TABLES, targets=("cpu",), ranks=(3,))


@pytest.mark.cuda
@pytest.mark.parametrize("sql", HASHED)
def test_on_gpus(sql: str) -> None:
    assert_same(sql, TABLES, targets=("cuda",), ranks=(2,))


@pytest.mark.parametrize(
    "sql", [f"SELECT * FROM ({HASHED[0]}) ORDER BY m DESC, n", f"SELECT n FROM ({HASHED[2]}) ORDER BY n LIMIT 9"]
)
def test_rows_sorted_behind_a_join_come_in_order(sql: str) -> None:
    assert_same(sql, TABLES, ordered=True, targets=("python",), ranks=(3,))


def test_rows_that_were_sorted_keep_their_order() -> None:
    few = "SELECT DISTINCT few AS f, 'x' AS text FROM r"
    sql = f"SELECT n, t.text FROM (SELECT * FROM l ORDER BY few, n) l JOIN ({few}) t ON few = f"
    assert_same(sql, TABLES, ordered=True, targets=("python",), ranks=(3,))


@pytest.fixture
def db() -> Iterator[gquery.Connection]:
    with gquery.connect(device="python", devices=4) as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        yield connection
    assert not [t for t in threading.enumerate() if t.name.startswith("gquery-rank")]


def test_explain_has_the_exchange_and_its_bytes(db: gquery.Connection) -> None:
    text = db.sql(HASHED[0]).explain("physical")
    assert text.count("each of 4 ranks: its part of the rows of stage") == 2 and "by the hash of k, about" in text
    analyzed = db.sql(HASHED[0]).explain("analyze")
    assert "by the hash of k" in analyzed and "received by rank" in analyzed


def reports(sql: str, db: gquery.Connection) -> tuple[list[int], list[StageReport]]:
    prepared = db.sql(sql).prepared
    assert prepared is not None
    program = db._program(prepared)
    return by_hash(program), run_with_report(program, db._context(), prepared.feedback)[1]


def test_each_rank_gets_the_rows_of_its_part_alone(db: gquery.Connection) -> None:
    stages, ran = reports("SELECT count(*), sum(r.m) FROM l JOIN r ON l.wide = r.wide", db)
    for stage in stages:
        rows = [r.rows for r in ran[stage].of_ranks]
        assert sum(rows) <= ROWS and max(rows) < 0.5 * sum(rows), rows
        assert sum(r.received_bytes for r in ran[stage].of_ranks) <= sum(rows) * 40


def skewed(rows: int, where: str) -> pa.Table:
    """Half of the rows have one key: one row of each two, or all together."""
    keys = np.random.default_rng(17).integers(0, 10**12, 500)[np.random.default_rng(18).integers(0, 500, rows)]
    other = keys[0]
    keys[1::2] = other
    if where == "together":
        keys = np.concatenate([keys[1::2], keys[::2]])
    return pa.table({"k": keys, "v": np.arange(rows)})


@pytest.mark.parametrize("where", ["one of two", "together"])
@pytest.mark.parametrize("ranks", [3, *SLOW, pytest.param(8, marks=pytest.mark.slow)])
def test_half_of_the_probes_in_one_key_are_shared_evenly(where: str, ranks: int) -> None:
    """No rank probes more than 1.1 times the mean of rows, and the rows that they meet are on all ranks."""
    probed = skewed(20_000, where)
    keys = np.unique(probed["k"].to_numpy())
    tables = {"p": probed, "b": pa.table({"k": np.concatenate([keys, keys]), "w": np.arange(2 * keys.size)})}
    with gquery.connect(device="python", devices=ranks) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        sql = "SELECT count(*), sum(v), sum(w) FROM p JOIN b ON p.k = b.k"
        built, probing = by_hash(program_of(sql, connection))
        for _ in range(2):  # the second run takes the heavy keys of the first
            _, ran = reports(sql, connection)
            rows = [r.rows for r in ran[probing].of_ranks]
            assert sum(rows) == 20_000 and max(rows) <= 1.1 * sum(rows) / ranks, rows
            assert ran[built].of_ranks[0].heavy_keys == ran[probing].of_ranks[0].heavy_keys == 1
        assert sum(r.rows for r in ran[built].of_ranks) == 2 * (keys.size + ranks - 1)
        assert "heavy keys, whose rows are shared evenly: 1" in connection.sql(sql).explain("analyze")
    assert_same(sql, tables, targets=("python",), ranks=(ranks,))
    assert_same(sql.replace("JOIN", "LEFT JOIN") + " AND v % 7 <> w % 5", tables, targets=("python",), ranks=(ranks,))


def test_answers_where_all_keys_are_heavy(tune: Tune) -> None:
    tune(tuning.partitioning, heavy_fraction=0.0, heavy_least_sampled=1)
    tables = dict(TABLES)  # so that nothing is known of the plans
    for sql in HASHED:
        assert_same(sql, tables, targets=("python",), ranks=(3,))


def test_a_table_that_is_small_lies_on_every_rank(db: gquery.Connection, tune: Tune) -> None:
    tune(tuning.distribution, hashed_bytes=10**6)
    assert not by_hash(program_of(HASHED[0], db))


def test_the_cheaper_one_is_taken(db: gquery.Connection, tune: Tune) -> None:
    """The bytes of both sides against the rows that each rank enters, by the figures of tuning."""
    tune(tuning.distribution, hashed_most=1.0, hashed_us=0.0, entered_ps=1e6)
    assert by_hash(program_of(HASHED[0], db))
    tune(tuning.distribution, hashed_most=1.0, hashed_us=0.0, entered_ps=0.0)
    assert not by_hash(program_of("SELECT l.n, r.m FROM l JOIN r ON r.k = l.k", db))


def test_rows_in_the_order_of_their_key_are_not_divided(tune: Tune) -> None:
    """Their table costs little to have on every rank; one of sparse keys is dear, and so is one whose rows come in no order."""
    tune(tuning.distribution, hashed_most=0.9, hashed_us=0.0)
    rows = 40_000
    numbers, sparse = np.arange(rows), np.arange(rows) * 0x1E3779B97F4A7C1
    mixed = np.random.default_rng(3).permutation(rows)
    with gquery.connect(device="python", devices=2) as connection:
        connection.register("p", {"n": mixed // 2, "s": sparse[mixed], "w": numbers})
        connection.register("in_order", {"n": numbers // 2, "v": numbers % 100})
        connection.register("mixed", {"n": mixed // 2, "v": numbers % 100})
        connection.register("hashed", {"s": sparse, "v": numbers % 100})
        asked = "SELECT count(*), sum(v), sum(w) FROM p JOIN {} USING ({})"
        assert not by_hash(program_of(asked.format("in_order", "n"), connection))
        assert by_hash(program_of(asked.format("hashed", "s"), connection))
        assert by_hash(program_of(asked.format("mixed", "n"), connection))


def test_the_second_run_and_after_the_data_grew(db: gquery.Connection) -> None:
    sql = HASHED[1]
    first = db.sql(sql).fetchall()
    assert db.sql(sql).fetchall() == first
    db.register("l", pa.concat_tables([TABLES["l"]] * 2))
    assert db.sql(sql).fetchall()[0][0] == 2 * first[0][0]


@pytest.mark.parametrize("function", [partition_rows.partition_rows, heavy_keys.sample_keys])
@pytest.mark.parametrize("failing", [0, 3])
def test_a_rank_that_fails_in_the_exchange(
    failing: int, function: Any, db: gquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    want = db.sql(HASHED[1]).fetchall()

    def fails(*args: Any) -> Any:
        if threading.current_thread().name == f"gquery-rank-{failing}":
            raise gquery.OutOfMemoryError("no memory, on purpose")
        return function(*args)

    with monkeypatch.context() as patch:
        patch.setattr(f"gquery.execution.hashed_rows.{function.__name__}", fails)
        with pytest.raises(gquery.OutOfMemoryError, match="on purpose"):
            db.sql(f"{HASHED[1]} AND l.n >= 0").fetchall()  # for the first time, when keys are sampled
    assert db.sql(HASHED[1]).fetchall() == want


def test_failed_allocations(db: gquery.Connection) -> None:
    """Whichever allocation of whichever rank fails: one clear error, and the next run is right."""
    want = db.sql(HASHED[1]).fetchall()
    failed = 0
    for number in range(1, 60, 7):
        with failing_allocations(number), contextlib.suppress(gquery.OutOfMemoryError):
            failed += 1
            assert db.sql(HASHED[1]).fetchall() == want
            failed -= 1
    assert failed and db.sql(HASHED[1]).fetchall() == want
