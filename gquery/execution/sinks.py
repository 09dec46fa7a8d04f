"""The sink of a pipeline at run time, sized by what earlier runs have told."""

from __future__ import annotations

from typing import assert_never

from gquery import tuning
from gquery.execution.attempt import Attempt
from gquery.execution.decision import Decision
from gquery.execution.exchange import merge_exchange
from gquery.execution.state import Run
from gquery.execution.variants import output_of
from gquery.kernels.builtin import scans
from gquery.operators import materialize
from gquery.operators.base import Frame, Launch, SinkRun, SinkState
from gquery.operators.codegen import behind_selection, passes
from gquery.operators.materialize import MaterializeRun
from gquery.operators.reduce_run import ReduceRun, as_group
from gquery.planner.physical import Build, Group, Materialize, Reduce, Sink, Stage
from gquery.runtime.records import replace
from gquery.settings import Settings


def sink_of(attempt: Attempt, stage: Stage, decision: Decision) -> SinkRun[SinkState]:
    """The sink of a pipeline over the rows of an attempt, on the device of its target."""
    state, frame, device = attempt.run, attempt.frame, attempt.device
    pipeline, target = behind_selection(decision.runs.pipeline), decision.runs.target
    sink, label, able = pipeline.sink, stage.label, decision.able
    workers = _workers(sink, frame.rows, state.context.settings) if able.runs_morsels else 1
    launch = Launch(device, frame.rows, workers, decision.unit, able)
    compacted = launch if attempt.selection is None else replace(launch, rows=int(attempt.selection.size))
    match sink:
        case Materialize(few=few):
            mode = materialize.materialize_mode(pipeline.steps, able.has_warps, few)
            return MaterializeRun(sink, mode, compacted, label, materialize.selectivity(pipeline.steps), attempt.number)
        case Reduce():
            output = output_of(state.feedback, stage.number, as_group(sink), target) if device.stays else None
            reduced = ReduceRun(sink, tuple(passes(pipeline, target)), launch, label, output)
            reduced.exchange = merge_exchange(state, stage)
            return reduced
        case Group():
            return _group(state, stage, sink, frame, compacted if sink.layout == "hash" else launch)
        case Build(table):
            from gquery.operators.join_table import BuildRun  # a query without joins does without

            scans.check_rows(frame.rows)
            built = BuildRun(table, launch, label, frame, table.stage in state.dataflow.null_tested, not attempt.units)
            built.exchange = merge_exchange(state, stage)
            return built
        case _:
            assert_never(sink)


def _group(state: Run, stage: Stage, sink: Group, frame: Frame, launch: Launch) -> SinkRun[SinkState]:
    from gquery.operators.group import GroupRun  # as above
    from gquery.operators.merge_groups import merged_sink

    if sink.layout == "row-id hash":
        scans.check_rows(frame.rows)
    exchange = merge_exchange(state, stage)
    output = output_of(
        state.feedback, stage.number, sink if exchange is None else merged_sink(sink), launch.target.name
    )
    if sink.partitioned:
        from gquery.operators.part_output import PartOutput
        from gquery.operators.partitioned_run import PartitionedRun

        assert isinstance(output, PartOutput)
        made: GroupRun = PartitionedRun(sink, launch, stage.label, frame, output)
    else:
        made = GroupRun(sink, launch, stage.label, frame, output)
    made.exchange, name = exchange, launch.target.name
    if exchange is not None and exchange.parts is not None and exchange.parts.by_slots and output is not None:
        made.output_for = lambda own: output_of(state.feedback, stage.number, own, name)
    if sink.layout != "direct-address":
        known = state.feedback.stage(stage.number)
        if not launch.target.has_own_memory and known.groups is not None:
            made.expect(known.groups)
        made.capacity = max(made.capacity, known.capacity)
    return made


def _workers(sink: Sink, rows: int, settings: Settings) -> int:
    """Threads of a CPU that run a pipeline."""
    morsels = -(-rows // tuning.threads.morsel_rows)
    if morsels <= 1 or (isinstance(sink, Group) and sink.layout == "row-id hash" and not sink.concurrent):
        return 1
    return max(1, min(settings.worker_count, morsels))
