"""A join whose table does not fit memory: the rows of both sides go to the tier below (`execution.tiers`) in parts by the hashes
of their keys, and one part of the table after another is built and probed (`execution.joined_parts`).

The build keeps its rows (`Unbuilt`), and what probes it is cut: steps before the probe make rows, the probe and what follows up
to the sink, or to the next such table, run part by part, and what they make goes on as one frame. Tables that fit stay fused.
"""

from __future__ import annotations

from collections.abc import Callable

from gquery import tuning
from gquery.execution.behind import Behind
from gquery.execution.joined_parts import JoinedParts, Stages
from gquery.execution.part_runs import numbered, part_run, parts_for, run_below
from gquery.execution.sort_parts import sort_within_memory
from gquery.execution.state import Run, StageReport, Unbuilt
from gquery.execution.tiers import let_go, put_below
from gquery.expression.expr import Column, SortKey, new_column
from gquery.expression.types import BIGINT
from gquery.kernels.values import value_properties
from gquery.operators.base import Frame
from gquery.planner.cut_pipeline import cut, is_in_order
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.physical import (
    Build,
    Compute,
    JoinTable,
    Materialize,
    Pipeline,
    Probe,
    ReadStage,
    SortRows,
    Stage,
    Stored,
)
from gquery.planner.stage_columns import stage_columns
from gquery.runtime.records import replace

RunStage = Callable[[Run, Stage, Pipeline, StageReport], None]


# ---- the build -------------------------------------------------------------------------------------------------------


