"""Key filters: joins whose tables have few keys for their range, and the bitmap that probes test first."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.arrow import export_table
from gquery.device.profile import H200
from gquery.execution import run_with_report
from gquery.execution.feedback import RunFeedback
from gquery.kernels.targets.capabilities import CPU, CUDA
from gquery.operators.base import JoinIndex
from gquery.operators.join_table import BuildRun
from gquery.operators.key_filter import with_filter
from gquery.planner.layouts import KeyFilter
from gquery.planner.physical import Build, Pipeline, Probe
from tests.differential.test_fuzz import check
from tests.support.harness import Tables, assert_same, compare, expect
from tests.support.lanes import answer
from tests.support.marks import and_slow, one_in
from tests.support.tuned import Tune

ROWS = 3_000
RANGE = 1_000_000
KINDS = ("JOIN", "LEFT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")


def _tables(seed: int = 1, build: int = 40) -> dict[str, pa.Table]:
    """Probes ``p`` in order and in none, with and without NULL, in and out of the range of the few keys of ``b`` (one row each)
    and ``d`` (some repeat); a probe in three has a key that is there, and many have one beside it."""
    r = np.random.default_rng(seed)
    there = np.unique(r.integers(-(RANGE // 2), RANGE // 2, build))
    probe = np.where(r.random(ROWS) < 0.3, r.choice(there, ROWS), r.integers(-RANGE, RANGE, ROWS))
    probe = probe + (r.random(ROWS) < 0.2) * r.integers(-3, 4, ROWS)
    twice = np.r_[there, there[: build // 2]]
    r.shuffle(twice)

    def columns(keys: np.ndarray, nulls: float) -> dict[str, pa.Array]:
        missing = r.random(len(keys)) < nulls
        return {
            "k": pa.array(keys),
            "n": pa.array(keys, mask=missing),
            "far": pa.array(keys * 3_000_000_019),  # no array has as many slots
            "small": pa.array(keys % 3),
            "v": pa.array(np.arange(len(keys))),
        }

    return {
        "p": pa.table(columns(probe, 0.2)),
        "s": pa.table(columns(np.sort(probe), 0.1)),
        "b": pa.table(columns(there, 0.2)),
        "d": pa.table(columns(twice, 0.2)),
        "e": pa.table(columns(there[:0], 0.0)),
    }


TABLES = _tables()


@pytest.fixture
def filters(tune: Tune) -> None:
    """Every table that can have a filter has one, and every probe tests it."""
    tune(
        tuning.key_filters,
        least_slots=1, least_probes=1, least_probes_gpu=1, least_table_bytes=0, most_set=1e9, bytes=256, large_bytes=256,
    )  # fmt: skip


def _tested(feedback: RunFeedback) -> list[KeyFilter]:
    """Those that probes tested in the last run."""
    steps = [s for made in feedback.decisions.values() for s in made.runs.pipeline.steps]
    return [s.filter for s in steps if isinstance(s, Probe) and s.filter is not None]


def _filters(db: gquery.Connection, sql: str) -> list[KeyFilter]:
    """Those that probes test when a query runs."""
    feedback = RunFeedback()
    run_with_report(db.program(sql), db._context(), feedback)
    return _tested(feedback)


def _connection(tables: Tables, target: str = "cpu") -> gquery.Connection:
    db = gquery.connect(device=target)
    for name, table in tables.items():
        db.register(name, table)
    db.sql("SET interpret_limit = 0")
    return db


@pytest.mark.usefixtures("filters")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", and_slow(("k", "n", "far"), "k"))
def test_joins_of_every_kind(kind: str, key: str) -> None:
    for probe, build in (("p", "b"), ("s", "d"), ("p", "e")):
        given = "p.v" if kind in ("SEMI JOIN", "ANTI JOIN") else "p.v, b.v, b.k"
        assert_same(f"SELECT {given} FROM {probe} p {kind} {build} b ON p.{key} = b.{key}", TABLES)


@pytest.mark.usefixtures("filters")
@pytest.mark.parametrize("key", and_slow(("k", "n", "far"), "k"))
def test_marks_scalars_and_residuals(key: str) -> None:
    for build in ("d", "e") if key == "n" else ("d",):
        assert_same(f"SELECT v, {key} IN (SELECT {key} FROM {build}) FROM p", TABLES)
        assert_same(f"SELECT v FROM s WHERE {key} NOT IN (SELECT {key} FROM {build} WHERE {key} IS NOT NULL)", TABLES)
        assert_same(f"SELECT count(*) FROM p WHERE v < 100 OR EXISTS (FROM {build} b WHERE b.{key} = p.{key})", TABLES)
        assert_same(f"SELECT p.v, b.v FROM p LEFT JOIN {build} b ON p.{key} = b.{key} AND p.v % 5 > b.small", TABLES)
    assert_same(f"SELECT v, (SELECT max(v) FROM d WHERE d.{key} = p.{key}) FROM p", TABLES)


@pytest.mark.usefixtures("filters")
@pytest.mark.parametrize("same", ["=", "IS NOT DISTINCT FROM"])
def test_several_keys(same: str) -> None:
    for kind in ("JOIN", "LEFT JOIN"):
        for build in ("b", "d"):
            sql = f"SELECT p.v, b.v FROM p {kind} {build} b ON p.n {same} b.n AND p.small = b.small"
            assert_same(sql, TABLES)
    assert_same(f"SELECT v FROM s WHERE EXISTS (FROM d WHERE s.n {same} d.n AND s.small = d.small)", TABLES)


@pytest.mark.usefixtures("filters")
def test_several_tables_and_groups_behind_them() -> None:
    sql = (
        "SELECT b.small, count(*), sum(p.v) FROM p JOIN b ON p.k = b.k JOIN d ON p.k = d.k "
        "WHERE p.n IN (SELECT n FROM d) GROUP BY b.small"
    )
    assert_same(sql, TABLES)


@pytest.mark.usefixtures("filters")
@pytest.mark.parametrize("seed", range(5))
def test_random_sides(seed: int) -> None:
    """From one key to as many as there are probes, so that filters are nearly empty and nearly full."""
    tables = _tables(seed, build=(1, 2, 7, 300, 2_000)[seed])
    for probe in ("p", "s"):
        for key in ("k", "far"):
            assert_same(f"SELECT count(*), sum({probe}.v), sum(d.v) FROM {probe} JOIN d USING ({key})", tables)
            assert_same(f"SELECT count(*), sum(v) FROM {probe} WHERE {key} IN (SELECT {key} FROM d)", tables)
            assert_same(f"SELECT count(*), sum(v) FROM {probe} ANTI JOIN b USING ({key})", tables)


@pytest.mark.usefixtures("filters")
@pytest.mark.parametrize("compiler", ["llvm", "numba"])
def test_both_compilers(compiler: str) -> None:
    sql = "SELECT count(*), sum(p.v), sum(b.v) FROM p JOIN b ON p.far = b.far WHERE p.k IN (SELECT k FROM d)"
    assert_same(sql, TABLES, targets=("cpu",), settings={"compiler": compiler})


@pytest.mark.usefixtures("filters")
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n, sum(s.v) AS v FROM s WHERE s.k IN (SELECT k FROM d)",
        "SELECT count(*) AS n, sum(p.v) AS v FROM p WHERE p.k IN (SELECT k FROM s)",
        "SELECT p.v, b.v AS w FROM p LEFT JOIN b ON p.k = b.k",
        "SELECT b.small, count(*) AS n, sum(p.v) AS v FROM p JOIN b ON p.k = b.k JOIN d ON p.far = d.far GROUP BY b.small",
        "SELECT p.small, sum(p.v) AS v FROM p ANTI JOIN d ON p.n = d.n GROUP BY p.small",
        "SELECT p.k // 100000 AS k, count(*) AS n FROM p SEMI JOIN d ON p.far = d.far GROUP BY p.k // 100000",
        "SELECT b.v, p.v AS w FROM p FULL JOIN b ON p.n = b.n",
    ],
)
@pytest.mark.parametrize("shape", and_slow(("beside", "table", "interleaved", "selected"), "table", "interleaved"))
def test_in_shared_memory(sql: str, partitions: int, shape: str, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a GPU, played by threads: the filter beside a table, and small bitmaps of keys that are copied themselves; in the
    loops of large tables."""
    if shape == "interleaved":
        tune(tuning.loops, interleaved_rows=1)
    if shape == "selected":
        tune(tuning.materialization, compacted_least_rows=1, compacted_most_selectivity=1.0, compacted_least_probes=0)
    if shape != "table":
        tune(tuning.key_filters, spare_bytes=H200.processor_shared_bytes // 2 - H200.reserved_shared_bytes - 256)
    some = {name: table.slice(0, 200) if name in ("p", "s") else table for name, table in TABLES.items()}
    table = answer(_connection(some), sql, monkeypatch, partitions)
    with gquery.connect(device="python") as db:
        for name, rows in some.items():
            db.register(name, rows)
        tune(tuning.key_filters, least_slots=2**62)
        want = db.sql(sql).to_arrow_table()
    order = [(name, "ascending") for name in want.column_names]
    got = pa.Table.from_pylist(export_table(table).to_pylist(), schema=want.schema)
    assert got.sort_by(order).equals(want.sort_by(order))


def test_what_is_filtered() -> None:
    """Few keys over a wide range, and many probes."""
    r = np.random.default_rng(3)
    wide = 2**24
    keys = np.r_[0, r.choice(wide, 2_000, replace=False), wide]
    tables = {
        "p": pa.table({"k": r.integers(0, wide, 300_000)}),
        "b": pa.table({"k": np.unique(keys), "v": np.arange(len(np.unique(keys)))}),
        "many": pa.table({"k": np.arange(200_000) * 80}),
    }
    db = _connection(tables)
    for sql in ("SELECT sum(b.v) FROM p JOIN b USING (k)", "SELECT sum(b.v) FROM p LEFT JOIN b USING (k)"):
        assert set(_filters(db, sql)) == {KeyFilter(8, wide // 256 + 1)}, sql
        assert_same(sql, tables, targets=("cpu",))  # more rows than are worth interpreting
    assert not _filters(db, "SELECT count(*) FROM p SEMI JOIN many ON p.k = many.k"), "every bit is set"
    assert not _filters(db, "SELECT count(*) FROM (FROM p LIMIT 1000) p JOIN b USING (k)"), "few probes"
    shown = db.explain("SELECT sum(b.v) FROM p JOIN b USING (k)", "pipelines")
    assert "key filter of 65,537 bits for 256 keys each" in shown
    assert "inner by (k#2), key filter first" in shown


@pytest.mark.usefixtures("filters")
def test_of_ranks(monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """Parts of a table that become one have filters that become one: a rank has few of the keys, or none."""
    tune(tuning.distribution, hashed_bytes=2**62, unmerged_most=0.0)
    made: list[KeyFilter | None] = []
    finalize = BuildRun.finalize

    def finalized(run: BuildRun) -> JoinIndex:
        index = finalize(run)
        if run.exchange is not None:
            made.append(index.table.filter)
        return index

    monkeypatch.setattr(BuildRun, "finalize", finalized)
    r = np.random.default_rng(5)
    keys = r.permutation(np.r_[np.arange(600) * 7, RANGE])
    tables = {"p": pa.table({"k": r.permutation(np.arange(4_000) * 3)}), "b": pa.table({"k": keys, "v": keys % 10})}
    for sql in (
        "SELECT count(*) FROM p SEMI JOIN b USING (k)",
        "SELECT k, k IN (SELECT k FROM b) FROM p",
        "SELECT count(*) FROM p ANTI JOIN (FROM b WHERE v < 3) b USING (k)",
    ):
        made.clear()
        with gquery.connect("cpu", devices=3) as db:
            db.sql("SET interpret_limit = 0")
            for name, table in tables.items():
                db.register(name, table)
            types, want = expect(sql, tables)
            assert compare(db.sql(sql).fetchall(), want, False, types) is None
        assert len(made) == 3 and made[0] is not None and not made[0].is_table and len(set(made)) == 1, sql


def test_filters_that_turn_out_to_be_full(tune: Tune) -> None:
    """An estimate says few keys, and there are many: the filter is dropped, and a build of few has one that is tested."""
    tune(tuning.key_filters, least_slots=1, least_table_bytes=0, bytes=2**10, large_bytes=2**10)
    tune(tuning.cardinality, other=0.001, range=0.001)
    rows = np.arange(100_000)
    db = _connection({"b": pa.table({"k": rows * 20, "x": rows}), "p": pa.table({"k": np.arange(200_000) * 10})})
    for most, keys in ((999, 100_000), (0, 500)):
        feedback = RunFeedback()
        program = db.program(f"SELECT count(*) FROM p WHERE k IN (SELECT k FROM b WHERE x % 200 + x % 200 <= {most})")
        for _ in range(2):
            table, _ = run_with_report(program, db._context(), feedback)
            assert export_table(table).column(0).to_pylist() == [keys]
        sink = feedback.decisions[0].runs.pipeline.sink
        assert isinstance(sink, Build)
        assert sink.table.filter is not None
        assert _tested(feedback) == ([sink.table.filter] if keys < 100_000 else [])


def test_sizes_on_a_gpu() -> None:
    """Two blocks of 1,024 threads of a multiprocessor have their filters at once."""
    r = np.random.default_rng(4)
    wide = 20_000_000
    b = {"k": np.unique(np.r_[0, r.integers(0, wide, 1_000), wide - 1])}
    db = _connection({"p": pa.table({"k": np.arange(300_000)}), "b": pa.table(b)})
    (build,) = [
        s.work for s in db.program("SELECT count(*) FROM p SEMI JOIN b USING (k)").stages
        if isinstance(s.work, Pipeline) and isinstance(s.work.sink, Build)
    ]  # fmt: skip
    assert isinstance(build.sink, Build)
    table = replace(build.sink.table, probe_rows=600_000_000)
    many = replace(build, sink=Build(table))

    def planned(pipeline: Pipeline, rows: int, merges: bool = False) -> KeyFilter | None:
        sink = with_filter(pipeline, rows, CUDA, H200, merges).sink
        assert isinstance(sink, Build)
        return sink.table.filter

    made = planned(many, 1_000)
    assert made is not None
    assert made == KeyFilter(5, wide // 32 + 1)
    assert 2 * (8 * made.shared_words + H200.reserved_shared_bytes) <= H200.processor_shared_bytes
    assert planned(many, wide // 20) is None, "too many keys"
    assert planned(build, 1_000) is None, "too few probes"
    of_ranks = {planned(many, rows, merges=True) for rows in (0, 700, wide)}
    assert of_ranks == {KeyFilter(6, wide // 64 + 1)}, "each rank has the same, whatever rows it has"
    assert with_filter(many, 1_000, CPU, H200).sink == Build(replace(table, filter=KeyFilter(8, wide // 256 + 1)))


@pytest.mark.usefixtures("filters")
@pytest.mark.parametrize("compiler", ["llvm", "numba"])
def test_machine_code(compiler: str, tune: Tune) -> None:
    """Of kernels that test filters in shared memory: hardly more registers, and nothing spilled."""
    from gquery.kernels.targets.compilers import compiling_by
    from gquery.kernels.targets.cuda import CudaTarget

    db, target = _connection(TABLES), CudaTarget()
    sql = "SELECT count(*), sum(b.v) FROM p JOIN b ON p.far = b.far WHERE p.k IN (SELECT k FROM d)"
    used = []
    for least in (1, 2**62):
        tune(tuning.key_filters, least_slots=least)
        kernels = db.kernels(sql, target="cuda")
        assert any("shared_bit_test" in k.text for k in kernels) is (least == 1)
        with compiling_by(compiler):
            cubins = [target.compile_cubin(k, (9, 0)) for k in kernels]
        assert all(c.local_bytes == 0 for c in cubins)
        used.append(max(c.registers for c in cubins))
    assert used[0] <= used[1] + 8


@pytest.mark.cuda
@pytest.mark.usefixtures("filters")
@pytest.mark.parametrize("compacted_least_rows", [1, 2**40])
@pytest.mark.parametrize("key", ["k", "n", "far"])
def test_on_a_gpu(compacted_least_rows: int, key: str, tune: Tune) -> None:
    """Every kind of join, with and without compaction behind the filter, also in runs that are recorded."""
    tune(tuning.materialization, compacted_least_rows=compacted_least_rows)
    with _connection(TABLES, "cuda") as db:
        for kind in KINDS:
            for probe, build in (("p", "b"), ("s", "d"), ("p", "e")):
                given = "p.small, count(*), sum(p.v)"
                sql = f"SELECT {given} FROM {probe} p {kind} {build} b ON p.{key} = b.{key} GROUP BY p.small"
                types, want = expect(sql, TABLES)
                for _ in range(5):
                    wrong = compare(db.sql(sql).fetchall(), want, False, types)
                    assert wrong is None, f"{wrong}\n{sql}"
                    time.sleep(0.02)


@pytest.mark.usefixtures("filters")
@pytest.mark.parametrize("batch", one_in(3, range(3)))
def test_random_queries(batch: int) -> None:
    for seed in range(500_000 + 40 * batch, 500_000 + 40 * (batch + 1)):
        check(seed, ranks=1 + 2 * (seed % 2))


@pytest.mark.slow
@pytest.mark.usefixtures("filters")
@pytest.mark.parametrize("seed", range(600_000, 600_020))
def test_random_queries_compiled(seed: int) -> None:
    check(seed, "cpu", ranks=3)


@pytest.mark.cuda
@pytest.mark.usefixtures("filters")
@pytest.mark.parametrize("least", [1, 2**62], ids=["filters", "none"])
def test_sizes_of_filters_on_a_gpu(least: int, tune: Tune) -> None:
    """Filters of every size in the shared memory of a GPU, in runs that come again."""
    tune(tuning.key_filters, least_slots=least)
    for build in (3, 300, 2_000):
        tables = _tables(build, build)
        for _ in range(6):
            for kind in ("JOIN", "LEFT JOIN", "ANTI JOIN"):
                given = "count(*), sum(p.v)" if kind == "ANTI JOIN" else "count(*), sum(p.v), sum(b.v)"
                for key in ("k", "n", "far"):
                    sql = f"SELECT {given} FROM p {kind} d b ON p.{key} = b.{key}"
                    assert_same(sql, tables, targets=("cuda",))
            assert_same("SELECT count(*) FROM s WHERE k IN (SELECT k FROM d)", tables, targets=("cuda",))
