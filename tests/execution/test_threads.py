"""Groups that several threads of a CPU accumulate: each into a state of its own, or all into one, through caches of their
own or by runs."""

from __future__ import annotations

import os
import re
import threading
import time
import weakref
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.kernels.builtin import grouping
from gquery.kernels.targets import cpu, get_target, morsels
from gquery.kernels.targets.morsels import run_morsels, run_parts
from gquery.operators import group_output
from gquery.operators.group import GroupRun
from gquery.operators.group_output import GroupOutput
from gquery.planner.physical import Group, Pipeline
from tests.support import simulated_target
from tests.support.harness import compare, expect
from tests.support.marks import in_turns
from tests.support.paths import GOLDEN
from tests.support.tuned import Tune

ROWS = 24_000
LOW, HIGH = -(2**63), 2**63 - 1


WIDE = pa.decimal128(38, 5)


def tables() -> dict[str, pa.Table]:
    r = np.random.default_rng(11)
    spread = r.integers(0, 2**60, ROWS // 3)[r.integers(0, ROWS // 3, ROWS)]
    return {
        "t": pa.table(
            {
                "ordered": np.sort(r.integers(0, 20_000, ROWS)),
                "runs": np.repeat(np.arange(400), ROWS // 400),
                "narrow": spread >> 20,
                "dense": r.integers(0, 30_000, ROWS),
                "spread": spread - 2**59,
                "skewed": np.where(r.random(ROWS) < 0.5, HIGH, spread),
                "edges": np.array([LOW, HIGH, 0, -1, 1])[r.integers(0, 5, ROWS)],
                "absent": pa.array([None if k % 5 == 0 else int(k) for k in spread]),
                "text": pa.array([None if k % 97 == 0 else f"text {k % 9001}" for k in spread]),
                "v": r.integers(-(10**12), 10**12, ROWS),
                "big": r.integers(LOW // 2, HIGH // 2, ROWS),
                "f": r.integers(-1000, 1000, ROWS) / 8,
                "n": pa.array([None if x < 3 else int(x) for x in r.integers(0, 10, ROWS)]),
                "money": pa.array(
                    [Decimal(int(x)).scaleb(-2) for x in r.integers(-(10**9), 10**9, ROWS)], pa.decimal128(15, 2)
                ),
                "wide": pa.array(
                    [Decimal(int(x) * 10**15).scaleb(-5) for x in r.integers(-(10**18), 10**18, ROWS)], WIDE
                ),
                "real": (r.integers(-1000, 1000, ROWS) / 8).astype(np.float32),
                "day": r.integers(0, 20_000, ROWS).astype("datetime64[D]"),
            }
        )
    }


TABLES = tables()
MANY_ACCUMULATORS = "count(*), sum(v), min(v), max(f), sum(f), count(n), avg(big), sum(v) FILTER (WHERE n > 5)"
QUERIES = {  # by how threads share the groups: what EXPLAIN says of it where every state counts as large
    "direct-address arrays for all threads, each with a cache": f"SELECT dense, {MANY_ACCUMULATORS} FROM t GROUP BY dense",
    "direct-address arrays for all threads": f"SELECT ordered, {MANY_ACCUMULATORS} FROM t GROUP BY ordered",
    "hash table for all threads, each with a cache": f"SELECT spread, {MANY_ACCUMULATORS} FROM t GROUP BY spread",
    "hash table for all threads": "SELECT runs, narrow, sum(v), max(n) FROM t GROUP BY runs, narrow",
    "row-id hash table for all threads, each with a cache": "SELECT text, f, count(*), sum(v), min(n) FROM t GROUP BY text, f",
}
MORE = (
    "SELECT DISTINCT spread FROM t",
    "SELECT DISTINCT ordered FROM t WHERE n > 4",
    "SELECT DISTINCT text FROM t",
    "SELECT skewed, count(*), sum(f) FROM t GROUP BY skewed",
    "SELECT edges, count(*), min(v) FROM t GROUP BY edges",
    "SELECT absent, min(f), max(n) FROM t GROUP BY absent",
    "SELECT dense, count(n) FROM t WHERE v > 10000000000000 GROUP BY dense",
    "SELECT ordered, max(text) FROM t GROUP BY ordered",
)


@pytest.fixture
def db(tune: Tune) -> gquery.Connection:
    """A connection whose threads all have something to do."""
    tune(tuning.threads, morsel_rows=1000)
    tune(tuning.accumulators, combined_slots=512)
    connection = gquery.connect(device="cpu", threads=4)
    connection.sql("SET interpret_limit = 0")
    for name, table in TABLES.items():
        connection.register(name, table)
    return connection


def assert_right(db: gquery.Connection, sql: str) -> None:
    types, rows = expect(sql, TABLES)
    found = db.sql(sql)
    assert (wrong := compare(found.fetchall(), rows, False, types)) is None, wrong


SPREAD = "hash table for all threads, each with a cache"


@pytest.mark.parametrize(("how", "partitions"), [*((how, 1) for how in QUERIES), (SPREAD, 3)])
def test_one_state(how: str, partitions: int, db: gquery.Connection, tune: Tune) -> None:
    tune(tuning.accumulators, own_words=0)
    db.sql(f"SET partitions = {partitions}")
    assert re.search(rf"{how},", db.explain(QUERIES[how], "pipelines"))
    for _ in range(2):  # the second run knows how many groups there are
        assert_right(db, QUERIES[how])


@pytest.mark.parametrize("sql", MORE)
def test_one_state_of_other_groups(sql: str, db: gquery.Connection, tune: Tune) -> None:
    tune(tuning.accumulators, own_words=0)
    assert_right(db, sql)


@pytest.mark.parametrize(
    ("sql", "entries"), [*((sql, 0) for sql in (*QUERIES.values(), *MORE[4:6])), (QUERIES[SPREAD], 10**9)]
)
def test_own_states(sql: str, entries: int, db: gquery.Connection, tune: Tune) -> None:
    tune(tuning.accumulators, own_words=2**40)
    tune(tuning.accumulators, sorted_slots=entries)
    assert_right(db, sql)


@pytest.mark.parametrize("how", list(QUERIES)[::2][:2])
def test_large_states_of_their_own(how: str, db: gquery.Connection, tune: Tune) -> None:
    """Where enough rows go to each slot, and there is memory for the states of all threads."""
    tune(tuning.accumulators, own_words=0, own_slot_rows=0, own_group_rows=0)
    assert how.startswith(("direct", "hash")) and "for all threads" not in db.explain(QUERIES[how], "pipelines")
    assert_right(db, QUERIES[how])
    tune(tuning.accumulators, own_memory=2**40)
    assert "for all threads" in db.explain(QUERIES[how], "pipelines")


@pytest.mark.parametrize("keys", ["text, f, v", "spread, v"])
@pytest.mark.parametrize("target", ["python", "cpu"])
def test_a_full_table_ends_an_attempt_soon(target: str, keys: str, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """It is met after few rows where there are many groups: then no more are run, and none walks through all of its slots."""
    tune(tuning.threads, morsel_rows=1000)
    tune(tuning.materialization, unit=1024)
    sql = f"SELECT {keys}, count(*) FROM t GROUP BY {keys}"
    ranges: list[int] = []
    make, kind = GroupRun.__init__, type(get_target(target))
    run: Any = kind.run if target == "python" else morsels.run_morsels

    def small(self: GroupRun, *args: Any) -> None:
        make(self, *args)
        self.capacity = 64
        ranges.append(0)

    def counted(*args: Any, **kwargs: Any) -> Any:
        if target == "python":
            ranges[-1] += args[3] - args[2]
            return run(*args, **kwargs)
        work, *rest = args

        def counting(worker: int, lo: int, hi: int) -> None:
            ranges[-1] += hi - lo
            work(worker, lo, hi)

        return run(counting, *rest, **kwargs)

    monkeypatch.setattr(GroupRun, "__init__", small)
    place: Any = kind if target == "python" else cpu
    monkeypatch.setattr(place, "run" if target == "python" else "run_morsels", counted)
    rows = 4_000 if target == "python" else ROWS
    table = TABLES["t"].slice(0, rows)
    with gquery.connect(device=target, threads=2) as db:
        db.register("t", table)
        db.sql("SET interpret_limit = 0")
        types, want = expect(sql, {"t": table})
        assert compare(db.sql(sql).fetchall(), want, False, types) is None
    failed = [n for n in ranges if n < rows]
    assert len(failed) >= 3, "the table grew"
    assert failed[0] <= 4096 and sum(failed[:-2]) < rows, ranges


def test_a_table_that_threads_share_grows(db: gquery.Connection, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    tune(tuning.accumulators, own_words=0)
    attempts: list[int] = []
    make, grow = GroupRun.__init__, GroupRun.grow

    def small(self: GroupRun, *arguments: Any) -> None:
        make(self, *arguments)
        if not attempts:
            self.capacity = 512

    def counted(self: GroupRun) -> bool:
        attempts.append(self.capacity)
        return grow(self)

    monkeypatch.setattr(GroupRun, "__init__", small)
    monkeypatch.setattr(GroupRun, "grow", counted)
    assert_right(db, QUERIES[SPREAD])
    assert attempts == [512]


def test_a_later_run_takes_a_smaller_table(db: gquery.Connection, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    tune(tuning.accumulators, own_words=0)
    made: list[int] = []
    allocate = GroupRun.allocate

    def noted(self: GroupRun) -> Any:
        made.append(self.capacity)
        return allocate(self)

    monkeypatch.setattr(GroupRun, "allocate", noted)
    sql = "SELECT spread % 10, count(*) FROM t WHERE spread % 7 = 1 GROUP BY spread % 10"
    assert_right(db, sql)
    first = list(made)
    assert_right(db, sql)
    assert made[len(first) :] <= first


LARGE = {
    "direct-address": "SELECT dense, n, count(*), sum(v), min(v), max(f), sum(f), avg(big), count(n) FROM t GROUP BY dense, n",
    "hash": "SELECT spread, sum(v), min(n), max(f), avg(v), sum(n) FROM t GROUP BY spread",
    "hash of NULLs": "SELECT absent, count(*), min(v) FILTER (WHERE n > 5) FROM t GROUP BY absent",
    "hash of several": "SELECT narrow, n, runs > 200, sum(v) FROM t GROUP BY narrow, n, runs > 200",
    "wide sums": "SELECT dense, sum(big), avg(big), sum(wide), avg(wide), avg(money), sum(money), avg(n) FROM t GROUP BY dense",
    "sums of few": "SELECT dense, sum(wide) FILTER (WHERE n > 8), avg(big) FILTER (WHERE n > 8) FROM t GROUP BY dense",
    "many constants": "SELECT dense, "
    + ", ".join(f"sum(money * v + {n})" for n in range(80))
    + " FROM t GROUP BY dense",
    "small floats": "SELECT dense, sum(real), max(real), min(-f), max(f > 0), min(day) FROM t GROUP BY dense",
    "rows": "SELECT text, f, count(*), sum(v), avg(big), min(n), sum(wide), max(f) FROM t GROUP BY text, f",
    "one text": "SELECT ordered, any_value(text) FROM t WHERE text = 'text 7' GROUP BY ordered",
}


WAYS: tuple[tuple[Literal["cpu", "cuda"], int], ...] = (("cpu", 0), ("cuda", 0), ("cuda", 32), ("cpu", 32))


@pytest.mark.parametrize(("name", "way"), in_turns(2, LARGE, WAYS))
def test_states_become_columns(
    name: str,
    way: tuple[Literal["cpu", "cuda"], int],
    db: gquery.Connection,
    monkeypatch: pytest.MonkeyPatch,
    tune: Tune,
) -> None:
    """The kernels of both targets take the same groups from a state, whose words they load at once or one after another; that of
    a GPU runs in a simulation."""
    sql, (target, loaded) = LARGE[name], way
    made: list[str] = []
    columns = group_output.GroupOutput.columns

    def as_told(self: GroupOutput, *arguments: Any) -> Any:
        made.append(self.target)
        return columns(GroupOutput(self.sink, target), *arguments)

    tune(tuning.accumulators, finalized_slots=1, loaded_words=loaded)
    monkeypatch.setattr(GroupOutput, "columns", as_told)
    monkeypatch.setattr(
        group_output, "get_target", lambda name: simulated_target.TARGET if name == "cuda" else get_target(name)
    )
    db.register("t", TABLES["t"].slice(0, 700))
    tables = {"t": TABLES["t"].slice(0, 700)}
    types, rows = expect(sql, tables)
    found = db.sql(sql).fetchall()
    assert (wrong := compare(found, rows, False, types)) is None, wrong
    assert made == ["cpu"]


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT k, count(*), sum(w) FROM o GROUP BY k", "Overflow in sum: the result does not fit DECIMAL"),
        ("SELECT s, min(k), avg(w) FROM o GROUP BY s", "Overflow in avg: the sum of its values has more than 128 bits"),
        ("SELECT k, sum(b)::BIGINT, sum(n) FROM o GROUP BY k", "BIGINT"),
    ],
)
def test_what_does_not_fit(
    sql: str,
    says: str,
    target: Literal["cpu", "cuda"],
    db: gquery.Connection,
    monkeypatch: pytest.MonkeyPatch,
    tune: Tune,
) -> None:
    """The kernels that make columns of groups see it."""
    columns = group_output.GroupOutput.columns
    tune(tuning.accumulators, finalized_slots=1)
    monkeypatch.setattr(GroupOutput, "columns", lambda self, *a: columns(GroupOutput(self.sink, target), *a))
    monkeypatch.setattr(
        group_output, "get_target", lambda name: simulated_target.TARGET if name == "cuda" else get_target(name)
    )
    most = Decimal(10**38 - 1)
    k = [7, 7, *range(20)]
    o = {"k": k, "s": [f"s{x}" for x in k], "w": pa.array([most, most] + [Decimal(1)] * 20, pa.decimal128(38, 0))}
    o |= {"b": [HIGH, HIGH] + [1] * 20, "n": k}
    db.register("o", pa.table(o))
    with pytest.raises(gquery.DataError, match=says):
        db.sql(sql).fetchall()
    with pytest.raises(gquery.DataError, match=says):
        db.sql(sql).fetchall()


@pytest.mark.parametrize("name", ["cached", "clustered", "output"])
def test_golden_code(name: str, db: gquery.Connection, tune: Tune) -> None:
    """The kernels of groups that threads share, and one that makes columns of them, as they lie under ``golden``."""
    tune(tuning.accumulators, own_words=0)
    column = {"cached": "spread", "clustered": "ordered", "output": "spread"}[name]
    sql = f"SELECT {column}, sum(v), min(n), avg(f) FROM t GROUP BY {column}"
    if name == "output":
        works = [s.work for s in db.program(sql).stages]
        sink = next(w.sink for w in works if isinstance(w, Pipeline) and isinstance(w.sink, Group))
        got = "\n".join(f"-- {t}\n{GroupOutput(sink, t).unit[0].text}" for t in ("cpu", "cuda"))
    else:
        got = db.explain(sql, "code")
    path = GOLDEN / "threads" / f"{name}.txt"
    if os.environ.get("GQUERY_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(got)
    assert got == path.read_text(), "GQUERY_UPDATE_GOLDEN=1 writes it anew"


def test_who_comes_too_late_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    monkeypatch.setattr(morsels, "_threads", morsels._Threads())
    tune(tuning.threads, most=2)
    gate, busy = threading.Event(), threading.Barrier(3)

    def wait() -> None:
        busy.wait(10)
        gate.wait(10)

    morsels._threads.help_with(wait, 2)
    busy.wait(10)  # both threads have something else to do
    done: list[tuple[int, int, int]] = []
    start = time.perf_counter()
    array = np.zeros(3)
    freed = weakref.ref(array)

    def work(worker: int, lo: int, hi: int, array: Any = array) -> None:
        done.append((worker, lo, hi))

    run_morsels(work, [(0, 30)], 3, 10)
    assert time.perf_counter() - start < 5
    del array, work
    assert freed() is None, "nobody who comes later holds the arrays"
    assert done == [(0, 0, 10), (0, 10, 20), (0, 20, 30)]
    gate.set()
    late = threading.Event()
    morsels._threads.help_with(late.set, 1)  # behind the two that came too late, who found nothing to do
    assert late.wait(10)
    assert len(done) == 3


def test_starts_of_sorted_slots_by_several_threads(tune: Tune) -> None:
    tune(tuning.threads, morsel_rows=700)
    slots = np.sort(np.random.default_rng(5).integers(3, 9000, 30_000)).astype(np.uint32)
    starts, rows = grouping.group_rows(slots, 10_000, is_sorted=True, workers=3)
    assert rows is None
    assert np.array_equal(starts, np.searchsorted(slots, np.arange(10_001)))
    nothing, _ = grouping.group_rows(slots[:0], 5, is_sorted=True, workers=3)
    assert nothing.tolist() == [0] * 6


def test_parts_come_in_order() -> None:
    assert run_parts(lambda lo, hi: (lo, hi), 10, 4, 3) == [(0, 4), (4, 8), (8, 10)]
    assert run_parts(lambda lo, hi: (lo, hi), 0, 4, 3) == [(0, 0)]
    with pytest.raises(ZeroDivisionError):
        run_parts(lambda lo, hi: 1 // (lo - 4), 10, 4, 3)
