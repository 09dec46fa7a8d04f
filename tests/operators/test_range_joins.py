"""Joins by order: ranges, intervals that overlap, bounds on one side, with and without equal keys, in every kind."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.arrow import export_table
from gquery.kernels.builtin.reach import reach_tree
from gquery.kernels.primitives import ranges
from tests.support.harness import Tables, assert_same, compare, expect
from tests.support.lanes import answer
from tests.support.marks import one_in
from tests.support.tuned import Tune

KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
CONDITIONS = (
    "p.x BETWEEN b.low AND b.high",
    "p.x > b.low AND p.x < b.high",
    "b.low BETWEEN p.x - 3 AND p.x + 2",
    "p.low <= b.high AND b.low <= p.high",
    "p.low < b.high AND p.high > b.low AND p.g <> b.g",
    "p.x < b.low",
    "p.x >= b.high AND p.g = 1",
    "p.f >= b.f AND p.f <= b.f2",
    "p.day BETWEEN b.day AND b.day + 3",
    "p.ts < b.ts AND p.x > b.low AND b.high > p.low",
    "p.m <= b.m AND p.wide >= b.wide",
)
KEYS = ("", "p.g = b.g AND ", "p.g = b.g AND p.t = b.t AND ", "p.t IS NOT DISTINCT FROM b.t AND ")


def _table(seed: int, rows: int, width: int, nulls: float = 0.15) -> pa.Table:
    """Intervals, of which a few are long, with keys that repeat, and values of other types at their ends."""
    r = np.random.default_rng(seed)
    low = r.integers(-50, 50, rows)
    high = low + np.where(r.random(rows) < 0.1, 60, r.integers(0, width, rows))
    floats = r.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2.25, 1e300], rows)

    def column(values: object, kind: pa.DataType) -> pa.Array:
        missing = r.random(rows) < nulls
        return pa.array([None if m else v for v, m in zip(values, missing, strict=True)], kind)  # type: ignore[call-overload]

    day = datetime.date(2020, 1, 1)
    return pa.table(
        {
            "id": pa.array(range(rows)),
            "x": column(r.integers(-55, 60, rows).tolist(), pa.int32()),
            "low": column(low.tolist(), pa.int32()),
            "high": column(high.tolist(), pa.int64()),
            "g": pa.array(r.integers(0, 3, rows)),
            "t": column(r.choice(["a", "b", "ä"], rows).tolist(), pa.string()),
            "f": column(floats.tolist(), pa.float64()),
            "f2": column((floats * 2).tolist(), pa.float32()),
            "day": column([day + datetime.timedelta(days=int(d)) for d in low], pa.date32()),
            "ts": column([datetime.datetime(2020, 1, 1) + datetime.timedelta(minutes=int(d)) for d in high], pa.timestamp("us")),
            "m": column([2**63 - 1 if v > 40 else -(2**63) if v < -40 else int(v) for v in low], pa.int64()),
            "wide": column([int(v) * 10**20 for v in low], pa.decimal128(30, 0)),
        }
    )  # fmt: skip


def _tables(seed: int, probes: int = 90, builds: int = 40, width: int = 9) -> dict[str, pa.Table]:
    return {"p": _table(seed, probes, width), "b": _table(seed + 1, builds, width)}


def _sql(kind: str, condition: str) -> str:
    columns = "p.id" if kind in ("SEMI JOIN", "ANTI JOIN") else "p.id AS i, b.id AS j, b.high, p.f"
    return f"SELECT {columns} FROM p {kind} b ON {condition}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keys", KEYS)
def test_every_kind_and_condition(kind: str, keys: str, tune: Tune) -> None:
    tune(replace(tuning.join_layouts, sorted_rows=0))
    first = (KINDS.index(kind) + KEYS.index(keys)) % 4
    for n, condition in list(enumerate(CONDITIONS))[first::4]:
        assert_same(_sql(kind, keys + condition), _tables(n), targets=("python",), ranks=(1, 3)[: 1 + (n % 4 == 0)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keys", KEYS)
def test_every_kind_with_every_condition(kind: str, keys: str, tune: Tune) -> None:
    tune(replace(tuning.join_layouts, sorted_rows=0))
    for n, condition in enumerate(CONDITIONS):
        for seed in range(6):
            assert_same(_sql(kind, keys + condition), _tables(17 * seed + n), ranks=(1, 3), targets=("python",))


@pytest.mark.parametrize("kind", one_in(2, KINDS))
def test_compiled(kind: str, tune: Tune) -> None:
    tune(replace(tuning.join_layouts, sorted_rows=0))
    for keys, condition in (("", CONDITIONS[0]), (KEYS[1], CONDITIONS[4]), ("", CONDITIONS[7])):
        assert_same(
            _sql(kind, keys + condition), _tables(7), targets=("cpu",), ranks=(1,), settings={"interpret_limit": "0"}
        )


@pytest.mark.parametrize(("probes", "builds"), [(0, 5), (5, 0), (1, 1), (0, 0), (40, 1)])
@pytest.mark.parametrize("kind", KINDS)
def test_few_rows(kind: str, probes: int, builds: int) -> None:
    for condition in (CONDITIONS[0], CONDITIONS[2], CONDITIONS[5]):
        assert_same(_sql(kind, condition), _tables(3, probes, builds), targets=("python",), ranks=(1,))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT p.id, EXISTS (SELECT 1 FROM b WHERE p.x BETWEEN b.low AND b.high) FROM p",
        "SELECT p.id, p.g IN (SELECT b.g FROM b WHERE p.x BETWEEN b.low AND b.high) FROM p",
        "SELECT p.id, p.x > ANY (SELECT b.low FROM b WHERE b.high > p.id) FROM p",
        "SELECT p.id, (SELECT count(*) FROM b WHERE b.low <= p.x AND b.high >= p.x) FROM p",
        "SELECT p.id, (SELECT b.id FROM b WHERE b.id > p.id AND b.id < p.id + 2) FROM p",
        "SELECT count(*) FROM p, b, p q WHERE p.x BETWEEN b.low AND b.high AND q.g = b.g AND q.x < p.x",
        "SELECT count(*) FROM p JOIN (SELECT low + 1 AS l, high FROM b WHERE g > 0) b ON p.x BETWEEN b.l AND b.high",
        "SELECT b.g, sum(p.x) FROM p JOIN b ON p.x BETWEEN b.low AND b.high WHERE b.high < 30 GROUP BY b.g",
        "SELECT count(*) FROM b JOIN b c ON b.low <= c.high AND c.low <= b.high AND b.id < c.id",
    ],
)
def test_queries(sql: str, tune: Tune) -> None:
    tune(replace(tuning.join_layouts, sorted_rows=0))
    assert_same(sql, _tables(11), targets=("python",))


def _connection(tables: Tables, **settings: str) -> gquery.Connection:
    connection = gquery.connect(**{"device": "python", **settings})  # type: ignore[arg-type]
    for name, table in tables.items():
        connection.register(name, table)
    return connection


def test_the_plan_says_what_is_searched() -> None:
    connection = _connection(_tables(1))
    shown = connection.explain(_sql("JOIN", CONDITIONS[0]), "pipelines")
    assert "rows sorted by low" in shown
    assert "reach tree of high" in shown
    shown = connection.explain(_sql("LEFT JOIN", CONDITIONS[2]), "pipelines")
    assert "low >= " in shown
    assert "low <= " in shown
    assert "loop" in connection.explain("SELECT 1 FROM p JOIN b ON p.t < b.t", "pipelines")


def test_constants_of_a_template() -> None:
    tables = _tables(5)
    connection = _connection(tables)
    for low, high in ((0, 3), (-9, 9), (4, -4), (1, 1)):
        sql = f"SELECT p.id, b.id FROM p JOIN b ON b.low BETWEEN p.x + {low} AND p.x + {high}"
        types, want = expect(sql, tables)
        assert compare(connection.sql(sql).fetchall(), want, False, types) is None


@pytest.mark.parametrize("limit", [None, "1MB"])
def test_within_memory(limit: str | None, tune: Tune) -> None:
    tune(replace(tuning.join_layouts, sorted_rows=0))
    tables: Tables = _tables(2, 6_000, 3_000, 3)
    sql = "SELECT count(*), sum(p.id - b.id) FROM p JOIN b ON p.g = b.g AND p.x BETWEEN b.low AND b.high"
    types, want = expect(sql, tables)
    connection = _connection(tables, device="cpu", **({} if limit is None else {"memory_limit": limit}))
    assert compare(connection.sql(sql).fetchall(), want, False, types) is None


def test_a_reach_tree_finds_the_last() -> None:
    r = np.random.default_rng(3)
    for size in (0, 1, 2, 3, 7, 8, 9, 33):
        values = r.integers(-5, 5, size)
        values[r.random(size) < 0.1] = 2**63 - 1
        tree, leaves = reach_tree(values.astype(np.int64))
        pointer = memoryview(tree.data)
        for end in range(size + 1):
            for value in (-6, -2, 0, 4, 5, 2**63 - 1, -(2**63)):
                there = [n for n in range(end) if values[n] >= value]
                assert ranges.last_reaching(pointer, leaves, end, value) == (there[-1] if there else -1)
                above = [n for n in range(end) if values[n] > value]
                assert ranges.last_reaching_above(pointer, leaves, end, value) == (above[-1] if above else -1)


def test_binary_searches() -> None:
    r = np.random.default_rng(4)
    for size in (0, 1, 2, 5, 16, 17):
        keys = np.sort(r.integers(-4, 4, size)).astype(np.int64)
        pointer = memoryview(keys.data)
        for low in range(size + 1):
            for high in range(low, size + 1):
                for value in range(-6, 7):
                    part = keys[low:high]
                    assert ranges.first_at_least(pointer, low, high, value) == low + np.searchsorted(
                        part, value, "left"
                    )
                    assert ranges.first_above(pointer, low, high, value) == low + np.searchsorted(part, value, "right")


def test_as_a_gpu_does(monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    tune(replace(tuning.join_layouts, sorted_rows=0))
    tables = _tables(9)
    for sql in (_sql("LEFT JOIN", CONDITIONS[0]), _sql("JOIN", KEYS[1] + CONDITIONS[2])):
        types, want = expect(sql, tables)
        table = answer(_connection(tables), sql, monkeypatch)
        rows = [tuple(r.values()) for r in export_table(table).to_pylist()]
        assert compare(rows, want, False, types) is None


@pytest.mark.cuda
@pytest.mark.parametrize("kind", KINDS)
def test_on_a_gpu(kind: str, tune: Tune) -> None:
    tune(replace(tuning.join_layouts, sorted_rows=0))
    for n, condition in enumerate(CONDITIONS):
        for keys in KEYS[:2]:
            assert_same(
                _sql(kind, keys + condition),
                _tables(n),
                targets=("cuda",),
                ranks=(1,),
                settings={"interpret_limit": "0"},
            )
