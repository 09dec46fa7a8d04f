"""Groups whose rows lie together, as their key is sorted, are aggregated without a table: the answers are DuckDB's, whatever the
data, and the plan says where it is done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.errors import ConversionError, InternalError, OutOfRangeError
from gquery.kernels.targets.compilers import compiling_by
from gquery.kernels.targets.cuda import CudaTarget
from gquery.operators.codegen import behind_selection, kernels
from gquery.operators.materialize import materialize_mode
from gquery.operators.selection import compacted
from gquery.planner.physical import AggregateSegment, Pipeline, Program, SegmentRows
from gquery.planner.segments import finds_heads
from gquery.planner.verify_program import verify_program
from tests.support import harness
from tests.support.harness import assert_error, assert_same
from tests.support.simulated_target import simulated_connection
from tests.support.tuned import Tune

ROWS = 3_000


def _table(keys: np.ndarray, seed: int) -> pa.Table:
    """Lines of orders ``keys``, in that order; every fifth or so has NULLs."""
    rng = np.random.default_rng(seed)
    n = len(keys)
    nothing = rng.random(n) < 0.2
    x = rng.integers(-50, 50, n)
    big = rng.integers(-(2**54), 2**54, n)
    big[: n // 90 : 16] = 2**61  # so that bounds do not prove that 64 rows fit a word
    return pa.table(
        {
            "id": pa.array(keys, pa.int64()),
            "k": pa.array(np.arange(n), pa.int32()),
            "x": pa.array(x, pa.int32(), mask=nothing),
            "y": pa.array(rng.integers(0, 9, n), pa.int8()),
            "part": pa.array(rng.integers(0, 40, n), pa.int32()),
            "f": pa.array(rng.integers(0, 800, n) / 8, mask=rng.random(n) < 0.1),
            "r": pa.array(rng.integers(0, 800, n) / 8, pa.float32()),
            "b": pa.array(rng.random(n) < 0.5, mask=rng.random(n) < 0.3),
            "d": pa.array([Decimal(int(v)) / 100 for v in rng.integers(0, 10**6, n)], pa.decimal128(12, 2)),
            "m": pa.array([Decimal(int(v)) * 10**18 for v in rng.integers(0, 10**6, n)], pa.decimal128(30, 2)),
            "big": pa.array(big, pa.int64()),
            "day": pa.array([date(2020, 1, 1) + timedelta(days=int(v)) for v in rng.integers(0, 90, n)]),
            "s": pa.array([f"s{v % 7}" for v in x], mask=nothing),
            "note": pa.array([f"note {v * 7919 % 1009} {i}" for i, v in enumerate(x)], pa.string()),
        }
    )


def _keys(lengths: np.ndarray, step: int = 1, start: int = 0) -> np.ndarray:
    return np.repeat(np.arange(len(lengths)) * step + start, lengths)


@cache
def tables(shape: str) -> dict[str, pa.Table]:
    """Lines and their orders, each order once. Blocks and morsels have 64 rows in tests, so segments lie across them."""
    rng = np.random.default_rng(5)
    match shape:
        case "segments":
            keys = _keys(rng.integers(1, 8, ROWS // 4), start=-20)
        case "apart":  # as far from each other as no array is wide
            keys = _keys(rng.integers(1, 8, ROWS // 4), step=10**12, start=-(10**14))
        case "alone":
            keys = np.arange(500)
        case "long":  # as long as a segment may be, one after another
            keys = _keys(np.full(20, 64))
        case "skewed":  # one segment is longer
            keys = _keys(np.where(np.arange(200) == 90, 900, 2))
        case "one segment":
            keys = np.full(700, 7)
        case "unsorted":
            keys = rng.permutation(_keys(rng.integers(1, 8, 300)))
        case "one row":
            keys = np.array([3])
        case "empty":
            keys = np.array([], np.int64)
        case _:
            raise AssertionError(shape)
    lines = _table(keys, 3)
    if shape == "unsorted":
        lines = lines.set_column(0, "id", pa.array(keys, pa.int64(), mask=rng.random(len(keys)) < 0.1))
    ids = np.unique(keys)
    if len(ids) > 3:
        ids = ids[rng.random(len(ids)) < 0.8]
    orders = {
        "oid": pa.array(rng.permutation(ids), pa.int64()),
        "day": pa.array([date(2021, 1, 1) + timedelta(days=int(i) % 50) for i in range(len(ids))]),
        "customer": pa.array([i % 20 for i in range(len(ids))], pa.int32()),
        "comment": pa.array([f"order {i}" for i in range(len(ids))]),
    }
    parts = {"pid": pa.array(range(30), pa.int32()), "kind": pa.array([i % 4 for i in range(30)])}
    return {"lines": lines, "orders": pa.table(orders), "parts": pa.table(parts)}


SHAPES = ("segments", "apart", "alone", "long", "skewed", "one segment", "unsorted", "one row", "empty")

IN_SEGMENTS = [  # each aggregates segments, where keys come in segments
    "SELECT id, sum(x), count(*), count(x), min(x), max(y), avg(x), avg(f), sum(f) FROM lines GROUP BY id",
    "SELECT id, min(day), max(day), min(d), sum(d), avg(d), min(f), max(f), min(r), max(r), avg(r) FROM lines GROUP BY id",
    "SELECT id, sum(big), avg(big), sum(m), avg(m) FROM lines GROUP BY id",
    "SELECT id, bool_and(b), bool_or(b), max(b), count(*) FILTER (x > 0), sum(y) FILTER (b) FROM lines GROUP BY id",
    "SELECT id FROM lines GROUP BY id HAVING sum(x) > 20",
    "SELECT id, sum(x) FROM lines WHERE x > 10 GROUP BY id",
    "SELECT id, sum(y) FROM lines WHERE x > 10 AND y < 4 AND id > 30 GROUP BY id HAVING count(*) > 1",
    "SELECT DISTINCT id FROM lines",
    "SELECT DISTINCT id FROM lines WHERE x > 30",
    "SELECT count(*), sum(n) FROM (SELECT id, count(*) AS n FROM lines GROUP BY id)",
    "SELECT n, count(*), sum(t) FROM (SELECT id, count(*) AS n, sum(y) AS t FROM lines GROUP BY id) GROUP BY n",
    "SELECT oid, comment FROM orders WHERE oid IN (SELECT id FROM lines GROUP BY id HAVING sum(y) > 12)",
    "SELECT oid FROM orders WHERE oid NOT IN (SELECT id FROM lines GROUP BY id HAVING sum(y) > 12)",
    "SELECT oid, t FROM orders JOIN (SELECT id, sum(y) AS t FROM lines WHERE x < 0 GROUP BY id) ON oid = id",
    "SELECT oid, t, u FROM orders LEFT JOIN (SELECT id, sum(y) AS t, max(x) + 1 AS u FROM lines GROUP BY id) ON oid = id",
    "SELECT id, count(*) FROM lines WHERE part IN (SELECT pid FROM parts WHERE kind = 2) GROUP BY id",
    "SELECT id, count(*) FROM lines WHERE part NOT IN (SELECT pid FROM parts WHERE kind = 2) GROUP BY id",
    "SELECT id, count(*), sum(x) FROM lines WHERE id IN (SELECT oid FROM orders WHERE customer = 3) GROUP BY id",
    "SELECT id, sum(y) AS t FROM lines GROUP BY id ORDER BY t DESC, id LIMIT 7",
    "SELECT id + 1, 2 * sum(y) FROM lines GROUP BY id",
    "SELECT id, count(*), max(y) FROM lines WHERE note LIKE '%te%7%' GROUP BY id",
    "SELECT id, sum(y * 2 + x), max(CASE WHEN y > 4 THEN x END) FROM lines GROUP BY id",
]
BY_JOIN = [  # the order of joins decides whether the key is a column of the table that is scanned
    "SELECT id, sum(kind), count(*) FROM lines JOIN parts ON part = pid GROUP BY id",
    "SELECT oid, day, comment, sum(y) FROM orders JOIN lines USING (day) GROUP BY oid, day, comment",
    "SELECT oid, o.day, o.comment, sum(y) FROM orders o JOIN lines ON id = oid GROUP BY oid, o.day, o.comment",
    "SELECT id, o.day, sum(y) FROM orders o JOIN lines ON id = oid WHERE customer < 9 GROUP BY id, o.day ORDER BY 3, 1 LIMIT 9",
    "SELECT id, customer, count(*) FROM lines LEFT JOIN orders ON id = oid GROUP BY id, customer",
    "SELECT customer, sum(t) FROM (SELECT id, sum(y) AS t FROM lines GROUP BY id) JOIN orders ON id = oid GROUP BY customer",
]
AS_BEFORE = [  # what cannot be done in registers, or whose groups are no segments
    "SELECT id, y, count(*) FROM lines GROUP BY id, y",
    "SELECT id, count(DISTINCT y), sum(DISTINCT x) FROM lines GROUP BY id",
    "SELECT id, min(note), max(s) FROM lines GROUP BY id",
    "SELECT id, min(m) FROM lines GROUP BY id",
    "SELECT id // 3, sum(y) FROM lines GROUP BY id // 3",
    "SELECT y, sum(x) FROM lines GROUP BY y",
    "SELECT id, count(*) FROM lines JOIN (SELECT * FROM parts UNION ALL SELECT * FROM parts) ON part = pid GROUP BY id",
]


@pytest.fixture(autouse=True)
def segments_of_any_number(tune: Tune) -> Iterator[None]:
    """However few groups there are; plans that other tests made are not used again."""
    tune(tuning.group_layouts, least_segments=0, least_segments_cpu=0)
    harness._connections.clear()
    yield
    harness._connections.clear()


QUERIES = (*IN_SEGMENTS, *BY_JOIN, *AS_BEFORE)


@pytest.mark.parametrize("shape", SHAPES)
def test_groups_are_those_of_duckdb(shape: str) -> None:
    """Compiled for the shape that says most; the interpreter runs the same text. A third of the queries for each of the others,
    so that each query meets two shapes more."""
    if shape == "segments":
        some, targets = QUERIES, harness.TARGETS
    else:
        some, targets = QUERIES[SHAPES.index(shape) % 3 :: 3], harness.TARGETS[:1]
    for sql in some:
        assert_same(sql, tables(shape), targets=targets)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_all_groups_are_those_of_duckdb(shape: str) -> None:
    for sql in QUERIES:
        assert_same(sql, tables(shape), targets=harness.TARGETS[:1])


def _program(sql: str, shape: str) -> Program:
    return harness.connect("cpu", 1, tables(shape)).program(sql, "cpu")


def _aggregates_segments(program: Program) -> bool:
    return any(isinstance(s.work, Pipeline) and finds_heads(s.work.steps) for s in program.stages)


@pytest.mark.parametrize("sql", IN_SEGMENTS)
def test_short_runs_need_no_table(sql: str) -> None:
    assert _aggregates_segments(_program(sql, "segments"))
    assert _aggregates_segments(_program(sql, "long"))


@pytest.mark.parametrize("shape", ["skewed", "one segment", "unsorted"])
@pytest.mark.parametrize("sql", IN_SEGMENTS)
def test_others_need_one(sql: str, shape: str) -> None:
    """A thread is not to go over a long segment, and what is not sorted has none."""
    assert not _aggregates_segments(_program(sql, shape))


@pytest.mark.parametrize("sql", AS_BEFORE)
def test_other_groups_need_one(sql: str) -> None:
    steps = [x for s in _program(sql, "segments").stages if isinstance(s.work, Pipeline) for x in s.work.steps]
    assert not any(isinstance(s, AggregateSegment) and s.aggregates for s in steps)


ON_LANES = [
    *[IN_SEGMENTS[n] for n in (0, 4, 6, 8, 9, 11, 13, 17, 18)],
    *BY_JOIN[2:5],
    "SELECT id, count(*) FROM lines WHERE id IN (SELECT oid FROM orders WHERE comment = 'none') GROUP BY id",
    "SELECT id, sum(y) FROM lines WHERE y > 20 GROUP BY id",
    "SELECT t, count(*) FROM (SELECT id, sum(y) AS t FROM lines GROUP BY id) GROUP BY t",
]


@pytest.mark.parametrize("compacted_least_rows", [1, pytest.param(2**40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", ["segments", "long", "alone", "one row", "empty"])
def test_on_lanes(shape: str, compacted_least_rows: int, tune: Tune) -> None:
    """As a GPU runs them: heads are compacted, and a thread takes a segment; or the thread of a head does, whose rows are marked
    by warps, then written, and their segments aggregated for both."""
    tune(tuning.materialization, compacted_least_rows=compacted_least_rows)
    few = {name: table.slice(0, 150) for name, table in tables(shape).items()}
    with simulated_connection() as connection:
        for name, table in few.items():
            connection.register(name, table)
        for sql in ON_LANES:
            types, want = harness.expect(sql, few)
            assert harness.compare(connection.sql(sql).fetchall(), want, False, types) is None, sql


def test_kernels_for_a_gpu_compile() -> None:
    """By both compilers, without memory for what is spilled."""
    target, connection = CudaTarget(), harness.connect("cpu", 1, tables("segments"))
    for sql in (IN_SEGMENTS[0], IN_SEGMENTS[11]):
        stages = connection.program(sql, "cuda").stages
        work = [s.work for s in stages if isinstance(s.work, Pipeline) and finds_heads(s.work.steps)]
        assert work, sql
        behind = [compacted(w, tuning.materialization.compacted_least_rows, {}) for w in work]
        assert all(w.selection_steps for w in behind), sql
        for kernel in (k for w in (*work, *behind) for k in kernels(w, "cuda")):
            for compiler in ("llvm", "numba"):
                with compiling_by(compiler):
                    assert target.compile_cubin(kernel, (9, 0)).local_bytes == 0


def _behind_heads(sql: str) -> Pipeline:
    """What is left to do for a head once heads are compacted."""
    stages = harness.connect("cpu", 1, tables("segments")).program(sql, "cuda").stages
    (work,) = [s.work for s in stages if isinstance(s.work, Pipeline) and finds_heads(s.work.steps)]
    return behind_selection(compacted(work, tuning.materialization.compacted_least_rows, {}))


@pytest.mark.parametrize(
    ("sql", "to_next_head"),
    [
        (IN_SEGMENTS[0], True),
        (IN_SEGMENTS[5], True),
        (BY_JOIN[4], True),  # LEFT JOIN
        (IN_SEGMENTS[6], False),
        (IN_SEGMENTS[17], False),
    ],
)
def test_a_segment_ends_at_the_next_head_where_all_are_there(sql: str, to_next_head: bool) -> None:
    (rows,) = [s for s in _behind_heads(sql).steps if isinstance(s, SegmentRows)]
    assert rows.to_next_head is to_next_head


@pytest.mark.parametrize(("n", "mode"), [(0, "dense"), (17, "dense"), (4, "selection_bitmap"), (5, "selection_bitmap")])
def test_segments_are_aggregated_once_where_all_are_written(n: int, mode: str) -> None:
    assert materialize_mode(_behind_heads(IN_SEGMENTS[n]).steps, True) == mode


@pytest.mark.parametrize(
    "sql", ["SELECT id, sum(v) FROM t GROUP BY id", "SELECT id, sum(v) FROM t GROUP BY id HAVING id < 0"]
)
def test_a_sum_that_does_not_fit_is_an_error(sql: str) -> None:
    """Whether anybody asks for it or not."""
    table = pa.table({"id": [n // 2 for n in range(400)], "v": [2**62 if n in (200, 201) else n for n in range(400)]})
    assert _aggregates_segments(harness.connect("cpu", 1, {"t": table}).program(sql, "cpu"))
    assert_error(sql.replace("id < 0", "count(*) > 5"), {"t": table}, OutOfRangeError, "sum")


def test_what_may_fail_is_not_done_first() -> None:
    """A filter of the key goes before one that cannot fail alone: no error may be lost, and none be made."""
    table = pa.table({"id": [n // 3 for n in range(300)], "v": ["x" if n == 7 else str(n) for n in range(300)]})
    tables = {"t": table}
    assert_error(
        "SELECT id, count(*) FROM t WHERE CAST(v AS INTEGER) > 5 AND id > 50 GROUP BY id", tables, ConversionError
    )
    assert_same("SELECT id, count(*) FROM t WHERE TRY_CAST(v AS INTEGER) > 5 AND id > 50 GROUP BY id", tables)


def test_the_interpreter_hands_over(tune: Tune) -> None:
    """In the midst of a segment: the row that heads it has it all."""
    tune(tuning.interpreting, trial_seconds=0.0)
    lines = tables("segments")
    with gquery.connect("cpu") as connection:
        for name, table in lines.items():
            connection.register(name, table)
        for sql in IN_SEGMENTS[:8]:
            types, want = harness.expect(sql, lines)
            assert harness.compare(connection.sql(sql).fetchall(), want, False, types) is None, sql


def test_other_data_under_the_same_text() -> None:
    """A plan holds for the data that it was made for."""
    sql = "SELECT id, sum(y), count(*) FROM lines GROUP BY id"
    with gquery.connect("cpu") as connection:
        for shape in ("segments", "unsorted", "skewed", "empty", "long", "segments"):
            given = tables(shape)
            connection.register("given", given["lines"])
            connection.sql("CREATE OR REPLACE TABLE lines AS SELECT * FROM given")
            for _ in range(3):
                types, want = harness.expect(sql, given)
                assert harness.compare(connection.sql(sql).fetchall(), want, False, types) is None, shape


def test_other_constants_under_the_same_shape() -> None:
    for least in (0, 5, 12, 20, 35):
        sql = f"SELECT id, sum(y) AS t FROM lines WHERE x > {least - 20} AND id > {least * 9} GROUP BY id HAVING sum(y) > {least}"
        assert_same(sql, tables("segments"))


def test_blocks_are_left_out_but_for_heads() -> None:
    """A segment that begins in a block without a row that passes has those behind it."""
    n = np.arange(4_000)
    table = pa.table({"id": n // 7, "place": n // 5, "v": n % 11})
    for low in range(0, 700, 41):
        assert_same(
            f"SELECT id, count(*), sum(v) FROM t WHERE place BETWEEN {low} AND {low + 30} GROUP BY id", {"t": table},
            targets=harness.TARGETS[:1],
        )  # fmt: skip


def test_a_limit_reads_whole_runs() -> None:
    (count,) = (
        harness.connect("python", 1, tables("long"))
        .sql("SELECT sum(n) FROM (SELECT id, count(*) AS n FROM lines GROUP BY id LIMIT 5)")
        .fetchall()[0]
    )
    assert count == 5 * 64


def test_wrong_orders_of_steps_are_unsound() -> None:
    program = _program(IN_SEGMENTS[5], "segments")
    (stage,) = (s for s in program.stages if isinstance(s.work, Pipeline) and finds_heads(s.work.steps))
    assert isinstance(stage.work, Pipeline)
    steps = stage.work.steps
    verify_program(program)
    for wrong in (steps[1:], tuple(s for s in steps if not isinstance(s, AggregateSegment)), (*steps[1:], steps[0])):
        broken = replace(stage, work=replace(stage.work, steps=wrong))
        with pytest.raises(InternalError, match="segments are not"):
            verify_program(replace(program, stages=tuple(broken if s is stage else s for s in program.stages)))


def test_explain_names_the_runs() -> None:
    text = harness.connect("cpu", 1, tables("segments")).explain(
        "SELECT id, sum(y) FROM lines GROUP BY id", "pipelines"
    )
    for line in (
        "first rows of the segments of id",
        "rows of the segment of id",
        "aggregate the segment to (sum), 1 words in registers",
    ):
        assert line in text
