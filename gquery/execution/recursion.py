"""Recursion: the program of a round is run until it makes no row.

What in it does not depend on the round (tables that are joined, their join tables) is made once. The frames of all rounds are put
together at the end; for a step that asks for all rows so far, after each round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gquery.columns.table import ColumnData
from gquery.device.device import Device
from gquery.device.recording import CannotRecordError
from gquery.execution.speculation import Speculation
from gquery.execution.state import Run, StageReport
from gquery.operators.base import Frame
from gquery.operators.breakers import concatenate
from gquery.planner.physical import Program, RecursiveRows, Stage, Stored
from gquery.planner.stage_inputs import stage_inputs
from gquery.runtime.interrupt import check

RunStage = Callable[[Run, Stage, StageReport], None]
_ROUND, _ALL = 0, 1  # the stages of a round's program that it is given


def run_recursion(
    state: Run, stage: Stage, work: RecursiveRows, frames: Mapping[int, Frame], run_stage: RunStage
) -> Frame:
    """All rows of a recursion; ``frames`` has the first ones. ``run_stage`` runs one stage of a run."""
    device = state.context.device
    if device.stays:
        raise CannotRecordError("a recursion ends when its rows say so")
    state.speculation.validate()
    feedback = state.feedback.nested(stage.number)
    inner = replace(state.context, meter=None, ranks=())
    run = Run(work.program, inner, feedback, Speculation(feedback, device, True))
    rounds = _Rounds(work, device, _columns(frames[work.stage], [s.column.id for s in work.inputs]))
    once, each = _parts(work.program)
    asks_all = any(_ALL in stage_inputs(s.work) for s in work.program.stages)
    run.frames[_ROUND] = run.frames[_ALL] = rounds.last
    for s in once:
        run_stage(run, s, StageReport(s.number, s.label, "", 0, 0.0))
    outputs = [s.column.id for s in work.program.outputs]
    while rounds.last.rows and (work.enough is None or rounds.rows < work.enough):
        check()
        run.frames[_ROUND] = rounds.last
        if asks_all:
            run.frames[_ALL] = rounds.together()
        for s in each:
            run_stage(run, s, StageReport(s.number, s.label, "", 0, 0.0))
        rounds.add(_columns(run.frames[each[-1].number], outputs))
        for s in each:
            run.frames.pop(s.number, None)
            run.joins.pop(s.number, None)
            run.matched.pop(s.number, None)
    run.forget()
    return rounds.together()


class _Rounds:
    """What rounds have made, as frames with the recursion's columns. Those that were put together once are one."""

    def __init__(self, work: RecursiveRows, device: Device, first: Sequence[ColumnData]) -> None:
        self._columns, self._device = work.columns, device
        self._frames: list[Frame] = []
        self.rows = 0
        self.add(first)

    def add(self, columns: Sequence[ColumnData]) -> None:
        """The rows of one more round."""
        ids = [s.column.id for s in self._columns]
        self.last = Frame(dict(zip(ids, columns, strict=True)), columns[0].length)
        self.rows += self.last.rows
        if self.last.rows or not self._frames:
            self._frames.append(self.last)

    def together(self) -> Frame:
        """The rows of all rounds."""
        if len(self._frames) > 1:
            made = {s.column.id: self._joined(s) for s in self._columns}
            self._frames = [Frame(made, self.rows)]
        return self._frames[0]

    def _joined(self, stored: Stored) -> ColumnData:
        return concatenate([f.columns[stored.column.id] for f in self._frames], stored, self.rows, self._device)


def _columns(frame: Frame, ids: Sequence[int]) -> list[ColumnData]:
    return [frame.columns[i] for i in ids]


def _parts(program: Program) -> tuple[list[Stage], list[Stage]]:
    """The stages that depend on no round, and those that do; both in their order."""
    depends = {_ROUND, _ALL}
    once: list[Stage] = []
    each: list[Stage] = []
    for s in program.stages[_ALL + 1 :]:
        if s is program.stages[-1] or not depends.isdisjoint(stage_inputs(s.work)):
            depends.add(s.number)
            each.append(s)
        else:
            once.append(s)
    return once, each
