"""Groups: keys of any size, and every place in which a GPU keeps accumulators, by kernels that run in a simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.kernels.builtin import grouping
from gquery.kernels.primitives import block, simulated
from gquery.operators import accumulate, accumulate_shared
from gquery.operators.merge_groups import _distinct
from tests.support.harness import assert_same, compare, expect
from tests.support.marks import and_slow
from tests.support.simulated_target import simulated_connection
from tests.support.tuned import Tune

LOW, HIGH = -(2**63), 2**63 - 1


def table(rows: int) -> pa.Table:
    r = np.random.default_rng(3)
    small = r.integers(0, 9, rows)
    skewed = np.where(r.random(rows) < 0.5, 17, r.integers(0, 200, rows))
    return pa.table(
        {
            "small": small,
            "skewed": skewed,
            "absent": pa.array([None if k % 4 == 0 else int(k) for k in skewed]),
            "sparse": skewed * np.int64(0x1E3779B97F4A7C15) + 12345,
            "zero": (skewed - 17) * np.int64(0x1E3779B97F4A7C15),
            "one": np.full(rows, 7),
            "v": r.integers(-(10**12), 10**12, rows),
            "big": r.integers(LOW // 2, HIGH // 2, rows),
            "f": r.integers(-1000, 1000, rows) / 8,
            "n": pa.array([None if x < 3 else int(x) for x in r.integers(0, 10, rows)]),
            "text": pa.array([f"text {k}" for k in r.integers(0, 10**9, rows)]),
        }
    )


EDGES = pa.table(
    {
        "k": pa.array([LOW, HIGH, 0, -1, 1, LOW, HIGH, 0, 0, LOW + 1, HIGH - 1] * 3, pa.int64()),
        "m": pa.array([None, HIGH, 0, -1, 1, None, HIGH, 0, 0, LOW + 1, HIGH - 1] * 3, pa.int64()),
        "l": pa.array([None, LOW, 0, -1, 1, None, LOW, 0, 0, LOW + 1, HIGH - 1] * 3, pa.int64()),
        "v": pa.array(range(33), pa.int64()),
    }
)
TABLES = {"t": table(200), "edges": EDGES}
MANY = {"t": table(300_000)}

AGGREGATES = (
    "sum(v)",
    "count(*), sum(v), min(v), max(v)",
    "sum(f), min(n)",
    "sum(n), count(n), avg(v), max(f)",
    "avg(big), sum(v) FILTER (WHERE n > 5), min(f) FILTER (WHERE n IS NULL)",
)
KEYS = ("small", "skewed", "absent", "sparse", "zero", "one", "small, sparse", "skewed + v * 0", "text")

LOCATIONS = {  # words a thread, words a block, accumulators that are held, and that are loaded at once
    "as they are": (48, 8192, 8, 32),
    "block": (0, 8192, 8, 32),
    "held": (0, 0, 8, 32),
    "held for one": (0, 0, 1, 32),
    "global": (0, 0, 0, 32),
    "one after another": (0, 0, 0, 1),
}


@pytest.mark.long
@pytest.mark.parametrize("location", and_slow(LOCATIONS, "held for one", "global", "one after another"))
def test_locations_of_accumulators(location: str, tune: Tune) -> None:
    tune(tuning.accumulators, most_evictions=2)
    with simulated_connection() as connection:
        check_locations(connection, location, tune, TABLES)


@pytest.mark.cuda
@pytest.mark.parametrize("location", LOCATIONS)
def test_locations_of_accumulators_on_a_gpu(location: str, tune: Tune) -> None:
    with gquery.connect(device="cuda") as connection:
        connection.sql("SET interpret_limit = 0")
        check_locations(connection, location, tune, MANY)


def check_locations(connection: gquery.Connection, location: str, tune: Tune, tables: dict[str, pa.Table]) -> None:
    private, shared, held, loaded = LOCATIONS[location]
    tune(tuning.accumulators, private_words=private, block_words=shared, register_words=held, loaded_words=loaded)
    connection.register("t", tables["t"])
    plan = str(connection.explain("SELECT skewed, count(*) FROM t GROUP BY skewed", "pipelines"))
    assert ("shared columns" if shared else "direct-address arrays") in plan
    for key in KEYS:
        for aggregates in AGGREGATES:
            check(connection, f"SELECT {key}, {aggregates} FROM t GROUP BY {key}", tables)


def check(connection: gquery.Connection, sql: str, tables: dict[str, pa.Table]) -> None:
    types, want = expect(sql, tables)
    wrong = compare(connection.sql(sql).fetchall(), want, False, types)
    assert wrong is None, f"{wrong}\n{sql}"


def test_a_block_with_too_few_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that find none in the block's table are accumulated in the state's."""
    for module in (accumulate, accumulate_shared):
        monkeypatch.setattr(module, "shared_slots", lambda sink: 4)
    with simulated_connection() as connection:
        for name, rows in TABLES.items():
            connection.register(name, rows)
        for aggregates in AGGREGATES:
            check(connection, f"SELECT sparse, {aggregates} FROM t GROUP BY sparse", TABLES)


