"""The kernels of a program, begun before it first runs: all at once, where each would be waited for when its turn comes.

A pipeline is specialized for what it meets when it starts (`execution.specialize`). Here the same is done with estimates: rows
are those of the plan, keys that are expected to be unique are. Where an estimate is of what other stages make, there may be few
rows just as well; a GPU's kernels for that case are compiled while the first stages run. What turns out in another way is
compiled then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gquery import tuning
from gquery.execution.decision import Specialized
from gquery.execution.facts import Facts
from gquery.execution.feedback import RunFeedback
from gquery.execution.specialize import specialize
from gquery.execution.stage_feedback import BuiltTable
from gquery.execution.state import ExecutionContext, Run
from gquery.execution.variants import output_of, units_of
from gquery.expression.facts import BYTE_BITS
from gquery.expression.frozen import frozen_open
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import begin, get_target
from gquery.kernels.targets.capabilities import capabilities
from gquery.operators.base import Frame, JoinArrays, JoinIndex
from gquery.operators.codegen import kernels
from gquery.operators.group_output import is_probable
from gquery.operators.merge_groups import merged_sink
from gquery.operators.specialize import has_room
from gquery.operators.text_scans import kernels_of_scans
from gquery.planner.physical import (
    Build,
    Compute,
    Group,
    JoinTable,
    Pipeline,
    Probe,
    Program,
    ReadStage,
    SegmentRows,
    Stage,
)
from gquery.runtime.records import replace


def prepare(state: Run) -> None:
    """Begin with the kernels of the pipelines that will surely not be interpreted, at a program's first run."""
    context = state.context
    if context.meter is not None and not context.counts:
        return  # each kernel compiles when it is first run, so that its own time is known
    if capabilities(context.target).is_interpreted or not state.feedback.begin_preparing(context.counts):
        return
    begin(get_target(context.target), _kernels(state, few=False), lambda: dict.fromkeys(_kernels(state, few=True)))


def _kernels(state: Run, few: bool) -> Iterator[Kernel]:
    """The kernels of the pipelines that will surely not be interpreted."""
    context, feedback = state.context, state.feedback
    for found in forecast(state.program, context, feedback, few, merges=state.merges):
        if found.runs.target == context.target and not state.leaves(found.stage.number):
            number, work = found.stage.number, found.runs.pipeline
            is_draft = found.runs.choice.is_draft
            for unit in units_of(feedback, number, work, context.target, context.counts, is_draft):
                yield unit.kernel
                yield from kernels_of_scans(work.source, unit.bindings.values())
            if isinstance(work.sink, Group):
                sink = merged_sink(work.sink) if state.merges(number) else work.sink
                if is_probable(sink, context.target):
                    yield output_of(feedback, number, sink, context.target).unit[0]


def expected_kernels(program: Program, context: ExecutionContext) -> list[Kernel]:
    """The kernels of the pipelines that will probably run on the context's own target, by estimates alone."""
    runs = [f.runs for f in forecast(program, context)]
    return [k for r in runs if r.target == context.target for k in kernels(r.pipeline, context.target)]


@frozen_open
class Forecast:
    """A stage whose work is a pipeline, and how that will probably run."""

    stage: Stage
    runs: Specialized


def forecast(
    program: Program,
    context: ExecutionContext,
    feedback: RunFeedback | None = None,
    few: bool = False,
    asks_kernels: bool = False,
    merges: Callable[[int], bool] = lambda number: False,
) -> Iterator[Forecast]:
    """The pipelines of a program, in their order, by what the last run measured, or by estimates before one; with ``few``,
    other stages make few rows. ``merges`` says of which stages the states of several ranks become one."""
    feedback = feedback or RunFeedback()
    joins: dict[int, JoinIndex] = {}
    on_device: dict[int, int] = {}  # the bytes of join tables that the interpreter would have to copy
    for stage in program.stages:
        work = stage.work
        if not isinstance(work, Pipeline):
            continue
        copied = max((on_device.get(s.table.stage, 0) for s in work.steps if isinstance(s, Probe)), default=0)
        known = feedback.stage(stage.number)
        rows = work.rows if known.rows is None else known.rows
        room = has_room(work, rows, context.device)
        facts = Facts(
            context, feedback, stage.number, rows, joins, copied, room, None, asks_kernels, merges(stage.number)
        )
        runs = specialize(work, facts)
        if few and isinstance(work.source, ReadStage):
            rows = min(work.rows, tuning.interpreting.forecast_rows)
            runs = specialize(replace(work, rows=rows), replace(facts, rows=rows, choice=runs.choice))
        if isinstance(runs.pipeline.sink, Build):
            estimate = _estimate(runs.pipeline.sink.table, runs.pipeline)
            index = joins[stage.number] = estimate if known.table is None else _measured(known.table)
            if facts.able.has_own_memory and runs.target == context.target:
                on_device[stage.number] = _bytes(index)
        yield Forecast(stage, runs)


def _measured(built: BuiltTable) -> JoinIndex:
    """Stands for a join table as the last run built it."""
    return JoinIndex(JoinArrays(), Frame({}, built.frame_rows), built.table, built.rows, built.longest)


def _estimate(table: JoinTable, work: Pipeline) -> JoinIndex:
    """Stands for the join table that a pipeline will build."""
    selectivity = min((s.selectivity for s in work.steps if not isinstance(s, Compute | SegmentRows)), default=1.0)
    entered = max(1, int(work.rows * selectivity))
    is_whole = table.layout in ("loop", "sorted")
    several = entered if is_whole else tuning.interpreting.rows_of_a_key
    longest = 1 if table.layout == "one" or (table.unique and not is_whole) else several
    return JoinIndex(JoinArrays(), Frame({}, entered), table, entered, longest)


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
