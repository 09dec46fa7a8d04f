"""Choosing the target of a pipeline, in one function, and the device of a pipeline breaker.

Small work is interpreted: a kernel takes longer to compile than the interpreter takes for some 100,000 row-steps. What the
interpreter has taken in earlier runs of the same program counts too, so that a query that comes again and again is compiled,
and on the CPU at once where an earlier process did so. What lies between, a CPU runs by *drafts*: kernels that LLVM does not
optimize, which cost a sixth of the time and run a few rows as fast as anything.
"""

from __future__ import annotations

from gquery import tuning
from gquery.device.device import Device, cpu_device
from gquery.device.profile import get_profile, profile_for
from gquery.execution.decision import Choice, Specialized
from gquery.execution.facts import Facts
from gquery.execution.state import ExecutionContext, Run
from gquery.execution.variants import cached, has_drafts, is_ready
from gquery.kernels.targets.capabilities import PYTHON
from gquery.operators.base import JoinIndex
from gquery.planner.lower_stream import is_worth_compiling, lengths
from gquery.planner.physical import Build, Group, JoinTable, Pipeline, PipelineBreaker, Probe, Sink
from gquery.planner.stage_inputs import stage_inputs


def choose_target(pipeline: Pipeline, facts: Facts) -> Choice:
    """The target that runs a pipeline: the interpreter for small work as long as that is cheaper than a compiler; not where
    the kernel is there already, nor where earlier runs have shown that it is worth one."""
    target, able = facts.context.target, facts.able
    if pipeline.host is not None:
        return Choice(PYTHON.name, f"{pipeline.host} has no kernel")
    if able.is_interpreted:
        return Choice(target, "")
    if facts.context.device.stays:
        return Choice(target, "the run is to be recorded")
    if facts.known.outgrown:
        return Choice(target, "more work than was expected")
    limit, steps = facts.context.settings.interpret_limit, row_steps(pipeline, facts)
    about = f"about {int(steps):,} row-steps"
    if is_worth_compiling(pipeline, steps, limit):
        return Choice(target, about)
    copied = facts.copied_bytes  # 0 for most, and on a CPU
    if copied and able.has_own_memory and copied > copied_in(tuning.interpreting.table_seconds, facts.context):
        return Choice(target, f"{about}, on a table that is there")
    if able.has_own_memory and steps < tuning.interpreting.tiny_steps:
        return Choice(PYTHON.name, f"{about}, faster than a launch")
    if facts.asks_kernels and is_ready(facts.feedback, facts.stage, pipeline, target):
        return Choice(target, f"{about}, its kernel is there")
    return _of_few_rows(pipeline, facts, steps, about)


def _of_few_rows(pipeline: Pipeline, facts: Facts, steps: float, about: str) -> Choice:
    """The same for fewer row-steps than a kernel is worth: a draft of it costs a sixth, and is soon worth that."""
    target, limit, spent = facts.context.target, facts.context.settings.interpret_limit, facts.known.interpreted_seconds
    where, times = (facts.feedback, facts.stage, pipeline, target), lengths(pipeline)
    drafts = has_drafts(*where)
    if drafts and steps >= limit * tuning.interpreting.draft_limits * times:
        return Choice(target, f"{about}, for a draft of its kernel", is_draft=True)
    if drafts and facts.asks_kernels and is_ready(*where, True):
        return Choice(target, f"{about}, a draft of its kernel is there", is_draft=True)
    enough = tuning.interpreting.draft_seconds if drafts else tuning.interpreting.break_even_seconds
    if spent > enough * times:
        return Choice(target, f"{about}, interpreted for {spent:.2f} s so far", is_draft=drafts)
    # not so on a GPU, where a stage on the host waits for what others made there
    is_asked = facts.asks_kernels and (spent > 0 or steps >= tuning.interpreting.cached_steps)
    if is_asked and not facts.able.has_own_memory and (kept := cached(*where, drafts)) != "nothing":
        return Choice(target, f"{about}, its kernel is in the cache", is_draft=kept == "drafts")
    return Choice(
        PYTHON.name, f"{about}, {'fewer than interpret_limit' if steps < limit else 'too few for so long a kernel'}"
    )


def is_promising(runs: Specialized, facts: Facts) -> bool:
    """Whether a pipeline that was interpreted will soon be worth a kernel, which is to be made in the background: that costs no
    query time, so it pays long before waiting for it would. Where nothing compiles beside the query, it never is."""
    known, seconds = facts.known, tuning.interpreting.background_seconds
    may_compile = facts.able.runs_morsels and runs.pipeline.host is None and not facts.context.counts
    is_open = runs.target == PYTHON.name and not known.is_requested
    return may_compile and is_open and known.interpreted_seconds > seconds * lengths(runs.pipeline)


def row_steps(pipeline: Pipeline, facts: Facts) -> float:
    """The work of a pipeline: the steps that its rows take, and a part of one for each slot of its state, which has to be
    made too."""
    steps = facts.rows * max(1.0, pipeline.work / max(pipeline.rows, 1)) + state_work(pipeline.sink)
    for step in pipeline.steps:
        if isinstance(step, Probe) and step.table.layout == "loop":
            steps *= max(1, facts.joins[step.table.stage].frame.rows)
    return steps


def state_work(sink: Sink) -> float:
    """What it costs the interpreter to make a sink's arrays, in row-steps."""
    match sink:
        case (
            Group(layout="direct-address", key_encoding=encoding)
            | Build(table=JoinTable(layout="direct-address", key_encoding=encoding))
        ):
            assert encoding is not None
            return encoding.size / tuning.interpreter_costs.state_slots_a_step
        case _:
            return 0.0


def bytes_on_device(probe: Probe, index: JoinIndex) -> int:
    """Bytes of a join table, and of the columns that a probe reads of it, that lie on a device alone."""
    held = [b for s in probe.table.columns if (c := index.frame.columns.get(s.column.id)) for b in c.buffers]
    return sum(b.nbytes for b in (*index.arrays.buffers, *held) if b.cpu is None)


def breaker_device(state: Run, work: PipelineBreaker) -> Device:
    """Where a pipeline breaker runs: small frames on the host, large ones where their columns lie."""
    context = state.context
    if not context.device.is_cuda or context.device.stays:
        return context.device
    host = cpu_device()
    frames = [state.frames[n] for n in stage_inputs(work) if n in state.frames]
    if sum(f.rows for f in frames) >= context.settings.interpret_limit:
        return context.device
    buffers = [b for f in frames for c in f.columns.values() for b in c.buffers]
    copied = sum(b.nbytes for b in buffers if not b.is_on(host))
    return host if copied < copied_in(tuning.interpreting.breaker_seconds, context) else context.device


def copied_in(seconds: float, context: ExecutionContext) -> float:
    """Bytes that the link between a GPU and its host copies in so many seconds; that of a usual one where there is none."""
    profile = get_profile(context.device) if context.device.is_cuda else profile_for(context.target)
    return seconds * profile.copy_rate
