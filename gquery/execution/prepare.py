"""The kernels of a program, compiled before it first runs: all at once, where each would be waited for when its turn comes.

A pipeline is fitted to what it meets when it starts (`operators.specialize`, `operators.selection`). Here the same is done with
estimates: rows are those of the plan, keys that are expected to be unique are. Where an estimate is of what other stages make,
there may be few rows just as well; a GPU's kernels for that case are compiled while the first stages run. What turns out in
another way is compiled then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gquery import tuning
from gquery.device.device import Device
from gquery.execution.choose import for_threads, output_of, state_work, units_of
from gquery.execution.state import Run
from gquery.expression.facts import BYTE_BITS
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import compile_many, get_target
from gquery.kernels.targets.capabilities import capabilities
from gquery.operators.base import Frame, JoinIndex
from gquery.operators.group_output import is_probable
from gquery.operators.selection import narrowed
from gquery.operators.specialize import adapt, attempted, fitted
from gquery.planner.lower_stream import is_worth_compiling
from gquery.planner.physical import Build, Compute, Group, JoinTable, Pipeline, Probe, Program, ReadStage, Stage
from gquery.runtime import stopwatch


def prepare(state: Run) -> None:
    """Compile the kernels of the pipelines that will surely not be interpreted, at a program's first run."""
    context = state.context
    if context.meter is not None and not context.counts:
        return  # each kernel compiles when it is first run, so that its own time is known
    if capabilities(context.target).is_interpreted or not state.feedback.begin_preparing(context.counts):
        return
    kernels = list(_kernels(state, few=False))
    if kernels:
        with stopwatch.part("compile"):
            compile_many(
                get_target(context.target), kernels, lambda: set(_kernels(state, few=True)).difference(kernels)
            )


def _kernels(state: Run, few: bool) -> Iterator[Kernel]:
    """The kernels of the pipelines that will surely not be interpreted."""
    program, context = state.program, state.context
    narrows = capabilities(context.target).has_warps and not context.counts
    for found in forecast(program, context.target, context.device, context.settings.interpret_limit, few):
        if found.is_compiled:
            work = for_threads(state, found.stage, found.pipeline)
            work = narrowed(work, work.rows) if narrows else work
            yield from (u.kernel for u in units_of(state.feedback, found.stage, work, context.target, context.counts))
            if isinstance(work.sink, Group) and is_probable(work.sink, context.target):
                yield output_of(state.feedback, found.stage.number, work.sink, context.target).unit[0]


@dataclass(frozen=True)
class Forecast:
    """A pipeline as it will probably run, and whether that is in a compiled kernel."""

    stage: Stage
    pipeline: Pipeline
    is_compiled: bool


def forecast(
    program: Program, target: str, device: Device, interpret_limit: int, few: bool = False
) -> Iterator[Forecast]:
    """The pipelines of a program, in their order; with ``few``, other stages make few rows."""
    joins: dict[int, JoinIndex] = {}
    on_gpu: set[int] = set()  # stages whose join tables are too large to be copied to the host
    for stage in program.stages:
        work = stage.work
        if not isinstance(work, Pipeline):
            continue
        is_large = is_worth_compiling(work, work.work + state_work(work.sink), interpret_limit)
        is_large = is_large or any(isinstance(s, Probe) and s.table.stage in on_gpu for s in work.steps)
        if few and isinstance(work.source, ReadStage):
            work = replace(work, rows=min(work.rows, tuning.interpreting.forecast_rows))
        work = attempted(fitted(adapt(work, work.rows, joins), work.rows, device))
        if isinstance(work.sink, Build):
            index = joins[stage.number] = _index(work.sink.table, work)
            if capabilities(target).has_own_memory and is_large and _bytes(index) > tuning.interpreting.table_bytes:
                on_gpu.add(stage.number)
        yield Forecast(stage, work, is_large and work.host is None)


def _index(table: JoinTable, work: Pipeline) -> JoinIndex:
    """Stands for the join table that a pipeline will build."""
    share = min((s.share for s in work.steps if not isinstance(s, Compute)), default=1.0)
    entered = max(1, int(work.rows * share))
    several = entered if table.layout == "loop" else tuning.interpreting.rows_of_a_key
    longest = 1 if table.layout == "one" or (table.unique and table.layout != "loop") else several
    return JoinIndex({"longest": longest}, Frame({}, entered), table, entered)


def _bytes(index: JoinIndex) -> int:
    """The size of a join table and of the columns that it gives, roughly."""
    table = index.table
    slots = index.rows if table.key_encoding is None or table.layout != "direct-address" else table.key_encoding.size
    own = (
        slots // BYTE_BITS
        if table.exists and table.layout == "direct-address"
        else slots * tuning.interpreting.table_slot_bytes
    )
    return own + len(table.columns) * index.rows * tuning.interpreting.table_slot_bytes
