"""States that do not fit memory are made in parts: DuckDB's answers, whatever is refused, and nothing stays behind.

Memory is refused on purpose: a state of more than some slots finds no room. So few rows will do, in parts of parts.
"""

from __future__ import annotations

import gc
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import errors, tuning
from gquery.device import spill
from gquery.device.device import Device
from gquery.device.host_tier import HostTier
from gquery.device.spill import SpillSpace
from gquery.errors import OutOfMemoryError
from gquery.execution import held, sort_parts
from gquery.execution.state import StageReport
from gquery.expression.expr import new_column
from gquery.expression.types import BIGINT, PhysicalType
from gquery.kernels.values import value_properties
from gquery.operators.base import Frame
from gquery.operators.group import GroupRun
from gquery.operators.join_table import BuildRun
from gquery.planner.physical import DistinctRows, SortRows, Stored
from tests.support.cases import Case, read_cases
from tests.support.faults import failing_allocations
from tests.support.frames import column, frame, values_of
from tests.support.harness import assert_same, compare, expect, oracle
from tests.support.in_parts import Refused, all_in_parts
from tests.support.marks import one_in
from tests.support.queries import Generator, random_tables
from tests.support.tuned import Tune
from tpch import queries
from tpch.generate import files, generate
from tpch.oracle import Oracle
from tpch.validate import difference, order_columns

TARGETS = ["cpu", pytest.param("python", marks=pytest.mark.slow)]


TURNS = 40 if os.environ.get("GQUERY_FAULTS") else 3  # allocations that fail


