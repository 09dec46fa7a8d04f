"""Many aggregates without groups: a GPU computes them in several passes over the rows. Here lanes do, by short passes."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.arrow import export_table
from gquery.kernels.kernel import Kernel
from gquery.operators import reduce
from gquery.planner.physical import Pipeline, Reduce
from tests.support.harness import compare, expect
from tests.support.lanes import answer
from tests.support.tuned import Tune

ROWS = 200
CALLS = (
    "sum(v), sum(v), avg(v), count(*)",
    "sum(big), avg(big), min(big), max(n), count(n)",
    "sum(f), avg(f), min(f), max(f) FILTER (WHERE n > 4)",
    "sum(CASE WHEN n % 3 = 1 THEN v WHEN v > 5 THEN n END), sum(none), count(none), min(none)",
    "min(s), max(s), bool_and(n > 1), count(DISTINCT n)",
)
SOURCES = (
    "t",
    "t WHERE n > 3",
    "t WHERE v > 100000",
    "t JOIN d ON n = k WHERE w > 1",
    "t LEFT JOIN d ON n = k",
    "d RIGHT JOIN t ON n = k AND w > 2",
    "(SELECT * FROM t LIMIT 0)",
)


def tables() -> dict[str, pa.Table]:
    r = np.random.default_rng(7)
    columns: dict[str, pa.Array] = {
        "v": pa.array(r.integers(-100, 100, ROWS)),
        "big": pa.array(r.integers(-(2**54), 2**54, ROWS)),
        "f": pa.array(r.integers(-1000, 1000, ROWS) / 8),
        "n": pa.array([None if x < 2 else int(x) for x in r.integers(0, 10, ROWS)], pa.int64()),
        "none": pa.array([None] * ROWS, pa.int32()),
        "s": pa.array([f"text {x}" for x in r.integers(0, 50, ROWS)]),
    }
    small = pa.table({"k": [2, 3, 4, 4, None], "w": [1, 2, 3, 4, 5]})
    return {"t": pa.table(columns), "d": small}


TABLES = tables()


def connection() -> gquery.Connection:
    made = gquery.connect(device="cpu")
    for name, table in TABLES.items():
        made.register(name, table)
    return made


@pytest.mark.parametrize("source", SOURCES)
def test_passes_add_up(source: str, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    tune(tuning.accumulators, pass_words=8, pass_words_behind_joins=12)
    sql = f"SELECT {', '.join(CALLS)} FROM {source}"
    types, want = expect(sql, TABLES)
    for partitions in (1, 3) if source == "t" else (1,):
        found = export_table(answer(connection(), sql, monkeypatch, partitions))
        rows = list(zip(*(c.to_pylist() for c in found.columns), strict=True))
        assert compare(rows, want, True, types) is None


def test_a_value_out_of_range_is_an_error_in_any_pass(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    tune(tuning.accumulators, pass_words=5)
    sums = ", ".join([f"sum(abs(v - {n}))" for n in range(9)])
    for place in (0, 9):
        calls = sums.split(", ")
        calls.insert(place, "sum(big * 2000)")
        with pytest.raises(gquery.OutOfRangeError):
            answer(connection(), f"SELECT {', '.join(calls)} FROM t", monkeypatch)


def kernels(sql: str, target: Literal["cpu", "cuda"] = "cuda") -> list[Kernel]:
    return list(connection().kernels(sql, target=target))


def test_passes_alike_are_one_kernel() -> None:
    """The first one counts the rows, too, and the last one may be shorter. A CPU, whose compiler takes a long body in parts, has
    one loop."""
    sql = f"SELECT {', '.join([f'sum(abs(v - {n}))' for n in range(200)])} FROM t"
    several = kernels(sql)
    assert len(several) > len({k.digest for k in several})
    assert len(several) == -(-201 // tuning.accumulators.pass_words)
    assert len(kernels(sql, "cpu")) == 1


@pytest.mark.parametrize("columns", [20, 40, 80, 160])
def test_kernels_grow_with_their_number_alone(columns: int) -> None:
    """Each has as many registers to find and as much text as the ones before it."""
    calls = [
        f"sum(CASE WHEN v % {k + 3} = {k % 3} THEN n * {k + 2} WHEN n > {k % 9} THEN v END)" for k in range(columns)
    ]
    for kernel in kernels(f"SELECT {', '.join(calls)} FROM t"):
        assert len(kernel.prologue) <= tuning.accumulators.pass_words + 1
        assert len(kernel.text) < 12_000


def test_few_aggregates_have_one_pass() -> None:
    calls = ", ".join([f"sum(abs(v - {n}))" for n in range(tuning.accumulators.pass_words // 2)])
    assert len(kernels(f"SELECT {calls} FROM t")) == 1


@pytest.mark.parametrize("most", [1, 2, 3, 5, 100])
def test_accumulators_of_a_value_stay_together(most: int, tune: Tune) -> None:
    """None is lost, and none is computed twice."""
    from gquery.kernels.targets.capabilities import CUDA

    tune(tuning.accumulators, pass_words=most)
    program = connection().program(f"SELECT {', '.join(CALLS)} FROM t", "cuda")
    works = [stage.work for stage in program.stages]
    sinks = [(w.sink, w.steps) for w in works if isinstance(w, Pipeline) and isinstance(w.sink, Reduce)]
    assert sinks
    for sink, steps in sinks:
        several = reduce.passes(sink, steps, CUDA)
        assert tuple(a for part in several for a in part.accumulators) == sink.accumulators
        assert [part.first for part in several] == [
            sum(len(p.accumulators) for p in several[:n]) for n in range(len(several))
        ]
        for one, other in pairwise(several):
            last, first = one.accumulators[-1], other.accumulators[0]
            assert (last.filter, last.arg) != (first.filter, first.arg)
