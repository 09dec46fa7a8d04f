"""approx_count_distinct by registers: how near it is, what it takes for equal, and that every device and plan says the same."""

from __future__ import annotations

import datetime
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.functions.approximate import REGISTERS, STANDARD_ERROR, _estimate, _rank, _register, _weight
from gquery.kernels.targets.python import primitives
from tests.support.harness import connect
from tests.support.lanes import answer
from tests.support.tuned import Tune

ROWS = 4_000
NEAR = 3 * STANDARD_ERROR


def values(count: int, start: int) -> pa.Table:
    """Rows whose columns have ``count`` different values each, NULLs besides."""
    n = (np.arange(ROWS) * 7919) % count + start
    null = np.arange(ROWS) % 11 == 0
    day = datetime.date(1900, 1, 1)
    return pa.table(
        {
            "g": pa.array(np.arange(ROWS) // 11 % 3),
            "i": pa.array(n, mask=null),
            "big": pa.array([2**64 - 1 - int(v) for v in n], pa.uint64(), mask=null),
            "f": pa.array(n / 7, mask=null),
            "s": pa.array([f"text {v}" for v in n], mask=null),
            "day": pa.array([day + datetime.timedelta(int(v)) for v in n], pa.date32(), mask=null),
        }
    )


TYPES = ("i", "big", "f", "s", "day")
EACH = ", ".join(f"approx_count_distinct({c}), count(DISTINCT {c})" for c in TYPES)


@pytest.mark.parametrize("count", [1, 40, 4_000])
def test_within_three_standard_errors(count: int) -> None:
    with gquery.connect("python") as db:
        db.register("t", values(count, 1_000))
        found = db.sql(f"SELECT {EACH} FROM t").fetchall()[0]
        for name, estimate, exact in zip(TYPES, found[::2], found[1::2], strict=True):
            assert abs(estimate - exact) <= max(NEAR * exact, exact < 50 and 0.5), (name, estimate, exact)


def test_groups_filters_and_sets() -> None:
    with gquery.connect("python") as db:
        db.register("t", values(4_000, 0))
        call = "approx_count_distinct(i) FILTER (WHERE i > 1000), count(DISTINCT i) FILTER (WHERE i > 1000)"
        rows = db.sql(f"SELECT g, {call} FROM t GROUP BY ROLLUP (g) ORDER BY g NULLS LAST").fetchall()
        assert len(rows) == 4
        for _, estimate, exact in rows:
            assert abs(estimate - exact) <= NEAR * exact
        whole = db.sql("SELECT approx_count_distinct(i) FILTER (WHERE i > 1000) FROM t").fetchall()[0][0]
        assert rows[3][1] == whole, "a sum of groups has the registers of all rows"
        assert db.sql("SELECT approx_count_distinct(i) FILTER (WHERE i < 0) FROM t").fetchall() == [(0,)]


def test_every_way_says_the_same(tune: Tune) -> None:
    table = {"t": values(4_000, 17)}
    sql = "SELECT g, approx_count_distinct(i), approx_count_distinct(s), approx_count_distinct(f) FROM t GROUP BY g ORDER BY g"
    want = connect("python", 1, table).sql(sql).fetchall()
    shuffled = {"t": table["t"].take(np.random.default_rng(1).permutation(ROWS))}
    assert connect("python", 1, shuffled).sql(sql).fetchall() == want
    for target, ranks in (("cpu", 1), ("python", 3)):
        assert connect(target, ranks, table).sql(sql).fetchall() == want, (target, ranks)
    tune(tuning.group_layouts, largest_state=64)
    with gquery.connect("python") as db:
        assert db.register("t", table["t"]).sql(sql).fetchall() == want, "registers in a hash table"


def test_lanes_keep_registers_in_shared_memory(monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    tune(tuning.group_layouts, register_rows=0)
    table = pa.table({"i": pa.array([None if n % 13 == 0 else n % 700 for n in range(1_000)])})
    sql = "SELECT approx_count_distinct(i) AS n FROM t"
    with gquery.connect("cpu") as db:
        db.register("t", table)
        assert "direct-address arrays, 2,048 slots" in db.explain(sql, "pipelines")
        found = answer(db, sql, monkeypatch).columns[0].data.host[:1].tolist()
        assert found == [db.sql(sql).fetchall()[0][0]]


def test_equal_values_and_few_rows(tune: Tune) -> None:
    table = pa.table({"f": [0.0, -0.0, float("nan"), -float("nan"), None, 1.5], "n": pa.nulls(6, pa.int64())})
    sql = "SELECT approx_count_distinct(f), approx_count_distinct(n), approx_count_distinct(f) FILTER (WHERE f > 9) FROM t"
    with gquery.connect("python") as db:
        db.register("t", table)
        assert db.sql(sql).fetchall() == [(3, 0, 1)]
        tune(tuning.group_layouts, register_rows=0)
        db.register("t", table)
        assert db.sql(f"SELECT * FROM ({sql})").fetchall() == [(3, 0, 1)]
        spans = "SELECT approx_count_distinct(x) FROM (VALUES (INTERVAL 1 MONTH), (INTERVAL 30 DAY), (INTERVAL 2 DAY)) AS v(x)"
        assert db.sql(spans).fetchall() == [(2,)]
        assert db.sql("SELECT approx_count_distinct(f) FROM t WHERE f > 100 AND f < 0").fetchall() == [(0,)]


@pytest.mark.parametrize("count", [10, 2_000, 10**5, 10**9, 10**14])
def test_the_estimate_of_ideal_hashes(count: int) -> None:
    """Registers as so many random hashes would leave them."""
    body = _bodies()
    rng = np.random.default_rng(count)
    each = rng.multinomial(count, [1 / REGISTERS] * REGISTERS)
    ranks = [
        int(np.ceil(-np.log2(-np.expm1(np.log(u) / n)))) for n, u in zip(each, rng.random(REGISTERS), strict=True) if n
    ]
    weights = sum(body["_weight"](min(max(r, 1), 48)) for r in ranks)
    assert abs(body["_estimate"](weights, len(ranks)) - count) <= max(NEAR * count, 1)


def test_registers_and_ranks_of_hashes() -> None:
    body = _bodies()
    cases = {
        0: (0, 48),
        -1: (REGISTERS - 1, 1),
        1: (0, 48),
        1 << 52: (0, 1),
        1 << 51: (0, 2),
        1 << 53: (1, 48),
        1 << 6: (0, 47),
    }
    assert {h: (body["_register"](h), body["_rank"](h)) for h in cases} == cases
    assert body["_estimate"](0, 0) == 0


def _bodies() -> dict[str, Any]:
    """The functions as the interpreter has them."""
    names: dict[str, Any] = dict(primitives())
    made = {}
    for f in (_register, _rank, _weight, _estimate):
        body: Any = f
        made[f.__name__] = FunctionType(body.__code__, {**body.__globals__, **names}, f.__name__)
    return made
