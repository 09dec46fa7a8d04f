"""Tables of groups that are filled in windows of their slots: kernels run in a simulation, and on a GPU."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.device.profile import get_profile
from tests.support.harness import compare, expect
from tests.support.simulated_target import simulated_connection
from tests.support.tuned import Tune

QUERIES = (
    "SELECT k, count(*), sum(v) FROM t GROUP BY k",
    "SELECT k, count(v), min(v), max(f), avg(f) FROM t WHERE s LIKE '%7%' AND v > 10 GROUP BY k",
    "SELECT n, sum(v), count(n) FROM t GROUP BY n",
    "SELECT k, n % 3, sum(v) FROM t WHERE v < 0 GROUP BY ALL",
    "SELECT k, count(*) FROM t WHERE v > 10 GROUP BY k HAVING count(*) > 3",
    "SELECT k, sum(w) FROM t GROUP BY k",
)


def _table(rows: int) -> pa.Table:
    r = np.random.default_rng(5)
    key = np.where(r.random(rows) < 0.3, 41, r.integers(-20, 180, rows))  # one of them often
    return pa.table(
        {
            "k": key,
            "n": pa.array(r.integers(0, 150, rows), mask=r.random(rows) < 0.2),
            "v": r.integers(-50, 100, rows),
            "w": r.integers(-(2**42), 2**42, rows),
            "f": r.integers(-1000, 1000, rows) / 8,
            "s": pa.array([f"text {x}" for x in r.integers(0, 100, rows)]),
            "p": pa.array([f"plain text {x}" for x in range(rows)]),
        }
    )


def _check(connection: gquery.Connection, tables: dict[str, pa.Table], tune: Tune, runs: int) -> None:
    """Each window has 50 slots of one word, or fewer of several."""
    tune(tuning.accumulators, private_words=0, block_words=0)
    tune(tuning.windows, cache_fraction=400 / get_profile(connection.device).cache_bytes, rows_a_slot=0, most=99)
    connection.register("t", tables["t"])
    for sql in QUERIES:
        types, want = expect(sql, tables)
        for _ in range(runs):
            wrong = compare(connection.sql(sql).fetchall(), want, False, types)
            assert wrong is None, f"{wrong}\n{sql}"
            time.sleep(0.01 * (runs > 1))


def test_windows_in_a_simulation(tune: Tune) -> None:
    tables = {"t": _table(300)}
    with simulated_connection() as connection:
        _check(connection, tables, tune, 1)
        plan = connection.sql("EXPLAIN (PIPELINES) SELECT k, count(*) FROM t GROUP BY k").fetchall()[0][-1]
        assert "windows, 200 slots" in plan


@pytest.mark.cuda
@pytest.mark.parametrize("rows", [300, 300_000])
def test_windows_on_a_gpu(rows: int, tune: Tune) -> None:
    with gquery.connect(device="cuda") as connection:
        connection.sql("SET interpret_limit = 0")
        _check(connection, {"t": _table(rows)}, tune, 5)


def test_rows_in_order_of_their_key_need_no_windows(tune: Tune) -> None:
    made = _table(300).sort_by("k")
    tune(tuning.accumulators, private_words=0, block_words=0)
    with simulated_connection() as connection:
        tune(tuning.windows, cache_fraction=400 / get_profile(connection.device).cache_bytes, rows_a_slot=0, most=99)
        connection.register("t", made)
        assert "windows" not in str(connection.explain("SELECT k, count(*) FROM t GROUP BY k", "pipelines"))
        assert "windows" in str(connection.explain("SELECT k + v, count(*) FROM t GROUP BY 1", "pipelines"))


def test_filters_that_are_tested_in_each_window(tune: Tune) -> None:
    """Those that read no more of a row than its number has, and that most rows get past; a row's number is read for others."""
    predicates = {
        "v > -40": True,
        "v > -40 AND f < 90": False,  # 1 byte and 8
        "v > 90": False,
        "p NOT LIKE '%ext 41%'": True,
        "NOT contains(p, 'ext 41') AND v > -40": True,
        "NOT p LIKE '%ext 41%' OR v < 0": False,
        "p <> 'text'": False,
        "p NOT LIKE '%7%'": False,  # no part is long enough for a scan
        "k <> 5 AND v > -40": True,
    }
    tables = {"t": _table(300)}
    tune(tuning.accumulators, private_words=0, block_words=0)
    tune(tuning.text_scans, least_rows=1)
    tune(tuning.encoding, largest_dictionary=250)
    with simulated_connection() as connection:
        tune(tuning.windows, cache_fraction=400 / get_profile(connection.device).cache_bytes, rows_a_slot=0, most=99)
        connection.register("t", tables["t"])
        for predicate, again in predicates.items():
            sql = f"SELECT k, count(*) FROM t WHERE {predicate} GROUP BY k"
            plan = str(connection.explain(sql, "pipelines"))
            assert "windows" in plan, predicate
            assert ("a selection vector" not in plan) == again, (predicate, plan)
            if again:  # texts are not simulated, bitmaps of them are
                types, want = expect(sql, tables)
                assert compare(connection.sql(sql).fetchall(), want, False, types) is None
