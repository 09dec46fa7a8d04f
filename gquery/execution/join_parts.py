"""A join whose table does not fit memory: the rows of both sides go to files in parts by the hashes of their keys, and one part
of the table after another is built and probed.

The build keeps its rows (`Unbuilt`), and what probes it is cut: steps before the probe make rows, the probe and what follows up
to the sink, or to the next such table, run part by part, and what they make goes on as one frame. Tables that fit stay fused. A
part that is still too large is partitioned again; one of a single key, or of few, is built in pieces that are probed in turn.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.distributed.movable import concatenated
from gquery.errors import CardinalityError, OutOfMemoryError
from gquery.execution.part_runs import in_parts, part_run, parts_for, run_extra, to_files
from gquery.execution.sort_parts import sort_within_memory
from gquery.execution.state import Run, StageReport, Unbuilt
from gquery.expression.expr import Column, SortKey, new_column
from gquery.expression.types import BIGINT
from gquery.kernels.values import value_properties
from gquery.operators.base import Frame, JoinArrays, JoinIndex, make_column
from gquery.operators.join import MORE_THAN_ONE
from gquery.operators.partition_rows import HashPartitioning, rows_between
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
from gquery.runtime.interrupt import check

RunStage = Callable[[Run, Stage, Pipeline, StageReport], None]


class _Stages(NamedTuple):
    """The numbers of the stages that a join in parts has behind those of its program: those of `_cut`."""

    before: int
    rows: int
    middle: int
    last: int
    with_match: int
    others: int

    @classmethod
    def behind(cls, stages: int) -> _Stages:
        """Those behind so many stages."""
        return cls(*range(stages, stages + len(cls._fields)))


# ---- the build -------------------------------------------------------------------------------------------------------


def leave_unbuilt(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> bool:
    """Keep the rows of a join table in files, to be built in parts; False where its keys cannot be partitioned."""
    sink = pipeline.sink
    assert isinstance(sink, Build)
    if sink.table.layout not in ("direct-address", "hash") or any(k.dtype.is_opaque for k in sink.table.keys):
        return False
    number = len(state.program.stages)
    run = part_run(state, stage.number, lambda: _cut_build(pipeline, sink.table, number))
    device = run.context.device
    with device.into_files():
        report.rows = run_extra(run, number).rows
    first, build = run.program.stages[number].work, run.program.stages[number + 1].work
    assert isinstance(first, Pipeline) and isinstance(build, Pipeline)
    state.unbuilt[stage.number] = Unbuilt(to_files(run.frames[number], device, stage.label), first, build)
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
    build, unbuilt, at_stage = step.table.stage, state.unbuilt[step.table.stage], _Stages.behind(len(state.program.stages))
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
    with run.context.device.into_files():
        run_rest(run, before, before.work, report)
    probe = middle.work.steps[0]
    assert isinstance(probe, Probe)
    joined = _Joined(run, at_stage, probe, unbuilt, report)
    number = _row_number(before.work, middle.work)
    if number is not None:
        run.frames[before.number] = _numbered(run.frames[before.number], number, run.context.device)
    parts = parts_for(unbuilt.rows.rows * tuning.spilling.joined_row, run.context.device)
    joined.add(run.frames.pop(at_stage.before), unbuilt.rows, parts, 0)
    run.frames[at_stage.middle] = joined.rows()
    run_rest(run, last, last.work, report)
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


def _numbered(frame: Frame, number: Stored, device: Device) -> Frame:
    """The frame with the numbers of its rows."""
    with device.into_files():
        made = device.empty_spillable(frame.rows, np.int64, "numbers of rows")
    step = tuning.partitioning.unit_rows
    for low in range(0, frame.rows, step):
        made[low : low + step] = np.arange(low, min(low + step, frame.rows))
    column = make_column(number.properties, number.physical_type, made, None, frame.rows, device)
    return Frame({**frame.columns, number.column.id: column}, frame.rows)


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


def _cut(pipeline: Pipeline, at: int, end: int, unbuilt: Unbuilt, to: _Stages) -> tuple[Pipeline, ...]:
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


_WITHOUT_MATCH = (JoinKind.INNER, JoinKind.SEMI)  # kinds that pass no row on without a match
_EACH_MATCH = (JoinKind.LEFT, JoinKind.SINGLE, JoinKind.FULL)  # kinds that pass a row on with each of its matches, or without


class _Joined:
    """What the parts of a join have made, under way. The stages are those of `_cut`."""

    def __init__(self, run: Run, stages: _Stages, probe: Probe, unbuilt: Unbuilt, report: StageReport) -> None:
        self._run, self._stages, self._probe, self._report = run, stages, probe, report
        self._table, self._rows, self._device = unbuilt.table, unbuilt.rows, run.context.device
        self._label = run.program.stages[stages.before].label
        self._probed_keys = tuple([e.id for e in probe.keys if isinstance(e, Column)])
        self._built_keys = tuple([c.id for c in self._table.keys])
        self._made: list[Frame] = []
        self._matches: list[tuple[Frame, Array]] = []

    def add(self, probed: Frame, built: Frame, parts: int, seed: int) -> None:
        """Join rows, part by part. They are let go of once they lie in parts."""
        left = in_parts(probed, HashPartitioning(self._probed_keys, parts, seed), self._run, self._report, self._label)
        right = in_parts(built, HashPartitioning(self._built_keys, parts, seed), self._run, self._report, self._label)
        rows = built.rows
        del probed, built
        for n in range(parts):
            check()
            self._add(left.part(n), right.part(n), seed, right.part(n).rows == rows)
        if not self._made and not seed:
            nothing = rows_between(right.frame, 0, 0)
            self._build(nothing)
            self._join(rows_between(left.frame, 0, 0), nothing)

    def _add(self, probed: Frame, built: Frame, seed: int, is_whole: bool) -> None:
        """Join the rows of one part, which ``is_whole`` if no other has rows of the table."""
        if not probed.rows:
            self._note_unmatched(built)
        elif built.rows or self._probe.kind not in _WITHOUT_MATCH:
            if self._has_built(built):
                self._join(probed, built)
            elif is_whole or seed >= tuning.spilling.levels or built.rows < tuning.spilling.least_rows:
                self._add_pieces(probed, built)
            else:
                self.add(probed, built, tuning.spilling.least_parts, seed + 1)

    def _has_built(self, rows: Frame) -> bool:
        """Build the table of some rows; whether it found room."""
        try:
            self._build(rows)
        except OutOfMemoryError as error:
            traceback.clear_frames(error.__traceback__)
            return False
        return True

    def _build(self, rows: Frame) -> None:
        """Build the table of some rows, which says what NOT IN asks for of all."""
        number = self._table.stage
        self._run.frames[self._stages.rows] = rows
        run_extra(self._run, number)
        if self._probe.null_key:
            index = self._run.joins[number]
            index.arrays = replace(index.arrays, count=self._rows.rows, null_keys=self._null_keys)

    @cached_property
    def _null_keys(self) -> int:
        """See `JoinArrays.null_keys`."""
        flags = [v.on(self._device) for k in self._built_keys if (v := self._rows.columns[k].validity) is not None]
        return sum(int(f.size) - int(np.count_nonzero(f)) for f in flags)

    def _join(self, probed: Frame, built: Frame) -> None:
        """Probe the table that was built of some rows."""
        self._made.append(self._ran(self._stages.middle, probed))
        if self._probe.records_matches:
            self._matches.append((built, self._run.matched[self._table.stage][: built.rows]))

    def _ran(self, number: int, rows: Frame) -> Frame:
        """What a stage makes of rows that are probed."""
        self._run.frames[self._stages.before] = rows
        run_extra(self._run, number)
        del self._run.frames[self._stages.before]
        return to_files(self._run.frames.pop(number), self._device, self._label)

    def _note_unmatched(self, built: Frame) -> None:
        if self._probe.records_matches:
            self._matches.append((built, np.zeros(built.rows, np.uint8)))

    def _add_pieces(self, probed: Frame, built: Frame) -> None:
        """Join rows with pieces of those of the table. A row goes on with its matches in each piece; once it has been through all
        of them it is known whether it has one."""
        kind, left, found = self._probe.kind, probed, 0
        if kind is JoinKind.MARK and self._probe.residual is not None:
            self._build(built)  # what compares as NULL in one piece would have to be known of all: likely an error
            self._join(probed, built)
            return
        size = -(-built.rows // tuning.spilling.least_parts)
        for low in range(0, built.rows, size):
            check()
            piece = rows_between(built, low, min(low + size, built.rows))
            self._build(piece)
            self._report.parts += 1
            if kind is JoinKind.INNER:
                self._join(probed, piece)
                continue
            with_match = self._ran(self._stages.with_match, probed if kind in _EACH_MATCH else left)
            found += with_match.rows
            if kind is not JoinKind.ANTI and with_match.rows:
                self._join(with_match, piece)
            else:
                self._note_unmatched(piece)
            left = self._ran(self._stages.others, left)
        if kind is JoinKind.SINGLE and found + left.rows > probed.rows:
            raise CardinalityError(MORE_THAN_ONE)
        if kind not in _WITHOUT_MATCH:
            nothing = rows_between(built, 0, 0)
            self._build(nothing)
            self._join(left, nothing)

    def rows(self) -> Frame:
        """What was made of all rows."""
        self._run.joins.pop(self._table.stage, None)
        with self._device.into_files():
            return concatenated(self._made, (), self._device)

    def matches(self) -> tuple[JoinIndex, Array]:
        """FULL: the rows of the table in the order in which they were joined, and which of them had a match (uint8)."""
        with self._device.into_files():
            frame = concatenated([f for f, _ in self._matches], (), self._device)
            matched = self._device.empty_spillable(max(frame.rows, 1), np.uint8, self._label)
        at = 0
        for rows, flags in self._matches:
            matched[at : at + rows.rows] = flags
            at += rows.rows
        return JoinIndex(JoinArrays(count=frame.rows), frame, self._table, frame.rows), matched
