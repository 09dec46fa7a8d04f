"""Choosing the target of a pipeline.

Small work is interpreted: a kernel takes longer to compile than the interpreter takes for some 100,000 row-steps. What the
interpreter has taken in earlier runs of the same program counts too, so that a query that comes again and again is compiled,
and on the CPU at its second run where an earlier process did so.
"""

from __future__ import annotations

from typing import Any

from gquery import tuning
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.execution.feedback import GroupVariant, OutputKey, RunFeedback, TableVariant, UnitsKey
from gquery.execution.state import Run
from gquery.expression.facts import LARGE_ROWS
from gquery.kernels.targets import get_target
from gquery.kernels.targets.capabilities import PYTHON, capabilities
from gquery.operators import front
from gquery.operators.accumulate import state_location
from gquery.operators.codegen import Unit, units
from gquery.operators.group_output import GroupOutput
from gquery.operators.rows import bulk_inputs
from gquery.planner.lower_stream import is_worth_compiling, lengths
from gquery.planner.physical import (
    Build,
    Bulk,
    Group,
    JoinTable,
    Pipeline,
    Probe,
    Reduce,
    Sink,
    Stage,
)
from gquery.runtime.nesting import with_room


def target_of(state: Run, stage: Stage, pipeline: Pipeline, rows: int) -> str:
    """The target that runs a pipeline: the interpreter for small work as long as that is cheaper
    than a compiler: not where the kernel is there already, nor where earlier runs have shown that it is worth one."""
    context = state.context
    able = capabilities(context.target)
    if pipeline.host is not None or able.is_interpreted:
        return PYTHON.name
    work = rows * max(1.0, pipeline.work / max(pipeline.rows, 1)) + state_work(pipeline.sink)
    for step in pipeline.steps:
        if isinstance(step, Probe) and step.table.layout == "loop":
            work *= max(1, state.joins[step.table.stage].frame.rows)
    if is_worth_compiling(pipeline, work, context.settings.interpret_limit):
        return context.target
    if able.has_own_memory and _must_come_over(state, pipeline):
        return context.target
    if able.has_own_memory and work < tuning.interpreting.tiny_steps:
        return PYTHON.name
    spent = state.feedback.stage(stage.number).interpreted_seconds
    if is_ready(state.feedback, stage, pipeline, context.target):
        return context.target
    if spent > tuning.interpreting.break_even_seconds and spent > tuning.interpreting.break_even_seconds * lengths(
        pipeline
    ):
        return context.target
    # not so on a GPU, where a stage on the host waits for what others made there
    if spent and not able.has_own_memory and _is_cached(state.feedback, stage, pipeline):
        return context.target
    return PYTHON.name


def _must_come_over(state: Run, pipeline: Pipeline) -> bool:
    """Whether the interpreter would have to bring large join tables from a GPU first."""
    host = cpu_device()
    for step in pipeline.steps:
        if isinstance(step, Probe):
            index = state.joins[step.table.stage]
            parts = [p for p in index.parts.values() if isinstance(p, Buffer)]
            held = [b for s in step.table.columns if (c := index.frame.columns.get(s.column.id)) for b in c.buffers]
            if sum(b.nbytes for b in (*parts, *held) if not b.is_on(host)) > tuning.interpreting.table_bytes:
                return True
    return False


def state_work(sink: Sink) -> float:
    """What it costs the interpreter to make a sink's arrays, in row-steps."""
    match sink:
        case (
            Group(layout="direct-address", key_encoding=key_encoding)
            | Build(table=JoinTable(layout="direct-address", key_encoding=key_encoding))
        ):
            assert key_encoding is not None
            return key_encoding.size / tuning.interpreter_costs.state_slots_a_step
        case _:
            return 0.0


def for_threads(state: Run, stage: Stage, pipeline: Pipeline) -> Pipeline:
    """The pipeline as the threads of a CPU run it; see `operators.front`."""
    if not capabilities(state.context.target).runs_morsels:
        return pipeline
    grown = state.feedback.stage(stage.number).capacity
    return front.with_threads(pipeline, state.context.settings.worker_count, grown)


def units_of(
    feedback: RunFeedback, stage: Stage, pipeline: Pipeline, target: str, counts: bool = False
) -> tuple[Unit, ...]:
    """The kernels of a pipeline, made at its first run."""
    sink = pipeline.sink
    group = GroupVariant(sink.layout, state_location(sink, target)) if isinstance(sink, Group) else None
    sum_words = tuple(a.sum_word_bits for _, a in sink.aggregates) if isinstance(sink, Group | Reduce) else ()
    tables = [s.table for s in pipeline.steps if isinstance(s, Probe)] + (
        [sink.table] if isinstance(sink, Build) else []
    )
    built = tuple([TableVariant(t.layout, t.unique, t.radix_partitioned) for t in tables])
    is_wide = pipeline.rows >= LARGE_ROWS
    key = UnitsKey(stage.number, target, group, sum_words, built, is_wide, counts, pipeline.selected)
    return feedback.units.get(key, lambda: with_room(lambda: units(pipeline, target, counts)))


def output_of(feedback: RunFeedback, number: int, sink: Group, target: str) -> GroupOutput:
    """What makes columns of a sink's groups, made at its first run."""
    sum_words = tuple(a.sum_word_bits for _, a in sink.aggregates)
    key = OutputKey(number, target, sink.layout, sum_words)
    return feedback.outputs.get(key, lambda: with_room(lambda: GroupOutput(sink, capabilities(target).array_target)))


def is_ready(feedback: RunFeedback, stage: Stage, pipeline: Pipeline, target: str) -> bool:
    ready = get_target(target).is_ready
    return all(ready(u.kernel) for u in units_of(feedback, stage, pipeline, target))


def _is_cached(feedback: RunFeedback, stage: Stage, pipeline: Pipeline) -> bool:
    """Whether an earlier process has compiled the kernels of a pipeline, looked up once."""
    known = feedback.stage(stage.number).is_cached
    if known is None:
        cpu: Any = get_target("cpu")
        known = all(cpu.is_cached(u.kernel) for u in units_of(feedback, stage, pipeline, "cpu"))
        feedback.looked_up_cache(stage.number, known)
    return known


def bulk_device(state: Run, work: Bulk) -> Device:
    """Where a bulk operation runs: small frames on the host, large ones where their columns lie."""
    context = state.context
    if not context.device.is_cuda:
        return context.device
    host = cpu_device()
    frames = [state.frames[n] for n in bulk_inputs(work) if n in state.frames]
    if sum(f.rows for f in frames) >= context.settings.interpret_limit:
        return context.device
    buffers = [b for f in frames for c in f.columns.values() for b in c.buffers]
    return (
        host if sum(b.nbytes for b in buffers if not b.is_on(host)) < tuning.interpreting.bulk_bytes else context.device
    )
