"""A pipeline becomes what runs in one place: EXPLAIN shows the targets and the kernels that run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.execution import ExecutionContext, run_with_report
from gquery.execution.feedback import RunFeedback
from gquery.execution.runner import Runner
from gquery.execution.variants import drafts_of
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import Compiled
from gquery.kernels.targets.python import PythonTarget
from gquery.operators.codegen import units
from gquery.planner.physical import Group, Pipeline, Program
from gquery.profile.explain_program import explain_program, specialized
from tests.support import programs
from tpch import queries
from tpch.generate import files, generate

Ran = dict[int, tuple[str, tuple[str, ...]]]
"""By stage: the target that ran it, and the digests of its kernels."""


class Played(PythonTarget):
    """Stands for the cpu target: its kernels are interpreted, on one thread."""

    name = "cpu"

    def is_ready(self, kernel: object) -> bool:
        return False

    def compile_in_background(self, kernels: object) -> None:
        """It never runs kernels that are compiled."""

    def run_morsels(
        self,
        compiled: Compiled,
        ranges: Sequence[tuple[int, int]],
        arguments: Sequence[Any],
        step: int,
        is_stopped: Any,
    ) -> None:
        for lo, hi in ranges:
            self.run(compiled, lo, hi, arguments[0])


@cache
def tpch() -> gquery.Connection:
    connection = gquery.connect(device="cpu")
    for name, path in files(generate(0.001)).items():
        connection.register(name, pq.read_table(path))
    return connection


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """What runs within a test, the cpu target played."""
    noted: Ran = {}
    played = Played()
    begin = Runner._begin

    def watched(self: Runner) -> Any:
        attempt = begin(self)
        kernels = tuple(u.kernel.digest for u in attempt.units.values())
        noted[self.stage.number] = self.name, kernels
        return attempt

    for module in ("prepare", "runner", "variants"):
        get = f"gquery.execution.{module}.get_target"
        monkeypatch.setattr(get, lambda name: played if name == "cpu" else get_target(name))
    monkeypatch.setattr(Runner, "_begin", watched)
    return noted


def shown(program: Program, context: ExecutionContext, feedback: RunFeedback) -> Ran:
    """What EXPLAIN shows of a program."""
    runs = specialized(program, context, feedback)
    made = {n: units(r.pipeline, r.target) for n, r in runs.items()}
    made |= {n: drafts_of(made[n]) for n, r in runs.items() if r.choice.is_draft}
    digests = {n: tuple(u.kernel.digest for u in made[n]) for n in runs}
    return {n: (r.target, digests[n]) for n, r in runs.items()}


def check(connection: gquery.Connection, sql: str, limit: int, ran: Ran) -> None:
    program, feedback = connection.program(sql), RunFeedback()
    settings = replace(connection.settings, interpret_limit=limit, threads=2)
    context = ExecutionContext("cpu", connection.device, settings)
    run_with_report(program, context, feedback)
    said = shown(program, context, feedback)
    ran.clear()
    run_with_report(program, context, feedback)
    pipelines = {s.number for s in program.stages if isinstance(s.work, Pipeline)}
    assert pipelines == said.keys() >= ran.keys()
    assert {n: said[n] for n in ran} == ran
    assert any(target == "cpu" for target, _ in ran.values()) or limit or not ran


LIMITS = (0, 20_000)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("name", programs.SMALL)
def test_small_queries_run_as_explained(name: str, limit: int, ran: Ran) -> None:
    check(programs.small(), programs.text(name), limit, ran)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("number", range(1, 23))
def test_tpch_runs_as_explained(number: int, limit: int, ran: Ran) -> None:
    check(tpch(), queries.sql(number), limit, ran)


def test_the_size_of_the_state_counts(ran: Ran) -> None:
    """Rows alone would be too few for a kernel; with the slots of the groups they are enough."""
    sql = "SELECT k, sum(x) FROM t GROUP BY k"
    (work,) = [s.work for s in programs.small().program(sql).stages if isinstance(s.work, Pipeline)]
    assert isinstance(work.sink, Group) and work.sink.layout == "direct-address"
    connection = programs.small()
    limit = work.work + 1
    program, settings = connection.program(sql), replace(connection.settings, interpret_limit=limit)
    context = ExecutionContext("cpu", connection.device, settings)
    text = explain_program(program, context, "pipelines")
    run_with_report(program, context)
    assert [target for target, _ in ran.values()] == ["cpu"]
    assert f"[cpu: about {limit:,} row-steps]" in text


def test_a_build_that_speculates_is_shown_as_it_runs(ran: Ran) -> None:
    """Keys that are probably unique: the build speculates, what probes it has no loop, and EXPLAIN shows both kernels."""
    keys = np.arange(6_000) * 7919
    np.random.default_rng(3).shuffle(keys)
    with gquery.connect("cpu") as connection:
        connection.register("b", pa.table({"k": keys, "v": np.arange(6_000)}))
        connection.register("p", pa.table({"k": np.tile(keys[::7], 20)}))
        sql = "SELECT sum(b.v), count(*) FROM p JOIN b ON p.k = b.k"
        program = connection.program(sql)
        context = ExecutionContext("cpu", connection.device, replace(connection.settings, interpret_limit=0))
        said = shown(program, context, RunFeedback())
        run_with_report(program, context)
        assert said == ran
        planned = {s.number: units(s.work, "cpu") for s in program.stages if isinstance(s.work, Pipeline)}
        assert all(said[n][1] != tuple(u.kernel.digest for u in made) for n, made in planned.items())
        check(connection, sql, 0, ran)