def leave_unbuilt(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> bool:
    """Keep the rows of a join table in the tier, to be built in parts; False where its keys cannot be partitioned."""
    sink = pipeline.sink
    assert isinstance(sink, Build)
    if sink.table.layout not in ("direct-address", "hash") or any(k.dtype.is_opaque for k in sink.table.keys):
        return False
    number = len(state.program.stages)
    run = part_run(state, stage.number, lambda: _cut_build(pipeline, sink.table, number))
    rows = run_below(run, number, report)
    first, build = run.program.stages[number].work, run.program.stages[number + 1].work
    assert isinstance(first, Pipeline) and isinstance(build, Pipeline)
    state.unbuilt[stage.number] = Unbuilt(put_below(rows, run.context.device, stage.label), first, build)
    return True


def _cut_build(pipeline: Pipeline, table: JoinTable, stage: int) -> tuple[Pipeline, Pipeline]:
    """The rows of a join table, and the table of a part, whose keys are spread over the range of all."""
    first, rest = cut(pipeline, len(pipeline.steps), stage)
    return first, replace(rest, sink=Build(_of_part(table, first)))


def _of_part(table: JoinTable, rows: Pipeline) -> JoinTable:
    """The table of a part of the rows that a pipeline makes, as it is built, or as one of those that probe it describes it: they
    have names of their own for its columns."""
    made = {s.column.id: s for s in stage_columns(rows)}
    if table.layout == "direct-address":
        table = replace(table, layout="hash", inline_keys=True)
    columns = [replace(made[s.column.id], column=s.column) if s.column.id in made else s for s in table.columns]
    return replace(table, columns=tuple(columns), radix_partitioned=False, clustered=False, probe_rows=0)


# ---- the probe -------------------------------------------------------------------------------------------------------


def first_unbuilt(state: Run, pipeline: Pipeline) -> int | None:
    """The first step that probes a table that was not built; None where all were."""
    if not state.unbuilt:
        return None
    for at, step in enumerate(pipeline.steps):
        if isinstance(step, Probe) and step.table.stage in state.unbuilt:
            return at
    return None


def join_by_parts(
    state: Run, stage: Stage, pipeline: Pipeline, at: int, report: StageReport, run_rest: RunStage
) -> None:
    """Run a pipeline whose step ``at`` probes a table that was not built; what it makes is in the run's state. ``run_rest`` runs
    what goes before the parts, and what follows them. Rows that were sorted are put in their order again."""
    step = pipeline.steps[at]
    assert isinstance(step, Probe)
    build, at_stage = step.table.stage, Stages.behind(len(state.program.stages))
    unbuilt = state.unbuilt[build]
    end = _end(state, pipeline, at)
    run = part_run(
        state,
        stage.number,
        lambda: _cut(_with_order(state, pipeline), at, end, unbuilt, at_stage),
        (at, end),
        lambda: {build: _of_rows(unbuilt, at_stage.rows)},
    )
    stages = run.program.stages
    before, middle, last = stages[at_stage.before], stages[at_stage.middle], stages[at_stage.last]
    assert isinstance(before.work, Pipeline) and isinstance(middle.work, Pipeline) and isinstance(last.work, Pipeline)
    if first_unbuilt(run, before.work) is None:
        run.frames[before.number] = run_below(run, before.number, report)
    else:
        with run.context.device.into_files():
            run_rest(run, before, before.work, report)
    probe = middle.work.steps[0]
    assert isinstance(probe, Probe)
    number = _row_number(before.work, middle.work)
    if number is not None:
        run.frames[before.number] = numbered(run.frames[before.number], number, run.context.device)
    parts = parts_for(unbuilt.rows.rows * tuning.spilling.joined_row, run.context.device)
    with Behind(run.context.device, before.label) as behind:
        joined = JoinedParts(run, at_stage, probe, unbuilt, report, behind)
        joined.add([run.frames.pop(at_stage.before)], [unbuilt.rows], parts, 0)
        run.frames[at_stage.middle] = joined.rows()
    run_rest(run, last, last.work, report)
    let_go([run.frames.pop(at_stage.middle)], run.context.device)
    if number is not None:
        run.frames[last.number] = _in_order(run, last, number, report)
    if step.records_matches:
        run.joins[build], run.matched[build] = joined.matches()
    _hand_over(state, run, stage.number, last.number)


_ROW = "number of a sorted row"


def _with_order(state: Run, pipeline: Pipeline) -> Pipeline:
    """The pipeline; where its rows were sorted, they carry their numbers to its end, and it makes all of them."""
    sink = pipeline.sink
    if not isinstance(sink, Materialize) or not is_in_order(state.program.stages, pipeline.source):
        return pipeline
    if any(s.column.name == _ROW for s in sink.columns):  # the rest of a join in parts, whose rows have numbers
        return pipeline
    known = value_properties(BIGINT, None, nullable=False)
    number = Stored(new_column(_ROW, BIGINT, False), known, known.physical_type)
    return replace(pipeline, sink=replace(sink, columns=(*sink.columns, number), limit=None))


def _row_number(before: Pipeline, middle: Pipeline) -> Stored | None:
    """The column with the numbers of the rows that the parts read, which ``before`` does not make; None where these have no
    order that is asked for, or have numbers."""
    source, made = middle.source, {s.column.id for s in stage_columns(before)}
    assert isinstance(source, ReadStage)
    return next((s for s in source.columns if s.column.name == _ROW and s.column.id not in made), None)


def _in_order(run: Run, last: Stage, number: Stored, report: StageReport) -> Frame:
    """What the last stage made, by the numbers of rows, without these."""
    kept = tuple([s for s in stage_columns(last.work) if s.column.id != number.column.id])
    work = SortRows(last.number, (SortKey(number.column, False, False),), kept, None, 0)
    return sort_within_memory(work, run.frames[last.number], run.context.device, report)


def _hand_over(state: Run, run: Run, stage: int, made: int) -> None:
    """What the last stage of a run in parts made becomes what the stage made."""
    for number in state.unbuilt.keys() & run.matched.keys() & run.joins.keys():  # for their rows without a match
        state.joins[number] = run.joins[number]
    if made in run.joins:
        state.joins[stage] = run.joins[made]
    elif made in run.unbuilt:
        state.unbuilt[stage] = run.unbuilt[made]
    else:
        state.frames[stage] = run.frames[made]
    state.matched |= run.matched


def _end(state: Run, pipeline: Pipeline, at: int) -> int:
    """Up to which step the parts run: the next table that was not built is for what follows, and so is one whose matches are
    noted for all rows."""
    for n, step in enumerate(pipeline.steps):
        if n > at and isinstance(step, Probe) and (step.table.stage in state.unbuilt or step.records_matches):
            return n
    return len(pipeline.steps)


def _cut(pipeline: Pipeline, at: int, end: int, unbuilt: Unbuilt, to: Stages) -> tuple[Pipeline, ...]:
    """What a join in parts runs: the rows that are probed; those of the table; the probe and the steps behind it; the rest; and
    the same probe for rows with a match, and for those without."""
    step = pipeline.steps[at]
    assert isinstance(step, Probe)
    keys = tuple([e if isinstance(e, Column) else new_column("key", e.dtype) for e in step.keys])
    made = tuple([(c, e) for c, e in zip(keys, step.keys, strict=True) if c is not e])
    probe = replace(step, keys=keys, table=_of_part(step.table, unbuilt.first))
    computed = (Compute(made),) if made else ()
    steps = (*pipeline.steps[:at], *computed, probe, *pipeline.steps[at + 1 :])
    first, rest = cut(replace(pipeline, steps=steps), at + len(computed), to.before)
    source, sink = rest.source, pipeline.sink
    assert isinstance(source, ReadStage)
    if isinstance(sink, Materialize) and (numbers := [s for s in sink.columns if s.column.name == _ROW]):
        have = {s.column.id for s in source.columns}
        numbers = [s for s in numbers if s.column.id not in have]
        ids = tuple([s.column.id for s in numbers])
        source = replace(source, columns=(*source.columns, *numbers), origins=(*source.origins, *ids))
        rest = replace(rest, source=source)
    middle, last = cut(rest, end - at, to.middle)
    every = tuple([Stored(s.column, s.properties, s.properties.physical_type) for s in source.columns])
    alike = replace(probe, mark=None, null_key=False, records_matches=False, payload=(), always=False)
    found, others = (
        replace(rest, steps=(replace(alike, kind=kind),), sink=Materialize(every, ordered=True))
        for kind in (JoinKind.SEMI, JoinKind.ANTI)
    )
    return first, _of_rows(unbuilt, to.rows), middle, last, found, others


def _of_rows(unbuilt: Unbuilt, stage: int) -> Pipeline:
    """The build of a part of the table, whose rows are the frame of a stage."""
    source = unbuilt.build.source
    assert isinstance(source, ReadStage)
    return replace(unbuilt.build, source=replace(source, stage=stage))