def test_threads_that_want_one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread comes between each look into the block's table and the claim of a place."""

    def load(word: int) -> int:
        found = simulated.shared_load_i64(word)
        simulated.turns.get()(False)
        return found

    monkeypatch.setattr(block, "shared_load_i64", load)
    with simulated_connection() as connection:
        connection.register("t", TABLES["t"])
        for _ in range(3):
            check(connection, "SELECT sparse, sum(v) FROM t GROUP BY sparse", TABLES)


def test_fan_out_into_groups() -> None:
    """What follows a probe is written more than once where rows without a match go on too."""
    with simulated_connection() as connection:
        for name, rows in TABLES.items():
            connection.register(name, rows)
        check(
            connection,
            "SELECT a.sparse, count(*), sum(b.v) FROM t a LEFT JOIN edges b ON a.small = b.k GROUP BY a.sparse",
            TABLES,
        )


@pytest.mark.parametrize("key", ["k", "m", "l", "k, v % 2", "v * 1000000007", "k % 3"])
def test_keys_of_any_size(key: str) -> None:
    assert_same(f"SELECT {key}, sum(v), min(v), count(*) FROM edges GROUP BY {key}", TABLES)


@pytest.mark.parametrize("key", ["k", "m", "l"])
def test_keys_of_any_size_in_a_simulation(key: str) -> None:
    with simulated_connection() as connection:
        for name, rows in TABLES.items():
            connection.register(name, rows)
        check(connection, f"SELECT {key}, sum(v), min(v), count(*) FROM edges GROUP BY {key}", TABLES)


def test_distinct_and_counts_of_any_size() -> None:
    assert_same("SELECT DISTINCT k FROM edges", TABLES)
    assert_same("SELECT DISTINCT m FROM edges", TABLES)
    assert_same("SELECT count(DISTINCT k), count(DISTINCT m), count(DISTINCT l) FROM edges", TABLES)


def test_a_table_that_is_full_grows() -> None:
    rows: dict[str, Any] = {"t": pa.table({"k": np.arange(5000) * np.int64(10**15), "v": np.ones(5000)})}
    assert_same("SELECT k, sum(v) FROM t WHERE v > 0 AND k % 7 < 6 GROUP BY k", rows)


@pytest.mark.long
def test_a_join_makes_more_groups_than_its_source_has_rows() -> None:
    few = {"few": pa.table({"i": pa.array([*range(59), None], pa.int16()), "d": pa.array(range(100, 160), pa.int32())})}
    assert_same("SELECT DISTINCT a.i::BIGINT * 10000 + b.d FROM few a, few b", few)
    assert_same(
        "SELECT a.i::INT * 1000, b.i::INT * 1000, count(*) FROM few a LEFT JOIN few b ON a.i <> b.i OR a.d < b.d GROUP BY 1, 2",
        few,
    )


@pytest.mark.parametrize("rows", [0, 1, 60, 4_000])
@pytest.mark.parametrize("size", [1, 70, 5_000, None])
def test_distinct_keys_of_ranks(rows: int, size: int | None) -> None:
    """By flags where the range of keys is small, else by sorting: the same."""
    keys = np.random.default_rng(rows).integers(0, size or 10**12, rows)
    distinct, numbers = _distinct(keys, size)
    want, places = np.unique(keys, return_inverse=True)
    assert np.array_equal(distinct, want) and np.array_equal(numbers, places)
    assert distinct.dtype == numbers.dtype == np.int64


@pytest.mark.parametrize("rows", [0, 1, 5, 60, 30_000])
@pytest.mark.parametrize("interpreted", [True, False])
def test_keys_are_told_apart_by_a_hash_table(rows: int, interpreted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any integers of 64 bits, among them 0 and those at both ends; of which each is there once, or all are the same."""
    monkeypatch.setattr("gquery.kernels.builtin.define.is_interpreted", lambda kernel, rows: interpreted)
    drawn = np.random.default_rng(rows).integers(-rows // 3 - 1, rows // 3 + 2, rows)
    if rows > 4:
        drawn[:4] = [0, -(2**63), 2**63 - 1, 1]
    for keys in (drawn, drawn * 0, drawn * 0 + 1, np.arange(rows), np.unique(drawn[drawn != 0])):
        distinct, numbers = grouping.numbered_keys(keys)
        assert np.array_equal(np.sort(distinct), np.unique(keys))
        assert np.array_equal(distinct[numbers], keys)
        assert distinct.dtype == numbers.dtype == np.int64
