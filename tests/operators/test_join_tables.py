"""Join tables: what they hold, keys that are unique as expected and keys that are not, and words of every shape."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.api.startup import Target
from gquery.columns.arrow import export_table
from gquery.execution import run_with_report
from gquery.execution.feedback import RunFeedback
from gquery.kernels.targets.capabilities import capabilities
from gquery.operators.codegen import units
from gquery.planner import join_layout
from gquery.planner.physical import Build, JoinTable, Pipeline, Probe
from tests.support.harness import assert_same
from tests.support.tuned import Tune

ODD = np.int64(0x5851F42D4C957F2D)  # numbers times it lie all over the range of int64
ROWS = 2_000


def _sides(seed: int = 1) -> dict[str, pa.Table]:
    """Probes that find their row, and some that do not; build keys in no order, dense and far apart."""
    r = np.random.default_rng(seed)
    build, probe = r.permutation(ROWS) - 700, r.permutation(2 * ROWS) - 700
    return {
        "p": pa.table({"dense": probe, "far": probe * ODD, "w": r.integers(0, 2**40, 2 * ROWS)}),
        "b": pa.table(
            {
                "dense": build,
                "far": build * ODD,
                "small": pa.array(r.integers(-3, 4, ROWS), pa.int8(), mask=r.random(ROWS) < 0.2),
                "flag": pa.array(r.random(ROWS) < 0.5, mask=r.random(ROWS) < 0.3),
                "money": pa.array([Decimal(int(v)) for v in r.integers(0, 10**6, ROWS)], pa.decimal128(12, 0)),
                "kind": pa.array([("a", "bc", None, "d")[k] for k in r.integers(0, 4, ROWS)]),
                "same": pa.array([7] * ROWS),
                "wide": r.integers(-(2**62), 2**62, ROWS),
                "x": r.random(ROWS),
            }
        ),
    }


@cache
def _same_sides() -> dict[str, pa.Table]:
    """For tests of answers alone, which may know the tables from others: they keep their connections."""
    return _sides()


def _table(tables: dict[str, pa.Table], sql: str) -> JoinTable:
    connection = gquery.connect(device="cpu")
    for name, table in tables.items():
        connection.register(name, table)
    works = [s.work for s in connection.program(sql).stages]
    (table,) = [w.sink.table for w in works if isinstance(w, Pipeline) and isinstance(w.sink, Build)]
    return table


KINDS = ("JOIN", "LEFT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
COLUMNS = ("small", "flag, kind", "small, flag, money, kind, same", "wide", "x, small", "same")
HELD = [  # a kind and columns meet one of the keys, and both in the slow tests
    pytest.param(
        key, kind, columns, marks=[pytest.mark.slow] if (n + k + c) % 2 or kind in ("LEFT JOIN", "SEMI JOIN") else []
    )
    for n, key in enumerate(("dense", "far"))
    for k, kind in enumerate(KINDS)
    for c, columns in enumerate(COLUMNS)
]


@pytest.mark.parametrize(("key", "kind", "columns"), HELD)
def test_what_a_table_holds(key: str, kind: str, columns: str) -> None:
    b = "" if kind in ("SEMI JOIN", "ANTI JOIN") else "".join(f", b.{c}" for c in columns.split(", "))
    assert_same(f"SELECT p.w{b} FROM p {kind} b ON p.{key} = b.{key} ORDER BY 1, 2" if b else
                f"SELECT p.w FROM p {kind} b ON p.{key} = b.{key} ORDER BY 1", _same_sides())  # fmt: skip


@pytest.mark.parametrize("key", ["dense", "far"])
def test_residuals_read_inline_payloads(key: str) -> None:
    tables = _same_sides()
    for kind in ("JOIN", "LEFT JOIN", "ANTI JOIN", "SEMI JOIN"):
        assert_same(f"SELECT count(*), sum(p.w) FROM p {kind} b ON p.{key} = b.{key} AND p.w % 5 > b.small", tables)
    assert_same(f"SELECT w, (SELECT b.small FROM b WHERE b.{key} = p.{key}) FROM p ORDER BY 1", tables)
    assert_same(f"SELECT count(*) FROM p WHERE {key} IN (SELECT {key} FROM b WHERE flag) OR w < 1000", tables)


def test_inline_payloads_and_row_ids() -> None:
    tables = _sides()
    held = {
        "b.small": True, "b.small, b.flag, b.money, b.kind": True, "b.wide": False, "b.x": False, "b.small, b.wide": False,
    }  # fmt: skip
    for columns, inlined in held.items():
        for key in ("dense", "far"):
            table = _table(tables, f"SELECT p.w, {columns} FROM p JOIN b ON p.{key} = b.{key}")
            assert (table.inline_payload is not None) is inlined, columns
            assert table.unique is (key == "dense"), "dense keys are proved unique when they are loaded"
            assert table.expected_unique is (key == "far")
            assert table.inline_keys is (key == "far")


@pytest.mark.parametrize("target", ["python", "cpu"])
def test_keys_that_were_expected_to_be_unique(target: str) -> None:
    """A key that stands twice is found, the build runs again, and later runs of the program know."""
    keys = np.arange(6_000) * ODD
    r = np.random.default_rng(3)
    r.shuffle(keys)
    connection = gquery.connect(device="cpu")
    connection.sql(f"SET interpret_limit = {0 if target == 'cpu' else 2**40}")
    for twice in (False, True):
        if twice:
            keys = keys.copy()
            keys[4_001] = keys[126]
        connection.register("b", pa.table({"k": keys, "v": np.arange(6_000)}))
        probes = np.tile(keys[::7], 20)
        connection.register("p", pa.table({"k": probes, "w": np.arange(len(probes))}))
        program, feedback = connection.program("SELECT p.w, b.v FROM p JOIN b ON p.k = b.k"), RunFeedback()
        attempts = []
        for _ in range(2):
            table, reports = run_with_report(program, connection._context(), feedback)
            attempts.append(reports[0].attempts)
            wanted: dict[int, list[int]] = {int(k): [] for k in probes}
            for v, k in enumerate(keys.tolist()):
                if k in wanted:
                    wanted[k].append(v)
            rows = [(w, v) for w, k in enumerate(probes.tolist()) for v in wanted[k]]
            assert export_table(table).to_pydict() == {"w": [w for w, _ in rows], "v": [v for _, v in rows]}
        assert attempts == ([2, 1] if twice else [1, 1])
        last = program.stages[-1].work
        assert isinstance(last, Pipeline)
        assert any(isinstance(s, Probe) and s.table.expected_unique for s in last.steps)


def test_unique_behind_a_filter_and_null_keys() -> None:
    """What counts is the rows that are entered: a filter may leave out the second row of a key, NULL is no key."""
    keys = pa.array([None if k % 5 == 0 else k for k in range(300)], pa.int32())
    tables = {
        "b": pa.table({"k": pa.array([1, 2, 3, 3, None, None, 90, 0]), "v": [1, 2, 3, 4, 5, 6, 7, 8]}),
        "p": pa.table({"k": keys}),
        "far": pa.table({"k": np.array([0, 5, -9, 2**62, -(2**63)], np.int64), "v": [1, 2, 3, 4, 5]}),
        "q": pa.table({"k": np.array([0, -(2**63), 2**63 - 1, 1, 5, 0], np.int64)}),
    }
    assert_same("SELECT p.k, b.v FROM p JOIN (SELECT * FROM b WHERE v <> 4) b ON p.k = b.k ORDER BY ALL", tables)
    assert_same("SELECT p.k, b.v FROM p JOIN b ON p.k = b.k ORDER BY ALL", tables)
    assert_same("SELECT q.k, far.v FROM q LEFT JOIN far ON q.k = far.k ORDER BY ALL", tables)
    assert_same("SELECT q.k FROM q WHERE k NOT IN (SELECT k FROM far) ORDER BY ALL", tables)
    assert_same("SELECT q.k, far.v FROM q JOIN (SELECT k, v FROM far UNION ALL SELECT 0, 9) far ON q.k = far.k ORDER BY ALL",
                tables)  # fmt: skip


@pytest.fixture
def radix_partitioned(monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """Tables are filled part by part wherever they could be."""
    monkeypatch.setattr(join_layout, "capabilities", lambda name: replace(capabilities(name), partitions_builds=True))
    tune(tuning.join_layouts, partitioned_caches=0.0, partitioned_selectivity=0.0)


@pytest.mark.usefixtures("radix_partitioned")
def test_arrays_that_are_filled_part_by_part() -> None:
    tables, key = _sides(), "dense"
    assert _table(tables, f"SELECT p.w, b.small FROM p JOIN b ON p.{key} = b.{key}").radix_partitioned
    assert_same(f"SELECT p.w, b.small, b.flag FROM p LEFT JOIN b ON p.{key} = b.{key} ORDER BY 1", tables)
    assert_same(f"SELECT p.w, b.wide FROM p JOIN b ON p.{key} = b.{key} ORDER BY 1", tables)
    assert_same(f"SELECT p.w, b.small FROM p JOIN (FROM b WHERE small > 0) b ON p.{key} = b.{key} ORDER BY 1", tables)
    tables["b"] = tables["b"].slice(0, 3)
    assert_same(f"SELECT p.w, b.same FROM p JOIN b ON p.{key} = b.{key} ORDER BY 1", tables)


@pytest.mark.usefixtures("radix_partitioned")
def test_keys_that_repeat_after_all() -> None:
    """Found because fewer places are in use than rows were entered."""
    keys = np.arange(3_000)[::-1].copy()
    for repeated in (1, 900):
        keys[:repeated] = keys[-1]
        tables = {"b": pa.table({"k": keys, "v": np.arange(3_000)}), "p": pa.table({"k": np.tile(keys[::50], 60)})}
        plans = [_expecting(tables, sql) for sql in ("SELECT sum(v), count(*) FROM p JOIN b ON p.k = b.k",)]
        assert plans == [[2, 1]], "the second attempt knows"


def _expecting(tables: dict[str, pa.Table], sql: str) -> list[int]:
    """How often the first stage runs, in a first and a second run, where its keys are expected to be unique."""
    connection = gquery.connect(device="cpu")
    for name, table in tables.items():
        connection.register(name, table)
    program = connection.program(sql)
    build = program.stages[0].work
    assert isinstance(build, Pipeline)
    assert isinstance(build.sink, Build)
    expected = replace(build.sink.table, expected_unique=True)
    probe = program.stages[1].work
    assert isinstance(probe, Pipeline)
    steps = tuple(
        replace(s, table=replace(s.table, expected_unique=True)) if isinstance(s, Probe) else s for s in probe.steps
    )
    program = replace(
        program,
        stages=(
            replace(program.stages[0], work=replace(build, sink=Build(replace(expected, radix_partitioned=True)))),
            replace(program.stages[1], work=replace(probe, steps=steps)),
        ),
    )
    attempts, feedback = [], RunFeedback()
    b = tables["b"].to_pydict()
    by_key: dict[int, list[int]] = {}
    for k, v in zip(b["k"], b["v"], strict=True):
        by_key.setdefault(k, []).append(v)
    matches = [v for k in tables["p"].column("k").to_pylist() for v in by_key[k]]
    for _ in range(2):
        result, reports = run_with_report(program, connection._context(), feedback)
        assert list(export_table(result).to_pylist()[0].values()) == [sum(matches), len(matches)]
        attempts.append(reports[0].attempts)
    return attempts


def test_few_rows_of_many_slots(tune: Tune) -> None:
    """An array was planned; the rows that are there in the end are so few that they are hashed, and probed so."""
    tune(tuning.join_layouts, small_array=16)
    tables = _sides()
    few = "SELECT dense, count(*) AS n, min(small) AS small FROM b WHERE x * x < 0.0001 GROUP BY dense"
    for kind in ("JOIN", "LEFT JOIN", "FULL JOIN"):
        sql = f"SELECT p.w, b.n, b.small FROM p {kind} ({few}) b ON p.dense = b.dense ORDER BY ALL"
        assert_same(sql, tables)
    connection = gquery.connect(device="cpu")
    for name, table in tables.items():
        connection.register(name, table)
    program = connection.program(f"SELECT p.w, b.n FROM p JOIN ({few}) b ON p.dense = b.dense")
    (planned,) = [s.table for stage in program.stages if isinstance(w := stage.work, Pipeline) for s in w.steps
                  if isinstance(s, Probe)]  # fmt: skip
    assert planned.layout == "direct-address"
    feedback = RunFeedback()
    run_with_report(program, connection._context(), feedback)
    ran = [d.runs.pipeline for d in feedback.decisions.values()]  # others were foreseen
    assert {s.table.layout for work in ran for s in work.steps if isinstance(s, Probe)} == {"hash"}


def test_two_keys_in_one_integer() -> None:
    """Keys that encode as an integer too large to address with: each table holds it, NULLs as equal where that is
    asked."""
    r = np.random.default_rng(5)
    a, b = r.integers(0, 10**8, ROWS), r.integers(-(10**8), 10**8, ROWS)
    tables = {
        "t": pa.table({"a": pa.array(a, mask=a % 9 == 0), "b": b, "v": np.arange(ROWS)}),
        "u": pa.table({"a": pa.array(np.r_[a[:900], a[:300]], mask=np.r_[a[:900], a[:300]] % 9 == 0),
                       "b": np.r_[b[:900], b[:300]], "w": np.arange(1200)}),
    }  # fmt: skip
    assert _table(tables, "SELECT t.v, u.w FROM t JOIN u ON t.a = u.a AND t.b = u.b").inline_keys
    grouped = "(SELECT a, b, min(w) AS w FROM u GROUP BY a, b) g"
    assert_same(f"SELECT t.v, g.w FROM t JOIN {grouped} ON t.a = g.a AND t.b = g.b ORDER BY ALL", tables)
    for condition in ("t.a = u.a", "t.a IS NOT DISTINCT FROM u.a"):
        for kind in ("JOIN", "LEFT JOIN"):
            assert_same(f"SELECT t.v, u.w FROM t {kind} u ON {condition} AND t.b = u.b ORDER BY ALL", tables)
        assert_same(f"SELECT t.v FROM t WHERE EXISTS (FROM u WHERE {condition} AND t.b = u.b) ORDER BY ALL", tables)


def test_one_narrow_key_addresses_the_table_where_another_is_a_double() -> None:
    sql = "SELECT count(*), sum(money) FROM p JOIN b ON p.dense = b.dense AND p.dense::DOUBLE / 2 = b.dense::DOUBLE / 2"
    assert _table(_sides(), sql).layout == "direct-address"
    assert_same(sql, _sides(), targets=("python", "cpu"))


# ---- bitmaps of keys that come in order ------------------------------------------------------------------------------


def _in_order(rows: int) -> pa.Table:
    """Keys in order, most of them several times, in runs of all lengths; ``v`` lets some rows of a key through."""
    r = np.random.default_rng(7)
    lengths = np.minimum(r.geometric(0.3, rows), 400) * (r.random(rows) < 0.9) + (r.random(rows) < 0.001) * 3000
    k = np.repeat(np.arange(rows) * 3 - 500, lengths)[:rows]
    return pa.table({"k": k, "v": r.integers(0, 100, rows)})


@pytest.mark.parametrize("rows", [1, 31, 33, 5_000, 100_000])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("where", ["v < 50", "v < 3", "v >= 0", "v > 100"])
def test_a_bitmap_of_keys_that_come_in_order(rows: int, device: str, where: str) -> None:
    import duckdb

    tables = {"a": _in_order(rows), "o": pa.table({"k": np.arange(-600, 3 * rows)})}
    oracle = duckdb.connect()
    with gquery.connect(device=device) as connection:
        connection.set("interpret_limit", 0)
        for name, table in tables.items():
            connection.register(name, table)
            oracle.register(name, table)
        for kind in ("", "NOT "):
            sql = f"SELECT k FROM o WHERE {kind}EXISTS (SELECT 1 FROM a WHERE a.k = o.k AND {where}) ORDER BY k"
            assert connection.sql(sql).fetchall() == oracle.execute(sql).fetchall()


def test_one_lane_sets_the_bit_of_a_key_that_repeats_in_order() -> None:
    with gquery.connect(device="cpu") as connection:
        connection.register("o", pa.table({"k": range(100_000)}))
        sql = "SELECT count(*) FROM o WHERE EXISTS (SELECT 1 FROM a WHERE a.k = o.k AND v < 50)"
        keys = np.arange(60_000) // 4
        for made, is_clustered in ((keys, True), (keys[::-1], False), (np.arange(60_000), False)):
            connection.register("a", pa.table({"k": made, "v": keys % 100}))
            (build,) = [k for k in connection.kernels(sql, target="cuda") if "s0: *u32" in k.text]
            assert ("is_first_lane_with" in build.text) == is_clustered
            assert ("bit_set" in build.text) == (not is_clustered)


@pytest.mark.parametrize("slots, layout", [(500, "direct-address"), (1_000_000, "hash")])
def test_one_key_of_several_is_addressed_where_its_slots_are_in_use(slots: int, layout: str) -> None:
    """All rows may have few of the values that an array has slots for, and each probe would go through hundreds of rows."""
    rows = 2_000
    few = np.arange(rows) % 5 * (slots // 5) if layout == "hash" else np.arange(rows) % slots
    ends = [0, slots - 1]
    b = pa.table({"k": np.r_[few, ends], "far": np.r_[np.arange(rows) * 10**9, 0, 1], "v": np.arange(rows + 2)})
    p = pa.table({"k": np.r_[few, few], "far": np.r_[np.arange(rows) * 10**9, np.arange(rows) * 10**9 + 1]})
    sql = "SELECT count(*), sum(b.v) FROM p JOIN b ON p.k = b.k AND p.far = b.far"
    assert _table({"p": p, "b": b}, sql).layout == layout
    assert_same(sql, {"p": p, "b": b})


@pytest.mark.parametrize(("rows", "low", "high"), [(0, 0, 5), (1, 5, 6), (900, -50, 90), (500, 0, 4000)])
def test_all_rows_of_a_table_by_its_sorted_key(rows: int, low: int, high: int) -> None:
    r = np.random.default_rng(rows)
    keys = np.sort(r.integers(low, high, rows)).astype(np.int32)
    build = pa.table({"k": keys, "v": r.integers(0, 100, rows), "z": pa.array(r.integers(0, 9, rows), pa.int8())})
    probe = pa.table({"k": r.integers(low - 5, high + 5, 700).astype(np.int32), "w": np.arange(700)})
    tables = {"p": probe, "b": build}
    for sql in (
        "SELECT count(*), sum(v), sum(w) FROM p JOIN b USING (k)",
        "SELECT count(*), sum(v), sum(w) FROM p LEFT JOIN b ON p.k = b.k AND v > w / 9",
        "SELECT count(*), sum(v), sum(w) FROM p FULL JOIN b ON p.k = b.k",
        "SELECT w, (SELECT max(v) FROM b WHERE b.k = p.k AND b.v < p.w) FROM p ORDER BY w",
        "SELECT count(*), sum(v), sum(w) FROM p JOIN (SELECT * FROM b WHERE v > 50) AS b USING (k)",
    ):
        assert_same(sql, tables)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_which_tables_need_no_kernel(target: str) -> None:
    keys = np.repeat(np.arange(40, dtype=np.int32) * 2000, 3)
    few = np.repeat(np.arange(40), 3)
    some = pa.array([None, *keys[1:].tolist()], pa.int32())
    build = pa.table({"k": keys, "mixed": keys[::-1], "v": keys, "some": some, "few": few})
    tables = {"p": pa.table({"k": np.arange(5000, dtype=np.int32)}), "b": build}
    db = gquery.connect(device="cpu")
    for name, table in tables.items():
        db.register(name, table)

    def kernels(source: str, key: str) -> int:
        works = [s.work for s in db.program(f"SELECT count(*), sum(v) FROM p JOIN {source} AS b ON p.k = b.{key}").stages]
        (build,) = [w for w in works if isinstance(w, Pipeline) and isinstance(w.sink, Build)]
        return len(units(build, target))

    assert kernels("b", "k") == 0
    assert kernels("b", "mixed") == kernels("b", "some") == kernels("(SELECT * FROM b WHERE v > 3)", "k") == 1
    assert kernels("b", "few") == (target == "cuda")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_ranges_of_a_sorted_key_with_gaps_of_all_widths(device: str) -> None:
    import duckdb

    r = np.random.default_rng(4)
    keys = np.sort(np.r_[r.integers(0, 3000, 4000), r.integers(50_000, 50_200, 3000), [60_000] * 50]).astype(np.int32)
    tables = {
        "b": pa.table({"k": keys, "v": np.arange(keys.size) % 100}),
        "p": pa.table({"k": r.integers(-10, 60_100, 50_000).astype(np.int32), "w": np.arange(50_000) % 11}),
    }
    oracle = duckdb.connect()
    with gquery.connect(device=device) as connection:
        connection.set("interpret_limit", 0)
        for name, table in tables.items():
            connection.register(name, table)
            oracle.register(name, table)
        for sql in (
            "SELECT sum(v), count(*), sum(w) FROM p JOIN b ON p.k = b.k AND p.w <> b.v",
            "SELECT p.k, count(v), max(v) FROM p LEFT JOIN b ON p.k = b.k GROUP BY p.k ORDER BY p.k",
        ):
            for _ in range(5):  # a GPU replays the last ones
                assert connection.sql(sql).fetchall() == oracle.execute(sql).fetchall()


@pytest.mark.parametrize("threads", [1, 3])
def test_one_thread_sets_bits_without_atomics(threads: int) -> None:
    """Bitmaps of keys, and filters beside tables; several threads, and a GPU, set them by atomics."""
    r = np.random.default_rng(threads)
    asked = pa.table({"k": r.integers(-9, 3_000, 5_000), "w": np.arange(5_000)})
    given = pa.table({"k": r.integers(0, 2_900, 40_000), "v": r.integers(0, 50, 40_000)})
    sql = "SELECT count(*), sum(w) FROM asked WHERE k {}IN (SELECT k FROM given WHERE v = {})"
    with gquery.connect(device="cpu", threads=threads) as db:
        for name, table in (("asked", asked), ("given", given)):
            db.register(name, table)
        for value in (7, 99):
            keys = {k for k, v in zip(given["k"].to_pylist(), given["v"].to_pylist(), strict=True) if v == value}
            for word, is_kept in (("", True), ("NOT ", False)):
                kept = [w for w, k in enumerate(asked["k"].to_pylist()) if (k in keys) == is_kept]
                assert db.sql(sql.format(word, value)).fetchall() == [(len(kept), sum(kept) if kept else None)]
        for target, name in (("cpu", "bit_put" if threads == 1 else "bit_set"), ("cuda", "bit_set")):
            texts = [k.text for k in db.kernels(sql.format("", 7), target=cast(Target, target))]
            assert [n for n in ("bit_put", "bit_set") if any(n in t for t in texts)] == [name]
