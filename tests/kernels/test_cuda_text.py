"""What a GPU does that can be seen without one: the text of its kernels for every case, and how small groups are finished
on the host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.device.device import Device, cpu_device
from gquery.execution import ExecutionContext
from gquery.execution.prepare import forecast
from gquery.expression.expr import Column, new_column
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets.capabilities import CUDA
from gquery.operators.accumulate import has_bits
from gquery.operators.base import Launch
from gquery.operators.codegen import units
from gquery.operators.group import GroupRun
from gquery.operators.materialize import steps_again
from gquery.planner.lower import lower
from gquery.planner.physical import Compute, Group, Pipeline, Probe, Program
from tests.support.cases import Case, read_cases
from tests.support.harness import connect
from tests.support.marks import one_in
from tests.support.tuned import Tune


def _program(connection: gquery.Connection, sql: str) -> Program:
    planned = connection.sql(sql)._prepared
    assert planned is not None
    return lower(planned.query, "cuda")


def _kernels(connection: gquery.Connection, sql: str) -> list[Kernel]:
    program = _program(connection, sql)
    made: list[Kernel] = []
    settings = replace(connection.settings, interpret_limit=0)
    for found in forecast(program, ExecutionContext("cuda", cpu_device(), settings)):
        assert isinstance(found.stage.work, Pipeline)
        if found.runs.target == "cuda":
            for pipeline in (found.stage.work, found.runs.pipeline):
                made += [u.kernel for u in units(pipeline, "cuda")]
    return made


@pytest.mark.parametrize("case", one_in(8, read_cases()), ids=lambda c: c.name)
def test_every_case_has_kernels(case: Case, tune: Tune) -> None:
    tune(tuning.materialization, compacted_least_rows=1)
    for kernel in _kernels(connect("python", 1, case.tables()), case.sql):
        compile(kernel.text.replace(": *", ": "), "kernel", "exec")


def test_what_no_column_needs_is_not_computed_again() -> None:
    """The second kernel of a materialize has no columns of joins that it left out."""
    with gquery.connect(device="python") as connection:
        connection.register("t", pa.table({"k": [1, 2, 3], "v": [4, 5, 6]}))
        connection.register("u", pa.table({"k": [1, 2], "w": [7, 8]}))
        program = _program(connection, "SELECT t.v, u.w FROM t JOIN u ON t.k = u.k WHERE u.w > 7")
    steps = next(
        s.work.steps
        for s in program.stages
        if isinstance(s.work, Pipeline) and any(isinstance(x, Probe) for x in s.work.steps)
    )
    probe = next(s for s in steps if isinstance(s, Probe))
    assert probe.payload
    unused, used = new_column("unused", probe.payload[0].dtype), new_column("used", probe.payload[0].dtype)
    source: Column = probe.payload[0]
    again = steps_again((probe, Compute(((unused, source),))), frozenset())
    assert again == ()
    again = steps_again((probe, Compute(((unused, source), (used, source)))), frozenset({used.id}))
    assert [type(s) for s in again] == [Probe, Compute] and again[1] == Compute(((used, source),))


class _Played(Device):
    """A GPU whose arrays are the host's."""

    def __init__(self) -> None:
        super().__init__("cuda")

    @property
    def xp(self) -> Any:
        return np

    def _on_gpu(self, make: Any, wanted: int, context: str) -> Any:
        return make(np)

    def to_host(self, array: Any) -> Any:
        return array.copy()


@pytest.mark.parametrize(
    ("sql", "groups", "bits"),
    [
        ("SELECT DISTINCT k FROM t", 9000, True),
        ("SELECT DISTINCT k FROM t", 3000, False),
        ("SELECT k, count(*) FROM t GROUP BY k", 3000, False),
        ("SELECT k, sum(v), max(v) FROM t GROUP BY k", 3000, False),
        ("SELECT k % 3 AS g, sum(v) FROM t GROUP BY g", 3000, False),
    ],
)
def test_small_groups_are_finalized_on_the_host(sql: str, groups: int, bits: bool) -> None:
    """Whatever a state consists of, the groups that it holds come out."""
    with gquery.connect(device="python") as connection:
        rows = 20_000
        connection.register("t", pa.table({"k": [n % groups for n in range(rows)], "v": [n % 50 for n in range(rows)]}))
        program = _program(connection, sql)
    sink = next(s.work.sink for s in program.stages if isinstance(s.work, Pipeline) and isinstance(s.work.sink, Group))
    assert sink.layout == "direct-address" and has_bits(sink, "cuda") == bits
    run = GroupRun(sink, Launch(_Played(), rows, 1, 1024, CUDA), "test", None)
    state = run.allocate()
    there = [0, 2]
    if state.bits is not None:
        state.bits[0] |= np.uint32(sum(1 << n for n in there))
    if state.touched is not None:
        state.touched[there] = 1
    for array in state.accumulators:
        array[there] = [5, 6]
    frame = run.finalize()
    assert run._is_small() and frame.rows == 2
    key = frame.columns[sink.keys[0][0].id]
    assert key.data.host.tolist() == there and all(b.is_on(Device("cpu")) for b in key.buffers)
