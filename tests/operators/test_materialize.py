"""Collecting rows as a GPU does: marked in a bitmap by the lanes of warps, or counted by row, then written."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.arrow import export_table
from gquery.expression.facts import NOT_IN
from gquery.kernels.builtin import define, scans
from gquery.operators.materialize import materialize_mode
from gquery.planner.physical import Materialize, Pipeline, Probe
from tests.support.harness import compare, expect
from tests.support.lanes import Lanes, answer
from tests.support.marks import one_in


@cache
def tables() -> dict[str, pa.Table]:
    r = np.random.default_rng(7)
    rows = 2_500  # more than one batch of all lanes, and a last warp that is not full
    k = r.integers(0, 60, rows)
    t = {
        "id": pa.array(range(rows)),
        "k": pa.array([None if x == 7 else int(x) for x in k], pa.int64()),
        "x": pa.array(r.integers(-100, 100, rows)),
        "s": pa.array([f"text {x}" * (x % 3) for x in r.integers(0, 900, rows)]),
        "w": pa.array([x * 10**20 for x in r.integers(0, 9, rows).tolist()], pa.decimal128(38, 0)),
    }
    u = {"k": range(0, 60, 2), "y": [3 * y for y in range(30)], "name": [f"name {y}" for y in range(30)]}
    many = {"k": [y // 5 for y in range(120)], "z": range(120)}
    return {"t": pa.table(t), "u": pa.table(u), "many": pa.table(many)}


@cache
def connection() -> gquery.Connection:
    found = gquery.connect(device="cpu")
    for name, table in tables().items():
        found.register(name, table)
    found.sql("SELECT count(*) FROM t JOIN u USING (k)").fetchall()  # from here on it is known that u.k is unique
    return found


MARKED = (
    "SELECT id, x, s, w FROM t WHERE x > 20",
    "SELECT id FROM t WHERE x > 99",
    "SELECT id, k, x + id AS n FROM t WHERE k < 50 AND x % 3 = 0",
    "SELECT id, k, CASE WHEN k > 30 THEN x END AS n FROM t WHERE x BETWEEN -50 AND 90",
    "SELECT id, y, name, s FROM t JOIN u USING (k) WHERE x < 40",
    "SELECT id, x FROM t JOIN u USING (k) WHERE x + y > 10",
    "SELECT id, y FROM t LEFT JOIN u USING (k) WHERE x < 40",
    "SELECT id, name FROM t LEFT JOIN u ON t.k = u.k AND x > y WHERE x < 70",
    "SELECT id, s FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AND x > -50",
    "SELECT id, s FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.y < t.x)",
    "SELECT id, z FROM t JOIN u USING (k) ASOF JOIN many ON t.k % 24 = many.k AND y >= many.z",  # y is a bound alone
    "SELECT id, k IN (SELECT k FROM u) AS m FROM t WHERE x > 0",
    "SELECT id, (SELECT name FROM u WHERE u.k = t.k) AS m FROM t WHERE x > 0",
)
COUNTED = (
    "SELECT id, z FROM t JOIN many USING (k)",
    "SELECT id, z, s FROM t JOIN many USING (k) WHERE x > z",
    "SELECT id, z FROM t LEFT JOIN many USING (k) WHERE x > 60",
    "SELECT id, z, y FROM t JOIN many USING (k) JOIN u USING (k)",
)


def modes(sql: str) -> set[str]:
    works = [s.work for s in connection().program(sql, "cuda").stages]
    return {
        materialize_mode(w.steps, True) for w in works if isinstance(w, Pipeline) and isinstance(w.sink, Materialize)
    }


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("sql", one_in(2, MARKED + COUNTED))
def test_collect_on_lanes(sql: str, partitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ("selection_bitmap" if sql in MARKED else "count_then_scatter") in modes(sql)
    found = export_table(answer(connection(), sql, monkeypatch, partitions))
    types, want = expect(sql, tables())
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert compare(rows, want, False, types) is None
    ids = found["id"].to_pylist()
    assert ids == sorted(ids), "rows keep the order of their source"


def test_the_second_pass_tests_nothing_again() -> None:
    """What a row passed is known of it, so that columns only for tests are not read, and tables without columns not probed."""
    from gquery.operators.codegen import units

    sql = "SELECT id FROM t JOIN u USING (k) WHERE x < 40 AND EXISTS (SELECT 1 FROM many WHERE many.k = t.k)"
    work = connection().program(sql, "cuda").stages[-1].work
    assert isinstance(work, Pipeline)
    assert sum(isinstance(s, Probe) for s in work.steps) == 2
    count, write = units(work, "cuda")
    assert len(count.bindings) > 5
    assert [p.name for p in write.kernel.parameters] == ["s0", "s1", "c0", "o0"]


@pytest.mark.parametrize("rows", [0, 1, 31, 32, 33, 1_000, 100_000])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_bitmaps(rows: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = np.random.default_rng(rows).random(rows) < share
    padded = np.packbits(np.resize(np.append(flags, np.zeros(31, bool)), -(-rows // 32) * 32), bitorder="little")
    bits = padded.view(np.uint32)
    found = scans.rows_of_bits(bits)
    assert found.dtype == np.uint32
    assert np.array_equal(found, np.flatnonzero(flags))
    assert np.array_equal(scans.flags_of_bits(bits, rows), flags)
    if rows > 1_000:
        return  # many threads of Python
    monkeypatch.setattr(define, "get_target", lambda name: Lanes())
    for form, none in (
        (flags, 0), (flags.astype(np.uint8) * 9, 0), (flags.astype(np.int64) << 40, 0),
        (np.where(flags, np.uint32(3), np.uint32(NOT_IN)), NOT_IN),
    ):  # fmt: skip
        assert np.array_equal(scans.bits_of(form, none), bits)
        assert np.array_equal(scans.compact(form, none), found)


@pytest.mark.parametrize("rows", [0, 1, 8, 9, 30_000])
def test_starts_by_row(rows: int) -> None:
    from gquery.device.device import cpu_device

    counts: Any = scans.zeros_by_row(rows, cpu_device())
    counts[:rows] = np.random.default_rng(rows).integers(0, 5, rows)
    starts, count = scans.starts_by_row(counts)
    assert count.bound == counts.sum()
    assert np.array_equal(starts, (np.cumsum(counts, dtype=np.int64) - counts)[:: scans.ROWS_A_START])


@pytest.mark.parametrize("partitions", [1, 2])
def test_flags_of_groups_are_bits_on_a_gpu(partitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only whether a value is there is asked: a bit a value, in place or packed together."""
    r = np.random.default_rng(3)
    values = r.integers(10, 40_000, 3_000)
    found = gquery.connect(device="cpu").register("v", pa.table({"v": values, "w": values % 9_000}))
    assert export_table(answer(found, "SELECT count(DISTINCT v) FROM v", monkeypatch, partitions))[0].to_pylist() == [
        len(set(values.tolist()))
    ]
    kept = export_table(answer(found, "SELECT DISTINCT w FROM v", monkeypatch, partitions))[0].to_pylist()
    assert sorted(kept) == sorted(set((values % 9_000).tolist()))


@pytest.mark.parametrize("rows", [1_000, 1_500])
def test_threads_that_take_fewer_rows_than_a_count_covers(rows: int) -> None:
    """They take as many: two that count in one place would lose what the other has found."""
    sql = MARKED[0]
    types, want = expect(sql, tables())
    with tuning.using(replace(tuning.threads, morsel_rows=rows)), gquery.connect(device="cpu") as fresh:
        fresh.sql("SET interpret_limit = 0")
        fresh.register("t", tables()["t"])
        wrong = compare(fresh.sql(sql).fetchall(), want, False, types)
    assert wrong is None, wrong