def tables() -> dict[str, pa.Table]:
    r = np.random.default_rng(3)
    n = 3000
    keys = r.integers(0, 2**50, 700)[r.integers(0, 700, n)]
    texts = [None if k % 9 == 0 else f"text {row // 2}" * (1 + row // 2 % 4) for row, k in enumerate(keys.tolist())]
    there = np.repeat(np.unique(keys)[::2], 2)
    return {
        "t": pa.table({
            "k": pa.array(keys), "n": pa.array(keys, mask=r.random(n) < 0.1), "s": pa.array(texts, pa.string()),
            "f": pa.array(np.where(r.random(n) < 0.2, np.nan, r.integers(0, 90, n) / 8)), "v": pa.array(np.arange(n)),
            "d": pa.array(r.integers(-50, 1450, n)), "z": pa.nulls(n, pa.int64()),
            "w": pa.array(np.where(r.random(n) < 0.5, 7, keys)),
        }),
        "u": pa.table({"k": pa.array(there), "w": pa.array(np.arange(there.size) % 13)}),
        "e": pa.table({"k": pa.array([], pa.int64()), "s": pa.array([], pa.string())}),
        "x": pa.table({"i": pa.array(r.permutation(900)), "s": pa.array(texts[:900], pa.string()), "k": pa.array(keys[:900]),
                       "n": pa.array(keys[:900], mask=r.random(900) < 0.1)}),
        "h": pa.table({"a": pa.array(np.where(r.random(500) < 0.6, 5, np.arange(500)), mask=r.random(500) < 0.1),
                       "b": pa.array(np.arange(500) % 11)}),
        "p": pa.table({"a": pa.array(np.arange(60) % 20, mask=np.arange(60) % 17 == 0), "c": pa.array(np.arange(60))}),
    }  # fmt: skip


TABLES = tables()


@pytest.fixture
def folder(tmp_path: Path, tune: Tune) -> Path:
    tune(tuning.memory, least_spilled=256)
    tune(tuning.spilling, least_parts=8, least_rows=2, levels=4)
    return tmp_path


def limited(folder: Path, target: str = "cpu", **settings: Any) -> gquery.Connection:
    db = gquery.connect(device=target, threads=2, memory_limit="1GB")
    for name, value in ({"spill_directory": str(folder), "interpret_limit": 0} | settings).items():
        db.set(name, value)
    for name, table in TABLES.items():
        db.register(name, table)
    for name in TABLES:
        db.sql(f"SELECT * FROM {name}").fetchall()
    _columns[id(db)] = _taken(db)
    return db


_columns: dict[int, int] = {}  # bytes of the columns of each connection


def _taken(db: gquery.Connection) -> int:
    db._plans.clear()
    db._templates.clear()
    gc.collect()
    return db.device.account.taken


def check_nothing_left(db: gquery.Connection, folder: Path) -> None:
    """No file, and nothing in files or memory but the columns of tables."""
    taken, space = _taken(db), db.device.spill
    assert taken <= _columns[id(db)]
    assert space is not None and space.taken <= tuning.memory.shared_file and os.listdir(folder) == []


class Parts:
    """Which states were made, and refused."""

    def __init__(self) -> None:
        self.made = self.refused = 0


@pytest.fixture
def few_groups(monkeypatch: pytest.MonkeyPatch, tune: Tune) -> Parts:
    """No state of groups finds room for more than 512 slots."""
    tune(tuning.group_layouts, least_hash_slots=16, sparse_slots=200)
    whole, parts = GroupRun.make_state, Parts()

    def make_state(self: GroupRun) -> Any:
        if self.capacity > 512:
            parts.refused += 1
            raise OutOfMemoryError(f"no room for {self.label}, on purpose")
        parts.made += 1
        return whole(self)

    monkeypatch.setattr(GroupRun, "make_state", make_state)
    return parts


GROUPS = [
    "SELECT k, count(*), sum(v), min(s), max(f) FROM t GROUP BY k",
    "SELECT n, avg(v), count(n), count(DISTINCT s) FROM t GROUP BY n",
    "SELECT s, sum(v), max(k) FROM t GROUP BY s HAVING count(*) > 1",
    "SELECT f, n, count(*), min(v) FROM t GROUP BY f, n",
    "SELECT s || '!', k + 1, count(*) FROM t GROUP BY s, k",
    "SELECT t.k, sum(u.w), count(*) FROM t JOIN u ON t.k = u.k WHERE t.v % 3 > 0 GROUP BY t.k",
    "SELECT u.w * 100 + t.d % 100 AS x, count(*) FROM t JOIN u ON t.k = u.k GROUP BY x",
    "SELECT DISTINCT s, n FROM t",
    "SELECT count(*), sum(c) FROM (SELECT k, count(*) AS c FROM t WHERE v < 0 GROUP BY k)",
    "SELECT d, count(*), sum(v) FROM t GROUP BY d",
    "SELECT d, v % 7 AS m, count(*), sum(z), max(d) FROM t GROUP BY d, m",
    "SELECT d, sum(d), min(d), count(*) FROM t WHERE v % 2 = 0 GROUP BY d HAVING count(*) > 1",
    "SELECT d - 2000, max(v) FROM t GROUP BY 1",
    "SELECT w, count(*), sum(v) FROM t GROUP BY w",
    "SELECT z, v, count(z) FROM t GROUP BY z, v",
    "SELECT count(DISTINCT k), count(DISTINCT s), sum(DISTINCT v) FROM t",
    "SELECT k, count(*) FROM t FULL JOIN u USING (k) GROUP BY k",
    "SELECT k, sum(k), first_value FROM (SELECT k, v AS first_value FROM t) GROUP BY k, first_value",
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sql", one_in(2, GROUPS))
def test_groups_by_parts_are_the_groups(sql: str, target: str, folder: Path, few_groups: Parts) -> None:
    """Twice, since the second run finds what the first one has left."""
    types, want = expect(sql, TABLES)
    db = limited(folder, target)
    for _ in range(2):
        few_groups.refused = few_groups.made = 0
        got = db.sql(sql).fetchall()
        assert compare(got, want, False, types) is None
        assert (few_groups.refused > 0 and few_groups.made > 3) or "v < 0" in sql
    del got
    check_nothing_left(db, folder)


def test_groups_of_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that is refused although there are no rows."""
    db, whole = limited(folder), GroupRun.make_state
    refused: list[str] = []

    def make_state(self: GroupRun) -> Any:
        if not refused:
            refused.append(self.label)
            raise OutOfMemoryError("on purpose")
        return whole(self)

    monkeypatch.setattr(GroupRun, "make_state", make_state)
    assert db.sql("SELECT s, count(*), max(k) FROM e GROUP BY s").fetchall() == [] and refused


def test_what_is_too_large_in_parts_is_one_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_state(self: GroupRun) -> Any:
        raise self.device._out_of_memory(123_456, self.label)

    db = limited(folder)
    with monkeypatch.context() as patch:
        patch.setattr(GroupRun, "make_state", make_state)
        with pytest.raises(OutOfMemoryError, match=r"in group by k: 123.* wanted.*Remedies: raise memory_limit"):
            db.sql("SELECT k, sum(v) FROM t GROUP BY k").fetchall()
    check_nothing_left(db, folder)
    assert len(db.sql("SELECT k, sum(v) FROM t GROUP BY k").fetchall()) == 693


@pytest.mark.parametrize("full", [1, *[pytest.param(n, marks=pytest.mark.slow) for n in (2, 5)]])
def test_a_full_disk_is_one_error(full: int, folder: Path, few_groups: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    db, whole, seen = limited(folder), spill.allocate, 0

    def allocate(file: int, size: int) -> None:
        nonlocal seen
        seen += 1
        if seen == full:
            raise OSError(28, "No space left on device")
        whole(file, size)

    with monkeypatch.context() as patch:
        patch.setattr(spill, "allocate", allocate)
        with pytest.raises(OutOfMemoryError, match=r"No space left on device.*Remedies: raise spill_limit"):
            db.sql(GROUPS[0]).fetchall()
    check_nothing_left(db, folder)
    types, want = expect(GROUPS[0], TABLES)
    assert compare(db.sql(GROUPS[0]).fetchall(), want, False, types) is None


@pytest.mark.parametrize("sql", [GROUPS[0], pytest.param(GROUPS[11], marks=pytest.mark.slow)])
def test_failed_allocations_leave_nothing(sql: str, folder: Path, few_groups: Parts) -> None:
    types, want = expect(sql, TABLES)
    db = limited(folder)
    db.sql(sql).fetchall()
    with failing_allocations(0) as count:
        db.sql(sql).fetchall()
    rng = random.Random(7)
    for at in sorted(rng.sample(range(1, count.seen), TURNS)):
        with failing_allocations(at):
            try:
                got = db.sql(sql).fetchall()
                assert compare(got, want, False, types) is None
                del got
            except errors.OutOfMemoryError:
                pass
        check_nothing_left(db, folder)
    assert compare(db.sql(sql).fetchall(), want, False, types) is None


def test_interrupts_leave_nothing(folder: Path, few_groups: Parts) -> None:
    told = 0
    db = limited(folder)
    db.sql(GROUPS[0]).fetchall()
    for seconds in (0.001, 0.005, 0.01, 0.02, 0.03):
        timer = threading.Timer(seconds, db.interrupt)
        timer.start()
        try:
            db.sql(GROUPS[0]).fetchall()
        except errors.InterruptError:
            told += 1
        timer.join()
        check_nothing_left(db, folder)
    assert told


def test_explain_analyze_tells_of_parts(folder: Path, few_groups: Parts) -> None:
    db = limited(folder)
    for sql in (GROUPS[0], GROUPS[9]):
        text = "\n".join(r[0] for r in db.sql(f"EXPLAIN ANALYZE {sql}").fetchall())
        assert "made in " in text and " parts, " in text and " spilled" in text, text


# ---- joins -------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_tables(monkeypatch: pytest.MonkeyPatch) -> Parts:
    """No join table finds room for more than 120 rows."""
    whole, parts = BuildRun.make_state, Parts()

    def make_state(self: BuildRun) -> Any:
        if self.launch.rows > 120 and self.table.layout in ("direct-address", "hash"):
            parts.refused += 1
            raise OutOfMemoryError(f"no room for {self.label}, on purpose")
        parts.made += 1
        return whole(self)

    monkeypatch.setattr(BuildRun, "make_state", make_state)
    return parts


JOINS = [
    "SELECT t.k, t.v, x.i FROM t JOIN x ON t.k = x.k",
    "SELECT t.v, x.i, x.s FROM t JOIN x ON t.d = x.i",
    "SELECT count(*), sum(t.v), sum(x.i) FROM t JOIN x ON t.s = x.s AND t.n = x.n",
    "SELECT t.v, x.i, x.s FROM t LEFT JOIN x ON t.n = x.n AND x.i % 3 = 1",
    "SELECT t.v, x.i, t.s, x.k FROM t FULL JOIN x ON t.n = x.n",
    "SELECT t.v, x.i, t.s, x.k FROM t FULL JOIN x ON t.d = x.i AND t.v > x.k % 1000",
    "SELECT v FROM t WHERE n IN (SELECT n FROM x)",
    "SELECT v FROM t WHERE n NOT IN (SELECT n FROM x WHERE n IS NOT NULL)",
    "SELECT v FROM t WHERE n NOT IN (SELECT n FROM x)",
    "SELECT v, n NOT IN (SELECT n FROM x), n IN (SELECT n FROM x WHERE i > 2000) FROM t",
    "SELECT v, d IN (SELECT i FROM x), s IN (SELECT s FROM x) FROM t",
    "SELECT v FROM t WHERE EXISTS (SELECT * FROM x WHERE x.k = t.k AND x.i <> t.v)",
    "SELECT v FROM t WHERE NOT EXISTS (SELECT * FROM x WHERE x.n = t.n AND x.i < t.v)",
    "SELECT v, (SELECT i FROM x WHERE x.i = t.d) FROM t",
    "SELECT t.v, x.i, u.w FROM t JOIN x ON t.k = x.k JOIN u ON x.k = u.k WHERE u.w > 2",
    "SELECT x.i, count(*), sum(u.w) FROM t LEFT JOIN x ON t.k = x.k LEFT JOIN u ON t.n = u.k AND u.w > x.i GROUP BY x.i",
    "SELECT t.v, x.i FROM t JOIN x ON t.k IS NOT DISTINCT FROM x.n AND t.n IS NOT DISTINCT FROM x.n",
    "SELECT count(*), sum(h.b), max(t.s) FROM t JOIN h ON t.v % 20 = h.a",
    "SELECT p.c, h.b FROM p LEFT JOIN h ON p.a = h.a AND h.b > 3",
    "SELECT p.c, h.b, h.a FROM p FULL JOIN h ON p.a = h.a",
    "SELECT c FROM p WHERE a IN (SELECT a FROM h) AND EXISTS (SELECT * FROM h WHERE h.a = p.a AND h.b = p.c % 11)",
    "SELECT c FROM p WHERE a NOT IN (SELECT a FROM h)",
    "SELECT c FROM p WHERE NOT EXISTS (SELECT * FROM h WHERE h.a = p.a AND h.b + p.c % 11 = 7)",
    "SELECT c FROM p WHERE NOT EXISTS (SELECT * FROM h WHERE h.a = p.a)",
    "SELECT c FROM p WHERE EXISTS (SELECT * FROM h WHERE h.a = p.a AND h.b + p.c % 11 = 7)",
    "SELECT p.c, h.b FROM p LEFT JOIN h ON p.a = h.a AND h.b > p.c % 11",
    "SELECT p.c, h.b, h.a FROM p FULL JOIN h ON p.a = h.a AND h.b > p.c % 11",
    "SELECT c, a IN (SELECT a FROM h WHERE b > 1) FROM p",
    "SELECT c FROM p WHERE NOT EXISTS (SELECT * FROM h WHERE h.a = p.a AND h.b > p.c % 11)",
    "SELECT count(*) FROM t JOIN x ON t.k = x.k WHERE t.v < 0",
    "SELECT * FROM e FULL JOIN x ON e.k = x.k",
    "SELECT t.v FROM t JOIN x ON t.k + 1 = x.k + 1 AND t.d = x.i LIMIT 100000",
    "SELECT a.v, b.v FROM t a JOIN t b ON a.d = b.v JOIN t c ON b.k = c.k WHERE c.v % 5 = 0",
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sql", one_in(3, JOINS))
def test_joins_by_parts_are_the_joins(sql: str, target: str, folder: Path, small_tables: Parts) -> None:
    types, want = expect(sql, TABLES)
    db = limited(folder, target)
    for _ in range(2):
        small_tables.refused = small_tables.made = 0
        got = db.sql(sql).fetchall()
        assert compare(got, want, False, types) is None
        assert small_tables.refused > 0, small_tables.made
    del got
    check_nothing_left(db, folder)


def test_a_subquery_with_two_rows_in_two_pieces(folder: Path, small_tables: Parts) -> None:
    db = limited(folder)
    with pytest.raises(errors.CardinalityError, match="more than one row"):
        db.sql("SELECT c, (SELECT b FROM h WHERE h.a = p.a) FROM p").fetchall()
    check_nothing_left(db, folder)


def test_groups_and_joins_that_both_do_not_fit(folder: Path, small_tables: Parts, few_groups: Parts) -> None:
    types, want = expect(f"SELECT v, max(i), count(*) FROM ({JOINS[0]}) GROUP BY v", TABLES)
    db = limited(folder)
    got = db.sql(f"SELECT v, max(i), count(*) FROM ({JOINS[0]}) GROUP BY v").fetchall()
    assert compare(got, want, False, types) is None and small_tables.refused and few_groups.refused


# ---- sorts -------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_sorts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    """No sort finds room for more than 300 rows at once."""
    whole, parts = held.scratch_of, Parts()

    def scratch_of(work: Any, frames: Any) -> int:
        if isinstance(work, SortRows | DistinctRows) and frames[work.stage].rows > 300:
            parts.refused += 1
            raise OutOfMemoryError("no room for a sort, on purpose")
        return whole(work, frames)

    monkeypatch.setattr(held, "scratch_of", scratch_of)
    monkeypatch.setattr(sort_parts, "chunk_rows", lambda frame, device: 300)
    return parts


SORTS = [
    "SELECT k, v FROM t ORDER BY k, v",
    "SELECT * FROM t ORDER BY s DESC NULLS FIRST, f NULLS LAST, v",
    "SELECT s, n, v FROM t ORDER BY n DESC, s, v LIMIT 2500 OFFSET 200",
    "SELECT s, v FROM t ORDER BY f DESC, v LIMIT 20 OFFSET 7",
    "SELECT v, s FROM t ORDER BY s NULLS FIRST, v DESC LIMIT 5",
    "SELECT w, v FROM t ORDER BY w, v",
    "SELECT z, f, v FROM t ORDER BY z, f, v DESC",
    "SELECT k::DECIMAL(38, 0) * 100000000000 AS big, v FROM t ORDER BY big DESC, v",
    "SELECT v % 2 = 0 AS even, (v % 9)::DECIMAL(5, 2) AS d, v FROM t ORDER BY even, d DESC, v",
    "SELECT v FROM t ORDER BY v DESC LIMIT 10000 OFFSET 2990",
    "SELECT v FROM t ORDER BY v OFFSET 5000",
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sql", one_in(2, SORTS))
def test_sorts_by_parts_are_the_sorts(sql: str, target: str, folder: Path, small_sorts: Parts) -> None:
    types, want = expect(sql, TABLES)
    db = limited(folder, target)
    for _ in range(2):
        small_sorts.refused = 0
        got = db.sql(sql).fetchall()
        assert compare(got, want, True, types) is None and small_sorts.refused
    del got
    check_nothing_left(db, folder)


def test_rows_that_compare_equal_keep_their_order(folder: Path, small_sorts: Parts) -> None:
    """All rows of one key, some of few: as a sort in memory leaves them, which is stable."""
    db = limited(folder)
    for key in ("z", "w < 8", "v % 3"):
        sql = f"SELECT v FROM t ORDER BY {key}"
        with gquery.connect(device="cpu") as free:
            free.register("t", TABLES["t"])
            assert db.sql(sql).fetchall() == free.sql(sql).fetchall()


@pytest.mark.parametrize("rows", [0, 301, 3000])
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("ordinal", [0, 1])
def test_different_values_by_parts(rows: int, counted: bool, ordinal: int, folder: Path, small_sorts: Parts) -> None:
    space = SpillSpace(str(folder))
    device = Device("cpu", ordinal, 10**9, None if ordinal else space)
    device.below = HostTier(device, None, space) if ordinal else None
    for values in (np.arange(rows) * 7 % 501, np.zeros(rows, np.int64), np.arange(rows)[::-1].copy()):
        made = frame(column(values.tolist(), PhysicalType.I64, device))
        source, result = new_column("a", BIGINT), new_column("b", BIGINT)
        made = Frame({source.id: made.columns[0]}, rows)
        known = value_properties(BIGINT, None, nullable=False)
        work = DistinctRows(0, source, (Stored(result, known, PhysicalType.I64),), counted)
        found = sort_parts.distinct_by_parts(work, made, device, StageReport(0, "", "", 0, 0.0))
        want = np.unique(values).tolist()
        assert values_of(found.columns[result.id]) == ([len(want)] if counted else want)


def test_a_sort_that_fails_leaves_nothing(folder: Path, small_sorts: Parts) -> None:
    db = limited(folder)
    want = db.sql(SORTS[4]).fetchall()
    with failing_allocations(0) as count:
        db.sql(SORTS[4]).fetchall()
    for at in sorted(random.Random(3).sample(range(1, count.seen), TURNS)):
        with failing_allocations(at):
            try:
                got = db.sql(SORTS[4]).fetchall()
                assert repr(got) == repr(want)
                del got
            except errors.OutOfMemoryError:
                pass
        check_nothing_left(db, folder)


# ---- what is kept for later runs ---------------------------------------------------------------------------------


def test_other_constants_have_other_parts(folder: Path, few_groups: Parts, small_tables: Parts) -> None:
    """Parts are cut once a plan: texts of one shape, and a statement with parameters, have their own constants in them."""
    text = "SELECT t.k, count(*), sum(x.i + {0}) FROM t JOIN x ON t.k = x.k WHERE t.v % 7 > {0} GROUP BY t.k"
    db = limited(folder)
    for _ in range(2):
        for constant in (1, 3, 5):
            sql = text.format(constant)
            types, want = expect(sql, TABLES)
            assert compare(db.sql(sql).fetchall(), want, False, types) is None
            prepared = db.execute(text.format("?"), [constant, constant]).fetchall()
            assert compare(prepared, want, False, types) is None


def test_a_raised_limit_needs_no_parts(folder: Path, few_groups: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    db, sql = limited(folder), GROUPS[0]
    want = sorted(map(repr, db.sql(sql).fetchall()))
    monkeypatch.undo()
    db.set("memory_limit", None)
    assert sorted(map(repr, db.sql(sql).fetchall())) == want


# ---- everything in parts -----------------------------------------------------------------------------------------

LANE = {"memory_limit": "1GB"}


@pytest.fixture
def everything(tune: Tune) -> Iterator[Refused]:
    tune(tuning.memory, least_spilled=64)
    tune(tuning.spilling, least_parts=3)
    with all_in_parts() as refused:
        yield refused


def test_random_queries_in_parts(everything: Refused) -> None:
    for seed in [*range(5_000_000, 5_000_030), 5_000_113, 5_000_184, 5_000_539]:
        tables = random_tables(seed // 20 % 40)
        sql = Generator(seed).query()
        try:
            oracle(tables).execute(sql)
        except duckdb.Error:
            continue
        try:
            assert_same(sql, tables, targets=("python",), ranks=(1,), settings=LANE)
        except Exception as error:
            error.add_note(f"seed {seed}:\n{sql}")
            raise
    assert min(everything.groups, everything.tables, everything.sorts) > 2


ORDERED = [  # a join behind a sort, which fetches what the first rows need
    "SELECT x.i, t.v, t.s, u.w FROM x JOIN t ON x.k = t.k JOIN u ON x.k = u.k ORDER BY x.i, t.v, u.w LIMIT 50 OFFSET 3",
    "SELECT t.k, max(x.s), sum(t.v) AS total FROM t JOIN x ON t.k = x.k GROUP BY t.k ORDER BY total DESC, t.k LIMIT 30",
    "SELECT a.v, x.s, u.w FROM (SELECT * FROM t ORDER BY v DESC LIMIT 90) a LEFT JOIN x ON a.k = x.k LEFT JOIN u ON a.k = u.k "
    "ORDER BY a.v DESC, x.s, u.w",
]


@pytest.mark.parametrize("sql", ORDERED)
def test_sorted_rows_that_are_joined_keep_their_order(sql: str, folder: Path, everything: Refused) -> None:
    assert_same(sql, TABLES, ordered=True, targets=("python",), ranks=(1,), settings=LANE)


def test_tpch_in_parts(everything: Refused) -> None:
    """Whole queries, whose sorts come before joins that fetch what is shown, in DuckDB's order."""
    data = generate(0.001, echo=False)
    oracle = Oracle(0.001, data)
    oracle.prepare(queries.NUMBERS)
    with gquery.connect(device="python", memory_limit="1GB") as db:
        for table, path in files(data).items():
            db.sql(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
        for number in queries.NUMBERS:
            relation = db.sql(queries.sql(number))
            rows, types = relation.fetchall(), [str(t) for t in relation.types]
            expected = oracle.expected(number, types)
            assert expected is not None
            order = order_columns(queries.sql(number), list(relation.columns))
            assert not difference(rows, expected, order), f"Q{number}"


@pytest.mark.slow
@pytest.mark.parametrize("case", read_cases(), ids=lambda c: c.name)
def test_cases_in_parts(case: Case, everything: Refused) -> None:
    assert_same(case.sql, case.tables(), case.ordered, targets=("python",), ranks=(1,), settings=LANE)
