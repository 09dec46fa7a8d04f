"""The different values of a column, by sorting it as a GPU does where there are many that lie far apart."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.arrow import export_table
from gquery.planner.physical import DistinctRows
from tests.support.harness import compare, expect
from tests.support.lanes import answer
from tests.support.tuned import Tune


@cache
def tables() -> dict[str, pa.Table]:
    r = np.random.default_rng(5)
    far = r.integers(-(2**62), 2**62, 700)
    columns = {
        "k": r.choice(far, 2_000), "n": r.choice(2_000, 2_000), "x": r.integers(0, 10, 2_000),
        "edge": np.where(r.random(2_000) < 0.5, -(2**63), 2**63 - 1),
    }  # fmt: skip
    null = pa.array([None if x % 7 == 0 else x for x in r.choice(far, 2_000).tolist()])
    return {"t": pa.table({**columns, "null": null}), "empty": pa.table({"k": np.array([], np.int64)})}


@cache
def connection() -> gquery.Connection:
    found = gquery.connect(device="cpu")
    for name, table in tables().items():
        found.register(name, table)
    return found


SORTED = (
    "SELECT count(DISTINCT k) FROM t",
    "SELECT count(DISTINCT k), count(DISTINCT k) + 1 FROM t WHERE x > 3",
    "SELECT count(DISTINCT k) FROM t WHERE k % 2 = 3",
    "SELECT DISTINCT k FROM t",
    "SELECT k FROM t WHERE x < 5 GROUP BY k",
    "SELECT sum(DISTINCT k / 1000), count(*) FROM (SELECT DISTINCT k FROM t)",
    "SELECT count(DISTINCT edge), min(edge) FROM (SELECT DISTINCT edge FROM t)",
)
OTHERWISE = (
    "SELECT count(DISTINCT n) FROM t",  # a small range
    "SELECT count(DISTINCT null) FROM t",
    "SELECT count(DISTINCT k), count(k) FROM t",
    "SELECT k, count(*) FROM t GROUP BY k",
    "SELECT DISTINCT k, x FROM t",
    "SELECT count(DISTINCT k + 1) FROM t",
    "SELECT count(DISTINCT k) FROM empty",
)


@pytest.mark.parametrize("sql", SORTED + OTHERWISE)
def test_distinct(sql: str, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    tune(tuning.group_layouts, distinct_bytes_a_value=2**60)  # no value fits the cache
    sorts = any(isinstance(s.work, DistinctRows) for s in connection().program(sql, "cuda").stages)
    if sql != OTHERWISE[2]:  # two aggregates, of which one sorts
        assert sorts == (sql in SORTED)
    types, want = expect(sql, tables())
    found = export_table(answer(connection(), sql, monkeypatch))
    assert compare([tuple(row.values()) for row in found.to_pylist()], want, False, types) is None


def test_few_values_are_hashed() -> None:
    works = [s.work for s in connection().program("SELECT count(DISTINCT k) FROM t", "cuda").stages]
    assert not any(isinstance(w, DistinctRows) for w in works)
